"""Arguments of hand-written configs that have no converter, read while they arrive.

* The machine's own readers read them once: JSON passes as written; from an object that holds the call's name, only its
  arguments.
* JSON that breaks is passed on as written. White space around the arguments is dropped.
"""

from __future__ import annotations

from typing import Final, final

from .._internal.machine.arguments.base import CallHandler
from .._internal.machine.json.call_object import CallObjectReader
from .._internal.machine.json.program import ObjectSyntax
from .._internal.machine.json.reader import EncodedJsonReader, JsonReader
from .._internal.machine.lexer import WS, Cursor
from .._internal.machine.signals import DONE, MORE, NO_MATCH

_MAX_HELD: Final = 1 << 20
_GRAMMAR: Final = ObjectSyntax()
_GRAMMAR.name_keys = frozenset({"name"})
_GRAMMAR.arguments_keys = frozenset({"arguments", "parameters"})

# Phases of a reader.
_START: Final = 0
_OBJECT: Final = 1
_VALUE: Final = 2
_STRING: Final = 3
_RAW: Final = 4
_AFTER: Final = 5
_NO_CALL: Final = 6


@final
class ArgumentReader(CallHandler):
    """Reads the arguments of one call.

    Args:
        named: True if the call's name comes from elsewhere. If not, the arguments are an object that holds it.
        as_json: True if arguments that look like JSON are JSON.

    Attributes:
        name: the name that was found in the arguments.
    """

    def __init__(self, *, named: bool, as_json: bool) -> None:
        self.name: str = ""
        self._stray: list[str] = []
        self._spaces: list[str] = []
        self._named: bool = named
        self._as_json: bool = as_json
        self._cur: Cursor = Cursor()
        self._phase: int = _START
        self._object: CallObjectReader | None = None
        self._value: JsonReader | EncodedJsonReader | None = None
        self._out: list[str] = []
        self._wrote: bool = False

    def feed(self, text: str) -> str:
        """Take more of the arguments; return the JSON that this completes."""
        cur = self._cur
        cur.text = cur.text[cur.pos :] + text
        cur.pos = 0
        while self._step(cur):
            pass
        return self._take()

    def finish(self, closed: bool) -> str:
        """End the arguments; return the rest. For a call that is ``closed`` by its own end, none at all are ``{}``."""
        self._cur.final = True
        out = self.feed("")
        if self._object is not None and not self.committed:
            self._object.finish(self._cur, self)
            out += self._take()
        if closed and not self._wrote and (self._named or self.name):
            return "{}"
        return out

    @property
    def stray(self) -> str:
        """Text after the arguments, without the white space around it."""
        return "".join(self._stray).strip(WS)

    def _take(self) -> str:
        out = "".join(self._out)
        self._out.clear()
        return out

    def _step(self, cur: Cursor) -> bool:
        """Read on; False if more text is needed."""
        phase = self._phase
        if phase == _START:
            cur.pos = cur.spaces()
            if cur.pos >= len(cur.text):
                return False
            self._phase = self._begin(cur.text[cur.pos])
            return True
        if phase == _OBJECT:
            assert self._object is not None
            answer = self._object.step(cur, self)
            if answer == MORE:
                return False
            if answer == NO_MATCH:
                self._object.flush(cur, self)
            if answer == DONE or self._object.whole:
                self._phase = _AFTER
            else:
                self._phase = _RAW if self.committed else _NO_CALL
            return True
        if phase in (_VALUE, _STRING):
            assert self._value is not None
            answer = self._value.step(cur, self)
            if answer == MORE:
                return False
            self._phase = _AFTER if answer == DONE else _RAW
            return True
        rest = cur.text[cur.pos :]
        cur.pos = len(cur.text)
        if phase == _RAW:
            body = rest.rstrip(WS)
            if body:
                self._out += self._spaces
                self._spaces = []
                self.put(body)
            if len(body) < len(rest):
                self._spaces.append(rest[len(body) :])
        elif phase == _AFTER and rest:
            self._stray.append(rest)
        return False

    def _begin(self, c: str) -> int:
        if not self._named:
            if c != "{":
                return _NO_CALL
            self._object = CallObjectReader(_GRAMMAR, _MAX_HELD)
            return _OBJECT
        if self._as_json and c == "{":
            self._value = JsonReader()
            return _VALUE
        if self._as_json and c == '"':
            self._cur.pos += 1
            self._value = EncodedJsonReader()
            return _STRING
        return _RAW

    def put(self, text: str) -> None:
        self._wrote = True
        self._out.append(text)

    def named(self, name: str, call_id: str, arguments: bool) -> bool:
        assert self._object is not None
        self.name = name
        self.committed = True
        return True
