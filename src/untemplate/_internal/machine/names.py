"""Names of tools as models write them, compared with the tools that are offered."""

from __future__ import annotations

import re
from typing import Final

from ...tools import ToolSet
from .call_syntax import Pattern

MAX_NAME: Final = 512
"""Longest name before its arguments, header or id, in characters: eight times the 64 of a name in OpenAI's API.
Anything longer is text. A name in a JSON object has no limit."""
MAX_KEY: Final = 1024
"""Most characters of an argument's name. No output seen has a longer one; each reader has its own use for the rest."""
_WORD: Final = re.compile(r"\w")


def may_be_name(text: str) -> bool:
    """True if the text holds a letter, digit or underscore, as every name of a tool does."""
    return _WORD.search(text) is not None


def offered(name: str, pattern: Pattern, tools: ToolSet) -> str:
    """Return the name of an offered tool if the name only misses its pattern's punctuation (``functionsexec5`` for
    ``functions.exec:5``). Return any other name unchanged."""
    if pattern.plain or not tools.known or name in tools.names:
        return name
    prefix = pattern.literals[0].rstrip(".:/_-")
    bare = name[len(prefix) :] if prefix and name.startswith(prefix) else name
    bare = bare.lstrip(".:/_-")
    for candidate in (bare, re.sub(r"[.:_-]?[0-9]+$", "", bare)):
        if candidate in tools.names:
            return candidate
    return name


def merged(word: str, tools: ToolSet) -> int:
    """Return where a tool's name ends and the name of one of its parameters begins, if ``word`` is the two without
    anything between them; -1 if there is no such place, or more than one."""
    places = [i for i in range(1, len(word)) if tools.has(word[:i], word[i:])]
    return places[0] if len(places) == 1 else -1
