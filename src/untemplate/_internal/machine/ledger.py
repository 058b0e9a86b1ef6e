"""Accounts for one output: the kind of every character, and the problems found.

* ``mark`` moves a frontier forward through the output. It only moves back when ``roll_back`` or ``back_to`` undo spans.
  So every character is accounted for once.
* Spans are recorded only on request. Notes are always recorded, up to a limit.
* Offsets are in characters of the output.
"""

from __future__ import annotations

from typing import Final, final

from .diagnostics import DiagnosticCode
from .growing import grown

# Kinds of text.
MARKUP: Final = 0
NAME_TEXT: Final = 1
ID_TEXT: Final = 2
ARGUMENT_TEXT: Final = 3
DROPPED: Final = 4
REASONING_TEXT: Final = 5
CONTENT_TEXT: Final = 6

MAX_NOTES: Final = 256
"""Most diagnostics of an output: one of a model that repeats a mistake would have thousands."""


@final
class Note:
    """A diagnostic, without its message and text."""

    def __init__(self, code: DiagnosticCode, start: int, end: int) -> None:
        self.code: DiagnosticCode = code
        self.start: int = start
        self.end: int = end


_NO_NOTES: Final[list[Note]] = []


@final
class Ledger:
    """Accounts for one output."""

    # Defaults in the class cost nothing per output.
    frontier: int = 0
    spans: list[tuple[int, int, int]] | None = None
    """(kind, start, end), in order, without gaps; None if spans are not recorded."""
    notes: list[Note] = _NO_NOTES
    _saved_frontier: int = 0
    _saved_spans: int = 0
    _saved_notes: int = 0

    def clear(self) -> None:
        """Begin the output here: forget everything recorded."""
        self.frontier = 0
        self.notes = _NO_NOTES
        if self.spans is not None:
            self.spans = []
        self._saved_frontier = 0
        self._saved_spans = 0
        self._saved_notes = 0

    def mark(self, kind: int, end: int) -> None:
        """Account for everything from the frontier to ``end`` as ``kind``."""
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
        """Change spans of ``kind`` that begin at or after ``start`` to ``new``."""
        spans = self.spans or []
        i = len(spans) - 1
        while i >= 0 and spans[i][1] >= start:
            if spans[i][0] == kind:
                spans[i] = (new, spans[i][1], spans[i][2])
            i -= 1

    @property
    def saved(self) -> int:
        """The frontier at the last ``save``."""
        return self._saved_frontier

    def cut_out(self, new: int, start: int, end: int) -> None:
        """Change a part of a span to ``new``."""
        spans = self.spans or []
        for i in range(len(spans) - 1, -1, -1):
            kind, begin, stop = spans[i]
            if stop <= start:
                return
            if begin <= start and end <= stop:
                if kind == new:
                    return
                parts = [(kind, begin, start), (new, start, end), (kind, end, stop)]
                parts = [part for part in parts if part[1] < part[2]]
                spans[i : i + 1] = parts
                if i < self._saved_spans:
                    self._saved_spans += len(parts) - 1
                return

    def drop_around(self, code: DiagnosticCode, kind: int, before: int, after: int) -> None:
        """Drop and report the first and the last characters of the last span of ``kind``."""
        spans = self.spans or []
        found = next((span for span in reversed(spans) if span[0] == kind), (kind, self.frontier, self.frontier))
        start, end = found[1], found[2]
        places = [(start, start + before), (end - after, end)] if spans else [(start, end)]
        for first, last in places:
            self.cut_out(DROPPED, first, last)
            self.report(code, first, last)

    def change_all(self, new: int) -> None:
        """Change all spans since ``save`` to ``new``."""
        spans = self.spans
        if spans is not None:
            for i in range(self._saved_spans, len(spans)):
                spans[i] = (new, spans[i][1], spans[i][2])

    def report(self, code: DiagnosticCode, start: int, end: int) -> None:
        """Record a problem. If it continues the last one of the same kind, that is extended instead, so that notes do
        not depend on how the output was cut."""
        notes = self.notes
        if notes and notes[-1].code == code and notes[-1].end == start and end > start:
            notes[-1].end = end
        elif len(notes) < MAX_NOTES:
            self.notes = grown(notes, Note(code, start, end))

    def back_to(self, place: int) -> None:
        """Undo all spans and diagnostics after this place."""
        self.frontier = min(self.frontier, place)
        self.notes = [n for n in self.notes if n.start < place or n.code == "held_too_long"]
        spans = self.spans
        while spans and spans[-1][1] >= place:
            spans.pop()
        if spans and spans[-1][2] > place:
            spans[-1] = (spans[-1][0], spans[-1][1], place)

    def save(self) -> None:
        """Mark the place that ``roll_back`` returns to."""
        self._saved_frontier = self.frontier
        self._saved_spans = 0 if self.spans is None else len(self.spans)
        self._saved_notes = len(self.notes)

    def roll_back(self) -> None:
        """Undo all spans and diagnostics recorded since ``save``, except ``held_too_long``."""
        self.frontier = self._saved_frontier
        self.notes[self._saved_notes :] = [n for n in self.notes[self._saved_notes :] if n.code == "held_too_long"]
        if self.spans is not None:
            del self.spans[self._saved_spans :]
        self._saved_spans = 0
