"""The markers of a Format as literals with tags."""

from __future__ import annotations

from ...format import Marker, NamedBody, Tools
from . import tags


def spellings(marker: Marker | None) -> tuple[str, ...]:
    """Return all spellings of a marker."""
    return () if marker is None else marker.spellings


def tagged(*pairs: tuple[Marker | str | None, int]) -> dict[str, int]:
    """Return literal → tag. A literal keeps its first tag."""
    found: dict[str, int] = {}
    for marker, tag in pairs:
        for text in (marker,) if isinstance(marker, str) else spellings(marker):
            found.setdefault(text, tag)
    return found


def around(tools: Tools, body: NamedBody, turn_end: Marker | None) -> dict[str, int]:
    """Return the literals that may follow the arguments."""
    return tagged(
        (body.arguments_close, tags.ARGUMENTS_CLOSE),
        (tools.call_close, tags.CALL_CLOSE),
        (tools.section_close, tags.SECTION_CLOSE),
        (tools.call_open, tags.CALL_OPEN),
        (tools.section_open, tags.SECTION_OPEN),
        (turn_end, tags.TURN_END),
    )
