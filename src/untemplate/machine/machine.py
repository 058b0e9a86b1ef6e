"""The machine: one output in, in any pieces; what it means out, at once.

Rules of this module:

* ``feed`` reads as far as the text decides and keeps the rest. What is kept is a partial literal, the white space in
  front of a possible marker, or text that may have to be given back; nothing else.
* It has a reader for free text, one for calls and one for headers, and goes by their answers (*mode*). What begins as a
  call and is none becomes text again, whole (*speculation*).
* A call inside reasoning is a *draft*: it counts only if the output ends before anything else is said.
* Everything is accounted for: ``mark`` moves the frontier, and every character is on one side of it.
"""

from __future__ import annotations

from typing import Final, final

from .calls import FAILED, CallReader
from .calls import MORE as CALLS_MORE
from .coercion import ToolSet
from .drafts import Draft
from .events import Sink, tell_call
from .free_text import FreeText
from .headers import MESSAGE, NO_HEADER, NO_TOOLS, HeaderReader
from .host import CALL, HEADER, HEADER_START, TEXT, TURN_END, WAIT, Host
from .ids import IdFactory
from .judge import AS_CONTENT, DROP, Call, Judge
from .ledger import ARGUMENT_TEXT, DROPPED, MARKUP, Ledger
from .lexer import MORE as LITERAL_MORE
from .lexer import WS, Cursor
from .program import BARE, CLOSE_REASONING, END_TURN, OPEN_CALLS, REASONING, Edge, Program
from .scanner import TokenScanner
from .speculation import Speculation

# A mode of the machine's own, beside those that readers answer.
DRAFT_WAIT: Final = 5

# Policy on calls inside reasoning.
RECOVER: Final = 0
IMMEDIATELY: Final = 1
NEVER: Final = 2


