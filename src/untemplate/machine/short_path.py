"""The short path: deltas in the middle of a text or of a value, as most are, are emitted without being read.

* The machine opens the path after each reading, for the ``kind`` of text that may go on. Before it reads again, it
  accounts for what has passed (``Machine.settle``).
* A delta passes if one look decides that it holds no marker, no special token and nothing that changes its meaning.
* The scanner of token ids counts deltas without special tokens together: those that pass, and those that are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, final

from .ledger import ARGUMENT_TEXT, MARKUP
from .lexer import WS
from .program import TextState

MOST_UNCOUNTED: Final = 1024
"""Characters of deltas after which they are counted."""


@final
class ShortPath:
    """Takes the deltas of one output that need not be read."""

    def __init__(self, state: TextState) -> None:
        self.kind: int = MARKUP
        """The kind of text that the next delta may continue; MARKUP if it must be read."""
        self.state: TextState = state
        """The state of that text, if it is free."""
        self.value: Callable[[str], str] | None = None
        """In the arguments of a call: the next text → what to emit for it; "" if it must be read."""
        self.call: int = 0
        """Number of that call."""
        self.special: frozenset[int] = frozenset()
        """Ids of special tokens."""
        self.takes_ids: bool = False
        """True if deltas with ids may pass."""
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

    def passes(self, text: str, ids: Sequence[int]) -> str:
        """Take a delta if it may pass. Return what is to be emitted for it as text of this kind; "" if it must be
        read. Call it only if there is text, and something may pass."""
        if ids:
            if not (self.takes_ids and self.special.isdisjoint(ids)):
                return ""
        elif not self.takes_text:
            return ""
        if self.kind == ARGUMENT_TEXT:
            value = self.value
            piece = "" if value is None or self.size >= MOST_UNCOUNTED else value(text)
            if not piece:
                return ""
        else:
            state = self.state
            if (state.trims and text[-1] in WS) or self.size >= MOST_UNCOUNTED:
                return ""
            for head in state.heads:
                if head in text:
                    return ""
            piece = text
        self.texts.append(text)
        self.size += len(text)
        if ids:
            self.ids.extend(ids)
        return piece

    def settle(self) -> list[str]:
        """Take note that all deltas are accounted for. Return those that were not."""
        texts = self.texts[self.settled_texts :]
        self.settled = self.size
        self.settled_texts = len(self.texts)
        return texts

    def take(self) -> list[str]:
        """Forget all deltas, which are accounted for. Return them."""
        texts = self.texts
        self.texts = []
        self.ids.clear()
        self.size = 0
        self.settled = 0
        self.settled_texts = 0
        return texts

    def clear(self) -> None:
        """Forget the deltas that are counted."""
        self.texts.clear()
        self.ids.clear()
        self.size = 0
        self.settled = 0
        self.settled_texts = 0
