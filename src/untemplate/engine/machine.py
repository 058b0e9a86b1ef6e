"""The machine: one output in, in any pieces; what it means out, at once.

Rules of this module:

* ``feed`` reads as far as the text decides and keeps the rest. What is kept is a partial literal, the white space in
  front of a possible marker, or text that may have to be given back; nothing else.
* Free text is left by literals (TextState), calls are read by a CallReader, headers here. What begins as a call and is
  none becomes text again, whole (*speculation*).
* A call inside reasoning is a *draft*: it counts only if the output ends before anything else is said.
* Everything is accounted for: ``mark`` moves the frontier, and every character is on one side of it.
"""

from __future__ import annotations

from typing import Final, final

from .calls import FAILED, MORE, CallReader
from .coercion import ToolSet
from .drafts import Draft
from .events import Sink, tell_call
from .host import ConfigEvents, Host
from .ids import IdFactory
from .judge import AS_CONTENT, DROP, Call, Judge
from .ledger import ARGUMENT_TEXT, CONTENT_TEXT, DROPPED, MARKUP, NAME_TEXT, REASONING_TEXT, Ledger
from .lexer import MORE as LITERAL_MORE
from .lexer import WS, Cursor
from .names import MAX_NAME
from .program import (
    BARE,
    CLOSE_CALL,
    CLOSE_MESSAGE,
    CLOSE_REASONING,
    CLOSE_SECTION,
    CLOSE_WRAP,
    CONTENT,
    END_TURN,
    GO,
    H_BODY,
    H_CLOSE,
    H_OPEN,
    OPEN_CALLS,
    OPEN_HEADER,
    OPEN_REASONING,
    OPEN_WRAP,
    REASONING,
    Edge,
    HeaderGrammar,
    Program,
    TextState,
)
from .scanner import TokenScanner

