"""JSON text of any depth, judged alike from any caller.

Rules of this module:

* Python's reader is fast and recursive: how deep it goes depends on who calls. What is deeper than it goes is read here
  without recursion, so that no answer depends on the stack.
* Arguments are never refused for their depth. A value that has to be converted, or held against a schema, is: beyond
  ``MAX_DEPTH``, wherever that is done.
"""

from __future__ import annotations

import json
import math
import re
from typing import Final

MAX_DEPTH: Final = 256
"""Levels of brackets in a value that is looked into."""

_DECODER: Final = json.JSONDecoder()
_SPACES: Final = re.compile(r"[ \t\r\n]*")
_SCALAR: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null|NaN|-?Infinity")
_MARK: Final = re.compile(r'["{}\[\]]')
_STRING_STOP: Final = re.compile(r'["\\]')


def is_json(text: str, *, strict: bool = False) -> bool:
    """Whether the text is a JSON value, however deep. NaN, Infinity and numbers beyond a float pass, as they pass
    Python's reader, unless ``strict``."""
    try:
        if strict:
            json.loads(text, parse_constant=_refuse, parse_float=_finite)
        else:
            json.loads(text)
    except ValueError:
        return False
    except RecursionError:
        return _read(text, strict)
    return True


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is beyond a float")
    return value


def is_deep(text: str, limit: int = MAX_DEPTH) -> bool:
    """Whether brackets are nested deeper than ``limit``, those in strings aside."""
    if text.count("[") + text.count("{") <= limit:
        return False
    depth = 0
    found = _MARK.search(text)
    while found is not None:
        c = found.group()
        end = found.end()
        if c == '"':
            stop = _STRING_STOP.search(text, end)
            while stop is not None and stop.group() != '"':
                stop = _STRING_STOP.search(text, stop.end() + 1)
            if stop is None:
                return False
            end = stop.end()
        elif c in "[{":
            depth += 1
            if depth > limit:
                return True
        else:
            depth -= 1
        found = _MARK.search(text, end)
    return False


def _read(text: str, strict: bool) -> bool:
    """What ``json.loads`` would say if it went deep enough."""
    closers: list[str] = []
    pos = _after_spaces(text, 0)
    size = len(text)
    while True:
        # A value, or behind "[" and "{" their end.
        c = text[pos : pos + 1]
        if c == "{" or c == "[":
            closer = "}" if c == "{" else "]"
            pos = _after_spaces(text, pos + 1)
            if text[pos : pos + 1] != closer:
                closers.append(closer)
                if c == "{":
                    pos = _after_key(text, pos)
                    if pos < 0:
                        return False
                continue
            pos += 1
        elif c == '"':
            pos = _after_string(text, pos)
            if pos < 0:
                return False
        else:
            found = _SCALAR.match(text, pos)
            if found is None or (strict and not _is_strict(found.group())):
                return False
            pos = found.end()
        # A value has ended: what follows closes, or separates.
        pos = _after_spaces(text, pos)
        while closers and text[pos : pos + 1] == closers[-1]:
            closers.pop()
            pos = _after_spaces(text, pos + 1)
        if not closers:
            return pos == size
        if text[pos : pos + 1] != ",":
            return False
        pos = _after_spaces(text, pos + 1)
        if closers[-1] == "}":
            pos = _after_key(text, pos)
            if pos < 0:
                return False


def _is_strict(scalar: str) -> bool:
    return scalar in ("true", "false", "null") or (scalar[-1] in "0123456789" and math.isfinite(float(scalar)))


def _after_spaces(text: str, pos: int) -> int:
    found = _SPACES.match(text, pos)
    return pos if found is None else found.end()


def _after_key(text: str, pos: int) -> int:
    """Where the value of the key at ``pos`` begins; -1 if none does."""
    if text[pos : pos + 1] != '"':
        return -1
    pos = _after_string(text, pos)
    if pos < 0:
        return -1
    pos = _after_spaces(text, pos)
    return _after_spaces(text, pos + 1) if text[pos : pos + 1] == ":" else -1


def _after_string(text: str, pos: int) -> int:
    try:
        _, end = _DECODER.raw_decode(text, pos)  # a string: nothing that it could recurse into
    except ValueError:
        return -1
    return int(end)
