"""Markup of a call that stayed in one of its values: a parameter without its opener, or a damaged marker.

The reader of a value reports whole markers. What is damaged is looked for where the status of a call is decided: the
arguments are kept there anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, final

from ...format import ElementArguments, Format, TaggedArguments
from ...tools import ToolSet
from ..machine.arguments.lookahead import is_nearly
from ..machine.lexer import WS
from .damaged_markers import LONGEST, SHORTEST, DamagedMarkers
from .recognition import MARKUP, texts_of
from .unread_markers import UnreadMarkers

__all__ = ["MarkupInValues"]

_NO_TAG: Final = re.compile(r"(?:\A|[\s>]|(?<=[:\s\[,])\")[^\s<>=\"'/`]*+\Z")
"""Matches text after which no tag, attribute or path is open."""
_NEVER: Final = "(?!)"
_NO_WORD: Final = frozenset(("", ">", "=", '"', *WS))
"""Signs before a key that is not a part of a word; empty at the beginning of a value."""
_OTHER_TAG: Final = re.compile(r"</?[\w.\-]+>")
"""Matches a whole tag that may be one of another language."""


@final
class _Keys:
    """Finds the parameters of tagged arguments in a value: all but the opener is there, or that is damaged."""

    def __init__(self, ways: Iterable[TaggedArguments]) -> None:
        ways = list(ways)
        after = [_after_key(way) for way in ways]
        openers = [way.key_open.text.strip() for way in ways]
        self._openers = [opener for opener in openers if len(opener) >= SHORTEST]
        before_values = [(way.value_open or way.key_close).text for way in ways]
        self._spaces = tuple({text[len(text.rstrip(WS)) :] for text in before_values})
        """White space before a value, as the renderer writes it."""
        self._after = "|".join(text for pair in after for text in pair if text)
        attributes = [whole for whole, first in after if first]
        closes = [way.key_close.text for way in ways]
        marked = "|".join([*attributes, *(re.escape(text.strip()) for text in closes if MARKUP.match(text.strip()))])
        lines = "|".join(re.escape(text) for text in closes if text.endswith("\n"))
        self._any = re.compile(rf"(?<=\w)(?:{marked or _NEVER})|^\w{{1,64}}+(?:{lines or _NEVER})", re.MULTILINE)
        written = "|".join(
            rf"{re.escape(way.key_open.text.strip())}[\w.\-]{{1,64}}+{re.escape(way.key_close.text)}"
            for way in ways
            if MARKUP.match(way.key_open.text.strip())
        )
        self._written = re.compile(rf'(?:^|(?<=": "))(?:{written or _NEVER})', re.MULTILINE)
        """Matches the opener of a parameter of any name, as the renderer writes it, that begins a line or a value."""
        self._closes = tuple(way.value_close.text.strip() for way in ways)

    def find_any(self, text: str) -> str:
        """Return what comes between a key of any name and its value: attributes or markup after a word, or a line that
        is a key and its close, as the renderer writes it."""
        found = self._any.search(text)
        return "" if found is None else found.group().strip()

    def find_unclosed(self, text: str) -> str:
        """Return the last opener of a parameter that begins a line, if nothing in the text closes it: the value before
        it was not closed."""
        openers = list(self._written.finditer(text))
        if not openers or any(close in text[openers[-1].end() :] for close in self._closes):
            return ""
        return openers[-1].group()

    def find(self, text: str, missing: tuple[str, ...]) -> str:
        """Return the first of the parameters that are not among the arguments and are in the text."""
        for found in _pattern_of(missing, self._after).finditer(text) if missing and self._after else ():
            before = text[max(found.start() - LONGEST, 0) : found.start()]
            alone = before[-1:] in _NO_WORD or text.startswith(self._spaces, found.end())
            if alone and self._may_begin(before):
                return found.group(1)
        return ""

    def _may_begin(self, before: str) -> bool:
        """True if a key may begin after this text: no other tag, attribute or word is open, or a damaged opener."""
        line = before.rpartition("\n")[2]
        if line.rfind("<") <= line.rfind(">") and _NO_TAG.search(before) is not None:
            return True
        return any(is_nearly(before[-len(opener) - more :], opener) for opener in self._openers for more in (-1, 0, 1))


@final
class MarkupInValues:
    """Finds such markup in the arguments of the calls of one format."""

    def __init__(self, fmt: Format, markers: UnreadMarkers) -> None:
        bodies = [getattr(way.body, "arguments", None) for way in fmt.tools]
        tagged = [arguments for arguments in bodies if isinstance(arguments, TaggedArguments)]
        elements = texts_of(*(arguments for arguments in bodies if isinstance(arguments, ElementArguments)))
        self._keys = _Keys(tagged)
        self._of_elements = sorted(filter(MARKUP.match, elements))
        """Markers before the name of an element, if they are markup that no value has."""
        self._markers = markers if tagged or self._of_elements else None

    def find(self, name: str, arguments: str, tools: ToolSet) -> str:
        """Return the first markup in the values of a call of this name; empty without any."""
        if self._markers is None:
            return ""
        tool = tools.get(name)
        missing = () if tool is None else tuple(key for key in tool.properties() if f'"{key}":' not in arguments)
        if not missing and not _may_hold_tags(arguments):
            return ""
        text = arguments.replace('\\"', '"').replace("\\n", "\n")
        found = self._keys.find_any(text) if tool is None else self._keys.find(text, missing)
        found = found or self._keys.find_unclosed(text)
        return found or self._marker_in(text, self._markers.damaged_in_values)

    def _marker_in(self, text: str, damaged: DamagedMarkers) -> str:
        """Return a marker in a value: a whole one of elements, or a damaged one that is no whole tag of another
        name."""
        if not _may_hold_tags(text):
            return ""
        whole = next((marker for marker in self._of_elements if marker in text), "")
        found = None if whole else damaged.find(text)
        return whole if found is None or _OTHER_TAG.fullmatch(found[1]) is not None else found[1]


def _may_hold_tags(text: str) -> bool:
    return "<" in text or ">" in text or "[" in text


@lru_cache(maxsize=256)
def _pattern_of(keys: tuple[str, ...], after: str) -> re.Pattern[str]:
    """Return the pattern of these keys before what comes between a key and its value."""
    return re.compile(f"({'|'.join(map(re.escape, sorted(keys, key=len, reverse=True)))})(?:{after})")


def _after_key(arguments: TaggedArguments) -> tuple[str, str]:
    """Return an expression for what comes between a key and its value, and the first attribute there."""
    literals = re.split(r"\{\w+\}", arguments.key.partition("{key}")[2])
    whole = '[^"<>\\n]{0,64}'.join(map(re.escape, literals)) + re.escape(arguments.key_close.text.strip())
    return whole, re.escape(literals[0]) if len(literals) > 1 else ""
