"""Patterns for markers, as a response template needs them: any spelling, with the white space around it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from .._parts import Marker

__all__ = ["NAME", "SPACE", "any_of", "maybe", "spaced", "then_maybe", "visible"]

SPACE: Final = r"\s*"
NAME: Final = r"[^\s<>{}()\[\]\"']+?"
"""The name or id of a call."""


def any_of(*markers: Marker) -> str:
    """Return a pattern for any spelling of these markers, the longest first."""
    texts = sorted({text for marker in markers for text in marker.spellings}, key=lambda text: (-len(text), text))
    alternatives = [re.escape(text) + _not_longer(text, texts) for text in texts]
    return alternatives[0] if len(alternatives) == 1 else f"(?:{'|'.join(alternatives)})"


def _not_longer(text: str, texts: list[str]) -> str:
    """Return a pattern for the text after a spelling with which longer ones begin: none of them, or the end.

    In a stream the pattern is searched before all text is there. Without this the short spelling would match then.
    """
    rests = [longer[len(text) :] for longer in texts if longer.startswith(text) and longer != text]
    return rf"(?:(?={_other(rests)})|\Z)" if rests else ""


def _other(texts: Iterable[str], skipped: str = "") -> str:
    """Return a pattern that matches the beginning of any text that begins with none of these.

    ``skipped`` is a class of characters, as in brackets, that the first character is not.
    """
    rests: dict[str, list[str]] = {}
    for text in texts:
        rests.setdefault(text[:1], []).append(text[1:])
    firsts = "".join(map(re.escape, rests))
    alternatives = [f"[^{firsts}{skipped}]"]
    alternatives += [re.escape(first) + _other(rest) for first, rest in rests.items() if all(rest)]
    return alternatives[0] if len(alternatives) == 1 else f"(?:{'|'.join(alternatives)})"


def then_maybe(marker: Marker | None) -> str:
    """Return a pattern for a marker that may be missing, with the white space before it, after another marker.

    It matches in a stream only when it is known whether the marker comes.
    """
    if not visible((marker,)):
        return ""
    assert marker is not None
    other = _other(marker.spellings, r"\s")
    return rf"(?:{SPACE}{any_of(marker)}|(?={SPACE}{other})|{SPACE}\Z)"


def maybe(*markers: Marker | None) -> str:
    """Return a pattern for these markers, each of which may be missing, with the white space after them."""
    return "".join(f"(?:{any_of(marker)}{SPACE})?" for marker in visible(markers))


def spaced(*markers: Marker | None) -> str:
    """Return a pattern for these markers with the white space before them."""
    return "".join(SPACE + any_of(marker) for marker in visible(markers))


def visible(markers: Iterable[Marker | None]) -> list[Marker]:
    """Return the markers that are more than white space."""
    return [marker for marker in markers if marker is not None and marker.text.strip()]
