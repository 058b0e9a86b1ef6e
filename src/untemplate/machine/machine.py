"""The machine: one output in, in any pieces; what it means out, at once.

Rules of this module:

* ``feed`` reads as far as the text decides and keeps the rest. What is kept is a partial literal, the white space in
  front of a possible marker, or text that may have to be given back; nothing else.
* It has a reader for free text, one for calls and one for headers, and goes by their answers (*mode*). What begins as a
  call and is none becomes text again, whole (*speculation*).
* A call inside reasoning is a *reasoning_call*: it counts only if the output ends before anything else is said.
* Everything is accounted for: ``mark`` moves the frontier, and every character is on one side of it.
"""

from __future__ import annotations

from typing import Final, final

from .call_policy import AS_CONTENT, DROP, CallPolicy
from .call_state import CallState
from .calls import CallReader
from .coercion import ToolSet
from .context import READ_CALL, READ_HEADER, READ_HEADER_START, READ_TEXT, READ_TURN_END, ReaderContext
from .diagnostics import DiagnosticCode
from .events import EventReceiver, emit_call
from .free_text import FreeText
from .headers import HeaderReader
from .ids import IdFactory
from .ledger import ARGUMENT_TEXT, DROPPED, MARKUP, Ledger
from .lexer import WS, Cursor
from .program import CLOSE_REASONING, END_TURN, IN_REASONING, OPEN_BARE_CALLS, OPEN_CALLS, MarkerRule, Program
from .reasoning_call import ReasoningCall
from .scanner import TokenScanner
from .signals import MORE, NO_MATCH
from .speculation import Speculation

# A mode of the machine's own, beside those that readers answer.
READ_AFTER_REASONING_CALL: Final = 5

# Policy on calls inside reasoning.
RECOVER: Final = 0
IMMEDIATELY: Final = 1
NEVER: Final = 2


