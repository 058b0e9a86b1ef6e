"""Where a quoted string of Python-style arguments ends: models write quotes inside strings without escaping them.

* A quote closes its string only if what follows may follow a value: a comma and another item, the close of what is
  open, a literal that ends the call, or the end of the output.
* Only the text after a quote is looked at, and not far.
"""

from __future__ import annotations

import re
from typing import Final, final

from ..lexer import SPACES, Cursor, Literals
from ..signals import DONE, MORE, NO_MATCH
from .base import CallHandler

_MAX_LOOKAHEAD: Final = 2048
# Possessive, so that a long run of spaces is not tried from each of its characters.
_WORD: Final = r"[ \t\r\n]*+(?:[^ \t\r\n=:,()\[\]{}\"'<\d][^\t\r\n=:,()\[\]{}\"'<]{0,1023}+[ \t\r\n]*+"
_UNDECIDED: Final = re.compile(rf"{_WORD}=?)?\Z")
"""Text after a comma that is too short to decide."""
_QUOTED: Final = r"""[ \t\r\n]*(?:["'<)\]}]|\Z)"""
_KEY: Final = re.compile(rf"{_QUOTED}|{_WORD}(?:=(?:[^=]|\Z)|:))")
_ITEM: Final = re.compile(rf"{_QUOTED}|[ \t\r\n]*(?:[\[({{\d+\-.]|(?:[Tt]rue|[Ff]alse|None|null)\b)")
_GOES_ON: Final = re.compile(r"""[\w"')\]}.,]""")
"""Characters that do not directly follow whole calls."""


@final
class StringEnds:
    """Decides where the strings of one call end. It shares the lists of open brackets with the call's reader."""

    def __init__(self, closers: list[str], json: list[str], outer: str, stops: Literals) -> None:
        """Args:
        closers: closing characters of what is open, outermost first, without the list around the call.
        json: the JSON closer of each: ``}`` if its items have keys.
        outer: the closing character of the list around the call; empty if there is none.
        stops: literals that end the call.
        """
        self._closers: list[str] = closers
        self._json: list[str] = json
        self._outer: str = outer
        self._stops: Literals = stops

    def follows(self, cur: Cursor, pos: int, takes_values: bool, call: CallHandler) -> int:
        """Return DONE if the text at ``pos`` may follow a string that ends there, NO_MATCH or MORE. ``takes_values``:
        arguments without a key may follow."""
        text = cur.text
        depth = len(self._closers)
        in_order = True
        while True:
            start = pos
            spaces = SPACES.match(text, pos)
            pos = pos if spaces is None else spaces.end()
            if pos >= len(text):
                return DONE if cur.final or pos - cur.pos > _MAX_LOOKAHEAD else MORE
            stop = self._stops.at(text, pos, cur.final)
            if stop == MORE or (stop >= 0 and call.may_be_marker(pos, stop)):
                return MORE if stop == MORE else DONE
            c = text[pos]
            if depth < 0 or (depth == 0 and not self._outer):
                # The calls are closed.
                return DONE if pos > start or _GOES_ON.match(c) is None else NO_MATCH
            if c == ",":
                return self._item_follows(cur, pos + 1, depth, takes_values)
            below = self._below(c, depth)
            if below == NO_MATCH:
                return NO_MATCH
            in_order = in_order and below == depth - 1
            depth = below
            if depth < 0 and in_order:
                return DONE
            pos += 1

    def _below(self, c: str, depth: int) -> int:
        """Return how much is open after ``c`` closes something: NO_MATCH if it closes nothing, and -1 after the list
        around the call."""
        for i in range(depth - 1, -1, -1):
            if self._closers[i] == c:
                return i
        return -1 if c == self._outer else NO_MATCH

    def _item_follows(self, cur: Cursor, pos: int, depth: int, takes_values: bool) -> int:
        """Return DONE if an item, or another call, follows the comma before ``pos``, NO_MATCH or MORE."""
        text = cur.text
        if depth == 0:
            return DONE
        if _UNDECIDED.match(text, pos) is not None:
            return DONE if cur.final or len(text) - pos > _MAX_LOOKAHEAD else MORE
        has_keys = self._json[depth - 1] == "}"
        if has_keys and _KEY.match(text, pos) is not None:
            return DONE
        takes_values = not has_keys or (depth == 1 and takes_values)
        return DONE if takes_values and _ITEM.match(text, pos) is not None else NO_MATCH
