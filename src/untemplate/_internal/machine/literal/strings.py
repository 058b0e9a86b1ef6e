"""The strings of literal arguments: in quotes, or between markers (``<|"|>``).

* Text that can only become a string streams. Where all values are quoted, it is converted by the schema, as in tags
  (``value_text``).
* A string in quotes of one character has backslash escapes, unless its first text is a path of Windows. After a line
  break, which no such string of Python has, only quotes and backslashes are escaped. Its quote closes it only if what
  follows may follow a value (``ends``).
* A string between markers ends at the same marker, which may be missing.
"""

from __future__ import annotations

import re
from typing import Final, final

from ...jsontext.lexical import json_escape
from ..arguments.base import CallHandler
from ..arguments.value_text import STREAM, ValueText
from ..lexer import NO_LITERALS, Cursor, Literals, literal_set
from ..signals import AGAIN, DONE, MORE, NO_MATCH
from .ends import follows_string, missing_close, next_key, tail_from
from .place import BY_PLACE, LiteralPlace
from .program import LiteralSyntax
from .words import PATH, PATH_BEGUN, escape_end, has_meaning, is_text, unescape

# What a backslash is.
_TEXT: Final = 0
_ESCAPE: Final = 1
_UNKNOWN: Final = 2
"""The first text of the string decides."""
_BEFORE_SIGNS: Final = 3
"""An escape before a quote or another backslash, and text before a letter: the string holds a line break, so it is not
one of Python's, and the letters are those of the text (``print('a\\n')``)."""


def next_stop(place: LiteralPlace, cur: Cursor, end: int, out: CallHandler) -> int:
    """Return where a literal that ends the call begins between the cursor and ``end``; -1 without one."""
    found = place.stops.near(cur.text, cur.pos, end)
    while found is not None and not out.may_be_marker(found.start(), found.end()):
        found = place.stops.near(cur.text, found.start() + 1, end)
    return -1 if found is None or found.start() >= end else found.start()


