"""The markers by which a text can be recognised as the output of a format, or as a call that stayed content."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache, cached_property
from typing import Any, Final

from ..format import Format, Marker, NamedBody
from ..formats.registry import markers

__all__ = ["CallMarks", "foreign_marker", "markers_in", "markers_of", "markers_within", "prompt_markers"]


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


_MARKUP: Final = re.compile(r"(?=.*[<>\[\]|｜])(?=.*\w)(?!\w+\[\Z).{3,}", re.DOTALL)
"""Matches a marker that prose does not hold."""
_NAMED: Final = re.compile(
    r'[{,]\s{0,64}"(?:name|function|tool|tool_name|function_name)"\s{0,64}:\s{0,64}"([^"\\\n]{1,256})"'
)
_TAG: Final = re.compile(r"<[^<>\n]{1,64}>|\[/?[A-Z_]{2,64}\]")
_RUN: Final = re.compile("`+")
_MOST_QUOTED: Final = 64
"""Markers in inline code that are looked at. More of them are a text about markers."""


def prompt_markers(fmt: Format, added: Iterable[str] = ()) -> frozenset[str]:
    """Return the markers that no text in a prompt should hold: those of a Format, and the tokens that a tokenizer has
    ``added``, as far as they are markup that prose does not hold."""
    # The start of a turn has the spellings of all families, and holds the role of the assistant.
    start, rest = fmt.turn.start, replace(fmt, turn=replace(fmt.turn, start=None))
    own = [text.strip() for marker in markers_within(rest) for text in marker.spellings]
    own += [] if start is None else [start.text.strip()]
    tags = (tag for text in own for tag in _TAG.findall(text))
    found = filter(_MARKUP.match, (*own, *tags, *fmt.special_tokens, *added))
    return frozenset(text for text in found if "<" in text or _TAG.search(text))


class CallMarks:
    """Finds text in content that looks like a call of a format."""

    def __init__(self, fmt: Format) -> None:
        self._format = fmt

    def find(self, content: str, tools: Collection[str] | None) -> tuple[int, str] | None:
        """Return the place of the first text that looks like a call, and that text: a whole marker of calls or a JSON
        object with the name of an offered tool, outside inline code. ``tools``: the names of those that are offered;
        ``None`` if that is not known."""
        found = self._marker_in(content)
        if tools and '"' in content:
            for named in _NAMED.finditer(content, 0, len(content) if found is None else found[0]):
                if named.group(1) in tools and not _in_code(content, named.start()):
                    return named.start(), named.group()
        return found

    def _marker_in(self, content: str) -> tuple[int, str] | None:
        pattern = self._pattern
        if pattern is None:
            return None
        for number, found in enumerate(pattern.finditer(content)):
            if number >= _MOST_QUOTED:
                break
            if not _in_code(content, found.start()):
                return found.start(), found.group()
        return None

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        """The pattern of all markers of calls."""
        fmt = self._format
        ways: list[Any] = [*fmt.tools, fmt.channels]
        texts = {text.strip() for way in ways for marker in markers_within(way) for text in marker.spellings}
        if fmt.reasoning is not None:
            texts -= {text.strip() for marker in markers_within(fmt.reasoning) for text in marker.spellings}
        marks = sorted(filter(_MARKUP.match, texts), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, marks))) if marks else None


def _in_code(content: str, place: int) -> bool:
    """True if inline code is open before this place of its line."""
    size = 0
    for run in _RUN.finditer(content, content.rfind("\n", 0, place) + 1, place):
        length = len(run.group())
        size = length if not size else 0 if size == length else size
    return size > 0
