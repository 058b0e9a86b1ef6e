"""A call that is one JSON object: its name, id and arguments, in any order.

* Once the name is known and the arguments begin, they stream. Arguments that come before the name are buffered, up to a
  limit.
* Keys and short values are buffered whole; their white space and order do not matter.
* If the object has no key for arguments, its other members are the arguments, which is another spelling. If it has
  one, other members are dropped and reported.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Final, final

from ..arguments.base import ArgumentReader, ArgumentWriter, BufferedWriter, CallHandler
from ..ledger import ARGUMENT_TEXT, DROPPED, ID_TEXT, MARKUP, NAME_TEXT
from ..lexer import NO_LITERALS, SPACES, Cursor, GoesOn
from ..signals import AGAIN, DONE, MORE, NO_MATCH
from .other_members import OtherMembers, cut_member
from .program import ObjectSyntax
from .reader import EncodedJsonReader, JsonReader
from .undecided import OPEN_STRING, STREAMS_STRINGS, WAITS_FOR_NAME, waits

_SIMPLE: Final = re.compile(r'"([^"\\]*)"')
"""A string that has arrived whole and has no escapes."""

_OPEN: Final = 0
_KEY: Final = 1
_COLON: Final = 2
_VALUE: Final = 3
_NEXT: Final = 4
PHASES: Final = ("opening brace", "key", "colon", "value", "after a member")
"""What is read in each phase."""
_SIGNS: Final = ("{", '"', ":", "", ",")
"""The sign that goes on, by phase; empty before a value."""

# Kinds of values.
_SKIP: Final = 0
_IS_NAME: Final = 1
_IS_ARGUMENTS: Final = 2
_IS_ID: Final = 3

# Where it goes.
_TO_CALL: Final = 0
_TO_HELD: Final = 1
"""To what is kept until the name is known: it is the arguments."""
_AS_WORD: Final = 2
"""It is kept: ``null`` in the place of the arguments means none, and other text there is passed on."""
_AS_WHOLE: Final = 3
"""It is kept: a key, or a value that is not the arguments."""

# The arguments.
_NONE_YET: Final = 0
_BEGUN: Final = 1
_ENDED: Final = 2

# The object around the name and the arguments.
_FLAT: Final = 0
_INSIDE: Final = 1
"""In an object inside the call object."""
_AFTER: Final = 2

_NOTHING: Final = BufferedWriter(0)


@final
class CallObjectReader(ArgumentReader):
    """Reads ``{"name": …, "arguments": …}``. The handler's ``committed`` is true once it has accepted the name."""

    # Each call has a reader of its own, so what begins with the same value for each is set here, once.
    valid = False
    ready: bool = False
    """True if the name is known and more follows, so that this is a call even if the output ends here."""
    given_name: str = ""
    """The name of the call if the object has none; empty: then it is not a call."""
    _phase: int = _OPEN
    _nesting: int = _FLAT
    _arguments: int = _NONE_YET
    _name: str = ""
    _id: str = ""
    _key: str = ""
    _what: int = _SKIP
    _value: JsonReader | None = None
    _text: EncodedJsonReader | None = None
    _goes: int = _TO_CALL
    """Where the value goes that is being read."""
    _held: BufferedWriter = _NOTHING
    """Keeps arguments that come before the name."""
    _kept: BufferedWriter = _NOTHING
    """Keeps a word, or what is read as a whole."""

    def __init__(self, syntax: ObjectSyntax, max_held: int) -> None:
        self._syntax: ObjectSyntax = syntax
        self._max_held: int = max_held
        self._others: OtherMembers | None = None

    def begin_named(self, name: str, call_id: str) -> None:
        """Begin after the name and a comma. ``call_id``: the id before it, if there was one."""
        self._name = name
        self._id = call_id
        self.ready = True
        self._phase = _KEY

    def begin_arguments(self, call: CallHandler) -> None:
        """Begin at the object of the arguments of a committed call."""
        self._what = _IS_ARGUMENTS
        self._arguments = _BEGUN
        self._goes = _TO_CALL
        self._value = JsonReader(self._syntax.stops)
        self._phase = _VALUE

    @property
    def whole(self) -> bool:
        """True if the arguments have ended."""
        return self._arguments == _ENDED

    # -- signs ----------------------------------------------------------------------------------------------------

    def step(self, cur: Cursor, call: CallHandler) -> int:
        """Return DONE after the closing brace, NO_MATCH where the text cannot be a call object. After NO_MATCH what is
        buffered must be flushed."""
        while True:
            if self._value is not None and self._goes == _TO_CALL:
                answer = self._stream_arguments(self._value, cur, call)
            elif self._value is not None or self._text is not None:
                answer = self._read_value(cur, call)
            else:
                answer = self._read_sign(cur, call)
            if answer != AGAIN:
                return answer

    def _read_sign(self, cur: Cursor, call: CallHandler) -> int:
        """Read white space and the sign after it, a key, or the beginning of a value."""
        found = SPACES.match(cur.text, cur.pos)
        if found is not None:
            cur.pos = found.end()
        if cur.pos >= len(cur.text):
            return MORE
        c = cur.text[cur.pos]
        phase = self._phase
        if phase == _VALUE:
            if c == '"' and self._is_name_key() and waits(cur, OPEN_STRING):
                return MORE
            return AGAIN if self._begin_value(cur, c, call) else NO_MATCH
        return self._read_sign_of(phase, c, cur, call)

    def _read_sign_of(self, phase: int, c: str, cur: Cursor, call: CallHandler) -> int:
        """Read a key, or the sign ``c`` that goes on or ends the object."""
        if c == "}" and phase in (_KEY, _NEXT):
            cur.pos += 1
            return self._end(cur, call)
        if c != _SIGNS[phase]:
            return NO_MATCH
        if phase == _KEY:
            return self._read_key(cur, call)
        cur.pos += 1
        self._phase = _VALUE if phase == _COLON else _KEY
        return self._read_comma(call) if phase == _NEXT else AGAIN

    def _is_name_key(self) -> bool:
        """True if the name is the value of the key that has been read."""
        return not self._name and self._key in self._syntax.name_keys

    def _read_comma(self, call: CallHandler) -> int:
        """Begin the call after a comma, if its name is known."""
        self.ready = bool(self._name)
        # The id belongs into the call's first delta, so the call waits for it.
        begins = self.ready and not call.committed and (self._id != "" or self._syntax.id_key == "")
        return NO_MATCH if begins and not call.named(self._name, self._id, False) else AGAIN

    def _read_key(self, cur: Cursor, call: CallHandler) -> int:
        """Read the key at the cursor, or begin to."""
        start = None if self._arguments else self._syntax.arguments_start.match(cur.text, cur.pos)
        if start is not None:
            cur.pos = start.end()
            self._key = start.group(1)
            if call.committed and self._others is None:
                call.mark(MARKUP, cur.pos)
                self.begin_arguments(call)
                return AGAIN
            self._phase = _VALUE
            return AGAIN if self._begin_value(cur, "{", call) else NO_MATCH
        call.mark(MARKUP, cur.pos)
        if waits(cur, OPEN_STRING):
            return MORE
        found = _SIMPLE.match(cur.text, cur.pos)
        if found is None:
            self._capture()
        else:
            cur.pos = found.end()
            self._key = found.group(1)
            self._key_done(cur, found.end() - found.start(), call)
        return AGAIN

    def _key_done(self, cur: Cursor, size: int, call: CallHandler) -> None:
        """Go on after a key of this size, quotes included."""
        self._phase = _COLON
        if self._key in self._syntax.variants and not (self._arguments or self._syntax.name_is_key):
            call.report("variant_spelling", cur.pos - size, cur.pos)
        if self._syntax.name_is_key and not self._name:
            call.mark(MARKUP, cur.pos - size + 1)
            call.mark(NAME_TEXT, cur.pos - 1)

    def _end(self, cur: Cursor, call: CallHandler) -> int:
        """Use a closing brace. Return DONE, AGAIN after an inner object, or NO_MATCH."""
        if self._nesting == _INSIDE:
            self._nesting = _AFTER
            self._phase = _NEXT
            return AGAIN
        self._phase = _OPEN
        if not self._name and not (self.given_name and self._take_given_name(cur, call)):
            return NO_MATCH
        if not call.committed:
            call.named(self._name, self._id, self._arguments != _NONE_YET)
            if not call.committed:
                return NO_MATCH
        if not self._arguments and self._others is not None:
            self._others.put(self._syntax, cur, call)
        self._arguments = _ENDED
        call.mark(MARKUP, cur.pos)
        return DONE

    def _take_given_name(self, cur: Cursor, call: CallHandler) -> bool:
        """Take the name that the object lacks. False if this is not a call."""
        self._name = self.given_name
        call.report("variant_spelling", cur.pos, cur.pos)
        call.named_before()
        return not self._arguments or self._emit_held(call)

    # -- short paths ----------------------------------------------------------------------------------------------

    def look_ahead(self, cur: Cursor) -> None:
        cur.goes_on = self._goes_on
        if self._value is not None and self._goes == _TO_CALL:
            cur.passed = self._value.passed
            cur.stops = NO_LITERALS

    @property
    def _goes_on(self) -> GoesOn | None:
        """The test for text that decides nothing."""
        if self._value is not None or self._text is not None:
            return None
        phase = self._phase
        syntax = self._syntax
        name_may_come = not syntax.name_is_key if phase == _OPEN else self._is_name_key()
        return (WAITS_FOR_NAME if name_may_come else STREAMS_STRINGS)[_SIGNS[phase]].match

    # -- the end of the output ------------------------------------------------------------------------------------

    def finish(self, cur: Cursor, call: CallHandler) -> bool:
        """Take note that the output ends here. True if what there is makes a call."""
        if self.ready and not call.committed:
            call.named(self._name, self._id, False)
        self.flush(cur, call)
        return call.committed

    def flush(self, cur: Cursor, call: CallHandler) -> None:
        """Emit what is buffered, as the object ends here. Without a key for arguments the other members, the last one
        perhaps cut, are the arguments; otherwise a cut member is dropped."""
        if not call.committed:
            return
        raw = self._kept.take() if self._value is not None and self._goes >= _AS_WORD else ""
        member = cut_member(_SIGNS[self._phase], self._key, raw, self._syntax)
        if not self._arguments:
            (self._others or OtherMembers()).put_cut(member, cur, call)
            self._others = None
            self._arguments = _BEGUN
        elif self._phase == _VALUE and self._what == _IS_ARGUMENTS:
            if not "null".startswith(raw):
                # a word where the arguments should be
                call.mark(MARKUP, cur.pos - len(raw))
                call.put(raw)
                call.mark(ARGUMENT_TEXT, cur.pos)
        elif member:
            call.report("unused_member", cur.pos - len(raw), cur.pos)
            call.mark(DROPPED, cur.pos)

    # -- values ---------------------------------------------------------------------------------------------------

    def _capture(self) -> None:
        self._value = JsonReader(self._syntax.stops)
        self._goes = _AS_WHOLE
        self._kept = BufferedWriter(self._max_held)

    def _begin_value(self, cur: Cursor, c: str, call: CallHandler) -> bool:
        """Begin the value of a key. False if this is not a call."""
        syntax = self._syntax
        key = self._key
        if syntax.name_is_key and not self._name:
            self._name = key
            return c == "{" and key != "" and self._begin_written_arguments(cur, c, call)
        if key != "" and key == syntax.nested_key and c == "{" and self._nesting == _FLAT:
            cur.pos += 1
            self._nesting = _INSIDE
            self._phase = _KEY
            return True
        if self._is_name_key():
            return self._begin_name(cur, c, call)
        if key in syntax.arguments_keys and not self._arguments:
            return self._begin_written_arguments(cur, c, call)
        self._what = _IS_ID if key != "" and key == syntax.id_key else _SKIP
        self._capture()
        return True

    def _begin_name(self, cur: Cursor, c: str, call: CallHandler) -> bool:
        """Begin the name, or read it if it is whole. False if this is not a call."""
        if c != '"':
            return False
        found = _SIMPLE.match(cur.text, cur.pos)
        if found is None or self._arguments:
            self._what = _IS_NAME
            self._capture()
            return True
        self._name = found.group(1)
        call.mark(MARKUP, found.start() + 1)
        call.mark(NAME_TEXT, found.end() - 1)
        cur.pos = found.end()
        self._phase = _NEXT
        return bool(self._name)

    def _begin_written_arguments(self, cur: Cursor, c: str, call: CallHandler) -> bool:
        """Begin the value of the arguments' key. False if this is not a call."""
        self._what = _IS_ARGUMENTS
        self._arguments = _BEGUN
        if self._others is not None:
            self._others.drop(call)
            self._others = None
        call.mark(MARKUP, cur.pos)
        if self._name and not call.committed and not call.named(self._name, self._id, True):
            return False
        self._goes = _TO_CALL if call.committed else _TO_HELD
        if not call.committed:
            self._held = BufferedWriter(self._max_held)
        if c == '"':
            call.report("variant_spelling", cur.pos, cur.pos + 1)
            cur.pos += 1
            self._text = EncodedJsonReader()
            return True
        self._value = JsonReader(self._syntax.stops)
        if c not in "{[":
            # null means no arguments; any other word is passed on as written, so it is not lost if it is long.
            self._goes = _AS_WORD
            self._kept = BufferedWriter(sys.maxsize)
        return True

    def _stream_arguments(self, value: JsonReader, cur: Cursor, call: CallHandler) -> int:
        """Read the arguments of a call that has committed."""
        answer = value.step(cur, call)
        call.mark(ARGUMENT_TEXT, cur.pos)
        if answer != DONE:
            return answer
        self._value = None
        self._phase = _NEXT
        self._arguments = _ENDED
        self.valid = value.valid
        return AGAIN

    def _read_value(self, cur: Cursor, call: CallHandler) -> int:
        """Read a key or a value that is not simple. Return AGAIN after it."""
        goes = self._goes
        out: ArgumentWriter = call if goes == _TO_CALL else self._held if goes == _TO_HELD else self._kept
        if self._text is not None:
            answer = self._text.step(cur, out)
        else:
            assert self._value is not None
            answer = self._value.step(cur, out)
            if goes == _AS_WORD and call.committed:
                self._stream_word(call)
        if self._goes <= _TO_HELD:
            call.mark(ARGUMENT_TEXT, cur.pos)
        if answer != DONE:
            return answer
        return AGAIN if self._value_done(cur, call) else NO_MATCH

    def _stream_word(self, call: CallHandler) -> None:
        """Pass on a word in the place of the arguments as soon as it is not null."""
        word = self._kept.take()
        if len(word) <= len("null"):
            self._kept.put(word)
        else:
            self._goes = _TO_CALL
            call.put(word)

    def _value_done(self, cur: Cursor, call: CallHandler) -> bool:
        """Use the key or value that has ended. False if this is not a call."""
        value = self._value
        self._value = None
        self._text = None
        if self._goes != _AS_WHOLE:
            self._arguments_done(value, cur, call)
            return True
        size = self._kept.size
        raw = self._kept.take()
        if self._phase == _KEY:
            self._key = _string(raw)
            self._key_done(cur, len(raw), call)
            return True
        self._phase = _NEXT
        if self._what == _IS_NAME:
            call.mark(MARKUP, cur.pos - len(raw) + 1)
            call.mark(NAME_TEXT, cur.pos - 1)
            self._name = _string(raw)
            return self._name != "" and (not self._arguments or self._emit_held(call))
        if self._what == _IS_ID:
            self._id_done(raw, cur, call)
        else:
            self._member_done(raw, size, cur, call)
        return True

    def _arguments_done(self, value: JsonReader | None, cur: Cursor, call: CallHandler) -> None:
        """Use the arguments that have ended."""
        self._phase = _NEXT
        self._arguments = _ENDED
        if self._goes == _AS_WORD:
            word = self._kept.take()
            if word != "null":
                (call if call.committed else self._held).put(word)
            call.mark(MARKUP if word == "null" else ARGUMENT_TEXT, cur.pos)
        elif value is not None:
            self.valid = value.valid

    def _id_done(self, raw: str, cur: Cursor, call: CallHandler) -> None:
        """Use an id."""
        call_id = _string(raw) if raw.startswith('"') else raw
        call.mark(MARKUP, cur.pos - len(raw))
        call.mark(ID_TEXT, cur.pos)
        if call.committed:
            call.late_id(call_id)
        else:
            self._id = call_id

    def _member_done(self, raw: str, size: int, cur: Cursor, call: CallHandler) -> None:
        """Use the value of another key. ``raw`` is empty if its ``size`` was too much."""
        if self._key in self._syntax.constant_keys or (self._key == "type" and raw == '"function"'):
            # OpenAI's functions have the key "type", so it may occur in any format.
            call.mark(MARKUP, cur.pos)
            return
        others = self._others or OtherMembers()
        if self._arguments or others.size + size > self._max_held:
            # Not part of the arguments, or too long to be buffered until it is known whether arguments follow.
            call.report("unused_member", cur.pos - size, cur.pos)
            call.mark(DROPPED, cur.pos)
            return
        self._others = others
        others.take(self._key, raw, cur, call)

    def _emit_held(self, call: CallHandler) -> bool:
        """Emit the name and the arguments that came before it."""
        if not call.named(self._name, self._id, True):
            return False
        held = self._held.take()
        if held:
            call.put(held)
        return True


def _string(raw: str) -> str:
    """Return the text of a JSON string; ``raw`` itself if it is not one."""
    try:
        value = json.loads(raw, strict=False)
    except ValueError:
        return raw.strip('"')
    return value if isinstance(value, str) else raw
