"""Calls in one JSON array (``tool_call_body_array`` of a config): one marker, any number of calls, no end marker.

The engine reports the array as the text of one call's arguments. Here it becomes one call for each element. The array's
end ends the calls: text after it is content. Text that is not an array is content, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, final

from .._internal.machine.events import EventType, SemanticEvent
from .._internal.machine.lexer import WS

__all__ = ["ArrayCalls"]

_OUTSIDE: Final = re.compile(r'["{}\[\]]')
_INSIDE: Final = re.compile(r'["\\]')


@final
class ArrayCalls:
    """The calls of one output.

    Attributes:
        raw: number of a call → its text so far, until it is taken.
    """

    def __init__(self) -> None:
        self.raw: dict[int, list[str]] = {}
        self._index = -1
        self._began = False
        self._ended = False
        self._depth = 0
        self._string = False
        self._escaped = False

    def split(self, events: Iterable[SemanticEvent]) -> list[SemanticEvent]:
        """Return the events, with those of the elements in place of the array's text."""
        found: list[SemanticEvent] = []
        for event in events:
            if event.type is EventType.ARG_VALUE_CHUNK:
                self._read(event.value, found)
            else:
                found.append(event)
        return found

    def _read(self, text: str, found: list[SemanticEvent]) -> None:
        at = 0
        while at < len(text):
            if self._ended:
                found.append(SemanticEvent(EventType.TEXT_CHUNK, text[at:], -1))
                return
            if self._depth:
                at = self._read_element(text, at, found)
                continue
            c = text[at]
            if c == "{" and self._began:
                self._index += 1
                self.raw[self._index] = []
                found.append(SemanticEvent(EventType.TOOL_CALL_START, "", self._index))
                at = self._read_element(text, at, found)
                continue
            if c == "[" and not self._began:
                self._began = True
            elif c == "]" and self._began:
                self._ended = True
            elif c not in WS and not (c == "," and self._began):
                self._ended = True
                continue
            at += 1

    def _read_element(self, text: str, at: int, found: list[SemanticEvent]) -> int:
        """Read an element up to its end or that of the text; return where that is."""
        start = at
        if self._escaped:
            self._escaped = False
            at += 1
        while at < len(text):
            match = (_INSIDE if self._string else _OUTSIDE).search(text, at)
            if match is None:
                at = len(text)
                break
            at = match.end()
            c = match.group()
            if c == '"':
                self._string = not self._string
            elif c == "\\":
                self._escaped = at >= len(text)
                at += not self._escaped
            else:
                self._depth += 1 if c in "{[" else -1
                if not self._depth:
                    break
        self.raw.setdefault(self._index, []).append(text[start:at])
        found.append(SemanticEvent(EventType.ARG_VALUE_CHUNK, text[start:at], self._index))
        if not self._depth:
            found.append(SemanticEvent(EventType.TOOL_CALL_END, "", self._index))
        return at
