"""Runs the readers of one output: the mode says which one, and what a reader returns says what follows.

``machine.py`` explains it. Text that was taken for a call or a header and is not one is given back here.
"""

from __future__ import annotations

from ...tools import ToolSet
from . import rules
from .after_calls import accept, read_after_calls
from .call_emitter import CallEmitter
from .call_syntax import A_MARKER, A_WORD, NO_MARKER
from .calls import CallReader
from .context import ReaderContext
from .empty_calls import has_only_markers, read_empty_calls
from .events import EventReceiver
from .free_text import FreeText
from .growing import NO_TEXTS
from .headers import HeaderReader
from .ids import IdFactory
from .ledger import DROPPED, MARKUP
from .lexer import WS
from .markdown import IN_FENCE, NO_SIGN
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
from .program import IN_REASONING, Program
from .rules import MarkerRule
from .short_path import ShortPath
from .signals import AGAIN, DONE, MORE, NO_MATCH
from .speculation import NO_SECTION
from .tentative_calls import ALONE, DRAFTS_RECOVER, IN_REASONING_TEXT, QUOTED


class Runner(ReaderContext):
    """Runs the readers of a Program on the cursor's text."""

    # At most 29 attributes, with those of ReaderContext: CPython keeps more of them in a slower table.

    def __init__(
        self,
        program: Program,
        tools: ToolSet,
        receiver: EventReceiver,
        make_id: IdFactory | None,
        seed: bytes,
        calls_before: int,
        max_held: int,
        reasoning_calls: int,
    ) -> None:
        ReaderContext.__init__(self, program, tools, receiver, max_held, reasoning_calls)
        self._mode: int = READ_TEXT if program.header is None else READ_HEADER_START
        self.text: FreeText = FreeText(self)
        self._make_id: IdFactory | None = make_id
        self._seed: bytes = seed
        self._calls_before: int = calls_before
        # Most outputs have neither calls nor headers, so their readers are made when they are needed.
        self._calls: CallReader | None = None
        self._headers: HeaderReader | None = None
        self.path: ShortPath = ShortPath(max_held)
        """The short path of the next delta."""
        if program.header is None:
            self.path.open_text(self.text.passing_kind(), self.state, [], "")

    def _run(self) -> None:
        """Run readers until one needs more text."""
        cur = self.cur
        cur.passed = None
        cur.goes_on = None
        while True:
            mode = self._mode
            if mode == READ_TEXT:
                result = self.text.step()
                if result == READ_CALL:
                    self._enter_calls(self.text.rule, self.text.marker_end)
            elif mode == READ_CALL:
                calls = self._calls
                assert calls is not None
                result = calls.step()
                if result == DONE:
                    result = self._after_calls(calls)
            else:
                result = self._read_other(mode)
            if result == MORE:
                return
            if result != NO_MATCH:
                self._mode = result
            elif self._take_back(mode) == MORE:
                return

    def _read_other(self, mode: int) -> int:
        """Read in one of the modes that most outputs do not have. Return the next mode, NO_MATCH or MORE."""
        if mode == READ_HEADER_START:
            return self._header_reader().start()
        if mode == READ_HEADER:
            return self._header_reader().step()
        if mode == READ_TURN_END:
            return self._read_turn_end()
        if mode == READ_EMPTY_CALLS:
            return read_empty_calls(self, self.text)
        result = read_after_calls(self, self.text)
        if result == READ_CALL:
            self._enter_calls(self.text.rule, self.text.marker_end)
        return result

    def _take_back(self, mode: int) -> int:
        """Go on after text that is not a call or header after all, or where the output ends. Return AGAIN or MORE."""
        if mode == READ_CALL and has_only_markers(self, self._call_reader()):
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
                self.text.after_call = True
                self._call_reader().emitter.close_call()
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
            self.spaces = NO_TEXTS
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
            self.text.has_policy_text = True
            return False
        if self.tentative is not None and self.tentative.kind != IN_REASONING_TEXT:
            return False
        header = self.program.header
        if header is not None and self._mode == READ_HEADER:
            raw = self.speculation.raw(self.cur)
            if self.text.header_doubt == IS_TEXT or header.is_sentence(raw):
                return False
        if header is not None and not self.speculation.opener:
            return not header.is_one_word
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
        self.text.after_call = True
        self.spaces = NO_TEXTS
        self.ledger.mark(MARKUP, start)
        self._report_cut(in_header, start)

    def _report_cut(self, in_header: bool, start: int) -> None:
        """Account for all text from ``start`` of the output on as dropped."""
        end = self.base + self.cur.pos
        self.ledger.report("incomplete_header" if in_header else "incomplete_call", start, end)
        self.ledger.mark(DROPPED, end)

    def _enter_text(self, index: int) -> None:
        self.text.enter(index)
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
            self.text.emit_opener(before, self.base + cur.pos - len(rest), speculation.opener)
            cur.text = rest + cur.text[cur.pos :]
            self.base += cur.pos - len(rest)
            cur.pos = 0
            self.text.take_close(tentative.close_rule, tentative.close_end - tentative.close_start)
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
            self.text.emit_quotation(raw, start + size)
        elif is_opener:
            self.text.emit_opener(raw[:size], start + size, min(speculation.opener, size))
        else:
            self.text.emit_trimmed(raw[:size], start + size)

    def _call_reader(self) -> CallReader:
        calls = self._calls
        if calls is None:
            emitter = CallEmitter(self, self.text, self._make_id, self._seed, self._calls_before)
            calls = self._calls = CallReader(self, emitter)
        return calls

    def _header_reader(self) -> HeaderReader:
        headers = self._headers
        if headers is None:
            headers = self._headers = HeaderReader(self, self._call_reader(), self.text)
        return headers

    # -- calls --------------------------------------------------------------------------------------------------

    def _enter_calls(self, rule: MarkerRule, end: int) -> None:
        """Begin to read calls, whose opener in free text ends at ``end``. (A header enters its call by itself.)"""
        cur = self.cur
        self.speculate(end - cur.pos)
        text = self.text
        if text.said == IN_FENCE:
            self.report("fenced_call", cur.pos, end)
        if self.tentative is None:
            if self.state.region == IN_REASONING and self.reasoning_calls == DRAFTS_RECOVER:
                self.begin_tentative_calls(IN_REASONING_TEXT)
            elif rule.place in (rules.ON_ITS_LINE, rules.ON_ANY_LINE):
                self.begin_tentative_calls(ALONE)
            elif text.said != NO_SIGN or rule.kind == rules.OPEN_BARE_CALLS:
                self._begin_quotation(end)
        text.unproven = self.checks_ids and not self.has_id(cur.pos, end)
        opener = "" if rule.kind == rules.OPEN_BARE_CALLS else cur.text[cur.pos : end]
        cur.pos += len(opener)
        calls = self._calls or self._call_reader()
        misses_section = rule.missing_section != "" and self.section == NO_SECTION
        is_word = rule.ambiguous or misses_section
        calls.enter(rule.entries, A_WORD if is_word else A_MARKER if opener else NO_MARKER, opener)
        if misses_section:
            self.report("missing_open", cur.pos - len(opener), cur.pos)
            calls.recover()

    def _begin_quotation(self, end: int) -> None:
        """Begin tentative calls directly after a backtick, or if there is a sign that may close a quotation after them.
        Their opener ends at ``end``."""
        if self.text.opens_code:
            self.begin_tentative_calls(QUOTED)
            return
        closing = "" if self.has_id(self.cur.pos, end) else self.text.closing_sign
        if closing:
            self.begin_tentative_calls(QUOTED, closing)

    def _after_calls(self, calls: CallReader) -> int:
        """Go on after the last call. Return the next mode."""
        if self.tentative is not None:
            self.mark_closed()
            self.tentative.end_of_last_call = self.speculation.length(self.cur)
            return READ_AFTER_TENTATIVE_CALLS
        return self.text.leave_calls(not calls.last_became_text)

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
        if not accept(self, self.text, tentative):
            self._release()
            return True
        self.spaces = NO_TEXTS
        self._mode = READ_TEXT
        self.text.after_call = True
        if further:
            cur.pos = len(cur.text)
            self.ledger.back_to(self.base + cur.pos - len(rest))
            if not self.shows_cut_calls or self.text.is_cut_close(rest):
                self._report_cut(False, self.base + cur.pos - len(rest))
            elif rest.strip(WS):
                self.text.has_policy_text = True
                self.text.emit(rest, self.base + cur.pos)
        return False

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
