"""Text that looks like a call: a whole marker of calls, or an object with the name of an offered tool."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cached_property
from itertools import islice
from typing import Final, final

from ...format import Format, JsonBody, LiteralArguments
from .code_spans import in_code
from .damaged_markers import LONGEST, MOST_LOOKED_AT
from .recognition import MARKUP, texts_of

__all__ = ["CALL_OBJECT", "CallLike"]

_NAMED: Final = re.compile(
    r'(?:\{\s{0,64})?(?<!\\)"(?:name|function|tool|tool_name|function_name)"\s{0,64}:\s{0,64}"([^"\\\n]{1,256})"'
)
CALL_OBJECT: Final = re.compile(
    r'(?:\{\s{0,64})?(?<!\\)"(?:name|function|tool|tool_name|function_name)"\s{0,64}:\s{0,64}"[^"\\\n]{1,256}"\s{0,64},'
    r'\s{0,64}"(?:arguments|args|parameters|input)"\s{0,64}:\s{0,64}[{"]'
)
"""Matches an object with the name of a tool and its arguments; its brace may be damaged."""
_NAMED_BEFORE: Final = re.compile(
    r'(?<![\w.\-])([\w.\-]{1,256}+)(?=([\s`>]{0,136}+(?:(?<=[`> ])\w{1,16}+\s{0,64}+)?(?:\{|\W?\w?"\w{1,64}":)))'
)
"""Matches a name directly before an object, or before the first member of one whose brace is damaged. A word may come
between, which may be the name as well."""
_BEFORE_CALL: Final = ".!?:> \t\n"
_NAME_AS_KEY: Final = re.compile(r'\{\s{0,64}"([^"\\\n]{1,256})"\s{0,64}:\s{0,64}\{')
"""Matches an object in an object, with its key."""
_NAME: Final = r"([\w.\-]{1,256}+)"
_ARGUMENTS: Final = r"\(\w{1,64}+=[^\n()]{1,256}+\)?"
_PYTHONIC: Final = tuple(
    re.compile(rf"(?:^[ \t]{{0,64}}+|{before}){call}", re.MULTILINE)
    for before, call in (
        (r"[.!?:][ \t]++", _NAME + _ARGUMENTS),
        (r"[.!?:][ \t]++|(?<!\s)", r"\[" + _NAME + _ARGUMENTS),
        (r"[.!?:>][ \t]*+", r"\[" + _NAME + r"\(\)"),
    )
)
"""Match a call in Python's syntax that begins a line, or comes after what may be before it. The first matches one with
arguments: one without is prose. The second matches the first of a list, with arguments: in prose, white space is before
a bracket. The third matches one in a list without arguments: after other text it may be an index in code."""
_BEGUN: Final = 4
"""Characters of a marker that show that it was begun. Shorter pieces are in prose and code."""


def _at(found: re.Match[str]) -> tuple[int, str]:
    """Return the place of what was found, and the text, without the end of a sentence before it."""
    start = found.start() + len(found.group()) - len(found.group().lstrip(_BEFORE_CALL))
    return start, found.string[start : max(found.end(), found.end(found.lastindex or 0))]


@final
class CallLike:
    """Finds text that looks like a call of one format."""

    def __init__(self, fmt: Format) -> None:
        self._format = fmt

    def find(self, content: str, tools: Collection[str] | None) -> tuple[int, str] | None:
        """Return the place of the first text that looks like a call, and that text: a whole marker of calls, or a JSON
        object with the name of an offered tool in it or directly before it, outside inline code. ``tools``: the names
        of those that are offered; ``None`` if that is not known: the object must have arguments as well then."""
        found = self._marker_in(content)
        for pattern in self._patterns_of_calls(content, tools):
            end = len(content) if found is None else found[0]
            places = pattern.finditer(content, 0, end)
            named = islice((n for n in places if self._is_offered(n, tools)), MOST_LOOKED_AT)
            found = next((_at(n) for n in named if not in_code(content, n.start())), found)
        return found

    def _is_offered(self, found: re.Match[str], tools: Collection[str] | None) -> bool:
        """True if what was found is the name of an offered tool. It may come after the end of a sentence
        (``Sure.get_weather``), after a letter in the place of a marker's last sign (``>>xget_weather``), or after the
        first letters of a damaged marker (``<|tool_caget_weather``)."""
        if tools is None:
            return True
        name = found.group(1)
        if name in tools or name.rpartition(".")[2] in tools or name[1:] in tools:
            return True
        return self._is_begun_before(found) and any(name[at:] in tools for at in range(2, len(name)))

    def _is_begun_before(self, found: re.Match[str]) -> bool:
        """True if the first letters of a marker are shortly before the end of a name."""
        text, end = found.string, found.end(1)
        places = ((mark, text.rfind(mark[0], max(found.start(1) - LONGEST, 0), end)) for mark in self.marks)
        return any(place >= 0 and text.startswith(mark[:_BEGUN], place) for mark, place in places)

    def _marker_in(self, content: str) -> tuple[int, str] | None:
        pattern = self._pattern
        if pattern is None:
            return None
        for found in islice(pattern.finditer(content), MOST_LOOKED_AT):
            if not in_code(content, found.start()):
                return found.start(), found.group()
        return None

    def _patterns_of_calls(self, content: str, tools: Collection[str] | None) -> list[re.Pattern[str]]:
        """Return the patterns of what names a tool in content."""
        has_braces = "{" in content or "}" in content
        if tools is None:
            return [CALL_OBJECT] if has_braces else []
        return self._patterns_of_names if tools and (has_braces or "(" in content) else []

    @cached_property
    def _patterns_of_names(self) -> list[re.Pattern[str]]:
        """The patterns of the name of a tool, as far as this format may write one so."""
        bodies = [way.body for way in self._format.tools]
        patterns = [_NAMED, _NAMED_BEFORE]
        if self.is_literal:
            patterns += _PYTHONIC
        if any(isinstance(body, JsonBody) and body.name_is_key for body in bodies):
            patterns.append(_NAME_AS_KEY)
        return patterns

    @cached_property
    def is_literal(self) -> bool:
        """True if calls are written as in a programming language."""
        return any(isinstance(getattr(way.body, "arguments", None), LiteralArguments) for way in self._format.tools)

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        """The pattern of all markers of calls."""
        marks = self.marks
        return re.compile("|".join(map(re.escape, marks))) if marks else None

    @cached_property
    def marks(self) -> list[str]:
        """The markers of calls and messages, the longest first."""
        fmt = self._format
        texts = texts_of(*fmt.tools, fmt.channels).difference(texts_of(fmt.reasoning))
        return sorted(filter(MARKUP.match, texts), key=len, reverse=True)
