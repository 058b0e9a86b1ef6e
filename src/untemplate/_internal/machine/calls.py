"""Reads calls as a CallSyntax describes them: sections, lists, openers, names, closers.

* Before a call commits (``ArgumentsReader`` decides when) nothing is emitted, and NO_MATCH makes all of it text.
* After that it stays a call. Reading goes on at its closer, at the next opener or at the end of the output.
* White space after a call is held in the context: a marker may follow, or content.
"""

from __future__ import annotations

import re
from typing import Final, final

from . import tags
from .arguments.lookahead import STRAY_TEXT
from .call_arguments import ArgumentsReader
from .call_emitter import CallEmitter
from .call_syntax import (
    ENTRY_BARE,
    ENTRY_CALL,
    ENTRY_NAME,
    ENTRY_SECTION,
    NAME_START,
    UNWRITTEN,
    WRITTEN,
    Body,
    CallSyntax,
    begins_one,
)
from .context import ReaderContext
from .ledger import DROPPED, MARKUP
from .lexer import WS, GoesOn, Literals, spaces_go_on
from .name_reader import NameReader
from .signals import AGAIN, DONE, MORE, NO_MATCH
from .strays import check_spelling, is_accepted_close, read_damaged, read_stray, report_missing_close, take_close

# Phases.
_CHOOSE: Final = 0
_BETWEEN: Final = 1
_BODY: Final = 2
_NAME: Final = 3
_ID: Final = 4
_ARGUMENTS: Final = 5
_AFTER: Final = 6
_CLOSING: Final = 7
PHASES: Final = (
    "choosing the syntax",
    "between calls",
    "opening",
    "name",
    "id",
    "arguments",
    "after the arguments",
    "between the closes",
)
"""What is read in each phase."""

# What these calls have begun with.
_NO_MARKER: Final = 0
_A_WORD: Final = 1
"""An opener that prose may hold, too."""
_A_MARKER: Final = 2
"""One that prose does not hold."""

# Lists of calls.
_NO_LIST: Final = 0
_NEW_LIST: Final = 1
_KEPT_LIST: Final = 2
"""Its first call was kept, or dropped by a policy."""
_TEXT_LIST: Final = 3
"""Its opener has become text with its first call, so its closer is text too."""

_STRAY: Final = re.compile(r"[\]})\"'`,;]{1,8}[ \t\r\n]{0,64}")
_STRAY_BRACKET: Final = re.compile(r"[\])}][ \t\r\n]{0,64}")
_ANOTHER: Final = re.compile(r",?[ \t\r\n]{0,64}\{")
_SENTENCE_ENDS: Final = (".", "!", "?")
_NO_SYNTAX: Final = CallSyntax("", Body())


