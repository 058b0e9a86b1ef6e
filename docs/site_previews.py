"""The description of each page of the site, and its preview: the picture that a link to the page shows elsewhere."""

from __future__ import annotations

import html
import io
import re
import textwrap
from typing import Any, Final

SIZE: Final = (1200, 630)
_BLUE: Final = "#2b5fa8"
_INK: Final = "#1c2733"
_GREY: Final = "#5a6673"
_SHORTEST: Final = 40
_LONGEST: Final = 200
"""Fewest and most characters of a description."""
_SKIPPED: Final = re.compile(r"```.*?```|<!--.*?-->|<[^>]+>", re.DOTALL)
_LINK: Final = re.compile(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])?")


def description_of(markdown: str) -> str:
    """Return the first paragraph of a page that says enough, as plain text; empty if there is none."""
    for block in _SKIPPED.sub("", markdown).split("\n\n"):
        text = " ".join(block.split())
        if not text or text.startswith(("#", "|", "![", "* ", "- ", "---")):
            continue
        text = _LINK.sub(r"\1", text).lstrip("> ").replace("**", "").replace("`", "").replace("*", "")
        if len(text) >= _SHORTEST and not text.endswith(":"):
            return textwrap.shorten(text, _LONGEST, placeholder=" …")
    return ""


def tags(title: str, description: str, address: str, picture: str) -> str:
    """Return the tags of a page's head that other sites read. ``address``: of the page, if it is known."""
    found = {
        "og:type": "website",
        "og:site_name": "untemplate",
        "og:title": title,
        "og:description": description,
        "og:url": address,
        "og:image": picture,
        "og:image:width": str(SIZE[0]),
        "og:image:height": str(SIZE[1]),
    }
    lines = [f'<meta property="{name}" content="{html.escape(text)}">' for name, text in found.items() if text]
    return "\n".join([*lines, '<meta name="twitter:card" content="summary_large_image">', ""])


def picture(title: str, description: str) -> bytes:
    """Return the preview of a page as PNG: its title and its description."""
    from PIL import Image, ImageDraw  # of the site's own environment

    image = Image.new("RGB", SIZE, "white")
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, SIZE[0], 18), fill=_BLUE)
    _logo(draw, 80, 90)
    draw.text((180, 97), "untemplate", font=_font(52), fill=_BLUE)
    y = 220
    for line in textwrap.wrap(title, 26)[:2]:
        draw.text((80, y), line, font=_font(76), fill=_INK)
        y += 92
    for line in textwrap.wrap(description, 60, max_lines=4, placeholder=" …"):
        y += 46
        draw.text((80, y), line, font=_font(36), fill=_GREY)
    written = io.BytesIO()
    image.quantize(32).save(written, "PNG", optimize=True)
    return written.getvalue()


def _logo(draw: Any, x: int, y: int) -> None:
    """Draw the icon of the inspector, in a square of 80 pixels."""
    draw.rounded_rectangle((x, y, x + 80, y + 80), 15, fill=_BLUE)
    for points in ([(6, 4), (3, 8), (6, 12)], [(10, 4), (13, 8), (10, 12)]):
        draw.line([(x + 5 * a, y + 5 * b) for a, b in points], fill="white", width=8, joint="curve")


def _font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size)
