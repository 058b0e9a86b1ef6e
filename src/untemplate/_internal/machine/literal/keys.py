"""The keys of literal arguments: the text before an assignment, perhaps several words, or in quotes."""

from __future__ import annotations

import re
from typing import Final

from ..lexer import SPACES, WS, Cursor
from ..names import MAX_KEY
from ..signals import MORE, NO_MATCH
from .place import LiteralPlace
from .words import closing_quote, unescaped

_TEXT: Final = re.compile(r"[^ \t\r\n=:,()\[\]{}\"'<]+")
_FURTHER_WORDS: Final = re.compile(r"[ \t][\w.\- \t]*")


FoundKey = tuple[str, int, int]
"""The key at the cursor; where its assignment ends (NO_MATCH if it has none, or MORE); where a string that is not a key
ends (NO_MATCH if it is not closed, or not a string)."""
_NO_KEY: Final[FoundKey] = ("", NO_MATCH, NO_MATCH)
_UNDECIDED: Final[FoundKey] = ("", MORE, NO_MATCH)


def plain_key(place: LiteralPlace, cur: Cursor, takes_values: bool) -> FoundKey:
    """Look for a key without quotes at the cursor, and its assignment."""
    text = cur.text
    start = cur.pos
    found = _TEXT.match(text, start)
    if found is None or found.end() - start > MAX_KEY:
        return _NO_KEY
    end = found.end()
    further = _FURTHER_WORDS.match(text, end)
    last = end if further is None else further.end()
    key = text[start:last].strip(WS)
    if len(key) == end - start:
        after = _assigned(cur, end)
    elif last - start > MAX_KEY:
        after = NO_MATCH
    else:
        after = _assigned(cur, last)
        if after >= 0 and text[after - 1] != (place.syntax.assign if len(place.closers) == 1 else ":"):
            after = NO_MATCH
    if after == NO_MATCH and cur.final and not text[last:].strip(WS) and (key.isidentifier() or not takes_values):
        return _UNDECIDED  # put_cut() puts what there is of it
    return key, after, NO_MATCH


def quoted_key(cur: Cursor, end: int, takes_values: bool) -> FoundKey:
    """Look for a key in quotes at the cursor, and its assignment; its opening quote ends at ``end``."""
    text = cur.text
    quote = text[cur.pos : end]
    escapes = quote[0] in "'\""
    if len(quote) == 1 and not cur.final and len(text) - end < 2 and (quote * 2).startswith(text[end:]):
        return _UNDECIDED  # perhaps three quotes, which a key cannot have
    close = _closing(cur, end, quote, escapes)
    if close == MORE:
        return _UNDECIDED
    after = NO_MATCH if close < 0 else _assigned(cur, close + len(quote))
    if after >= 0:
        return (unescaped(text[end:close]) if escapes else text[end:close]), after, NO_MATCH
    end = NO_MATCH if close < 0 else close + len(quote)
    if after == NO_MATCH and not takes_values and cur.final and (end < 0 or not text[end:].strip(WS)):
        return _UNDECIDED
    return "", after, end


def _closing(cur: Cursor, end: int, quote: str, escapes: bool) -> int:
    """Return where the quote is that closes the string which begins at ``end``; NO_MATCH or MORE."""
    text = cur.text
    if len(quote) == 1 and text[end : end + 2] == quote * 2:
        return NO_MATCH
    limit = end + MAX_KEY
    close = closing_quote(text, end, quote, escapes, limit)
    if close < 0:
        return MORE if len(text) < limit and not cur.final else NO_MATCH
    return close


def cut_key(place: LiteralPlace, key: str) -> tuple[str, str]:
    """Return the text of a key in which the output was cut, and the quote that closes its JSON if its own is there."""
    end = place.syntax.quotes.at(key, 0, True)
    if end < 0:
        return key, ""
    escapes = key[0] in "'\""
    close = closing_quote(key, end, key[:end], escapes, len(key))
    text = key[end : close if close >= 0 else len(key)]
    return (unescaped(text) if escapes else text), ('"' if close >= 0 else "")


def _assigned(cur: Cursor, pos: int) -> int:
    """Return where the assignment at ``pos`` ends, white space before it skipped; NO_MATCH or MORE."""
    text = cur.text
    found = SPACES.match(text, pos)
    at = pos if found is None else found.end()
    if at - cur.pos > 2 * MAX_KEY:
        return NO_MATCH
    if at >= len(text):
        return NO_MATCH if cur.final else MORE
    if text[at] == ":":
        return at + 1
    if text[at] != "=" or text[at + 1 : at + 2] == "=":
        return NO_MATCH
    return at + 1 if at + 1 < len(text) or cur.final else MORE
