"""The machine: reads one output, in any pieces, and emits what each part of it is as soon as that is decided.

**Who reads.** The machine runs one reader at a time. Its *mode* is the reader that it runs. A reader moves the cursor
as far as the text decides. It returns either the mode that comes next or a signal (``signals.py``): MORE, if the rest
depends on text that has not come, or NO_MATCH, if what it reads is not a call or a header after all. CallReader returns
signals only: after DONE the machine chooses the mode. These modes follow one another (``modes.py``; a test compares
this table with it, and follows the modes of real outputs):

| mode | reader | it reads | may be followed by |
| --- | --- | --- | --- |
| text | FreeText | content or reasoning, up to a marker | calls, turn end, header start, header |
| calls | CallReader | calls, and their list or section | text, header start, after tentative calls, empty calls |
| turn end | Machine | what follows a special token that may end the output | text |
| header start | HeaderReader | white space before a message header | text, header |
| header | HeaderReader | a message header | text, calls |
| after tentative calls | Machine | what follows tentative calls | text, calls, header start |
| empty calls | Machine | markers of calls without a call | text |

**Where it is.** Four words, each with one meaning:

* The *mode* is the reader that the machine runs.
* The *state* is the state of free text: a ``TextState`` of the Program, with the literals that can end it.
* The *region* of a state is what its text is: content, reasoning, or a part of a call (in hand-written configs).
* The *phase* of a reader is its place within what it reads, such as "in the name" or "after the arguments".

**Speculation.** An opener may be followed by something that is not a call. So the machine keeps all text from the
opener on until the call commits: until its name is complete and a legal continuation follows (``end_speculation``). If
a reader returns NO_MATCH, ``_release`` turns the opener into text, and the text after it is read once
more for other markers. At most ``max_held`` characters are kept. Beyond that they become text as a whole.

**Tentative calls.** Models quote calls when they think. A call inside reasoning therefore only counts if
nothing but further calls, the close of reasoning or the end of the turn follows it. Models also quote calls in inline
code. A call directly after a backtick therefore only counts if no backtick follows it. Until this is decided, the
events of the calls are recorded, and speculation goes on (``TentativeCalls``).

**Call policies.** With a call policy each call is held back until it is closed, and speculation goes on as well,
because the policy may turn the call into text (``CallEmitter``, ``HeldCall``).

**White space.** White space before a marker belongs to the marker, and white space before text belongs to the text.
So it waits in ``spaces`` until one of the two follows.

**Accounting.** ``mark`` moves a frontier through the output, and every character is marked once. ``report`` records a
diagnostic. Both are undone with the speculation that they were made in.

**Why readers are objects with a phase, and not generators.** A half-fed stream can be copied while the package is not
compiled, and copies of a stream are how a caller looks ahead, but Python cannot copy a running generator. A trial
with JsonReader as a generator saved lines and no time.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import Final, final

from ...tools import ToolSet
from .call_emitter import CallEmitter
from .calls import CallReader
from .context import ReaderContext
from .events import EventReceiver
from .free_text import FreeText
from .headers import HeaderReader
from .ids import IdFactory
from .ledger import ARGUMENT_TEXT, CONTENT_TEXT, DROPPED, MARKUP, REASONING_TEXT
from .lexer import WS
from .marker_judge import IS_TEXT
from .modes import (
    READ_AFTER_TENTATIVE_CALLS,
    READ_CALL,
    READ_EMPTY_CALLS,
    READ_HEADER,
    READ_HEADER_START,
    READ_TEXT,
    READ_TURN_END,
)
from .program import (
    CLOSE_REASONING,
    END_TURN,
    IN_CONTENT,
    IN_REASONING,
    ON_ANY_LINE,
    ON_ITS_LINE,
    OPEN_BARE_CALLS,
    OPEN_CALLS,
    MarkerRule,
    Program,
)
from .scanner import TokenScanner, check_ids
from .short_path import MOST_UNCOUNTED, ShortPath
from .signals import AGAIN, DONE, MORE, NO_MATCH
from .tentative_calls import ALONE, IN_REASONING_TEXT, QUOTED, RECOVER, TentativeCalls

_MOST_KEPT: Final = 256
"""Most characters that are kept without being read."""
_ENDS_QUOTATION: Final = "\n<{["
"""Characters at which the end of a quotation is no longer looked for."""
_PART: Final = 4096
"""Characters that are read at once while special tokens are dropped, since each copies the text that is being read."""
_CLOSE_TAGS: Final = re.compile(r"(?:</[^<>`\n]{1,64}>){0,3}")
_CLOSE_TAGS_BEGUN: Final = re.compile(r"(?:</[^<>`\n]{1,64}>){0,3}(?:<(?:/[^<>`\n]{0,64})?)?\Z")


@final
class Machine(ReaderContext):
    """Runs a Program on one output."""

    # At most 29 attributes, those of ReaderContext included: with more, CPython keeps them in a slower table.

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
        ReaderContext.__init__(self, program, tools, receiver, max_held, reasoning_calls)
        self.finished: bool = False
        self._mode: int = READ_TEXT if program.header is None else READ_HEADER_START
        self._text: FreeText = FreeText(self)
        self.shows_cut_calls: bool = False
        """True if an opener or header that the output ends after becomes text; else it is dropped."""
        self.path: ShortPath = ShortPath(max_held)
        if program.header is None:
            self.path.open_text(self._text.passing_kind(), self.state, [], "")
        self._emitter: CallEmitter = CallEmitter(self, self._text.out, make_id, first_index)
        # Most outputs have neither calls nor headers, so their readers are made when they are needed.
        self._calls: CallReader | None = None
        self._headers: HeaderReader | None = None

    # -- in -----------------------------------------------------------------------------------------------------

    def use_ids(self, scanner: TokenScanner) -> None:
        """Let a scanner say which literals are markers."""
        self.scanner = scanner
        self.path.special = scanner.special_ids

    def feed(self, text: str, ids: Sequence[int] = ()) -> str:
        """Take the next delta of the output. Return its text, with stripped markers restored."""
        path = self.path
        piece = path.passes(text, ids) if text and path.kind != MARKUP else None
        if piece is None:
            return self.read(text, ids)
        if piece:
            self.emit(piece)
        return text

    def emit(self, piece: str) -> None:
        """Emit what the short path has returned."""
        path = self.path
        if path.kind == ARGUMENT_TEXT:
            self.receiver.arguments(path.call, piece)
        elif path.kind == CONTENT_TEXT:
            self.receiver.content(piece)
        else:
            self.receiver.reasoning(piece)

    def settle(self) -> None:
        """Account for the deltas that have passed on the short path, before anything asks for a place in the output."""
        path = self.path
        if path.settled == path.size:
            return
        cur = self.cur
        begun = path.begun
        self.base += len(cur.text) + path.size - path.settled - begun
        texts = path.take() if self.scanner is None else path.settle()
        if path.kind != ARGUMENT_TEXT:
            self._text.out.pass_on(self._passed(texts, begun))
        elif self._calls is not None:
            self._calls.pass_on(self._passed(texts, begun) if path.heads else "")

    def _passed(self, texts: list[str], begun: int) -> str:
        """Return what is decided of the text so far and these deltas: all but ``begun`` characters at its end."""
        cur = self.cur
        text = "".join([cur.text, *texts]) if cur.text else "".join(texts)
        if not begun:
            cur.text = ""
            return text
        cur.text = text[-begun:]
        return text[:-begun]

    def read(self, text: str, ids: Sequence[int] = (), places: Sequence[int] | None = None) -> str:
        """Take a delta that does not pass.

        Args:
            text: the text; it may be empty.
            ids: the token ids that came with it.
            places: where special tokens begin in the text, if that is known.

        Returns:
            The text, with stripped markers restored.
        """
        path = self.path
        if path.settled < path.size:
            self.settle()
        scanner = self.scanner
        if scanner is None:
            if ids:
                check_ids(ids)
                path.takes_ids = True
        elif places is None and ((path.takes_ids and path.special.isdisjoint(ids)) if ids else path.takes_text):
            path.texts.append(text)
            if ids:
                path.ids.extend(ids)
            path.size += len(text)
            path.settled = path.size
            path.settled_texts = len(path.texts)
            if path.size >= MOST_UNCOUNTED or len(path.texts) >= MOST_UNCOUNTED:
                self._count(scanner)
        elif ids and not scanner.active:
            self._begin_ids(scanner, ids)
            return self.feed(text, ids)
        else:
            text = self._scan(scanner, text, ids, places)
        if text:
            self._read_on(text)
        return text

    def _begin_ids(self, scanner: TokenScanner, ids: Sequence[int]) -> None:
        """Take note that the output comes with ids."""
        check_ids(ids)
        self._count(scanner)
        scanner.active = True
        self.checks_ids = self.checks_ids or scanner.proves_markers
        self.path.takes_ids = True
        self.path.takes_text = False

    def _count(self, scanner: TokenScanner) -> None:
        """Let the scanner count the deltas without special tokens."""
        path = self.path
        if path.texts:
            scanner.count(path.texts, path.ids)
            path.clear()

    def _scan(self, scanner: TokenScanner, text: str, ids: Sequence[int], places: Sequence[int] | None) -> str:
        """Find special tokens in a delta. Return its text, with stripped markers restored."""
        path = self.path
        self._count(scanner)
        if places is None:
            text = scanner.read(text, ids)
        else:
            scanner.follow(text, places)
            self.checks_ids = self.checks_ids or scanner.proves_markers
        if scanner.unknown_places:
            self._drop_tokens(scanner.unknown_places)
            scanner.unknown_places = []
        path.takes_ids = scanner.quiet and scanner.active
        path.takes_text = scanner.quiet and (not scanner.active or places is not None)
        return text

    def _read_on(self, text: str) -> None:
        """Read text, if it may decide anything."""
        cur = self.cur
        kept = cur.text
        size = len(kept) + len(text)
        if cur.goes_on is not None and size <= _MOST_KEPT:
            room = self.max_held - size
            # White space that waits counts, too: it is text if there is too much of it.
            few = self.speculation.size < room and self.base - self.ledger.frontier < room
            if few and cur.goes_on(kept, text):
                cur.text = kept + text
                self.path.kind = MARKUP
                return
        if self.speculation.size + size > self.max_held:
            text = self._read_parts(text)
        while len(text) > _PART and self._text.unknown_tokens:
            self._read(text[:_PART])
            text = text[_PART:]
        self._read(text)
        self._look_ahead()

    def _look_ahead(self) -> None:
        """Open or close the short path for the next delta. In calls, the reader that returned MORE has said which."""
        cur = self.cur
        path = self.path
        if self._mode == READ_TEXT:
            path.open_text(self._text.passing_kind(), self.state, self.spaces, cur.text)
            cur.goes_on = self.state.goes_on
        elif cur.passed is None or cur.text or self.speculation.active:
            path.kind = MARKUP
        else:
            path.open_value(cur.passed, cur.stops, self.calls[-1].index)

    def _read_next(self) -> None:
        """Take no short path for the next delta."""
        self.path.kind = MARKUP
        self.cur.goes_on = None

    def decide_quoted_calls(self, when: int) -> None:
        """Let calls count that may be quotations: BY_EVIDENCE, ALWAYS or NOT_IN_FENCES."""
        self._text.out.before.quoted_calls = when

    def keep_space(self) -> None:
        """Take white space that touches a marker for text, unless the Format writes it there."""
        self._text.out.keeps_space = True

    def _drop_tokens(self, places: list[tuple[int, int]]) -> None:
        """Drop the special tokens at these places of the next text, where they are free text."""
        waiting = self._text.unknown_tokens
        if waiting is None:
            waiting = self._text.unknown_tokens = deque()
        while waiting and waiting[0][0] < self.base and not self.speculation.active:
            waiting.popleft()
        waiting += places
        self._read_next()
        self.spaces = self.spaces or [""]

    def _read_parts(self, text: str) -> str:
        """Read text up to each place where the limit of speculation has to be checked, and return the rest. The places
        are counted from where speculation began or may begin, so that what becomes text does not depend on how the
        output was cut."""
        while True:
            room = max(self.max_held - self.speculation.size - len(self.cur.text), 1)
            if len(text) <= room:
                return text
            self._read(text[:room])
            text = text[room:]

    def _read(self, text: str) -> None:
        cur = self.cur
        cur.text = cur.text + text if cur.text else text
        self._run()
        self._compact()

    def finish(self) -> str:
        """End the output: no more text will come, so everything is decided. Return text that was held back because a
        special token might have begun in it."""
        if self.finished:
            return ""
        held = "" if self.scanner is None else self.scanner.finish()
        path = self.path
        cur = self.cur
        if not held and path.kind in (CONTENT_TEXT, REASONING_TEXT) and not path.held:
            self.base += len(cur.text) + path.size - path.settled
            self.mark(path.kind, 0)  # no marker follows this text
            self.spaces = []
            cur.text = ""
            self.finished = cur.final = True
            self._text.finish()
            return ""
        self.settle()
        if held:
            self._read_on(held)
        self.finished = True
        self._read("")  # what was kept unread
        while True:
            # A speculation that is still active here is undecided because the output ends.
            self.speculation.undecided = self.speculation.number
            cur.final = True
            self._run()
            if cur.final and not self._wind_up():
                break
            cur.final = False
            self._run()
        self._text.finish()
        self.base += self.cur.pos
        self.cur.pos = 0
        self.cur.text = ""
        self.mark(MARKUP, 0)
        return held

    # -- the start state ----------------------------------------------------------------------------------------

    def enter(self, index: int) -> None:
        """Begin in this state, as a hand-written config asks."""
        self.state = self.program.states[index]
        self._read_next()

    def switch(self, program: Program) -> None:
        """Continue with another Program that has the same states."""
        self.settle()
        self._read_next()
        self.state = program.states[self.state_index]
        self.program = program

    @property
    def state_index(self) -> int:
        return self.program.states.index(self.state)

    def open_reasoning(self) -> None:
        """Begin inside reasoning, which the prompt left open."""
        self._enter_text(self.program.reasoning)
        self._text.out.fresh = True
        self._read_next()

    def start_turn(self) -> None:
        """Begin at the start of the turn, because the prompt ends in the opening of an assistant turn."""
        self._enter_text(self.program.after_turn_start)
        self._text.out.fresh = True
        self._read_next()
        if self.program.header is not None:
            self._mode = READ_HEADER_START

    def start_output(self) -> None:
        """Begin the output here, in the state that the text fed so far led to: that text was the prompt's."""
        cur = self.cur
        cur.ends_prompt = True
        self._read("")
        cur.ends_prompt = False
        self.base = 0
        self._read_next()
        cur.text = ""
        cur.pos = 0
        text = self._text
        self.speculation.restart()
        self.calls = []
        self.ledger.clear()
        in_call = self._mode == READ_CALL and self._call_reader().has_committed
        if self.tentative is not None and self.tentative.kind == IN_REASONING_TEXT:
            # What began as a call in the prompt's reasoning stays reasoning.
            self.speculation.active = False
            self.tentative = None
            self.open_reasoning()
        elif in_call or self.tentative is not None or self._mode == READ_TURN_END:
            self.speculation.active = False
            self.tentative = None
            self.start_turn()
        elif self._mode == READ_CALL or self._mode == READ_HEADER:
            text.out.fresh = True
        text.begin_output()

    @property
    def has_policy_text(self) -> bool:
        """True if a policy has turned a call into text."""
        return self._text.out.has_policy_text

    @property
    def has_closed_reasoning(self) -> bool:
        """True if a marker has closed reasoning."""
        return self._text.judge.has_closed

    @property
    def in_reasoning(self) -> bool:
        return self.state.region == IN_REASONING

    @property
    def offset(self) -> int:
        """Number of characters that are decided."""
        self.settle()
        return self.base

    # -- running the readers ------------------------------------------------------------------------------------

    def _run(self) -> None:
        """Run readers until one needs more text."""
        cur = self.cur
        cur.passed = None
        cur.goes_on = None
        while True:
            mode = self._mode
            if mode == READ_TEXT:
                result = self._text.step()
                if result == READ_CALL:
                    self._enter_calls(self._text.rule, self._text.marker_end)
            elif mode == READ_CALL:
                calls = self._calls
                assert calls is not None
                result = calls.step()
                if result == DONE:
                    result = self._after_calls(calls)
            elif mode == READ_TURN_END:
                result = self._read_turn_end()
            elif mode == READ_HEADER_START:
                result = self._header_reader().start()
            elif mode == READ_HEADER:
                result = self._header_reader().step()
            elif mode == READ_EMPTY_CALLS:
                result = self._read_empty_calls()
            else:
                result = self._read_after_tentative_calls()
            if result == MORE:
                return
            if result != NO_MATCH:
                self._mode = result
            elif self._take_back(mode) == MORE:
                return

    def _take_back(self, mode: int) -> int:
        """Go on after a call or a header that is none, or that the output ends in. Return AGAIN or MORE."""
        if mode == READ_CALL and self._has_only_markers():
            doubled = self._call_reader().read_doubled(self.speculation.raw(self.cur))
            if doubled != NO_MATCH:
                return doubled
            self._mode = READ_EMPTY_CALLS
        elif self.cur.final and self._was_undecided():
            self._end_undecided()
        else:
            self._release()
            if mode == READ_HEADER and self._header_reader().goes_on_in_content:
                self.state = self.program.states[self.program.content]
        return AGAIN

    def _compact(self) -> None:
        """Remove what has been read from the cursor's text, and end speculation that holds too much."""
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
        """End what the mode was reading when the output ended. Return True if there is text to read again."""
        mode = self._mode
        if mode == READ_CALL:
            if self._call_reader().finish():
                if self.tentative is not None:
                    return self._end_tentative_calls(False)
                self._mode = READ_TEXT
                self._text.out.after_call = True
                self._emitter.close_call()
                return False
            return self._end_undecided()
        if mode == READ_HEADER or (mode == READ_HEADER_START and self.speculation.active):
            self.cur.pos = len(self.cur.text)
            return self._end_undecided()
        if mode == READ_EMPTY_CALLS:
            return self._end_undecided()
        if mode == READ_TURN_END:
            self._drop_end_tokens()
            self.end_speculation()
            self.spaces = []
            self._mode = READ_TEXT
        elif mode == READ_AFTER_TENTATIVE_CALLS:
            return self._end_tentative_calls(False)
        return False

    def _was_undecided(self) -> bool:
        """True if the speculation was undecided until the output ended."""
        speculation = self.speculation
        return speculation.number == speculation.undecided and self._mode in (READ_CALL, READ_HEADER, READ_EMPTY_CALLS)

    def _end_undecided(self) -> bool:
        """End the output in a call or a header that is not complete. Return True if there is text to read again."""
        if self.tentative is not None and self.tentative.end_of_last_call:
            return self._end_tentative_calls(True)
        if not self._drops_cut():
            self._release()
            return True
        self._drop_cut()
        return False

    def _drops_cut(self) -> bool:
        """True if the speculation begins with an opener and is not to be shown."""
        if self.shows_cut_calls:
            self._text.out.has_policy_text = True
            return False
        if self.tentative is not None and self.tentative.kind != IN_REASONING_TEXT:
            return False
        header = self.program.header
        if header is not None and self._mode == READ_HEADER:
            raw = self.speculation.raw(self.cur)
            if self._text.judge.header_doubt == IS_TEXT or header.is_sentence(raw):
                return False
        if header is not None and not self.speculation.opener:
            return not header.bare
        if header is not None:
            return header.literals.pattern.match(self.speculation.raw(self.cur)) is not None
        return self._call_reader().has_opener

    def _drop_cut(self) -> None:
        """Drop all text from the opener on, and report it."""
        cur = self.cur
        cur.pos = len(cur.text)
        start = self.base + cur.pos - self.speculation.length(cur)
        in_header = self._mode in (READ_HEADER, READ_HEADER_START)
        self.undo_speculation()
        self.state = self.speculation.origin
        self._mode = READ_TEXT
        self._text.out.after_call = True
        self.spaces = []
        self.ledger.mark(MARKUP, start)
        self._report_cut(in_header, start)

    def _report_cut(self, in_header: bool, start: int) -> None:
        """Account for all text from ``start`` of the output on as dropped."""
        end = self.base + self.cur.pos
        self.ledger.report("incomplete_header" if in_header else "incomplete_call", start, end)
        self.ledger.mark(DROPPED, end)

    def _enter_text(self, index: int) -> None:
        self._text.out.enter(index)
        self._mode = READ_TEXT

    def _release(self, too_long: bool = False) -> None:
        """End speculation, because what was read is not a call or a header: its opener becomes text, and the text after
        it is read once more.

        If nothing was kept, one character becomes text, so that the same place is not read as an opener again. An
        opener in the prompt is not part of the output.
        """
        cur = self.cur
        speculation = self.speculation
        if speculation.opener and not speculation.length(cur) and cur.pos < len(cur.text):
            cur.pos += 1
        raw = speculation.raw(cur)
        reaches_back = speculation.reaches_back
        cur.final = False  # the text that is read again ends where it ended before
        tentative = self.tentative
        had_calls = len(self.calls) > speculation.calls
        is_opener = self._mode == READ_EMPTY_CALLS or (self._mode == READ_CALL and self._call_reader().has_marker)
        self.undo_speculation()
        self.state = speculation.origin
        self._mode = READ_TEXT
        if tentative is not None and tentative.close_rule is not None:
            # Reasoning was closed after the call, and the output went on.
            before = raw[: tentative.close_start]
            rest = raw[tentative.close_start :]
            self._text.out.emit_opener(before, self.base + cur.pos - len(rest), speculation.opener)
            cur.text = rest + cur.text[cur.pos :]
            self.base += cur.pos - len(rest)
            cur.pos = 0
            self._text.take_close(tentative.close_rule, tentative.close_end - tentative.close_start)
            return
        start = self.base + cur.pos - len(raw)
        # The text after the opener is read again: it may hold other markers.
        size = speculation.give_back(start, len(raw), had_calls or too_long)
        if reaches_back:
            cur.text = raw[size:] + cur.text[cur.pos :]
            cur.pos = 0
            self.base = start + size
        else:
            cur.pos -= len(raw) - size
        if had_calls and tentative is not None and tentative.kind == QUOTED:
            self._text.out.emit_quotation(raw, start + size)
        elif is_opener:
            self._text.out.emit_opener(raw[:size], start + size, min(speculation.opener, size))
        else:
            self._text.out.emit_trimmed(raw[:size], start + size)

    # -- readers that not every output needs ----------------------------------------------------------------------

    def _call_reader(self) -> CallReader:
        calls = self._calls
        if calls is None:
            calls = self._calls = CallReader(self, self._emitter)
        return calls

    def _header_reader(self) -> HeaderReader:
        headers = self._headers
        if headers is None:
            headers = self._headers = HeaderReader(self, self._call_reader(), self._text)
        return headers

    # -- calls --------------------------------------------------------------------------------------------------

    def _enter_calls(self, rule: MarkerRule, end: int) -> None:
        """Begin to read calls, whose opener in free text ends at ``end``. (A header enters its call by itself.)"""
        cur = self.cur
        self.speculate(end - cur.pos)
        if self._text.judge.in_fence:
            self.report("fenced_call", cur.pos, end)
        if self.tentative is None:
            if self.state.region == IN_REASONING and self.reasoning_calls == RECOVER:
                self.begin_tentative_calls(IN_REASONING_TEXT)
            elif rule.where in (ON_ITS_LINE, ON_ANY_LINE):
                self.begin_tentative_calls(ALONE)
            elif self._text.out.quotes:
                self.begin_tentative_calls(QUOTED)
            elif not self.has_id(cur.pos, end):
                self._begin_quotation(self._text.out.closing_sign)
        self._text.out.unproven = self.checks_ids and not self.has_id(cur.pos, end)
        opener = "" if rule.kind == OPEN_BARE_CALLS else cur.text[cur.pos : end]
        cur.pos += len(opener)
        calls = self._calls or self._call_reader()
        lacks_section = rule.lacks != "" and not self.in_section
        calls.enter(rule.entries, rule.ambiguous or lacks_section, rule.kind == OPEN_CALLS, opener)
        if lacks_section:
            self.report("missing_open", cur.pos - len(opener), cur.pos)
            calls.recover()

    def _begin_quotation(self, closing: str) -> None:
        """Begin tentative calls if there is a sign that may close a quotation after them."""
        if closing:
            self.begin_tentative_calls(QUOTED)
            assert self.tentative is not None
            self.tentative.closing = closing

    def _after_calls(self, calls: CallReader) -> int:
        """Go on after the last call. Return the next mode."""
        if self.tentative is not None:
            self.mark_closed()
            self.tentative.end_of_last_call = self.speculation.length(self.cur)
            return READ_AFTER_TENTATIVE_CALLS
        return self._leave_calls(not calls.last_became_text)

    def _leave_calls(self, kept: bool) -> int:
        """Go on with content after calls. ``kept``: the last one has not become text."""
        program = self.program
        self.state = program.states[program.content]
        self._text.out.leave_calls(kept)
        return READ_TEXT if program.header is None else READ_HEADER_START

    def _read_after_tentative_calls(self) -> int:
        """Read what follows tentative calls. Those inside reasoning stay calls before another call, the close of
        reasoning, the end of the turn and the end of the output. Before anything else they were reasoning."""
        tentative = self.tentative
        assert tentative is not None
        cur = self.cur
        if tentative.kind == ALONE:
            return self._read_after_lone_calls(tentative)
        if tentative.kind == QUOTED:
            return self._read_after_quoted_calls(tentative)
        cur.pos = cur.spaces()
        if cur.pos >= len(cur.text):
            return MORE
        state = self.speculation.origin
        end = state.literals.at(cur.text, cur.pos, cur.final)
        if end < 0:
            return end
        if self.checks_ids and not self.may_be_marker(cur.pos, end):
            return NO_MATCH
        rule = state.rules[state.literals.tags[cur.text[cur.pos : end]]]
        if rule.kind == OPEN_CALLS and tentative.close_start < 0:
            self._enter_calls(rule, end)
            return READ_CALL
        if rule.kind == CLOSE_REASONING and tentative.close_start < 0:
            tentative.close_start = self.speculation.length(cur)
            tentative.close_end = tentative.close_start + end - cur.pos
            tentative.close_rule = rule
        elif rule.kind != END_TURN:
            return NO_MATCH
        cur.pos = end
        return READ_AFTER_TENTATIVE_CALLS

    def _read_after_quoted_calls(self, tentative: TentativeCalls) -> int:
        """Read the character after calls that began after a backtick: before another backtick they are a quotation.
        The close of the message and close tags of another format may come between."""
        if tentative.closing:
            return self._read_rest_of_line(tentative)
        cur = self.cur
        if cur.pos >= len(cur.text) or (not cur.final and _CLOSE_TAGS_BEGUN.match(cur.text, cur.pos) is not None):
            return MORE
        start = cur.pos
        if self.program.header is not None:
            start = self.program.header.closes.at(cur.text, cur.pos, cur.final)
            if start == MORE or (start == len(cur.text) and not cur.final):
                return MORE
            start = max(start, cur.pos)
        closes = _CLOSE_TAGS.match(cur.text, start)
        end = start if closes is None else closes.end()
        quoted = cur.text[end : end + 1] == "`" and not self.spaces
        if quoted:
            cur.pos = start
        if quoted or not self._accept_tentative_calls(tentative):
            return NO_MATCH
        return self._leave_calls(True)

    def _read_rest_of_line(self, tentative: TentativeCalls) -> int:
        """Read the line of calls on which inline code or a quotation began: they are text if it is closed after them,
        before any sign of markup."""
        cur = self.cur
        if not any("\n" in spaces for spaces in self.spaces):
            stop = cur.pos
            while stop < len(cur.text) and stop - cur.pos < _MOST_KEPT and cur.text[stop] not in _ENDS_QUOTATION:
                if cur.text[stop] == tentative.closing:
                    return NO_MATCH
                stop += 1
            if stop >= len(cur.text) and not cur.final:
                return MORE
        return self._leave_calls(True) if self._accept_tentative_calls(tentative) else NO_MATCH

    def _read_after_lone_calls(self, tentative: TentativeCalls) -> int:
        """Read what follows calls without a marker: a new line, the end of the turn or that of the output."""
        cur = self.cur
        end = cur.spaces()
        if end > cur.pos:
            self.hold_space(end)
        if not any("\n" in spaces for spaces in self.spaces):
            if cur.pos >= len(cur.text):
                return MORE
            end = self.program.output_end.at(cur.text, cur.pos, cur.final)
            if end < 0 or not self.may_be_marker(cur.pos, end):
                return MORE if end == MORE else NO_MATCH
        return self._leave_calls(True) if self._accept_tentative_calls(tentative) else NO_MATCH

    def _end_tentative_calls(self, further: bool) -> bool:
        """Accept the tentative calls that the output ended on. ``further``: after them another began that never became
        one. Return True if there is text to read again."""
        tentative = self.tentative
        assert tentative is not None
        cur = self.cur
        if self.shows_cut_calls and tentative.end_of_last_call and not self.calls[-1].whole:
            self.calls.pop()
            tentative.recorder.forget_last()
            further = True
        rest = ""
        if further:
            rest = (self.speculation.raw(cur) + cur.text[cur.pos :])[tentative.end_of_last_call :]
        if not self._accept_tentative_calls(tentative):
            self._release()
            return True
        self.spaces = []
        self._mode = READ_TEXT
        self._text.out.after_call = True
        if further:
            cur.pos = len(cur.text)
            self.ledger.back_to(self.base + cur.pos - len(rest))
            if not self.shows_cut_calls:
                self._report_cut(False, self.base + cur.pos - len(rest))
            elif rest.strip(WS):
                self._text.out.has_policy_text = True
                self._text.out.emit(rest, self.base + cur.pos)
        return False

    def _accept_tentative_calls(self, tentative: TentativeCalls) -> bool:
        """Emit tentative calls, as far as the call policy keeps them. False if it turns them into text, or if a call
        is not whole that has no marker, follows a backtick or is to be shown."""
        if (tentative.kind != IN_REASONING_TEXT or self.shows_cut_calls) and not self.calls[-1].whole:
            return False
        kept = tentative.decide(self.call_policy, self.calls, self.ledger)
        if kept is None:
            self._text.out.has_policy_text = True
            return False
        self.calls = kept
        self.speculation.end()
        self.tentative = None
        self.receiver = tentative.out
        if self.state.region == IN_REASONING:
            self.receiver.reasoning_end()
        tentative.emit(kept)
        self.state = self.program.states[self.program.content]
        return True

    # -- calls without a call -----------------------------------------------------------------------------------

    def _has_only_markers(self) -> bool:
        """True if nothing but markers of calls has been read, so that a block without a call may be dropped."""
        speculation = self.speculation
        if not self._call_reader().has_marker or len(self.calls) > speculation.calls:
            return False
        self.speculation.empty_end = 0
        return self.program.call_markers.fullmatch(speculation.raw(self.cur)) is not None

    def _read_empty_calls(self) -> int:
        """Read the closes of calls without a call. Such a block is dropped, unless no token id proves it and its line
        has text on both sides of it. Of a section with other text in it, only the markers are dropped."""
        cur = self.cur
        closes = self.program.call_closes
        while True:
            cur.pos = cur.spaces()
            if cur.pos >= len(cur.text) and not (cur.final and self.speculation.empty_end):
                return MORE
            end = closes.at(cur.text, cur.pos, cur.final)
            if end == MORE:
                return MORE
            if end < 0 or (self.checks_ids and not self.may_be_marker(cur.pos, end)):
                break
            cur.pos = end
            self.speculation.empty_end = self.speculation.length(cur)
        raw = self.speculation.raw(cur)
        proven = self._opener_has_id(raw)
        opener = self.speculation.opener
        if self.speculation.empty_end:
            alone = "\n" in raw[self.speculation.empty_end :] or cur.pos >= len(cur.text)
            if not (proven or alone) and self._text.out.has_text_on_line(self.speculation.spaces):
                return NO_MATCH
            return self._drop_markers(raw, self.speculation.empty_end)
        if proven and raw[:opener] in self.program.section_opens and self.speculation.origin.region == IN_CONTENT:
            answer = self._drop_markers(raw, opener)
            self.in_section = True
            return answer
        return NO_MATCH

    def _opener_has_id(self, raw: str) -> bool:
        """True if a token id proves the opener that ``raw``, all that has been read, begins with."""
        scanner = self.scanner
        if scanner is None or not scanner.active:
            return False
        opener = raw[: self.speculation.opener]
        return scanner.holds(opener) and scanner.covers(opener, self.base + self.cur.pos - len(raw))

    def _drop_markers(self, raw: str, size: int) -> int:
        """Drop the first ``size`` characters of ``raw``, all that has been read, and read the rest again."""
        cur = self.cur
        if self.speculation.reaches_back:
            self.base += cur.pos - len(raw)
            cur.text = raw + cur.text[cur.pos :]
            cur.pos = 0
        else:
            cur.pos -= len(raw)
        self.undo_speculation()
        self.state = self.speculation.origin
        cur.final = False
        self._text.out.drop("empty_calls", cur.pos + size)
        return READ_TEXT

    # -- the end of the turn ------------------------------------------------------------------------------------

    def _drop_end_tokens(self) -> None:
        """Account for the special tokens at the end of the output that do not end the turn as dropped."""
        raw = self.speculation.raw(self.cur)
        start = self.base + self.cur.pos - len(raw)
        for found in self.program.output_end.pattern.finditer(raw):
            if found.group() not in self.program.turn_end.tags:
                self.ledger.mark(MARKUP, start + found.start())
                self.ledger.report("end_token", start + found.start(), start + found.end())
                self.ledger.mark(DROPPED, start + found.end())

    def _read_turn_end(self) -> int:
        """Read what follows a special token that no token id proves. It counts if nothing else follows."""
        cur = self.cur
        cur.pos = cur.spaces()
        if cur.pos >= len(cur.text):
            return MORE
        end = self.program.output_end.at(cur.text, cur.pos, cur.final)
        if end < 0:
            return end
        cur.pos = end
        return READ_TURN_END
