"""Markers: the literals of a Format.

Every marker has one canonical spelling, which the renderer and the grammar write, white space included. It may have
further spellings that the parser accepts as well. The parser ignores white space around a spelling, unless the marker
consists of white space only.
"""

from __future__ import annotations

from typing import Literal

from .._internal.record import Record, record

__all__ = ["Escape", "Marker", "spellings_of", "text_of"]

Escape = Literal["none", "xml"]
"""Escaping of text between tags. ``xml``: ``&amp;`` ``&lt;`` ``&gt;`` ``&quot;`` ``&apos;``."""


@record(kw_only=False)
class Marker(Record):
    """A literal that opens, closes or separates a region.

    In JSON a marker without further spellings is a plain string.
    """

    text: str
    """Canonical spelling: the renderer writes it exactly, white space included. Required. Example: ``"<think>\\n"``."""
    accepted: tuple[str, ...] = ()
    """Other spellings that models are known to write. They are parsed and never written. Default: none. Example:
    ``("<thinking>",)``."""

    @property
    def spellings(self) -> tuple[str, ...]:
        """All spellings that the parser finds, without their outer white space, the canonical one first."""
        return tuple(dict.fromkeys(s.strip(" \t\r\n") or s for s in (self.text, *self.accepted)))


def text_of(*markers: Marker | None) -> str:
    """Return the canonical spellings of the markers that are not ``None``, joined."""
    return "".join([marker.text for marker in markers if marker is not None])


def spellings_of(*markers: Marker | None) -> tuple[str, ...]:
    """Return all spellings of the markers that are not ``None``."""
    return tuple([text for marker in markers if marker is not None for text in marker.spellings])
