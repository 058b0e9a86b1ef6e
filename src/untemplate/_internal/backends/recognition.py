"""The markers by which a text can be recognised as the output of a format, or as a call that stayed content."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache, cached_property
from itertools import islice
from typing import Any, Final, final

from ...format import Format, JsonBody, LiteralArguments, Marker, NamedBody, TaggedArguments
from ...format._markers import spellings_of
from ...formats._registry import markers
from ...messages import Item
from ..machine.arguments.lookahead import is_nearly
from ..machine.lexer import shared_start
from .fragments import Fragments

__all__ = [
    "OwnMarkers",
    "foreign_marker",
    "markers_in",
    "markers_of",
    "markers_within",
    "prompt_markers",
]


def markers_within(part: Any) -> Iterator[Marker]:
    """Yield every marker of a Format or of a part of it."""
    if isinstance(part, Marker):
        yield part
    elif is_dataclass(part):
        for field in fields(part):
            yield from markers_within(getattr(part, field.name))
    elif isinstance(part, tuple):
        for item in part:
            yield from markers_within(item)


def markers_of(fmt: Format) -> dict[str, str]:
    """Return every spelling of the markers that begin calls, and begin or end reasoning, with its meaning."""
    found: dict[str, str] = {}

    def add(marker: Marker | None, meaning: str) -> None:
        for text in spellings_of(marker):
            found.setdefault(text.strip(), meaning)

    for tools in fmt.tools:
        add(tools.section_open, "begins calls")
        add(tools.call_open, "begins calls")
        if isinstance(tools.body, NamedBody):
            add(tools.body.name_open, "begins calls")
    if fmt.reasoning is not None:
        add(fmt.reasoning.open, "begins reasoning")
        add(fmt.reasoning.close, "ends reasoning")
    if fmt.channels is not None:
        add(fmt.channels.open, "begins messages")
        add(fmt.channels.channel, "begins messages")
    return found


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return a pattern for the catalogue's markers that begin with each bracket. Alternatives share their first
    character, so that other tags are refused quickly."""
    patterns = []
    for bracket in "<[":
        groups: defaultdict[str, list[str]] = defaultdict(list)
        for marker in sorted(markers(), key=len, reverse=True):
            if marker[0] == bracket:
                groups[marker[1]].append(re.escape(marker[2:]))
        rests = "|".join(f"{re.escape(first)}(?:{'|'.join(rests)})" for first, rests in groups.items())
        patterns.append((bracket, re.compile(f"{re.escape(bracket)}(?:{rests})")))
    return tuple(patterns)


def markers_in(content: str, own: frozenset[str] = frozenset()) -> Iterator[tuple[str, int]]:
    """Yield each marker of the catalogue in ``content`` that is not in ``own``, and its place, bracket by bracket.

    A marker directly after a backtick is a quotation.
    """
    for bracket, pattern in _patterns():
        if bracket in content:
            for found in pattern.finditer(content):
                if found.group() not in own and content[found.start() - 1 : found.start()] != "`":
                    yield found.group(), found.start()


def foreign_marker(content: str, own: frozenset[str]) -> tuple[str, int, str] | None:
    """Return the first marker in ``content`` that is not in ``own``, its place, and its meaning in other formats."""
    found = next(markers_in(content, own), None)
    return None if found is None else (*found, markers()[found[0]])


