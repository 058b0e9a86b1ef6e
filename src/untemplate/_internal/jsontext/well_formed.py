"""Checks of JSON text whose result does not depend on how deep the text, or the caller's stack, is.

Python's decoder is fast but recursive, so its depth is limited by the stack. Text that is too deep for it is scanned
here without recursion. Arguments are never refused for their depth, but a value that must be converted, or checked
with a schema, is refused beyond ``MAX_DEPTH``.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from typing import Final

import msgspec

from .lexical import CONSTANT, NUMBER, STRING_REST, after_spaces
from .scanner import AT_STRING, AT_WORD, ENDED, JsonScanner

MAX_DEPTH: Final = 256
"""Levels of brackets in a value that is converted or checked."""

_BRACKET_OR_QUOTE: Final = re.compile(r'["{}\[\]]')
_WORD: Final = re.compile(f"{NUMBER}|{CONSTANT}")


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is beyond a float")
    return value


def _is_finite(word: str) -> bool:
    return word[-1] not in "0123456789" or math.isfinite(float(word))


STANDARD: Final = json.JSONDecoder(parse_constant=_refuse)
"""Python's decoder without its own constants: NaN and Infinity are not JSON."""
LOOSE: Final = json.JSONDecoder(strict=False)
"""Python's decoder, raw control characters in strings allowed."""
_FINITE: Final = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


def is_json(text: str, *, finite: bool = False) -> bool:
    """True if the text is a JSON value. With ``finite``, numbers beyond a float do not pass."""
    if text[:1] == "{":  # most are arguments, for which the stricter decoder, which is faster, will do
        try:
            msgspec.json.decode(text)
            return True
        except (msgspec.DecodeError, ValueError, RecursionError):
            pass
    try:
        (_FINITE if finite else STANDARD).decode(text)
    except ValueError:
        return False
    except RecursionError:
        return _is_deep_json(text, finite)
    return True


def reason_of_json(text: str) -> str:
    """Return why a text is not a JSON object, with what is at that place; empty if that is not known."""
    try:
        value = STANDARD.decode(text)
    except json.JSONDecodeError as error:
        place = text[error.pos : error.pos + 24]
        return f"{error.msg.removesuffix(' at')} at {repr(place) if place else 'the end'}"
    except (ValueError, RecursionError):
        return ""
    return "" if isinstance(value, dict) else "not an object"


def repeated_key(text: str, *, is_valid: bool) -> str | None:
    """Return a key that one object of a text has twice, empty without one; ``None`` if it is not JSON.

    A decoder drops the first of two members, and their colon with it. A text that has as many colons as its value is
    not read again.

    Args:
        text: what begins as an object.
        is_valid: it is known to be JSON.
    """
    colons = text.count(":")
    if is_valid and colons < 2:
        return ""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return _repeated_key(text) if is_valid or is_json(text) else None
    left = colons - len(value)
    return _repeated_key(text) if left and left != _colons_within(text, value) else ""


def _colons_within(text: str, value: dict[str, object]) -> int:
    """Return the number of colons in the strings of an object, at least: an escape in its text may be a colon."""
    if "\\u" in text:
        return 0
    return sum(member.count(":") for member in value.values() if isinstance(member, str))


def _repeated_key(text: str) -> str:
    """Return a key that one object of this JSON text has twice, ``""`` for the empty one; empty if there is none."""
    found: list[str] = []

    def read(members: list[tuple[str, object]]) -> None:
        keys: set[str] = set()
        for key, _ in members:
            if key in keys:
                found.append(key or '""')
            keys.add(key)

    with contextlib.suppress(ValueError, RecursionError):  # deeper than the decoder goes
        json.loads(text, object_pairs_hook=read)
    return found[0] if found else ""


def is_deep(text: str, limit: int = MAX_DEPTH) -> bool:
    """True if brackets are nested deeper than ``limit``; those in strings do not count."""
    if text.count("[") + text.count("{") <= limit:
        return False
    depth = 0
    found = _BRACKET_OR_QUOTE.search(text)
    while found is not None:
        c = found.group()
        end = found.end()
        if c == '"':
            rest = STRING_REST.match(text, end)
            if rest is None:
                return False
            end = rest.end()
        elif c in "[{":
            depth += 1
            if depth > limit:
                return True
        else:
            depth -= 1
        found = _BRACKET_OR_QUOTE.search(text, end)
    return False


def is_deep_value(value: object, text: str, limit: int = MAX_DEPTH) -> bool:
    """True if the value of this text is nested deeper than ``limit``. Long strings are not read again."""
    if text.count("[") + text.count("{") <= limit:
        return False
    level = [value]
    for _ in range(limit):
        inner: list[object] = []
        for part in level:
            if isinstance(part, dict):
                inner += part.values()
            elif isinstance(part, list):
                inner += part
        level = [part for part in inner if isinstance(part, (dict, list))]
        if not level:
            return False
    return True


def _is_deep_json(text: str, finite: bool) -> bool:
    """Return what ``is_json`` would if Python's decoder went deep enough."""
    scanner = JsonScanner(strict=True)
    pos = scanner.scan(text, 0)
    while scanner.state == AT_STRING or scanner.state == AT_WORD:
        if scanner.state == AT_STRING:
            try:
                _, pos = STANDARD.raw_decode(text, pos)
            except ValueError:
                return False
        else:
            found = _WORD.match(text, pos)
            if found is None or (
                finite and "0" <= found.group()[-1] <= "9" and not math.isfinite(float(found.group()))
            ):
                return False
            pos = found.end()
        scanner.pass_token()
        pos = scanner.scan(text, pos)
    return scanner.state == ENDED and after_spaces(text, pos) == len(text)