# Modes.
TEXT: Final = 0
CALL: Final = 1
TURN_END: Final = 2
HEADER_START: Final = 3
HEADER: Final = 4
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
        self.program: Program = program
        self.tools: ToolSet = tools
        self.sink: Sink = sink
        self.cur: Cursor = Cursor()
        self.checks: bool = False
        self.speculating: bool = False
        self.judging: bool = False
        self.max_held: int = max_held
        self.calls: list[Call] = []
        self.ledger: Ledger = Ledger()
        self.scanner: TokenScanner | None = None
        self.config_events: ConfigEvents | None = None
        self.judge: Judge | None = None
        self.finished: bool = False
        self._make_id: IdFactory = make_id
        self._first_index: int = first_index
        self._drafts: int = drafts
        self._base: int = 0
        self._mode: int = TEXT
        self._state: TextState = program.states[program.no_prompt]
        self._reader: CallReader = CallReader(self)
        # Free text.
        self._spaces: list[str] = []
        self._fresh: bool = False
        self._at_start: bool = True
        self._after_call: bool = False
        self._wrapped: bool = False
        # Speculation.
        self._from: int = 0
        self._held: list[str] = []
        self._held_size: int = 0
        self._origin: TextState = self._state
        self._origin_section: bool = False
        self._opener: int = 1
        """How many characters the literal has that speculation began with."""
        self._given_back: int = 0
        """Everything before this place has been given back and looked at again."""
        # A call that is kept back for the judge.
        self._spaces_before: list[str] = []
        self._arguments: list[str] = []
        self._last_is_text: bool = False
        """Whether the last call has become text again by the judge's word."""
        # Drafts.
        self.drafting: bool = False
        self._draft: Draft | None = None
        self._origin_calls: int = 0
        if program.header_first:
            self._mode = HEADER_START

    # -- in -----------------------------------------------------------------------------------------------------

    def feed(self, text: str) -> None:
        """More of the output."""
        cur = self.cur
        if self._mode == TEXT and not cur.text and not self._spaces and not self._fresh:
            # Most deltas end here: text that no marker begins in, and no white space at its end that one may take.
            state = self._state
            if not (state.trims and text[-1] in WS):
                for head in state.heads:
                    if head in text:
                        break
                else:
                    self._base += len(text)
                    self._emit(text, self._base)
                    return
        elif self._mode == CALL and not cur.text and not self.speculating and self._reader.passes(text):
            self._base += len(text)
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
        return max(self.max_held - self._held_size - len(self.cur.text), 1)

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
        if self._spaces:
            self._flush_spaces()
        self._base += self.cur.pos
        self.cur.pos = 0
        self.cur.text = ""
        self.mark(MARKUP, 0)

    def enter(self, index: int) -> None:
        """A hand-written config begins in this state."""
        self._state = self.program.states[index]

    def switch(self, program: Program) -> None:
        """Another Program with the same states goes on from here."""
        self._state = program.states[self.state_index]
        self.program = program

    @property
    def state_index(self) -> int:
        return self.program.states.index(self._state)

    def open_reasoning(self) -> None:
        """The prompt leaves reasoning open."""
        self._enter_text(self.program.reasoning)
        self._fresh = True

    def start_turn(self) -> None:
        """The prompt ends in the opening of an assistant turn, and nothing of the turn has come yet."""
        self._enter_text(self.program.after_turn_start)
        self._fresh = True
        if self.program.header_first:
            self._mode = HEADER_START

    def start_output(self) -> None:
        """What has been fed so far was the prompt's: the output begins here, in the state that it led to."""
        cur = self.cur
        self._base = 0
        cur.text = ""
        cur.pos = 0
        self._spaces = []
        self._held = []
        self._held_size = 0
        self._from = 0
        self.calls = []
        self.ledger.clear()
        in_call = self._mode == CALL and (self._reader.committed or self._reader.any)
        self._origin_calls = 0
        if self.drafting:
            # What began as a call in the prompt's reasoning is reasoning there.
            self.speculating = False
            self.drafting = False
            self._draft = None
            self.open_reasoning()
        elif in_call or self._mode == TURN_END:
            self.speculating = False
            self.start_turn()
        elif self._mode == CALL or self._mode == HEADER:
            self._fresh = True
        self._after_call = False

    @property
    def in_reasoning(self) -> bool:
        return self._state.region == REASONING

    @property
    def offset(self) -> int:
        """Characters that have been decided."""
        return self._base

    def _run(self) -> None:
        while True:
            mode = self._mode
            if mode == TEXT:
                go_on = self._text()
            elif mode == CALL:
                go_on = self._call()
            elif mode == TURN_END:
                go_on = self._turn_end()
            elif mode == HEADER_START:
                go_on = self._header_start()
            elif mode == HEADER:
                go_on = self._header()
            else:
                go_on = self._draft_wait()
            if not go_on:
                return

    def _compact(self) -> None:
        """Lets go of what has been read."""
        cur = self.cur
        pos = cur.pos
        if pos:
            if self.speculating:
                piece = cur.text[self._from : pos]
                if piece:
                    self._held.append(piece)
                    self._held_size += len(piece)
                self._from = 0
            self._base += pos
            cur.text = cur.text[pos:]
            cur.pos = 0
        if self.speculating and self._held_size + len(cur.text) >= self.max_held:
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
                self._after_call = True
                self.call_over()
                return False
            if self._draft is not None and self._draft.safe:
                return self._end_draft(True)
            self._release()
            return True
        if mode == HEADER or (mode == HEADER_START and self.speculating):
            self.cur.pos = len(self.cur.text)
            self._release()
            return True
        if mode == TURN_END:
            self.settle()
            self._spaces = []
            self._mode = TEXT
        elif mode == DRAFT_WAIT:
            return self._end_draft(False)
        return False

    # -- accounting ---------------------------------------------------------------------------------------------

    def mark(self, kind: int, pos: int) -> None:
        self.ledger.mark(kind, self._base + pos)

    def report(self, code: str, start: int, end: int) -> None:
        self.ledger.report(code, self._base + start, self._base + end)

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
        return scanner.covers(self.cur.text[start:end], self._base + start)

    def proven(self, start: int, end: int) -> bool:
        """Whether a token id says that the literal is a marker."""
        scanner = self.scanner
        if scanner is None or not scanner.active:
            return False
        literal = self.cur.text[start:end]
        return scanner.holds(literal) and scanner.covers(literal, self._base + start)

    # -- free text ----------------------------------------------------------------------------------------------

    def _text(self) -> bool:
        """False: all text has been read."""
        cur = self.cur
        text = cur.text
        pos = cur.pos
        size = len(text)
        if pos >= size:
            return False
        state = self._state
        literals = state.literals
        search = pos
        end = -1
        while True:
            found = literals.find(text, search)
            if found is None:
                break
            start = found.start()
            if not cur.final:
                # A longer literal may have begun before this one, and hold it: ``Action:\n``` `` before ``` ``` ``.
                tail = literals.tail(text, pos)
                if tail <= start:
                    end = tail
                    break
            edge = state.edges[literals.tags[found.group()]]
            if self._accepts(edge, start, found.end()):
                self._say(text[pos:start], self._base + start)
                cur.pos = start
                self._take(edge, found.end())
                return True
            search = start + 1
        if end < 0:
            end = size if cur.final else literals.tail(text, pos)
        self._say(text[pos:end], self._base + end)
        cur.pos = end
        return False

    def _accepts(self, edge: Edge, start: int, end: int) -> bool:
        """Whether the literal at ``start`` is a marker here."""
        kind = edge.kind
        if self.checks and not self.authorised(start, end):
            return False
        if kind == OPEN_REASONING:
            return (self.program.repeats and self._state.region == CONTENT) or self._nothing_before(start)
        if kind == OPEN_WRAP:
            return not self._wrapped and (edge.target == 1 or self._nothing_before(start))
        if kind == CLOSE_WRAP:
            return self._wrapped
        if kind == CLOSE_SECTION:
            reader = self._reader
            if reader.section_is_text:
                reader.section_is_text = False
                reader.in_section = False
                return False
            return reader.in_section or self._right_after_call(start)
        if kind == CLOSE_CALL:
            return self._right_after_call(start)
        if kind == BARE:
            return self._nothing_before(start)
        if kind == OPEN_CALLS:
            if edge.target == 1 and not self._reader.in_section:
                return False
            if edge.weak and not self.tools.known and not self._nothing_before(start):
                return False
            return self._state.region != REASONING or self._drafts != NEVER
        if kind == GO:
            if edge.needs_id and (self.checks or edge.needs_id == 2) and not self.proven(start, end):
                return False
            events = self.config_events
            return events is None or events.accepts(self.cur.text, self.cur.pos, start)
        return True

    def _right_after_call(self, start: int) -> bool:
        return self._after_call and not self.cur.text[self.cur.pos : start].strip(WS)

    def _nothing_before(self, start: int) -> bool:
        """Whether nothing but white space stands between the region's start and here."""
        return self._at_start and not self.cur.text[self.cur.pos : start].strip(WS)

    def _say(self, piece: str, end: int) -> None:
        """Text of the state. White space at its end waits for what follows; right after a marker it is the marker's.
        ``end`` is where the piece ends in the output."""
        if not piece:
            return
        if not self._state.trims:
            self._emit(piece, end)
            return
        if self._fresh:
            text = piece.lstrip(WS)
            if len(text) < len(piece):
                self.mark(MARKUP, end - len(text) - self._base)
            if not text:
                return
            self._fresh = False
            piece = text
        body = piece.rstrip(WS)
        if not body:
            self._spaces.append(piece)
            return
        after = piece[len(body) :]
        if self._spaces:
            self._spaces.append(body)
            spaced = "".join(self._spaces)
            self._spaces = []
            self._emit(spaced, end - len(after))
        else:
            self._emit(body, end - len(after))
        if after:
            self._spaces.append(after)

    def _emit(self, text: str, end: int) -> None:
        region = self._state.region
        if region == CONTENT:
            self.sink.content(text)
            self.mark(CONTENT_TEXT, end - self._base)
        elif region == REASONING:
            self.sink.reasoning(text)
            self.mark(REASONING_TEXT, end - self._base)
        else:
            events = self.config_events
            kind = DROPPED if events is None else events.chunk(region, text, end - len(text))
            self.mark(kind, end - self._base)
        self._at_start = False
        self._after_call = False

    def _flush_spaces(self) -> None:
        """White space at the very end: the text's, unless a call stands before it."""
        if self._after_call or self._fresh:
            self._spaces = []
            return
        spaces = "".join(self._spaces)
        self._spaces = []
        self._emit(spaces, self.ledger.frontier + len(spaces))

    def _enter_text(self, index: int) -> None:
        self._state = self.program.states[index]
        self._mode = TEXT
        self._at_start = True
        self._after_call = False

    def _take(self, edge: Edge, end: int) -> None:
        """The literal from the cursor to ``end`` is a marker: do what its edge says."""
        cur = self.cur
        kind = edge.kind
        if kind == GO:
            self._go(edge, end)
        elif kind == OPEN_REASONING:
            self._spaces = []
            cur.pos = end
            self.mark(MARKUP, end)
            if self._state.region != REASONING:
                self.sink.reasoning_start()
            self._enter_text(self.program.reasoning)
            self._fresh = True
        elif kind == CLOSE_REASONING:
            self._close_reasoning(end)
        elif kind in (OPEN_WRAP, CLOSE_WRAP):
            self._spaces = []
            self._wrapped = kind == OPEN_WRAP
            self._fresh = True
            cur.pos = end
            self.mark(MARKUP, end)
        elif kind == CLOSE_SECTION:
            self._spaces = []
            self._reader.in_section = False
            self._after_call = True
            cur.pos = end
            self.mark(MARKUP, end)
        elif kind == CLOSE_CALL:
            self.report("stray_close", cur.pos, end)
            cur.pos = end
            self._spaces = []
            self.mark(DROPPED, end)
        elif kind == END_TURN:
            if self.proven(cur.pos, end):
                self._spaces = []
                cur.pos = end
                self.mark(MARKUP, end)
                self._enter_text(self.program.content)
                self._fresh = True
                if self.program.header_first:
                    self._mode = HEADER_START
            else:
                self.speculate(end - cur.pos)
                cur.pos = end
                self._mode = TURN_END
        elif kind == CLOSE_MESSAGE:
            self._spaces = []
            if self._state.region == REASONING:
                self.sink.reasoning_end()
            cur.pos = end
            self.mark(MARKUP, end)
            self._enter_text(self.program.content)
            self._mode = HEADER_START
        elif kind == OPEN_HEADER:
            self.speculate(end - cur.pos)
            if edge.target == 0:
                cur.pos = end
            self._mode = HEADER
        else:
            self._enter_calls(edge, end)

    def _close_reasoning(self, end: int) -> None:
        cur = self.cur
        if self._state.region == REASONING:
            self._spaces = []
            cur.pos = end
            self.mark(MARKUP, end)
            self.sink.reasoning_end()
            self._enter_text(self.program.content)
            self._fresh = True
            return
        # A second close: nothing to close.
        if self._at_start:
            self._spaces = []
            self._fresh = True
        elif self._spaces:
            spaces = "".join(self._spaces)
            self._spaces = []
            self._emit(spaces, self._base + cur.pos)
        self.report("stray_close", cur.pos, end)
        cur.pos = end
        self.mark(DROPPED, end)

    def _go(self, edge: Edge, end: int) -> None:
        cur = self.cur
        events = self.config_events
        literal = cur.text[cur.pos : end]
        kind = MARKUP if events is None else events.take(edge, literal, self._base + cur.pos)
        cur.pos = end
        self.mark(kind, end)
        self._state = self.program.states[edge.target]

    # -- speculation --------------------------------------------------------------------------------------------

    def speculate(self, opener: int) -> None:
        if self.speculating:
            return
        self._opener = opener
        self.speculating = True
        self._from = self.cur.pos
        self._held = []
        self._held_size = 0
        self._origin = self._state
        self._origin_section = self._reader.in_section
        self.ledger.save()
        self._origin_calls = len(self.calls)

    def settle(self) -> None:
        if self.drafting:
            return
        self.speculating = False
        self._held = []
        self._held_size = 0

    def _raw(self) -> str:
        """All that has been read since speculation began."""
        return "".join(self._held) + self.cur.text[self._from : self.cur.pos]

    def _release(self, too_long: bool = False) -> None:
        """What was read is no call: it is text, whole, and at least the character that begins it."""
        cur = self.cur
        if not self._held and cur.pos == self._from and cur.pos < len(cur.text):
            cur.pos += 1
        raw = self._raw()
        draft = self._draft
        had_calls = len(self.calls) > self._origin_calls
        held = bool(self._held)
        self._forget()
        self._state = self._origin
        self._mode = TEXT
        if draft is not None and draft.close >= 0:
            # Reasoning was closed behind the draft, and the output went on.
            before = raw[: draft.close]
            rest = raw[draft.close :]
            self._say(before, self._base + cur.pos - len(rest))
            cur.text = rest + cur.text[cur.pos :]
            self._base += cur.pos - len(rest)
            cur.pos = 0
            self._close_reasoning(draft.after - draft.close)
            return
        start = self._base + cur.pos - len(raw)
        # Behind the opener other markers may stand. They are looked for once: what has been given back before is text.
        size = len(raw)
        if not had_calls and not too_long:
            size = min(max(self._opener, self._given_back - start, 1), size)
        self._given_back = max(self._given_back, start + len(raw))
        if held:
            cur.text = raw[size:] + cur.text[cur.pos :]
            cur.pos = 0
            self._base = start + size
        else:
            cur.pos -= len(raw) - size
        self._say(raw[:size], start + size)

    def _forget(self) -> None:
        """Takes back what speculation has noted down."""
        if self._draft is not None:
            self.sink = self._draft.out
        self.speculating = False
        self.drafting = False
        self._draft = None
        self.judging = False
        self._held = []
        self._held_size = 0
        self._reader.in_section = self._origin_section
        self.ledger.roll_back()
        del self.calls[self._origin_calls :]

    # -- calls --------------------------------------------------------------------------------------------------

    def _enter_calls(self, edge: Edge, end: int) -> None:
        cur = self.cur
        self.speculate(end - cur.pos)
        if self._state.region == REASONING and self._drafts == RECOVER and not self.drafting:
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
        if answer == MORE:
            return False
        if answer == FAILED:
            self._release()
            return True
        if self._draft is not None:
            self.mark(MARKUP, self.cur.pos)
            self._draft.safe = self._held_size + self.cur.pos - self._from
            self._mode = DRAFT_WAIT
            return True
        self._enter_text(self.program.content)
        self._at_start = False
        self._fresh = False
        self._after_call = not self._last_is_text
        if self.program.header_first:
            self._mode = HEADER_START
        return True

    def begin_call(self, name: str, call_id: str) -> None:
        if self.judge is not None and not self.drafting:
            self.judging = True
            self._spaces_before = self._spaces
            self._spaces = []
            self._arguments = []
            index = len(self.calls)
            self._begin(Call(index, call_id or self._make_id(name, self._first_index + index), name))
            return
        if not self.drafting:
            self.settle()
            self._spaces = []
            self._leave_reasoning()
        index = len(self.calls)
        if not call_id:
            call_id = self._make_id(name, self._first_index + index)
        self._begin(Call(index, call_id, name))
        self.sink.call_start(index, call_id, name)

    def arguments(self, text: str) -> None:
        if self.judging:
            self._arguments.append(text)
        else:
            self.sink.arguments(len(self.calls) - 1, text)

    def end_call(self, whole: bool, valid: bool) -> None:
        call = self.calls[-1]
        call.whole = whole
        call.valid = valid
        call.end = self._base + self.cur.pos
        if whole and not self.judging:
            self.sink.call_end(call.index)

    def _begin(self, call: Call) -> None:
        call.start = self.ledger.frontier
        self.calls.append(call)

    def call_over(self) -> None:
        """The call is closed: what has been kept back is judged."""
        if self._draft is not None:
            self.mark(MARKUP, self.cur.pos)
            self._draft.safe = self._held_size + self.cur.pos - self._from
        judge = self.judge
        if judge is None or not self.judging:
            return
        self.judging = False
        call = self.calls[-1]
        verdict = judge.judge(call, "".join(self._arguments), call.index)
        self._arguments = []
        behind = sum(map(len, self._spaces))
        self._last_is_text = verdict == AS_CONTENT
        if verdict == AS_CONTENT:
            raw = self._raw()
            reader = self._reader
            opened = reader.in_section and not self._origin_section
            self._forget()
            reader.given_back(opened)
            self._spaces = self._spaces_before
            self._leave_reasoning()
            self._say(raw, self._base + self.cur.pos)
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
        if self._state.region == REASONING:
            self.sink.reasoning_end()
        self._state = self.program.states[self.program.content]

    def model_id(self, call_id: str) -> None:
        self.calls[-1].model_id = call_id

    def pend(self, end: int) -> None:
        cur = self.cur
        self._spaces.append(cur.text[cur.pos : end])
        cur.pos = end

    def unpend(self) -> None:
        self._spaces = []

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
        state = self._origin
        end = state.literals.at(cur.text, cur.pos, cur.final)
        if end == LITERAL_MORE:
            return False
        if end >= 0 and (not self.checks or self.authorised(cur.pos, end)):
            edge = state.edges[state.literals.tags[cur.text[cur.pos : end]]]
            if edge.kind == OPEN_CALLS and draft.close < 0:
                self._enter_calls(edge, end)
                return True
            if edge.kind == CLOSE_REASONING and draft.close < 0:
                draft.close = self._held_size + cur.pos - self._from
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
            rest = self._raw()[draft.safe :]
            self.ledger.back_to(self._base + self.cur.pos - len(rest))
        self.speculating = False
        self.drafting = False
        self._draft = None
        self._held = []
        self._spaces = []
        self.sink = draft.out
        self.sink.reasoning_end()
        draft.tell(kept)
        self._state = self.program.states[self.program.content]
        self._mode = TEXT
        self._after_call = True
        if rest.strip(WS):
            self._emit(rest, self._base + self.cur.pos)
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
        cur = self.cur
        header = self.program.header
        assert header is not None
        end = cur.spaces()
        if end > cur.pos:
            self.pend(end)
        if cur.pos >= len(cur.text):
            return False
        end = header.literals.at(cur.text, cur.pos, cur.final)
        if end == LITERAL_MORE:
            return False
        if end >= 0 and (not self.checks or self.authorised(cur.pos, end)):
            tag = header.literals.tags[cur.text[cur.pos : end]]
            if tag == H_CLOSE:
                self._spaces = []
                cur.pos = end
                self.mark(MARKUP, end)
                return True
            self.speculate(end - cur.pos)
            if tag == H_OPEN:
                cur.pos = end
            elif tag == H_BODY:
                self._begin_message(header, "", end)
                return True
            self._mode = HEADER
            return True
        if header.bare and self._at_start and not self._after_call:
            self.speculate(1)
            self._mode = HEADER
            return True
        self._state = self.program.states[self.program.content]
        self._mode = TEXT
        return True

    def _header(self) -> bool:
        """Reads a header up to its end, or gives it back as text."""
        cur = self.cur
        header = self.program.header
        assert header is not None
        text = cur.text
        found = header.body.near(text, cur.pos, cur.pos + MAX_NAME)
        end = found.start() if found is not None else min(len(text), cur.pos + MAX_NAME + 1)
        piece = text[cur.pos : end]
        illegal = header.illegal.search(piece)
        if illegal is not None and not piece[: illegal.start()].strip(WS) and illegal.group() in header.opens:
            # ``<|start|><|start|>``
            self.report("broken_header", cur.pos, cur.pos + illegal.end())
            cur.pos += illegal.end()
            return True
        if illegal is not None or len(piece) > MAX_NAME:
            cur.pos += 0 if illegal is None else illegal.start()
            self._release()
            if header.bare or illegal is None:
                return True
            self._state = self.program.states[self.program.content]
            return True
        if found is None:
            return False
        self._begin_message(header, piece, found.end())
        return True

    def _begin_message(self, header: HeaderGrammar, piece: str, end: int) -> None:
        """A header is complete: its recipient or its channel says what its message is."""
        recipient, at, channel = header.parts(piece)
        cur = self.cur
        name = recipient.removeprefix(header.namespace)
        if name and self.program.grammars:
            at += cur.pos + len(recipient)
            self.mark(MARKUP, at - len(name))
            self.mark(NAME_TEXT, at)
            self.mark(MARKUP, end)
            cur.pos = end
            self._mode = CALL
            self._reader.enter_arguments(self.program.grammars[0], name, not header.bare)
            return
        if name:
            # No tools are offered: a call is text, header and all.
            cur.pos = end
            self._origin = self.program.states[self.program.content]
            self._release()
            return
        self.settle()
        self._spaces = []
        cur.pos = end
        self.mark(MARKUP, end)
        if channel in header.reasoning:
            self.sink.reasoning_start()
            self._enter_text(self.program.reasoning)
        else:
            self._enter_text(self.program.content)
        self._fresh = True
