"""The state of one output that all of its readers share.

A reader gets a ReaderContext when it is made. It reads from the cursor, emits through the receiver, accounts for what
it has read (``mark``, ``report``), and asks whether a literal is a marker (``may_be_marker``, ``has_id``).
"""

from __future__ import annotations

from collections.abc import Callable

from ...tools import ToolSet
from .call_policy import CallPolicy
from .call_state import CUT, NO_CALLS, CallState
from .diagnostics import DiagnosticCode
from .events import EventReceiver
from .growing import NO_TEXTS, grown
from .ledger import CONTENT_TEXT, DROPPED, MARKUP, REASONING_TEXT, Ledger
from .lexer import SPACES, Cursor, Literals
from .mypyc_compat import mypyc_attr
from .program import IN_REASONING, Program, TextState
from .rules import MarkerRule
from .scanner import TokenScanner
from .signals import NO_MATCH
from .speculation import NO_SECTION, NOTHING_KEPT, Speculation
from .tentative_calls import IN_REASONING_TEXT, TentativeCalls


class ReaderContext:
    """The state that the readers of one output share.

    Subclasses must not declare these attributes again: mypyc's garbage collection would count each twice and clear
    what is still in use.
    """

    def __init__(
        self, program: Program, tools: ToolSet, receiver: EventReceiver, max_held: int, reasoning_calls: int
    ) -> None:
        self.program: Program = program
        self.tools: ToolSet = tools
        self.receiver: EventReceiver = receiver
        self.max_held: int = max_held
        """Most characters that speculation may keep."""
        self.reasoning_calls: int = reasoning_calls
        """When a call inside reasoning counts: DRAFTS_RECOVER, DRAFTS_IMMEDIATELY or DRAFTS_NEVER."""
        self.shows_cut_calls: bool = False
        """True if an opener or header that the output ends after becomes text; else it is dropped."""
        self.config_events: ConfigEvents | None = None
        self.call_policy: CallPolicy | None = None
        self.scanner: TokenScanner | None = None
        self.checks_ids: bool = False
        """True if a literal with a special token is a marker only if its token id has come."""
        self.cur: Cursor = Cursor()
        self.base: int = 0
        """Where ``cur.text`` begins in the output."""
        self.ledger: Ledger = Ledger()
        self.state: TextState = program.states[program.start_without_prompt]
        """The state of free text."""
        self.spaces: list[str] = NO_TEXTS
        """White space that waits: it is text if text follows it, and markup if a marker does."""
        self.calls: list[CallState] = NO_CALLS
        self.forget_call: Callable[[CallState, ToolSet], None] | None = None
        """Takes the tools and each call that is forgotten, which all but the last are before another one begins. None:
        they are kept, for the result."""
        self.section: int = NO_SECTION
        """The section of calls: NO_SECTION, OPEN_SECTION or TEXT_SECTION."""
        self.speculation: Speculation = NOTHING_KEPT
        self.tentative: TentativeCalls | None = None
        self.held_arguments: list[str] | None = None
        """Arguments so far of a call that is held back until the call policy can decide on it; None without one."""

    # -- markers ------------------------------------------------------------------------------------------------

    def may_be_marker(self, start: int, end: int) -> bool:
        """True if the literal at ``cur.text[start:end]`` may be a marker: its token id has come, or it is not a special
        token, or no ids are in use."""
        scanner = self.scanner
        if scanner is None or not scanner.active:
            return True
        return scanner.proof(self.cur.text[start:end], self.base + start) >= 0

    def has_id(self, start: int, end: int) -> bool:
        """True if a token id proves that the literal is a marker."""
        scanner = self.scanner
        if scanner is None or not scanner.active:
            return False
        return scanner.proof(self.cur.text[start:end], self.base + start) > 0

    def is_special(self, literal: str) -> bool:
        """True if the literal has a special token, and ids are in use that prove it."""
        scanner = self.scanner
        return scanner is not None and scanner.active and scanner.holds(literal)

    def marker_at(self, literals: Literals) -> int:
        """Return where the literal at the cursor ends, if it may be a marker; NO_MATCH or MORE."""
        cur = self.cur
        end = literals.at(cur.text, cur.pos, cur.final)
        if end >= 0 and self.checks_ids and not self.may_be_marker(cur.pos, end):
            return NO_MATCH
        return end

    # -- accounting ---------------------------------------------------------------------------------------------

    def mark(self, kind: int, pos: int) -> None:
        """Account for everything before ``cur.text[pos]`` that is not accounted for yet, as ``kind``."""
        ledger = self.ledger
        end = self.base + pos
        if ledger.spans is not None:
            ledger.mark(kind, end)
        elif end > ledger.frontier:
            ledger.frontier = end

    def report(self, code: DiagnosticCode, start: int, end: int) -> None:
        """Report a problem with ``cur.text[start:end]``."""
        self.ledger.report(code, self.base + start, self.base + end)

    def drop(self, code: DiagnosticCode, end: int) -> None:
        """Report the text from the cursor to ``end``, and drop it. What is before it was markup."""
        self.mark(MARKUP, self.cur.pos)
        self.report(code, self.cur.pos, end)
        self.cur.pos = end
        self.mark(DROPPED, end)

    # -- white space --------------------------------------------------------------------------------------------

    def skip_spaces(self, after_call: bool) -> bool:
        """Read white space, which waits if it comes ``after_call``. Return True if text follows it."""
        cur = self.cur
        found = SPACES.match(cur.text, cur.pos)
        end = cur.pos if found is None else found.end()
        if end > cur.pos:
            if after_call and self.holds_space:
                self.hold_space(end)
            else:
                cur.pos = end
        return end < len(cur.text)

    def hold_space(self, end: int) -> None:
        """Read white space up to ``end`` that belongs to whatever follows it."""
        cur = self.cur
        self.spaces = grown(self.spaces, cur.text[cur.pos : end])
        cur.pos = end
        self.limit_spaces(self.base + end)

    def limit_spaces(self, end: int) -> None:
        """Emit white space that waits, up to ``end`` of the output, if there is too much of it: it is text, and only
        the rest may still belong to a marker."""
        while end - self.ledger.frontier > self.max_held and not self.speculation.active:
            waiting = "".join(self.spaces)
            self.spaces = [waiting[self.max_held :]]
            frontier = self.ledger.frontier + self.max_held
            if self.state.region == IN_REASONING:
                self.receiver.reasoning(waiting[: self.max_held])
                self.ledger.mark(REASONING_TEXT, frontier)
            else:
                self.receiver.content(waiting[: self.max_held])
                self.ledger.mark(CONTENT_TEXT, frontier)

    def drop_space(self) -> None:
        """Forget the white space that waits: markup follows, and it belongs to that."""
        self.spaces = NO_TEXTS

    # -- speculation --------------------------------------------------------------------------------------------

    def speculate(self, opener: int) -> None:
        """Keep all text from the cursor on: it may become text again. Its first ``opener`` characters are a marker."""
        if not self.speculation.active:
            if self.forget_call is not None and len(self.calls) > 1:
                last = self.calls.pop()
                for call in self.calls:
                    self.forget_call(call, self.tools)
                    last.follows_whole = last.follows_whole or call.ending != CUT or call.follows_whole
                self.calls = [last]
            if self.scanner is not None:
                self.scanner.forget(self.base)
            if not self.speculation.number:
                self.speculation = Speculation()
            self.speculation.begin(self.cur.pos, opener, self.state, self.section, len(self.calls), self.spaces)
            self.ledger.save()

    def begin_tentative_calls(self, kind: int, closing: str = "") -> None:
        """Record the calls that begin here, until it is decided if they are calls. ``closing``: as in them."""
        self.tentative = TentativeCalls(self.receiver, len(self.calls), kind, closing)
        self.receiver = self.tentative.recorder

    @property
    def text_makes_text(self) -> bool:
        """True if calls that have been read become text again before text that follows them."""
        return self.speculation.active and (self.tentative is None or self.tentative.kind == IN_REASONING_TEXT)

    @property
    def holds_space(self) -> bool:
        """True if white space after a call waits for what follows it."""
        return self.held_arguments is not None or not self.text_makes_text

    def mark_closed(self) -> None:
        """Account for what closes a call, up to the white space that waits after it."""
        waiting = sum(map(len, self.spaces)) if self.holds_space else 0
        self.mark(MARKUP, self.cur.pos - waiting)

    def end_speculation(self) -> None:
        """End speculation, because what was read is a call or a header. Around tentative calls it goes on."""
        if self.tentative is None:
            self.speculation.end()

    def undo_speculation(self) -> None:
        """Undo the calls, spans and diagnostics that speculation has recorded."""
        if self.tentative is not None:
            self.receiver = self.tentative.out
            self.tentative = None
        self.held_arguments = None
        speculation = self.speculation
        speculation.end()
        self.section = speculation.section
        self.spaces = list(speculation.spaces) if speculation.spaces else NO_TEXTS
        self.ledger.roll_back()
        del self.calls[speculation.calls :]


@mypyc_attr(allow_interpreted_subclasses=True)
class ConfigEvents:
    """Interface to the events of a hand-written config (vLLM's ``ParserEngineConfig``)."""

    def accepts(self, text: str, pos: int, start: int) -> bool:
        """True if the literal at ``text[start:]`` is a marker. Text before ``pos`` has been emitted."""
        return True

    def take(self, rule: MarkerRule, literal: str, start: int) -> int:
        """Emit the events of a marker at ``start`` of the output. Return its kind for the ledger."""
        return MARKUP

    def chunk(self, region: int, text: str, start: int) -> int:
        """Emit text that is neither content nor reasoning. Return its kind for the ledger."""
        return DROPPED
