"""``tokenizer.parse_response`` of transformers by untemplate, which TRL's trainers call for outputs with tools.

>>> from transformers import AutoTokenizer                                          # doctest: +SKIP
>>> tokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen3-0.6B")                    # doctest: +SKIP
>>> install(tokenizer)                                                              # doctest: +SKIP
>>> tokenizer.parse_response(ids, prefix=prompt_ids, tools=tools)["tool_calls"]     # doctest: +SKIP

A response template that transformers reads without untemplate is `Format.to_response_template`.

Source: ``PreTrainedTokenizerBase.parse_response`` of transformers 5.13 to 5.23.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from .._internal.output_parser import OutputParser
from ..format import FormatError
from ..messages import ParsedOutput
from ..policy import WHOLE_CALLS
from ._of_tokenizer import parser_of
from ._partner import partner

__all__ = ["install"]

_POLICY: Final = replace(WHOLE_CALLS, malformed_arguments="content")
"""A call without whole arguments cannot be run, and its arguments are no dict: its text remains in the content."""


def install(tokenizer: Any, format: str | None = None) -> OutputParser:
    """Let a tokenizer's ``parse_response`` parse with untemplate, and return the parser.

    The tokenizer's ``response_template`` is set as well, so that TRL does not look for one of its own. It holds what a
    template can hold; ``save_pretrained`` saves it.

    Args:
        tokenizer: of transformers; it is changed.
        format: a name of the catalogue. Default: the Format that certifies against the tokenizer's chat template.

    Raises:
        ImportError: transformers 5.13 or later is not installed.
        ValueError: the tokenizer has no chat template and no format is named, or the name is unknown.
    """
    get_json_schema = partner("transformers.utils.chat_template_utils", "transformers", "5.13").get_json_schema
    parser = parser_of(tokenizer, format, _POLICY)

    def parse_response(
        response: Any, schema: Any = None, *, prefix: Any = None, tools: Sequence[Any] | None = None
    ) -> Any:
        """Return the message of an output, or a list of messages for a batch; as transformers documents it."""
        if schema is not None:
            raise ValueError("parse_response() schema: untemplate parses by its own Format; leave it out")
        offered = None if tools is None else [get_json_schema(tool) if callable(tool) else tool for tool in tools]
        outputs, batched = _batch(response)
        prompts, several = _batch(prefix) if prefix is not None else ([None], False)
        if not several:
            prompts = prompts * len(outputs)
        if len(prompts) != len(outputs):
            raise ValueError(f"parse_response() prefix: {len(prompts)} for {len(outputs)} outputs")
        texts = [
            prompt if isinstance(prompt, str) or prompt is None else tokenizer.decode(prompt) for prompt in prompts
        ]
        messages = [_parse(parser, output, text, offered) for output, text in zip(outputs, texts, strict=True)]
        return messages if batched else messages[0]

    tokenizer.parse_response = parse_response
    try:
        tokenizer.response_template = parser.format.to_response_template()
    except FormatError:
        # TRL asks only whether there is one.
        tokenizer.response_template = {"version": 1, "start_anchor_pattern": "$", "fields": {"content": {}}}
    return parser


def _batch(value: Any) -> tuple[list[Any], bool]:
    """Return texts or lists of ids, and True if the value holds several."""
    if isinstance(value, str):
        return [value], False
    items = value.tolist() if hasattr(value, "tolist") else list(value)
    if items and (isinstance(items[0], (str, list, tuple)) or hasattr(items[0], "tolist")):
        return [item.tolist() if hasattr(item, "tolist") else item for item in items], True
    return [items], False


def _parse(parser: OutputParser, output: Any, prompt: str | None, tools: Sequence[Any] | None) -> dict[str, Any]:
    if isinstance(output, str):
        return _message(parser.parse(output, tools=tools, prompt=prompt))
    return _message(parser.parse_tokens(output, tools=tools, prompt=prompt).output)


def _message(parsed: ParsedOutput) -> dict[str, Any]:
    """Return the message as transformers returns it: arguments are dicts, and ids are left out."""
    message = parsed.message(reasoning_field="reasoning_content")
    for call in message.get("tool_calls", ()):
        del call["id"]
        call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return {key: value for key, value in message.items() if value is not None}
