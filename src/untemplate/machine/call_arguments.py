"""The arguments of a call in any syntax, from the end of its name to what closes them.

* Here a call commits: when its name is complete and arguments, or what closes them, follow. Nothing is emitted before.
* A committed call remains. JSON that breaks is passed on as written, up to a literal that ends a call. In other
  syntaxes, what is open is closed where the call is closed.
* A JSON object that holds both name and arguments is read here as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, final

from .arguments.base import CallHandler
from .arguments.call_object import CallObjectReader, begins_call, call_goes_on
from .arguments.elements import ElementReader
from .arguments.json_reader import EncodedJsonReader, JsonReader, whole_object
from .arguments.literal import LiteralReader
from .arguments.tagged import TaggedReader
from .call_emitter import CallEmitter
from .call_state import RECOVERING
from .context import ReaderContext
from .diagnostics import DiagnosticCode
from .ledger import ARGUMENT_TEXT, ID_TEXT, MARKUP, NAME_TEXT
from .lexer import WS, Literals
from .names import MAX_NAME, WORD
from .program import (
    IS_ARGUMENTS_CLOSE,
    IS_CALL_CLOSE,
    IS_KEY_OPEN,
    IS_SECTION_CLOSE,
    JSON_BODY,
    NAMED_ELEMENTS,
    NAMED_JSON,
    NAMED_LITERAL,
    NAMED_TAGGED,
    CallSyntax,
)
from .signals import AGAIN, DONE, MORE, NO_MATCH

# Phases.
_BEFORE: Final = 0
_CALL_OBJECT: Final = 1
_VALUE: Final = 2
_RAW: Final = 3
_OBJECT: Final = 4

_CLOSERS: Final = (IS_CALL_CLOSE, IS_ARGUMENTS_CLOSE, IS_SECTION_CLOSE)
_ARGUMENT_START: Final = re.compile(r"[ \t\r\n]*(?:\)|[^\W\d]\w*[ \t\r\n]*=(?=[^=]))")
_KNOWN_ARGUMENT: Final = re.compile(
    r"""[ \t\r\n]*(?:\)|[^\W\d][\w.\- \t]*[ \t\r\n]*=(?=[^=])|["'\d\[{(+\-.<]|(?:[Tt]rue|[Ff]alse|None|null)\b)"""
)
_KNOWN_PREFIX: Final = re.compile(r"[ \t\r\n]*(?:[^\W\d][\w.\- \t]*[ \t\r\n]*=?)?\Z")
_ARGUMENT_PREFIX: Final = re.compile(r"[ \t\r\n]*(?:[^\W\d]\w*[ \t\r\n]*=?)?\Z")
_ENCODED_OBJECT: Final = re.compile(r'"(?:[ \t\r\n]|\\[nrt])*[{"]')
_ENCODED_PREFIX: Final = re.compile(r'"(?:[ \t\r\n]|\\[nrt])*\\?\Z')

_LINK: Final = re.compile(r"[ \t\r\n]*\)[ \t\r\n]*\]\(")
_LINK_PREFIX: Final = re.compile(r"[ \t\r\n]*(?:\)[ \t\r\n]*\]?)?\Z")
"""``[name()](…)`` after its first bracket, and the beginning of that."""

_OBJECT_END: Final = re.compile(r"[ \t\r\n]*+\}")

_NO_SYNTAX: Final = CallSyntax(JSON_BODY, "")


