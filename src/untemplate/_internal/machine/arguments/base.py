"""Interfaces that the readers of arguments share.

* ``step(cursor, out)`` reads from the cursor as far as the text decides, puts JSON text, and returns a signal. After
  DONE or NO_MATCH the cursor is at the first character that does not belong to the value.
* A reader looks at each character once. What it keeps is bounded or passed on.
* No reader looks for keys that come twice: ``call_state`` finds them in the JSON of the call.
* ``passed(text)`` is the short path for text inside a long value. It returns the JSON text to put, or None if the text
  needs a closer look; then nothing has happened.
"""

from __future__ import annotations

import re
from typing import final

from ....tools import ToolSet
from ..diagnostics import DiagnosticCode
from ..ledger import DROPPED
from ..lexer import Cursor, Literals
from ..mypyc_compat import mypyc_attr
from ..signals import AGAIN, NO_MATCH


@mypyc_attr(allow_interpreted_subclasses=True)
class ArgumentWriter:
    """Takes JSON text."""

    def put(self, text: str) -> None: ...


@mypyc_attr(allow_interpreted_subclasses=True)
class CallHandler(ArgumentWriter):
    """Takes the arguments of a call, and what else a reader finds out about the call."""

    committed: bool = False
    """True if this is a call for good."""
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

    def drop_to(self, code: DiagnosticCode, cur: Cursor, end: int) -> None:
        """Report the text from the cursor to ``end``, and drop it."""
        self.report(code, cur.pos, end)
        cur.pos = end
        self.mark(DROPPED, end)

    def drop_arguments(self, code: DiagnosticCode, start: int, values: list[tuple[int, int]]) -> None:
        """Mark the argument text since ``accounted()`` was ``start`` as dropped, and report these values in it."""

    def drop_around(self, before: int, after: int) -> None:
        """Mark so many characters at the start and the end of the last value as dropped, and report them."""

    def may_be_marker(self, start: int, end: int) -> bool:
        """True if the literal there may be a marker."""
        return True

    def has_id(self, start: int, end: int) -> bool:
        """True if a token id proves that it is a marker."""
        return False


class ArgumentReader:
    """Reads the arguments of a call, in one syntax."""

    valid: bool = True
    """True if what was put is known to be valid JSON, once the arguments have ended."""
    broken: DiagnosticCode = "broken_arguments"
    """The problem with arguments that break. Broken JSON is passed on as written; others end where they break."""

    def step(self, cur: Cursor, call: CallHandler) -> int:
        return NO_MATCH

    def pass_on(self, text: str) -> int:
        """Take note of text that has passed. Return how many characters at its end wait for what follows."""
        return 0

    def look_ahead(self, cur: Cursor) -> None:
        """Set how the next text may take a short path, if there is one here: ``goes_on`` of the cursor, ``passed`` and
        ``stops``. Of these, ``passed`` counts where all text has been read."""

    def put_cut(self, cur: Cursor, call: CallHandler) -> None:
        """Put what there is of a key or value in which the output was cut."""

    def close(self, call: CallHandler) -> None:
        """Close all that is open, because the call was closed where the arguments broke."""


class CallBeginning(CallHandler):
    """A call whose arguments begin, as the bodies see it."""

    tools: ToolSet
    max_held: int
    """Most characters that a reader may keep."""
    name: str = ""
    """The name of the call; empty if it is not known yet."""
    marked: bool = False
    """True if the opener of the call was written."""
    opened: bool = True
    """True if what comes between name and arguments was written."""
    bare: bool = False
    """True if the calls may have no marker."""
    in_section: bool = False
    """True inside a section of calls."""
    in_list: bool = False
    """True if ``]`` ends the list of calls."""
    raw: bool = False
    """True if any text may be the arguments."""
    reader_before: ArgumentReader | None = None
    """The reader of an earlier call, which may read this one as well."""

    def accepts(self, name: str) -> bool:
        """True if a call may have this name: without a distinctive marker, known tools must include it."""
        return True

    def identify(self, call_id: str) -> None:
        """Take the id of a call that has not committed."""

    def commit(self) -> None:
        """Begin the call for good."""

    def commit_once(self) -> None:
        """Begin the call for good, if it has not begun."""

    def at_close(self, cur: Cursor, closes: Literals) -> int:
        """Look for what ends the arguments, or begins them with a literal, after white space. Return DONE, committed,
        if it is there; AGAIN if other text is there; NO_MATCH if this is not a call, or MORE."""
        return NO_MATCH

    def more_if(self, prefix: re.Pattern[str], at: int) -> int:
        """Return MORE if the text from ``at`` on may still become a match, as the pattern of its beginnings decides;
        else NO_MATCH."""
        return NO_MATCH

    def read_with(self, reader: ArgumentReader) -> int:
        """Let this reader read the arguments."""
        return AGAIN

    def read_object(self, call_object: ArgumentReader) -> int:
        """Let this reader read the object that holds name and arguments."""
        return AGAIN

    def read_raw(self) -> int:
        """Pass on the arguments as written."""
        return AGAIN

    def end_arguments(self, ending: int) -> int:
        """Take note that the arguments have ended. ``ending``: WHOLE, or VALID if they are known to be JSON."""
        return AGAIN


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
