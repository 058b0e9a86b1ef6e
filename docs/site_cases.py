"""Links from the pages of the site to cases in the inspector there, which `site/build.py` makes."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Final

EXAMPLES: Final = Path(__file__).parents[1] / "src/untemplate/_internal/inspector/static/examples.json"


def examples() -> frozenset[str]:
    """Return the ids of the examples."""
    return frozenset(json.loads(EXAMPLES.read_text("utf-8")))


def link(example: str, text: str) -> str:
    """Return a link to an example, from a page that has a folder of its own on the site."""
    fragment = f"#example={example}" if example else ""
    return f'<a href="../inspector/{fragment}">{text}</a>'


def with_cases(page: str, text: str, known: Collection[str]) -> str:
    """Return the text of a page with links to cases: each diagnostic, each failure mode, each format.

    Args:
        page: the file name of the page.
        text: its Markdown.
        known: ids of examples.
    """
    if page == "inspect.md":
        return re.sub(r"\A(# [^\n]*\n)", rf"\1\n{link('', 'Open the inspector in this browser')}\n", text)

    def linked(kind: str, name: str, before: str, after: str) -> str:
        example = f"{kind}/{name}"
        return f"{before}{link(example, 'a case in the inspector')}{after}" if example in known else before + after

    if page == "diagnostics.md":
        return re.sub(r"(?m)^## (\w+)\n", lambda m: linked("diagnostic", m[1], f"{m[0]}\n", "\n"), text)
    if page == "failure-modes.md":
        return re.sub(r"(?m)^\| (\d+) \| (.*)", lambda m: _row(m[1], m[2], known), text)
    if page == "formats.md":
        return re.sub(
            r"(?m)^`([\w.+-]+)`, (\w+):$", lambda m: linked("format", m[1], f"`{m[1]}`, {m[2]} (", "):"), text
        ).replace(" ():", ":")
    return text


def _row(number: str, rest: str, known: Collection[str]) -> str:
    example = f"failure/{number}"
    return f"| {link(example, number) if example in known else number} | {rest}"
