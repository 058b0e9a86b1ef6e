"""JSON as the model writes it: passed through to the byte, or unwrapped from a string.

Rules of this module:

* A value ends with its last character. What it holds is not judged: trailing commas or bare words pass. It is broken
  only where nobody could say any more where it ends: a bracket that closes another kind, or text after a string.
* Inside a string nothing but its end is looked for, so no marker in a string closes anything.
"""

from __future__ import annotations

import json
import re
from typing import Final, final

from ..lexer import SPACES, Cursor, Literals
from ..signals import DONE, MORE, NO_MATCH
from .base import ArgumentWriter

_STRING_STOP: Final = re.compile(r'["\\]')
_RUN: Final = re.compile(r'[^\s"{}\[\],:]+')
_DECODER: Final = json.JSONDecoder()
_ESCAPES: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


@final
class JsonReader:
    """Passes one JSON value through. ``stops`` are literals that end it where a bare word could stand."""

    def __init__(self, stops: Literals | None) -> None:
        self.stops: Literals | None = stops
        self.valid: bool = False
        """Whether the value is known to be valid JSON."""
        self._closers: list[str] = []
        self._started: bool = False
        self._string: bool = False
        self._escaped: bool = False
        self._run: bool = False
        self._complete: bool = False
        """Whether a member has ended and a separator must follow."""

    def step(self, cur: Cursor, out: ArgumentWriter) -> int:
        text = cur.text
        start = cur.pos
        size = len(text)
        if start >= size and not cur.final:
            return MORE
        if not self._started:
            self._started = True
            end = self._whole(cur, text, start)
            if end > start:
                out.put(text[start:end])
                cur.pos = end
                self.valid = True
                return DONE
        answer = self._scan(cur, text, start, size)
        if cur.pos > start:
            out.put(text[start : cur.pos])
        return answer

    def passes(self, text: str, out: ArgumentWriter) -> bool:
        """Text in the middle of a string."""
        if not self._string or self._escaped or '"' in text or "\\" in text:
            return False
        out.put(text)
        return True

    def _whole(self, cur: Cursor, text: str, start: int) -> int:
        """Where an object that has arrived whole ends, found in C; ``start`` if it has not, or is not valid."""
        if text[start : start + 1] != "{" or not cur.may_close_after(start):
            return start
        try:
            _, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            cur.misreadings += 1
            return start
        return int(end)

    def _scan(self, cur: Cursor, text: str, i: int, size: int) -> int:
        if self._escaped and i < size:
            self._escaped = False
            i += 1
        while i < size:
            if self._string:
                found = _STRING_STOP.search(text, i)
                if found is None:
                    i = size
                    break
                i = found.end()
                if text[i - 1] == '"':
                    self._string = False
                    self._complete = True
                    if not self._closers:
                        cur.pos = i
                        return DONE
                elif i < size:
                    i += 1
                else:
                    self._escaped = True
                continue
            if self._run:
                found = _RUN.match(text, i)
                if found is not None:
                    i = found.end()
                    if i >= size:
                        break
                self._run = False
                self._complete = True
                if not self._closers:
                    cur.pos = i
                    return DONE
                continue
            c = text[i]
            if c == '"':
                if self._complete:
                    cur.pos = i
                    return NO_MATCH
                self._string = True
                i += 1
            elif c == "{" or c == "[":
                if self._complete:
                    cur.pos = i
                    return NO_MATCH
                self._closers.append("}" if c == "{" else "]")
                i += 1
            elif c == "}" or c == "]":
                if not self._closers or self._closers[-1] != c:
                    cur.pos = i
                    return NO_MATCH
                self._closers.pop()
                self._complete = True
                i += 1
                if not self._closers:
                    cur.pos = i
                    return DONE
            elif c == "," or c == ":":
                if not self._closers:
                    cur.pos = i
                    return NO_MATCH
                self._complete = False
                i += 1
            elif c.isspace():  # in other alphabets no JSON, but nothing in a value depends on it
                i += 1
                found = SPACES.match(text, i)
                if found is not None:
                    i = found.end()
            else:
                if self.stops is not None:
                    end = self.stops.at(text, i, cur.final)
                    if end == MORE:
                        cur.pos = i
                        return MORE
                    if end >= 0:
                        cur.pos = i
                        return NO_MATCH
                if self._complete:
                    cur.pos = i
                    return NO_MATCH
                self._run = True
        cur.pos = i
        if cur.final and self._run and not self._closers:
            return DONE
        return MORE


@final
class EncodedJsonReader:
    """Unwraps a JSON string whose value is the JSON text wanted: ``"{\\"a\\": 1}"`` → ``{"a": 1}``."""

    def __init__(self) -> None:
        self._opened: bool = False

    def step(self, cur: Cursor, out: ArgumentWriter) -> int:
        text = cur.text
        i = cur.pos
        size = len(text)
        if not self._opened and i < size:
            self._opened = True
            i += 1
        parts: list[str] = []
        answer = MORE
        while i < size:
            found = _STRING_STOP.search(text, i)
            if found is None:
                parts.append(text[i:])
                i = size
                break
            stop = found.start()
            if stop > i:
                parts.append(text[i:stop])
            if text[stop] == '"':
                i = stop + 1
                answer = DONE
                break
            end = _escape_end(text, stop)
            if end > size:
                if cur.final:
                    parts.append(text[stop:])
                    i = size
                else:
                    i = stop
                break
            parts.append(_unescape(text[stop:end]))
            i = end
        cur.pos = i
        decoded = "".join(parts)
        if decoded:
            out.put(decoded)
        return answer


def _escape_end(text: str, start: int) -> int:
    """Where the escape at ``start`` ends; past the end of the text if it is not all there. A high surrogate takes the
    low one with it."""
    if text[start + 1 : start + 2] != "u":
        return start + 2
    end = start + 6
    if text[start + 2 : start + 4].lower() in ("d8", "d9", "da", "db"):
        follows = text[end : end + 2]
        if follows == "\\u":
            return end + 6 if text[end + 2 : end + 4].lower() in ("dc", "dd", "de", "df", "d", "") else end
        if "\\u".startswith(follows) and len(text) < end + 2:
            return end + 2
    return end


def _unescape(escape: str) -> str:
    """The text of one escape; an escape that JSON does not have stands for itself."""
    simple = _ESCAPES.get(escape[1:])
    if simple is not None:
        return simple
    try:
        decoded: str = json.loads(f'"{escape}"')
    except ValueError:
        return escape
    return decoded
