"""Calls in mlx-lm's server by untemplate.

>>> from mlx_lm import load                                         # doctest: +SKIP
>>> model, tokenizer = load("mlx-community/Qwen3-0.6B-4bit")        # doctest: +SKIP
>>> install(tokenizer)                                              # doctest: +SKIP

mlx-lm finds the text of calls itself, between two markers, and gives it to the tokenizer's parser. Reasoning stays with
mlx-lm. A call that is cut or has no JSON object as arguments is left out, as its own parsers do.

Source: ``TokenizerWrapper`` and ``ToolCallFormatter`` of mlx-lm 0.32.
"""

from __future__ import annotations

import json
from typing import Any

from .._internal.output_parser import OutputParser
from ._markers import markers_around_calls
from ._of_tokenizer import parser_of
from ._partner import partner

__all__ = ["install"]


def install(tokenizer: Any, format: str | None = None) -> OutputParser:
    """Let a tokenizer's calls be parsed by untemplate, and return the parser.

    Args:
        tokenizer: mlx-lm's ``TokenizerWrapper``; it is changed.
        format: a name of the catalogue. Default: the Format that certifies against the tokenizer's chat template.

    Raises:
        ImportError: mlx-lm 0.32 or later is not installed.
        TypeError: the tokenizer is not one of mlx-lm.
        ValueError: the tokenizer has no chat template and no format is named, the name is unknown, or calls of the
            Format do not have a marker at each end.
    """
    wrapper = partner("mlx_lm.tokenizer_utils", "mlx-lm", "0.32").TokenizerWrapper
    if not isinstance(tokenizer, wrapper):
        raise TypeError(f"install() tokenizer: expected mlx-lm's TokenizerWrapper, got {type(tokenizer).__name__}")
    parser = parser_of(tokenizer, format)
    start, end = markers_around_calls(parser.format, "mlx-lm")

    def parse_tool_call(text: str, tools: Any = None) -> list[dict[str, Any]]:
        """Return the calls in the text between the markers.

        Raises:
            ValueError: there is no whole call.
        """
        parsed = parser.parse(f"{start}{text}{end}", tools=tools)
        calls = [
            {"name": call.function.name, "arguments": json.loads(call.function.arguments)}
            for call in parsed.tool_calls
            if call.status not in ("incomplete", "invalid_json")
        ]
        if not calls:
            raise ValueError("the text has no whole call")
        return calls

    tokenizer._tool_parser = parse_tool_call
    tokenizer._tool_call_start, tokenizer._tool_call_end = start, end
    tokenizer._tool_call_start_tokens = tuple(tokenizer.encode(start, add_special_tokens=False))
    tokenizer._tool_call_end_tokens = tuple(tokenizer.encode(end, add_special_tokens=False))
    return parser