@final
class ArgumentsReader(CallHandler):
    """Reads the arguments of one call after another."""

    def __init__(self, context: ReaderContext, emitter: CallEmitter) -> None:
        self.context: ReaderContext = context
        self._emitter: CallEmitter = emitter
        self.committed: bool = False
        """True if the call being read has committed."""
        self.raw: bool = False
        """True if any text may be the arguments."""
        self._syntax: CallSyntax = _NO_SYNTAX
        self._ambiguous: bool = False
        self._in_list: bool = False
        self._marked: bool = False
        self._phase: int = _BEFORE
        self._name: str = ""
        self._id: str = ""
        self._wrote: bool = False
        self._whole: bool = False
        self._valid: bool = False
        self._recovered: bool = False
        """True if a part of the call was ended, dropped or read again."""
        self._name_start: int = 0
        """The place of the name of a message header in the output."""
        self._raw_space: list[str] = []
        self._call_object: CallObjectReader | None = None
        self._json: JsonReader | None = None
        self._text: EncodedJsonReader | None = None
        self._tagged: TaggedReader | None = None
        self._tagged_before: TaggedReader | None = None
        """The reader of an earlier call, which reads the next one as well."""
        self._elements: ElementReader | None = None
        self._literal: LiteralReader | None = None

    # -- beginning ----------------------------------------------------------------------------------------------

    def begin(self, syntax: CallSyntax, ambiguous: bool, in_list: bool, marked: bool) -> None:
        """Begin a call. ``ambiguous``: prose may hold its opener too, so the tool must be an offered one.
        ``in_list``: ``]`` ends the list of calls. ``marked``: the opener of the call was written."""
        self.committed = False
        self.records = self.context.ledger.spans is not None
        self._syntax = syntax
        self._ambiguous = ambiguous
        self._in_list = in_list
        self._marked = marked
        self._recovered = False
        self.raw = False
        self._name = ""
        self._id = ""

    def begin_object(self, name: str, name_start: int) -> None:
        """Read an object that holds name and arguments; the cursor is at its brace. ``name``: that of a header, and
        ``name_start``: its place in the output."""
        self._name = name
        self._name_start = name_start
        self._phase = _OBJECT

    def begin_named(self, name: str, call_id: str) -> bool:
        """Start after a complete name. False if no call can have this name."""
        if WORD.search(name) is None or not self._allowed(name):
            return False
        self._name = name
        self._id = call_id
        self._phase = _BEFORE
        return True

    def begin_at_key(self, name: str) -> None:
        """Commit a call whose name is known; the cursor is at the first key."""
        self._name = name
        self.commit()
        self._tagged = self._tagged_reader()
        self._tagged.begin_key()
        self._phase = _VALUE

    def close_empty(self) -> None:
        """Commit a call that ends after its name; the cursor is after what closes it."""
        self.commit()
        self._whole = True
        self.context.mark(MARKUP, self.context.cur.pos)

    def _tagged_reader(self) -> TaggedReader:
        syntax = self._syntax
        outermost = IS_CALL_CLOSE
        if syntax.section_closes and self.context.in_section:
            outermost = IS_SECTION_CLOSE
        elif not syntax.call_closes or (syntax.call_opens and not self._marked):
            outermost = syntax.innermost
        reader = self._tagged_before
        if reader is None or reader.syntax is not syntax:
            reader = self._tagged_before = TaggedReader(syntax, self.context.tools, self.context.max_held)
        reader.begin(self._name, outermost, self._marked)
        return reader

    def identify(self, call_id: str) -> None:
        """Take an id that is written between name and arguments."""
        self._id = call_id

    def commit(self) -> None:
        """Begin the call for good."""
        self._emitter.begin_call(self._name, self._id)
        self.committed = True
        self._wrote = False
        self._whole = False
        self._valid = False
        self._call_object = None
        self._json = None
        self._text = None
        self._tagged = None
        self._elements = None
        self._literal = None
        self._raw_space = []  # a call that became text may have ended in such arguments

    def _commit_once(self) -> None:
        if not self.committed:
            self.commit()

    def _allowed(self, name: str) -> bool:
        """True if a call may have this name: without a distinctive marker, known tools must include it."""
        tools = self.context.tools
        return not (self._syntax.bare or self._ambiguous) or not tools.known or name in tools.names

    # -- reading ------------------------------------------------------------------------------------------------

    def step(self) -> int:
        """Read as far as the text decides. DONE if the arguments have ended, NO_MATCH if this is not a call."""
        while True:
            phase = self._phase
            if phase == _VALUE:
                answer = self._read_value()
            elif phase == _CALL_OBJECT:
                answer = self._read_call_object()
            elif phase == _OBJECT:
                answer = self._read_object_start()
            elif phase == _BEFORE:
                answer = self._read_before()
            else:
                answer = self._read_raw()
            if answer != AGAIN:
                return answer

    def finish(self) -> bool:
        """Take note that the output ended inside the arguments. False if this is not a call."""
        cur = self.context.cur
        call_object = self._call_object if self._phase == _CALL_OBJECT else None
        if call_object is None:
            if not self.committed and not self.raw:
                return False
            self._commit_once()
        elif not call_object.cut(cur, self):
            return False
        if not self._whole:
            if self._tagged is not None:
                self._tagged.cut(cur, self)
            if self._elements is not None:
                self._elements.cut(cur, self)
            if self._literal is not None:
                self._literal.cut(cur, self)
        if call_object is not None and call_object.whole:
            self.report("unclosed_object", cur.pos, cur.pos)
            self._whole = True
            self._valid = call_object.valid
        self.end()
        return True

    def end(self) -> None:
        """End the call; markers that close it may still follow."""
        self.committed = False
        if self._whole and not self._wrote:
            self._emitter.arguments("{}")
            self._valid = True
        self._emitter.end_call(self._whole, self._valid, self._recovered)

    def _read_before(self) -> int:
        """Decide by the text after a complete name if this is a call."""
        syntax = self._syntax
        context = self.context
        cur = context.cur
        if syntax.body == NAMED_LITERAL:
            context.mark(MARKUP, cur.pos)
            return self._begin_literal(cur.text[cur.pos]) if cur.pos < len(cur.text) else MORE
        if syntax.body == NAMED_TAGGED:
            found = syntax.regular_key.match(cur.text, cur.pos)
            if found is not None and self.may_be_marker(found.start("opener"), found.end("opener")):
                cur.pos = found.start("opener")
                context.mark(MARKUP, cur.pos)
                self._commit_once()
                self._tagged = self._tagged_reader()
                self._phase = _VALUE
                return AGAIN
        cur.pos = cur.spaces()
        if (
            syntax.body == NAMED_JSON
            and cur.text[cur.pos : cur.pos + 1] == "{"
            and "{" not in syntax.after.first_characters
        ):
            context.mark(MARKUP, cur.pos)
            return self._begin_json("{")
        in_tags = syntax.body == NAMED_TAGGED or syntax.body == NAMED_ELEMENTS
        closes = syntax.tags if in_tags else syntax.after
        cur.goes_on = closes.goes_on_after_spaces
        if cur.pos >= len(cur.text):
            return MORE
        context.mark(MARKUP, cur.pos)
        c = cur.text[cur.pos]
        end = self._at(closes)
        if end == MORE:
            return MORE
        cur.goes_on = None
        if end >= 0:
            tag = closes.tags[cur.text[cur.pos : end]]
            if tag not in (IS_KEY_OPEN, IS_ARGUMENTS_CLOSE, IS_CALL_CLOSE, IS_SECTION_CLOSE):
                return NO_MATCH
            if tag in (IS_CALL_CLOSE, IS_SECTION_CLOSE) and self._is_word_of_prose():
                return NO_MATCH
            self._commit_once()
            if in_tags:
                if syntax.body == NAMED_TAGGED:
                    self._tagged = self._tagged_reader()
                else:
                    self._elements = ElementReader(syntax, context.tools.node(self._name), context.max_held)
                self._phase = _VALUE
                return AGAIN
            self._whole = True
            return DONE
        return self._begin_json(c) if syntax.body == NAMED_JSON else NO_MATCH

    def _is_word_of_prose(self) -> bool:
        """True if nothing but this word is between the call's markers, it is not an offered tool, and no token id
        proves the markers: ``<tool_call> and </tool_call>``."""
        tools = self.context.tools
        alone = not (self.committed or self._syntax.name_in_tag or self.context.checks_ids)
        return alone and tools.known and self._name not in tools.names

    def _begin_json(self, c: str) -> int:
        """Begin JSON arguments at their first character."""
        if c == "{":
            if not self.committed:
                # ``{\"a\": 1}`` is a copy of a call in a string.
                cur = self.context.cur
                following = cur.text[cur.pos + 1 : cur.pos + 2]
                if following == "\\":
                    return NO_MATCH
                if not following and not cur.final:
                    return MORE
            self._commit_once()
            cur = self.context.cur
            end = whole_object(cur, cur.pos)
            if end > cur.pos:
                self._emitter.arguments(cur.text[cur.pos : end])
                self.context.mark(ARGUMENT_TEXT, end)
                cur.pos = end
                self._wrote = self._whole = self._valid = True
                return DONE
            self._json = JsonReader(self._syntax.call_stops)
            self._phase = _VALUE
        elif c == '"':
            cur = self.context.cur
            if not self.committed and _ENCODED_OBJECT.match(cur.text, cur.pos) is None:
                return self._more_if(_ENCODED_PREFIX, cur.pos)
            self._commit_once()
            self.report("variant_spelling", cur.pos, cur.pos + 1)
            self._text = EncodedJsonReader()
            self._phase = _VALUE
        elif self.committed or self.raw:
            self._commit_once()
            self._phase = _RAW
        else:
            return NO_MATCH
        return AGAIN

    def _at(self, literals: Literals) -> int:
        """Return where the literal at the cursor ends; NO_MATCH or MORE."""
        cur = self.context.cur
        end = literals.at(cur.text, cur.pos, cur.final)
        return NO_MATCH if end >= 0 and not self.may_be_marker(cur.pos, end) else end

    def _more_if(self, prefix: re.Pattern[str], at: int) -> int:
        """Return MORE if the text from ``at`` on may still become a match, as the pattern of its beginnings decides."""
        cur = self.context.cur
        undecided = not cur.final and prefix.match(cur.text, at) is not None
        return MORE if undecided and len(cur.text) - cur.pos < MAX_NAME else NO_MATCH

    def _begin_literal(self, c: str) -> int:
        syntax = self._syntax
        cur = self.context.cur
        if c != syntax.bracket_open and c not in "({":
            return NO_MATCH
        if syntax.escaped.match(cur.text, cur.pos + 1) is not None:
            return NO_MATCH
        undecided = syntax.escaped_prefix.match(cur.text, cur.pos + 1) is not None and not cur.final
        if syntax.bare and self._in_list:
            if _LINK.match(cur.text, cur.pos + 1) is not None:
                return NO_MATCH
            undecided = undecided or (not cur.final and _LINK_PREFIX.match(cur.text, cur.pos + 1) is not None)
        if undecided and len(cur.text) - cur.pos < MAX_NAME:
            return MORE
        # ``[see](x)`` is a link: if the tools are not known, only ``name=`` or no arguments at all make it a call.
        # If they are, ``[f(x) for x in xs]`` is still not a call: ``x`` is a variable.
        if syntax.bare:
            known = self.context.tools.known
            start = _KNOWN_ARGUMENT if known else _ARGUMENT_START
            if start.match(cur.text, cur.pos + 1) is None:
                return self._more_if(_KNOWN_PREFIX if known else _ARGUMENT_PREFIX, cur.pos + 1)
        self.commit()
        outer = "]" if self._in_list else ""
        self._literal = LiteralReader(syntax, self.context.tools, self._name, outer, self.context.max_held)
        self._phase = _VALUE
        return AGAIN

    def _read_object_start(self) -> int:
        """Begin to read an object that holds name and arguments: at once up to the arguments, if it is written as the
        renderer writes it, otherwise member by member."""
        syntax = self._syntax
        cur = self.context.cur
        start = syntax.object_start.match(cur.text, cur.pos)
        if start is not None:
            return self._read_name(start)
        if not syntax.name_is_key and begins_call(cur):
            cur.goes_on = call_goes_on
            return MORE
        call_object = self._call_object = CallObjectReader(syntax, self.context.max_held)
        call_object.given_name = self._name
        self._phase = _CALL_OBJECT
        return AGAIN

    def _read_name(self, start: re.Match[str]) -> int:
        """Read the beginning of an object with its name, and the rest at once if all of it has come."""
        syntax = self._syntax
        context = self.context
        cur = context.cur
        call_id = start.group(1) or ""
        name = start.group(2)
        begin = cur.pos = start.end()
        if syntax.bare and not self._allowed(name):
            return NO_MATCH
        at_arguments = start.lastindex == 3
        # Where a name alone does not make a call, or an id may follow it, the call begins with the arguments.
        waits = syntax.bare or (syntax.id_key != "" and not call_id)
        call_start = begin if waits and at_arguments else start.end(2)
        if context.ledger.spans is None:
            context.ledger.frontier = context.base + call_start
        else:
            if start.group(1) is not None and syntax.id_key:
                context.mark(MARKUP, start.start(1) - 1)
                context.mark(ID_TEXT, start.end(1) + 1)
            context.mark(MARKUP, start.start(2))
            context.mark(NAME_TEXT, start.end(2))
            context.mark(MARKUP, call_start)
        self._id = call_id
        if at_arguments:
            end = whole_object(cur, begin)
            close = _OBJECT_END.match(cur.text, end) if end > begin else None
            if close is not None:
                self._take_arguments(name, end, close.end())
                return DONE
        call_object = CallObjectReader(syntax, context.max_held)
        call_object.begin_named(name, call_id)
        if at_arguments or not waits:
            self._name = name
            self.commit()
            call_object.committed = True
        if at_arguments:
            context.mark(MARKUP, begin)
            call_object.begin_arguments(self)
        self._call_object = call_object
        self._phase = _CALL_OBJECT
        return AGAIN

    def _take_arguments(self, name: str, end: int, close_end: int) -> None:
        """Read the whole arguments at the cursor and the end of the object."""
        context = self.context
        cur = context.cur
        self._emitter.begin_call(name, self._id)
        self._emitter.arguments(cur.text[cur.pos : end])
        self.committed = True
        self._wrote = True
        self._whole = True
        self._valid = True
        if context.ledger.spans is not None:
            context.mark(MARKUP, cur.pos)
            context.mark(ARGUMENT_TEXT, end)
        context.mark(MARKUP, close_end)
        cur.pos = close_end

    def _read_call_object(self) -> int:
        call_object = self._call_object
        assert call_object is not None
        context = self.context
        cur = context.cur
        answer = call_object.step(cur, self)
        if answer == MORE:
            cur.goes_on = call_object.goes_on
            cur.passed = call_object.passed(self)
            return MORE
        if answer == NO_MATCH:
            call_object.flush(cur, self)
            if not self.committed:
                return NO_MATCH
        pos = cur.pos
        context.mark(MARKUP, pos)
        if answer == NO_MATCH and not call_object.whole:
            self.report("broken_json", pos, pos)
            self._phase = _RAW
            return AGAIN
        if answer == NO_MATCH:
            self.report("unclosed_object", pos, pos)
        self._whole = True
        self._valid = call_object.valid
        return DONE

    def _read_value(self) -> int:
        context = self.context
        cur = context.cur
        tagged = self._tagged
        if tagged is not None:
            answer = tagged.step(cur, self)
            if answer == MORE:
                cur.goes_on = tagged.goes_on
                cur.passed = tagged.passed
                return MORE
            self._whole = True
            self._valid = True
            return DONE
        json = self._json
        literal = self._literal
        passed: Callable[[str], str] | None = None
        if json is not None:
            answer = json.step(cur, self)
            passed = json.passed
        elif literal is not None:
            answer = literal.step(cur, self)
            passed = literal.passed
        elif self._elements is not None:
            answer = self._elements.step(cur, self)
            passed = self._elements.passed
        else:
            assert self._text is not None
            answer = self._text.step(cur, self)
        if self._elements is None or answer == NO_MATCH:
            context.mark(ARGUMENT_TEXT, cur.pos)
        if answer == MORE:
            cur.passed = passed
            return MORE
        return self._end_value(answer)

    def _end_value(self, answer: int) -> int:
        """Go on after arguments that are complete (DONE) or broken (NO_MATCH)."""
        json = self._json
        literal = self._literal
        if answer == DONE:
            self._whole = True
            # The text in a string has not been checked.
            self._valid = self._text is None and (json is None or json.valid) and (literal is None or literal.valid)
            return DONE
        pos = self.context.cur.pos
        self.report("broken_json" if json is not None else "broken_arguments", pos, pos)
        if literal is None:
            self._phase = _RAW
            return AGAIN
        self._whole = self._closes_here()
        if self._whole:
            literal.close(self)
            self._valid = literal.valid
        return DONE

    def _read_raw(self) -> int:
        """Pass on arguments that broke, up to a literal that ends a call."""
        context = self.context
        cur = context.cur
        text = cur.text
        start = cur.pos
        resync = self._syntax.call_stops
        found = resync.find(text, start)
        while found is not None and not self.may_be_marker(found.start(), found.end()):
            found = resync.find(text, found.start() + 1)
        end = found.start() if found is not None else len(text) if cur.final else resync.undecided_from(text, start)
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
        self._whole = self._closes_here()
        return DONE

    def _closes_here(self) -> bool:
        """True if the literal at the cursor, after arguments that broke, closes the call."""
        cur = self.context.cur
        if self._in_list and self._literal is not None and cur.text[cur.pos] == "]":
            return True
        resync = self._syntax.call_stops
        end = resync.at(cur.text, cur.pos, True)
        return end >= 0 and resync.tags[cur.text[cur.pos : end]] in _CLOSERS

    # -- CallHandler -------------------------------------------------------------------------------------------------

    def put(self, text: str) -> None:
        self._wrote = True
        context = self.context
        if context.held_call is None:
            context.receiver.arguments(context.calls[-1].index, text)
        else:
            self._emitter.arguments(text)

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
        return self.context.accounted()

    def drop_arguments(self, code: DiagnosticCode, start: int, values: list[tuple[int, int]]) -> None:
        self._recovered = True
        self.context.drop_arguments(code, start, values)

    def may_be_marker(self, start: int, end: int) -> bool:
        context = self.context
        scanner = context.scanner
        if not context.checks_ids or scanner is None or not scanner.active:
            return True
        return scanner.covers(context.cur.text[start:end], context.base + start)

    def has_id(self, start: int, end: int) -> bool:
        return self.context.checks_ids and self.context.has_id(start, end)

    def named(self, name: str, call_id: str, arguments: bool) -> bool:
        self._name = name
        self._id = call_id
        if self._syntax.bare:
            if not self._allowed(name):
                return False
            if not arguments:
                return True
        call_object = self._call_object
        assert call_object is not None
        self.commit()
        self._call_object = call_object
        call_object.committed = True
        return True

    def named_before(self) -> None:
        self.context.ledger.cut_out(NAME_TEXT, self._name_start, self._name_start + len(self._name))

    def late_id(self, call_id: str) -> None:
        self._emitter.set_model_id(call_id)
