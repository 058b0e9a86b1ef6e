"""Judges whether a literal in free text is a marker: its rule, its token id and the text before it decide.

* An opener that is text makes its closer text, too.
* An opener of calls may be a quotation (``evidence.py``), and a header may be the end of a sentence.
"""

from __future__ import annotations

from typing import Final

from . import rules, sentences
from .evidence import FENCED_ARE_TEXT
from .lexer import WS
from .markdown import IN_FENCE, IN_STRING, NO_EVIDENCE, NO_SIGN
from .program import IN_CONTENT, IN_REASONING
from .rules import MarkerRule
from .speculation import NO_SECTION, OPEN_SECTION, TEXT_SECTION
from .tentative_calls import DRAFTS_NEVER
from .text_writer import TextWriter

# What is known of a header inside an open message.
NO_DOUBT: Final = 0
NEEDS_TWO_PARTS: Final = 1
"""It ends the message if a role and another marker follow its opener; else it is text."""
IS_TEXT: Final = 2

_CLOSING_SIGNS: Final = " \t\"')]*_`”’"
"""Characters that may follow the end of a sentence."""
_QUOTED_CLOSES: Final = frozenset({rules.CLOSE_REASONING, rules.CLOSE_WRAP, rules.CLOSE_MESSAGE})


class MarkerJudge(TextWriter):
    """Judges the literals in the free text of one output."""

    # Defaults in the class cost nothing per output.
    said: int = NO_EVIDENCE
    """Evidence about the opener or header that was judged last, if it counts: IN_FENCE, NO_EVIDENCE or NO_SIGN."""
    header_doubt: int = NO_DOUBT
    """What has to be known of that header."""
    ends_message: bool = False
    """True if a message is open that it ends."""
    wrapped: bool = False
    """True between the markers around content."""
    has_start: bool = False
    """True after the start of the turn, if the output has written it."""
    has_closed: bool = False
    """True if reasoning has been closed before."""
    open_quotes: int = 0
    """Number of openers that are content, and whose closers have not come: those are content, too."""
    refused: int = 0
    """Number of openers of calls that were text because they are quoted or only spelled."""
    _quotes_calls: bool = False
    """True after an opener of calls in a string, until an opener that nothing quotes."""
    _text_marker: int = -1
    """Where the last marker ends that is text because it was only spelled or is in a string, in characters of the
    output. White space and further markers that belong to it may follow."""

    def accepts(self, rule: MarkerRule, start: int, end: int) -> bool:
        """True if the literal at ``start`` is a marker here."""
        context = self.context
        kind = rule.kind
        if context.checks_ids and not context.may_be_marker(start, end):
            if kind == rules.OPEN_CALLS:
                self._text_marker = context.base + end
                self.refused += 1
            return False
        if kind == rules.OPEN_CALLS:
            return self._accepts_calls(rule, start, end)
        if kind == rules.OPEN_REASONING:
            return self._accepts_reasoning(start, end)
        if kind == rules.OPEN_HEADER:
            self._judge_header(rule, start, end)
            return True
        if kind == rules.CALL_TEXT:
            self.open_quotes += rule.closers
            return False
        if kind in _QUOTED_CLOSES and self._is_quoted_close(kind):
            return False
        if kind == rules.OPEN_WRAP:
            return not self.wrapped and (rule.place == rules.ANYWHERE or self._nothing_before(start))
        return self._accepts_other(rule, start, end)

    def _accepts_other(self, rule: MarkerRule, start: int, end: int) -> bool:
        """True if the literal at ``start`` is a marker here: a close, or one that is rare."""
        kind = rule.kind
        if kind == rules.CLOSE_WRAP:
            return self.wrapped
        if rule.place == rules.AT_START and not self._may_begin(rule, start):
            return False
        if kind in (rules.CLOSE_SECTION, rules.CLOSE_CALL):
            return self._accepts_close(kind, start, end)
        if kind == rules.OPEN_BARE_CALLS:
            return self._nothing_before(start)
        return self._accepts_state(rule, start, end) if kind == rules.ENTER_STATE else kind != rules.END_TOKEN

    def _is_quoted_close(self, kind: int) -> bool:
        """True if a close belongs to an opener that is content."""
        if not self.open_quotes or (kind == rules.CLOSE_WRAP and self.wrapped):
            return False
        if kind != rules.CLOSE_MESSAGE and self.context.state.region != IN_CONTENT:
            return False
        self.open_quotes -= 1
        return True

    def _accepts_close(self, kind: int, start: int, end: int) -> bool:
        """True if a close of a call or a section belongs to calls that have been read."""
        context = self.context
        directly = self.right_after_call(start)
        if self._quotes_calls and not directly:
            # Another call of the quotation may follow.
            self._text_marker = context.base + end
        if kind == rules.CLOSE_CALL:
            return directly
        if context.section == TEXT_SECTION:
            context.section = NO_SECTION
            return False
        return context.section == OPEN_SECTION or directly

    def _accepts_state(self, rule: MarkerRule, start: int, end: int) -> bool:
        """True if the marker of a hand-written config counts here."""
        context = self.context
        if rule.needs_id and (context.checks_ids or rule.needs_id == 2) and not context.has_id(start, end):
            return False
        events = context.config_events
        return events is None or events.accepts(context.cur.text, context.cur.pos, start)

    def take_opener_as_text(self) -> None:
        """Take note that an opener is content, so that its closer is content, too."""
        self.open_quotes += 1

    def _accepts_reasoning(self, start: int, end: int) -> bool:
        """True if the opener at the cursor begins reasoning. If it is content, its closer will be, too."""
        context = self.context
        if self.at_start or context.state.region != IN_CONTENT:
            return self.at_start
        spaces = "".join(context.spaces)
        before = self.text_before()
        if before is None or not (before.in_fence or (not spaces and before.after_backtick)):
            begins_line = "\n" in spaces or self.after_call
            directly = context.program.repeats and not spaces
            if begins_line or directly or context.has_id(start, end):
                return True
        self.open_quotes += 1
        return False

    def _accepts_calls(self, rule: MarkerRule, start: int, end: int) -> bool:
        """True if this opener begins calls. It does not where it counts only in a section and none is open, or where it
        is a word and no sentence begins. Nor does it where its section is missing, and ids would have proved it or no
        tools are known. In reasoning whose calls never count it does not either. Where the text before it quotes it,
        only its id can prove it.

        Sets ``said`` and what is known of quotations, for what follows.
        """
        context = self.context
        self.said = NO_EVIDENCE
        if rule.place == rules.IN_SECTION and context.section == NO_SECTION:
            return False
        if rule.ambiguous and not self._begins_sentence(start):
            return False
        if rule.missing_section and context.section == NO_SECTION:
            is_provable = context.checks_ids and context.is_special(rule.missing_section)
            if is_provable or not context.tools.known:
                return False
        if context.state.region == IN_REASONING and context.reasoning_calls == DRAFTS_NEVER:
            return False
        if self._text_marker < 0 and self._content is None and not self._unread:
            self._quotes_calls = False
            if context.state.region == self.region_before == IN_CONTENT:
                self.said = NO_SIGN
            return True  # no text is before it
        proven = context.scanner is not None and context.has_id(start, end)
        return proven or not self._is_quoted_call(start, end)

    def _judge_header(self, rule: MarkerRule, start: int, end: int) -> None:
        """Find out what has to be known of the header at the cursor before it may end an open message."""
        context = self.context
        header = context.program.header
        assert header is not None
        self.said = NO_EVIDENCE
        self.header_doubt = NO_DOUBT
        self.ends_message = not (self.at_start or not header.closes.tags)
        if context.has_id(start, end):
            return
        if self._is_quoted_call(start, end):
            self.header_doubt = IS_TEXT
        elif self.ends_message and not self._begins_line_or_sentence():
            self.header_doubt = IS_TEXT if rule.place == rules.IN_HEADER else NEEDS_TWO_PARTS

    def _begins_line_or_sentence(self) -> bool:
        """True if a line begins at the cursor, or the end of a sentence is before it."""
        if self.after_call or any("\n" in spaces for spaces in self.context.spaces):
            return True
        before = self.text_before()
        return before is not None and before.last_but(_CLOSING_SIGNS) in sentences.BEFORE_MARKER

    def _is_quoted_call(self, start: int, end: int) -> bool:
        """True if the text before the opener of calls at ``start`` makes it text. So does a marker before it that is
        text, if both belong together."""
        context = self.context
        if self._text_marker >= 0 and self._follows_text_marker(start):
            self.refused += 1
            self._text_marker = context.base + end
            return True
        in_content = context.state.region == IN_CONTENT
        if not in_content and context.program.header is None:
            return False
        spaces = "\n" if self.at_start or self.after_call else "".join(context.spaces)
        evidence = self.evidence(spaces)
        if evidence <= NO_EVIDENCE:
            self._quotes_calls = False
            self.said = evidence if in_content else NO_EVIDENCE
            return False
        if evidence == IN_FENCE and self.quoted_calls != FENCED_ARE_TEXT:
            self.said = IN_FENCE
            return False
        context.report("quoted_call", start, end)
        self.refused += 1
        self._quotes_calls = evidence == IN_STRING
        if self._quotes_calls:
            self._text_marker = context.base + end
        return True

    def _follows_text_marker(self, start: int) -> bool:
        """True if only white space comes between a marker that is text and ``start``."""
        context = self.context
        if context.ledger.frontier > self._text_marker:
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
        end = (text or self.last_piece)[-1:]
        ended = end in sentences.BEFORE_MARKER and end != ":" and len(text) < len(before)
        return (ended or "\n" in before[len(text) :]) and self.context.tools.known

    def right_after_call(self, start: int) -> bool:
        cur = self.context.cur
        return self.after_call and not cur.text[cur.pos : start].strip(WS)

    def _nothing_before(self, start: int) -> bool:
        """True if the region has only had white space before ``start``."""
        cur = self.context.cur
        return self.at_start and cur.spaces() >= start

    def _may_begin(self, rule: MarkerRule, start: int) -> bool:
        """True if a marker that counts only at the start is there; the start of the turn counts once."""
        is_second = rule.kind == rules.OPEN_TURN and (self.has_start or self.has_closed)
        return self._nothing_before(start) and not is_second
