"""Converts the text of one value, written between tags, to JSON as it comes.

* Text that can only become a string streams. Other text is kept until the value ends, and converted by its schema.
* A value that is a string or null is kept while it may still become null.
* At most ``max_held`` characters are kept. A longer value is a string.
"""

from __future__ import annotations

import re
from typing import Final, final

from ...jsontext.coercion import TYPES, Param, canonical_type
from ...jsontext.lexical import json_escape
from ...jsontext.well_formed import is_deep, is_json
from ..lexer import WS
from .base import CallHandler
from .xml_text import ENTITY_BEGUN, unescape_xml

_ELEMENT: Final = re.compile(rf"[{WS}]*+<(\w{{1,64}})>([^<>]*+)</\1>[{WS}]*+")
"""Matches an element that models write around a value: no value that is not a string looks like it."""

STREAM: Final = 0
"""It is a string, of which nothing is kept."""
STRING: Final = 1
"""It is a string, of which the beginning, or a part of an entity, was kept."""
_HOLD: Final = 2
_MAYBE_NULL: Final = 3
_HOLD_JSON: Final = 4
"""The markup itself declares the value to be JSON."""


@final
class ValueText:
    """Converts the values of one call, one after another."""

    def __init__(self, escape: str, max_held: int) -> None:
        """``escape``: how the text is escaped, as in the Format; only XML's entities are read."""
        self._string: int = STRING if escape == "xml" else STREAM
        """How a value is handled that is a string from its beginning."""
        self.handling: int = self._string
        """The kind of the value, and how much of it is kept: STREAM, STRING, or a number above them."""
        self._param: Param | None = None
        self._parts: list[str] = []
        self._word: str = ""
        """The beginning of a value that may still become null."""
        self._gap: bool = False
        """True if white space follows it."""
        self.max_held: int = max_held
        self._size: int = 0
        """Number of kept characters."""
        self.too_long: bool = False
        """True if the value was too long to be kept, and so became a string."""

    def begin(self, param: Param | None, is_string: str, kind: str) -> None:
        """Begin a value. Its type is the one that the markup declares, or else that of its schema ``param``.

        ``is_string``: ``true`` if the markup declares a string, ``false`` for anything else, or empty. ``kind``: the
        JSON type that it declares; any other word declares nothing. A string that the schema does not allow is read by
        the schema: models declare numbers as strings.
        """
        self._param = self._declared(param, is_string, kind) if is_string or kind else param
        self.too_long = False
        if is_string == "false":
            self.handling = _HOLD_JSON
        elif self._param is None or self._param.streams:
            self.handling = self._string
        else:
            self.handling = _MAYBE_NULL if self._param.nullable else _HOLD
        self._parts = []  # a call that became text may have ended inside a value
        if self.handling != STREAM:
            self._word = ""
            self._gap = False
            self._size = 0

    def _declared(self, param: Param | None, is_string: str, kind: str) -> Param | None:
        """Return the type that the markup declares, or else that of the schema."""
        declared = "string" if is_string == "true" else canonical_type(kind) if kind else ""
        if declared == "string" and param is not None and not param.may_be_string:
            declared = ""
        return Param((declared,)) if declared in TYPES else param

    @property
    def beginning(self) -> str:
        """What to put before the value."""
        return '"' if self.handling <= STRING else ""

    def add(self, piece: str, call: CallHandler) -> None:
        """Add text to the value."""
        if self.handling == STREAM:
            call.put(json_escape(piece))
            return
        self._parts.append(piece)
        if self.handling != STRING:
            # It is too long if it waits still at the first character that is too much, however the text was cut.
            room = self.max_held - self._size
            self._size += len(piece)
            waits = self.handling != _MAYBE_NULL or self._may_be_null(piece[: room + 1])
            self.too_long = waits and room < len(piece)
            if waits and not self.too_long:
                return
            self.handling = STRING
            call.put('"')
        text = "".join(self._parts)
        if self._string == STREAM:
            self._parts = []
            call.put(json_escape(text))
        else:
            cut = ENTITY_BEGUN.search(text)
            end = len(text) if cut is None else cut.start()
            self._parts = [text[end:]] if end < len(text) else []
            if end:
                call.put(json_escape(unescape_xml(text[:end])))

    def _may_be_null(self, piece: str) -> bool:
        """True if the value, with ``piece`` added, may still become null. Earlier text is not read again."""
        text = piece if self._word else piece.lstrip(WS)
        kept = text.rstrip(WS)
        if not kept:
            self._gap = self._gap or bool(self._word and text)
            return True
        self._word += kept
        if self._gap:
            return False
        self._gap = len(kept) < len(text)
        return any(word.startswith(self._word) for word in ("null", "None"))

    def close(self, call: CallHandler, end: int) -> None:
        """Put the end of the value, which is at ``end`` of the cursor's text."""
        call.put(self.last("", call, end))

    def last(self, piece: str, call: CallHandler, end: int) -> str:
        """Add the last text of the value, whose end is at ``end`` of the cursor's text. Return what to put."""
        if self.handling == STREAM:
            return json_escape(piece) + '"'
        if piece:
            self.add(piece, call)
        if self.too_long:
            call.report("held_too_long", end, end)
        text = "".join(self._parts)
        if self._string == STRING:
            text = unescape_xml(text)
        self._parts = []
        if self.handling == STRING:
            return json_escape(text) + '"'
        if self.handling == _HOLD_JSON:
            return _as_json(text)
        assert self._param is not None
        element = None if self._param.may_be_string or self._string == STRING else _ELEMENT.fullmatch(text)
        if element is not None:
            inner = self._param.encode(element.group(2))
            if inner[0] != '"':
                call.drop_around(element.start(2), len(text) - element.end(2))
                return inner
        return self._param.encode(text)

    def put_cut(self, rest: str, call: CallHandler) -> bool:
        """Put the beginning of a value in which the output was cut; ``rest`` is text that was not added. Return True if
        it put that."""
        text = "".join(self._parts)
        self._parts = []
        if self.handling <= STRING:
            if rest or text:
                call.put(json_escape(text + rest))
                return True
        elif text:
            stripped = text.strip(WS)
            # Only markup that declares JSON makes a quotation mark that of a string.
            as_written = stripped[:1] in "{[-0123456789tfn" or self.handling == _HOLD_JSON
            call.put(stripped if as_written else '"' + json_escape(text))
        return False


def _as_json(text: str) -> str:
    """Return text that the markup declares to be JSON: as written if it is, or else as a string."""
    return text.strip(WS) if not is_deep(text) and is_json(text) else f'"{json_escape(text)}"'
