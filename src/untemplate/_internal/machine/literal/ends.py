"""Where a string of literal arguments ends: models do not escape quotes inside it, and forget its closing marker.

* A quote closes its string only if what follows may follow a value: a comma and another item, the close of what is
  open, a literal that ends the call, or the end of the output.
* A string between markers (``<|"|>``) whose closing marker is missing ends before the key of another declared argument
  and the marker that opens its value. It also ends before the closes of all that is open, if another call or the end
  of the output follows them.
* Only the text around a quote or a close is looked at, and not far.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from .. import tags
from ..arguments.base import CallHandler
from ..lexer import SPACES, WS, Cursor
from ..signals import AGAIN, DONE, MORE, NO_MATCH
from .place import LiteralPlace

_MAX_LOOKAHEAD: Final = 2048
"""Most characters that are looked at after a quote: two keys of the longest size. Beyond them the quote closes."""
_MAX_TAIL: Final = 256
"""Most characters of a key, or of closing characters, that are looked at before a marker. No output seen needs more;
beyond them the string goes on."""
# Possessive, so that a long run of spaces is not tried from each of its characters.
_WORD: Final = r"[ \t\r\n]*+(?:[^ \t\r\n=:,()\[\]{}\"'<\d][^\t\r\n=:,()\[\]{}\"'<]{0,1023}+[ \t\r\n]*+"
_UNDECIDED: Final = re.compile(rf"{_WORD}=?)?\Z")
"""Text after a comma that is too short to decide."""
_QUOTED: Final = r"""[ \t\r\n]*(?:["'<)\]}]|\Z)"""
_KEY: Final = re.compile(rf"{_QUOTED}|{_WORD}(?:=(?:[^=]|\Z)|:))")
_ITEM: Final = re.compile(rf"{_QUOTED}|[ \t\r\n]*(?:[\[({{\d+\-.]|(?:[Tt]rue|[Ff]alse|None|null)\b)")
_CLOSING: Final = ")]}"
_GOES_ON: Final = re.compile(r"""[\w"')\]}.,]""")
"""Characters that do not directly follow whole calls."""


def follows_string(place: LiteralPlace, cur: Cursor, pos: int, takes_values: bool, call: CallHandler) -> int:
    """Return DONE if the text at ``pos`` may follow a string that ends there, NO_MATCH or MORE. ``takes_values``:
    arguments without a key may follow."""
    text = cur.text
    depth = len(place.closers)
    in_order = True
    surplus = False
    most = pos + _MAX_LOOKAHEAD
    while True:
        start = pos
        spaces = SPACES.match(text, pos)
        pos = pos if spaces is None else spaces.end()
        end = DONE if pos > most else _at_end(place, cur, start, pos, depth, call)
        if end != AGAIN:
            return end
        c = text[pos]
        if depth == 0 and not surplus and c != place.outer and c in _CLOSING:
            # One bracket too many: what ends the calls must follow.
            surplus = True
            pos += 1
            continue
        if depth < 0 or (depth == 0 and not place.outer):
            # The calls are closed, unless the list would end before its call: ``'a = d['b'] = 1'``.
            broken = surplus or (depth < 0 and not in_order)
            return DONE if not broken and (pos > start or _GOES_ON.match(c) is None) else NO_MATCH
        if c == ",":
            return DONE if depth == 0 else _item_follows(place, cur, pos + 1, depth, takes_values)
        below = _below(place, c, depth)
        if below == NO_MATCH:
            return NO_MATCH
        in_order = in_order and below == depth - 1
        depth = below
        if depth < 0 and in_order:
            return DONE
        pos += 1


def _at_end(place: LiteralPlace, cur: Cursor, start: int, pos: int, depth: int, call: CallHandler) -> int:
    """Return DONE at the end of the output, at a literal that ends the call and on a new line between arguments; MORE,
    or AGAIN at other text. Only white space is between ``start`` and ``pos``, where so much is open."""
    if pos >= len(cur.text):
        return DONE if cur.final else MORE
    stop = place.stops.at(cur.text, pos, cur.final)
    if stop == MORE:
        return MORE
    if depth == 1 and place.syntax.on_lines and "\n" in cur.text[start:pos]:
        return DONE
    return DONE if stop >= 0 and call.may_be_marker(pos, stop) else AGAIN


def _below(place: LiteralPlace, c: str, depth: int) -> int:
    """Return how much is open after ``c`` closes something: NO_MATCH if it closes nothing, and -1 after the list
    around the call."""
    for i in range(depth - 1, -1, -1):
        if place.closers[i] == c:
            return i
    return -1 if c == place.outer else NO_MATCH


def _item_follows(place: LiteralPlace, cur: Cursor, pos: int, depth: int, takes_values: bool) -> int:
    """Return DONE if an item follows the comma before ``pos``, NO_MATCH or MORE."""
    text = cur.text
    if _UNDECIDED.match(text, pos, pos + _MAX_LOOKAHEAD + 1) is not None:
        return DONE if cur.final or len(text) - pos > _MAX_LOOKAHEAD else MORE
    has_keys = place.json[depth - 1] == "}"
    if has_keys and _KEY.match(text, pos) is not None:
        return DONE
    takes_values = not has_keys or (depth == 1 and takes_values)
    return DONE if takes_values and _ITEM.match(text, pos) is not None else NO_MATCH


# -- strings between markers --------------------------------------------------------------------------------------

_NEXT_KEY: Final = re.compile(r",[ \t\r\n]*+([\w.\-]++)[ \t\r\n]*+:[ \t\r\n]*+\Z")
_AFTER_SIGN: Final = {
    ",": (
        re.compile(r"([ \t\r\n]*+)(?:([^\W\d][\w.\-]*+)[ \t\r\n]*+:|[\"'<)\]}]|\Z)"),
        re.compile(r"[ \t\r\n]*+(?:[^\W\d][\w.\-]*+[ \t\r\n]*+)?\Z"),
    ),
    "\n": (
        re.compile(r"([ \t\r\n]*+)([^\W\d][\w.\-]*+)[ \t]*+[:=]"),
        re.compile(r"[ \t\r\n]*+(?:[^\W\d][\w.\-]*+[ \t]*+)?\Z"),
    ),
}
"""What may follow the comma or the new line after a value: white space (1) and a key (2); after a comma, also a quoted
key, one between markers or a close. Then the beginning of that."""


@lru_cache(maxsize=16)
def _tail(closer: str) -> re.Pattern[str]:
    """Return what matches the beginning of whatever may end a string whose closing marker is missing, where this
    character closes what is open."""
    closes = rf"{re.escape(closer)}[)\]}} \t\r\n]*+|" if closer else ""
    return re.compile(rf"(?:{closes},[ \t\r\n]*+[\w.\-]*+[ \t\r\n]*+(?::[ \t\r\n]*+)?+)\Z")


def tail_from(place: LiteralPlace, text: str, pos: int, end: int) -> int:
    """Return where the text in front of ``end`` begins that may end a string between markers, as the next text
    decides."""
    found = _tail(place.closers[-1]).search(text, max(pos, end - _MAX_TAIL), end)
    return end if found is None else found.start()


def next_key(place: LiteralPlace, text: str, pos: int, quote: int) -> int:
    """Return where ``, key:`` begins that ends in front of the marker at ``quote``, if an argument of this name is
    declared and has not come; or NO_MATCH."""
    found = _NEXT_KEY.search(text, max(pos, quote - _MAX_TAIL), quote)
    if found is None or len(place.closers) > 1:
        return NO_MATCH
    return found.start() if place.declares(found.group(1)) else NO_MATCH


def ends_at(place: LiteralPlace, cur: Cursor, sign: int) -> int:
    """Return DONE if a value without quotes ends at the comma or new line at ``sign``, NO_MATCH or MORE. After a comma
    a declared argument that has not come must follow, or a key directly. A line with another argument must follow a
    new line, which is declared if the tool is known."""
    text = cur.text
    pos = sign + 1
    most = pos + _MAX_TAIL
    following, begun = _AFTER_SIGN[text[sign]]
    if not cur.final and len(text) < most and begun.match(text, pos) is not None:
        return MORE
    found = following.match(text, pos, most)
    if found is None:
        return NO_MATCH
    key: str | None = found[2]
    if text[sign] == "\n":
        return DONE if place.may_follow(found[2]) else NO_MATCH
    return DONE if key is None or not found[1] or place.declares(key) else NO_MATCH


def missing_close(place: LiteralPlace, cur: Cursor, limit: int, call: CallHandler) -> tuple[int, int]:
    """Return where a string between markers ends before the end of its call, and DONE, MORE or NO_MATCH for it. The
    call ends before ``limit``."""
    text = cur.text
    stops = place.stops
    found = stops.near(text, cur.pos, limit)
    while found is not None and found.start() < limit:
        stop, after = found.span()
        if call.may_be_marker(stop, after):
            if stops.tags[found.group()] == tags.TURN_END and call.has_id(stop, after):
                return stop, DONE
            chain = _chain(place, text, cur.pos, stop)
            follows = NO_MATCH if chain < 0 else _call_follows(place, cur, stop, after, call)
            if follows != NO_MATCH:
                return chain, follows
        found = stops.near(text, after, limit)
    return limit, NO_MATCH


def _chain(place: LiteralPlace, text: str, pos: int, stop: int) -> int:
    """Return where the closes of all that is open begin, if they end in front of ``stop``; or NO_MATCH."""
    begin = max(pos, stop - _MAX_TAIL)
    for closer in place.closers:
        stop = begin + len(text[begin:stop].rstrip(WS)) - 1
        if stop < begin or text[stop] != closer:
            return NO_MATCH
    return stop


def _call_follows(place: LiteralPlace, cur: Cursor, stop: int, end: int, call: CallHandler) -> int:
    """Return DONE if another call or the end of the output follows the literal from ``stop`` to ``end``, which closes
    the call, NO_MATCH or MORE."""
    text = cur.text
    frame = place.syntax.frame
    most = end + _MAX_TAIL
    while frame.stops.tags[text[stop:end]] in (tags.CALL_CLOSE, tags.TURN_END):
        spaces = SPACES.match(text, end)
        stop = end if spaces is None else spaces.end()
        if stop > most:
            return NO_MATCH
        if stop >= len(text):
            return DONE if cur.final else MORE
        opened = frame.between.at(text, stop, cur.final)
        if opened == MORE:
            return MORE
        if opened >= 0 and frame.between.tags[text[stop:opened]] == tags.CALL_OPEN:
            return DONE if call.may_be_marker(stop, opened) else NO_MATCH
        end = frame.stops.at(text, stop, cur.final)
        if end < 0 or not call.may_be_marker(stop, end):
            return MORE if end == MORE else NO_MATCH
    return NO_MATCH
