"""Merges a reasoning format and a tool format into one Format, which one pass parses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..errors import FormatError, IncompatibleFormatsError
from ..format import Format, Marker, Turn

__all__ = ["merge"]


def merge(reasoning: Format, tools: Format) -> Format:
    """Return one Format with the reasoning of the first, and the tools and ids of the second.

    Its name is that by which `named` finds it: ``calls+reasoning``.

    Content markers come from the first if it has any, else from the second. Turn markers and special tokens come from
    both, the spellings of the tool format first.

    Raises:
        IncompatibleFormatsError: only one of them uses channels, or one literal would have two meanings.
    """
    if reasoning.channels != tools.channels:
        return _merge_channels(reasoning, tools)
    if _is_plain(reasoning) and reasoning.turn == Turn():
        return tools
    name = tools.name if _is_plain(reasoning) or reasoning.name == tools.name else f"{tools.name}+{reasoning.name}"
    try:
        return replace(
            tools,
            name=name,
            turn=Turn(
                start=_union(tools.turn.start, reasoning.turn.start),
                end=_union(tools.turn.end, reasoning.turn.end, without=set(_markers(reasoning, tools))),
            ),
            reasoning=reasoning.reasoning,
            content=reasoning.content or tools.content,
            spelled_markers="marker" if "marker" in (reasoning.spelled_markers, tools.spelled_markers) else "text",
            special_tokens=tuple(dict.fromkeys((*tools.special_tokens, *reasoning.special_tokens))),
        )
    except FormatError as error:
        raise IncompatibleFormatsError(reasoning.name, tools.name, str(error)) from error


def _merge_channels(reasoning: Format, tools: Format) -> Format:
    """Return the format that has channels. They carry reasoning, content and calls, so the other one must be plain."""
    if tools.channels is None and _is_plain(tools):
        return reasoning
    if reasoning.channels is None and _is_plain(reasoning):
        return tools
    holder = reasoning if reasoning.channels is not None else tools
    problem = (
        f"{holder.name!r} writes a turn as messages in channels, which carry reasoning, content and calls together"
    )
    raise IncompatibleFormatsError(reasoning.name, tools.name, problem)


def _is_plain(fmt: Format) -> bool:
    """True if the format marks neither reasoning nor content nor calls."""
    return fmt.reasoning is None and fmt.content is None and not fmt.tools and fmt.channels is None


def _union(first: Marker | None, second: Marker | None, without: Iterable[str] = ()) -> Marker | None:
    """Return the first marker, which then also accepts the spellings of the second, except those in ``without``."""
    kept: dict[str, str] = {}
    for marker in (first, second):
        for text in () if marker is None else (marker.text, *marker.accepted):
            bare = text.strip() or text
            if bare not in without:
                kept.setdefault(bare, text)
    if not kept:
        return None
    canonical, *accepted = kept
    return Marker(kept[canonical], tuple(accepted))


def _markers(reasoning: Format, tools: Format) -> Iterator[str]:
    """Yield the spellings that open or close another region, so that they must not end a turn."""
    for part in (reasoning.reasoning, reasoning.content or tools.content, *tools.tools):
        for field in ("open", "close", "section_open", "call_open"):
            marker = getattr(part, field, None)
            if marker is not None:
                yield from marker.spellings
