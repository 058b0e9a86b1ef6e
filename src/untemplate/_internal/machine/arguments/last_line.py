"""The last line of a value, as far as it decides what a literal after it means."""

from __future__ import annotations

from typing import Final, final

from .lookahead import LINE_START, MOST_OF_LINE, PLAIN, QUOTED, QUOTES

_MOST_KEPT: Final = 2 * MOST_OF_LINE


@final
class LastLine:
    """The last line of one value after another."""

    def __init__(self) -> None:
        self.text: str = "\n"
        """The newline before it and the line, or at least the last ``MOST_OF_LINE`` characters of the line."""
        self.number: int = 1
        """Its number in the value."""

    def begin(self) -> None:
        """Begin a value."""
        self.text = "\n"
        self.number = 1

    def add(self, piece: str) -> None:
        """Add text to the value."""
        newline = piece.rfind("\n")
        if newline >= 0:
            self.number += piece.count("\n")
            self.text = piece[max(newline, len(piece) - _MOST_KEPT) :]
            return
        line = self.text + piece
        self.text = line if len(line) <= _MOST_KEPT else line[-MOST_OF_LINE:]

    def is_only(self, rest: str) -> bool:
        """True if the value, with this text after it, has no newline."""
        return self.number == 1 and "\n" not in rest

    def place(self, rest: str) -> int:
        """Return the place in its line of a literal that comes after this text: LINE_START, PLAIN or QUOTED."""
        if (rest or self.text)[-1] == "\n":
            return LINE_START
        line = (self.text + rest).rpartition("\n")[2]
        return PLAIN if QUOTES.search(line[-MOST_OF_LINE:]) is None else QUOTED
