"""Text of a call object that decides nothing yet: the short path lets it wait, up to its own ``MOST_WAITING``."""

from __future__ import annotations

import re
from typing import Final

from ..lexer import GAP, Cursor, GoesOn

_SHORT: Final = 128
"""Most characters of a string that waits to be read at once: names and keys are shorter. Longer ones are read as they
come, with the same result."""
_STRING: Final = r'(?:"[^"\\]*+)?'
"""Pattern of the beginning of a string without escapes, or of nothing."""
OPEN_STRING: Final = re.compile(rf"{_STRING}\Z")


def _undecided(value: str) -> dict[str, re.Pattern[str]]:
    """Return the patterns of text that decides nothing, by the sign that comes next; empty: a value. ``value``: the
    pattern of what waits in the place of a value."""
    after_key = rf"(?::{GAP}{value})?"
    texts = {
        "{": rf'(?:\{{{GAP}{_STRING}(?:"{GAP}{after_key})?)?',
        '"': rf'{_STRING}(?:"{GAP}(?::{GAP})?)?',  # it is not known yet if the value is the name
        ":": after_key,
        "": value,
        ",": "",
    }
    return {sign: re.compile(rf"{GAP}{text}\Z") for sign, text in texts.items()}


WAITS_FOR_NAME: Final = _undecided(rf'(?:"(?:[^"\\]++(?:"{GAP})?)?)?')
"""Where the name may be the next value. An empty name does not wait: it makes no call."""
OPEN_CALL: Final = WAITS_FOR_NAME["{"]
"""For the beginning of an object, up to its name."""
CALL_GOES_ON: Final[GoesOn] = OPEN_CALL.match
STREAMS_STRINGS: Final = _undecided("")
"""Where a string is read as it comes."""


def waits(cur: Cursor, undecided: re.Pattern[str]) -> bool:
    """True if the text at the cursor is short and decides nothing, as this pattern shows, and more of it may come."""
    short = len(cur.text) - cur.pos <= _SHORT
    return short and not cur.final and not cur.ends_prompt and undecided.match(cur.text, cur.pos) is not None
