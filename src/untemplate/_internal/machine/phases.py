"""The phases of the readers inside calls, and in the text before them: the place of each reader within what it reads.

A reader keeps its phase in one attribute. Its module lists the phases in ``PHASES``, by number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from . import call_arguments, calls, json_place
from .elements import reader as elements
from .json import call_object
from .literal import reader as literal
from .tagged import reader as tagged
from .tagged import value_reader

READERS: Final[dict[str, tuple[str, ...]]] = {
    "CallReader": calls.PHASES,
    "ArgumentsReader": call_arguments.PHASES,
    "CallObjectReader": call_object.PHASES,
    "TaggedReader": tagged.PHASES,
    "ValueReader": value_reader.PHASES,
    "ElementReader": elements.PHASES,
    "LiteralReader": literal.PHASES,
    "JsonPlace": json_place.PHASES,
}
"""Reader → what it reads in each phase."""


def phase_table() -> Iterator[str]:
    """Yield the lines of a Markdown table of the phases."""
    yield "| reader | its phases |"
    yield "| --- | --- |"
    for reader, phases in READERS.items():
        yield f"| {reader} | {', '.join(phases)} |"
