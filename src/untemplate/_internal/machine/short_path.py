"""The short path: deltas in the middle of a text or of a value, as most are, are emitted without being read.

* The machine opens the path after each reading, for the ``kind`` of text that may go on. Before it reads again, it
  accounts for what has passed (``Machine.settle``).
* A delta passes if one look decides that it holds no marker, no special token and nothing that changes its meaning.
* What the end of free text leaves undecided is held here: white space, and the beginning of a literal. It is put before
  the next delta.
* Text also waits here in which the reader at work can decide nothing yet, such as the beginning of a name.
* The scanner of token ids counts deltas without special tokens together: those that pass, and those that are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, final

from .ledger import ARGUMENT_TEXT, MARKUP
from .lexer import NO_LITERALS, WS, GoesOn, Literals
from .program import TextState

MOST_UNCOUNTED: Final = 1024
"""Characters of deltas after which they are counted. It bounds memory, and changes no result."""
_MOST_HELD: Final = 256
"""Characters that the path holds back: longer runs of white space are read. It changes no result."""
_MOST_SEARCHED: Final = 1024
"""Characters of a text with the first character of a literal: a longer one is read, and not searched before."""
MOST_WAITING: Final = 256
"""Most characters that wait without being read. It bounds the work of one look, and changes no result."""
NO_IDS: Final[frozenset[int]] = frozenset()


@final
class ShortPath:
    """Takes the deltas of one output that need not be read."""

    def __init__(self, max_held: int) -> None:
        self.kind: int = MARKUP
        """The kind of text that the next delta may continue; MARKUP if it must be read, or may wait."""
        self.literals: Literals = NO_LITERALS
        """Literals that text on the path must not hold."""
        self.heads: tuple[str, ...] = ()
        """Their first characters."""
        self.trims: bool = False
        """True if white space at the end of that text may belong to a marker."""
        self.held: str = ""
        """The end of that text, as far as it is undecided."""
        self.begun: int = 0
        """Characters of it, at its end, that begin a literal; those before them are white space."""
        self.goes_on: GoesOn | None = None
        """The test for text that decides nothing, where text may wait that is not emitted."""
        self.room: int = max_held - MOST_WAITING
        """Text may wait where fewer characters are kept."""
        self._most_held: int = min(_MOST_HELD, max_held - 1)
        self.value: Callable[[str], str | None] | None = None
        """In the arguments of a call: the next text → what to emit for it; None if it must be read."""
        self.call: int = 0
        """Number of that call."""
        self.special: frozenset[int] | None = None
        """Ids of special tokens, with which no delta may pass. None: no delta with any id may."""
        self.takes_text: bool = True
        """True if deltas without ids may pass: once ids have come, such text may be ahead of them."""
        self.texts: list[str] = []
        """Deltas that the scanner has not counted, or the machine has not accounted for."""
        self.ids: list[int] = []
        """Their ids."""
        self.size: int = 0
        """Characters of these deltas."""
        self.settled: int = 0
        """Characters of them that the machine has accounted for, or read."""
        self.settled_texts: int = 0
        """Number of deltas that these are in."""

    def open_text(self, kind: int, state: TextState, spaces: list[str], begun: str) -> None:
        """Let free text of this kind pass. ``spaces`` and ``begun`` are what is undecided of it so far."""
        self.kind = kind
        self.value = None
        self.literals = state.literals
        self.heads = state.literals.heads
        self.trims = state.trims
        self.held = "".join(spaces) + begun if spaces else begun
        self.begun = len(begun)

    def open_value(self, value: Callable[[str], str | None], stops: Literals, call: int) -> None:
        """Let arguments of this call pass, except these literals."""
        self.kind = ARGUMENT_TEXT
        self.value = value
        self.literals = stops
        self.heads = stops.heads
        self.trims = False
        self.call = call
        self.held = ""
        self.begun = 0

    def take_waiting(self, text: str, ids: Sequence[int]) -> bool:
        """Take a delta if it decides nothing. Call it only if there is text, and text may wait."""
        if ids:
            if self.special is None or not self.special.isdisjoint(ids):
                return False
        elif not self.takes_text:
            return False
        if len(self.held) + len(text) > MOST_WAITING:
            return False
        whole = self.held + text
        if self.goes_on is None or not self.goes_on(whole):
            return False
        self.held = whole
        self.texts.append(text)
        self.size += len(text)
        if ids:
            self.ids.extend(ids)
        return True

    def may_be_counted(self, ids: Sequence[int]) -> bool:
        """True if a delta, which is read, may be counted later with others: it has no special token, and none is
        awaited."""
        if not ids:
            return self.takes_text
        return self.special is not None and self.special.isdisjoint(ids)

    def take_passing(self, text: str, ids: Sequence[int]) -> str | None:
        """Take a delta if it may pass. Return what is to be emitted for it as text of this kind, "" if that is nothing
        yet; None if it must be read. Call it only if there is text, and something may pass."""
        if ids:
            special = self.special
            if special is None or not special.isdisjoint(ids):
                return None
        elif not self.takes_text:
            return None
        if self.size >= MOST_UNCOUNTED:
            return None
        held = self.held
        whole = held + text if held else text
        for head in self.heads:
            if head in whole:
                piece = self._decided(whole)
                break
        else:
            if self.trims and whole[-1] in WS:
                piece = whole.rstrip(WS)
                if len(whole) - len(piece) > self._most_held:
                    return None
                self.held = whole[len(piece) :]
                self.begun = 0
            else:
                value = self.value
                piece = whole if value is None else value(whole)
                if held and piece is not None:
                    self.held = ""
                    self.begun = 0
        if piece is None:
            return None
        self.texts.append(text)
        self.size += len(text)
        if ids:
            self.ids.extend(ids)
        return piece

    def _decided(self, whole: str) -> str | None:
        """Return what is to be emitted of text with the first character of a literal, and hold the rest; None if it
        must be read."""
        begun = self.literals.begun(whole) if len(whole) <= _MOST_SEARCHED else -1
        if begun < 0:
            return None
        piece = whole[: len(whole) - begun]
        if self.trims:
            piece = piece.rstrip(WS)
        undecided = whole[len(piece) :]
        if len(undecided) > self._most_held:
            return None
        value = self.value
        put = piece if value is None or not piece else value(piece)
        if put is not None:
            self.held = undecided
            self.begun = begun
        return put

    def settle(self) -> list[str]:
        """Take note that all deltas are accounted for. Return those that were not."""
        texts = self.texts[self.settled_texts :]
        self.settled = self.size
        self.settled_texts = len(self.texts)
        return texts

    def take(self) -> list[str]:
        """Forget all deltas, which are counted or accounted for. Return them."""
        texts = self.texts
        self.texts = []
        self.ids.clear()
        self.size = 0
        self.settled = 0
        self.settled_texts = 0
        return texts
