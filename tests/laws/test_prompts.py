"""Law 7: the start state comes from the end of the prompt, after the last turn start, and never from user text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from untemplate import OutputParser
from untemplate.format import Format
from untemplate.testing import check

from .strategies import FORMATS, literals, noise

REASONING = {
    name: fmt
    for name, fmt in FORMATS.items()
    if fmt.reasoning is not None and fmt.reasoning.open is not None and fmt.turn.start is not None
}
EVERY = pytest.mark.parametrize("fmt", REASONING.values(), ids=list(REASONING))


def opened(fmt: Format) -> str:
    assert fmt.reasoning is not None
    assert fmt.reasoning.open is not None
    assert fmt.turn.start is not None
    return fmt.turn.start.text + fmt.reasoning.open.text


@EVERY
def test_both_start_states(fmt: Format) -> None:
    """Reasoning is opened by the prompt, closed by the prompt, or not mentioned."""
    assert fmt.reasoning is not None
    assert fmt.turn.start is not None
    close = fmt.reasoning.close.text
    raw = f"One.{close}Two."
    check(fmt, raw, {"reasoning": "One.", "content": "Two."}, prompt=opened(fmt), cuts=12)
    check(fmt, "Two.", {"content": "Two."}, prompt=opened(fmt) + close)
    check(fmt, "One.", {"reasoning": "One."}, prompt=opened(fmt), finish_reason="length")
    assert fmt.reasoning.open is not None
    whole = fmt.reasoning.open.text + raw
    check(fmt, whole, {"reasoning": "One.", "content": "Two."}, prompt=fmt.turn.start.text, cuts=12)
    check(fmt, "Two.", {"content": "Two."}, prompt=fmt.turn.start.text)


@EVERY
def test_a_prefill_is_part_of_the_message(fmt: Format) -> None:
    assert fmt.reasoning is not None
    prompt = opened(fmt) + "On"
    raw = f"e.{fmt.reasoning.close.text}Two."
    check(fmt, raw, {"reasoning": "One.", "content": "Two."}, prompt=prompt, prefill="On", cuts=12)


@EVERY
def test_user_text_decides_nothing(fmt: Format) -> None:
    """Markers in an earlier turn (quoted, open, closed or cut) belong to the user."""
    assert fmt.reasoning is not None
    raw = f"One.{fmt.reasoning.close.text}Two."
    parser = OutputParser.from_format(fmt)
    expected = parser.parse(raw, prompt=opened(fmt), seed=1)

    @settings(max_examples=10)
    @given(noise(fmt), st.sampled_from(literals(fmt)))
    def law(before: str, last: str) -> None:
        assert parser.parse(raw, prompt=f"{before}{last}\n{opened(fmt)}", seed=1) == expected

    law()


def test_without_a_turn_start_only_the_end_counts() -> None:
    parser = OutputParser.named("hermes", reasoning="qwen3")
    assert parser.parse("a</think>b", prompt="user: x\nassistant: <think>\n").reasoning == "a"
    assert parser.parse("a", prompt="user: what is <think>?\nassistant: ").content == "a"
    assert parser.parse("a", prompt="").content == "a"


def test_a_close_that_begins_as_an_opener_is_no_opener() -> None:
    """In Gemma's older spelling, ``<|channel>response`` ends reasoning; the output is cut in it."""
    found = check("gemma4", "<|channel>response", roundtrip=False)
    assert (found.reasoning, found.content) == (None, None)
