"""Text in the middle of a tag or a name is kept without being read (``Cursor.goes_on``). No client sees a difference:
every delta is the same as if all text were read at once."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given, settings

from untemplate import OutputParser
from untemplate._internal.machine.machine import Machine
from untemplate.format import Format
from untemplate.messages import DeltaMessage
from untemplate.policy import Policy

from .strategies import TOOLS, sketches
from .test_outputs import EVERY, SAMPLE


def deltas(parser: OutputParser, raw: str, policy: Policy | None) -> list[list[DeltaMessage]]:
    """Return the deltas after each character of an output, and those of its end."""
    stream = parser.stream(tools=TOOLS, seed=1, policy=policy)
    return [*(stream.feed(character) for character in raw), stream.finish()]


SHORT = Policy(max_held=64)


@pytest.mark.skipif(not hasattr(Machine.read, "__code__"), reason="a compiled class cannot be patched")
@EVERY
def test_text_that_is_kept_unread_delays_nothing(fmt: Format) -> None:
    parser = OutputParser.from_format(fmt)

    @settings(max_examples=SAMPLE)
    @given(sketches(fmt))
    def holds(raw: str) -> None:
        spaced = raw[: len(raw) // 2] + " \n" * 70 + raw[len(raw) // 2 :]
        for output, policy in ((raw, None), (raw, SHORT), (spaced, SHORT)):
            kept = deltas(parser, output, policy)
            with mock.patch.object(Machine, "_look_ahead", Machine._read_next):
                assert deltas(parser, output, policy) == kept

    holds()
