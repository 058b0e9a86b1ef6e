"""The words of literal arguments: numbers, True, null, expressions, and text without quotes.

* A word is converted when it ends. One that is too long for a number or a constant streams, as a string.
* A word that is not a literal is reported: text becomes a string. Between parentheses a name or an expression is passed
  on as written, unless the Format's quotes are optional.
"""

from __future__ import annotations

import re
from typing import Final, final

from ...jsontext.lexical import json_escape
from ..arguments.base import ArgumentWriter, CallHandler
from ..lexer import WS, Cursor
from ..signals import DONE, MORE, NO_MATCH
from .ends import ends_at
from .place import KEYED, LINE_END, LiteralPlace
from .strings import next_stop
from .words import cut_word, is_literal, word_json

_MAX_WORD: Final = 4096
"""Most characters of a word that are kept. No number or expression seen is longer; a longer word streams."""
_STOP: Final = re.compile(r"[,()\[\]{}\"']")


@final
class WordReader:
    """Reads one word of a call after another."""

    # Defaults in the class cost nothing per call.
    _size: int = 0
    """Characters of the word so far."""
    _streams: bool = False
    """True if the word is too long to be kept: its text is put as it comes."""
    _depth: int = 0
    """Number of brackets that are open in the word."""
    _quote: str = ""
    """The quote of a string that is open in its brackets."""
    valid: bool = True
    """False if a name or an expression was passed on as written: what was put is not valid JSON."""

    def __init__(self, place: LiteralPlace) -> None:
        self._place: LiteralPlace = place
        self._pieces: list[str] = []

    def open(self) -> None:
        """Begin a word."""
        self._depth = 0
        self._quote = ""

    def step(self, cur: Cursor, out: CallHandler) -> int:
        """Read up to the next separator. Return DONE after the word, NO_MATCH in front of a literal that ends the call,
        or MORE."""
        text = cur.text
        while True:
            end = self._next_sign(cur)
            stop = next_stop(self._place, cur, len(text) if end < 0 else end, out)
            if stop >= 0:
                self._take(cur, stop, out)
                self._end(cur, out)
                return NO_MATCH
            if end < 0:
                self._take(cur, len(text) if cur.final else self._place.stops.undecided_from(text, cur.pos), out)
                return MORE
            may_end = self._separates(cur, end) if text[end] in ",\n" else DONE
            if may_end == MORE:
                self._take(cur, end, out)
                return MORE
            if may_end == DONE and not self._is_inside(text[end]):
                self._take(cur, end, out)
                self._end(cur, out)
                return DONE
            self._take(cur, end + 1, out)

    def put_cut(self, out: ArgumentWriter) -> None:
        """Put the beginning of a word in which the output was cut."""
        word = "".join(self._pieces).strip(WS)
        if word and not self._streams:
            self._place.begin_value(out)
            out.put(cut_word(word, self._place.wants_string()))

    def _next_sign(self, cur: Cursor) -> int:
        """Return where the next sign is that may end the word; -1 without one."""
        if self._quote:
            return cur.text.find(self._quote, cur.pos)
        stop = LINE_END if self._place.on_line() else _STOP
        found = stop.search(cur.text, cur.pos)
        return -1 if found is None else found.start()

    def _separates(self, cur: Cursor, end: int) -> int:
        """Return DONE if the comma or new line at ``end`` may end the word (brackets are looked at afterwards),
        NO_MATCH if it is part of a value without quotes (``{place:Paris, France,n:1}``), or MORE."""
        place = self._place
        if place.style != KEYED or len(place.closers) > 1 or self._depth or self._quote:
            return DONE
        if not self._streams:
            word = ("".join(self._pieces) + cur.text[cur.pos : end]).strip(WS)
            if is_literal(word, place.wants_string()):
                return DONE
        return ends_at(place, cur, end)

    def _is_inside(self, c: str) -> bool:
        """Follow the quotes and brackets of a word. False if ``c`` ends it."""
        if self._quote:
            self._quote = ""
        elif c in "\"'":
            if self._depth:
                self._quote = c
        elif c in "([{":
            self._depth += 1
        elif not self._depth:
            return False
        elif c in ")]}":
            self._depth -= 1
        return True

    def _take(self, cur: Cursor, end: int, out: ArgumentWriter) -> None:
        """Add the text up to ``end`` to the word."""
        self._add(cur.text[cur.pos : end], out)
        cur.pos = end

    def _add(self, piece: str, out: ArgumentWriter) -> None:
        self._size += len(piece)
        if self._streams:
            kept = piece.rstrip(WS)
            if kept:
                # All that came before has been put, except white space.
                out.put(json_escape("".join(self._pieces) + kept))
                self._pieces = []
            if len(kept) < len(piece):
                self._pieces.append(piece[len(kept) :])
            return
        self._pieces.append(piece)
        if self._size > _MAX_WORD:
            text = "".join(self._pieces).lstrip(WS)
            self._pieces = []
            self._streams = True
            self._place.begin_value(out)
            out.put('"')
            self._size -= len(text)
            self._add(text, out)

    def _end(self, cur: Cursor, out: CallHandler) -> None:
        """Put a word that ends at the cursor."""
        text = "".join(self._pieces)
        word = text.strip(WS)
        start = cur.pos - self._size
        end = cur.pos - len(text) + len(text.rstrip(WS))
        self._pieces = []
        self._size = 0
        value, literal = '"', False
        if self._streams:
            self._streams = False
        else:
            place = self._place
            optional = place.syntax.quoted == "optional"
            place.begin_value(out)
            value, literal = word_json(word, place.wants_string(), place.style != KEYED and not optional)
            literal = literal or (optional and value[0] == '"')
        out.put(value)
        if not literal:
            self.valid = self.valid and value != word
            out.report("unquoted_value", start, end)
