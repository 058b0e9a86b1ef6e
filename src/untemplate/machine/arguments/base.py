"""Interfaces that the readers of arguments share.

* ``step(cursor, out)`` reads from the cursor as far as the text decides, puts JSON text, and returns a signal. After
  DONE or NO_MATCH the cursor is at the first character that does not belong to the value.
* A reader looks at each character once. What it keeps is bounded or passed on.
* ``passed(text)`` is the short path for text inside a long value. It returns the JSON text to put, or "" if the text
  needs a closer look; then nothing has happened.
"""

from __future__ import annotations

from typing import final

from ..diagnostics import DiagnosticCode
from ..mypyc_compat import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class ArgumentWriter:
    """Takes JSON text."""

    def put(self, text: str) -> None: ...


@mypyc_attr(allow_interpreted_subclasses=True)
class CallHandler(ArgumentWriter):
    """Takes the arguments of a call, and what else a reader finds out about the call."""

    records: bool = True
    """True if the kind of each part is recorded. If not, only the end of the last one is: many marks may be one."""

    def named(self, name: str, call_id: str, arguments: bool) -> bool:
        """The name is known; ``arguments``: they follow now. False if this is not a call."""
        return True

    def named_before(self) -> None:
        """The call has the name of its message header."""

    def late_id(self, call_id: str) -> None:
        """Take an id that came after the call had begun."""

    def mark(self, kind: int, pos: int) -> None:
        """Record everything before ``pos`` that has no kind yet as text of this kind."""

    def remark(self, kind: int, start: int, end: int) -> None:
        """Record a part of the output that has another kind as text of this kind."""

    def report(self, code: DiagnosticCode, start: int, end: int) -> None: ...

    def report_at(self, code: DiagnosticCode, start: int, end: int) -> None:
        """Report a place that is given in characters of the output."""

    def accounted(self) -> int:
        """Return where the marked part of the output ends, in characters of the output."""
        return 0

    def drop_arguments(self, code: DiagnosticCode, start: int, values: list[tuple[int, int]]) -> None:
        """Mark the argument text since ``accounted()`` was ``start`` as dropped, and report these values in it."""

    def may_be_marker(self, start: int, end: int) -> bool:
        """True if the literal there may be a marker."""
        return True

    def has_id(self, start: int, end: int) -> bool:
        """True if a token id proves that it is a marker."""
        return False


@final
class BufferedWriter(ArgumentWriter):
    """Keeps what is put, up to ``limit`` characters."""

    def __init__(self, limit: int) -> None:
        self.limit: int = limit
        self.parts: list[str] = []
        self.size: int = 0

    def put(self, text: str) -> None:
        self.size += len(text)
        if self.size > self.limit:
            self.parts = []
        else:
            self.parts.append(text)

    def take(self) -> str:
        """Return what was kept, and begin anew. Empty if there was more than ``limit``."""
        text = "".join(self.parts)
        self.parts = []
        self.size = 0
        return text