@final
class Machine(ReaderContext):
    """Runs a Program on one output."""

    def __init__(
        self,
        program: Program,
        tools: ToolSet,
        receiver: EventReceiver,
        make_id: IdFactory,
        first_index: int,
        max_held: int,
        reasoning_calls: int,
    ) -> None:
        self.program = program
        self.tools = tools
        self.receiver = receiver
        self.cur = Cursor()
        self.base = 0
        self.checks_ids = False
        self.in_reasoning_call = False
        self.holds_call = False
        self.max_held = max_held
        self.calls: list[CallState] = []
        self.ledger = Ledger()
        self.scanner: TokenScanner | None = None
        self.config_events = None
        self.call_policy: CallPolicy | None = None
        self.finished: bool = False
        self._make_id: IdFactory = make_id
        self._first_index: int = first_index
        self._reasoning_calls: int = reasoning_calls
        self._reasoning_call: ReasoningCall | None = None
        self._mode: int = READ_HEADER_START if program.header_first else READ_TEXT
        state = program.states[program.no_prompt]
        self.speculation = Speculation(state)
        self._reader: CallReader = CallReader(self)
        self._text: FreeText = FreeText(self, self._reader, state, reasoning_calls != NEVER)
        self._headers: HeaderReader = HeaderReader(self, self._reader, self._text)
        # A call that is kept back for the policy.
        self._spaces_before: list[str] = []
        self._arguments: list[str] = []
        self._last_is_text: bool = False
        """Whether the last call has become text again by the policy's word."""

    # -- in -----------------------------------------------------------------------------------------------------

    def feed(self, text: str) -> None:
        """More of the output."""
        cur = self.cur
        if self._mode == READ_TEXT and not cur.text:
            if self._text.passes(text):
                self.base += len(text)
                self._text.emit(text, self.base)
                return
        elif self._mode == READ_CALL and not cur.text and not self.speculation.active and self._reader.passes(text):
            self.base += len(text)
            self.mark(ARGUMENT_TEXT, 0)
            return
        room = self._room()
        while len(text) > room:
            self._read(text[:room])
            text = text[room:]
            room = self._room()
        self._read(text)

    def _room(self) -> int:
        """How many characters may be read before it has to be seen whether too much is held, counted from where
        speculation began, or may begin. What is given back must not depend on how the output was cut."""
        return max(self.max_held - self.speculation.size - len(self.cur.text), 1)

    def _read(self, text: str) -> None:
        cur = self.cur
        cur.text = cur.text + text if cur.text else text
        self._run()
        self._compact()

    def finish(self) -> None:
        """The output has ended."""
        if self.finished:
            return
        self.finished = True
        self.cur.final = True
        while True:
            self._run()
            if not self._wind_up():
                break
        self._text.finish()
        self.base += self.cur.pos
        self.cur.pos = 0
        self.cur.text = ""
        self.mark(MARKUP, 0)

    def enter(self, index: int) -> None:
        """A hand-written config begins in this state."""
        self._text.state = self.program.states[index]

    def switch(self, program: Program) -> None:
        """Another Program with the same states goes on from here."""
        self._text.state = program.states[self.state_index]
        self.program = program

    @property
    def state_index(self) -> int:
        return self.program.states.index(self._text.state)

    def open_reasoning(self) -> None:
        """The prompt leaves reasoning open."""
        self._enter_text(self.program.reasoning)
        self._text.fresh = True

    def start_turn(self) -> None:
        """The prompt ends in the opening of an assistant turn, and nothing of the turn has come yet."""
        self._enter_text(self.program.after_turn_start)
        self._text.fresh = True
        if self.program.header_first:
            self._mode = READ_HEADER_START

    def start_output(self) -> None:
        """What has been fed so far was the prompt's: the output begins here, in the state that it led to."""
        cur = self.cur
        self.base = 0
        cur.text = ""
        cur.pos = 0
        text = self._text
        text.spaces = []
        self.speculation.restart()
        self.calls = []
        self.ledger.clear()
        in_call = self._mode == READ_CALL and (self._reader.committed or self._reader.any)
        if self.in_reasoning_call:
            # What began as a call in the prompt's reasoning is reasoning there.
            self.speculation.active = False
            self.in_reasoning_call = False
            self._reasoning_call = None
            self.open_reasoning()
        elif in_call or self._mode == READ_TURN_END:
            self.speculation.active = False
            self.start_turn()
        elif self._mode == READ_CALL or self._mode == READ_HEADER:
            text.fresh = True
        text.after_call = False

    @property
    def in_reasoning(self) -> bool:
        return self._text.state.region == IN_REASONING

    @property
    def offset(self) -> int:
        """Characters that have been decided."""
        return self.base

    def _run(self) -> None:
        while True:
            mode = self._mode
            if mode == READ_TEXT:
                go_on = self._free_text()
            elif mode == READ_CALL:
                go_on = self._call()
            elif mode == READ_TURN_END:
                go_on = self._turn_end()
            elif mode == READ_HEADER_START:
                go_on = self._header(self._headers.start())
            elif mode == READ_HEADER:
                go_on = self._header(self._headers.step())
            else:
                go_on = self._after_reasoning_call()
            if not go_on:
                return

    def _compact(self) -> None:
        """Lets go of what has been read."""
        cur = self.cur
        pos = cur.pos
        if pos:
            if self.speculation.active:
                self.speculation.keep(cur)
            self.base += pos
            cur.text = cur.text[pos:]
            cur.pos = 0
        if self.speculation.active and self.speculation.size + len(cur.text) >= self.max_held:
            self.ledger.report("held_too_long", self.ledger.saved, self.ledger.saved)
            self._release(too_long=True)
            self._run()
            self._compact()

    def _wind_up(self) -> bool:
        """The text is over: what the mode makes of that. True: there is text to read again."""
        mode = self._mode
        if mode == READ_CALL:
            if self._reader.finish():
                if self.in_reasoning_call:
                    return self._end_reasoning_call(False)
                self._mode = READ_TEXT
                self._text.after_call = True
                self.close_call()
                return False
            if self._reasoning_call is not None and self._reasoning_call.safe:
                return self._end_reasoning_call(True)
            self._release()
            return True
        if mode == READ_HEADER or (mode == READ_HEADER_START and self.speculation.active):
            self.cur.pos = len(self.cur.text)
            self._release()
            return True
        if mode == READ_TURN_END:
            self.confirm()
            self._text.spaces = []
            self._mode = READ_TEXT
        elif mode == READ_AFTER_REASONING_CALL:
            return self._end_reasoning_call(False)
        return False

    # -- accounting ---------------------------------------------------------------------------------------------

    def mark(self, kind: int, pos: int) -> None:
        self.ledger.mark(kind, self.base + pos)

    def report(self, code: DiagnosticCode, start: int, end: int) -> None:
        self.ledger.report(code, self.base + start, self.base + end)

    def accounted(self) -> int:
        return self.ledger.frontier

    def drop_arguments(self, start: int) -> None:
        self.ledger.report("unused_member", start, self.ledger.frontier)
        self.ledger.change(ARGUMENT_TEXT, DROPPED, start)

    # -- token ids ----------------------------------------------------------------------------------------------

    def authorised(self, start: int, end: int) -> bool:
        scanner = self.scanner
        if scanner is None or not scanner.active:
            return True
        return scanner.covers(self.cur.text[start:end], self.base + start)

    def proven(self, start: int, end: int) -> bool:
        """Whether a token id says that the literal is a marker."""
        scanner = self.scanner
        if scanner is None or not scanner.active:
            return False
        literal = self.cur.text[start:end]
        return scanner.holds(literal) and scanner.covers(literal, self.base + start)

    # -- free text ----------------------------------------------------------------------------------------------

    def _free_text(self) -> bool:
        """False: all text has been read. As everywhere here: nothing more can be done before more text has come."""
        answer = self._text.step()
        if answer == MORE:
            return False
        if answer == READ_CALL:
            self._enter_calls(self._text.rule, self._text.marker_end)
        else:
            self._mode = answer
        return True

    def _enter_text(self, index: int) -> None:
        self._text.enter(index)
        self._mode = READ_TEXT

    # -- speculation --------------------------------------------------------------------------------------------

    def speculate(self, opener: int) -> None:
        if self.speculation.active:
            return
        self.speculation.begin(self.cur.pos, opener, self._text.state, self._reader.in_section, len(self.calls))
        self.ledger.save()

    def confirm(self) -> None:
        if not self.in_reasoning_call:
            self.speculation.end()

    def _release(self, too_long: bool = False) -> None:
        """What was read is no call: it is text, whole, and at least the character that begins it (unless that stands in
        the prompt)."""
        cur = self.cur
        speculation = self.speculation
        if speculation.opener and not speculation.length(cur) and cur.pos < len(cur.text):
            cur.pos += 1
        raw = speculation.raw(cur)
        reaches_back = speculation.reaches_back
        reasoning_call = self._reasoning_call
        had_calls = len(self.calls) > speculation.calls
        self._forget()
        self._text.state = speculation.origin
        self._mode = READ_TEXT
        if reasoning_call is not None and reasoning_call.close >= 0:
            # Reasoning was closed behind the reasoning_call, and the output went on.
            before = raw[: reasoning_call.close]
            rest = raw[reasoning_call.close :]
            self._text.emit_trimmed(before, self.base + cur.pos - len(rest))
            cur.text = rest + cur.text[cur.pos :]
            self.base += cur.pos - len(rest)
            cur.pos = 0
            self._text.close_reasoning(reasoning_call.after - reasoning_call.close)
            return
        start = self.base + cur.pos - len(raw)
        # Behind the opener other markers may stand.
        size = speculation.give_back(start, len(raw), had_calls or too_long)
        if reaches_back:
            cur.text = raw[size:] + cur.text[cur.pos :]
            cur.pos = 0
            self.base = start + size
        else:
            cur.pos -= len(raw) - size
        self._text.emit_trimmed(raw[:size], start + size)

    def _forget(self) -> None:
        """Takes back what speculation has noted down."""
        if self._reasoning_call is not None:
            self.receiver = self._reasoning_call.out
        speculation = self.speculation
        speculation.end()
        self.in_reasoning_call = False
        self._reasoning_call = None
        self.holds_call = False
        self._reader.in_section = speculation.in_section
        self.ledger.roll_back()
        del self.calls[speculation.calls :]

    # -- calls --------------------------------------------------------------------------------------------------

    def _enter_calls(self, rule: MarkerRule, end: int) -> None:
        """Free text has met what calls begin with. (A header enters its call by itself.)"""
        cur = self.cur
        self.speculate(end - cur.pos)
        if self._text.state.region == IN_REASONING and self._reasoning_calls == RECOVER and not self.in_reasoning_call:
            self.in_reasoning_call = True
            self._reasoning_call = ReasoningCall(self.receiver, len(self.calls))
            self.receiver = self._reasoning_call.recorder
        if rule.kind != OPEN_BARE_CALLS:
            cur.pos = end
        call_syntaxes = self.program.call_syntaxes
        self._reader.enter([(call_syntaxes[i], entry) for i, entry in rule.entries], rule.ambiguous)
        self._mode = READ_CALL

    def _call(self) -> bool:
        answer = self._reader.step()
        if answer == MORE:
            return False
        if answer == NO_MATCH:
            self._release()
            return True
        if self._reasoning_call is not None:
            self.mark(MARKUP, self.cur.pos)
            self._reasoning_call.safe = self.speculation.length(self.cur)
            self._mode = READ_AFTER_REASONING_CALL
            return True
        self._enter_text(self.program.content)
        self._text.at_start = False
        self._text.fresh = False
        self._text.after_call = not self._last_is_text
        if self.program.header_first:
            self._mode = READ_HEADER_START
        return True

    def begin_call(self, name: str, call_id: str) -> None:
        index = len(self.calls)
        call = CallState(index, call_id or self._make_id(name, self._first_index + index), name)
        call.start = self.ledger.frontier
        self.calls.append(call)
        if self.call_policy is not None and not self.in_reasoning_call:
            self.holds_call = True
            self._spaces_before = self._text.spaces
            self._text.spaces = []
            self._arguments = []
            return
        if not self.in_reasoning_call:
            self.confirm()
            self._text.spaces = []
            self._leave_reasoning()
        self.receiver.call_start(index, call.id, name)

    def arguments(self, text: str) -> None:
        if self.holds_call:
            self._arguments.append(text)
        else:
            self.receiver.arguments(len(self.calls) - 1, text)

    def end_call(self, whole: bool, valid: bool) -> None:
        call = self.calls[-1]
        call.whole = whole
        call.valid = valid
        call.end = self.base + self.cur.pos
        if whole and not self.holds_call:
            self.receiver.call_end(call.index)

    def close_call(self) -> None:
        """The call is closed: what has been kept back is decided."""
        if self._reasoning_call is not None:
            self.mark(MARKUP, self.cur.pos)
            self._reasoning_call.safe = self.speculation.length(self.cur)
        policy = self.call_policy
        if policy is None or not self.holds_call:
            return
        self.holds_call = False
        call = self.calls[-1]
        verdict = policy.decide(call, "".join(self._arguments), call.index)
        self._arguments = []
        behind = sum(map(len, self._text.spaces))
        self._last_is_text = verdict == AS_CONTENT
        if verdict == AS_CONTENT:
            raw = self.speculation.raw(self.cur)
            reader = self._reader
            opened = reader.in_section and not self.speculation.in_section
            self._forget()
            reader.given_back(opened)
            self._text.spaces = self._spaces_before
            self._leave_reasoning()
            self._text.emit_trimmed(raw, self.base + self.cur.pos)
            return
        self.confirm()
        self._leave_reasoning()
        self.mark(MARKUP, self.cur.pos - behind)
        if verdict == DROP:
            self.calls.pop()
            self.ledger.change_all(DROPPED)
            self.ledger.report("dropped_call", self.ledger.saved, self.ledger.frontier)
            return
        emit_call(self.receiver, call, policy.arguments)

    def _leave_reasoning(self) -> None:
        """A call ends reasoning."""
        if self._text.state.region == IN_REASONING:
            self.receiver.reasoning_end()
        self._text.state = self.program.states[self.program.content]

    def set_model_id(self, call_id: str) -> None:
        self.calls[-1].model_id = call_id

    def hold_space(self, end: int) -> None:
        cur = self.cur
        self._text.spaces.append(cur.text[cur.pos : end])
        cur.pos = end

    def drop_space(self) -> None:
        self._text.spaces = []

    # -- drafts -------------------------------------------------------------------------------------------------

    def _after_reasoning_call(self) -> bool:
        """Behind a whole call inside reasoning. Another call, the close of reasoning and the end leave it standing;
        anything else means that it was reasoning."""
        reasoning_call = self._reasoning_call
        assert reasoning_call is not None
        cur = self.cur
        cur.pos = cur.spaces()
        if cur.pos >= len(cur.text):
            return False
        state = self.speculation.origin
        end = state.literals.at(cur.text, cur.pos, cur.final)
        if end == MORE:
            return False
        if end >= 0 and (not self.checks_ids or self.authorised(cur.pos, end)):
            rule = state.rules[state.literals.tags[cur.text[cur.pos : end]]]
            if rule.kind == OPEN_CALLS and reasoning_call.close < 0:
                self._enter_calls(rule, end)
                return True
            if rule.kind == CLOSE_REASONING and reasoning_call.close < 0:
                reasoning_call.close = self.speculation.length(cur)
                reasoning_call.after = reasoning_call.close + end - cur.pos
                cur.pos = end
                return True
            if rule.kind == END_TURN:
                cur.pos = end
                return True
        self._release()
        return True

    def _end_reasoning_call(self, further: bool) -> bool:
        """Accept the calls inside reasoning that the output ended on, if the call policy does. ``further``: after them
        another began that never became one. True: they become text, which has to be read again."""
        reasoning_call = self._reasoning_call
        assert reasoning_call is not None
        kept = reasoning_call.decided(self.call_policy, self.calls, self.ledger)
        if kept is None:
            self._release()
            return True
        self.calls = kept
        rest = ""
        if further:
            self.cur.pos = len(self.cur.text)
            rest = self.speculation.raw(self.cur)[reasoning_call.safe :]
            self.ledger.back_to(self.base + self.cur.pos - len(rest))
        self.speculation.end()
        self.in_reasoning_call = False
        self._reasoning_call = None
        self._text.spaces = []
        self.receiver = reasoning_call.out
        self.receiver.reasoning_end()
        reasoning_call.tell(kept)
        self._text.state = self.program.states[self.program.content]
        self._mode = READ_TEXT
        self._text.after_call = True
        if rest.strip(WS):
            self._text.emit(rest, self.base + self.cur.pos)
        return False

    # -- the end of the turn, and headers -----------------------------------------------------------------------

    def _turn_end(self) -> bool:
        """Behind an end-of-turn marker found in text: it is one if nothing follows."""
        cur = self.cur
        cur.pos = cur.spaces()
        if cur.pos >= len(cur.text):
            return False
        literals = self.program.turn_end
        end = literals.at(cur.text, cur.pos, cur.final)
        if end == MORE:
            return False
        if end >= 0:
            cur.pos = end
            return True
        self._release()
        return True

    def _header(self, result: int) -> bool:
        """Go on as the reader of headers returned."""
        if result == MORE:
            return False
        if result == NO_MATCH:
            self._release()
            if self._headers.goes_on_in_content:
                self._text.state = self.program.states[self.program.content]
            return True
        self._mode = result
        return True
