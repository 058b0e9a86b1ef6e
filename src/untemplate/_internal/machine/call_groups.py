"""Reads the section or the list around calls: its openers and closes, the separators, and what damage leaves there.

White space after a call is held in the context: a marker may follow, or content.
"""

from __future__ import annotations

import re
from typing import Final, final

from . import tags
from .arguments.lookahead import MAX_STRAY, STRAY_TEXT
from .call_syntax import NAME_START, WRITTEN, CallSyntax
from .context import ReaderContext
from .ledger import MARKUP
from .signals import AGAIN, DONE, MORE, NO_MATCH
from .speculation import NO_SECTION, OPEN_SECTION, TEXT_SECTION
from .strays import check_spelling, is_accepted_close, read_damaged, read_stray

# What begins between calls.
CALL_OPENED: Final = 0
"""A call, whose opener has been read."""
NAME_OPENED: Final = 1
"""A name, whose opener has been read."""
UNMARKED: Final = 2
"""A call without an opener, at the cursor."""

# Lists of calls.
NO_LIST: Final = 0
_NEW_LIST: Final = 1
_KEPT_LIST: Final = 2
"""Its first call was kept, or dropped by a policy."""
_TEXT_LIST: Final = 3
"""Its opener has become text with its first call, so its closer is text too."""

_STRAY_BRACKET: Final = re.compile(rf"[\])}}][ \t\r\n]{{0,{MAX_STRAY}}}")


@final
class CallGroup:
    """The calls of one section or list, or a single call, one group after another."""

    def __init__(self, context: ReaderContext, syntax: CallSyntax) -> None:
        self._context: ReaderContext = context
        self.syntax: CallSyntax = syntax
        self.list: int = NO_LIST
        """The list of calls."""

    def begin(self, syntax: CallSyntax) -> None:
        """Begin calls in this syntax."""
        self.syntax = syntax
        self.list = NO_LIST

    def open_section(self) -> None:
        """Take note that the opener of a section has been read."""
        if self._context.section == NO_SECTION:
            self._context.section = OPEN_SECTION

    def goes_on_after_call(self, became_text: bool, section: int) -> bool:
        """True if another call may follow the one that has ended. ``became_text``: it has become text; ``section``: the
        section in which it was."""
        context = self._context
        if became_text and section and not context.section:
            # The section's opener has become text with its first call, and the section has been left. Calls that
            # follow are still calls, and its closer is text.
            context.section = TEXT_SECTION
        if self.list == _NEW_LIST:
            self.list = _TEXT_LIST if became_text else _KEPT_LIST
        return self.list != NO_LIST or context.section != NO_SECTION or bool(self.syntax.separators)

    # -- markers that are taken ---------------------------------------------------------------------------------

    def open(self, end: int) -> None:
        """Read up to ``end`` what may begin a call, and speculate."""
        context = self._context
        if not context.speculation.active:
            context.speculate(end - context.cur.pos)
        check_spelling(context, self.syntax, context.cur.pos, end)
        context.cur.pos = end

    def take(self, end: int) -> None:
        """Read markup up to ``end``."""
        context = self._context
        check_spelling(context, self.syntax, context.cur.pos, end)
        context.cur.pos = end
        if context.holds_space:
            context.drop_space()
        if not context.speculation.active:
            context.mark(MARKUP, end)

    def _take_bound(self, end: int) -> None:
        """Take a marker at which a list or section begins or ends: no call is open."""
        self._context.end_speculation()
        self.take(end)

    # -- reading ------------------------------------------------------------------------------------------------

    def read(self, has_call: bool) -> int:
        """Read what is before, between and after the calls. ``has_call``: one has been read. Return what begins here;
        DONE where the calls end, NO_MATCH, MORE or AGAIN."""
        context = self._context
        cur = context.cur
        if not context.skip_spaces(has_call):
            return MORE
        end = context.marker_at(self.syntax.between)
        if end == MORE:
            return MORE
        tag = -1 if end < 0 else self.syntax.between.tags[cur.text[cur.pos : end]]
        if tag in (tags.CALL_OPEN, tags.NAME_OPEN):
            self.open(end)
            return CALL_OPENED if tag == tags.CALL_OPEN else NAME_OPENED
        if tag == tags.LIST_OPEN and self.list == NO_LIST and not has_call:
            self.list = _NEW_LIST
            self.take(end)
            return AGAIN
        if not self._is_expected(tag, has_call):
            return self._read_unmarked(has_call)
        return self._read_after_call(tag, end) if has_call else NO_MATCH

    def _is_expected(self, tag: int, has_call: bool) -> bool:
        """True if a separator, or a marker of the section or the list, has a meaning here."""
        if tag == tags.LIST_CLOSE:
            return self.list != NO_LIST
        if tag == tags.SECTION_CLOSE:
            return self._context.section != NO_SECTION
        return tag == tags.SEPARATOR or (tag == tags.SECTION_OPEN and has_call)

    def _read_after_call(self, tag: int, end: int) -> int:
        """Read a separator, or a marker of the section or the list, after a call. What closes a section whose opener
        has become text is left to `MarkerJudge`: it is text as well."""
        context = self._context
        if tag == tags.SEPARATOR:
            self.open(end)
            return AGAIN
        if tag == tags.SECTION_OPEN:
            self._take_bound(end)
            return AGAIN
        if tag == tags.SECTION_CLOSE:
            if context.section == OPEN_SECTION:
                self._take_bound(end)
                context.section = NO_SECTION
            return DONE
        is_text = self.list == _TEXT_LIST
        self.list = NO_LIST
        if is_text:
            return DONE
        self._take_bound(end)
        if self.syntax.section_closes and context.section:
            return AGAIN
        context.section = NO_SECTION
        return DONE

    def _read_unmarked(self, has_call: bool) -> int:
        """Begin a call without a marker, or leave the calls."""
        context = self._context
        if self._may_begin(context.cur.text[context.cur.pos], has_call):
            self.open(context.cur.pos)
            return UNMARKED
        in_group = self.list != NO_LIST or context.section != NO_SECTION
        if has_call and in_group and not is_accepted_close(context):
            answer = self._read_stray()
            if answer != NO_MATCH:
                return answer
        # Text between calls is content. Free text still looks for further calls and the end of the section.
        return NO_MATCH if context.text_makes_text or not has_call else DONE

    def _may_begin(self, c: str, has_call: bool) -> bool:
        """True if a call without a marker may begin with this character."""
        syntax = self.syntax
        if syntax.opens == WRITTEN or (syntax.lists == WRITTEN and self.list == NO_LIST):
            return False
        # Outside a list or section, further calls need a marker or a separator.
        in_group = self.list != NO_LIST or self._context.section != NO_SECTION
        if has_call and not in_group and not self._context.text_makes_text:
            return False
        if syntax.name is None:
            return c == "{"
        return not syntax.name_opens and NAME_START.match(c) is not None

    def _read_stray(self) -> int:
        """Drop stray text before a marker, or a damaged close of the section. Return AGAIN, DONE, NO_MATCH or MORE."""
        context = self._context
        answer = read_stray(context, _STRAY_BRACKET, self.syntax.between)
        if answer != NO_MATCH or context.section == NO_SECTION or context.text_makes_text:
            return answer
        answer = read_stray(context, STRAY_TEXT, self.syntax.section_end)
        if answer != NO_MATCH or context.section != OPEN_SECTION:
            return answer
        answer = read_damaged(context, self.syntax.section_end, self.syntax.between)
        if answer != AGAIN:
            return answer
        context.section = NO_SECTION
        return DONE
