"""Near-misses cost linear work in every Format: four times the text takes about four times the steps, fed character by
character. Quadratic work would be sixteen times."""

from __future__ import annotations

import pytest

from untemplate import OutputParser
from untemplate.format import Format

from ..work import function_calls
from .strategies import FORMATS, TOOLS, literals
from .test_quotation import written

CALLS = {name: fmt for name, fmt in FORMATS.items() if fmt.tools or fmt.channels is not None}


def near_misses(fmt: Format) -> list[str]:
    """Return texts that are nearly calls: a call that stops in its middle, one that stops at its end, and all markers
    in prose."""
    call = written(fmt)
    return [call[: len(call) // 2], call[:-2] + " ", " and ".join([*literals(fmt)[:12], ""])]


def steps(parser: OutputParser, text: str) -> int:
    """Return the number of function calls for an output, fed character by character."""

    def run() -> None:
        stream = parser.stream(tools=TOOLS)
        for letter in text:
            stream.feed(letter)
        stream.finish()

    # What happens once in the process, such as a collection of garbage, is in one of two counts.
    return min(function_calls(run) for _ in range(2))


@pytest.mark.parametrize("fmt", CALLS.values(), ids=list(CALLS))
def test_near_misses_take_linear_work(fmt: Format) -> None:
    parser = OutputParser.from_format(fmt)
    for unit in near_misses(fmt):
        small, large = (steps(parser, (unit * size)[:size]) for size in (100, 400))
        assert large < 8 * small, (unit, small, large)
