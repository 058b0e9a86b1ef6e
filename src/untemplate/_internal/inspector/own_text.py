"""Tests a Format against its own renderer: whatever it writes must be read back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ...format import Format
    from ...messages import ParsedOutput

_TYPES: Final = {"city": "string", "days": "integer", "hourly": "boolean", "place": "object"}
_TOOLS: Final[list[dict[str, Any]]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {key: {"type": kind} for key, kind in _TYPES.items()}},
        },
    }
]
_ARGUMENTS: Final = {"city": "Paris", "days": 3, "hourly": True, "place": {"zip": "75001"}}
_CALL: Final = {"id": "call00001", "function": {"name": "get_weather", "arguments": _ARGUMENTS}}
_SECOND: Final = {"id": "call00002", "function": {"name": "get_weather", "arguments": {"city": "Rome"}}}
_SAMPLES: Final[dict[str, dict[str, Any]]] = {
    "text": {"content": "It is 4."},
    "reasoning": {"reasoning": "Simple arithmetic: 2 + 2.", "content": "It is 4."},
    "one call": {"tool_calls": [_CALL]},
    "two calls": {"tool_calls": [_CALL, _SECOND]},
}
_SUSPECTS: Final = {
    "text": "turn, content",
    "reasoning": "reasoning",
    "one call": "tools[0].call_open, tools[0].body",
    "two calls": "tools[0].separator, tools[0].call_close",
}
"""The fields to look at first."""
_LIMITS: Final = frozenset(("no_reasoning", "no_calls", "parallel_calls", "content_with_calls"))
"""Reasons why a message cannot be written that are no faults of a Format."""


def not_read_back(fmt: Format) -> Iterator[str]:
    """Yield a sentence for each sample that the Format does not read as it writes it, up to the first of calls."""
    from ..output_parser import OutputParser
    from ..render import expressible, render

    parser = OutputParser.from_format(fmt)
    for sample, message in _SAMPLES.items():
        reason = expressible(fmt, message, _TOOLS)
        if reason is not None:
            if reason not in _LIMITS:
                yield f"{sample}: not written, as {reason.sentence}"
            continue
        text = render(fmt, message)
        found = parser.parse(text, tools=_TOOLS, seed="untemplate")
        if _parts(found) != _expected(message):
            suspects = "channels" if fmt.channels is not None else _SUSPECTS[sample]
            yield f"{sample}: {text!r} is read as {_shown(found)}; look at {suspects}"
            if "tool_calls" in message:
                return


def _expected(message: dict[str, Any]) -> tuple[Any, ...]:
    calls = [(call["function"]["name"], call["function"]["arguments"], "ok") for call in message.get("tool_calls", ())]
    return message.get("reasoning", ""), message.get("content", ""), calls, []


def _parts(found: ParsedOutput) -> tuple[Any, ...]:
    """Return what a sample is compared by: texts, calls and the codes of diagnostics."""
    calls = [(c.function.name, _value(c.function.arguments), c.status) for c in found.tool_calls]
    return found.reasoning_content or "", found.content or "", calls, [d.code for d in found.diagnostics]


def _value(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _shown(found: ParsedOutput) -> str:
    parts = zip(("reasoning", "content", "calls", "diagnostics"), _parts(found), strict=True)
    return ", ".join(f"{name} {value!r}" for name, value in parts if value) or "nothing"
