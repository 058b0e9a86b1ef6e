"""Names of tools as models write them, held against those that are offered."""

from __future__ import annotations

import re
from typing import Final

from ..tools import ToolSet
from .program import Pattern

MAX_NAME: Final = 512
"""Longest name, header or id. What is longer is text."""
NAME_START: Final = re.compile(r"[^\x00-\x20<>{}()\[\]\"'`,;=]")


def offered(name: str, pattern: Pattern, tools: ToolSet) -> str:
    """Where the name does not fit its pattern (``functionsexec5`` for ``functions.exec:5``) and only without the
    pattern's letters and digits is it an offered one: that one."""
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
    """Where the name of an offered tool ends and that of one of its parameters begins, with nothing between them; -1 if
    there is no such place, or more than one."""
    ways = [i for i in range(1, len(word)) if tools.has(word[:i], word[i:])]
    return ways[0] if len(ways) == 1 else -1
