"""The machine: reads one output, in any pieces, and emits what each part of it is as soon as that is decided.

**Who reads.** The machine runs one reader at a time. Its *mode* is the reader that it runs. A reader moves the cursor
as far as the text decides. It returns either the mode that comes next or a signal (``signals.py``): MORE, if the rest
depends on text that has not come, or NO_MATCH, if what it reads is not a call or a header after all. CallReader returns
signals only: after DONE the machine chooses the mode. ``modes.py`` lists the modes, and which may follow which.

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
because the policy may turn the call into text (``CallEmitter``).

**White space.** White space before a marker belongs to the marker, and white space before text belongs to the text.
So it waits in ``spaces`` until one of the two follows.

**Accounting.** ``mark`` moves a frontier through the output, and every character is marked once. ``report`` records a
diagnostic. Both are undone with the speculation that they were made in.

**Why readers are objects with a phase, and not generators.** A half-fed stream can be copied while the package is not
compiled, and copies of a stream are how a caller looks ahead, but Python cannot copy a running generator. A trial
with JsonReader as a generator saved lines and no time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from .call_state import NO_CALLS
from .growing import NO_TEXTS, own
from .ledger import ARGUMENT_TEXT, CONTENT_TEXT, MARKUP, REASONING_TEXT
from .modes import READ_CALL, READ_HEADER, READ_HEADER_START, READ_TEXT, READ_TURN_END
from .program import IN_REASONING, Program
from .runner import Runner
from .scanner import NO_STRETCHES, TokenScanner, check_ids
from .short_path import MOST_UNCOUNTED, MOST_WAITING, NO_IDS
from .tentative_calls import IN_REASONING_TEXT

_PART: Final = 4096
"""Characters that are read at once while special tokens are dropped, since each copies the text that is being read."""


@final
class Machine(Runner):
    """Runs a Program on one output: takes its deltas, and lets the readers read what does not take the short path."""

    # -- in -----------------------------------------------------------------------------------------------------

    def use_ids(self, scanner: TokenScanner) -> None:
        """Let a scanner say which literals are markers."""
        self.scanner = scanner

    def feed(self, text: str, ids: Sequence[int] = ()) -> str:
        """Take the next delta of the output. Return its text, with stripped markers restored."""
        path = self.path
        if path.goes_on is not None and text and path.take_waiting(text, ids):
            return text
        piece = path.take_passing(text, ids) if text and path.kind != MARKUP else None
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
        size = path.size - path.settled
        texts = path.take() if self.scanner is None else path.settle()
        if path.goes_on is not None:
            cur.text = path.held
            return
        self.base += len(cur.text) + size - begun
        passed = ""
        if path.kind != ARGUMENT_TEXT or path.heads:
            # All is decided of the text so far and these deltas, but this many characters at its end.
            passed = cur.text + "".join(texts)
            cur.text = passed[len(passed) - begun :]
            passed = passed[: len(passed) - begun]
        if path.kind != ARGUMENT_TEXT:
            self.text.pass_on(passed)
        elif self._calls is not None:
            self._calls.pass_on(passed)

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
                path.special = NO_IDS
        elif places is None and path.may_be_counted(ids):
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
            if path.goes_on is not None and text and len(path.held) + len(text) <= MOST_WAITING:
                whole = path.held + text
                if path.goes_on(whole):
                    self.cur.text = path.held = whole
                    return text
        if text:
            self._read_on(text)
        return text

    def _begin_ids(self, scanner: TokenScanner, ids: Sequence[int]) -> None:
        """Take note that the output comes with ids."""
        check_ids(ids)
        if self.path.texts:
            self._count(scanner)
        scanner.active = True
        self.checks_ids = self.checks_ids or scanner.proves_markers
        self.path.special = scanner.special_ids
        self.path.takes_text = False

    def _count(self, scanner: TokenScanner) -> None:
        """Let the scanner count the deltas without special tokens."""
        path = self.path
        scanner.count(path.texts, path.ids)
        path.take()

    def _scan(self, scanner: TokenScanner, text: str, ids: Sequence[int], places: Sequence[int] | None) -> str:
        """Find special tokens in a delta. Return its text, with stripped markers restored."""
        path = self.path
        if path.texts:
            self._count(scanner)
        if places is None:
            text = scanner.read(text, ids)
        else:
            scanner.follow(text, places)
            self.checks_ids = self.checks_ids or scanner.proves_markers
        if scanner.unknown_places:
            self._drop_tokens(scanner.unknown_places)
            scanner.unknown_places = NO_STRETCHES
        path.special = scanner.special_ids if scanner.quiet and scanner.active else None
        path.takes_text = scanner.quiet and (not scanner.active or places is not None)
        return text

    def _read_on(self, text: str) -> None:
        """Read text, if it may decide anything."""
        cur = self.cur
        if self.speculation.size + len(cur.text) + len(text) > self.max_held:
            text = self._read_parts(text)
        while len(text) > _PART and self.text.unknown_tokens:
            self._read(text[:_PART])
            text = text[_PART:]
        self._read(text)
        self._look_ahead()

    def _look_ahead(self) -> None:
        """Open or close the short path for the next delta. In calls, the reader that returned MORE has said which."""
        cur = self.cur
        path = self.path
        if self._mode == READ_TEXT:
            # A long run of white space is not joined again for each delta.
            if self.spaces and self.base - self.ledger.frontier > MOST_WAITING:
                path.kind = MARKUP
            else:
                path.open_text(self.text.passing_kind(), self.state, self.spaces, cur.text)
            cur.goes_on = self.state.goes_on
        elif cur.passed is None or cur.text or self.speculation.active:
            path.kind = MARKUP
        else:
            path.open_value(cur.passed, cur.stops, self.calls[-1].index)
        path.goes_on = None
        if path.kind == MARKUP and cur.goes_on is not None:
            # White space that waits counts, too: it is text if there is too much of it.
            waiting = self.base - self.ledger.frontier
            if self.speculation.size < path.room and waiting < path.room:
                path.goes_on = cur.goes_on
                path.held = cur.text

    def _read_next(self) -> None:
        """Take no short path for the next delta."""
        self.path.kind = MARKUP
        self.path.goes_on = None
        self.cur.goes_on = None

    def decide_quoted_calls(self, when: int) -> None:
        """Let calls count that may be quotations: QUOTED_BY_EVIDENCE, QUOTED_ARE_CALLS or FENCED_ARE_TEXT."""
        self.text.quoted_calls = when

    def keep_space(self) -> None:
        """Take white space that touches a marker for text, unless the Format writes it there."""
        self.text.keeps_space = True

    def _drop_tokens(self, places: list[tuple[int, int]]) -> None:
        """Drop the special tokens at these places of the next text, where they are free text."""
        waiting = self.text.unknown_tokens = own(self.text.unknown_tokens)
        while waiting and waiting[0][0] < self.base and not self.speculation.active:
            waiting.popleft()
        waiting += places
        self._read_next()

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
        if self.cur.final:
            return ""
        held = "" if self.scanner is None else self.scanner.finish()
        path = self.path
        cur = self.cur
        if not held and path.kind in (CONTENT_TEXT, REASONING_TEXT) and not path.held:
            self.base += len(cur.text) + path.size - path.settled
            path.settle()
            self.mark(path.kind, 0)  # no marker follows this text
            self.spaces = NO_TEXTS
            cur.text = ""
            cur.final = True
            self.text.finish()
            return ""
        self.settle()
        if held:
            self._read_on(held)
        self._read("")  # what was kept unread
        while True:
            # A speculation that is still active here is undecided because the output ends.
            if self.speculation.active:
                self.speculation.undecided = self.speculation.number
            cur.final = True
            self._run()
            if cur.final and not self._wind_up():
                break
            cur.final = False
            self._run()
        self.text.finish()
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
    def finished(self) -> bool:
        """True after ``finish``."""
        return self.cur.final

    @property
    def state_index(self) -> int:
        return self.program.states.index(self.state)

    def open_reasoning(self) -> None:
        """Begin inside reasoning, which the prompt left open."""
        self._enter_text(self.program.reasoning)
        self.text.fresh = True
        self._read_next()

    def start_turn(self) -> None:
        """Begin at the start of the turn, because the prompt ends in the opening of an assistant turn."""
        self._enter_text(self.program.after_turn_start)
        self.text.fresh = True
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
        text = self.text
        if self.speculation.number:
            self.speculation.restart()
        self.calls = NO_CALLS
        self.held_arguments = None
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
            text.fresh = True
        text.begin_output()

    @property
    def in_reasoning(self) -> bool:
        return self.state.region == IN_REASONING

    @property
    def in_call(self) -> bool:
        """True inside what may be a call."""
        return self._mode == READ_CALL

    @property
    def offset(self) -> int:
        """Number of characters that are decided."""
        self.settle()
        return self.base
