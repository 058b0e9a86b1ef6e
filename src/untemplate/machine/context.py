"""Who works with the machine: it, as those see it that read a part of the output for it, and the one that it asks."""

from __future__ import annotations

from typing import Final

from .coercion import ToolSet
from .diagnostics import DiagnosticCode
from .events import EventReceiver
from .ledger import DROPPED, MARKUP, Ledger
from .lexer import Cursor
from .program import MarkerRule, Program
from .speculation import Speculation

# Who reads on: what readers of free text and of headers answer, and the machine's modes.
READ_TEXT: Final = 0
READ_CALL: Final = 1
READ_TURN_END: Final = 2
READ_HEADER_START: Final = 3
READ_HEADER: Final = 4


class ReaderContext:
    """What a reader may ask and tell.

    The attributes are declared here only. Were they declared in a subclass again, mypyc's garbage collection would
    count each twice, and clear what is still in use.
    """

    program: Program
    tools: ToolSet
    receiver: EventReceiver
    ledger: Ledger
    config_events: ConfigEvents | None
    cur: Cursor
    base: int
    """Where ``cur.text`` begins in the output."""
    checks_ids: bool
    """Whether token ids authorise markers."""
    speculation: Speculation
    in_reasoning_call: bool
    """Whether the call being read stands inside reasoning, and may be none."""
    holds_call: bool
    """Whether the call being read is kept back until it is whole."""
    max_held: int

    def authorised(self, start: int, end: int) -> bool:
        """Whether the literal at ``cur.text[start:end]`` may be a marker."""
        return True

    def proven(self, start: int, end: int) -> bool:
        """Whether a token id says that it is one."""
        return False

    def speculate(self, opener: int) -> None:
        """What is read from the cursor on, an opener of so many characters first, may have to be given back."""

    def confirm(self) -> None:
        """What has been read need not be given back after all."""

    def begin_call(self, name: str, call_id: str) -> None:
        """A call commits."""

    def arguments(self, text: str) -> None: ...

    def end_call(self, whole: bool, valid: bool) -> None: ...

    def close_call(self) -> None:
        """The call and what closes it have been read."""

    def set_model_id(self, call_id: str) -> None: ...

    def hold_space(self, end: int) -> None:
        """White space up to ``end`` that belongs to whatever follows."""

    def drop_space(self) -> None:
        """What follows is markup: the white space before it belongs to that."""

    def mark(self, kind: int, pos: int) -> None:
        """Everything before ``cur.text[pos]`` that has not been accounted for is of this kind."""

    def report(self, code: DiagnosticCode, start: int, end: int) -> None: ...

    def accounted(self) -> int:
        """Where the part of the output that is accounted for ends, in characters of the output."""
        return 0

    def drop_arguments(self, start: int) -> None:
        """What has been marked as arguments since then was none: it is dropped."""


class ConfigEvents:
    """The other side of hand-written configs."""

    def accepts(self, text: str, pos: int, start: int) -> bool:
        """Whether a literal at ``start`` counts; what comes before ``pos`` has been told."""
        return True

    def take(self, rule: MarkerRule, literal: str, start: int) -> int:
        """A literal that counts, and where it stands in the output; answers what it is in the ledger."""
        return MARKUP

    def chunk(self, region: int, text: str, start: int) -> int:
        """Text that is neither content nor reasoning; answers what it is in the ledger."""
        return DROPPED