_MARKUP: Final = re.compile(r"(?=.*[<>\[\]|｜])(?=.*\w)(?!\w+\[\Z).{3,}", re.DOTALL)
"""Matches a marker that prose does not hold."""
_NAMED: Final = re.compile(
    r'(?:\{\s{0,64})?(?<!\\)"(?:name|function|tool|tool_name|function_name)"\s{0,64}:\s{0,64}"([^"\\\n]{1,256})"'
)
_CALL_OBJECT: Final = re.compile(
    r'\{\s{0,64}"(?:name|function|tool|tool_name|function_name)"\s{0,64}:\s{0,64}"[^"\\\n]{1,256}"\s{0,64},'
    r'\s{0,64}"(?:arguments|args|parameters|input)"\s{0,64}:\s{0,64}[{"]'
)
"""Matches an object with the name of a tool and its arguments."""
_NAMED_BEFORE: Final = re.compile(
    r'(?<![\w.\-])([\w.\-]{1,256}+)[\s`>]{0,136}+(?:(?<=[`> ])\w{1,16}+\s{0,64}+)?(?:\{|\W?\w?"\w{1,64}":)'
)
"""Matches a name directly before an object, or before the first member of one whose brace is damaged."""
_NAME_AS_KEY: Final = re.compile(r'\{\s{0,64}"([^"\\\n]{1,256})"\s{0,64}:\s{0,64}\{')
"""Matches an object in an object, with its key."""
_CALLED: Final = re.compile(r"^[ \t]{0,64}\[?([\w.\-]{1,256})\((?:\w{1,64}=[^\n]{1,4096})?\)", re.MULTILINE)
"""Matches a call in Python's syntax that a line begins with."""
_CLOSES: Final = ("call_close", "section_close", "list_close", "arguments_close", "value_close")
"""Fields of calls with the markers that end something."""
_NOTHING: Final = "(?!)"
_EDGES: Final = "<>[]|｜"
"""Signs that markers begin and end with."""
_EDGES_OR_SPACE: Final = _EDGES + " \t\r\n"
_TAG: Final = re.compile(r"<[^<>\n]{1,64}>|\[/?[A-Z_]{2,64}\]")
_NO_TAG: Final = re.compile(r"(?:\A|[\s>]|(?<=[:\s\[,])\")[^\s<>=\"'/`]*+\Z")
"""Matches text after which no tag, attribute or path is open."""
_OTHER_TAG: Final = re.compile(r"</?[\w.\-]+>")
"""Matches a whole tag that may be one of another language."""
_RUN: Final = re.compile("`+")
_FENCE: Final = re.compile(r"[ \t]{0,64}```+")
_FENCES: Final = re.compile(r"^[ \t]{0,64}```", re.MULTILINE)
_MOST_QUOTED: Final = 64
"""Markers and names of tools in inline code that are looked at. More of them are a text about markers."""


def prompt_markers(fmt: Format, added: Iterable[str] = ()) -> frozenset[str]:
    """Return the markers that no text in a prompt should hold: those of a Format, and the tokens that a tokenizer has
    ``added``, as far as they are markup that prose does not hold."""
    # The start of a turn has the spellings of all families, and holds the role of the assistant.
    start, rest = fmt.turn.start, replace(fmt, turn=replace(fmt.turn, start=None))
    own = [text.strip() for marker in markers_within(rest) for text in marker.spellings]
    own += [] if start is None else [start.text.strip()]
    tags = (tag for text in own for tag in _TAG.findall(text))
    found = filter(_MARKUP.match, (*own, *tags, *fmt.special_tokens, *added))
    return frozenset(text for text in found if "<" in text or _TAG.search(text))


def _is_offered(name: str, tools: Collection[str] | None) -> bool:
    """True if this is the name of an offered tool, maybe after the end of a sentence (``Sure.get_weather``)."""
    return tools is None or name in tools or name.rpartition(".")[2] in tools


