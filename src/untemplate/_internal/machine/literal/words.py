"""Words and escapes of Python-style literals: converted to JSON, and to text."""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import Final

from ...jsontext.lexical import NUMBER, NUMBER_BEGUN, json_escape

_NUMBER: Final = re.compile(NUMBER)
_NUMBER_BEGUN: Final = re.compile(NUMBER_BEGUN)
_DIGITS: Final = re.compile(r"[-+]?[0-9][0-9.]*")
"""A number as people write it, with leading zeros perhaps."""
_LEADING_ZEROS: Final = re.compile(r"([-+]?)0+([1-9][0-9]*)")
_TEXT: Final = re.compile(r"\w[ \t\r\n]+\w")
_WORDS: Final = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
_SIMPLE: Final = {
    "n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "v": "\v",
    "0": "\0", "\n": "",
}  # fmt: skip
_HEX: Final = {"x": 2, "u": 4, "U": 8}
_DIGITS_16: Final = "0123456789abcdefABCDEF"
_SIGNS: Final = ("\\", "'", '"', "")
"""Signs after a backslash, and the end of the text, that make it an escape in every string."""
PATH: Final = re.compile(r"[A-Za-z]:\\[^\\]|\\\\[\w.$-]{1,64}+\\[^\\]")
"""Matches the beginning of a path of Windows whose backslashes are not escaped: a drive, or the name of a server, and
one backslash."""
PATH_BEGUN: Final = re.compile(r"(?:[A-Za-z](?::\\?)?|\\(?:\\(?:[\w.$-]{1,64}+\\?)?)?)?\Z")


def cut_word(word: str, as_string: bool) -> str:
    """Return the beginning of the JSON for a word in which the output was cut."""
    for constant, json_word in _WORDS.items():
        if constant.startswith(word):
            return json_word[: len(word)]
    number = not as_string and _NUMBER_BEGUN.fullmatch(word) is not None
    return word if number else f'"{json_escape(word)}'


def is_literal(word: str, as_string: bool) -> bool:
    """True if a word is a constant or, unless it is to be a string, a number."""
    return word in _WORDS or (not as_string and _number_json(word) != "")


def word_json(word: str, as_string: bool, as_written: bool) -> tuple[str, bool]:
    """Return the JSON of a word, and True if the word is a literal. With ``as_string``, numbers are strings.

    A word that is not a literal is a string; or, ``as_written``, only if it is several words of text: names and
    expressions stay as they are, and the arguments are not valid JSON."""
    constant = _WORDS.get(word)
    if constant is not None:
        return constant, True
    if as_string:
        is_number = _DIGITS.fullmatch(word) is not None
        written = as_written and not is_number
    else:
        number = _number_json(word)
        if number:
            return number, True
        zeros = _LEADING_ZEROS.fullmatch(word)
        if zeros is not None:
            return zeros.group(1).lstrip("+") + zeros.group(2), False
        is_number = False
        written = as_written
    if written and _TEXT.search(word) is None:
        return word, False
    return f'"{json_escape(word)}"', is_number


_MOST_DIGITS: Final = 64
"""Most characters of a number that is not JSON as it is written. Longer ones are strings: no type is so long."""


def _number_json(word: str) -> str:
    """Return the JSON of a number; empty if the word is not one."""
    if _NUMBER.fullmatch(word):
        return word
    # float() and int() take the digits of every alphabet; Python's literals and JSON do not.
    if word[:1] not in "0123456789+-." or len(word) > _MOST_DIGITS or not word.isascii():
        return ""
    try:
        number = float(word) if "." in word or ("e" in word.lower() and "x" not in word) else int(word, 0)
    except ValueError:
        return ""
    return json.dumps(number) if isfinite(number) else ""


def escape_end(text: str, start: int) -> int:
    """Return where the escape at ``start`` ends, which is past the end of ``text`` if the escape is cut. An escape with
    too few digits ends at the first character that is not one."""
    end = start + 2
    whole = end + _HEX.get(text[start + 1 : end], 0)
    while end < whole and text[end : end + 1] in _DIGITS_16:
        end += 1
        if end > len(text):
            return whole
    return end


def unescape(escape: str) -> str:
    """Return the text of one escape; the escape itself if Python does not have it."""
    kind = escape[1:2]
    simple = _SIMPLE.get(kind)
    if simple is not None:
        return simple
    if len(escape) == 2 + _HEX.get(kind, len(escape)):
        code = int(escape[2:], 16)
        return chr(code) if code <= 0x10FFFF else escape
    return escape


def is_text(text: str, slash: int) -> bool:
    """True if the backslash at ``slash`` is text after a line break: no quote and no other backslash follows it."""
    return text[slash + 1 : slash + 2] not in _SIGNS


def has_meaning(letter: str) -> bool:
    """True if a backslash before this character is an escape in Python."""
    return letter in _SIMPLE or letter in _HEX


def unescaped(text: str, one_line: bool = False) -> str:
    """Return ``text`` with its escapes replaced. ``one_line``: its syntax allows no line break."""
    parts: list[str] = []
    pos = 0
    after_break = False
    while True:
        slash = text.find("\\", pos)
        if slash < 0:
            parts.append(text[pos:])
            return "".join(parts)
        parts.append(text[pos:slash])
        after_break = one_line and (after_break or "\n" in text[pos:slash])
        if after_break and is_text(text, slash):
            parts.append("\\")
            pos = slash + 1
        else:
            pos = escape_end(text, slash)
            parts.append(unescape(text[slash:pos]))


def closing_quote(text: str, start: int, quote: str, escapes: bool, end: int) -> int:
    """Return the place of the quote that ends a string; -1 if it is not in ``text[start:end]``."""
    pos = start
    while True:
        found = text.find(quote, pos, end)
        if found < 0:
            return -1
        slash = text.find("\\", pos, found) if escapes else -1
        if slash < 0:
            return found
        pos = escape_end(text, slash)
