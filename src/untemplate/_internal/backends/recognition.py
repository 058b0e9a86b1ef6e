"""The markers by which a text can be recognised as the output of a format."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, Final

from ...format import Format, Marker, NamedBody
from ...format._markers import spellings_of
from ...formats._registry import markers

__all__ = [
    "MARKUP",
    "call_markers",
    "every_marker",
    "foreign_marker",
    "marker_texts",
    "markers_in",
    "markers_of",
    "markers_within",
    "prompt_markers",
    "texts_of",
]


def markers_within(part: Any) -> Iterator[Marker]:
    """Yield every marker of a Format or of a part of it."""
    if isinstance(part, Marker):
        yield part
    elif is_dataclass(part):
        for field in fields(part):
            yield from markers_within(getattr(part, field.name))
    elif isinstance(part, tuple):
        for item in part:
            yield from markers_within(item)


def markers_of(fmt: Format) -> dict[str, str]:
    """Return every spelling of the markers that begin calls, and begin or end reasoning, with its meaning."""
    found: dict[str, str] = {}

    def add(marker: Marker | None, meaning: str) -> None:
        for text in spellings_of(marker):
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


MARKUP: Final = re.compile(r"(?=.*[<>\[\]|｜])(?=.*\w)(?!\w+\[\Z).{3,}", re.DOTALL)
"""Matches a marker that prose does not hold."""
_TAG: Final = re.compile(r"<[^<>\n]{1,64}>|\[/?[A-Z_]{2,64}\]")


def prompt_markers(fmt: Format, added: Iterable[str] = ()) -> frozenset[str]:
    """Return the markers that no text in a prompt should hold: those of a Format, and the tokens that a tokenizer has
    ``added``, as far as they are markup that prose does not hold."""
    # The start of a turn has the spellings of all families, and holds the role of the assistant.
    start, rest = fmt.turn.start, replace(fmt, turn=replace(fmt.turn, start=None))
    own = [text.strip() for marker in markers_within(rest) for text in marker.spellings]
    own += [] if start is None else [start.text.strip()]
    tags = (tag for text in own for tag in _TAG.findall(text))
    found = filter(MARKUP.match, (*own, *tags, *fmt.special_tokens, *added))
    return frozenset(text for text in found if "<" in text or _TAG.search(text))


def texts_of(*parts: Any) -> set[str]:
    """Return every spelling of the markers of these parts of a Format, without white space around it. Markers of white
    space are left out."""
    texts = {text.strip() for part in parts for marker in markers_within(part) for text in marker.spellings}
    return texts.difference({""})


def call_markers(fmt: Format) -> tuple[str, ...]:
    """Return the markers that a Format writes in a call, sorted; none if prose holds them all."""
    found = {marker.text.strip() for marker in markers_within(fmt.tools[:1])}.difference({""})
    return tuple(sorted(found)) if any(map(MARKUP.match, found)) else ()


def marker_texts(fmt: Format) -> list[str]:
    """Return the markers of a Format that prose does not hold, the longest first."""
    return sorted(filter(MARKUP.match, texts_of(fmt)), key=len, reverse=True)


def every_marker(fmt: Format) -> re.Pattern[str]:
    """Return the pattern of these markers."""
    return re.compile("|".join(map(re.escape, marker_texts(fmt))) or "(?!)")
