"""Damaged markers: those that are whole but for a character, for their letters or for their end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, final

from ..machine.lexer import WS, shared_start
from .code_spans import in_code
from .recognition import MARKUP

__all__ = ["LONGEST", "MOST_LOOKED_AT", "SHORTEST", "DamagedMarkers", "is_line"]

MOST_LOOKED_AT: Final = 64
"""Places of one marker, or of names of tools, that are looked at. More of them are a text about markers."""
_SHORTEST_LINE: Final = 16
"""Fewest characters of a marker of words, which is a line of its own."""


def is_line(text: str) -> bool:
    """True if a marker without signs of markup is a line that introduces something."""
    return len(text) >= _SHORTEST_LINE and text.endswith(":")


SHORTEST: Final = 6
"""Fewest characters of a marker that is recognised although it is damaged. A shorter one is too like other text."""
LONGEST: Final = 128
"""Characters around a place in which a marker is looked for. No marker is longer."""


@final
class DamagedMarkers:
    """Markers in other letters (``<TOOL>``), with one character lost, added or replaced, with two neighbours in the
    wrong order, or without their end. One half of such a marker is whole, and is searched, or the damage is known.
    ``whole``: a pattern of all markers that are not damaged; what is a part of one does not count."""

    def __init__(self, texts: Iterable[str], whole: re.Pattern[str]) -> None:
        self._whole = whole
        found = sorted(texts, key=lambda text: (-len(text), text))
        marks = [text for text in found if len(text) >= SHORTEST and (MARKUP.match(text) or is_line(text))]
        self._halves = [(text[: len(text) // 2], text[len(text) // 2 :]) for text in marks]
        self._marks = marks
        self._is_lower = all(text == text.lower() for text in marks)
        self._known: tuple[re.Pattern[str], re.Pattern[str]] | None = None

    def find(self, text: str) -> tuple[int, str] | None:
        """Return the place of the first such marker outside inline code, and the marker; ``None`` without one."""
        best: tuple[int, str] | None = None
        for places in (self._as_a_whole(text), *(_with_half(text, first, last) for first, last in self._halves)):
            for start, end in places:
                if (best is None or start < best[0]) and not self._is_whole(text, start, end):
                    best = start, text[start:end]
        return best

    def _as_a_whole(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where markers begin and end in which neighbours from both halves are in the wrong order, or whose
        letters are others."""
        if not self._marks:
            return
        if self._known is None:
            swapped = (a[:-1] + b[:1] + a[-1:] + b[1:] for a, b in self._halves)
            self._known = (
                re.compile("|".join(map(re.escape, swapped))),
                re.compile("|".join(re.escape(mark.lower()) for mark in self._marks)),
            )
        for found in islice(self._known[0].finditer(text), MOST_LOOKED_AT):
            yield found.span()
        lower = text.lower()
        if len(lower) != len(text) or (lower == text and self._is_lower):
            return
        for found in islice(self._known[1].finditer(lower), MOST_LOOKED_AT):
            if text[found.start() : found.end()] not in self._marks:
                yield found.span()

    def _is_whole(self, text: str, start: int, end: int) -> bool:
        """True if what is there is a part of a marker that is not damaged, or in inline code."""
        near = self._whole.finditer(text, max(start - LONGEST, 0), end + LONGEST)
        return any(m.start() < end and start < m.end() for m in near) or in_code(text, start)


def _with_first_half(text: str, first: str, last: str) -> Iterator[tuple[int, int]]:
    """Yield where a marker begins and ends whose first half is whole, and whose last half is damaged."""
    for place in _places(text, first):
        start = place + len(first)
        size = _damaged_size(text[start : start + len(last) + 1], last)
        if size < 0:
            size = _cut_size(text, start, last)
            size = size if _JOINT.search(text, place + 1, start + size) is not None else -1
        if size >= 0:
            yield place, start + size


def _with_last_half(text: str, first: str, last: str) -> Iterator[tuple[int, int]]:
    """The same where the first half is damaged."""
    for place in _places(text, last):
        before = text[max(place - len(first) - 1, 0) : place][::-1]
        size = _damaged_size(before, first[::-1])
        if size < 0 and last.endswith(_BARS) and _TAG_BEGUN.search(text, max(place - LONGEST, 0), place) is None:
            size = shared_start(before, first[::-1])
        if size >= 0:
            yield place - size, place + len(last)


def _with_half(text: str, first: str, last: str) -> Iterator[tuple[int, int]]:
    """Yield where a marker begins and ends one half of which is whole."""
    yield from _with_first_half(text, first, last)
    yield from _with_last_half(text, first, last)


def _places(text: str, half: str) -> Iterator[int]:
    """Yield the first places of half a marker in the text."""
    place = text.find(half)
    for _ in range(MOST_LOOKED_AT):
        if place < 0:
            return
        yield place
        place = text.find(half, place + 1)


_BARS: Final = ("|>", "｜>")
"""Ends of markers that no other language has."""
_REST_OF_TAG: Final = re.compile(r"[^<>\s]*+>")
_ENDS_WORD: Final = frozenset(("", *WS))
_ENDS_TAG: Final = _ENDS_WORD | {"<"}


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


_TAG_BEGUN: Final = re.compile(r"<[^<>\s]*+\Z")
"""Matches a tag that has no end. A pattern is only searched up to a place, so this is the end of the text."""
_JOINT: Final = re.compile("[_|｜:▁]")
"""Matches what a marker has, and the words of prose and the tags of HTML have not."""


def _cut_size(text: str, start: int, half: str) -> int:
    """Return how much of the text at ``start`` is this half of a marker without its end; -1 if another tag or,
    after a marker without bars, a longer word is there."""
    size = shared_start(text[start : start + len(half)], half)
    if size == len(half):
        return -1
    rest = text[start + size : start + size + LONGEST]
    if rest[:1] in _ENDS_TAG:
        return size
    return size if half.endswith(_BARS) and _REST_OF_TAG.match(rest) is None else -1


def _is_alone(text: str, place: int) -> bool:
    """True if the character at this place is the last one of a tag: white space follows, or nothing."""
    return text[place + 1 : place + 2] in _ENDS_WORD


def _damaged_size(text: str, half: str) -> int:
    """Return how much of the text is this half of a marker with one character lost, added or replaced, or with two
    neighbours in the wrong order.

    -1 if it does not begin with that, if it begins with the half as it is, or if a letter follows where the marker
    should end.
    """
    same = shared_start(text, half)
    rest = half[same + 1 :]
    if same == len(half):
        return -1
    if text[same + 1 :].startswith(half[same:]):
        return len(half) + 1
    if not rest and _is_word(half[-2:-1]) and _is_word(text[same : same + 1]) and not _is_alone(text, same):
        return -1
    if half[same : same + 2][::-1] + half[same + 2 :] == text[same : len(half)]:
        return len(half)
    if text.startswith(rest, same):
        return len(half) - 1
    return len(half) if text[same + 1 :].startswith(rest) else -1
