"""Comparing renderings: tokens, common prefixes and suffixes, where sentinels stand.

Rules of this module:

* Renderings are compared by lexical tokens, not by characters: ``</tool_call>`` and ``</tools>`` share nothing. A tag
  is one token up to where a sentinel cuts it (``<function=``), a bracketed word is one, and so is a run of one kind of
  white space. Nothing here knows what any tag means.
* What two sides could both claim is white space or an ambiguity: white space goes to the left, of an ambiguity every
  reading is handed on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

__all__ = [
    "Found",
    "JsonSpan",
    "closed_tags",
    "common_prefix",
    "common_suffix",
    "is_tag",
    "json_around",
    "json_at",
    "lead",
    "locate",
    "split_tags",
    "strip_front",
    "tokens",
    "trail",
]

# Brackets by their shape: what texts rarely have.
_OPENING: Final = "<«‹⟨⟪〈《「『【〔〖⟦❮◁"
_CLOSING: Final = ">»›⟩⟫〉》」』】〕〗⟧❯▷"
_INSIDE: Final = f"[^{_OPENING}{_CLOSING}\n]"
_BRACKETED: Final = rf"[{_OPENING}]{_INSIDE}{{0,80}}[{_CLOSING}]"
_CUT: Final = rf"[{_OPENING}]{_INSIDE}{{0,80}}\Z"
"""A tag that a sentinel cuts."""
_WORDS_IN_BRACKETS: Final = r"\[/?[^\W\d][\w /:-]{1,60}\]"
_TOKEN: Final = re.compile(rf"{_BRACKETED}|{_CUT}|{_WORDS_IN_BRACKETS}|\w+|[ \t]+|\n|.", re.DOTALL)
_TAG: Final = re.compile(rf"{_BRACKETED}|{_CUT}|{_WORDS_IN_BRACKETS}")


@lru_cache(maxsize=4096)
def tokens(text: str) -> tuple[str, ...]:
    """``text`` cut into lexical tokens; joined they are the text again."""
    return tuple(_TOKEN.findall(text))


def is_tag(token: str) -> bool:
    """Whether a token is a bracketed marker, by its shape alone."""
    return _TAG.fullmatch(token) is not None


def common_prefix(texts: Sequence[str]) -> str:
    """The longest run of tokens that all texts begin with."""
    return "".join(_shared([tokens(t) for t in texts]))


def common_suffix(texts: Sequence[str]) -> str:
    """The longest run of tokens that all texts end with."""
    return "".join(reversed(_shared([tokens(t)[::-1] for t in texts])))


def _shared(rows: Sequence[Sequence[str]]) -> list[str]:
    shared = []
    for column in zip(*rows, strict=False):
        if any(token != column[0] for token in column):
            break
        shared.append(column[0])
    return shared


def strip_front(text: str, pieces: Iterable[str | None]) -> str:
    """``text`` without the markers that it begins with, each at most once and in any order. White space around them
    does not matter; what a marker itself ends with goes with it."""
    left = [p for p in pieces if p and p.strip()]
    changed = True
    while changed:
        changed = False
        bare = text.lstrip()
        for piece in left:
            if bare.startswith(piece.strip()):
                text = bare[len(piece.strip()) :]
                text = text[len(trail(piece)) :] if text.startswith(trail(piece)) else text
                left.remove(piece)
                changed = True
                break
    return text


def lead(text: str) -> str:
    """The white space that ``text`` begins with."""
    return text[: len(text) - len(text.lstrip())]


def trail(text: str) -> str:
    """The white space that ``text`` ends with."""
    return text[len(text.rstrip()) :]


def split_tags(text: str) -> list[str]:
    """``text`` in pieces that each hold one tag and what belongs to it: words that touch the tag, and the white space
    behind. ``<a>\\n<b=`` → ``<a>\\n``, ``<b=``; ``<|open|>call tool="`` and ``<x>word<sep>`` stay whole."""
    pieces: list[str] = []
    current = ""
    previous = ""
    for token in tokens(text):
        begins = is_tag(token) and current.strip() and (previous.isspace() or is_tag(previous))
        if begins and not _glued(current):
            pieces.append(current)
            current = ""
        current += token
        previous = token
    if current:
        pieces.append(current)
    return pieces


def _glued(piece: str) -> bool:
    """Whether a piece ends in the middle of something: a word right behind a tag, with nothing to end it."""
    found = tokens(piece.rstrip())
    return len(found) > 1 and not is_tag(found[-1]) and is_tag(found[-2]) and piece == piece.rstrip()


def closed_tags(text: str) -> list[str]:
    """The whole tags in ``text`` that hold no blank: what may be a single token of a vocabulary."""
    return [t for t in tokens(text) if is_tag(t) and t[-1] in _CLOSING + "]" and " " not in t]


# -- Sentinels ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """Where sentinels stand in a text, in order, and what stands between them."""

    names: tuple[str, ...]
    gaps: tuple[str, ...]
    """One more than names: before the first, between each two, behind the last."""

    def between(self, first: str, second: str) -> str | None:
        """What stands between two neighbouring sentinels."""
        for i, name in enumerate(self.names[:-1]):
            if name == first and self.names[i + 1] == second:
                return self.gaps[i + 1]
        return None

    def before(self, name: str) -> str | None:
        return self.gaps[self.names.index(name)] if name in self.names else None

    def after(self, name: str) -> str | None:
        return self.gaps[self.names.index(name) + 1] if name in self.names else None


def locate(text: str, sentinels: Iterable[str]) -> Found:
    """The first place of each sentinel in ``text``."""
    places = sorted((text.find(s), s) for s in sentinels if s in text)
    gaps, names, end = [], [], 0
    for at, name in places:
        gaps.append(text[end:at])
        names.append(name)
        end = at + len(name)
    return Found(tuple(names), (*gaps, text[end:]))


# -- JSON: the only structure that is known beforehand ------------------------------------------------------------

_DECODER: Final = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class JsonSpan:
    """A JSON value in a text."""

    value: Any
    start: int
    end: int


def json_at(text: str, start: int) -> JsonSpan | None:
    """The JSON value that begins at ``start``."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return JsonSpan(value, start, end)


def json_around(text: str, place: int, limit: int = 12) -> JsonSpan | None:
    """The outermost JSON object around ``place`` that has it in no list of its own."""
    best = None
    for start in _braces(text, place, limit):
        span = json_at(text, start)
        if span is None or span.end <= place:
            continue
        if best is not None and not _encloses(span.value, best.value):
            break
        best = span
    return best


def _braces(text: str, place: int, limit: int) -> Iterator[int]:
    for _ in range(limit):
        place = text.rfind("{", 0, place)
        if place < 0:
            return
        yield place


def _encloses(outer: Any, inner: Any) -> bool:
    return isinstance(outer, dict) and any(v == inner or _encloses(v, inner) for v in outer.values())
