"""The opener of a call costs few steps: they are counted, as counts do not depend on the machine."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from tests.laws.strategies import FORMATS
from untemplate import COMPILED, OutputParser
from untemplate._internal.machine.compiler import compile_format
from untemplate._internal.machine.rules import CLOSE_MESSAGE, OPEN_BARE_CALLS, OPEN_CALLS, OPEN_HEADER
from untemplate._internal.stream import Stream

MOST_CALLS = 40
"""Most Python functions of the package that are called for a delta that is the first opener of a call."""
CALL = {"id": "call00001", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]
BEGINS = {OPEN_CALLS, OPEN_BARE_CALLS, OPEN_HEADER, CLOSE_MESSAGE}


def calls_of(stream: Stream, text: str) -> int:
    """Return the number of functions of the package that are called for a delta."""
    count = 0

    def seen(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call" and "untemplate/_internal" in frame.f_code.co_filename

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        stream.feed(text)
    finally:
        sys.setprofile(before)
    return count


def opener_of(parser: OutputParser, raw: str) -> tuple[str, str]:
    """Return the text before the first opener of a call, or what ends the message before it, and that marker."""
    program = compile_format(parser.format)
    state = program.states[program.content]
    for found in state.literals.pattern.finditer(raw, max(raw.find("see."), 0)):
        if state.rules[state.literals.tags[found.group()]].kind in BEGINS:
            return raw[: found.start()], found.group()
    return "", ""


@pytest.mark.skipif(COMPILED, reason="compiled functions are not traced")
@pytest.mark.parametrize("name", [name for name, fmt in FORMATS.items() if fmt.tools])
def test_the_opener_of_a_call_takes_few_steps(name: str) -> None:
    parser = OutputParser.from_format(FORMATS[name])
    message = {"role": "assistant", "content": "Let me see.", "tool_calls": [CALL]}
    try:
        raw = parser.render(message)
    except ValueError:  # its calls follow no text
        raw = parser.render({"role": "assistant", "tool_calls": [CALL]})
    before, opener = opener_of(parser, raw)
    count = 0
    for _ in range(2):  # the first time, caches fill
        stream = parser.stream(tools=TOOLS, seed=1)
        for character in before:
            stream.feed(character)
        count = calls_of(stream, opener)
    assert 0 < count <= MOST_CALLS
