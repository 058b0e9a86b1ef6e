"""Reads free text: content, reasoning, and the markers between them.

Rules of this module:

* The state's literals are searched in C. Which of them is a marker, its rule says, and what stands around it.
* White space at the end of text waits for what follows; right after a marker it is the marker's.
* ``step`` answers who reads on. What begins as a call, as a header or as the end of the turn is not read here.
"""

from __future__ import annotations

from typing import Final, final

from .calls import CallReader
from .context import READ_CALL, READ_HEADER, READ_HEADER_START, READ_TEXT, READ_TURN_END, ReaderContext
from .ledger import CONTENT_TEXT, DROPPED, MARKUP, REASONING_TEXT
from .lexer import WS
from .program import (
    CLOSE_CALL,
    CLOSE_MESSAGE,
    CLOSE_REASONING,
    CLOSE_SECTION,
    CLOSE_WRAP,
    END_TURN,
    ENTER_STATE,
    IN_CONTENT,
    IN_REASONING,
    OPEN_BARE_CALLS,
    OPEN_CALLS,
    OPEN_HEADER,
    OPEN_REASONING,
    OPEN_WRAP,
    MarkerRule,
    TextState,
)
from .signals import MORE

_NO_RULE: Final = MarkerRule(ENTER_STATE)


@final
class FreeText:
    """Reads the free text of one output."""

    def __init__(self, context: ReaderContext, calls: CallReader, state: TextState, calls_in_reasoning: bool) -> None:
        self.context: ReaderContext = context
        self.state: TextState = state
        self.spaces: list[str] = []
        """White space that waits for what follows."""
        self.fresh: bool = False
        """Whether nothing but white space has followed the last marker."""
        self.at_start: bool = True
        """Whether nothing but white space stands in the region so far."""
        self.after_call: bool = False
        """Whether nothing but white space has followed the last call."""
        self.rule: MarkerRule = _NO_RULE
        """What the calls begin with, when ``step`` has answered READ_CALL."""
        self.marker_end: int = 0
        self._calls: CallReader = calls
        self._calls_in_reasoning: bool = calls_in_reasoning
        self._wrapped: bool = False
        """Whether content stands in markers of its own."""

    def enter(self, index: int) -> None:
        """A region begins."""
        self.state = self.context.program.states[index]
        self.at_start = True
        self.after_call = False

    # -- in -----------------------------------------------------------------------------------------------------

    def passes(self, text: str) -> bool:
        """Whether all of ``text`` is simply said: no marker begins in it, and no white space waits. Most deltas."""
        if self.spaces or self.fresh:
            return False
        state = self.state
        if state.trims and text[-1] in WS:
            return False
        for head in state.heads:  # noqa: SIM110 (a generator costs more than the search)
            if head in text:
                return False
        return True

    def step(self) -> int:
        """MORE: all text has been read; else who reads on."""
        cur = self.context.cur
        text = cur.text
        pos = cur.pos
        size = len(text)
        if pos >= size:
            return MORE
        base = self.context.base
        state = self.state
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
            rule = state.rules[literals.tags[found.group()]]
            if self._accepts(rule, start, found.end()):
                self.emit_trimmed(text[pos:start], base + start)
                cur.pos = start
                return self._take(rule, found.end())
            search = start + 1
        if end < 0:
            end = size if cur.final else literals.tail(text, pos)
        self.emit_trimmed(text[pos:end], base + end)
        cur.pos = end
        return MORE

    def _accepts(self, rule: MarkerRule, start: int, end: int) -> bool:
        """Whether the literal at ``start`` is a marker here."""
        context = self.context
        kind = rule.kind
        if context.checks_ids and not context.authorised(start, end):
            return False
        if kind == OPEN_REASONING:
            return (context.program.repeats and self.state.region == IN_CONTENT) or self._nothing_before(start)
        if kind == OPEN_WRAP:
            return not self._wrapped and (rule.target == 1 or self._nothing_before(start))
        if kind == CLOSE_WRAP:
            return self._wrapped
        if kind == CLOSE_SECTION:
            calls = self._calls
            if calls.section_is_text:
                calls.section_is_text = False
                calls.in_section = False
                return False
            return calls.in_section or self._right_after_call(start)
        if kind == CLOSE_CALL:
            return self._right_after_call(start)
        if kind == OPEN_BARE_CALLS:
            return self._nothing_before(start)
        if kind == OPEN_CALLS:
            if rule.target == 1 and not self._calls.in_section:
                return False
            if rule.ambiguous and not context.tools.known and not self._nothing_before(start):
                return False
            return self._calls_in_reasoning or self.state.region != IN_REASONING
        if kind == ENTER_STATE:
            if rule.needs_id and (context.checks_ids or rule.needs_id == 2) and not context.proven(start, end):
                return False
            events = context.config_events
            return events is None or events.accepts(context.cur.text, context.cur.pos, start)
        return True

    def _right_after_call(self, start: int) -> bool:
        cur = self.context.cur
        return self.after_call and not cur.text[cur.pos : start].strip(WS)

    def _nothing_before(self, start: int) -> bool:
        """Whether nothing but white space stands between the region's start and here."""
        cur = self.context.cur
        return self.at_start and not cur.text[cur.pos : start].strip(WS)

    def _take(self, rule: MarkerRule, end: int) -> int:
        """The literal from the cursor to ``end`` is a marker: does what its rule says, and answers who reads on."""
        context = self.context
        cur = context.cur
        kind = rule.kind
        if kind == ENTER_STATE:
            self._go(rule, end)
        elif kind == OPEN_REASONING:
            self._drop(end)
            if self.state.region != IN_REASONING:
                context.receiver.reasoning_start()
            self.enter(context.program.reasoning)
            self.fresh = True
        elif kind == CLOSE_REASONING:
            self.close_reasoning(end)
        elif kind in (OPEN_WRAP, CLOSE_WRAP):
            self._drop(end)
            self._wrapped = kind == OPEN_WRAP
            self.fresh = True
        elif kind == CLOSE_SECTION:
            self._drop(end)
            self._calls.in_section = False
            self.after_call = True
        elif kind == CLOSE_CALL:
            context.report("stray_close", cur.pos, end)
            self.spaces = []
            cur.pos = end
            context.mark(DROPPED, end)
        elif kind == END_TURN:
            if not context.proven(cur.pos, end):
                context.speculate(end - cur.pos)
                cur.pos = end
                return READ_TURN_END
            self._drop(end)
            self.enter(context.program.content)
            self.fresh = True
            if context.program.header_first:
                return READ_HEADER_START
        elif kind == CLOSE_MESSAGE:
            if self.state.region == IN_REASONING:
                context.receiver.reasoning_end()
            self._drop(end)
            self.enter(context.program.content)
            return READ_HEADER_START
        elif kind == OPEN_HEADER:
            context.speculate(end - cur.pos)
            if rule.target == 0:
                cur.pos = end
            return READ_HEADER
        else:
            self.rule = rule
            self.marker_end = end
            return READ_CALL
        return READ_TEXT

    def _drop(self, end: int) -> None:
        """What comes before ``end`` is a marker, and the white space before it the marker's."""
        self.spaces = []
        self.context.cur.pos = end
        self.context.mark(MARKUP, end)

    def close_reasoning(self, end: int) -> None:
        """The text from the cursor to ``end`` closes reasoning."""
        context = self.context
        if self.state.region == IN_REASONING:
            self._drop(end)
            context.receiver.reasoning_end()
            self.enter(context.program.content)
            self.fresh = True
            return
        # A second close: nothing to close.
        cur = context.cur
        if self.at_start:
            self.spaces = []
            self.fresh = True
        elif self.spaces:
            spaces = "".join(self.spaces)
            self.spaces = []
            self.emit(spaces, context.base + cur.pos)
        context.report("stray_close", cur.pos, end)
        cur.pos = end
        context.mark(DROPPED, end)

    def _go(self, rule: MarkerRule, end: int) -> None:
        context = self.context
        cur = context.cur
        events = context.config_events
        literal = cur.text[cur.pos : end]
        kind = MARKUP if events is None else events.take(rule, literal, context.base + cur.pos)
        cur.pos = end
        context.mark(kind, end)
        self.state = context.program.states[rule.target]

    # -- out: places are in characters of the output --------------------------------------------------------------

    def emit_trimmed(self, piece: str, end: int) -> None:
        """Text of the state, which ends at ``end``, as far as it is decided."""
        if not piece:
            return
        if not self.state.trims:
            self.emit(piece, end)
            return
        if self.fresh:
            text = piece.lstrip(WS)
            if len(text) < len(piece):
                self.context.ledger.mark(MARKUP, end - len(text))
            if not text:
                return
            self.fresh = False
            piece = text
        body = piece.rstrip(WS)
        if not body:
            self.spaces.append(piece)
            return
        after = piece[len(body) :]
        if self.spaces:
            self.spaces.append(body)
            spaced = "".join(self.spaces)
            self.spaces = []
            self.emit(spaced, end - len(after))
        else:
            self.emit(body, end - len(after))
        if after:
            self.spaces.append(after)

    def emit(self, text: str, end: int) -> None:
        """Text of the state, as it is."""
        context = self.context
        region = self.state.region
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

    def finish(self) -> None:
        """The output has ended: white space at its very end is the text's, unless a call stands before it."""
        spaces = "".join(self.spaces)
        self.spaces = []
        if spaces and not self.after_call and not self.fresh:
            self.emit(spaces, self.context.ledger.frontier + len(spaces))
