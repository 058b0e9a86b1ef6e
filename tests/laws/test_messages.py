"""Law 8, and all others with it: a message that a Format can express is read back exactly, however the output is cut.

The renderer writes messages with awkward values, which are parsed under every law. Messages that the Format cannot
express are skipped, and their rate is recorded elsewhere (tests/test_render.py).
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from untemplate import OutputParser
from untemplate._internal.render import expressible, render
from untemplate.format import Format
from untemplate.testing import check

from .strategies import FORMATS, TOOLS, messages

EVERY = pytest.mark.parametrize("fmt", FORMATS.values(), ids=list(FORMATS))


HINTS = {"markup_in_value", "call_like_text", "fenced_call", "unread_marker"}
"""Diagnostics of a message that comes back: a value or the content holds markup, or a fence in it is left open."""


def holds(fmt: Format, message: dict[str, Any], tools: list[dict[str, Any]] | None, cuts: int) -> None:
    if expressible(fmt, message, tools=tools) is not None:
        return
    functions = [call["function"] for call in message.get("tool_calls", ())]
    raw = render(fmt, message)
    labels = [d.code for d in OutputParser.from_format(fmt).parse(raw, tools=tools).diagnostics]
    found = OutputParser.from_format(fmt).parse(raw, tools=tools).tool_calls if labels else []
    statuses = [call.status for call in found] or ["ok"] * len(functions)
    assert set(labels) <= HINTS, raw
    assert statuses.count("recovered") <= labels.count("markup_in_value"), raw
    assert len(statuses) == len(functions), raw
    calls = zip(functions, statuses, strict=True)
    expected = {
        "reasoning": message.get("reasoning"),
        "content": message["content"],
        "tool_calls": [(f["name"], json.loads(f["arguments"]), status) for f, status in calls],
        "finish_reason": "tool_calls" if functions else "stop",
        "diagnostics": labels,
    }
    check(fmt, raw, expected, tools=tools, cuts=cuts)


@EVERY
def test_messages_read_back(fmt: Format) -> None:
    @settings(max_examples=2)
    @given(messages(fmt))
    def law(message: dict[str, Any]) -> None:
        holds(fmt, message, TOOLS, 12)

    law()


@EVERY
def test_twenty_calls(fmt: Format) -> None:
    """Each call is in its place with its own arguments."""
    if not fmt.tools and fmt.channels is None:
        pytest.skip("no calls in this format")
    call = {"name": "get_weather", "arguments": ""}
    calls = [
        {"id": f"c{i}", "type": "function", "function": {**call, "arguments": json.dumps({"city": f"C{i}", "days": i})}}
        for i in range(20)
    ]
    holds(fmt, {"role": "assistant", "content": None, "tool_calls": calls}, TOOLS, 2)


@pytest.mark.exhaustive
@pytest.mark.parametrize("tools", [None, TOOLS], ids=["unknown-tools", "tools"])
@EVERY
def test_many_messages(fmt: Format, tools: list[dict[str, Any]] | None) -> None:
    @settings(settings.get_profile("exhaustive"))
    @given(messages(fmt, most_calls=20))
    def law(message: dict[str, Any]) -> None:
        holds(fmt, message, tools, 160)

    law()
