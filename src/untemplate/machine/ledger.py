"""The ledger: what every stretch of the output was, and what was odd about it.

Rules of this module:

* ``mark`` moves a frontier through the output and never back, except by ``roll_back`` to a saved place. So every
  character is accounted for once.
* Spans are kept only if somebody wants them. Notes are kept always, up to a limit.
* Offsets are in characters of the output.
"""

from __future__ import annotations

from typing import Final, final

from .diagnostics import DiagnosticCode

# What stretches of the output are.
MARKUP: Final = 0
NAME_TEXT: Final = 1
ID_TEXT: Final = 2
ARGUMENT_TEXT: Final = 3
DROPPED: Final = 4
REASONING_TEXT: Final = 5
CONTENT_TEXT: Final = 6

MAX_NOTES: Final = 256


@final
class Note:
    """A diagnostic."""

    def __init__(self, code: DiagnosticCode, start: int, end: int) -> None:
        self.code: DiagnosticCode = code
        self.start: int = start
        self.end: int = end


@final
class Ledger:
    """Accounts for one output."""

    def __init__(self) -> None:
        self.frontier: int = 0
        self.spans: list[tuple[int, int, int]] | None = None
        """(kind, start, end), in order, without gaps; None: nobody wants them."""
        self.notes: list[Note] = []
        self._saved_frontier: int = 0
        self._saved_spans: int = 0
        self._saved_notes: int = 0

    def clear(self) -> None:
        """The output begins here."""
        self.frontier = 0
        self.notes = []
        if self.spans is not None:
            self.spans = []
        self._saved_frontier = 0
        self._saved_spans = 0
        self._saved_notes = 0

    def mark(self, kind: int, end: int) -> None:
        """Everything from the frontier up to ``end`` is of this kind."""
        start = self.frontier
        if end <= start:
            return
        self.frontier = end
        spans = self.spans
        if spans is not None:
            if len(spans) > self._saved_spans and spans[-1][0] == kind:
                spans[-1] = (kind, spans[-1][1], end)
            else:
                spans.append((kind, start, end))

    def change(self, kind: int, new: int, start: int) -> None:
        """What has been marked as ``kind`` from ``start`` on is ``new``."""
        spans = self.spans or []
        i = len(spans) - 1
        while i >= 0 and spans[i][1] >= start:
            if spans[i][0] == kind:
                spans[i] = (new, spans[i][1], spans[i][2])
            i -= 1

    @property
    def saved(self) -> int:
        """The place that ``save`` kept."""
        return self._saved_frontier

    def change_all(self, new: int) -> None:
        """Everything that has been marked since ``save`` is of this kind."""
        spans = self.spans
        if spans is not None:
            for i in range(self._saved_spans, len(spans)):
                spans[i] = (new, spans[i][1], spans[i][2])

    def report(self, code: DiagnosticCode, start: int, end: int) -> None:
        """Notes a problem. What follows the last note of the same kind without a gap only makes that longer, so that
        notes do not depend on how the output was cut."""
        notes = self.notes
        if notes and notes[-1].code == code and notes[-1].end == start and end > start:
            notes[-1].end = end
        elif len(notes) < MAX_NOTES:
            notes.append(Note(code, start, end))

    def back_to(self, place: int) -> None:
        """What has been marked and noted behind this place was not so."""
        self.frontier = min(self.frontier, place)
        self.notes = [n for n in self.notes if n.start < place or n.code == "held_too_long"]
        spans = self.spans
        while spans and spans[-1][1] >= place:
            spans.pop()
        if spans and spans[-1][2] > place:
            spans[-1] = (spans[-1][0], spans[-1][1], place)

    def save(self) -> None:
        """What is marked from here on may be taken back."""
        self._saved_frontier = self.frontier
        self._saved_spans = 0 if self.spans is None else len(self.spans)
        self._saved_notes = len(self.notes)

    def roll_back(self) -> None:
        """What has been marked since ``save`` was not so, and what has been noted on it neither; only that too much
        was held stays true."""
        self.frontier = self._saved_frontier
        self.notes[self._saved_notes :] = [n for n in self.notes[self._saved_notes :] if n.code == "held_too_long"]
        if self.spans is not None:
            del self.spans[self._saved_spans :]
        self._saved_spans = 0
