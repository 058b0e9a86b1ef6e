"""Inline code and fences in a text, as far as they make what is in them no marker."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["in_code", "in_fence"]

_RUN: Final = re.compile("`+")
_FENCE: Final = re.compile(r"[ \t]{0,64}```+")
_FENCES: Final = re.compile(r"^[ \t]{0,64}```", re.MULTILINE)


def in_fence(content: str, place: int) -> bool:
    """True if a fence is open before this place."""
    return sum(1 for _ in _FENCES.finditer(content, 0, place)) % 2 == 1


def in_code(content: str, place: int) -> bool:
    """True if inline code is open before this place of its line."""
    size = 0
    line = content.rfind("\n", 0, place) + 1
    fence = _FENCE.match(content, line, place)
    for run in _RUN.finditer(content, line if fence is None else fence.end(), place):
        length = len(run.group())
        size = length if not size else 0 if size == length else size
    return size > 0
