"""Openers that a value shows as text, and the closes that belong to them.

* A value that quotes a call shows its openers. It owns the closes of these openers, and no others: the close of a
  parameter that it has not opened is its own.
* Each opener owns one close. A debt ends with its value.
"""

from __future__ import annotations

from typing import Final, final

from .. import tags
from ..call_syntax import UNWRITTEN, CallSyntax

VALUE: Final = 0
"""Rank of a value's close. Those of the closes around it are in ``RANKS``."""
RANKS: Final = {tags.ARGUMENTS_CLOSE: 1, tags.CALL_CLOSE: 2, tags.SECTION_CLOSE: 3}


@final
class Quotation:
    """The openers in one value after another."""

    def __init__(self, frame: CallSyntax) -> None:
        self.open: int = 0
        """Number of openers whose closes have not come."""
        self._counts: list[int] = [0, 0, 0, 0]
        """The same by the rank of the close."""
        named = tags.CALL_CLOSE if frame.opens == UNWRITTEN else tags.ARGUMENTS_CLOSE
        closes = {tags.NAME_OPEN: named, tags.CALL_OPEN: tags.CALL_CLOSE, tags.SECTION_OPEN: tags.SECTION_CLOSE}
        self._ranks: dict[int, int] = {kind: RANKS[close] for kind, close in closes.items()}
        if frame.innermost != tags.ARGUMENTS_CLOSE and frame.opens != UNWRITTEN:
            del self._ranks[tags.NAME_OPEN]
        self._frame: CallSyntax = frame

    def begin(self) -> None:
        """Begin a value."""
        if self.open:
            self.open = 0
            self._counts = [0, 0, 0, 0]

    def show_key(self) -> None:
        """Take note that the value shows the opener of a parameter."""
        self.open += 1
        self._counts[VALUE] += 1

    def show_call(self, opener: str) -> None:
        """Take note that the value shows the whole opener of a call."""
        for found in self._frame.starts.pattern.finditer(opener):
            rank = self._ranks.get(self._frame.starts.tags[found.group()])
            if rank is not None:
                self.open += 1
                self._counts[rank] += 1

    def shows_call(self) -> bool:
        """True if the value shows a call that is open."""
        return self.open > self._counts[VALUE]

    def owns(self, rank: int) -> bool:
        """True if the next close of this rank belongs to the quotation."""
        return self._counts[rank] > 0

    def owns_all(self, ranks: list[int]) -> bool:
        """True if each of these closes belongs to the quotation."""
        return all(self._counts[rank] >= ranks.count(rank) for rank in ranks)

    def close(self, rank: int) -> None:
        """Take the close of the last opener of this rank, if there is one."""
        if self._counts[rank]:
            self._counts[rank] -= 1
            self.open -= 1
