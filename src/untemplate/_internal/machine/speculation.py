"""Keeps text that has been read as a call, a header or the end of the turn, and that may become text again.

Text that becomes text again is searched for markers once: after its opener, and never a second time.
"""

from __future__ import annotations

from typing import Final, final

from .growing import NO_TEXTS
from .lexer import Cursor
from .program import IN_CONTENT, TextState

# The section around the calls that are being read.
NO_SECTION: Final = 0
OPEN_SECTION: Final = 1
TEXT_SECTION: Final = 2
"""An open one whose opener has become text with its first call, so that its closer is text too."""

_NO_STATE: Final = TextState("", IN_CONTENT, {}, False)


@final
class Speculation:
    """The speculation of one output. There is at most one at a time."""

    # Defaults in the class cost nothing per output.
    active: bool = False
    origin: TextState = _NO_STATE
    """The state in which it began."""
    section: int = NO_SECTION
    """The section of calls there: NO_SECTION, OPEN_SECTION or TEXT_SECTION."""
    calls: int = 0
    """Number of calls before it."""
    spaces: tuple[str, ...] = ()
    """White space that waited there."""
    size: int = 0
    """Number of kept characters, without those in the cursor's text."""
    number: int = 0
    """Number of speculations so far."""
    opener: int = 1
    """Length of the opener; 0 if the opener is in the prompt."""
    empty_end: int = 0
    """End of the last close of calls without a call, counted from their opener; 0 if none has come."""
    undecided: int = -1
    """Number of the speculation that was undecided at the end of the output; -1 before that."""
    _kept: list[str] = NO_TEXTS
    _start: int = 0
    """Where it begins in the cursor's text, or, if characters are kept already, where they end."""
    _looked_at: int = 0
    """Where the part of the output ends that has become text and has been searched again."""

    def begin(self, pos: int, opener: int, origin: TextState, section: int, calls: int, spaces: list[str]) -> None:
        """Begin at ``pos`` of the cursor's text, with an opener of so many characters."""
        self.active = True
        self.number += 1
        self._kept = []
        self.origin = origin
        self.section = section
        self.calls = calls
        self.spaces = tuple(spaces)
        self._start = pos
        self.opener = opener

    def end(self) -> None:
        """End: what was read does not become text."""
        self.active = False
        self._kept = NO_TEXTS
        self.size = 0

    def restart(self) -> None:
        """Begin the output here: all before it was the prompt's."""
        self.calls = 0
        self.spaces = ()
        self.size = 0
        self.opener = 0
        self._kept = []
        self._start = 0
        self._looked_at = 0

    def keep(self, cur: Cursor) -> None:
        """Keep what has been read, before the cursor drops it."""
        piece = cur.text[self._start : cur.pos]
        if piece:
            self._kept.append(piece)
            self.size += len(piece)
        self._start = 0

    def length(self, cur: Cursor) -> int:
        """Return the number of characters from where it began to the cursor."""
        return self.size + cur.pos - self._start

    def raw(self, cur: Cursor) -> str:
        """Return the characters from where it began to the cursor."""
        return "".join(self._kept) + cur.text[self._start : cur.pos]

    @property
    def reaches_back(self) -> bool:
        """True if it began before the cursor's text."""
        return bool(self._kept)

    def give_back(self, start: int, size: int, whole: bool) -> int:
        """Turn ``size`` characters from ``start`` of the output into text. Return how many of them are text without
        another search; ``whole``: all are."""
        seen = self._looked_at - start
        self._looked_at = max(self._looked_at, start + size)
        return size if whole else min(max(self.opener, seen, 0), size)


NOTHING_KEPT: Final = Speculation()
"""That of all outputs before the first opener; it never begins."""
