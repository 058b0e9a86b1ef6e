"""Compare renderings: tokens, common prefixes and suffixes, places of probe words.

* Renderings are compared by lexical tokens, not by characters: ``</tool_call>`` and ``</tools>`` have nothing in
  common. A tag is one token, up to where a probe word cuts it (``<function=``); so is a bracketed word, and a run of
  one kind of white space. Nothing here knows what a tag means.
* Text that two sides could claim is white space or ambiguous. White space belongs to the left side; of an ambiguity,
  every reading is returned.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

# Brackets by their shape, which prose rarely has.
_OPENING: Final = "<«‹⟨⟪〈《「『【〔〖⟦❮◁"
_CLOSING: Final = ">»›⟩⟫〉》」』】〕〗⟧❯▷"
_INSIDE: Final = f"[^{_OPENING}{_CLOSING}\n]"
_MANY_OPENING: Final = "|".join(f"{c}{{1,3}}" for c in _OPENING)
_BRACKETED: Final = "|".join(
    f"(?:{'|'.join(c * size for c in _OPENING)}){_INSIDE}{{0,80}}(?:{'|'.join(c * size for c in _CLOSING)})"
    for size in (3, 2, 1)
)
"""A tag. Doubled brackets belong to it, as many of them as close it again: ``<<think>>``."""
_CUT: Final = rf"(?:{_MANY_OPENING}){_INSIDE}{{0,80}}\Z"
"""A tag that a probe word cuts."""
_WORDS_IN_BRACKETS: Final = "|".join(rf"\[{{{size}}}/?[^\W\d][\w /:-]{{1,60}}\]{{{size}}}" for size in (3, 2, 1))
_TOKEN: Final = re.compile(rf"{_BRACKETED}|{_CUT}|{_WORDS_IN_BRACKETS}|\w+|[ \t]+|\n|.", re.DOTALL)
_TAG: Final = re.compile(rf"{_BRACKETED}|{_CUT}|{_WORDS_IN_BRACKETS}")


@lru_cache(maxsize=4096)
def tokens(text: str) -> tuple[str, ...]:
    """Split ``text`` into lexical tokens; joined they are the text again."""
    return tuple(_TOKEN.findall(text))


def is_tag(token: str) -> bool:
    """True if a token is a bracketed marker, by its shape alone."""
    return _TAG.fullmatch(token) is not None


def common_prefix(texts: Sequence[str]) -> str:
    """Return the longest run of tokens that all texts begin with."""
    return "".join(_shared([tokens(t) for t in texts]))


def common_suffix(texts: Sequence[str]) -> str:
    """Return the longest run of tokens that all texts end with."""
    return "".join(reversed(_shared([tokens(t)[::-1] for t in texts])))


def _shared(rows: Sequence[Sequence[str]]) -> list[str]:
    shared = []
    for column in zip(*rows, strict=False):
        if any(token != column[0] for token in column):
            break
        shared.append(column[0])
    return shared


def loose_prefix(text: str, other: str) -> str:
    """Return the tokens that ``text`` and ``other`` begin with, white space aside; as ``text`` writes them."""
    mine, theirs = tokens(text), tokens(other)
    i = j = end = 0
    while i < len(mine) and j < len(theirs):
        if mine[i] == theirs[j]:
            i, j = i + 1, j + 1
            end = i
        elif mine[i].isspace():
            i += 1
        elif theirs[j].isspace():
            j += 1
        else:
            break
    return "".join(mine[:end])


def find_loosely(text: str, literal: str, start: int) -> int:
    """Return where ``literal`` ends in ``text``, white space aside; -1 if it is not there."""
    words = [re.escape(t) for t in tokens(literal) if not t.isspace()]
    found = re.compile(r"\s*".join(words)).search(text, start) if words else None
    return -1 if found is None else found.end() + len(lead(text[found.end() :]))


def same_start(a: str, b: str) -> str:
    """Return the characters that both texts begin with."""
    size = 0
    while size < min(len(a), len(b)) and a[size] == b[size]:
        size += 1
    return a[:size]


def same_end(a: str, b: str) -> str:
    """Return the characters that both texts end with."""
    return same_start(a[::-1], b[::-1])[::-1]


def strip_front(text: str, pieces: Iterable[str | None]) -> str:
    """Remove the markers that ``text`` begins with, each at most once and in any order.

    White space around them is ignored; white space that ends a marker is removed with it.
    """
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
    """Return the white space that ``text`` begins with."""
    return text[: len(text) - len(text.lstrip())]


def trail(text: str) -> str:
    """Return the white space that ``text`` ends with."""
    return text[len(text.rstrip()) :]


def split_tags(text: str) -> list[str]:
    """Split ``text`` into pieces of one tag each, with the words that touch the tag and the white space after it.

    ``<a>\\n<b=`` becomes ``<a>\\n``, ``<b=``; ``<|open|>call tool="`` and ``<x>word<sep>`` stay whole.
    """
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
    """True if a piece ends with a word directly after a tag, and nothing ends the word."""
    found = tokens(piece.rstrip())
    return len(found) > 1 and not is_tag(found[-1]) and is_tag(found[-2]) and piece == piece.rstrip()


def closed_tags(text: str) -> list[str]:
    """Return the whole tags in ``text`` without blanks: they may be single tokens of a vocabulary."""
    return [t for t in tokens(text) if is_tag(t) and t[-1] in _CLOSING + "]" and " " not in t]


# -- Probe words --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """Probe words found in a text, in order, and the text between them."""

    names: tuple[str, ...]
    gaps: tuple[str, ...]
    """One more than names: before the first, between each two, after the last."""

    def between(self, first: str, second: str) -> str | None:
        """Return the text between two neighbouring probe words."""
        for i, name in enumerate(self.names[:-1]):
            if name == first and self.names[i + 1] == second:
                return self.gaps[i + 1]
        return None

    def before(self, name: str) -> str | None:
        return self.gaps[self.names.index(name)] if name in self.names else None

    def after(self, name: str) -> str | None:
        return self.gaps[self.names.index(name) + 1] if name in self.names else None


def locate(text: str, words: Iterable[str]) -> Found:
    """Find the first place of each probe word in ``text``."""
    places = sorted((text.find(s), s) for s in words if s in text)
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
    """Return the JSON value that begins at ``start``."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return JsonSpan(value, start, end)


def json_around(text: str, place: int, limit: int = 12) -> JsonSpan | None:
    """Return the outermost JSON object around ``place``, unless a list of its own encloses ``place``."""
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
