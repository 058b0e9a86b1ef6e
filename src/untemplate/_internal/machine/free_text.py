"""Reads free text: content, reasoning, and the markers between them.

* One search in C finds the next literal of the state. Its MarkerRule, and the text around it, decide if it is a marker.
* White space at the end of the text waits for what follows. White space that touches a marker belongs to the marker.
* ``step`` returns the next mode. Calls, headers and the end of the turn are only begun here; others read them.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import Final, final

from .context import ReaderContext
from .diagnostics import DiagnosticCode
from .events import EventReceiver
from .evidence import NOT_IN_FENCES, Evidence
from .ledger import CONTENT_TEXT, DROPPED, MARKUP, REASONING_TEXT
from .lexer import WS, shared_start
from .markdown import IN_FENCE, IN_STRING, NO_EVIDENCE
from .modes import READ_CALL, READ_HEADER, READ_HEADER_START, READ_TEXT, READ_TURN_END
from .program import (
    ANYWHERE,
    AT_START,
    CALL_TEXT,
    CLOSE_CALL,
    CLOSE_MESSAGE,
    CLOSE_REASONING,
    CLOSE_SECTION,
    CLOSE_WRAP,
    END_TOKEN,
    END_TURN,
    ENTER_STATE,
    IN_CONTENT,
    IN_HEADER,
    IN_REASONING,
    IN_SECTION,
    ON_ANY_LINE,
    OPEN_BARE_CALLS,
    OPEN_CALLS,
    OPEN_HEADER,
    OPEN_REASONING,
    OPEN_TURN,
    OPEN_WRAP,
    MarkerRule,
)
from .signals import MORE, NO_MATCH
from .tentative_calls import NEVER

# What is known of a header inside an open message.
NO_DOUBT: Final = 0
NEEDS_TWO_PARTS: Final = 1
"""It ends the message if a role and another marker follow its opener; else it is text."""
IS_TEXT: Final = 2

LONE_NAME: Final = re.compile(r"[\w.\-]++")
"""The name of a call without any marker."""
_NAME: Final = re.compile(rf"[ \t\r\n]*+({LONE_NAME.pattern})")
_NOBODY: Final = EventReceiver()
_NO_RULE: Final = MarkerRule(ENTER_STATE)
_SENTENCE_ENDS: Final = frozenset(".!?。！？:")
_CLOSING_SIGNS: Final = " \t\"')]*_`”’"
"""Characters that may follow the end of a sentence."""
_QUOTED_CLOSES: Final = frozenset({CLOSE_REASONING, CLOSE_WRAP, CLOSE_MESSAGE})
_DECIDED_BY_TEXT: Final = frozenset({OPEN_REASONING, OPEN_CALLS, OPEN_HEADER})
_CLOSES: Final = frozenset({CLOSE_REASONING, CLOSE_WRAP, CLOSE_SECTION, CLOSE_CALL, CLOSE_MESSAGE})


@final
class FreeText:
    """Reads the free text of one output."""

    def __init__(self, context: ReaderContext) -> None:
        self.context: ReaderContext = context
        self.before: Evidence = Evidence(context)
        """The text so far."""
        self.fresh: bool = False
        """True if only white space has followed the last marker."""
        self.lead: str = ""
        """White space that the Format writes after the last marker, as far as it has not come."""
        self.at_start: bool = True
        """True if the region has only had white space so far."""
        self.after_call: bool = False
        """True if only white space has followed the last call."""
        self.keeps_space: bool = False
        """True if white space that touches a marker is text, unless the Format writes it there."""
        self.unknown_tokens: deque[tuple[int, int]] | None = None
        """Places of special tokens in the output that are dropped where they are free text; None: none has come."""
        self.rule: MarkerRule = _NO_RULE
        """After READ_CALL: the rule of the marker that opens the calls."""
        self.marker_end: int = 0
        """After READ_CALL: where that marker ends."""
        self.in_fence: bool = False
        """After READ_CALL and READ_HEADER: True if the marker is inside a fence."""
        self.header_doubt: int = NO_DOUBT
        """After READ_HEADER: what has to be known of the header."""
        self._ends_message: bool = False
        """After that: True if a message is open that the header ends."""
        self._wrapped: bool = False
        """True between the markers around content."""
        self._has_start: bool = False
        """True after the start of the turn, if the output has written it."""
        self._with_text: tuple[int, ...] = ()
        """Regions of messages with headers that had text: messages of one region are joined."""
        self.has_closed: bool = False
        """True if reasoning has been closed before."""
        self._open_quotes: int = 0
        """Number of openers that are content, and whose closers have not come: those are content, too."""
        self._quotes_calls: bool = False
        """True after an opener of calls in a string, until an opener that nothing quotes."""
        self.unproven: bool = False
        """True if ids are in use, and none proves the opener of the last calls."""
        self.has_policy_text: bool = False
        """True if a policy has turned a call into text."""
        self._refused: int = 0
        """Number of openers of calls that were text because they are quoted or only spelled."""
        self._reopened: tuple[int, int] | None = None
        """Start and end of the marker that has opened reasoning again; None if it is closed."""
        self._text_marker: int = -1
        """Where the last marker ends that is text because it was only spelled or is in a string, in characters of the
        output. White space and further markers that belong to it may follow."""

    def enter(self, index: int) -> None:
        """Begin a region, in the state of this index."""
        context = self.context
        context.state = context.program.states[index]
        self.at_start = True
        self.after_call = False

    def leave_calls(self, kept: bool) -> None:
        """Go on with content after calls. ``kept``: the last one has not become text."""
        self.at_start = False
        self.fresh = False
        self.after_call = kept

    def begin_message(self, index: int) -> None:
        """Begin a message of its own, in the state of this index."""
        self.enter(index)
        self.fresh = True
        self.lead = ""
        self.before.forget(IN_CONTENT)
        self._open_quotes = 0

    def begin_output(self) -> None:
        """Begin the output here: all before it was the prompt's."""
        self.context.spaces = []
        self.after_call = False
        self.before.clear()
        self._with_text = ()
        self.has_closed = False
        self._open_quotes = 0
        self._reopened = None

    def take_opener_as_text(self) -> None:
        """Take note that an opener is content, so that its closer is content, too."""
        self._open_quotes += 1

    def emit_opener(self, text: str, end: int, size: int) -> None:
        """Emit text that begins with an opener of calls of this size, which is text, too."""
        self.emit_trimmed(text[:size], end - len(text) + size)
        self.before.take_opener()
        self.emit_trimmed(text[size:], end)

    def has_text_on_line(self, spaces: Sequence[str]) -> bool:
        """True if text precedes, on the same line, what follows this white space."""
        last = self.before.last_piece
        before = last[len(last.rstrip(WS)) :] + "".join(spaces)
        return not (self.at_start or self.after_call or self.fresh) and "\n" not in before

    @property
    def quotes(self) -> bool:
        """True if the text ends in a single backtick that opens inline code."""
        return not self.context.spaces and self.before.opens_code

    @property
    def closing_sign(self) -> str:
        """The sign that closes the inline code or the quotation around the marker at the cursor; empty without one."""
        return "" if self.at_start or self.after_call else self.before.closing_sign("".join(self.context.spaces))

    def emit_quotation(self, text: str, end: int) -> None:
        """Emit a quoted call. It is a word of the inline code around it, whatever its own text is."""
        place = self.before.place()
        self.emit_trimmed(text, end)
        self.before.return_to(place)

    def pass_on(self, text: str) -> None:
        """Take note of text before the cursor that has been emitted without being read."""
        context = self.context
        receiver = context.receiver
        context.receiver = _NOBODY
        self.emit_trimmed(text, context.base)
        context.receiver = receiver

    # -- in -----------------------------------------------------------------------------------------------------

    def passing_kind(self) -> int:
        """Return the kind of the text that is being read, if text without a marker can be emitted unread; else
        MARKUP."""
        context = self.context
        if self.fresh or self.after_call or self.unknown_tokens:
            return MARKUP
        if self.at_start and not self._begins_simply():
            return MARKUP
        region = context.state.region
        return CONTENT_TEXT if region == IN_CONTENT else REASONING_TEXT if region == IN_REASONING else MARKUP

    def _begins_simply(self) -> bool:
        """True if the first text of the state means no more than that text has begun."""
        context = self.context
        return context.state.lone_calls is None and context.program.header is None and not self.before.has_text

    def step(self, whole: bool = True) -> int:
        """Read up to the next marker, or as far as the text decides. Return the next mode, or MORE. ``whole``: the text
        may hold special tokens that are dropped."""
        context = self.context
        if whole and self.unknown_tokens:
            return self._step_to_unknown_token()
        cur = context.cur
        text = cur.text
        pos = cur.pos
        size = len(text)
        if pos >= size:
            return MORE
        base = context.base
        state = context.state
        if state.lone_calls is not None and (self.at_start or self.after_call) and context.tools.known:
            start = self._find_lone_call(text, pos)
            if start == MORE:
                return MORE
            if start >= 0:
                self.emit_trimmed(text[pos:start], base + start)
                cur.pos = start
                return self._take(state.lone_calls, start + 1)
        literals = state.literals
        search = pos
        end = -1
        while True:
            found = literals.find(text, search)
            if found is None:
                break
            start = found.start()
            if size - start < literals.longest and not cur.final and found.group() in literals.inner:
                # A longer literal may have begun before this one and contain it: ``Action:\n``` `` before ``` ``` ``.
                tail = literals.undecided_from(text, pos)
                if tail <= start:
                    end = tail
                    break
            rule = state.rules[literals.tags[found.group()]]
            quotes = self._open_quotes + self._refused
            if start > pos and rule.kind in _DECIDED_BY_TEXT:
                # The text before it decides if it is a marker.
                self.emit_trimmed(text[pos:start], base + start)
                cur.pos = pos = start
            if self._accepts(rule, start, found.end()):
                if start > pos:
                    self.emit_trimmed(text[pos:start], base + start)
                    cur.pos = start
                self._keep_space(rule.before)
                answer = self._read_marker(rule, found.end())
                if answer != NO_MATCH:
                    return answer
                pos = start
                search = found.end()
                continue
            quoted = self._open_quotes + self._refused - quotes
            if not quoted and self._may_end(found.group(), start):
                self.emit_trimmed(text[pos:start], base + start)
                cur.pos = start
                self._keep_space("")
                return self._wait_for_end(found.end())
            is_text = rule.kind == CALL_TEXT or quoted > 0
            search = found.end() if is_text else start + 1
        if end < 0:
            end = size if cur.final else literals.undecided_from(text, pos)
        if cur.final and self.after_call and self._is_cut_close(text[pos:]):
            self.drop("stray_close", size)
            return MORE
        self.emit_trimmed(text[pos:end], base + end)
        cur.pos = end
        return MORE

    def _find_lone_call(self, text: str, pos: int) -> int:
        """Return where the text begins if it begins with an offered name and a bracket, NO_MATCH or MORE. After a call
        it does so on a new line, where the Format writes one call a line."""
        names = self.context.tools.names
        found = _NAME.match(text, pos)
        if found is None:
            return NO_MATCH
        if not self.at_start:
            lone = self.context.state.lone_calls
            assert lone is not None
            if not (lone.where == ON_ANY_LINE and "\n" in "".join(self.context.spaces) + text[pos : found.start(1)]):
                return NO_MATCH
        if found.end() < len(text):
            return found.start(1) if text[found.end()] == "(" and found.group(1) in names else NO_MATCH
        undecided = not self.context.cur.final and any(name.startswith(found.group(1)) for name in names)
        return MORE if undecided else NO_MATCH

    def take_close(self, rule: MarkerRule, end: int) -> None:
        """Close reasoning with the marker from the cursor to ``end``, whose rule is given."""
        self._keep_space(rule.before)
        self._take(rule, end)

    def _keep_space(self, own: str) -> None:
        """Emit the white space between text and the marker at the cursor, except ``own``, which belongs to it. By
        default all of it does."""
        context = self.context
        if not self.keeps_space or self.at_start or self.fresh or self.after_call:
            return
        spaces = "".join(context.spaces)
        size = shared_start(spaces[::-1], own[::-1])
        kept = spaces[: len(spaces) - size]
        context.spaces = [spaces[len(kept) :]] if size else []
        if kept:
            self.emit(kept, context.base + context.cur.pos - size)

    def _read_marker(self, rule: MarkerRule, end: int) -> int:
        """Read the marker from the cursor to ``end``. Return the next mode, or MORE. Return NO_MATCH if it is a close
        marker between two backticks, which is text."""
        if rule.kind in _CLOSES and self.quotes:
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

    def drop(self, code: DiagnosticCode, end: int) -> None:
        """Drop and report the text from the cursor to ``end``. White space before it stays, if it follows text."""
        context = self.context
        spaces = "".join(context.spaces)
        context.spaces = []
        if spaces and not self.at_start and not self.after_call:
            self.emit(spaces, context.base + context.cur.pos)
        context.mark(MARKUP, context.cur.pos)
        context.report(code, context.cur.pos, end)
        context.cur.pos = end
        context.mark(DROPPED, end)

    def _accepts(self, rule: MarkerRule, start: int, end: int) -> bool:
        """True if the literal at ``start`` is a marker here."""
        context = self.context
        action = rule.kind
        if context.checks_ids and not context.may_be_marker(start, end):
            if action == OPEN_CALLS:
                self._text_marker = context.base + end
                self._refused += 1
            return False
        if action == OPEN_CALLS:
            return self._accepts_calls(rule, start, end)
        if action == OPEN_REASONING:
            return self._accepts_reasoning(start, end)
        if action == OPEN_HEADER:
            self._judge_header(rule, start, end)
            return True
        if action == CALL_TEXT:
            self._open_quotes += rule.target
            return False
        if action == CLOSE_WRAP and self._wrapped:
            return True
        if (
            action in _QUOTED_CLOSES
            and self._open_quotes
            and (action == CLOSE_MESSAGE or context.state.region == IN_CONTENT)
        ):
            self._open_quotes -= 1
            return False
        if action == OPEN_WRAP:
            return not self._wrapped and (rule.where == ANYWHERE or self._nothing_before(start))
        if action == CLOSE_WRAP:
            return False
        if rule.where == AT_START and not self._may_begin(rule, start):
            return False
        if action in (CLOSE_SECTION, CLOSE_CALL) and self._quotes_calls and not self._right_after_call(start):
            # Another call of the quotation may follow.
            self._text_marker = context.base + end
        if action == CLOSE_SECTION:
            if context.speculation.section_is_text:
                context.speculation.section_is_text = False
                context.in_section = False
                return False
            return context.in_section or self._right_after_call(start)
        if action == CLOSE_CALL:
            return self._right_after_call(start)
        if action == END_TOKEN:
            return False
        if action == OPEN_BARE_CALLS:
            return self._nothing_before(start)
        if action == ENTER_STATE:
            if rule.needs_id and (context.checks_ids or rule.needs_id == 2) and not context.has_id(start, end):
                return False
            events = context.config_events
            return events is None or events.accepts(context.cur.text, context.cur.pos, start)
        return True

    def _accepts_reasoning(self, start: int, end: int) -> bool:
        """True if the opener at the cursor begins reasoning. If it is content, its closer will be, too."""
        context = self.context
        if self.at_start or context.state.region != IN_CONTENT:
            return self.at_start
        spaces = "".join(context.spaces)
        before = self.before.text()
        if before is None or not (before.in_fence or (not spaces and before.after_backtick)):
            begins_line = "\n" in spaces or self.after_call
            directly = context.program.repeats and not spaces
            if begins_line or directly or context.has_id(start, end):
                return True
        self._open_quotes += 1
        return False

    def _accepts_calls(self, rule: MarkerRule, start: int, end: int) -> bool:
        context = self.context
        self.in_fence = False
        if rule.where == IN_SECTION and not context.in_section:
            return False
        if rule.ambiguous and not self._begins_sentence(start):
            return False
        if rule.lacks and not context.in_section:
            is_provable = context.checks_ids and context.is_special(rule.lacks)
            if is_provable or not context.tools.known:
                return False
        if context.state.region == IN_REASONING and context.reasoning_calls == NEVER:
            return False
        if self._text_marker < 0 and self.before.is_empty:
            self._quotes_calls = False
            return True  # no text is before it
        return context.has_id(start, end) or not self._is_quoted_call(start, end)

    def _judge_header(self, rule: MarkerRule, start: int, end: int) -> None:
        """Find out what has to be known of the header at the cursor before it may end an open message."""
        context = self.context
        header = context.program.header
        assert header is not None
        self.in_fence = False
        self.header_doubt = NO_DOUBT
        self._ends_message = not (self.at_start or header.closes.empty)
        if context.has_id(start, end):
            return
        if self._is_quoted_call(start, end):
            self.header_doubt = IS_TEXT
        elif self._ends_message and not self._begins_line_or_sentence():
            self.header_doubt = IS_TEXT if rule.where == IN_HEADER else NEEDS_TWO_PARTS

    def _begins_line_or_sentence(self) -> bool:
        """True if a line begins at the cursor, or the end of a sentence is before it."""
        if self.after_call or any("\n" in spaces for spaces in self.context.spaces):
            return True
        before = self.before.text()
        return before is not None and before.last_but(_CLOSING_SIGNS) in _SENTENCE_ENDS

    def _is_quoted_call(self, start: int, end: int) -> bool:
        """True if the text before the opener of calls at ``start`` makes it text. So does a marker before it that is
        text, if both belong together."""
        context = self.context
        if self._follows_text_marker(start):
            self._refused += 1
            self._text_marker = context.base + end
            return True
        if context.state.region != IN_CONTENT and context.program.header is None:
            return False
        spaces = "\n" if self.at_start or self.after_call else "".join(context.spaces)
        evidence = self.before.evidence(spaces)
        if evidence == NO_EVIDENCE:
            self._quotes_calls = False
            return False
        if evidence == IN_FENCE and self.before.quoted_calls != NOT_IN_FENCES:
            self.in_fence = True
            return False
        context.report("quoted_call", start, end)
        self._refused += 1
        self._quotes_calls = evidence == IN_STRING
        if self._quotes_calls:
            self._text_marker = context.base + end
        return True

    def _follows_text_marker(self, start: int) -> bool:
        """True if only white space comes between a marker that is text and ``start``."""
        context = self.context
        if self._text_marker < 0 or context.ledger.frontier > self._text_marker:
            return False
        begin = max(self._text_marker - context.base, context.cur.pos)
        return not context.cur.text[begin:start].strip(WS)

    def _begins_sentence(self, start: int) -> bool:
        """True if an opener that is a word may begin a call at ``start``: where content begins or, if the tools are
        known, where a line or a sentence begins, and directly after a marker."""
        cur = self.context.cur
        before = "".join(self.context.spaces) + cur.text[cur.pos : start]
        text = before.rstrip(WS)
        if not text and (self.at_start or self.fresh or self.after_call):
            return self.at_start or self.after_call or self.context.tools.known
        end = (text or self.before.last_piece)[-1:]
        begins = "\n" in before[len(text) :] or (end in _SENTENCE_ENDS and end != ":" and len(text) < len(before))
        return begins and self.context.tools.known

    def _is_cut_close(self, text: str) -> bool:
        """True if this text after a call, with which the output ends, begins a closer of calls."""
        begun = text.strip(WS)
        return len(begun) > 1 and begun in self.context.program.call_closes.prefixes

    def _right_after_call(self, start: int) -> bool:
        cur = self.context.cur
        return self.after_call and not cur.text[cur.pos : start].strip(WS)

    def _nothing_before(self, start: int) -> bool:
        """True if the region has only had white space before ``start``."""
        cur = self.context.cur
        return self.at_start and not cur.text[cur.pos : start].strip(WS)

    def _may_begin(self, rule: MarkerRule, start: int) -> bool:
        """True if a marker that counts only at the start is there; the start of the turn counts once."""
        is_second = rule.kind == OPEN_TURN and (self._has_start or self.has_closed)
        return self._nothing_before(start) and not is_second

    def _take(self, rule: MarkerRule, end: int) -> int:
        """Carry out the rule of the marker from the cursor to ``end``. Return the next mode."""
        context = self.context
        cur = context.cur
        action = rule.kind
        self.lead = rule.after
        if action in (OPEN_CALLS, OPEN_BARE_CALLS):
            self.rule = rule
            self.marker_end = end
            return READ_CALL
        if action == ENTER_STATE:
            self._enter_state(rule, end)
        elif action == OPEN_REASONING:
            if self.has_closed or not self.at_start:
                self._reopened = context.base + cur.pos, context.base + end
            self._drop(end)
            if context.state.region != IN_REASONING:
                context.receiver.reasoning_start()
            self.enter(context.program.reasoning)
            self.fresh = True
            self.before.forget(IN_REASONING)
        elif action == CLOSE_REASONING:
            self._close_reasoning(end)
        elif action in (OPEN_WRAP, CLOSE_WRAP):
            self._drop(end)
            if context.state.region == IN_REASONING:
                context.receiver.reasoning_end()
                self.enter(context.program.content)
            self._wrapped = action == OPEN_WRAP
            self.fresh = True
        elif action == OPEN_TURN:
            self._drop(end)
            self._has_start = True
            self.fresh = True
        elif action == CLOSE_SECTION and (context.in_section or self._right_after_call(cur.pos)):
            self._drop(end)
            context.in_section = False
            self.after_call = True
        elif action in (CLOSE_CALL, CLOSE_SECTION):
            self.drop("stray_close", end)
        elif action == END_TURN:
            return self._end_turn(end)
        elif action == CLOSE_MESSAGE:
            if context.state.region == IN_REASONING:
                context.receiver.reasoning_end()
            self._drop(end)
            self.enter(context.program.content)
            return READ_HEADER_START
        elif action == OPEN_HEADER:
            context.speculate(end - cur.pos)
            if self._ends_message:
                context.report("unclosed_message", cur.pos, end)
            if self.in_fence:
                context.report("fenced_call", cur.pos, end)
            if rule.where != IN_HEADER:
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
        self._drop(end)
        self.begin_message(context.program.content)
        return READ_HEADER_START if context.program.header is not None else READ_TEXT

    def _may_end(self, literal: str, start: int) -> bool:
        """True if a special token that has no meaning here may be the end of the output; without token ids."""
        context = self.context
        if context.checks_ids or literal not in context.program.output_end.tags:
            return False
        return not self._is_quoted(start)

    def _is_quoted(self, start: int) -> bool:
        """True if a backtick directly precedes ``start``."""
        cur = self.context.cur
        before = cur.text[cur.pos : start] or ("" if self.context.spaces else self.before.last_piece)
        return before.endswith("`")

    def _wait_for_end(self, end: int) -> int:
        """Buffer the special token from the cursor to ``end``: it counts if the output ends here."""
        cur = self.context.cur
        self.context.speculate(end - cur.pos)
        cur.pos = end
        return READ_TURN_END

    def _drop(self, end: int) -> None:
        """Read a marker up to ``end``. The white space before it belongs to it."""
        context = self.context
        context.spaces = []
        context.cur.pos = end
        context.mark(MARKUP, end)

    def _report_unclosed(self) -> None:
        """Report reasoning that has begun again and is still open where the output or its turn ends."""
        if self._reopened is not None and self.context.state.region == IN_REASONING:
            self.context.ledger.report("unclosed_reasoning", self._reopened[0], self._reopened[1])

    def _close_reasoning(self, end: int) -> None:
        """Close reasoning with the marker from the cursor to ``end``. A second close is dropped."""
        context = self.context
        if context.state.region == IN_REASONING:
            self._drop(end)
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
            context.spaces = []
        self.drop("stray_close", end)

    def _enter_state(self, rule: MarkerRule, end: int) -> None:
        context = self.context
        cur = context.cur
        events = context.config_events
        literal = cur.text[cur.pos : end]
        kind = MARKUP if events is None else events.take(rule, literal, context.base + cur.pos)
        cur.pos = end
        context.mark(kind, end)
        context.state = context.program.states[rule.target]

    # -- out: places are in characters of the output --------------------------------------------------------------

    def emit_trimmed(self, piece: str, end: int) -> None:
        """Emit text of the state that ends at ``end``, except white space that may belong to a marker."""
        if not piece:
            return
        context = self.context
        if not context.state.trims:
            self.emit(piece, end)
            return
        if self.fresh:
            piece = self._first_text(piece, end)
            if not piece:
                return
        body = piece.rstrip(WS)
        spaces = context.spaces
        if not body:
            spaces.append(piece)
            context.limit_spaces(end)
            return
        after = piece[len(body) :]
        if spaces:
            context.spaces = [after] if after else []
            self.emit("".join(spaces) + body, end - len(after))
        else:
            self.emit(body, end - len(after))
            if after:
                spaces.append(after)
        if after:
            context.limit_spaces(end)

    def _first_text(self, piece: str, end: int) -> str:
        """Return the first text after a marker, without white space that belongs to it; empty if none has come."""
        context = self.context
        text = piece.lstrip(WS)
        self.fresh = not text
        if self.keeps_space:
            size = shared_start(piece, self.lead)
            self.lead = self.lead[size:] if size == len(piece) else ""
            text = piece[size:]
        if len(text) < len(piece):
            context.ledger.mark(MARKUP, end - len(text))
        if self.fresh and text:
            context.spaces.append(text)
            context.limit_spaces(end)
            return ""
        return text

    def emit(self, text: str, end: int) -> None:
        """Emit text of the state unchanged."""
        context = self.context
        region = context.state.region
        before = self.before
        if self.unproven and self.after_call:
            self.unproven = False
            context.ledger.report("unproven_call", end - len(text), end - len(text))
        if self.at_start or self.after_call or region != before.region:
            before.begin_line(region)
            if self.at_start:
                self._begin_text(region)
        before.add(text)
        if region == IN_CONTENT:
            context.receiver.content(text)
            context.ledger.mark(CONTENT_TEXT, end)
        elif region == IN_REASONING:
            context.receiver.reasoning(text)
            context.ledger.mark(REASONING_TEXT, end)
        else:
            events = context.config_events
            context.ledger.mark(DROPPED if events is None else events.chunk(region, text, end - len(text)), end)
        self.at_start = False
        self.after_call = False

    def _begin_text(self, region: int) -> None:
        """Begin the text of a message, joined to an earlier message of the same kind."""
        receiver = self.context.receiver
        header = self.context.program.header
        if header is None or region not in (IN_CONTENT, IN_REASONING):
            return
        if region in self._with_text:
            if header.join and region == IN_CONTENT:
                receiver.content(header.join)
            elif header.join:
                receiver.reasoning(header.join)
        else:
            self._with_text = (*self._with_text, region)

    def finish(self) -> None:
        """End the output. White space at its very end is text, unless it follows a call or a marker."""
        context = self.context
        self._report_unclosed()
        spaces = "".join(context.spaces)
        context.spaces = []
        if spaces and not self.after_call and not self.fresh:
            self.emit(spaces, context.ledger.frontier + len(spaces))