class OwnMarkers:
    """Finds markers of a format, and what else looks like a call of it, in text that a message has."""

    def __init__(self, fmt: Format) -> None:
        self._format = fmt

    def find_call(self, content: str, tools: Collection[str] | None) -> tuple[int, str] | None:
        """Return the place of the first text that looks like a call, and that text: a whole marker of calls, or a JSON
        object with the name of an offered tool in it or directly before it, outside inline code. ``tools``: the names
        of those that are offered; ``None`` if that is not known: the object must have arguments as well then."""
        found = self._marker_in(content)
        for pattern in self._patterns_of_calls(content, tools):
            end = len(content) if found is None else found[0]
            places = pattern.finditer(content, 0, end)
            named = islice((n for n in places if tools is None or _is_offered(n.group(1), tools)), _MOST_QUOTED)
            found = next(((n.start(), n.group()) for n in named if not _in_code(content, n.start())), found)
        return found

    def _marker_in(self, content: str) -> tuple[int, str] | None:
        pattern = self._pattern
        if pattern is None:
            return None
        for found in islice(pattern.finditer(content), _MOST_QUOTED):
            if not _in_code(content, found.start()):
                return found.start(), found.group()
        return None

    def _patterns_of_calls(self, content: str, tools: Collection[str] | None) -> list[re.Pattern[str]]:
        """Return the patterns of what names a tool in content."""
        has_braces = "{" in content or "}" in content
        if tools is None:
            return [_CALL_OBJECT] if has_braces else []
        return self._patterns_of_names if tools and (has_braces or "(" in content) else []

    @cached_property
    def _patterns_of_names(self) -> list[re.Pattern[str]]:
        """The patterns of the name of a tool, as far as this format may write one so."""
        bodies = [way.body for way in self._format.tools]
        patterns = [_NAMED, _NAMED_BEFORE]
        if any(isinstance(getattr(body, "arguments", None), LiteralArguments) for body in bodies):
            patterns.append(_CALLED)
        if any(isinstance(body, JsonBody) and body.name_is_key for body in bodies):
            patterns.append(_NAME_AS_KEY)
        return patterns

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        """The pattern of all markers of calls."""
        marks = self._call_marks
        return re.compile("|".join(map(re.escape, marks))) if marks else None

    @cached_property
    def _call_marks(self) -> list[str]:
        """The markers of calls and messages, the longest first."""
        fmt = self._format
        texts = _texts(*fmt.tools, fmt.channels).difference(_texts(fmt.reasoning))
        return sorted(filter(_MARKUP.match, texts), key=len, reverse=True)

    @cached_property
    def _call_openers(self) -> frozenset[str]:
        return frozenset(_texts(*(part for way in self._format.tools for part in (way.section_open, way.call_open))))

    @cached_property
    def closes_of_calls(self) -> frozenset[str]:
        """The markers that close calls, their sections, arguments and values."""
        bodies = [way.body for way in self._format.tools]
        parts = [*self._format.tools, *bodies, *(getattr(body, "arguments", None) for body in bodies)]
        return frozenset(_texts(*(getattr(part, name, None) for part in parts for name in _CLOSES)))

    @cached_property
    def closes_of_reasoning(self) -> frozenset[str]:
        """The markers that close reasoning."""
        reasoning = self._format.reasoning
        return frozenset() if reasoning is None else frozenset(_texts(reasoning.close))

    # -- markers that were not read as such ---------------------------------------------------------------------

    def unread_in_content(self, content: str, calls: bool) -> tuple[int, str] | None:
        """Return the place of a marker in content that is damaged, belongs to reasoning, stands around content or
        begins a turn, and that marker. ``calls``: calls are wanted, so their markers count."""
        around = self._around_content
        for marker in around[0]:
            place = content.find(marker)
            if place >= 0 and not _in_code(content, place):
                return place, marker
        for line in islice(self._lines.finditer(content), _MOST_QUOTED):
            if not _in_fence(content, line.start()):
                return line.start(), line.group()
        damaged = self._damaged_lines.find(content)
        if damaged is not None and not _in_fence(content, damaged[0]):
            return damaged
        return (self._damaged_calls if calls else around[1]).find(content) or self._turn_header_in(content)

    def call_in_reasoning(self, reasoning: str, tools: Collection[str] | None, drafts: bool) -> tuple[int, str] | None:
        """Return the place of the first text that looks like a call, as ``find_call`` does, or of a marker around
        content, in reasoning that was not closed. Messages with headers have an end of their own. ``drafts``: what
        begins with a whole opener is a draft, because calls follow."""
        if self._format.channels is not None:
            return None
        found = self.find_call(reasoning, tools)
        for marker in self._around_content[0]:
            place = reasoning.find(marker)
            if place >= 0 and (found is None or place < found[0]) and not _in_code(reasoning, place):
                found = place, marker
        return None if found is None or (drafts and found[1] in self._call_openers) else found

    def is_begun(self, text: str) -> bool:
        """True if a text is a marker without two or more characters of its end."""
        return any(mark.startswith(text) and len(mark) - len(text) > 1 for mark in self._whole_texts)

    def unread_in_reasoning(self, reasoning: str, closed: bool) -> tuple[int, str] | None:
        """Return the place of a damaged opener that reasoning begins with, of a damaged close in it or of the header
        of a turn, and that marker. ``closed``: reasoning was closed, so its close is not in it."""
        only = self._only_markers.fullmatch(reasoning)
        if only is not None:
            return only.start(1), only.group(1)
        opens, closes = self._damaged_reasoning
        found = opens.find(reasoning[:_LONGEST])
        if found is not None and not reasoning[: found[0]].strip():
            return found
        return (None if closed else self._unclosed(reasoning, closes)) or self._turn_header_in(reasoning)

    def _unclosed(self, reasoning: str, closes: _Damaged) -> tuple[int, str] | None:
        """Return the place of a damaged close of reasoning that was not closed, or of another opener in it."""
        opener = next(iter(self._reasoning_openers), "")
        place = reasoning.find(opener) if opener else -1
        return closes.find(reasoning) if place < 0 or _in_code(reasoning, place) else (place, opener)

    @cached_property
    def has_lines(self) -> bool:
        """True if a marker of reasoning is a line of words, so text without signs of markup may hold one."""
        return bool(self._line_texts)

    @cached_property
    def _line_texts(self) -> list[str]:
        """The markers of reasoning that are a line of words."""
        reasoning = self._format.reasoning
        return [] if reasoning is None else sorted(filter(_is_line, _texts(reasoning.open, reasoning.close)))

    @cached_property
    def _lines(self) -> re.Pattern[str]:
        """The pattern of them."""
        lines = "|".join(map(re.escape, self._line_texts))
        return re.compile(rf"^(?:{lines})$" if lines else _NOTHING, re.MULTILINE)

    @cached_property
    def _damaged_lines(self) -> _Damaged:
        return _Damaged(self._line_texts, self._whole)

    @cached_property
    def _reasoning_openers(self) -> list[str]:
        reasoning = self._format.reasoning
        return [] if reasoning is None else sorted(filter(_MARKUP.match, _texts(reasoning.open)))

    @staticmethod
    def has_edge(text: str) -> bool:
        """True if a text begins or ends with a sign that markers begin or end with."""
        return (text[0] in _EDGES_OR_SPACE and text.lstrip()[:1] in _EDGES) or (
            text[-1] in _EDGES_OR_SPACE and text.rstrip()[-1:] in _EDGES
        )

    def sign_too_many(self, raw: str) -> tuple[int, int] | None:
        """Return where a whole marker begins and ends whose first or last sign is doubled (``<<tool_call>``) in the
        output ``raw``. A sign of it may be all that a text begins or ends with."""
        found = self._doubled_edges.search(raw)
        return None if found is None else found.span()

    @cached_property
    def _doubled_edges(self) -> re.Pattern[str]:
        marks = [text for text in self._whole_texts if text[0] in _EDGES and text[-1] in _EDGES]
        doubled = [edge for text in marks for edge in (text[0] + text, text + text[-1])]
        return re.compile("|".join(map(re.escape, doubled)) or "(?!)")

    def fragment_in(self, items: Sequence[Item], closed: bool) -> tuple[str, int, str] | None:
        """Return the text with a piece of a marker, its place and the piece, as `Fragments.find` does."""
        return self._fragments.find(items, closed)

    @cached_property
    def _fragments(self) -> Fragments:
        reasoning = self._format.reasoning
        opens, closes = ((), ()) if reasoning is None else (_texts(reasoning.open), _texts(reasoning.close))
        return Fragments(self._whole_texts, sorted(opens), sorted(closes))

    @cached_property
    def keys_in_values(self) -> KeysInValues | None:
        """The search for keys in values; None if the format has no tagged arguments."""
        bodies = (getattr(way.body, "arguments", None) for way in self._format.tools)
        found = [arguments for arguments in bodies if isinstance(arguments, TaggedArguments)]
        return KeysInValues(found) if found else None

    def damaged_in_value(self, arguments: str) -> str | None:
        """Return a damaged marker of calls in the values of these arguments, if the format has values in tags. It is no
        whole tag of another name."""
        if self.keys_in_values is None or not ("<" in arguments or ">" in arguments or "[" in arguments):
            return None
        found = self._damaged_in_values.find(arguments.replace('\\"', '"').replace("\\n", "\n"))
        return None if found is None or _OTHER_TAG.fullmatch(found[1]) is not None else found[1]

    @cached_property
    def _damaged_in_values(self) -> _Damaged:
        return _Damaged(self._call_marks, self._whole)

    def _turn_header_in(self, text: str) -> tuple[int, str] | None:
        """Return the place of the header of a turn, and the header: a model that has not stopped begins another turn
        so."""
        header = self._turn_header
        place = text.find(header) if header else -1
        return None if place < 0 or _in_code(text, place) else (place, header)

    @cached_property
    def _turn_header(self) -> str:
        """The header of a turn, if that is markup; otherwise nothing. Formats of messages read their headers."""
        start = self._format.turn.start if self._format.channels is None else None
        header = "" if start is None else start.text.strip()
        return header if _MARKUP.match(header) else ""

    @cached_property
    def _around_content(self) -> tuple[list[str], _Damaged]:
        """The markers around content that are special tokens, and these damaged."""
        fmt = self._format
        texts = sorted(text for text in _texts(fmt.content) if any(token in text for token in fmt.special_tokens))
        return texts, _Damaged(texts, self._whole)

    @cached_property
    def _damaged_calls(self) -> _Damaged:
        return _Damaged([*self._call_marks, *self._around_content[0]], self._whole)

    @cached_property
    def _damaged_reasoning(self) -> tuple[_Damaged, _Damaged]:
        reasoning = self._format.reasoning
        if reasoning is None:
            return _Damaged((), self._whole), _Damaged((), self._whole)
        return _Damaged(_texts(reasoning.open), self._whole), _Damaged(_texts(reasoning.close), self._whole)

    @cached_property
    def _whole(self) -> re.Pattern[str]:
        """The pattern of all markers."""
        return re.compile("|".join(map(re.escape, self._whole_texts)) or "(?!)")

    @cached_property
    def _only_markers(self) -> re.Pattern[str]:
        """The pattern of a text that is markers and nothing else."""
        return re.compile(rf"\s*+((?:(?:{self._whole.pattern})\s*+)++)")

    @cached_property
    def _whole_texts(self) -> list[str]:
        return sorted(filter(_MARKUP.match, _texts(self._format)), key=len, reverse=True)


