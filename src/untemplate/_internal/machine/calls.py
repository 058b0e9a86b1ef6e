"""Reads calls as a CallSyntax describes them: sections, lists, openers, names, closers.

* Before a call commits (``ArgumentsReader`` decides when) nothing is emitted, and NO_MATCH makes all of it text.
* After that it stays a call. Reading goes on at its closer, at the next opener or at the end of the output.
* White space after a call is held in the context: a marker may follow, or content.
"""

from __future__ import annotations

import re
from typing import Final, final

from . import sentences, tags
from .arguments.lookahead import MAX_STRAY, STRAY_TEXT
from .call_arguments import ArgumentsReader
from .call_emitter import CallEmitter
from .call_groups import CALL_OPENED, NAME_OPENED, NO_LIST, UNMARKED, CallGroup
from .call_syntax import (
    A_MARKER,
    ENTRY_BARE,
    ENTRY_CALL,
    ENTRY_NAME,
    ENTRY_SECTION,
    NO_MARKER,
    UNWRITTEN,
    Body,
    CallSyntax,
    begins_one,
)
from .context import ReaderContext
from .lexer import SPACES_GO_ON, WS, GoesOn
from .name_reader import read_id, read_name
from .signals import AGAIN, DONE, MORE, NO_MATCH
from .strays import check_spelling, read_damaged, read_stray, report_missing_close, take_close

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
"""The phases by number."""

_STRAY: Final = re.compile(rf"[\]}})\"'`,;]{{1,8}}[ \t\r\n]{{0,{MAX_STRAY}}}")
"""Stray signs before what closes a call. No output seen has more than eight; beyond them the call has no close."""
_ANOTHER: Final = re.compile(rf",?[ \t\r\n]{{0,{MAX_STRAY}}}\{{")
_OPENING: Final = (_CHOOSE, _BETWEEN, _BODY, _NAME)
"""Phases in which nothing can be read before text has come."""
_NO_SYNTAX: Final = CallSyntax("", Body())


