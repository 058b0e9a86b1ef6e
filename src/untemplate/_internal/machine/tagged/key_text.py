"""The text of a key in its tag: where the key is in it, where it ends, and what around it is dropped."""

from __future__ import annotations

import re
from typing import Final

from ..arguments.base import CallHandler
from ..call_syntax import Pattern
from ..ledger import ARGUMENT_TEXT, DROPPED, MARKUP
from ..lexer import WS, Literals
from ..names import MAX_KEY
from .keys import Keys

_SIGNS: Final = re.compile('[<>"]')
"""Signs of markup, which no key should have."""


def place_of(key: str, raw: str, pattern: Pattern) -> int:
    """Return where a key is in all text up to its close. The type of its value may come first."""
    rest = raw.lstrip(WS)
    return raw.index(key, len(raw) - len(rest) + pattern.place(rest.rstrip(WS), "key"))


def plain_key(keys: Keys, key: str, start: int, call: CallHandler) -> str:
    """Return a key, which is at ``start``, without the rest of a damaged opener before it (``<paramter=city``),
    which is dropped here, or without markup after it (``city<x``), which `mark_key` drops. A key with signs of
    markup that is neither is reported and kept: nothing tells what the model meant."""
    plain = keys.plain_name(key)
    if plain != key:
        call.report("broken_key", start, start + len(key) - len(plain))
        call.mark(MARKUP, start)
        call.mark(DROPPED, start + len(key) - len(plain))
    elif _SIGNS.search(key) is not None:
        plain = keys.name_before_markup(key)
        if plain == key:
            call.report("broken_key", start, start + len(key))
    return plain


def mark_key(pattern: Pattern, start: int, raw: str, at: int, end: int, call: CallHandler) -> int:
    """Mark a key, which is ``raw[at:end]``, and the literals of its pattern. Anything else between the tags is
    dropped. ``start``: where ``raw`` is."""
    call.mark(MARKUP, start + at)
    key_start = call.accounted()
    call.mark(ARGUMENT_TEXT, start + end)
    rest = raw[end:].strip(WS)
    attribute = pattern.literals[pattern.variables.index("key") + 1].strip(WS)
    value = rest[len(attribute) :].removesuffix(pattern.literals[-1])
    follows = pattern.variables[-1] != "key" and rest.startswith(attribute)
    fits = follows and (value + "a").isalpha() and value.isascii()
    if not fits and not attribute.startswith(rest):
        call.report("broken_key", start + end, start + len(raw))
        call.mark(DROPPED, start + len(raw))
    return key_start


def key_breaks(tags: Literals, text: str, start: int, end: int) -> int:
    """Return where the text stops being a key: at another tag, at the end of the line, or where it gets too long;
    -1 if it is a key up to ``end``."""
    tag = tags.pattern.search(text, start, end)
    stop = end if tag is None else tag.start()
    line = text.find("\n", start + len(text[start:stop]) - len(text[start:stop].lstrip(WS)), stop)
    broken = tag is not None or stop - start > MAX_KEY
    if line >= 0 and (broken or text[line:stop].strip(WS)):
        return min(line, start + MAX_KEY)
    return min(stop, start + MAX_KEY) if broken else -1
