"""Markup of a call that stayed in one of its values: a parameter without its opener, or a damaged marker.

The reader of a value reports whole markers. What is damaged is looked for where the status of a call is decided: the
arguments are kept there anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, final

from ...format import Format, TaggedArguments
from ...tools import ToolSet
from ..machine.arguments.lookahead import is_nearly
from .call_like import CallLike
from .damaged_markers import LONGEST, SHORTEST, DamagedMarkers
from .recognition import every_marker

__all__ = ["MarkupInValues"]

_NO_TAG: Final = re.compile(r"(?:\A|[\s>]|(?<=[:\s\[,])\")[^\s<>=\"'/`]*+\Z")
"""Matches text after which no tag, attribute or path is open."""
_OTHER_TAG: Final = re.compile(r"</?[\w.\-]+>")
"""Matches a whole tag that may be one of another language."""


@final
class MarkupInValues:
    """Finds such markup in the arguments of the calls of one format."""

    def __init__(self, fmt: Format) -> None:
        bodies = (getattr(way.body, "arguments", None) for way in fmt.tools)
        ways = [arguments for arguments in bodies if isinstance(arguments, TaggedArguments)]
        after = [_after_key(way) for way in ways]
        self._openers = [opener for way in ways if len(opener := way.key_open.text.strip()) >= SHORTEST]
        self._after = "|".join(text for pair in after for text in pair if text)
        attributes = "|".join(whole for whole, first in after if first)
        self._attributes = re.compile(rf"(?<=\w)(?:{attributes})") if attributes else None
        self._damaged = DamagedMarkers(CallLike(fmt).marks, every_marker(fmt)) if ways else None

    def find(self, name: str, arguments: str, tools: ToolSet) -> str:
        """Return the first markup in the values of a call of this name; empty without any."""
        if self._damaged is None:
            return ""
        text = arguments.replace('\\"', '"')
        tool = tools.get(name)
        if tool is None:
            attributes = None if self._attributes is None else self._attributes.search(text)
            if attributes is not None:
                return attributes.group()
        text = text.replace("\\n", "\n")
        found = "" if tool is None else self._key_in(text, tool.properties(), arguments)
        may_hold_tags = "<" in text or ">" in text or "[" in text
        return self._damaged_in(text, self._damaged) if may_hold_tags and not found else found

    def _key_in(self, text: str, declared: Iterable[str], arguments: str) -> str:
        """Return the first of the declared parameters that is not a key of these arguments and is in a value: all but
        its opener is there, or that is damaged."""
        missing = tuple(key for key in declared if f'"{key}":' not in arguments)
        for found in _keys(missing, self._after).finditer(text) if missing else ():
            if self._may_begin(text[max(found.start() - LONGEST, 0) : found.start()]):
                return found.group(1)
        return ""

    def _may_begin(self, before: str) -> bool:
        """True if a key may begin after this text: no other tag, attribute or word is open, or a damaged opener."""
        line = before.rpartition("\n")[2]
        if line.rfind("<") <= line.rfind(">") and _NO_TAG.search(before) is not None:
            return True
        return any(is_nearly(before[-len(opener) - more :], opener) for opener in self._openers for more in (-1, 0, 1))

    @staticmethod
    def _damaged_in(text: str, markers: DamagedMarkers) -> str:
        """Return a damaged marker of calls in a value. It is no whole tag of another name."""
        found = markers.find(text)
        return "" if found is None or _OTHER_TAG.fullmatch(found[1]) is not None else found[1]


@lru_cache(maxsize=256)
def _keys(keys: tuple[str, ...], after: str) -> re.Pattern[str]:
    """Return the pattern of these keys before what comes between a key and its value."""
    return re.compile(f"({'|'.join(map(re.escape, sorted(keys, key=len, reverse=True)))})(?:{after})")


def _after_key(arguments: TaggedArguments) -> tuple[str, str]:
    """Return an expression for what comes between a key and its value, and the first attribute there."""
    literals = re.split(r"\{\w+\}", arguments.key.partition("{key}")[2])
    whole = '[^"<>\\n]{0,64}'.join(map(re.escape, literals)) + re.escape(arguments.key_close.text.strip())
    return whole, re.escape(literals[0]) if len(literals) > 1 else ""
