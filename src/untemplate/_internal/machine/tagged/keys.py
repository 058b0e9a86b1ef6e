"""Keys of tagged arguments: which parameter a key is, whole or damaged."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, final

from ....tools import ToolSet
from .. import tags
from ..arguments.lookahead import LINE_START, MAX_LOOKAHEAD, QUOTED, after_spaces, is_nearly
from ..lexer import WS, Cursor, Literals
from ..signals import MORE, NO_MATCH
from .program import TaggedSyntax

_TAG_NAME: Final = re.compile(r"[\w.\-]{1,64}")
"""Matches a key that a close may be named after. Longer names are no tags that models write: they have one close."""


@final
class Keys:
    """The parameters of one call after another."""

    def __init__(self, syntax: TaggedSyntax, tools: ToolSet) -> None:
        self._tools: ToolSet = tools
        self._declared: dict[str, object] = {}
        """The parameters that the tool lists."""
        self._longest: int = 0
        """Characters of the longest of them."""
        self._opener: str = _first(syntax.tags, tags.KEY_OPEN)
        self._close: str = _first(syntax.key_ends, tags.KEY_CLOSE)
        self._seen: set[str] = set()

    def begin_call(self, name: str) -> None:
        """Begin the arguments of a call of this tool."""
        tool = self._tools.get(name)
        self._declared = {} if tool is None else tool.properties()
        self._longest = max(map(len, self._declared), default=0)
        self._seen = set()

    def begin(self, key: str, syntax: TaggedSyntax) -> Literals:
        """Begin the value of a parameter. Return the literals at which it may end."""
        self._seen.add(key)
        stops = syntax.value_stops
        if syntax.close_head and (not self._tools.known or key in self._declared):
            return _stops_of(stops, syntax.close_head, key)
        return stops

    def is_missing(self, key: str) -> bool:
        """True if the tool lists this parameter, and it has not come."""
        return key in self._declared and key not in self._seen

    def joins_two(self, key: str) -> bool:
        """True if a key that the tool does not list is two that it lists: all between them is missing."""
        declared = self._declared
        return key not in declared and any(key.startswith(one) and key[len(one) :] in declared for one in declared)

    def is_markup(self, key: str, text: str, start: int) -> bool:
        """True if this key at ``start`` of the text, or what it begins with, is a parameter: the tool lists it, or no
        tools are known. An empty key is none."""
        if key in self._declared or any(text.startswith(name, start) for name in self._declared):
            return True
        return key != "" and not self._tools.known

    def may_begin(self, key: str, place: int) -> bool:
        """True if this key may begin another argument of the call."""
        if key in self._seen:
            return False
        return key in self._declared and place != QUOTED if self._declared else place == LINE_START

    def damaged_key(self, syntax: TaggedSyntax, cur: Cursor, pos: int) -> int:
        """Return where the name of a declared parameter that has not come begins, after an opener that is damaged and
        begins at ``pos``; NO_MATCH or MORE."""
        if not self._declared:
            return NO_MATCH
        text = cur.text
        opener = self._opener
        most = pos + len(opener) + self._longest + 1
        found = syntax.key_ends.first(text, pos, most, cur.final)
        word = text[pos : syntax.key_ends.undecided_from(text, pos) if found is None else found.start()]
        if len(word) > most - pos or "\n" in word:
            return NO_MATCH
        if found is None:
            return NO_MATCH if cur.final else MORE
        for key in self._declared:
            if word.endswith(key) and key not in self._seen and is_nearly(word[: len(word) - len(key)], opener):
                return found.start() - len(key)
        return NO_MATCH

    def plain_name(self, raw: str) -> str:
        """Return a key without what is left of another opener before it, if a declared parameter remains."""
        for key in self._declared if raw not in self._declared else ():
            if raw.endswith(key) and key not in self._seen and is_nearly(raw[: len(raw) - len(key)], self._opener):
                return key
        return raw

    def name_before_markup(self, raw: str) -> str:
        """Return the declared parameter that a key begins with before markup, or the key as it is."""
        return next(
            (key for key in self._declared if raw not in self._declared and raw.startswith((key + "<", key + ">"))), raw
        )

    def whole_name(self, raw: str) -> str:
        """Return a key whose close is damaged, without what is left of that."""
        close = self._close
        for key in self._declared:
            if raw.startswith(key) and key not in self._seen and is_nearly(raw[len(key) :], close):
                return key
        # A piece of fewer than three characters may be the end of any word.
        places = range(max(len(raw) - len(close) - 1, 1), len(raw) - 2)
        return next((raw[:at].rstrip(WS) for at in places if is_nearly(raw[at:], close)), raw)

    def whole_key(self, syntax: TaggedSyntax, cur: Cursor, start: int) -> str | None:
        """Return the key at ``start`` if it is complete, with the value's opener; empty if it is not a key, and None
        if more text is needed."""
        text = cur.text
        found = syntax.key_ends.first(text, start, start + MAX_LOOKAHEAD, cur.final)
        end = syntax.key_ends.end_before(found, text, start, cur.final)
        raw = text[start:end]
        if "\n" in raw or "<" in raw or end - start > MAX_LOOKAHEAD:
            return ""
        if found is None:
            return "" if cur.final else None
        if syntax.has_value_open and syntax.key_ends.tags[found.group()] != tags.VALUE_OPEN:
            pos = after_spaces(text, found.end())
            opened = NO_MATCH if pos < 0 else MORE if pos >= len(text) else syntax.value_opens.at(text, pos, cur.final)
            if opened < 0:
                return "" if opened == NO_MATCH or cur.final else None
        return syntax.key.split(raw.strip(WS)).get("key", raw).strip(WS)


def _first(literals: Literals, kind: int) -> str:
    """Return the first literal of this kind, without white space around it; empty without one."""
    return next((text.strip(WS) for text, tag in literals.tags.items() if tag == kind), "")


@lru_cache(maxsize=256)
def _stops_of(stops: Literals, head: str, key: str) -> Literals:
    """Return the literals at which the value of this argument may end, with a close that is named after it."""
    if _TAG_NAME.fullmatch(key) is None:
        return stops
    named = {f"{head}{key}>": tags.OTHER_CLOSE, f"<{head[2:]}{key}": tags.OTHER_OPEN}
    return Literals({**named, **stops.tags})
