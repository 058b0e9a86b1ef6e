"""Reads free text: content, reasoning, and the markers between them.

* One search in C finds the next literal of the state. Its MarkerRule says what it means.
* ``marker_judge`` judges whether it is a marker, and ``text_writer`` emits the text before it.
* ``step`` returns the next mode. Calls, headers and the end of the turn are only begun here; others read them.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Final, final

from . import rules
from .context import ReaderContext
from .growing import NO_TEXTS
from .ledger import CONTENT_TEXT, MARKUP, REASONING_TEXT
from .lexer import WS
from .markdown import IN_FENCE
from .marker_judge import MarkerJudge
from .modes import READ_CALL, READ_HEADER, READ_HEADER_START, READ_TEXT, READ_TURN_END
from .program import IN_CONTENT, IN_REASONING
from .rules import MarkerRule
from .signals import MORE, NO_MATCH
from .speculation import NO_SECTION

LONE_NAME: Final = re.compile(r"[\w.\-]++")
"""The name of a call without any marker."""
_NAME: Final = re.compile(rf"[ \t\r\n]*+({LONE_NAME.pattern})")
_NO_TOKENS: Final[deque[tuple[int, int]]] = deque()
_NO_RULE: Final = MarkerRule(rules.ENTER_STATE)
_DECIDED_BY_TEXT: Final = frozenset({rules.OPEN_REASONING, rules.OPEN_CALLS, rules.OPEN_HEADER})
_CLOSES: Final = frozenset(
    {rules.CLOSE_REASONING, rules.CLOSE_WRAP, rules.CLOSE_SECTION, rules.CLOSE_CALL, rules.CLOSE_MESSAGE}
)


@final
class FreeText(MarkerJudge):
    """Reads the free text of one output."""

    def __init__(self, context: ReaderContext) -> None:
        super().__init__(context)
        self.unknown_tokens: deque[tuple[int, int]] = _NO_TOKENS
        """Places of special tokens in the output that are dropped where they are free text."""
        self.rule: MarkerRule = _NO_RULE
        """After READ_CALL: the rule of the marker that opens the calls."""
        self.marker_end: int = 0
        """After READ_CALL: where that marker ends."""
        self._reopened: tuple[int, int] | None = None
        """Start and end of the marker that has opened reasoning again; None if it is closed."""

    def begin_message(self, index: int) -> None:
        """Begin a message of its own, in the state of this index."""
        self.enter(index)
        self.fresh = True
        self.lead = ""
        self.forget(IN_CONTENT)
        self.open_quotes = 0

    def leave_calls(self, kept: bool) -> int:
        """Go on with content after calls. ``kept``: the last one has not become text. Return the next mode."""
        program = self.context.program
        self.context.state = program.states[program.content]
        self.at_start = False
        self.fresh = False
        self.after_call = kept
        return READ_TEXT if program.header is None else READ_HEADER_START

    def begin_output(self) -> None:
        """Begin the output here: all before it was the prompt's."""
        self.context.spaces = NO_TEXTS
        self.after_call = False
        self.forget_all()
        self._with_text = ()
        self.has_closed = False
        self.open_quotes = 0
        self._reopened = None

    @property
    def has_closed_reasoning(self) -> bool:
        """True if a marker has closed reasoning, and what has begun again as well."""
        return self.has_closed and self._reopened is None

    def finish(self) -> None:
        """End the output. White space at its very end is text, unless it follows a call or a marker."""
        self._report_unclosed()
        context = self.context
        spaces = "".join(context.spaces)
        context.spaces = NO_TEXTS
        if spaces and not self.after_call and not self.fresh:
            self.emit(spaces, context.ledger.frontier + len(spaces))

    # -- in -----------------------------------------------------------------------------------------------------

    def passing_kind(self) -> int:
        """Return the kind of the text that is being read, if text without a marker can be emitted unread; else
        MARKUP."""
        context = self.context
        if self.fresh or self.after_call or self.unknown_tokens:
            return MARKUP
        if self.at_start and (context.state.lone_calls or context.program.header or self.has_text):
            return MARKUP  # the first text of the state may mean more than that text has begun
        region = context.state.region
        return CONTENT_TEXT if region == IN_CONTENT else REASONING_TEXT if region == IN_REASONING else MARKUP

    def step(self, whole: bool = True) -> int:
        """Read up to the next marker, or as far as the text decides. Return the next mode, or MORE. ``whole``: the text
        may hold special tokens that are dropped."""
        context = self.context
        if whole and self.unknown_tokens:
            return self._step_to_unknown_token()
        cur = context.cur
        text = cur.text
        pos = cur.pos
        if pos >= len(text):
            return MORE
        state = context.state
        if state.lone_calls is not None:
            answer = self._begin_lone_call(state.lone_calls, text, pos)
            if answer != NO_MATCH:
                return answer
        literals = state.literals
        search = pos
        while True:
            found = literals.pattern.search(text, search)
            if found is None:
                return self._end_text(len(text) if cur.final else literals.undecided_from(text, pos))
            start = found.start()
            if len(text) - start < literals.longest and not cur.final and found.group() in literals.inner:
                # A longer literal may have begun before this one and contain it: ``Action:\n``` `` before ``` ``` ``.
                tail = literals.undecided_from(text, pos)
                if tail <= start:
                    return self._end_text(tail)
            rule = state.rules[literals.tags[found.group()]]
            if rule.kind in _DECIDED_BY_TEXT:
                # The text before it decides if it is a marker.
                if start > cur.pos:
                    self._emit_to(start)
                pos = start
            quotes = self.open_quotes + self.refused
            if self.accepts(rule, start, found.end()):
                if start > cur.pos:
                    self._emit_to(start)
                if self.keeps_space:
                    self.keep_space(rule.space_before)
                is_close = rule.kind in _CLOSES
                answer = self._read_close(rule, found.end()) if is_close else self._take(rule, found.end())
                if answer != NO_MATCH:
                    return answer
                pos = start
                search = found.end()
                continue
            quoted = self.open_quotes + self.refused > quotes
            if not quoted and self._may_end(found.group(), start):
                self._emit_to(start)
                self.keep_space("")
                return self._wait_for_end(found.end())
            search = found.end() if quoted or rule.kind == rules.CALL_TEXT else start + 1

    def _emit_to(self, end: int) -> None:
        """Emit the text before ``end``."""
        cur = self.context.cur
        if end > cur.pos:
            self.emit_trimmed(cur.text[cur.pos : end], self.context.base + end)
            cur.pos = end

    def _end_text(self, end: int) -> int:
        """Emit the text before ``end``, as far as it is not the beginning of a close with which the output ends. Return
        MORE."""
        cur = self.context.cur
        if cur.final and self.after_call and self.is_cut_close(cur.text[cur.pos :]):
            self.drop("stray_close", len(cur.text))
        else:
            self.emit_trimmed(cur.text[cur.pos : end], self.context.base + end)
            cur.pos = end
        return MORE

    def _begin_lone_call(self, rule: MarkerRule, text: str, pos: int) -> int:
        """Begin a call without any marker, if the text begins with one. Return the next mode, NO_MATCH or MORE."""
        if not ((self.at_start or self.after_call) and self.context.tools.known):
            return NO_MATCH
        start = self._find_lone_call(rule, text, pos)
        if start < 0:
            return start
        self._emit_to(start)
        return self._take(rule, start + 1)

    def _find_lone_call(self, rule: MarkerRule, text: str, pos: int) -> int:
        """Return where the text begins if it begins with an offered name and a bracket, NO_MATCH or MORE. After a call
        it does so on a new line, where the Format writes one call a line."""
        names = self.context.tools.names
        found = _NAME.match(text, pos)
        if found is None:
            return NO_MATCH
        if not self.at_start:
            before = "".join(self.context.spaces) + text[pos : found.start(1)]
            if rule.place != rules.ON_ANY_LINE or "\n" not in before:
                return NO_MATCH
        if found.end() < len(text):
            return found.start(1) if text[found.end()] == "(" and found.group(1) in names else NO_MATCH
        undecided = not self.context.cur.final and any(name.startswith(found.group(1)) for name in names)
        return MORE if undecided else NO_MATCH

    def take_close(self, rule: MarkerRule, end: int) -> None:
        """Close reasoning with the marker from the cursor to ``end``, whose rule is given."""
        self.keep_space(rule.space_before)
        self._take(rule, end)

    def _read_close(self, rule: MarkerRule, end: int) -> int:
        """Read the close from the cursor to ``end``. Return the next mode, or MORE. Return NO_MATCH if it is text: it
        is between two backticks."""
        if self.opens_code:
            cur = self.context.cur
            if end < len(cur.text):
                if cur.text[end] == "`":
                    return NO_MATCH
            elif not cur.final:
                return MORE
        return self._take(rule, end)

    def _step_to_unknown_token(self) -> int:
        """Read up to the next special token that the Format does not know, and drop it."""
        context = self.context
        cur = context.cur
        here = context.base + cur.pos
        waiting = self.unknown_tokens
        while waiting and waiting[0][0] < here:
            waiting.popleft()
        if not waiting:
            return self.step(False)
        start, end = waiting[0]
        size = len(cur.text)
        if start >= context.base + size:
            return self.step(False)
        if start == here:
            if end > context.base + size:
                return MORE
            waiting.popleft()
            self.drop("unknown_token", end - context.base)
            return READ_TEXT
        # The text before the token is read as if it ended there.
        rest = cur.text[start - context.base :]
        final = cur.final
        cur.text = cur.text[: start - context.base]
        cur.final = True
        mode = self.step(False)
        cur.text += rest
        cur.final = final
        return READ_TEXT if mode == MORE else mode

    def is_cut_close(self, text: str) -> bool:
        """True if this text after a call, with which the output ends, is the beginning of a close of calls, perhaps
        after whole ones. Its first character alone is text."""
        closes = self.context.program.call_closes
        begun = text.strip(WS)
        if len(begun) == 1:
            return False
        while begun and begun not in closes.prefixes:
            end = closes.at(begun, 0, True)
            begun = "" if end < 0 else begun[end:].lstrip(WS)
        return begun != ""

    def _take(self, rule: MarkerRule, end: int) -> int:
        """Carry out the rule of the marker from the cursor to ``end``. Return the next mode."""
        context = self.context
        cur = context.cur
        action = rule.kind
        self.lead = rule.space_after
        if action in (rules.OPEN_CALLS, rules.OPEN_BARE_CALLS):
            self.rule = rule
            self.marker_end = end
            return READ_CALL
        if action == rules.ENTER_STATE:
            self._enter_state(rule, end)
        elif action == rules.OPEN_REASONING:
            if self.has_closed or not self.at_start:
                self._reopened = context.base + cur.pos, context.base + end
            self.drop_marker(end)
            if context.state.region != IN_REASONING:
                context.receiver.reasoning_start()
            self.enter(context.program.reasoning)
            self.fresh = True
            self.forget(IN_REASONING)
        elif action == rules.CLOSE_REASONING:
            self._close_reasoning(end)
        elif action in (rules.OPEN_WRAP, rules.CLOSE_WRAP):
            self.drop_marker(end)
            if context.state.region == IN_REASONING:
                context.receiver.reasoning_end()
                self.enter(context.program.content)
            self.wrapped = action == rules.OPEN_WRAP
            self.fresh = True
        elif action == rules.OPEN_TURN:
            self.drop_marker(end)
            self.has_start = True
            self.fresh = True
        elif action == rules.CLOSE_SECTION and (context.section or self.right_after_call(cur.pos)):
            self.drop_marker(end)
            context.section = NO_SECTION
            self.after_call = True
        elif action in (rules.CLOSE_CALL, rules.CLOSE_SECTION):
            self.drop("stray_close", end)
        elif action == rules.END_TURN:
            return self._end_turn(end)
        elif action == rules.CLOSE_MESSAGE:
            if context.state.region == IN_REASONING:
                context.receiver.reasoning_end()
            self.drop_marker(end)
            self.enter(context.program.content)
            return READ_HEADER_START
        elif action == rules.OPEN_HEADER:
            context.speculate(end - cur.pos)
            if self.ends_message:
                context.report("unclosed_message", cur.pos, end)
            if self.said == IN_FENCE:
                context.report("fenced_call", cur.pos, end)
            if rule.place != rules.IN_HEADER:
                cur.pos = end
            return READ_HEADER
        return READ_TEXT

    def _end_turn(self, end: int) -> int:
        """Take an end-of-turn marker. Without a token id it counts only if nothing follows it."""
        context = self.context
        cur = context.cur
        if not context.has_id(cur.pos, end):
            return self._wait_for_end(end)
        self._report_unclosed()
        self.drop_marker(end)
        self.begin_message(context.program.content)
        return READ_HEADER_START if context.program.header is not None else READ_TEXT

    def _may_end(self, literal: str, start: int) -> bool:
        """True if a special token that has no meaning here may be the end of the output: without token ids, and not
        directly after a backtick."""
        context = self.context
        if context.checks_ids or literal not in context.program.output_end.tags:
            return False
        before = context.cur.text[context.cur.pos : start] or ("" if context.spaces else self.last_piece)
        return not before.endswith("`")

    def _wait_for_end(self, end: int) -> int:
        """Buffer the special token from the cursor to ``end``: it counts if the output ends here."""
        cur = self.context.cur
        self.context.speculate(end - cur.pos)
        cur.pos = end
        return READ_TURN_END

    def _report_unclosed(self) -> None:
        """Report reasoning that has begun again and is still open where the output or its turn ends."""
        if self._reopened is not None and self.context.state.region == IN_REASONING:
            self.context.ledger.report("unclosed_reasoning", self._reopened[0], self._reopened[1])

    def _close_reasoning(self, end: int) -> None:
        """Close reasoning with the marker from the cursor to ``end``. A second close is dropped."""
        context = self.context
        if context.state.region == IN_REASONING:
            self.drop_marker(end)
            context.receiver.reasoning_end()
            self.enter(context.program.content)
            self.fresh = True
            self.has_closed = True
            self._reopened = None
            return
        if self.at_start:
            self.fresh = True
        elif context.spaces:
            spaces = "".join(context.spaces)
            self.emit(spaces, context.base + context.cur.pos)
            context.spaces = NO_TEXTS
        self.drop("stray_close", end)

    def _enter_state(self, rule: MarkerRule, end: int) -> None:
        context = self.context
        cur = context.cur
        events = context.config_events
        literal = cur.text[cur.pos : end]
        kind = MARKUP if events is None else events.take(rule, literal, context.base + cur.pos)
        cur.pos = end
        context.mark(kind, end)
        context.state = context.program.states[rule.next_state]
