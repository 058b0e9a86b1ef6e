"""The arguments of a call in any syntax, from the end of its name to what closes them.

* Here a call commits: when its name is complete and arguments, or what closes them, follow. Nothing is emitted before.
* A committed call remains. JSON that breaks is passed on as written, up to a literal that ends a call. In other
  syntaxes, what is open is closed where the call is closed.
* A JSON object that holds both name and arguments is read here as a whole.
"""

from __future__ import annotations

import re
from typing import Final, final

from . import tags
from .arguments.base import ArgumentReader, CallBeginning
from .call_emitter import CallEmitter
from .call_state import CUT, RECOVERING, VALID, WHOLE
from .call_syntax import A_WORD, NO_MARKER, Body, CallSyntax
from .context import ReaderContext
from .diagnostics import DiagnosticCode
from .json.call_object import CallObjectReader
from .ledger import ARGUMENT_TEXT, DROPPED, MARKUP, NAME_TEXT
from .lexer import WS, Cursor, Literals
from .names import MAX_NAME, may_be_name
from .signals import AGAIN, DONE, MORE, NO_MATCH
from .speculation import NO_SECTION

# Phases.
_BEFORE: Final = 0
_OBJECT: Final = 1
_RAW: Final = 2
# From here on a reader is at work.
_CALL_OBJECT: Final = 3
_VALUE: Final = 4
PHASES: Final = (
    "before the arguments",
    "before an object with name and arguments",
    "broken arguments, as written",
    "such an object",
    "arguments",
)
"""What is read in each phase."""

_NO_SYNTAX: Final = CallSyntax("", Body())


