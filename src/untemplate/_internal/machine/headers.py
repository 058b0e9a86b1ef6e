"""Reads the headers of messages: their channel, or the tool that they call.

A header is short. One that is too long, or that contains what no header contains, becomes text.
"""

from __future__ import annotations

import re
from typing import final

from . import rules, tags
from .call_syntax import A_MARKER
from .calls import CallReader
from .context import ReaderContext
from .free_text import FreeText
from .ledger import MARKUP, NAME_TEXT
from .lexer import SPACES, WS
from .marker_judge import IS_TEXT, NEEDS_TWO_PARTS, NO_DOUBT
from .modes import READ_CALL, READ_HEADER, READ_HEADER_START, READ_TEXT
from .names import MAX_NAME, may_be_name
from .program import IN_ARGUMENTS, IN_CONTENT, IN_REASONING, HeaderSyntax
from .signals import MORE, NO_MATCH
from .speculation import NO_SECTION, OPEN_SECTION
from .tentative_calls import QUOTED


@final
class HeaderReader:
    """Reads the headers of one output."""

    def __init__(self, context: ReaderContext, calls: CallReader, text: FreeText) -> None:
        self.context: ReaderContext = context
        assert context.program.header is not None
        self._header: HeaderSyntax = context.program.header
        self.goes_on_in_content: bool = False
        """After NO_MATCH: True if this certainly was a header, and broke. The message before it has ended, so that the
        text after the opener is content, also where reasoning was open. One that is only too long may be text."""
        self._calls: CallReader = calls
        self._text: FreeText = text

    def start(self) -> int:
        """Read from where a header may begin: at the start of the output, and after a message."""
        context = self.context
        cur = context.cur
        header = self._header
        end = cur.spaces()
        if end > cur.pos:
            context.hold_space(end)
        end = MORE if cur.pos >= len(cur.text) else header.literals.at(cur.text, cur.pos, cur.final)
        if end == MORE:
            cur.goes_on = header.literals.goes_on_after_spaces
            return MORE
        if end >= 0 and (not context.checks_ids or context.may_be_marker(cur.pos, end)):
            tag = header.literals.tags[cur.text[cur.pos : end]]
            if tag == tags.HEADER_CLOSE:
                context.drop_space()
                cur.pos = end
                context.mark(MARKUP, end)
                return READ_HEADER_START
            context.speculate(end - cur.pos)
            self._text.header_doubt = NO_DOUBT
            if tag == tags.HEADER_OPEN:
                cur.pos = end
            elif tag == tags.HEADER_BODY:
                return self._message("", cur.pos, end)
            return READ_HEADER
        if header.is_one_word and self._text.at_start and not self._text.after_call:
            context.speculate(1)
            self._text.header_doubt = NO_DOUBT
            return READ_HEADER
        context.state = context.program.states[context.program.content]
        return READ_TEXT

    def step(self) -> int:
        """Read a header up to its end."""
        context = self.context
        cur = context.cur
        header = self._header
        text = cur.text
        found = header.body.near(text, cur.pos, cur.pos + MAX_NAME)
        held = len(text) if cur.final else header.body.undecided_from(text, cur.pos)
        end = found.start() if found is not None else min(held, cur.pos + MAX_NAME + 1)
        piece = text[cur.pos : end]
        illegal = header.illegal.search(piece)
        if illegal is not None and not piece[: illegal.start()].strip(WS) and illegal.group() in header.opens:
            # ``<|start|><|start|>``
            context.report("broken_header", cur.pos, cur.pos + illegal.end())
            cur.pos += illegal.end()
            return READ_HEADER
        if illegal is not None or len(piece) > MAX_NAME:
            if illegal is not None and self._is_opener_alone(piece, illegal):
                context.ledger.report("broken_header", context.ledger.saved, context.base + cur.pos)
                self._begin_message(False, cur.pos)
                return READ_TEXT
            cur.pos += 0 if illegal is None else illegal.start()
            self.goes_on_in_content = (
                illegal is not None and not header.is_one_word and self._text.header_doubt == NO_DOUBT
            )
            return NO_MATCH
        if found is None:
            cur.goes_on = header.goes_on
            return MORE
        return self._message(piece, found.start(), found.end())

    def _is_opener_alone(self, piece: str, illegal: re.Match[str]) -> bool:
        """True if a new line of text follows the opener directly, and the opener is not inside an open message: it has
        no header, and the text is content."""
        alone = not piece[: illegal.start()].strip(WS) and "\n" in piece[: illegal.end()]
        return alone and not self._header.is_one_word and self._text.header_doubt == NO_DOUBT

    def _message(self, piece: str, body: int, end: int) -> int:
        """Begin the message of a complete header: a call if it has a recipient or the marker after it is one of a
        call, else reasoning or content."""
        context = self.context
        cur = context.cur
        header = self._header
        self.goes_on_in_content = False
        doubt = self._text.header_doubt
        if doubt == IS_TEXT or (doubt == NEEDS_TWO_PARTS and not piece.lstrip(WS).startswith(header.role)):
            self._text.take_opener_as_text()
            cur.pos = end
            context.speculation.opener = context.speculation.length(cur)  # it is not searched again
            return NO_MATCH
        recipient, at, channel = header.parts(piece)
        kind = header.body.tags[cur.text[body:end]]
        name = recipient.removeprefix(header.namespace) if header.names_tools and kind == IN_CONTENT else ""
        program = context.program
        is_call = kind == IN_ARGUMENTS or name != ""
        if is_call and (not program.call_syntaxes or (name and not may_be_name(name))):
            # A call, and no tools are offered; or no call can have this name: all of it is content.
            self._text.take_opener_as_text()
            cur.pos = end
            context.speculation.origin = program.states[program.content]
            return NO_MATCH
        # Models leave out the recipient of a call, or write another word of content.
        unsaid = header.names_tools and kind == IN_CONTENT and channel not in header.only_text
        if header.calls.tags and (is_call or unsaid):
            tool = recipient if kind == IN_ARGUMENTS else ""
            answer = self._call_in_message(end, tool, context.base + cur.pos + at)
            if answer != NO_MATCH or kind == IN_ARGUMENTS:
                return answer
        if not name:
            if kind == IN_CONTENT and not header.knows(channel, piece):
                context.report("broken_header", cur.pos, body)
            self._begin_message(channel in header.reasoning or kind == IN_REASONING, end)
            return READ_TEXT
        self._begin_named_call(piece, name, at + len(recipient), end)
        return READ_CALL

    def _begin_named_call(self, piece: str, name: str, name_end: int, end: int) -> None:
        """Begin the call of a tool whose name ends at ``name_end`` of the header, which ends at ``end``."""
        context = self.context
        cur = context.cur
        header = self._header
        damaged = header.has_damaged_recipient(piece, name_end - len(name))
        if damaged:
            context.report("broken_header", cur.pos, cur.pos + name_end - len(header.namespace + name))
        context.mark(MARKUP, cur.pos + name_end - len(name))
        context.mark(NAME_TEXT, cur.pos + name_end)
        context.mark(MARKUP, end)
        cur.pos = end
        self._begin_quotation()
        is_raw = not (header.is_one_word or self._is_in_prose())
        self._calls.enter_arguments(context.program.call_syntaxes[0], name, is_raw)
        if damaged:
            self._calls.recover()

    def _call_in_message(self, end: int, name: str, name_start: int) -> int:
        """Begin the call that the text of a message is, after a header that ends at ``end``. ``name``: the tool, if the
        text does not name it; ``name_start``: its place in the output."""
        context = self.context
        cur = context.cur
        header = self._header
        found = SPACES.match(cur.text, end)
        pos = end if found is None else found.end()
        if pos >= len(cur.text) and not cur.final:
            return MORE
        opened = header.calls.at(cur.text, pos, cur.final)
        if opened < 0:
            return opened
        if context.checks_ids and not context.may_be_marker(pos, opened):
            return NO_MATCH
        rule = header.call_rules[header.calls.tags[cur.text[pos:opened]]]
        context.mark(MARKUP, pos)
        opener = "" if rule.kind == rules.OPEN_BARE_CALLS else cur.text[pos:opened]
        cur.pos = pos + len(opener)
        self._begin_quotation()
        has_section = any(syntax.section_closes for syntax, _ in rule.entries)
        context.section = OPEN_SECTION if has_section else NO_SECTION
        self._calls.enter(rule.entries, A_MARKER, opener)
        self._calls.given_name = name
        self._calls.given_start = name_start
        return READ_CALL

    def _is_in_prose(self) -> bool:
        """True if the header follows content on the same line, and no ids are in use."""
        speculation = self.context.speculation
        in_content = speculation.origin.region == IN_CONTENT and not self.context.checks_ids
        return in_content and self._text.has_text_on_line(speculation.spaces)

    def _begin_quotation(self) -> None:
        """Read the calls that follow as tentative ones if their header comes directly after a backtick."""
        if self._text.opens_code:
            self.context.begin_tentative_calls(QUOTED)

    def _begin_message(self, is_reasoning: bool, end: int) -> None:
        """Begin a message of reasoning or content at ``end``."""
        context = self.context
        context.end_speculation()
        context.drop_space()
        context.section = NO_SECTION
        context.cur.pos = end
        context.mark(MARKUP, end)
        if is_reasoning:
            context.receiver.reasoning_start()
        self._text.begin_message(context.program.reasoning if is_reasoning else context.program.content)