@final
class CallReader:
    """Reads one section of calls, or one call where there are no sections."""

    def __init__(self, context: ReaderContext, emitter: CallEmitter) -> None:
        self.context: ReaderContext = context
        self.emitter: CallEmitter = emitter
        self.syntax: CallSyntax = _NO_SYNTAX
        self.has_call: bool = False
        """True if one of the calls has committed, as known after the last look at its arguments; ``has_committed`` is
        never behind."""
        self.last_became_text: bool = False
        """True if the call policy has turned the last call into text."""
        self._entry: int = ENTRY_BARE
        """Where the syntax was entered."""
        self._candidates: list[tuple[CallSyntax, int]] = []
        self._begins_with: int = _NO_MARKER
        self._phase: int = _BETWEEN
        self._list: int = _NO_LIST
        self._opener: str = ""
        """The marker that these calls began with; empty if they have none."""
        self._opener_end: int = 0
        """Where it ends in the output."""
        self._recovers: bool = False
        """True if a marker before the first call is missing or came twice."""
        self.given_name: str = ""
        """The tool of a call whose text does not name it."""
        self.given_start: int = 0
        """The place of that name in the output."""
        self._arguments: ArgumentsReader = ArgumentsReader(context, emitter)
        self._names: NameReader = NameReader(context, self._arguments)

    # -- entering -----------------------------------------------------------------------------------------------

    def enter(self, candidates: list[tuple[CallSyntax, int]], ambiguous: bool, marked: bool, opener: str) -> None:
        """Begin to read calls. The cursor is after the opener, or at the first character of calls that have none. Each
        candidate is a syntax and where it is entered. ``ambiguous``: prose may hold the opener too, so the tool must be
        an offered one. ``marked``: there is an opener."""
        self._opener = opener
        self._recovers = False
        self.given_name = ""
        self._opener_end = self.context.base + self.context.cur.pos
        self._candidates = candidates
        self._begins_with = _A_WORD if ambiguous else _A_MARKER if marked else _NO_MARKER
        self._list = _NO_LIST
        self.has_call = False
        if len(candidates) == 1:
            self._chosen(candidates[0][0], candidates[0][1])
        else:
            self._phase = _CHOOSE

    def enter_arguments(self, syntax: CallSyntax, name: str, raw: bool) -> None:
        """Begin to read the arguments of a call that a header has named. ``raw``: whatever follows are its arguments,
        except a copy of a call in a string."""
        self.syntax = syntax
        self._begins_with = _A_MARKER
        self._list = _NO_LIST
        self._arguments.begin(syntax, False, False, True)
        self._arguments.begin_named(name, "")
        self._arguments.raw = raw
        self._phase = _ARGUMENTS
        self.has_call = False

    def _chosen(self, syntax: CallSyntax, entry: int) -> None:
        self.syntax = syntax
        if self._opener in syntax.variants:
            start = self._opener_end - len(self._opener)
            self.context.ledger.report("variant_spelling", start, self._opener_end)
        self._entry = entry
        if entry == ENTRY_CALL:
            self._begin(_BODY, True)
        elif entry == ENTRY_NAME:
            self._begin(_NAME, False)
        else:
            self.context.in_section = self.context.in_section or entry == ENTRY_SECTION
            self._phase = _BETWEEN

    def _begin(self, phase: int, marked: bool) -> None:
        """Begin a call in this phase. ``marked``: its opener was written."""
        self._arguments.begin(self.syntax, self._begins_with == _A_WORD, self._list != _NO_LIST, marked)
        if self._recovers and not self.has_call:
            self._arguments.recover()
        self._phase = phase

    def _begin_object_or_name(self, marked: bool) -> None:
        """Begin a call at the first character of what holds its name."""
        if self.syntax.name is None:
            self._begin(_ARGUMENTS, marked)
            self._arguments.begin_object(self.given_name, self.given_start)
        else:
            self._begin(_NAME, marked)

    # -- reading ------------------------------------------------------------------------------------------------

    def step(self) -> int:
        """Read as far as the text decides. Return DONE after the last call, NO_MATCH or MORE."""
        while True:
            phase = self._phase
            if phase != _ARGUMENTS:
                answer = self._read(phase)
                if answer == AGAIN:
                    continue
                if answer == MORE:
                    self.context.cur.goes_on = self._goes_on(phase)
                return answer
            answer = self._arguments.step()
            if self._arguments.committed:
                self.has_call = True
            if answer != DONE:
                return answer
            self._phase = _AFTER

    def _read(self, phase: int) -> int:
        """Read on in a phase before or after the arguments."""
        if phase == _BETWEEN:
            return self._read_between()
        if phase == _NAME:
            return self._go_on_after(self._names.read(self.syntax))
        if phase in (_AFTER, _CLOSING):
            return self._read_after()
        if phase == _BODY:
            return self._read_body()
        return self._choose() if phase == _CHOOSE else self._read_id()

    def _read_id(self) -> int:
        """Read the id between name and arguments."""
        name = self.syntax.name
        assert name is not None
        return self._go_on_after(self._names.read_id(name))

    def _go_on_after(self, found: int) -> int:
        """Go on after a name or an id, with what NameReader says. Return AGAIN, NO_MATCH or MORE."""
        if found < 0:
            return found
        if found == tags.CALL_CLOSE:
            self.has_call = True
            self._phase = _AFTER
        else:
            self._phase = _ID if found == tags.ID_OPEN else _ARGUMENTS
        return AGAIN

    def _goes_on(self, phase: int) -> GoesOn | None:
        """Return the test for text that decides nothing in a phase before or after the arguments."""
        if phase == _NAME:
            name = self.syntax.name
            return None if name is None else name.goes_on
        if phase == _BETWEEN:
            return self.syntax.between.goes_on_after_spaces
        if phase in (_AFTER, _CLOSING):
            return self.syntax.after.goes_on_after_spaces
        if phase == _BODY:
            return self.syntax.before_body.goes_on_after_spaces
        return spaces_go_on if phase == _CHOOSE else None

    def recover(self) -> None:
        """Take note that something is wrong with the markers before the first call."""
        self._recovers = True
        self._arguments.recover()

    def read_doubled(self, markers: str) -> int:
        """Drop the marker at the cursor if it is the last of those that have been read, once more: before the first
        call one may come twice. Return AGAIN, NO_MATCH or MORE."""
        cur = self.context.cur
        end = NO_MATCH if self._recovers else self._at(self._candidates[0][0].starts)
        if end < 0:
            return end
        if not markers.rstrip(WS).endswith(cur.text[cur.pos : end]):
            return NO_MATCH
        self.recover()
        self.context.report("doubled_open", cur.pos, end)
        self.context.mark(MARKUP, cur.pos)
        cur.pos = end
        self.context.mark(DROPPED, end)
        return AGAIN

    def pass_on(self, text: str) -> None:
        """Take note of text of a value, before the cursor, that has been emitted without being read."""
        self._arguments.pass_on(text)

    def finish(self) -> bool:
        """End the output. Return False if what is being read is not a call and must become text."""
        if self._phase in (_AFTER, _CLOSING):
            return True
        if self._phase == _BETWEEN:
            return not self.context.speculation.active or (self.has_call and self.context.tentative is not None)
        return self._phase == _ARGUMENTS and self._arguments.finish()

    @property
    def has_opener(self) -> bool:
        """True if what is being read has begun with a complete opener, and is not the end of a sentence."""
        cur = self.context.cur
        if self._entry == ENTRY_NAME and self._phase == _NAME:
            return cur.text[cur.pos : cur.pos + 1] not in WS
        if self._phase == _NAME and cur.text[cur.pos :].rstrip(WS).endswith(_SENTENCE_ENDS):
            return False
        return self._begins_with == _A_MARKER

    @property
    def phase(self) -> int:
        """The place in what is read; an index of `PHASES`."""
        return self._phase

    @property
    def has_marker(self) -> bool:
        """True if what is being read has begun with a marker that prose does not hold."""
        return self._begins_with == _A_MARKER

    @property
    def has_committed(self) -> bool:
        """True if a call has committed since the calls were entered."""
        return self.has_call or self._arguments.committed

    def _at(self, literals: Literals) -> int:
        """Return where the literal at the cursor ends, NO_MATCH or MORE."""
        cur = self.context.cur
        end = literals.at(cur.text, cur.pos, cur.final)
        if end >= 0 and self.context.checks_ids and not self.context.may_be_marker(cur.pos, end):
            return NO_MATCH
        return end

    def _skip_spaces(self) -> bool:
        """Read white space. Return True if text follows it."""
        cur = self.context.cur
        end = cur.spaces()
        if end > cur.pos:
            if self.has_call and self.context.holds_space:
                self.context.hold_space(end)
            else:
                cur.pos = end
        return end < len(cur.text)

    def _choose(self) -> int:
        """Choose the first of the syntaxes that share this opener which the text after it fits."""
        cur = self.context.cur
        pos = cur.pos = cur.spaces()
        if pos >= len(cur.text) and not cur.final:
            return MORE
        first, entry = self._candidates[0]
        if entry == ENTRY_CALL and first.name is None and cur.text[pos : pos + 1] == "{":
            self._chosen(first, entry)
            return self._read_body()
        for syntax, entry in self._candidates:
            if entry == ENTRY_SECTION:
                fits = begins_one(cur, syntax.after_section)
            elif entry == ENTRY_BARE:
                fits = begins_one(cur, syntax.bare_start)
            else:
                fits = begins_one(cur, syntax.after_call)
            if fits == MORE and not self.context.cur.final:
                return MORE
            if fits >= 0:
                self._chosen(syntax, entry)
                return AGAIN
        return NO_MATCH

    def _read_between(self) -> int:
        """Read what is before, between and after the calls of a section or list."""
        syntax = self.syntax
        cur = self.context.cur
        if not self._skip_spaces():
            return MORE
        end = self._at(syntax.between)
        if end == MORE:
            return MORE
        if end >= 0:
            return self._read_marker(syntax.between.tags[cur.text[cur.pos : end]], end)
        return self._read_unmarked()

    def _read_unmarked(self) -> int:
        """Begin a call without a marker, or leave the calls."""
        context = self.context
        if self._may_begin(context.cur.text[context.cur.pos]):
            self._open(context.cur.pos)
            self._begin_object_or_name(False)
            return AGAIN
        if self.has_call and (self._list != _NO_LIST or context.in_section) and not is_accepted_close(self.context):
            answer = read_stray(self.context, _STRAY_BRACKET, self.syntax.between)
            if answer == NO_MATCH and context.in_section and not context.text_makes_text:
                answer = read_stray(self.context, STRAY_TEXT, self.syntax.section_end)
            if answer == NO_MATCH:
                answer = self._read_damaged_section()
            if answer != NO_MATCH:
                return answer
        # Text between calls is content. Free text still looks for further calls and the end of the section.
        return NO_MATCH if context.text_makes_text else self._leave()

    def _read_damaged_section(self) -> int:
        """Drop a damaged close of the section. Return DONE, NO_MATCH or MORE."""
        syntax = self.syntax
        context = self.context
        if not context.in_section or context.text_makes_text or context.speculation.section_is_text:
            return NO_MATCH
        answer = read_damaged(self.context, syntax.section_end, syntax.between)
        if answer != AGAIN:
            return answer
        context.in_section = False
        return DONE

    def _read_marker(self, tag: int, end: int) -> int:
        """Read a marker before, between or after calls, if it has a meaning here."""
        context = self.context
        if tag in (tags.CALL_OPEN, tags.NAME_OPEN):
            self._open(end)
            self._begin(_BODY if tag == tags.CALL_OPEN else _NAME, tag == tags.CALL_OPEN)
        elif tag == tags.SEPARATOR:
            if not self.has_call:
                return NO_MATCH
            self._open(end)
        elif tag == tags.LIST_OPEN and self._list == _NO_LIST and not self.has_call:
            self._list = _NEW_LIST
            self._consume(end)
        elif tag == tags.LIST_CLOSE and self._list != _NO_LIST:
            if not self.has_call:
                return NO_MATCH
            is_text = self._list == _TEXT_LIST
            self._list = _NO_LIST
            if is_text:
                return self._leave()
            self._close_group(end)
            if not (self.syntax.section_closes and context.in_section):
                context.in_section = False
                return self._leave()
        elif tag == tags.SECTION_CLOSE and context.in_section:
            if not self.has_call:
                return NO_MATCH
            if not context.speculation.section_is_text:
                self._close_group(end)
                context.in_section = False
            return self._leave()
        elif tag == tags.SECTION_OPEN and self.has_call:
            self._close_group(end)
        else:
            return self._read_unmarked()
        return AGAIN

    def _may_begin(self, c: str) -> bool:
        """True if a call without a marker may begin with this character."""
        syntax = self.syntax
        if syntax.opens == WRITTEN:
            return False
        if syntax.lists == WRITTEN and self._list == _NO_LIST:
            return False
        # Outside a list or section, further calls need a marker or a separator.
        if (
            self.has_call
            and not self.context.text_makes_text
            and self._list == _NO_LIST
            and not self.context.in_section
        ):
            return False
        if syntax.name is None:
            return c == "{"
        return not syntax.name_opens and NAME_START.match(c) is not None

    def _open(self, end: int) -> None:
        """Read up to ``end`` what may begin a call, and speculate."""
        context = self.context
        if not context.speculation.active:
            context.speculate(end - context.cur.pos)
        check_spelling(self.context, self.syntax, context.cur.pos, end)
        context.cur.pos = end

    def _consume(self, end: int) -> None:
        """Read markup up to ``end``."""
        context = self.context
        check_spelling(self.context, self.syntax, context.cur.pos, end)
        context.cur.pos = end
        if context.holds_space:
            context.drop_space()
        if not context.speculation.active:
            context.mark(MARKUP, end)

    def _close_group(self, end: int) -> None:
        """Read markup that ends a list or section."""
        self.context.end_speculation()
        self._consume(end)

    def _leave(self) -> int:
        """End the calls. Without any call, what was read becomes text."""
        return DONE if self.has_call else NO_MATCH

    def _read_body(self) -> int:
        """Read what follows the call's opener: the opener of the name, or the call itself."""
        cur = self.context.cur
        if self.syntax.name is None and cur.text[cur.pos : cur.pos + 1] == "{":
            self._arguments.begin_object(self.given_name, self.given_start)
            self._phase = _ARGUMENTS
            return AGAIN
        if not self._skip_spaces():
            return MORE
        if self.syntax.name_opens:
            end = self._at(self.syntax.before_body)
            if end < 0:
                return end
            check_spelling(self.context, self.syntax, cur.pos, end)
            cur.pos = end
            self._phase = _NAME
        elif self.syntax.name is not None:
            self._phase = _NAME
        elif cur.text[cur.pos] != "{":
            return NO_MATCH
        return AGAIN

    # -- arguments, and after them ------------------------------------------------------------------------------

    def _read_after(self) -> int:
        """Read what closes the call. It may be missing."""
        syntax = self.syntax
        context = self.context
        cur = context.cur
        if self._arguments.committed:
            self._arguments.end()
        if syntax.after.empty:
            return self._end_call()
        close = syntax.plain_close.match(cur.text, cur.pos)
        if close is not None and take_close(self.context, close):
            return self._end_call()
        if not self._skip_spaces():
            return MORE
        end = self._at(syntax.after)
        if end == MORE:
            return MORE
        if end >= 0:
            tag = syntax.after.tags[cur.text[cur.pos : end]]
            self._consume(end)
            if tag == tags.CALL_CLOSE or not syntax.closes:
                return self._end_call()
            self._phase = _CLOSING
            return AGAIN
        if syntax.closes:
            answer = read_stray(self.context, _STRAY, syntax.after)
            if answer == NO_MATCH and self._phase == _CLOSING:
                answer = read_stray(self.context, STRAY_TEXT, syntax.after)
            if answer == NO_MATCH:
                answer = read_damaged(self.context, syntax.after, syntax.between)
                if answer == AGAIN:
                    return self._end_call()
            if answer != NO_MATCH:
                return answer
            another = None if syntax.name is not None else _ANOTHER.match(cur.text, cur.pos)
            if another is not None and syntax.opens != UNWRITTEN:
                return self._over_before(another.end() - 1)
            if self._begins_with == _A_MARKER and report_missing_close(self.context) == MORE:
                return MORE
        return self._end_call()

    def _over_before(self, start: int) -> int:
        """End a call that has no closer. Another object follows it at ``start``, which may be a call as well."""
        answer = self._end_call()
        if answer == DONE and not self.last_became_text:
            pos = self.context.cur.pos
            self._open(start)
            self.context.report("variant_spelling", pos, start)
            self._begin_object_or_name(True)
            return AGAIN
        return answer

    def _end_call(self) -> int:
        """End the call after its closer, and choose what comes next."""
        context = self.context
        in_section = context.in_section
        self.last_became_text = self.emitter.close_call()
        if self.last_became_text and in_section and not context.in_section:
            # The section's opener has become text with its first call, and `close_call` has left the section. Calls
            # that follow are still calls, and its closer is text.
            context.in_section = True
            context.speculation.section_is_text = True
        if self._list == _NEW_LIST:
            self._list = _TEXT_LIST if self.last_became_text else _KEPT_LIST
        if self._list != _NO_LIST or context.in_section or self.syntax.separated:
            self._phase = _BETWEEN
            return AGAIN
        return DONE
