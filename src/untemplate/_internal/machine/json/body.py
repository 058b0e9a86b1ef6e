"""JSON as the arguments after a name, and an object that is the whole call."""

from __future__ import annotations

import re
from typing import Final, final

from ..arguments.base import CallBeginning
from ..arguments.lookahead import is_nearly
from ..call_state import VALID, WHOLE
from ..call_syntax import Body
from ..ledger import ARGUMENT_TEXT, ID_TEXT, MARKUP, NAME_TEXT
from ..lexer import WS, Cursor, Literals
from ..names import MAX_NAME
from ..signals import AGAIN, DONE, MORE, NO_MATCH
from .call_object import CallObjectReader
from .program import ObjectSyntax
from .reader import EncodedArguments, JsonArguments, whole_object
from .undecided import CALL_GOES_ON, OPEN_CALL, waits

_ENCODED_OBJECT: Final = re.compile(r'"(?:[ \t\r\n]|\\[nrt])*[{"]')
_ENCODED_PREFIX: Final = re.compile(r'"(?:[ \t\r\n]|\\[nrt])*\\?\Z')
_OBJECT_END: Final = re.compile(r"[ \t\r\n]*+\}")


@final
class JsonBody(Body):
    """A JSON object after the name; models also write it into a string."""

    kind = "a name, then JSON"

    def __init__(self, stops: Literals, after: Literals, opener: str) -> None:
        self.opener: str = opener
        """What is written between name and arguments, without white space around it; empty if nothing visible is."""
        self.stops: Literals = stops
        """Literals that end the arguments where a word could begin."""
        self.after: Literals = after
        """Literals that may close a call without arguments."""

    def begin(self, cur: Cursor, call: CallBeginning) -> int:
        cur.pos = cur.spaces()
        if cur.text[cur.pos : cur.pos + 1] == "{" and "{" not in self.after.first_characters:
            call.mark(MARKUP, cur.pos)
            return self._begin_value(cur, "{", call)
        if self.opener:
            answer = (self._skip_second_opener if call.opened else self._skip_damaged_opener)(cur, call)
            if answer != NO_MATCH:
                return answer
        answer = call.at_close(cur, self.after)
        if answer == DONE:
            return call.end_arguments(WHOLE)
        return self._begin_value(cur, cur.text[cur.pos], call) if answer == AGAIN else answer

    def _skip_second_opener(self, cur: Cursor, call: CallBeginning) -> int:
        """Drop an opener of the arguments that comes twice. Return AGAIN, NO_MATCH or MORE."""
        end = cur.pos + len(self.opener)
        if not cur.text.startswith(self.opener, cur.pos):
            undecided = not cur.final and self.opener.startswith(cur.text[cur.pos :])
            return MORE if undecided else NO_MATCH
        if not call.may_be_marker(cur.pos, end):
            return NO_MATCH
        call.commit_once()
        call.mark(MARKUP, cur.pos)
        call.drop_to("doubled_open", cur, end)
        return AGAIN

    def _skip_damaged_opener(self, cur: Cursor, call: CallBeginning) -> int:
        """Begin the arguments after an opener that is damaged. Return AGAIN, NO_MATCH or MORE."""
        most = len(self.opener) + 2
        brace = cur.text.find("{", cur.pos, cur.pos + most)
        if brace < 0:
            return MORE if not cur.final and len(cur.text) - cur.pos < most else NO_MATCH
        if not is_nearly(cur.text[cur.pos : brace].strip(WS), self.opener):
            return NO_MATCH
        call.commit_once()
        call.mark(MARKUP, cur.pos)
        call.drop_to("missing_open", cur, brace)
        return self._begin_value(cur, "{", call)

    def _begin_value(self, cur: Cursor, c: str, call: CallBeginning) -> int:
        """Begin the arguments at their first character."""
        if c == "{":
            if not call.committed:
                # ``{\"a\": 1}`` is a copy of a call in a string.
                following = cur.text[cur.pos + 1 : cur.pos + 2]
                if following == "\\":
                    return NO_MATCH
                if not following and not cur.final:
                    return MORE
            call.commit_once()
            end = whole_object(cur, cur.pos)
            if end > cur.pos:
                call.put(cur.text[cur.pos : end])
                call.mark(ARGUMENT_TEXT, end)
                cur.pos = end
                return call.end_arguments(VALID)
            return call.read_with(JsonArguments(self.stops))
        if c == '"':
            if not call.committed and _ENCODED_OBJECT.match(cur.text, cur.pos, cur.pos + MAX_NAME) is None:
                return call.more_if(_ENCODED_PREFIX, cur.pos)
            call.commit_once()
            call.report("variant_spelling", cur.pos, cur.pos + 1)
            cur.pos += 1
            return call.read_with(EncodedArguments())
        if call.committed or call.raw:
            call.commit_once()
            return call.read_raw()
        return NO_MATCH


