"""Pieces of markers that are left in the text of a message: ``<tool_c`` before a call, or ``calls>`` after one.

A short piece is like other text. It is a piece of a marker only where a marker may be: at the edge of a text that
another part of the message touches, and if its sign opens or closes no other tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, final

from ...messages import Item

_SHORTEST: Final = 3
"""Fewest characters of a piece at the beginning of the output, or in the middle of reasoning."""
_SHORTEST_IN_WORD: Final = 5
"""The same before a letter: another tag may begin so."""
_LETTER: Final = re.compile("[a-zA-Z]")
_NEAR: Final = 64
"""Characters at the edge of a text that are looked at."""
_OPENS_TAG: Final = ("<", "[")
_ENDS_TAG: Final = (">", "]")
_END_OF_TAG: Final = re.compile(r"[<>\[\]\n]|\Z")
_BEGUN: Final = re.compile(r"[<\[][^<>\[\]\r\n]*+\Z")
"""Matches a tag that a text ends in, without its end."""
_ENDED: Final = re.compile(r"[^\s<>\[\]]*+(?:>>>|[>\]])")
"""Matches the end of a tag, without its beginning."""
_ENDED_LAST: Final = re.compile(r"(?<![<\[])(?:\A|(?<=[\s>\]]))[^\s<>\[\]]*+[>\]]\Z")
"""Matches the same at the end of a text."""
_WORD_OF_MARKUP: Final = re.compile(r"(?!`+\Z)(?=.*[<>\[\]|｜`])\S{2,64}")
"""Matches a word with a sign of markup. Backticks alone may end a fence around the call."""


@final
class Fragments:
    """Finds pieces of the markers of one format."""

    def __init__(
        self,
        markers: Iterable[str],
        opens_reasoning: Iterable[str],
        closes_reasoning: Iterable[str],
        opens_calls: frozenset[str],
        closes_calls: frozenset[str],
    ) -> None:
        """``markers``: all of them; the others are those of reasoning, and those that begin and end calls."""
        texts = list(markers)
        self._markers = tuple(texts)
        self._opens_calls = opens_calls
        self._closes_calls = closes_calls
        self._heads: frozenset[str] = frozenset(t[:i] for t in texts for i in range(1, len(t)) if t[0] in "<[`")
        self._tails: frozenset[str] = frozenset(t[i:] for t in texts for i in range(1, len(t)) if t[-1] in ">]`")
        self._opens_reasoning = [text for text in sorted(opens_reasoning) if text[:1] in _OPENS_TAG]
        self._closes_reasoning = [text for text in sorted(closes_reasoning) if text[:1] in _OPENS_TAG]

    def find(self, items: Sequence[Item], closed: bool) -> tuple[str, int, str] | None:
        """Return the first text of these parts of a message that has a piece of a marker, the place in it, and the
        piece. ``closed``: reasoning was closed."""
        last = len(items) - 1
        for place, item in enumerate(items):
            text = (item.text or "").strip()
            if not text:
                continue
            if item.type == "reasoning":
                found = self._in_reasoning(text, closed)
                if found:
                    return text, text.find(found), found
            elif place and items[place - 1].type == "tool_call" and self._is_markup(text, place == last):
                return text, 0, text
            found = self._at_end(text) if place < last else ""
            if found:
                return text, len(text) - len(found), found
            found = self._at_start(text[:_NEAR], place == last, place == 0)
            if found:
                return text, 0, found
        return None

    def _is_markup(self, text: str, cut: bool) -> bool:
        """True if a text after a call is one word with a sign of markup. ``cut``: the output may be cut after it."""
        return _WORD_OF_MARKUP.fullmatch(text) is not None and not (cut and text in self._heads)

    def _at_end(self, text: str) -> str:
        """Return the piece of a marker, or a whole one, that a text ends in. A whole call in reasoning is a draft."""
        if text.endswith(self._markers):
            whole = next(marker for marker in self._markers if text.endswith(marker))
            is_draft = whole in self._closes_calls and any(opener in text for opener in self._opens_calls)
            return "" if is_draft else whole
        text = text[-_NEAR:]
        begun = _BEGUN.search(text) if "<" in text or "[" in text else None
        if begun is not None:
            head = begun.group()
            return head if head in self._heads and (len(head) > 1 or head == text) else ""
        ended = _ENDED_LAST.search(text) if text.endswith(_ENDS_TAG) else None
        return "" if ended is None else self._tail_of(ended.group(), ended.group() == text)

    def _at_start(self, text: str, cut: bool, first: bool) -> str:
        """Return the piece of a marker that a text begins with. ``cut``: the output may be cut after it; ``first``: no
        other part comes before it."""
        ended = _ENDED.match(text) if ">" in text or "]" in text else None
        if ended is not None:
            tail = ended.group()
            is_piece = len(tail) >= _SHORTEST if first else len(tail) > 1 or tail == text
            return tail if tail in self._tails and is_piece else ""
        if first:
            return ""
        return text if text in self._tails or (text in self._heads and not cut) else ""

    def _tail_of(self, word: str, alone: bool) -> str:
        """Return the end of a marker that a word ends in: all of it, or what comes after a sign."""
        for start in range(len(word) - 1):
            if word[start:] in self._tails and (not start or not (word[start - 1].isalnum() or word[start - 1] == "_")):
                return word[start:]
        # A sign of a blockquote is no piece of a marker.
        return word if alone and word in self._tails and word != ">" else ""

    def _in_reasoning(self, text: str, closed: bool) -> str:
        """Return the whole marker or the beginning of an opener that reasoning begins with, or a piece of a close in
        reasoning that was not closed. A call in reasoning is a draft."""
        if text.startswith(self._markers):
            whole = next(marker for marker in self._markers if text.startswith(marker))
            return "" if whole in self._opens_calls else whole
        for marker in self._opens_reasoning:
            head = _begun_tag(text, 0, marker)
            if head:
                return head
        for marker in () if closed else self._closes_reasoning:
            piece = _begun_tag(text, text.rfind(marker[:_SHORTEST]), marker) or _ended_tag(text, marker)
            if piece:
                return piece
        return ""


def _ended_tag(text: str, marker: str) -> str:
    """Return the end of this marker where it is last in a text, if no tag or word is open before it."""
    start = text.rfind(marker[-_SHORTEST:])
    size = _SHORTEST
    while start > 0 and size < len(marker) and text[start - 1] == marker[-size - 1]:
        start -= 1
        size += 1
    before = text[max(start - 1, 0) : max(start, 0)]
    is_piece = start >= 0 and size < len(marker) and not before.isalnum() and before not in ("_", "<", "/")
    return marker[-size:] if is_piece else ""


def _begun_tag(text: str, place: int, marker: str) -> str:
    """Return the beginning of this marker at a place of a text, if the tag there has no end; empty without one."""
    if place < 0 or not text.startswith(marker[:_SHORTEST], place):
        return ""
    size = _SHORTEST
    while size < len(marker) and text[place + size : place + size + 1] == marker[size]:
        size += 1
    shortest = _SHORTEST_IN_WORD if _LETTER.match(text, place + size) else _SHORTEST
    if not shortest <= size < len(marker):
        return ""
    rest = text[place + size : place + size + _NEAR]
    end = _END_OF_TAG.search(rest)
    return "" if end is not None and end.group() in _ENDS_TAG else text[place : place + size]
