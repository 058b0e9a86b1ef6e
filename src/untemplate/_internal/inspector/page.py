"""The files of the pages, their headers, and the view of one output as one file."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

_FOLDER: Final = Path(__file__).parent / "static"
_SCRIPTS: Final = ("text.js", "output.js", "time.js", "template.js", "page.js")
FILES: Final = {
    "": ("index.html", b"text/html; charset=utf-8"),
    "style.css": ("style.css", b"text/css; charset=utf-8"),
    "icon.svg": ("icon.svg", b"image/svg+xml"),
    "examples.json": ("examples.json", b"application/json"),
    **{name: (name, b"text/javascript; charset=utf-8") for name in _SCRIPTS},
}
"""Last part of the path → file and media type."""

HEADERS: Final = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
)
"""Headers of every file: no script but those of the page itself, and no other server."""


@cache
def read_file(name: str) -> bytes:
    """Return the content of one of `FILES`, by its file name."""
    return (_FOLDER / name).read_bytes()


def one_file(data: dict[str, Any]) -> str:
    """Return the page as one file with this view in it.

    The view is a block of data that no browser runs. The policy of the file allows its own scripts and styles, by their
    digests, and nothing else.

    Args:
        data: ``case``, ``view`` and ``splits``, as the pages get them.
    """
    page = read_file("index.html").decode()
    style = read_file("style.css").decode()
    scripts = {name: read_file(name).decode() for name in _SCRIPTS}
    allowed = " ".join(map(_digest, scripts.values()))
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src {_digest(style)}; base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'"
    )
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>'
    block = json.dumps(data).replace("<", "\\u003c")  # ends neither the block nor begins a comment
    body = f'<script type="application/json" id="data">{block}</script>\n'
    body += "\n".join(f"<script>{text}</script>" for text in scripts.values())
    page = re.sub(r"<!-- head -->.*<!-- end -->", lambda _: head, page, flags=re.DOTALL)
    return page.replace("<!-- scripts -->", body, 1)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
