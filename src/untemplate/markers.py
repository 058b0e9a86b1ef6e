"""The markers by which a text can be recognised as the output of a format."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

from .format import Format, Marker, NamedBody
from .formats.registry import markers

__all__ = ["foreign_marker", "markers_in", "markers_of"]


def markers_of(fmt: Format) -> dict[str, str]:
    """Return every spelling of the markers that begin calls, and begin or end reasoning, with its meaning."""
    found: dict[str, str] = {}

    def add(marker: Marker | None, meaning: str) -> None:
        for text in () if marker is None else marker.spellings:
            found.setdefault(text.strip(), meaning)

    for tools in fmt.tools:
        add(tools.section_open, "begins calls")
        add(tools.call_open, "begins calls")
        if isinstance(tools.body, NamedBody):
            add(tools.body.name_open, "begins calls")
    if fmt.reasoning is not None:
        add(fmt.reasoning.open, "begins reasoning")
        add(fmt.reasoning.close, "ends reasoning")
    if fmt.channels is not None:
        add(fmt.channels.open, "begins messages")
        add(fmt.channels.channel, "begins messages")
    return found


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return a pattern for the catalogue's markers that begin with each bracket. Alternatives share their first
    character, so that other tags are refused quickly."""
    patterns = []
    for bracket in "<[":
        groups: defaultdict[str, list[str]] = defaultdict(list)
        for marker in sorted(markers(), key=len, reverse=True):
            if marker[0] == bracket:
                groups[marker[1]].append(re.escape(marker[2:]))
        rests = "|".join(f"{re.escape(first)}(?:{'|'.join(rests)})" for first, rests in groups.items())
        patterns.append((bracket, re.compile(f"{re.escape(bracket)}(?:{rests})")))
    return tuple(patterns)


def markers_in(content: str, own: frozenset[str] = frozenset()) -> Iterator[tuple[str, int]]:
    """Yield each marker of the catalogue in ``content`` that is not in ``own``, and its place, bracket by bracket.

    A marker directly after a backtick is a quotation.
    """
    for bracket, pattern in _patterns():
        if bracket in content:
            for found in pattern.finditer(content):
                if found.group() not in own and content[found.start() - 1 : found.start()] != "`":
                    yield found.group(), found.start()


def foreign_marker(content: str, own: frozenset[str]) -> tuple[str, int, str] | None:
    """Return the first marker in ``content`` that is not in ``own``, its place, and its meaning in other formats."""
    found = next(markers_in(content, own), None)
    return None if found is None else (*found, markers()[found[0]])
