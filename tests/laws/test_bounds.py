"""What a stream keeps is bounded: white space waits for what follows it, but not without limit."""

from __future__ import annotations

import pytest

from untemplate import OutputParser, Policy
from untemplate.format import Format
from untemplate.testing import check

from .strategies import FORMATS

HELD = 10
CALLS = ["", '<tool_call>{"name": "f", "arguments": {}}</tool_call>']


@pytest.mark.parametrize("begins", ["a", "<think>", "<think>a", "<think>a</think>", "<think>a</think>b", *CALLS])
@pytest.mark.parametrize("ends", ["", "b", "</think>b", '<tool_call>{"name": "f", "arguments": {}}</tool_call>'])
@pytest.mark.parametrize("size", [HELD - 1, HELD, HELD + 1, 2 * HELD, 5 * HELD + 3])
def test_white_space_is_counted_in_characters_of_the_output(begins: str, ends: str, size: int) -> None:
    raw = begins + " " * size + ends
    parser = OutputParser.named("hermes", reasoning="qwen3", policy=Policy(max_held=HELD))
    check(parser, raw, roundtrip=False)


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=list(FORMATS))
def test_white_space_does_not_wait_for_ever(fmt: Format) -> None:
    parser = OutputParser.from_format(fmt, policy=Policy(max_held=HELD))
    stream = parser.stream()
    for _ in range(20 * HELD):
        stream.feed(" ")
    machine = stream._backend._machine  # type: ignore[attr-defined]
    assert sum(map(len, machine.spaces)) + machine.speculation.size <= HELD


@pytest.mark.parametrize("size", [HELD, HELD + 1, 3 * HELD + 2])
@pytest.mark.parametrize("step", [1, 7, 100])
def test_white_space_that_is_trimmed_waits_within_the_bound(size: int, step: int) -> None:
    parser = OutputParser.named("hermes", policy=Policy(max_held=HELD, outer_white_space="trim"))
    raw = f"  a{' ' * size}"
    stream = parser.stream(collect=True)
    for at in range(0, len(raw), step):
        stream.feed(raw[at : at + step])
    stream.finish()
    content = stream.result().content
    assert content == parser.parse(raw).content
    assert content is not None
    assert content.startswith("a")
    assert len(raw) - 2 - len(content) <= HELD
