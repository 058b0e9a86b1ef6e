"""Text for terminals: colour, width, and harmless display of hostile text.

* Colours are never written to a pipe unless ``FORCE_COLOR`` is set, and never if ``NO_COLOR`` is set.
* Model output may contain escape sequences. Characters that a terminal would act on are shown as escapes.
* Widths are in terminal columns: two for ``｜``, none for a combining accent.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Final, TextIO

__all__ = ["STYLES", "Line", "Segment", "coloured", "encodable", "paint", "painted", "visible", "width", "wrapped"]

STYLES: Final[dict[str, str]] = {
    "reasoning": "35",
    "content": "32",
    "name": "1;33",
    "id": "33",
    "arguments": "36",
    "markup": "2",
    "dropped": "7;31",
    "title": "1",
    "faint": "2",
    "error": "31",
}
"""Style → SGR parameters, of the sixteen colours that every theme defines. The first seven are the kinds of a span."""

Segment = tuple[str, str]
"""(text, style); the style may be empty."""
Line = list[Segment]


def coloured(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """True if colours may be written: ``NO_COLOR`` wins over ``FORCE_COLOR``, which wins over being a terminal."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return environ["FORCE_COLOR"] != "0"
    return environ.get("TERM") != "dumb" and stream.isatty()


def paint(text: str, style: str) -> str:
    """Paint text in a style. Each line is painted separately, so that a pager may cut anywhere."""
    code = STYLES.get(style)
    if code is None:
        return text
    return "\n".join(f"\x1b[{code}m{line}\x1b[0m" if line else line for line in text.split("\n"))


def painted(line: Line, *, colour: bool) -> str:
    """Return the segments of a line as one text."""
    return "".join(paint(text, style) if colour else text for text, style in line)


# Control characters except tab and newline, directional overrides, lone surrogates: they move a cursor or reorder text.
_HARMFUL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """Escape everything that a terminal would act on: ``\\x1b``, ``\\u202e``.

    A byte that was not UTF-8 (a surrogate escape) is shown as that byte.
    """
    return _HARMFUL.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    code = ord(found.group())
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def encodable(text: str, stream: TextIO) -> bool:
    """True if the stream's encoding can represent all of the text."""
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def width(text: str) -> int:
    """Return the columns that the text takes."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def wrapped(segments: Iterable[Segment], columns: int) -> list[Line]:
    """Wrap segments into lines of at most ``columns`` columns, at newlines, else after a space, else anywhere.

    A character that is wider than a line gets one of its own. Only the newlines are left out.
    """
    lines: list[Line] = []
    line: list[Segment] = []
    used = 0
    breakable = 0
    for character, style in ((c, style) for text, style in segments for c in text):
        if character == "\n":
            lines.append(_joined(line))
            line, used, breakable = [], 0, 0
            continue
        size = _width(character)
        while line and used + size > columns:
            cut = breakable or len(line)
            lines.append(_joined(line[:cut]))
            line = line[cut:]
            used = sum(_width(c) for c, _ in line)
            breakable = 0
        line.append((character, style))
        used += size
        if character == " ":
            breakable = len(line)
    if line or not lines:
        lines.append(_joined(line))
    return lines


def _joined(characters: Iterable[Segment]) -> Line:
    """Join neighbours of one style into one segment."""
    line: Line = []
    for character, style in characters:
        if line and line[-1][1] == style:
            line[-1] = (line[-1][0] + character, style)
        else:
            line.append((character, style))
    return line
