"""Definitions that the repairs share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, final

from ...schemas.validation import read_json

MAX_LENGTH: Final = 1 << 18
"""Characters. Longer arguments are not repaired."""
BARE: Final = re.compile(r"[^ \t\r\n,\[\]{}\"':]+")
"""A number or a word."""


@final
@dataclass(frozen=True, slots=True)
class Repair:
    """Repaired arguments, and the slugs of the steps taken, in order, each once."""

    arguments: str
    steps: tuple[str, ...]


def is_object(text: str) -> bool:
    """True if ``text`` is a JSON object, taken strictly."""
    try:
        return isinstance(read_json(text), dict)
    except ValueError:
        return False