@final
class CallReader:
    """Reads one section of calls, or one call where there are no sections."""

    def __init__(self, context: ReaderContext, emitter: CallEmitter) -> None:
        self.context: ReaderContext = context
        self.emitter: CallEmitter = emitter
        self.group: CallGroup = CallGroup(context, _NO_SYNTAX)
        self.has_call: bool = False
        """True if one of the calls has committed, as known after the last look at its arguments; ``has_committed`` is
        never behind."""
        self.last_became_text: bool = False
        """True if the call policy has turned the last call into text."""
        self._entry: int = ENTRY_BARE
        """Where the syntax was entered."""
        self._candidates: list[tuple[CallSyntax, int]] = []
        self._begins_with: int = NO_MARKER
        self.phase: int = _BETWEEN
        """The place in what is read; an index of `PHASES`."""
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

    # -- entering -----------------------------------------------------------------------------------------------

    def enter(self, candidates: list[tuple[CallSyntax, int]], begins_with: int, opener: str) -> None:
        """Begin to read calls. The cursor is after the opener, or at the first character of calls that have none. Each
        candidate is a syntax and where it is entered. ``begins_with``: NO_MARKER, A_WORD or A_MARKER."""
        self._opener = opener
        self._recovers = False
        self.given_name = ""
        self._opener_end = self.context.base + self.context.cur.pos
        self._candidates = candidates
        self._begins_with = begins_with
        self.has_call = False
        if len(candidates) == 1:
            self._chosen(candidates[0][0], candidates[0][1])
        else:
            self.phase = _CHOOSE

    def enter_arguments(self, syntax: CallSyntax, name: str, raw: bool) -> None:
        """Begin to read the arguments of a call that a header has named. ``raw``: whatever follows are its arguments,
        except a copy of a call in a string."""
        self.group.begin(syntax)
        self._begins_with = A_MARKER
        self._arguments.begin(syntax, A_MARKER, False, True)
        self._arguments.begin_named(name, "")
        self._arguments.raw = raw
        self.phase = _ARGUMENTS
        self.has_call = False

    def _chosen(self, syntax: CallSyntax, entry: int) -> None:
        self.group.begin(syntax)
        if self._opener in syntax.variants:
            start = self._opener_end - len(self._opener)
            self.context.ledger.report("variant_spelling", start, self._opener_end)
        self._entry = entry
        if entry == ENTRY_CALL:
            self._begin(_BODY, True)
        elif entry == ENTRY_NAME:
            self._begin(_NAME, False)
        else:
            if entry == ENTRY_SECTION:
                self.group.open_section()
            self.phase = _BETWEEN

    def _begin(self, phase: int, marked: bool) -> None:
        """Begin a call in this phase. ``marked``: its opener was written."""
        self._arguments.begin(self.group.syntax, self._begins_with, self.group.list != NO_LIST, marked)
        if self._recovers and not self.has_call:
            self._arguments.recover()
        self.phase = phase

    def _begin_object_or_name(self, marked: bool) -> None:
        """Begin a call at the first character of what holds its name."""
        if self.group.syntax.name is None:
            self._begin(_ARGUMENTS, marked)
            self._arguments.begin_object(self.given_name, self.given_start)
        else:
            self._begin(_NAME, marked)

    # -- reading ------------------------------------------------------------------------------------------------

    def step(self) -> int:
        """Read as far as the text decides. Return DONE after the last call, NO_MATCH or MORE."""
        cur = self.context.cur
        while True:
            phase = self.phase
            if phase != _ARGUMENTS:
                # Right after an opener nothing has come yet.
                waits = phase in _OPENING and cur.pos >= len(cur.text) and not cur.final
                answer = MORE if waits else self._read(phase)
                if answer == AGAIN:
                    continue
                if answer == MORE:
                    cur.goes_on = self._goes_on(phase)
                return answer
            answer = self._arguments.step()
            if self._arguments.committed:
                self.has_call = True
            if answer != DONE:
                return answer
            self.phase = _AFTER

    def _read(self, phase: int) -> int:
        """Read on in a phase before or after the arguments."""
        if phase == _BETWEEN:
            return self._read_between()
        if phase == _NAME:
            return self._go_on_after(read_name(self._arguments, self.group.syntax))
        if phase in (_AFTER, _CLOSING):
            return self._read_after()
        if phase == _BODY:
            return self._read_body()
        return self._choose() if phase == _CHOOSE else self._read_id()

    def _read_id(self) -> int:
        """Read the id between name and arguments."""
        name = self.group.syntax.name
        assert name is not None
        return self._go_on_after(read_id(self._arguments, name))

    def _go_on_after(self, found: int) -> int:
        """Go on after a name or an id, with what follows it. Return AGAIN, NO_MATCH or MORE."""
        if found < 0:
            return found
        if found == tags.CALL_CLOSE:
            self.has_call = True
            self.phase = _AFTER
        else:
            self.phase = _ID if found == tags.ID_OPEN else _ARGUMENTS
        return AGAIN

    def _goes_on(self, phase: int) -> GoesOn | None:
        """Return the test for text that decides nothing in a phase before or after the arguments."""
        syntax = self.group.syntax
        if phase == _BETWEEN:
            return syntax.between.goes_on_after_spaces
        if phase in (_AFTER, _CLOSING):
            return syntax.after.goes_on_after_spaces
        if phase == _ID:
            return None
        if phase == _CHOOSE:
            syntax, entry = self._candidates[0]
            if entry != ENTRY_CALL:
                return SPACES_GO_ON
        # A call may have any name if its opener shows that it is one: then a name and what follows it decide nothing.
        is_certain = self._begins_with == A_MARKER and not syntax.bare
        if phase == _NAME:
            assert syntax.name is not None
            return syntax.name.opening.match if is_certain else syntax.name.open.match
        # An opener of the name that no token id proves would be text at once.
        may_be_text = self.context.checks_ids and any(map(self.context.is_special, syntax.before_body.tags))
        return syntax.opening if is_certain and not may_be_text else syntax.before_body.goes_on_after_spaces

    def recover(self) -> None:
        """Take note that something is wrong with the markers before the first call."""
        self._recovers = True
        self._arguments.recover()

    def read_doubled(self, markers: str) -> int:
        """Drop the marker at the cursor if it is the last of those that have been read, once more: before the first
        call one may come twice. Return AGAIN, NO_MATCH or MORE."""
        cur = self.context.cur
        end = NO_MATCH if self._recovers else self.context.marker_at(self._candidates[0][0].starts)
        if end < 0:
            return end
        if not markers.rstrip(WS).endswith(cur.text[cur.pos : end]):
            return NO_MATCH
        self.recover()
        self.context.drop("doubled_open", end)
        return AGAIN

    def pass_on(self, text: str) -> None:
        """Take note of text of a value, before the cursor, that has been emitted without being read."""
        self._arguments.pass_on(text)

    def finish(self) -> bool:
        """End the output. Return False if what is being read is not a call and must become text."""
        if self.phase in (_AFTER, _CLOSING):
            return True
        if self.phase == _BETWEEN:
            return not self.context.speculation.active or (self.has_call and self.context.tentative is not None)
        return self.phase == _ARGUMENTS and self._arguments.finish()

    @property
    def has_opener(self) -> bool:
        """True if what is being read has begun with a complete opener, and is not the end of a sentence."""
        cur = self.context.cur
        if self._entry == ENTRY_NAME and self.phase == _NAME:
            return cur.text[cur.pos : cur.pos + 1] not in WS
        if self.phase == _NAME and cur.text[cur.pos :].rstrip(WS).endswith(sentences.IN_NAME):
            return False
        return self._begins_with == A_MARKER

    @property
    def has_marker(self) -> bool:
        """True if what is being read has begun with a marker that prose does not hold."""
        return self._begins_with == A_MARKER

    @property
    def has_committed(self) -> bool:
        """True if a call has committed since the calls were entered."""
        return self.has_call or self._arguments.committed

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
        answer = self.group.read(self.has_call)
        if answer == UNMARKED:
            self._begin_object_or_name(False)
        elif answer == CALL_OPENED:
            self._begin(_BODY, True)
        elif answer == NAME_OPENED:
            self._begin(_NAME, False)
        return answer if answer < 0 else AGAIN

    def _read_body(self) -> int:
        """Read what follows the call's opener: the opener of the name, or the call itself."""
        cur = self.context.cur
        if self.group.syntax.name is None and cur.text[cur.pos : cur.pos + 1] == "{":
            self._arguments.begin_object(self.given_name, self.given_start)
            self.phase = _ARGUMENTS
            return AGAIN
        if not self.context.skip_spaces(self.has_call):
            return MORE
        if self.group.syntax.before_body.tags:
            end = self.context.marker_at(self.group.syntax.before_body)
            if end < 0:
                return end
            check_spelling(self.context, self.group.syntax, cur.pos, end)
            cur.pos = end
            self.phase = _NAME
        elif self.group.syntax.name is not None:
            self.phase = _NAME
        elif cur.text[cur.pos] != "{":
            return NO_MATCH
        return AGAIN

    # -- arguments, and after them ------------------------------------------------------------------------------

    def _read_after(self) -> int:
        """Read what closes the call. It may be missing."""
        syntax = self.group.syntax
        context = self.context
        cur = context.cur
        if self._arguments.committed:
            self._arguments.end()
        if not syntax.after.tags:
            return self._end_call()
        close = syntax.plain_close.match(cur.text, cur.pos)
        if close is not None and take_close(self.context, close):
            return self._end_call()
        if not self.context.skip_spaces(self.has_call):
            return MORE
        end = context.marker_at(syntax.after)
        if end == MORE:
            return MORE
        if end >= 0:
            tag = syntax.after.tags[cur.text[cur.pos : end]]
            self.group.take(end)
            if tag == tags.CALL_CLOSE or not syntax.closes:
                return self._end_call()
            self.phase = _CLOSING
            return AGAIN
        if not syntax.closes:
            return self._end_call()
        answer = self._read_stray()
        return self._read_unclosed() if answer == NO_MATCH else answer

    def _read_stray(self) -> int:
        """Drop stray text in front of what closes the call, or end it at a damaged close. Return AGAIN, DONE, NO_MATCH
        or MORE."""
        after = self.group.syntax.after
        answer = read_stray(self.context, _STRAY, after)
        if answer == NO_MATCH and self.phase == _CLOSING:
            answer = read_stray(self.context, STRAY_TEXT, after)
        if answer != NO_MATCH:
            return answer
        answer = read_damaged(self.context, after, self.group.syntax.between)
        return self._end_call() if answer == AGAIN else answer

    def _read_unclosed(self) -> int:
        """End a call that has no close."""
        syntax = self.group.syntax
        cur = self.context.cur
        another = None if syntax.name is not None else _ANOTHER.match(cur.text, cur.pos)
        if another is not None and syntax.opens != UNWRITTEN:
            return self._over_before(another.end() - 1)
        if self._begins_with == A_MARKER and report_missing_close(self.context) == MORE:
            return MORE
        return self._end_call()

    def _over_before(self, start: int) -> int:
        """End a call that has no closer. Another object follows it at ``start``, which may be a call as well."""
        answer = self._end_call()
        if answer == DONE and not self.last_became_text:
            pos = self.context.cur.pos
            self.group.open(start)
            self.context.report("variant_spelling", pos, start)
            self._begin_object_or_name(True)
            return AGAIN
        return answer

    def _end_call(self) -> int:
        """End the call after its closer, and choose what comes next."""
        section = self.context.section
        self.last_became_text = self.emitter.close_call()
        if not self.group.goes_on_after_call(self.last_became_text, section):
            return DONE
        self.phase = _BETWEEN
        return AGAIN