@final
class ArgumentsReader(CallBeginning):
    """Reads the arguments of one call after another."""

    def __init__(self, context: ReaderContext, emitter: CallEmitter) -> None:
        self.tools = context.tools
        self.max_held = context.max_held
        self.context: ReaderContext = context
        self._emitter: CallEmitter = emitter
        self.records = False
        self._syntax: CallSyntax = _NO_SYNTAX
        self._begins_with: int = NO_MARKER
        self._phase: int = _BEFORE
        self._id: str = ""
        self._wrote: bool = False
        self._ending: int = CUT
        self._recovered: bool = False
        """True if a part of the call was ended, dropped or read again."""
        self._name_start: int = 0
        """The place of the name of a message header in the output."""
        self._raw_space: list[str] = []
        self._reader: ArgumentReader | None = None
        """Reads the arguments after a name, or an object that holds both."""

    # -- beginning ----------------------------------------------------------------------------------------------

    def begin(self, syntax: CallSyntax, begins_with: int, in_list: bool, marked: bool) -> None:
        """Begin a call. ``begins_with``: NO_MARKER, A_WORD or A_MARKER; after a word the tool must be an offered one.
        ``in_list``: ``]`` ends the list of calls. ``marked``: the opener of the call was written."""
        self.committed = False
        self.records = self.context.ledger.spans is not None
        self._syntax = syntax
        self._begins_with = begins_with
        self.bare = syntax.bare
        self.in_section = self.context.section != NO_SECTION
        self.in_list = in_list
        self.marked = marked
        self._recovered = False
        self.raw = False
        self.name = ""
        self._id = ""

    def recover(self) -> None:
        """Take note that a part of the call was dropped before its arguments."""
        self._recovered = True

    def begin_object(self, name: str, name_start: int) -> None:
        """Read an object that holds name and arguments; the cursor is at its brace. ``name``: that of a header, and
        ``name_start``: its place in the output."""
        self.name = name
        self._name_start = name_start
        self._phase = _OBJECT

    def begin_named(self, name: str, call_id: str) -> bool:
        """Start after a complete name that is written before the arguments. False if no call can have this name."""
        if not (may_be_name(name) and self.accepts(name)):
            return False
        self.name = name
        self._id = call_id
        self.opened = True
        self._phase = _BEFORE
        return True

    def begin_at_key(self, name: str) -> None:
        """Commit a call whose name is known; the cursor is at the first key."""
        self.name = name
        self.commit()
        self._reader = self._syntax.body.at_key(self)
        self._phase = _VALUE

    def close_empty(self) -> None:
        """Commit a call that ends after its name; the cursor is after what closes it."""
        self.commit()
        self._ending = WHOLE
        self.context.mark(MARKUP, self.context.cur.pos)

    def identify(self, call_id: str) -> None:
        """Take an id that is written between name and arguments."""
        self._id = call_id

    def commit(self) -> None:
        self._emitter.begin_call(self.name, self._id)
        self.committed = True
        self._wrote = False
        self._ending = CUT
        self._reader = None
        self._raw_space = []  # a call that became text may have ended in such arguments

    def commit_once(self) -> None:
        if not self.committed:
            self.commit()

    def accepts(self, name: str) -> bool:
        tools = self.context.tools
        return not (self.bare or self._begins_with == A_WORD) or not tools.known or name in tools.names

    def read_with(self, reader: ArgumentReader) -> int:
        self._reader = reader
        self._phase = _VALUE
        return AGAIN

    def read_object(self, call_object: ArgumentReader) -> int:
        self._reader = call_object
        self._phase = _CALL_OBJECT
        return AGAIN

    def read_raw(self) -> int:
        self._phase = _RAW
        return AGAIN

    def end_arguments(self, ending: int) -> int:
        self._ending = ending
        return DONE

    # -- reading ------------------------------------------------------------------------------------------------

    def step(self) -> int:
        """Read as far as the text decides. DONE if the arguments have ended, NO_MATCH if this is not a call."""
        while True:
            phase = self._phase
            if phase >= _CALL_OBJECT:
                answer = self._read_value()
            elif phase == _OBJECT:
                answer = self._syntax.body.begin_object(self.context.cur, self)
            elif phase == _BEFORE:
                answer = self._syntax.body.begin(self.context.cur, self)
            else:
                answer = self._read_raw()
            if answer != AGAIN:
                return answer

    def pass_on(self, text: str) -> None:
        """Take note of text of a value, before the cursor, that has been emitted without being read."""
        waiting = self._reader.pass_on(text) if self._phase == _VALUE and self._reader is not None else 0
        self.context.mark(ARGUMENT_TEXT, -waiting)

    def finish(self) -> bool:
        """Take note that the output ended inside the arguments. False if this is not a call."""
        cur = self.context.cur
        reader = self._reader
        if isinstance(reader, CallObjectReader) and self._phase == _CALL_OBJECT:
            if not reader.finish(cur, self):
                return False
            if reader.whole:
                self.report("unclosed_object", cur.pos, cur.pos)
                self._ending = VALID if reader.valid else WHOLE
        elif self.committed or self.raw:
            self.commit_once()
            if self._ending == CUT and self._reader is not None:
                self._reader.put_cut(cur, self)
        else:
            return False
        self.end()
        return True

    def end(self) -> None:
        """End the call; markers that close it may still follow."""
        self.committed = False
        if self._ending != CUT and not self._wrote:
            self.put("{}")
            self._ending = VALID
        self._emitter.end_call(self._ending, self._recovered)

    def at_close(self, cur: Cursor, closes: Literals) -> int:
        cur.pos = cur.spaces()
        cur.goes_on = closes.goes_on_after_spaces
        if cur.pos >= len(cur.text):
            return MORE
        self.context.mark(MARKUP, cur.pos)
        end = closes.at(cur.text, cur.pos, cur.final)
        if end == MORE:
            return MORE
        cur.goes_on = None
        if end < 0 or not self.may_be_marker(cur.pos, end):
            return AGAIN
        tag = closes.tags[cur.text[cur.pos : end]]
        if tag != tags.KEY_OPEN and tag not in tags.CLOSES:
            return NO_MATCH
        if tag in (tags.CALL_CLOSE, tags.SECTION_CLOSE) and self._is_word_of_prose():
            return NO_MATCH
        self.commit_once()
        return DONE

    def _is_word_of_prose(self) -> bool:
        """True if nothing but this word is between the call's markers, it is not an offered tool, and no token id
        proves the markers: ``<tool_call> and </tool_call>``."""
        tools = self.context.tools
        name = self._syntax.name
        alone = not (self.committed or self.context.checks_ids or (name is not None and name.in_tag))
        return alone and tools.known and self.name not in tools.names

    def more_if(self, prefix: re.Pattern[str], at: int) -> int:
        cur = self.context.cur
        waits = not cur.final and len(cur.text) - cur.pos < MAX_NAME
        return MORE if waits and prefix.match(cur.text, at) is not None else NO_MATCH

    def _read_value(self) -> int:
        context = self.context
        cur = context.cur
        reader = self._reader
        assert reader is not None
        answer = reader.step(cur, self)
        if answer == MORE:
            reader.look_ahead(cur)
            return MORE
        if answer == NO_MATCH:
            return self._end_broken(reader)
        return self.end_arguments(VALID if reader.valid else WHOLE)

    def _end_broken(self, reader: ArgumentReader) -> int:
        """Go on after arguments that are broken."""
        if isinstance(reader, CallObjectReader):
            return self._end_broken_object(reader)
        pos = self.context.cur.pos
        self.report(reader.broken, pos, pos)
        if reader.broken == "broken_json":
            self._phase = _RAW
            return AGAIN
        if not self._closes_here(reader):
            return DONE
        reader.close(self)
        return self.end_arguments(VALID if reader.valid else WHOLE)

    def _end_broken_object(self, call_object: CallObjectReader) -> int:
        """Go on after an object that is broken and may hold a call. NO_MATCH if it does not."""
        cur = self.context.cur
        call_object.flush(cur, self)
        if not self.committed:
            return NO_MATCH
        self.context.mark(MARKUP, cur.pos)
        if call_object.whole:
            self.report("unclosed_object", cur.pos, cur.pos)
            return self.end_arguments(VALID if call_object.valid else WHOLE)
        self.report("broken_json", cur.pos, cur.pos)
        self._phase = _RAW
        return AGAIN

    def _read_raw(self) -> int:
        """Pass on arguments that broke, up to a literal that ends a call."""
        context = self.context
        cur = context.cur
        text = cur.text
        start = cur.pos
        resync = self._syntax.stops
        found = resync.pattern.search(text, start)
        while found is not None and not self.may_be_marker(found.start(), found.end()):
            found = resync.pattern.search(text, found.start() + 1)
        end = resync.end_before(found, text, start, cur.final)
        held = -1 if found is None or cur.final else resync.longer_from(text, start, end)
        if held >= 0:
            found = None
            end = held
        piece = text[start:end]
        kept = piece.rstrip(WS)
        if kept:
            self.put("".join(self._raw_space) + kept)
            self._raw_space = []
            context.mark(ARGUMENT_TEXT, start + len(kept))
        if len(kept) < len(piece):
            self._raw_space.append(piece[len(kept) :])
        cur.pos = end
        if found is None:
            return MORE
        self._raw_space = []
        context.mark(MARKUP, end)
        return self.end_arguments(WHOLE if self._closes_here(None) else CUT)

    def _closes_here(self, reader: ArgumentReader | None) -> bool:
        """True if the literal at the cursor, after arguments that broke, closes the call."""
        cur = self.context.cur
        if self.in_list and reader is not None and cur.text[cur.pos] == "]":
            return True
        resync = self._syntax.stops
        end = resync.at(cur.text, cur.pos, True)
        return end >= 0 and resync.tags[cur.text[cur.pos : end]] in tags.CLOSES

    # -- CallHandler -------------------------------------------------------------------------------------------------

    def put(self, text: str) -> None:
        self._wrote = True
        context = self.context
        held = context.held_arguments
        if held is None:
            context.receiver.arguments(context.calls[-1].index, text)
        else:
            held.append(text)

    def mark(self, kind: int, pos: int) -> None:
        # As the context does it, which would take one more call for each of the many marks in arguments.
        context = self.context
        ledger = context.ledger
        end = context.base + pos
        if ledger.spans is not None:
            ledger.mark(kind, end)
        elif end > ledger.frontier:
            ledger.frontier = end

    def remark(self, kind: int, start: int, end: int) -> None:
        self.context.ledger.cut_out(kind, start, end)

    def report(self, code: DiagnosticCode, start: int, end: int) -> None:
        self._recovered = self._recovered or code in RECOVERING
        self.context.report(code, start, end)

    def report_at(self, code: DiagnosticCode, start: int, end: int) -> None:
        self.context.ledger.report(code, start, end)

    def accounted(self) -> int:
        return self.context.ledger.frontier

    def drop_arguments(self, code: DiagnosticCode, start: int, values: list[tuple[int, int]]) -> None:
        self._recovered = True
        for begin, end in values:
            self.report_at(code, begin, end)
        self.context.ledger.change(ARGUMENT_TEXT, DROPPED, start)

    def drop_around(self, before: int, after: int) -> None:
        self._recovered = True
        self.context.ledger.drop_around("stray_text", ARGUMENT_TEXT, before, after)

    def may_be_marker(self, start: int, end: int) -> bool:
        context = self.context
        scanner = context.scanner
        if not context.checks_ids or scanner is None or not scanner.active:
            return True
        return scanner.proof(context.cur.text[start:end], context.base + start) >= 0

    def has_id(self, start: int, end: int) -> bool:
        return self.context.checks_ids and self.context.has_id(start, end)

    def named(self, name: str, call_id: str, arguments: bool) -> bool:
        self.name = name
        self._id = call_id
        if self.bare:
            if not self.accepts(name):
                return False
            if not arguments:
                return True
        call_object = self._reader
        self.commit()
        self._reader = call_object
        return True

    def named_before(self) -> None:
        self.context.ledger.cut_out(NAME_TEXT, self._name_start, self._name_start + len(self.name))

    def late_id(self, call_id: str) -> None:
        self.context.calls[-1].model_id = call_id