@final
class StringReader:
    """Reads one string of a call after another, from the text after its opening quote to the end of its closing
    one."""

    # Defaults in the class cost nothing per call.
    _quote: Literals = NO_LITERALS
    _watched: re.Pattern[str] | None = None
    """In a string between markers: the first character of whatever may end it."""
    _backslash: int = _TEXT
    _doubtful: bool = False
    """True after a quote that did not close the string: now a literal that ends the call also closes it."""
    _value: ValueText | None = None
    """Converts the string by its schema; None if it is a string as it is."""

    def __init__(self, place: LiteralPlace) -> None:
        self._place: LiteralPlace = place
        self._syntax: LiteralSyntax = place.syntax

    def open(self, quote: str, out: CallHandler) -> None:
        """Begin a string after this quote."""
        syntax = self._syntax
        self._quote = literal_set(quote)
        self._backslash = _UNKNOWN if quote[0] in syntax.escaping else _TEXT
        self._watched = None if quote[0] in "'\"" else syntax.watched[self._place.closers[-1]][True]
        self._doubtful = False
        self._value = self._conversion() if syntax.quoted == "all" and len(self._place.closers) == 1 else None
        if self._value is None:
            out.put('"')

    def _conversion(self) -> ValueText | None:
        """Return what converts the string that begins; None if it can only become a string."""
        value = ValueText("none", self._place.max_held)
        value.begin(self._place.param(), "", "")
        return None if value.handling == STREAM else value

    def step(self, cur: Cursor, out: CallHandler) -> int:
        """Read as far as the text decides. Return DONE after the string, or MORE."""
        if self._backslash == _UNKNOWN:
            if not cur.final and PATH_BEGUN.match(cur.text, cur.pos) is not None:
                return MORE
            self._backslash = _ESCAPE
            if PATH.match(cur.text, cur.pos) is not None:
                self._backslash = _TEXT
                out.report("unescaped_backslash", cur.pos, cur.pos)
        if self._watched is not None:
            return self._read_marked(self._watched, cur, out)
        answer = AGAIN
        while answer == AGAIN:
            answer = self._read_quoted(cur, out)
        return answer

    def passed(self, text: str) -> str | None:
        """Return the JSON of text in the middle of a string; None if it may end, and nothing has happened."""
        if self._watched is not None:
            if self._watched.search(text) is not None:
                return None
        elif self._quote.first_characters in text or (self._backslash and ("\\" in text or "\n" in text)):
            return None
        return json_escape(text)

    def open_path(self, cur: Cursor) -> None:
        """Let the next text take the short path."""
        if not (self._doubtful or self._value is not None or self._backslash == _UNKNOWN):
            cur.passed = self.passed
            cur.stops = NO_LITERALS

    def put_cut(self, out: CallHandler) -> None:
        """Put what has been kept of a string in which the output was cut."""
        if self._value is not None:
            self._value.put_cut("", out)

    def _put(self, piece: str, out: CallHandler) -> None:
        if self._value is not None:
            self._value.add(piece, out)
        else:
            out.put(json_escape(piece))

    def _close(self, cur: Cursor, out: CallHandler) -> int:
        if self._value is not None:
            self._value.close(out, cur.pos)
        else:
            out.put('"')
        return DONE

    # -- in quotes ------------------------------------------------------------------------------------------------

    def _read_quoted(self, cur: Cursor, out: CallHandler) -> int:
        """Read up to the next quote or escape. Return AGAIN after one that is a part of the string, DONE or MORE."""
        text = cur.text
        found = self._quote.pattern.search(text, cur.pos)
        end = self._end_of_text(cur) if found is None else found.start()
        stop = next_stop(self._place, cur, end, out) if self._doubtful else -1
        if stop >= 0:
            end = stop
        slash = text.find("\\", cur.pos, end) if self._backslash else -1
        if slash >= 0:
            return self._read_escape(cur, slash, out)
        self._put_text(cur, end, out)
        if stop >= 0:
            return self._close(cur, out)
        return MORE if found is None else self._read_quote(cur, found, out)

    def _put_text(self, cur: Cursor, end: int, out: CallHandler) -> None:
        """Put the text up to ``end``, which has no escape."""
        piece = cur.text[cur.pos : end]
        if piece:
            self._put(piece, out)
            cur.pos = end
        if self._backslash == _ESCAPE and "\n" in piece and self._quote.longest == 1:
            self._backslash = _BEFORE_SIGNS

    def _read_escape(self, cur: Cursor, slash: int, out: CallHandler) -> int:
        """Read up to an escape, and the escape if all of it has come."""
        text = cur.text
        self._put_text(cur, slash, out)
        if self._backslash == _BEFORE_SIGNS and is_text(text, slash):
            if has_meaning(text[slash + 1]):
                out.report("unescaped_backslash", slash, slash + 1)
            self._put_text(cur, slash + 1, out)
            return AGAIN
        after = escape_end(text, slash)
        if after > len(text) and not cur.final:
            return MORE
        escaped = unescape(text[slash:after])
        if escaped:
            self._put(escaped, out)
        cur.pos = min(after, len(text))
        return AGAIN

    def _read_quote(self, cur: Cursor, found: re.Match[str], out: CallHandler) -> int:
        """Read the quote at the cursor, which may be a part of the string."""
        start, end = found.span()
        takes_values = self._place.style == BY_PLACE
        follows = DONE if end - start > 1 else follows_string(self._place, cur, end, takes_values, out)
        if follows == MORE:
            return MORE
        cur.pos = end
        if follows == DONE:
            return self._close(cur, out)
        self._doubtful = True
        out.report("unescaped_quote", start, end)
        self._put(found.group(), out)
        return AGAIN

    def _end_of_text(self, cur: Cursor) -> int:
        """Return where the text ends that is part of the string for sure, unless a literal in it ends the call."""
        if cur.final:
            return len(cur.text)
        end = self._quote.undecided_from(cur.text, cur.pos)
        return min(end, self._place.stops.undecided_from(cur.text, cur.pos)) if self._doubtful else end

    # -- between markers ------------------------------------------------------------------------------------------

    def _read_marked(self, watched: re.Pattern[str], cur: Cursor, out: CallHandler) -> int:
        """Read a string between markers, or a part of it."""
        text = cur.text
        quote = self._quote.pattern.search(text, cur.pos)
        limit = len(text) if quote is None else quote.start()
        if watched.search(text, cur.pos, limit) is None:
            # No close can be missing before this.
            end, follows = limit, MORE if quote is None else DONE
        else:
            end, follows = missing_close(self._place, cur, limit, out)
        if follows == NO_MATCH:
            end, follows = self._undecided_end(cur) if quote is None else self._end_at_quote(cur, quote, out)
        if end > cur.pos:
            self._put(text[cur.pos : end], out)
            cur.pos = end
        if follows == MORE:
            return MORE
        if quote is not None and end == limit:
            cur.pos = quote.end()
        else:
            out.report("missing_close", end, end)
        return self._close(cur, out)

    def _undecided_end(self, cur: Cursor) -> tuple[int, int]:
        """Return where the text ends that is part of the string for sure, and MORE: the text does not end it."""
        self._watched = self._syntax.watched[self._place.closers[-1]][self._place.awaits_key()]
        text = cur.text
        if cur.final:
            return len(text), MORE
        end = min(self._quote.undecided_from(text, cur.pos), self._place.stops.undecided_from(text, cur.pos))
        return tail_from(self._place, text, cur.pos, end), MORE

    def _end_at_quote(self, cur: Cursor, quote: re.Match[str], out: CallHandler) -> tuple[int, int]:
        """Return where the string ends at this marker, or before a key in front of it, and DONE or MORE."""
        key = next_key(self._place, cur.text, cur.pos, quote.start())
        if key < 0:
            return quote.start(), DONE
        # A string may end in what looks like a key: then what follows its closing marker may follow a value.
        closes = follows_string(self._place, cur, quote.end(), False, out)
        return (quote.start() if closes == DONE else key), (MORE if closes == MORE else DONE)
