"""Places in text for browsers, which count UTF-16 code units where Python counts characters."""

from __future__ import annotations

from itertools import accumulate


def units(text: str) -> int:
    """Return the number of UTF-16 code units of a text."""
    return len(text) + sum(c > "\uffff" for c in text) if not text.isascii() else len(text)


class Units:
    """Converts places in one text."""

    def __init__(self, text: str) -> None:
        self._starts: list[int] | None = None
        """Place of each character in code units; ``None`` if both counts agree."""
        if not text.isascii() and any(c > "\uffff" for c in text):
            self._starts = [0, *accumulate(1 + (c > "\uffff") for c in text)]

    def of(self, place: int) -> int:
        """Return a place in code units."""
        return place if self._starts is None else self._starts[min(place, len(self._starts) - 1)]

    def character(self, place: int) -> int:
        """Return the character that a place in code units is in."""
        if self._starts is None:
            return place
        from bisect import bisect_right

        return bisect_right(self._starts, place) - 1
