"""Text for terminals: colour or not, how wide it is, what would do harm there.

Rules of this module:

* Colour is for people: never in a pipe, unless ``FORCE_COLOR`` asks for it; never where ``NO_COLOR`` is set.
* A model may write anything, escape sequences too. What a terminal would act on is shown, never sent.
* Widths are in columns, as terminals count them: two for ``｜``, none for a combining accent.
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
    """Whether to write colours to the stream: ``NO_COLOR`` before ``FORCE_COLOR`` before whether it is a terminal."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return environ["FORCE_COLOR"] != "0"
    return environ.get("TERM") != "dumb" and stream.isatty()


def paint(text: str, style: str) -> str:
    """The text in a style. Each line is painted by itself, so that a pager may cut anywhere."""
    code = STYLES.get(style)
    if code is None:
        return text
    return "\n".join(f"\x1b[{code}m{line}\x1b[0m" if line else line for line in text.split("\n"))


def painted(line: Line, *, colour: bool) -> str:
    """The segments of a line as one text."""
    return "".join(paint(text, style) if colour else text for text, style in line)


# Control characters but tab and newline, directional overrides, lone surrogates: what moves a cursor or reorders text.
_HARMFUL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with everything that a terminal would act on written out: ``\\x1b``, ``\\u202e``. A byte that was not
    UTF-8 (a surrogate escape) is written as that byte."""
    return _HARMFUL.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    code = ord(found.group())
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def encodable(text: str, stream: TextIO) -> bool:
    """Whether the stream's encoding has all of the text."""
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def width(text: str) -> int:
    """Columns that the text takes."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def wrapped(segments: Iterable[Segment], columns: int) -> list[Line]:
    """Segments as lines of at most ``columns`` columns, broken at newlines, else behind a space, else anywhere. A
    character that is wider than a line has one of its own. Nothing is left out but the newlines."""
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
    """Neighbours of one style as one segment."""
    line: Line = []
    for character, style in characters:
        if line and line[-1][1] == style:
            line[-1] = (line[-1][0] + character, style)
        else:
            line.append((character, style))
    return line
