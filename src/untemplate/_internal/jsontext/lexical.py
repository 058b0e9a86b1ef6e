"""The words of JSON: white space, numbers, constants, strings and their escapes.

All modules that read or write JSON text take these definitions from here. Two facts are easy to get wrong:

* White space is space, tab, CR and LF. A no-break space is text.
* Digits are ASCII. ``\\d``, ``str.isdigit`` and ``int`` also accept the digits of other alphabets, which are not JSON.
"""

from __future__ import annotations

import json
import re
from json.encoder import encode_basestring
from typing import Final

WS: Final = " \t\r\n"
SPACES: Final = re.compile(r"[ \t\r\n]*")

INTEGER: Final = r"-?(?:0|[1-9][0-9]*)"
NUMBER: Final = INTEGER + r"(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
NUMBER_BEGUN: Final = r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*|(?:\.[0-9]+)?[eE][+-]?[0-9]*)?)?"
"""The beginnings of a number, the empty one included."""
CONSTANT: Final = "true|false|null"

WORD: Final = re.compile(r'[^\s"{}\[\],:]+')
"""A number, a constant, or whatever a model writes in their place."""
STRING_STOP: Final = re.compile(r'["\\]')
"""The end of a string, or an escape in it."""
STRING_REST: Final = re.compile(r'(?:[^"\\]++|\\.)*+"', re.DOTALL)
"""A string after its opening quote, whatever its escapes."""

HEX: Final = "[0-9a-fA-F]"
ESCAPE: Final = re.compile(rf'\\(?:["\\/bfnrt]|u{HEX}{{4}})')
_HIGH: Final = rf"\\u[dD][89abAB]{HEX}{{2}}"
_LOW: Final = rf"\\u[dD][c-fC-F]{HEX}{{2}}"
PAIRED_ESCAPE: Final = re.compile(rf'\\["\\/bfnrt]|{_HIGH}{_LOW}|\\u(?![dD][89a-fA-F]){HEX}{{4}}')
"""An escape, or two of them that form one character. A surrogate without its partner does not match."""
ESCAPE_BEGUN: Final = re.compile(rf"\\(?:u{HEX}{{0,3}})?|{_HIGH}(?:\\(?:u{HEX}{{0,3}})?)?")
"""The beginning of a ``PAIRED_ESCAPE``."""

ENCODED: Final = re.compile(rf'(?:[^"\\]++|{PAIRED_ESCAPE.pattern})*+')
"""Text in a string that can be decoded at once; it ends at a quote, or at an escape that is cut or not JSON."""

_ESCAPED: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_SURROGATE: Final = re.compile(f"[{chr(0xD800)}-{chr(0xDFFF)}]")


def after_spaces(text: str, pos: int) -> int:
    """Return the place after the white space at ``pos``."""
    found = SPACES.match(text, pos)
    return pos if found is None else found.end()


def escape_end(text: str, start: int) -> int:
    """Return where the escape at ``start`` ends, which is past the end of ``text`` if the escape is cut. The second of
    two escapes that form one character is included."""
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


def unescape(escape: str) -> str:
    """Return the text of one escape; the escape itself if JSON does not have it."""
    simple = _ESCAPED.get(escape[1:])
    if simple is not None:
        return simple
    try:
        decoded: str = json.loads(f'"{escape}"')
    except ValueError:
        return escape
    return decoded


def json_escape(text: str) -> str:
    """Return ``text`` as the inside of a JSON string, without its quotes. Non-ASCII is kept; lone surrogates become
    ``\\ud800``, so that the result can be encoded as UTF-8."""
    escaped = encode_basestring(text)[1:-1]
    return escaped if escaped.isascii() else without_surrogates(escaped)


def without_surrogates(json_text: str) -> str:
    """Return JSON text in which lone surrogates are written as escapes."""
    # isascii() is a flag, not a scan: most deltas end here.
    if json_text.isascii() or _SURROGATE.search(json_text) is None:
        return json_text
    return _SURROGATE.sub(_escape_surrogate, json_text)


def _escape_surrogate(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"