@final
class Machine(Host):
    """Runs a Program on one output."""

    def __init__(
        self,
        program: Program,
        tools: ToolSet,
        sink: Sink,
        make_id: IdFactory,
        first_index: int,
        max_held: int,
        drafts: int,
    ) -> None:
        self.program = program
        self.tools = tools
        self.sink = sink
        self.cur = Cursor()
        self.base = 0
        self.checks = False
        self.drafting = False
        self.judging = False
        self.max_held = max_held
        self.calls: list[Call] = []
        self.ledger = Ledger()
        self.scanner: TokenScanner | None = None
        self.config_events = None
        self.judge: Judge | None = None
        self.finished: bool = False
        self._make_id: IdFactory = make_id
        self._first_index: int = first_index
        self._drafts: int = drafts
        self._draft: Draft | None = None
        self._mode: int = HEADER_START if program.header_first else TEXT
        state = program.states[program.no_prompt]
        self.speculation = Speculation(state)
        self._reader: CallReader = CallReader(self)
        self._text: FreeText = FreeText(self, self._reader, state, drafts != NEVER)
        self._headers: HeaderReader = HeaderReader(self, self._reader)
        # A call that is kept back for the judge.
        self._spaces_before: list[str] = []
        self._arguments: list[str] = []
        self._last_is_text: bool = False
        """Whether the last call has become text again by the judge's word."""

    # -- in -----------------------------------------------------------------------------------------------------

    def feed(self, text: str) -> None:
        """More of the output."""
        cur = self.cur
        if self._mode == TEXT and not cur.text:
            if self._text.passes(text):
                self.base += len(text)
                self._text.emit(text, self.base)
                return
        elif self._mode == CALL and not cur.text and not self.speculation.active and self._reader.passes(text):
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
            self._mode = HEADER_START

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
        in_call = self._mode == CALL and (self._reader.committed or self._reader.any)
        if self.drafting:
            # What began as a call in the prompt's reasoning is reasoning there.
            self.speculation.active = False
            self.drafting = False
            self._draft = None
            self.open_reasoning()
        elif in_call or self._mode == TURN_END:
            self.speculation.active = False
            self.start_turn()
        elif self._mode == CALL or self._mode == HEADER:
            text.fresh = True
        text.after_call = False

    @property
    def in_reasoning(self) -> bool:
        return self._text.state.region == REASONING

    @property
    def offset(self) -> int:
        """Characters that have been decided."""
        return self.base

    def _run(self) -> None:
        while True:
            mode = self._mode
            if mode == TEXT:
                go_on = self._free_text()
            elif mode == CALL:
                go_on = self._call()
            elif mode == TURN_END:
                go_on = self._turn_end()
            elif mode == HEADER_START:
                go_on = self._header_start()
            elif mode == HEADER:
                go_on = self._headed(self._headers.step())
            else:
                go_on = self._draft_wait()
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
        if mode == CALL:
            if self._reader.finish():
                if self.drafting:
                    return self._end_draft(False)
                self._mode = TEXT
                self._text.after_call = True
                self.call_over()
                return False
            if self._draft is not None and self._draft.safe:
                return self._end_draft(True)
            self._release()
            return True
        if mode == HEADER or (mode == HEADER_START and self.speculation.active):
            self.cur.pos = len(self.cur.text)
            self._release()
            return True
        if mode == TURN_END:
            self.settle()
            self._text.spaces = []
            self._mode = TEXT
        elif mode == DRAFT_WAIT:
            return self._end_draft(False)
        return False

    # -- accounting ---------------------------------------------------------------------------------------------

    def mark(self, kind: int, pos: int) -> None:
        self.ledger.mark(kind, self.base + pos)

    def report(self, code: str, start: int, end: int) -> None:
        self.ledger.report(code, self.base + start, self.base + end)

    def accounted(self) -> int:
        return self.ledger.frontier

    def disown(self, start: int) -> None:
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
        if answer == WAIT:
            return False
        if answer == CALL:
            self._enter_calls(self._text.edge, self._text.edge_end)
        else:
            self._mode = answer
        return True

    def _enter_text(self, index: int) -> None:
        self._text.enter(index)
        self._mode = TEXT

    # -- speculation --------------------------------------------------------------------------------------------

    def speculate(self, opener: int) -> None:
        if self.speculation.active:
            return
        self.speculation.begin(self.cur.pos, opener, self._text.state, self._reader.in_section, len(self.calls))
        self.ledger.save()

    def settle(self) -> None:
        if not self.drafting:
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
        draft = self._draft
        had_calls = len(self.calls) > speculation.calls
        self._forget()
        self._text.state = speculation.origin
        self._mode = TEXT
        if draft is not None and draft.close >= 0:
            # Reasoning was closed behind the draft, and the output went on.
            before = raw[: draft.close]
            rest = raw[draft.close :]
            self._text.say(before, self.base + cur.pos - len(rest))
            cur.text = rest + cur.text[cur.pos :]
            self.base += cur.pos - len(rest)
            cur.pos = 0
            self._text.close_reasoning(draft.after - draft.close)
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
        self._text.say(raw[:size], start + size)

    def _forget(self) -> None:
        """Takes back what speculation has noted down."""
        if self._draft is not None:
            self.sink = self._draft.out
        speculation = self.speculation
        speculation.end()
        self.drafting = False
        self._draft = None
        self.judging = False
        self._reader.in_section = speculation.in_section
        self.ledger.roll_back()
        del self.calls[speculation.calls :]

    # -- calls --------------------------------------------------------------------------------------------------

    def _enter_calls(self, edge: Edge, end: int) -> None:
        """Free text has met what calls begin with. (A header enters its call by itself.)"""
        cur = self.cur
        self.speculate(end - cur.pos)
        if self._text.state.region == REASONING and self._drafts == RECOVER and not self.drafting:
            self.drafting = True
            self._draft = Draft(self.sink, len(self.calls))
            self.sink = self._draft.recorder
        if edge.kind != BARE:
            cur.pos = end
        grammars = self.program.grammars
        self._reader.enter([(grammars[i], entry) for i, entry in edge.entries], edge.weak)
        self._mode = CALL

    def _call(self) -> bool:
        answer = self._reader.step()
        if answer == CALLS_MORE:
            return False
        if answer == FAILED:
            self._release()
            return True
        if self._draft is not None:
            self.mark(MARKUP, self.cur.pos)
            self._draft.safe = self.speculation.length(self.cur)
            self._mode = DRAFT_WAIT
            return True
        self._enter_text(self.program.content)
        self._text.at_start = False
        self._text.fresh = False
        self._text.after_call = not self._last_is_text
        if self.program.header_first:
            self._mode = HEADER_START
        return True

    def begin_call(self, name: str, call_id: str) -> None:
        index = len(self.calls)
        call = Call(index, call_id or self._make_id(name, self._first_index + index), name)
        call.start = self.ledger.frontier
        self.calls.append(call)
        if self.judge is not None and not self.drafting:
            self.judging = True
            self._spaces_before = self._text.spaces
            self._text.spaces = []
            self._arguments = []
            return
        if not self.drafting:
            self.settle()
            self._text.spaces = []
            self._leave_reasoning()
        self.sink.call_start(index, call.id, name)

    def arguments(self, text: str) -> None:
        if self.judging:
            self._arguments.append(text)
        else:
            self.sink.arguments(len(self.calls) - 1, text)

    def end_call(self, whole: bool, valid: bool) -> None:
        call = self.calls[-1]
        call.whole = whole
        call.valid = valid
        call.end = self.base + self.cur.pos
        if whole and not self.judging:
            self.sink.call_end(call.index)

    def call_over(self) -> None:
        """The call is closed: what has been kept back is judged."""
        if self._draft is not None:
            self.mark(MARKUP, self.cur.pos)
            self._draft.safe = self.speculation.length(self.cur)
        judge = self.judge
        if judge is None or not self.judging:
            return
        self.judging = False
        call = self.calls[-1]
        verdict = judge.judge(call, "".join(self._arguments), call.index)
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
            self._text.say(raw, self.base + self.cur.pos)
            return
        self.settle()
        self._leave_reasoning()
        self.mark(MARKUP, self.cur.pos - behind)
        if verdict == DROP:
            self.calls.pop()
            self.ledger.change_all(DROPPED)
            self.ledger.report("dropped_call", self.ledger.saved, self.ledger.frontier)
            return
        tell_call(self.sink, call, judge.arguments)

    def _leave_reasoning(self) -> None:
        """A call ends reasoning."""
        if self._text.state.region == REASONING:
            self.sink.reasoning_end()
        self._text.state = self.program.states[self.program.content]

    def model_id(self, call_id: str) -> None:
        self.calls[-1].model_id = call_id

    def pend(self, end: int) -> None:
        cur = self.cur
        self._text.spaces.append(cur.text[cur.pos : end])
        cur.pos = end

    def unpend(self) -> None:
        self._text.spaces = []

    # -- drafts -------------------------------------------------------------------------------------------------

    def _draft_wait(self) -> bool:
        """Behind a whole call inside reasoning. Another call, the close of reasoning and the end leave it standing;
        anything else means that it was reasoning."""
        draft = self._draft
        assert draft is not None
        cur = self.cur
        cur.pos = cur.spaces()
        if cur.pos >= len(cur.text):
            return False
        state = self.speculation.origin
        end = state.literals.at(cur.text, cur.pos, cur.final)
        if end == LITERAL_MORE:
            return False
        if end >= 0 and (not self.checks or self.authorised(cur.pos, end)):
            edge = state.edges[state.literals.tags[cur.text[cur.pos : end]]]
            if edge.kind == OPEN_CALLS and draft.close < 0:
                self._enter_calls(edge, end)
                return True
            if edge.kind == CLOSE_REASONING and draft.close < 0:
                draft.close = self.speculation.length(cur)
                draft.after = draft.close + end - cur.pos
                cur.pos = end
                return True
            if edge.kind == END_TURN:
                cur.pos = end
                return True
        self._release()
        return True

    def _end_draft(self, further: bool) -> bool:
        """The output ends on the draft: it is a call. ``further``: behind it another began that never became one.
        True: it is none after all, and there is text to read again."""
        draft = self._draft
        assert draft is not None
        kept = draft.judged(self.judge, self.calls, self.ledger)
        if kept is None:
            self._release()
            return True
        self.calls = kept
        rest = ""
        if further:
            self.cur.pos = len(self.cur.text)
            rest = self.speculation.raw(self.cur)[draft.safe :]
            self.ledger.back_to(self.base + self.cur.pos - len(rest))
        self.speculation.end()
        self.drafting = False
        self._draft = None
        self._text.spaces = []
        self.sink = draft.out
        self.sink.reasoning_end()
        draft.tell(kept)
        self._text.state = self.program.states[self.program.content]
        self._mode = TEXT
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
        if end == LITERAL_MORE:
            return False
        if end >= 0:
            cur.pos = end
            return True
        self._release()
        return True

    def _header_start(self) -> bool:
        """Where a header may begin: at the start, and behind a message."""
        text = self._text
        return self._headed(self._headers.start(text.at_start and not text.after_call))

    def _headed(self, answer: int) -> bool:
        """What the reader of headers has found."""
        text = self._text
        program = self.program
        if answer == WAIT:
            return False
        if answer == MESSAGE:
            self.settle()
            text.spaces = []
            self.cur.pos = self._headers.end
            self.mark(MARKUP, self.cur.pos)
            if self._headers.is_reasoning:
                self.sink.reasoning_start()
            text.enter(program.reasoning if self._headers.is_reasoning else program.content)
            text.fresh = True
            answer = TEXT
        elif answer == NO_HEADER:
            self._release()
            if self._headers.in_content:
                text.state = program.states[program.content]
            return True
        elif answer == NO_TOOLS:
            self.speculation.origin = program.states[program.content]
            self._release()
            return True
        elif answer == TEXT:
            text.state = program.states[program.content]
        self._mode = answer
        return True
