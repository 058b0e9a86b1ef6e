"""A filter that keeps streamed arguments valid JSON, for clients that fail on anything else.

* The sent text is always a prefix of a JSON object. Text is buffered while the next character decides about it: a
  comma, the last bracket, and a number, word or escape that may continue.
* Arguments that turn out not to be JSON are closed at that place. A further member of the object, ``INVALID_JSON``,
  holds their whole text, as in `arguments_object`.

Source: anthropic-python's ``accumulate_event``, which raises in the middle of a stream.
"""

from __future__ import annotations

import json
import re
from typing import Final

from untemplate._internal.jsontext.lexical import CONSTANT, ESCAPE_BEGUN, NUMBER, NUMBER_BEGUN, PAIRED_ESCAPE

from .arguments import INVALID_JSON

_PLAIN: Final = re.compile(r'[^"\\\x00-\x1f]+')
_SPACE: Final = re.compile(r"[ \t\n\r]+")
_SCALAR: Final = re.compile(r"[-+.0-9A-Za-z]+")
_RIGHT_SCALAR: Final = re.compile(f"{CONSTANT}|{NUMBER}")
_SCALAR_BEGUN: Final = re.compile(f"t(?:r(?:ue?)?)?|f(?:a(?:l(?:se?)?)?)?|n(?:u(?:ll?)?)?|{NUMBER_BEGUN}")
_MAX_BUFFER: Final = 4096

# What may follow.
_OBJECT: Final = "object"
_FIRST_KEY: Final = "first key"
_KEY: Final = "key"
_COLON: Final = "colon"
_FIRST_VALUE: Final = "first value"
_VALUE: Final = "value"
_NEXT: Final = "next"
_END: Final = "end"
_CLOSABLE: Final = (_FIRST_KEY, _FIRST_VALUE, _NEXT)


class _InvalidError(Exception):
    """The text is not JSON from here on."""


class ArgumentsGuard:
    """Filters the arguments of one call."""

    __slots__ = ("_buffer", "_closing", "_in_key", "_in_string", "_next", "_raw", "_stack")

    def __init__(self) -> None:
        self._raw: list[str] = []
        self._buffer = ""
        """Buffered text: a comma, a scalar or an escape that may continue, the last bracket."""
        self._stack: list[str] = []
        """Closing brackets of the open objects and lists."""
        self._next = _OBJECT
        """The tokens that may follow the sent text."""
        self._in_string = False
        self._in_key = False
        """True if the open string is a key."""
        self._closing: str | None = None
        """After broken JSON, the text that leads to the further member; ``None`` before."""

    def feed(self, text: str) -> str:
        """Return the text that can be sent now."""
        self._raw.append(text)
        if self._in_string and not self._buffer and _PLAIN.fullmatch(text):
            return text
        return self._scan(self._buffer + text) if self._closing is None else ""

    def finish(self) -> str:
        """Return the rest when the call has ended. Cut arguments stay a prefix."""
        if self._closing is None:
            return self._buffer
        whole = json.dumps("".join(self._raw), ensure_ascii=False)
        return f'{self._closing}"{INVALID_JSON}":{whole}}}'

    def _scan(self, text: str) -> str:
        """Scan text that was not sent yet. Return the part that can be sent, and buffer the rest."""
        state = self._next
        i = sent = 0
        try:
            while i < len(text):
                if self._in_string:
                    end = self._string(text, i)
                    if end is None:
                        break
                    i = sent = end
                    state = self._next
                elif space := _SPACE.match(text, i):
                    i = space.end()
                else:
                    token = self._token(text, i, state)
                    if token is None:
                        break
                    i, state, valid = token
                    if valid:
                        sent, self._next = i, state
        except _InvalidError:
            return self._break(text[:sent])
        self._buffer = text[sent:]
        if len(self._buffer) > _MAX_BUFFER:
            return self._break(text[:sent])
        return text[:sent]

    def _string(self, text: str, i: int) -> int | None:
        """Return the end of the next part of a string; ``None`` if it is an escape that may continue."""
        if found := _PLAIN.match(text, i) or PAIRED_ESCAPE.match(text, i):
            return found.end()
        if text[i] == '"':
            self._in_string = False
            self._next = _COLON if self._in_key else _NEXT
            return i + 1
        if ESCAPE_BEGUN.fullmatch(text, i):
            return None
        raise _InvalidError

    def _token(self, text: str, i: int, state: str) -> tuple[int, str, bool] | None:
        """Scan a token. Return its end, the state after it, and True if any valid JSON can follow it.

        Returns ``None`` for a scalar that may continue.
        """
        c = text[i]
        is_value = state in (_FIRST_VALUE, _VALUE)
        if c == '"' and (is_value or state in (_FIRST_KEY, _KEY)):
            self._in_string = True
            self._in_key = not is_value
            return i + 1, state, True
        if c == "{" and (is_value or state == _OBJECT):
            self._stack.append("}")
            return i + 1, _FIRST_KEY, True
        if c == "[" and is_value:
            self._stack.append("]")
            return i + 1, _FIRST_VALUE, True
        if c == ":" and state == _COLON:
            return i + 1, _VALUE, True
        if c == "," and state == _NEXT:
            return i + 1, _KEY if self._stack[-1] == "}" else _VALUE, False
        if self._stack and c == self._stack[-1] and state in _CLOSABLE:
            if len(self._stack) == 1:
                return i + 1, _END, False
            self._stack.pop()
            return i + 1, _NEXT, True
        if is_value:
            return _scalar(text, i)
        raise _InvalidError

    def _break(self, sent: str) -> str:
        out = ""
        if self._in_string:
            out = '":null' if self._in_key else '"'
        elif self._next == _COLON:
            out = ":null"
        elif self._next == _VALUE:
            out = "null"
        if not self._stack:
            out = "{"
        elif len(self._stack) > 1 or self._in_string or self._next != _FIRST_KEY:
            out += "".join(reversed(self._stack[1:])) + ","
        self._closing = out
        self._in_string = False
        return sent


def _scalar(text: str, i: int) -> tuple[int, str, bool] | None:
    found = _SCALAR.match(text, i)
    if found is None:
        raise _InvalidError
    at_end = found.end() == len(text)
    if not (_SCALAR_BEGUN if at_end else _RIGHT_SCALAR).fullmatch(text, i, found.end()):
        raise _InvalidError
    return None if at_end else (found.end(), _NEXT, True)