@final
class ObjectBody(Body):
    """A JSON object with the name and the arguments."""

    kind = "a JSON object with name and arguments"

    def __init__(self, syntax: ObjectSyntax) -> None:
        self.syntax: ObjectSyntax = syntax

    def begin_object(self, cur: Cursor, call: CallBeginning) -> int:
        """Read an object at once up to the arguments, if it is written as the renderer writes it, otherwise member by
        member."""
        syntax = self.syntax
        start = syntax.start.match(cur.text, cur.pos)
        if start is not None:
            return self._read_name(cur, start, call)
        if not syntax.name_is_key and waits(cur, OPEN_CALL):
            cur.goes_on = CALL_GOES_ON
            return MORE
        call_object = CallObjectReader(syntax, call.max_held)
        call_object.given_name = call.name
        return call.read_object(call_object)

    def _read_name(self, cur: Cursor, start: re.Match[str], call: CallBeginning) -> int:
        """Read the beginning of an object with its name, and the rest at once if all of it has come."""
        syntax = self.syntax
        call_id = start.group(1) or ""
        name = start.group(2)
        begin = cur.pos = start.end()
        bare = call.bare
        if bare and not call.accepts(name):
            return NO_MATCH
        at_arguments = start.lastindex == 3
        # Where a name alone does not make a call, or an id may follow it, the call begins with the arguments.
        waits = bare or (syntax.id_key != "" and not call_id)
        call_start = begin if waits and at_arguments else start.end(2)
        if call.records:
            if start.group(1) is not None and syntax.id_key:
                call.mark(MARKUP, start.start(1) - 1)
                call.mark(ID_TEXT, start.end(1) + 1)
            call.mark(MARKUP, start.start(2))
            call.mark(NAME_TEXT, start.end(2))
        call.mark(MARKUP, call_start)
        call.identify(call_id)
        if at_arguments:
            end = whole_object(cur, begin)
            close = _OBJECT_END.match(cur.text, end) if end > begin else None
            if close is not None:
                self._take_arguments(cur, name, end, close.end(), call)
                return DONE
        call_object = CallObjectReader(syntax, call.max_held)
        call_object.begin_named(name, call_id)
        if at_arguments or not waits:
            call.name = name
            call.commit_once()
        if at_arguments:
            call.mark(MARKUP, begin)
            call_object.begin_arguments(call)
        return call.read_object(call_object)

    def _take_arguments(self, cur: Cursor, name: str, end: int, close_end: int, call: CallBeginning) -> None:
        """Read the whole arguments at the cursor and the end of the object."""
        call.name = name
        call.commit_once()
        call.put(cur.text[cur.pos : end])
        if call.records:
            call.mark(MARKUP, cur.pos)
            call.mark(ARGUMENT_TEXT, end)
        call.mark(MARKUP, close_end)
        cur.pos = close_end
        call.end_arguments(VALID)
