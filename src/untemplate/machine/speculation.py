"""What has been read as a call, a header or the end of the turn, and may be text after all.

Rules of this module:

* It keeps what is needed to give everything back; whether to, the context decides.
* What is given back is looked at for markers once: behind its opener, and never a second time.
"""

from __future__ import annotations

from typing import final

from .lexer import Cursor
from .program import TextState


@final
class Speculation:
    """Of one output; one at a time."""

    def __init__(self, origin: TextState) -> None:
        self.active: bool = False
        self.origin: TextState = origin
        """The state that it began in."""
        self.in_section: bool = False
        """Whether a section of calls was open there."""
        self.calls: int = 0
        """How many calls there were."""
        self.size: int = 0
        """Characters that are kept, those in the cursor's text not counted."""
        self.opener: int = 1
        """How many characters the literal has that it began with; 0: that stands in the prompt."""
        self._kept: list[str] = []
        self._start: int = 0
        """Where in the cursor's text it begins; where something is kept already: where that ends."""
        self._looked_at: int = 0
        """Everything before this place of the output has been given back and looked at again."""

    def begin(self, pos: int, opener: int, origin: TextState, in_section: bool, calls: int) -> None:
        """At ``pos`` of the cursor's text, with a literal of ``opener`` characters."""
        self.active = True
        self.origin = origin
        self.in_section = in_section
        self.calls = calls
        self.size = 0
        self._kept = []
        self._start = pos
        self.opener = opener

    def end(self) -> None:
        """Nothing has to be given back."""
        self.active = False
        self._kept = []
        self.size = 0

    def restart(self) -> None:
        """The output begins here."""
        self.calls = 0
        self.size = 0
        self.opener = 0
        self._kept = []
        self._start = 0
        self._looked_at = 0

    def keep(self, cur: Cursor) -> None:
        """The cursor lets go of what has been read."""
        piece = cur.text[self._start : cur.pos]
        if piece:
            self._kept.append(piece)
            self.size += len(piece)
        self._start = 0

    def length(self, cur: Cursor) -> int:
        """Characters from where it began to the cursor."""
        return self.size + cur.pos - self._start

    def raw(self, cur: Cursor) -> str:
        """Those characters."""
        return "".join(self._kept) + cur.text[self._start : cur.pos]

    @property
    def reaches_back(self) -> bool:
        """Whether it began before the cursor's text."""
        return bool(self._kept)

    def give_back(self, start: int, size: int, whole: bool) -> int:
        """``size`` characters are given back, from ``start`` of the output on: answers how many of them are text
        without another look. ``whole``: all."""
        seen = self._looked_at - start
        self._looked_at = max(self._looked_at, start + size)
        return size if whole else min(max(self.opener, seen, 0), size)