def _after_key(arguments: TaggedArguments) -> tuple[str, str]:
    """Return an expression for what comes between a key and its value, and the first attribute there."""
    literals = re.split(r"\{\w+\}", arguments.key.partition("{key}")[2])
    whole = '[^"<>\\n]{0,64}'.join(map(re.escape, literals)) + re.escape(arguments.key_close.text.strip())
    return whole, re.escape(literals[0]) if len(literals) > 1 else ""


@final
class KeysInValues:
    """Finds a declared parameter in the value of another one, where both are tagged: all but its opener is there, or
    that is damaged."""

    def __init__(self, arguments: Iterable[TaggedArguments]) -> None:
        ways = list(arguments)
        self._openers = [way.key_open.text.strip() for way in ways]
        after = [_after_key(way) for way in ways]
        self._pattern = re.compile("|".join(text for pair in after for text in pair if text))
        attributes = "|".join(whole for whole, first in after if first)
        self._attributes = re.compile(rf"(?<=\w)(?:{attributes})") if attributes else None

    def attributes_in(self, arguments: str) -> str | None:
        """Return what comes between a key and its value, if that has attributes and is in a value after a word."""
        found = None if self._attributes is None else self._attributes.search(arguments.replace('\\"', '"'))
        return None if found is None else found.group()

    def find(self, declared: Iterable[str], arguments: str) -> str | None:
        """Return the first of the declared parameters that is not a key of these arguments and is in a value."""
        missing = [key for key in declared if f'"{key}":' not in arguments]
        if not missing or not self._openers:
            return None
        text = arguments.replace('\\"', '"').replace("\\n", "\n")
        for found in self._pattern.finditer(text):
            before = text[max(found.start() - _LONGEST, 0) : found.start()]
            for key in missing:
                if before.endswith(key) and self._may_begin(before[: len(before) - len(key)]):
                    return key
        return None

    def _may_begin(self, before: str) -> bool:
        """True if a key may begin after this text: no other tag, attribute or word is open, or a damaged opener."""
        line = before.rpartition("\n")[2]
        if line.rfind("<") <= line.rfind(">") and _NO_TAG.search(before) is not None:
            return True
        sizes = ((opener, len(opener) + more) for opener in self._openers for more in (-1, 0, 1))
        return any(is_nearly(before[-size:], opener) for opener, size in sizes if len(opener) >= _SHORTEST)


