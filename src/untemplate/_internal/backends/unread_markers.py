"""Markers in the text of a message that were not read as such: damaged, in the wrong place, or a piece of one."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final, final

from ...format import Format
from ...messages import Item
from .code_spans import in_code, in_fence
from .damaged_markers import LONGEST, MOST_LOOKED_AT, DamagedMarkers, is_line
from .recognition import MARKUP, every_marker, marker_texts, texts_of

if TYPE_CHECKING:
    from .call_like import CallLike
    from .fragments import Fragments

__all__ = ["UnreadMarkers"]

_CLOSES: Final = ("call_close", "section_close", "list_close", "arguments_close", "value_close")
"""Fields of calls with the markers that end something."""
_NOTHING: Final = "(?!)"
_EDGES: Final = "<>[]|｜"
"""Signs that markers begin and end with."""
_EDGES_OR_SPACE: Final = _EDGES + " \t\r\n"


@final
class UnreadMarkers:
    """Finds such markers of one format."""

    def __init__(self, fmt: Format) -> None:
        self._format = fmt

    # Most outputs need neither of the two finders that are imported when they are needed.

    @cached_property
    def calls(self) -> CallLike:
        """Finds whole markers of calls."""
        from .call_like import CallLike

        return CallLike(self._format)

    @cached_property
    def _call_openers(self) -> frozenset[str]:
        return frozenset(texts_of(*(part for way in self._format.tools for part in (way.section_open, way.call_open))))

    def opener_in(self, text: str) -> tuple[int, str] | None:
        """Return the place of the first opener of calls in a text, and the opener."""
        places = ((text.find(opener), opener) for opener in self._call_openers)
        return min(((at, opener) for at, opener in places if at >= 0), default=None)

    @cached_property
    def constraint(self) -> str:
        """The type of the arguments that the header of a call has; empty without one."""
        channels = self._format.channels
        return (channels.call_constraint or "") if channels is not None else ""

    def ends_in_constraint(self, name: str) -> bool:
        """True if a name ends in that type, and nothing comes between."""
        rest = name.removesuffix(self.constraint)
        return rest != name and (not rest or rest[-1].isalnum())

    @cached_property
    def closes_of_calls(self) -> frozenset[str]:
        """The markers that close calls, their sections, arguments and values."""
        bodies = [way.body for way in self._format.tools]
        parts = [*self._format.tools, *bodies, *(getattr(body, "arguments", None) for body in bodies)]
        return frozenset(texts_of(*(getattr(part, name, None) for part in parts for name in _CLOSES)))

    @cached_property
    def ends_of_calls(self) -> frozenset[str]:
        """The markers that end calls and their sections; none if a call of this format may have no such marker."""
        ends = [texts_of(way.call_close, way.section_close) for way in self._format.tools]
        return frozenset().union(*ends) if all(ends) else frozenset()

    @cached_property
    def closes_of_reasoning(self) -> frozenset[str]:
        """The markers that close reasoning."""
        reasoning = self._format.reasoning
        return frozenset() if reasoning is None else frozenset(texts_of(reasoning.close))

    def in_content(self, content: str, calls: bool) -> tuple[int, str] | None:
        """Return the place of a marker in content that is damaged, belongs to reasoning, surrounds content or
        begins a turn, and that marker. ``calls``: calls are wanted, so their markers count."""
        around = self._around_in(content)
        if around is not None:
            return around
        for line in islice(self._lines.finditer(content), MOST_LOOKED_AT):
            if not in_fence(content, line.start()):
                return line.start(), line.group()
        damaged = self._damaged_lines.find(content)
        if damaged is not None and not in_fence(content, damaged[0]):
            return damaged
        damaged_markers = self._damaged_calls if calls else self._around_content[1]
        return damaged_markers.find(content) or self._turn_header_in(content)

    def _around_in(self, text: str) -> tuple[int, str] | None:
        """Return the first marker around content that is in a text, and not in inline code, and its place."""
        places = ((text.find(marker), marker) for marker in self._around_content[0])
        return min(((at, marker) for at, marker in places if at >= 0 and not in_code(text, at)), default=None)

    def call_in_reasoning(self, reasoning: str, tools: Collection[str] | None, drafts: bool) -> tuple[int, str] | None:
        """Return the place of the first text that looks like a call, as ``CallLike.find`` does, or of a marker around
        content, in reasoning that was not closed. A message with a header has an end of its own, so the text has to
        end in the call. ``drafts``: what begins with a whole opener is a draft, because calls follow, unless they
        follow it directly."""
        if self._format.channels is not None and not reasoning.rstrip().endswith(("}", *self.closes_of_calls)):
            return None
        found = self.calls.find(reasoning, tools)
        is_last = reasoning.rstrip()[-1:] in {*_EDGES, "}"}
        if drafts and not is_last and found is not None and found[1] in self._call_openers:
            found = None
        return min(filter(None, (found, self._around_in(reasoning))), default=None)

    def is_begun(self, text: str) -> bool:
        """True if a text is a marker without two or more characters of its end."""
        return any(mark.startswith(text) and len(mark) - len(text) > 1 for mark in self._whole_texts)

    def in_reasoning(self, reasoning: str, closed: bool) -> tuple[int, str] | None:
        """Return the place of a damaged opener that reasoning begins with, of a damaged close in it or of the header
        of a turn, and that marker. ``closed``: reasoning was closed, so its close is not in it."""
        only = self._only_markers.fullmatch(reasoning)
        if only is not None:
            return only.start(1), only.group(1)
        opens, closes = self._damaged_reasoning
        found = opens.find(reasoning[:LONGEST])
        if found is not None and not reasoning[: found[0]].strip():
            return found
        return (None if closed else self._unclosed(reasoning, closes)) or self._turn_header_in(reasoning)

    def _unclosed(self, reasoning: str, closes: DamagedMarkers) -> tuple[int, str] | None:
        """Return the place of a damaged close of reasoning that was not closed, or of another opener in it."""
        opener = next(iter(self._reasoning_openers), "")
        place = reasoning.find(opener) if opener else -1
        return closes.find(reasoning) if place < 0 or in_code(reasoning, place) else (place, opener)

    @cached_property
    def has_lines(self) -> bool:
        """True if a marker of reasoning is a line of words, so text without signs of markup may hold one."""
        return bool(self._line_texts)

    @cached_property
    def _line_texts(self) -> list[str]:
        """The markers of reasoning that are a line of words."""
        reasoning = self._format.reasoning
        return [] if reasoning is None else sorted(filter(is_line, texts_of(reasoning.open, reasoning.close)))

    @cached_property
    def _lines(self) -> re.Pattern[str]:
        """The pattern of them."""
        lines = "|".join(map(re.escape, self._line_texts))
        return re.compile(rf"^(?:{lines})$" if lines else _NOTHING, re.MULTILINE)

    @cached_property
    def _damaged_lines(self) -> DamagedMarkers:
        return DamagedMarkers(self._line_texts, self._whole)

    @cached_property
    def _reasoning_openers(self) -> list[str]:
        reasoning = self._format.reasoning
        return [] if reasoning is None else sorted(filter(MARKUP.match, texts_of(reasoning.open)))

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
        from .fragments import Fragments

        reasoning = self._format.reasoning
        opens = () if reasoning is None else texts_of(reasoning.open)
        return Fragments(self._whole_texts, opens, self.closes_of_reasoning, self._call_openers, self.closes_of_calls)

    def _turn_header_in(self, text: str) -> tuple[int, str] | None:
        """Return the place of the header of a turn, and the header: a model that has not stopped begins another turn
        so."""
        header = self._turn_header
        place = text.find(header) if header else -1
        return None if place < 0 or in_code(text, place) else (place, header)

    @cached_property
    def _turn_header(self) -> str:
        """The header of a turn, if that is markup; otherwise nothing. Formats of messages read their headers."""
        start = self._format.turn.start if self._format.channels is None else None
        header = "" if start is None else start.text.strip()
        return header if MARKUP.match(header) else ""

    @cached_property
    def _around_content(self) -> tuple[list[str], DamagedMarkers]:
        """The markers around content that are special tokens, and these damaged."""
        fmt = self._format
        texts = sorted(text for text in texts_of(fmt.content) if any(token in text for token in fmt.special_tokens))
        return texts, DamagedMarkers(texts, self._whole)

    @cached_property
    def _damaged_calls(self) -> DamagedMarkers:
        return DamagedMarkers([*self.calls.marks, *self._around_content[0]], self._whole)

    @cached_property
    def damaged_in_values(self) -> DamagedMarkers:
        """Finds damaged markers of calls and messages in a value."""
        return DamagedMarkers(self.calls.marks, self._whole)

    @cached_property
    def _damaged_reasoning(self) -> tuple[DamagedMarkers, DamagedMarkers]:
        reasoning = self._format.reasoning
        if reasoning is None:
            return DamagedMarkers((), self._whole), DamagedMarkers((), self._whole)
        return DamagedMarkers(texts_of(reasoning.open), self._whole), DamagedMarkers(
            texts_of(reasoning.close), self._whole
        )

    @cached_property
    def _whole(self) -> re.Pattern[str]:
        """The pattern of all markers."""
        return every_marker(self._format)

    @cached_property
    def _only_markers(self) -> re.Pattern[str]:
        """The pattern of a text that is markers and nothing else."""
        return re.compile(rf"\s*+((?:(?:{self._whole.pattern})\s*+)++)")

    @cached_property
    def _whole_texts(self) -> list[str]:
        return marker_texts(self._format)
