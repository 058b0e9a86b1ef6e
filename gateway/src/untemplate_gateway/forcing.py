"""Forced calls in front of engines that take no grammar: the prompt ends with the opening of the call.

The model can then only continue the call. Its arguments are not constrained.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from untemplate._internal.output_parser import OutputParser

from .errors import unsupported
from .generation import Generation
from .manager.model import Model

_ARGUMENTS = ("{}", '{"a": "b"}', '{"c": "d"}')


def forced_opening(model: Model, request: Generation, prompt: str | None) -> str:
    """Return the opening of a call that the request forces, for an engine that takes no grammar; otherwise "".

    Raises:
        ApiError: the model's format has none.
    """
    choice, takes = request.tool_choice, model.engine.takes
    if choice in (None, "auto", "none") or takes.grammar is not None or takes.tool_choice:
        return ""
    name = choice["function"]["name"] if isinstance(choice, dict) else None
    tools = [tool for tool in request.tools or () if name in (None, tool["function"]["name"])]
    opening = call_opening(model.parser, tools, prompt) if tools else ""
    if not opening:
        raise unsupported("tool_choice", "this engine takes no grammar, and the model's format has no fixed opening")
    request.notes.add("tool_choice: the prompt ends with the opening of the call, because the engine takes no grammar")
    return opening


def call_opening(parser: OutputParser, tools: Sequence[dict[str, Any]], prompt: str | None) -> str:
    """Return the text that forces a call of one of ``tools``: up to the arguments of the only tool, or else up to the
    name. Reasoning that the prompt has opened is closed first. Empty if the format has no such text.

    Args:
        prompt: as for `OutputParser.stream`.
    """
    name = str(tools[0]["function"]["name"])
    written = [_written(parser, name, arguments) for arguments in _ARGUMENTS]
    common = os.path.commonprefix(written)  # noqa: RUF071 - of texts, not of paths
    opening = _whole_tokens(common, parser.format.special_tokens)
    before, found, _ = opening.partition(name)
    if not found:
        return ""
    head = (parser.reasoning_close or "") if parser.stream(prompt=prompt).in_reasoning else ""
    parsed = parser.parse(head + written[1], prompt=prompt, tools=tools)
    if [call.function.name for call in parsed.tool_calls] != [name]:
        return ""
    return head + (opening if len(tools) == 1 else before)


def _whole_tokens(text: str, special: Iterable[str]) -> str:
    """Return a text without a special token that is begun at its end, and without a bracket that may belong to the next
    token."""
    for token in special:
        for size in range(len(token) - 1, 0, -1):
            if text.endswith(token[:size]):
                text = text[:-size]
                break
    return text.rstrip(" {<")


def _written(parser: OutputParser, name: str, arguments: str) -> str:
    """Return a call as the format writes it, without reasoning before it."""
    call = {"id": "call_0", "type": "function", "function": {"name": name, "arguments": arguments}}
    text = parser.render({"role": "assistant", "content": None, "tool_calls": [call]})
    reasoning = parser.format.reasoning
    if reasoning is None:
        return text
    _, found, after = text.partition(reasoning.close.text.strip())
    return after.lstrip("\n") if found else text