def _texts(*parts: Any) -> set[str]:
    """Return every spelling of the markers of these parts of a Format, without white space around it."""
    return {text.strip() for part in parts for marker in markers_within(part) for text in marker.spellings}


_SHORTEST_LINE: Final = 16
"""Fewest characters of a marker of words, which stands on its line."""


def _is_line(text: str) -> bool:
    """True if a marker without signs of markup is a line that introduces something."""
    return len(text) >= _SHORTEST_LINE and text.endswith(":")


_SHORTEST: Final = 6
"""Fewest characters of a marker that is recognised although it is damaged. A shorter one is too like other text."""
_LONGEST: Final = 128
"""Characters around a place in which a marker is looked for. No marker is longer."""


class _Damaged:
    """Markers in other letters (``<TOOL>``), with one character lost, added or replaced, with two neighbours in the
    wrong order, or without their end. One half of such a marker is whole, and is searched, or the damage is known.
    ``whole``: a pattern of all markers that are not damaged; what is a part of one does not count."""

    def __init__(self, texts: Iterable[str], whole: re.Pattern[str]) -> None:
        self._whole = whole
        marks = [text for text in texts if len(text) >= _SHORTEST and (_MARKUP.match(text) or _is_line(text))]
        self._halves = [(text[: len(text) // 2], text[len(text) // 2 :]) for text in marks]
        self._marks = marks
        self._is_lower = all(text == text.lower() for text in marks)
        self._known: tuple[re.Pattern[str], re.Pattern[str]] | None = None

    def find(self, text: str) -> tuple[int, str] | None:
        """Return the place of the first such marker outside inline code, and the marker; ``None`` without one."""
        best: tuple[int, str] | None = None
        for places in (self._as_a_whole(text), *(_with_half(text, first, last) for first, last in self._halves)):
            for start, end in places:
                if (best is None or start < best[0]) and not self._is_whole(text, start, end):
                    best = start, text[start:end]
        return best

    def _as_a_whole(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where markers begin and end in which neighbours from both halves are in the wrong order, or whose
        letters are others."""
        if not self._marks:
            return
        if self._known is None:
            swapped = (a[:-1] + b[:1] + a[-1:] + b[1:] for a, b in self._halves)
            self._known = (
                re.compile("|".join(map(re.escape, swapped))),
                re.compile("|".join(re.escape(mark.lower()) for mark in self._marks)),
            )
        for found in islice(self._known[0].finditer(text), _MOST_QUOTED):
            yield found.span()
        lower = text.lower()
        if len(lower) != len(text) or (lower == text and self._is_lower):
            return
        for found in islice(self._known[1].finditer(lower), _MOST_QUOTED):
            if text[found.start() : found.end()] not in self._marks:
                yield found.span()

    def _is_whole(self, text: str, start: int, end: int) -> bool:
        """True if what is there is a part of a marker that is not damaged, or in inline code."""
        near = self._whole.finditer(text, max(start - _LONGEST, 0), end + _LONGEST)
        return any(m.start() < end and start < m.end() for m in near) or _in_code(text, start)


def _with_first_half(text: str, first: str, last: str) -> Iterator[tuple[int, int]]:
    """Yield where a marker begins and ends whose first half is whole, and whose last half is damaged."""
    for place in _places(text, first):
        start = place + len(first)
        size = _damaged_size(text[start : start + len(last) + 1], last)
        if size < 0:
            size = _cut_size(text[start : start + len(last)], last)
            size = size if _JOINT.search(text, place + 1, start + size) is not None else -1
        if size >= 0:
            yield place, start + size


def _with_last_half(text: str, first: str, last: str) -> Iterator[tuple[int, int]]:
    """The same where the first half is damaged."""
    for place in _places(text, last):
        size = _damaged_size(text[max(place - len(first) - 1, 0) : place][::-1], first[::-1])
        if size >= 0:
            yield place - size, place + len(last)


def _with_half(text: str, first: str, last: str) -> Iterator[tuple[int, int]]:
    """Yield where a marker begins and ends one half of which is whole."""
    yield from _with_first_half(text, first, last)
    yield from _with_last_half(text, first, last)


def _places(text: str, half: str) -> Iterator[int]:
    """Yield the first places of half a marker in the text."""
    place = text.find(half)
    for _ in range(_MOST_QUOTED):
        if place < 0:
            return
        yield place
        place = text.find(half, place + 1)


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


_JOINT: Final = re.compile("[_|｜:▁]")
"""Matches what a marker has, and the words of prose and the tags of HTML have not."""


def _cut_size(text: str, half: str) -> int:
    """Return how much of the text is this half of a marker without its end; -1 if it goes on in another way."""
    size = shared_start(text, half)
    return size if size < len(half) and not text[size : size + 1].strip(" \t\r\n<") else -1


def _damaged_size(text: str, half: str) -> int:
    """Return how much of the text is this half of a marker with one character lost, added or replaced, or with two
    neighbours in the wrong order.

    -1 if it does not begin with that, if it begins with the half as it is, or if a letter follows where the marker
    should end.
    """
    same = shared_start(text, half)
    rest = half[same + 1 :]
    if same == len(half):
        return -1
    if text[same + 1 :].startswith(half[same:]):
        return len(half) + 1
    if not rest and _is_word(half[-2:-1]) and _is_word(text[same : same + 1]):
        return -1
    if half[same : same + 2][::-1] + half[same + 2 :] == text[same : len(half)]:
        return len(half)
    if text.startswith(rest, same):
        return len(half) - 1
    return len(half) if text[same + 1 :].startswith(rest) else -1


def _in_fence(content: str, place: int) -> bool:
    """True if a fence is open before this place."""
    return sum(1 for _ in _FENCES.finditer(content, 0, place)) % 2 == 1


def _in_code(content: str, place: int) -> bool:
    """True if inline code is open before this place of its line."""
    size = 0
    line = content.rfind("\n", 0, place) + 1
    fence = _FENCE.match(content, line, place)
    for run in _RUN.finditer(content, line if fence is None else fence.end(), place):
        length = len(run.group())
        size = length if not size else 0 if size == length else size
    return size > 0
