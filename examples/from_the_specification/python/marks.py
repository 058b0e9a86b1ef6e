"""Markers and white space (M1 to M5)."""

from __future__ import annotations

from typing import Any

WS = " \t\r\n"


def spellings(marker: Any) -> list[str]:
    """Return the spellings of a marker without the white space at their ends, the longest first (F3, M2, M5)."""
    if marker is None:
        return []
    texts = [marker] if isinstance(marker, str) else [marker["text"], *marker.get("accepted", ())]
    return sorted({one.strip(WS) for one in texts} - {""}, key=len, reverse=True)


def skip(text: str, at: int) -> int:
    """Return the place after the white space at `at`."""
    while at < len(text) and text[at] in WS:
        at += 1
    return at


def after(text: str, at: int, markers: list[str]) -> int:
    """Return the place after the longest of the markers at `at`, or -1."""
    return next((at + len(one) for one in markers if text.startswith(one, at)), -1)


def find(text: str, at: int, markers: list[str], end: int | None = None) -> int:
    """Return the place of the first marker from `at` on, or -1."""
    return min((place for one in markers if (place := text.find(one, at, end)) >= 0), default=-1)


def begins(text: str, at: int, markers: list[str], least: int = 1) -> bool:
    """True if the text ends with the beginning of a marker, of `least` characters, that starts at `at`."""
    rest = text[at:]
    return len(rest) >= least and any(one.startswith(rest) for one in markers)
