"""A template with its markers renamed at random, consistently: nothing in an analysis may depend on a name.

What is renamed: the words of bracketed tags in the template's own texts, and the words of whatever an analysis of the
original took for markers (keys of a call object among them). What is not: names of the interface between engines and
templates (roles, fields of messages), which the template shares with its caller.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

from untemplate.format import Format

__all__ = ["rebracketed", "renamed"]

_TAG = re.compile(
    r"""<[^<>{}\s=%]{1,60}(?:[\s=][^<>{}%]{0,40})?> | <[^<>{}\s%]{2,60}$ | <[^<>{}%]{2,60}="?$ | \[/?[A-Z_]{3,40}\]""",
    re.VERBOSE,
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_KEPT = frozenset(
    (
        *("assistant", "user", "system", "tool", "developer", "model", "content", "role", "function", "functions"),
        *("arguments", "tools", "messages", "true", "false", "none", "null", "json", "string", "number", "boolean"),
        *("object", "array", "type", "properties"),
    )
)

_PIECE = re.compile(r"(\{#.*?#\})|(\{\{.*?\}\}|\{%.*?%\})", re.DOTALL)
_STRING = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)


def _pieces(source: str) -> Iterator[tuple[str, str]]:
    """(kind, text): ``data``, ``string`` and what is neither. Joined they are the source."""
    end = 0
    for found in _PIECE.finditer(source):
        yield "data", source[end : found.start()]
        end = found.end()
        if found.group(1):
            yield "comment", found.group()
            continue
        code, at = found.group(), 0
        for string in _STRING.finditer(code):
            yield "code", code[at : string.start()]
            yield "string", string.group()
            at = string.end()
        yield "code", code[at:]
    yield "data", source[end:]


def _words_of_markers(fmt: Format) -> set[str]:
    """Words in the markers of a Format, and keys of its call objects."""
    found: set[str] = set()

    def walk(value: Any, key: str) -> None:
        if isinstance(value, dict):
            for name, item in value.items():
                walk(item, name)
        elif isinstance(value, list):
            for item in value:
                walk(item, key)
        elif isinstance(value, str) and key not in ("name", "kind", "ids", "written", "start", "escape", "words"):
            found.update(_WORD.findall(value))

    data = json.loads(fmt.to_json())
    walk({k: v for k, v in data.items() if k not in ("special_tokens", "version")}, "")
    turn = data.get("turn", {})
    walk([turn.get("start"), turn.get("end")], "")
    return found


def rebracketed(source: str, brackets: str = "⟦⟧") -> str:
    """``source`` with other brackets around its tags: in the template's own texts, not in its code."""
    table = str.maketrans("<>", brackets)
    return "".join(t.translate(table) if kind in ("string", "data") else t for kind, t in _pieces(source))


def renamed(source: str, fmt: Format, seed: int) -> str:
    """``source`` with every marker's words replaced."""
    rng = random.Random(seed)
    tokens = list(_pieces(source))
    words = _words_of_markers(fmt)
    for kind, text in tokens:
        if kind in ("string", "data"):
            for tag in _TAG.findall(re.sub(r"\\[nrt]", " ", text.strip("'\""))):
                words.update(_WORD.findall(tag))
    # A word that is a whole string elsewhere would be renamed in one place only.
    keys = {text[1:-1] for kind, text in tokens if kind == "string" and re.fullmatch(r"['\"]\w*[a-z]\w*['\"]", text)}
    words = {w for w in words if w.lower() not in _KEPT and w not in keys}
    new: dict[str, str] = {}
    for word in sorted(words):
        while True:
            name = "".join(rng.choice("bcdfghjklmnprstvwz" if i % 2 else "aeiou") for i in range(max(4, len(word))))
            if name not in new.values() and name not in source:
                break
        new[word] = name.upper() if word.isupper() else name.title() if word.istitle() else name
    if not new:
        return source
    any_word = "|".join(map(re.escape, sorted(new, key=len, reverse=True)))
    pattern = re.compile(rf"\\.|(?<![^\W\d_])(?:{any_word})(?![^\W\d_])|(?<=\\[nrt])(?:{any_word})(?![^\W\d_])")

    def change(text: str) -> str:
        return pattern.sub(lambda found: new.get(found.group(), found.group()), text)

    result = []
    for kind, text in tokens:
        # A string of one word is a key of the interface, unless it shouts as markers do.
        word = re.fullmatch(r"['\"]\w+['\"]", text) is not None and not (text[1:-1] in new and text[1:-1].isupper())
        result.append(change(text) if kind == "data" or (kind == "string" and not word) else text)
    return "".join(result)
