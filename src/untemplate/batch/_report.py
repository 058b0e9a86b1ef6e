"""Figures about records, as an HTML page with charts. The page needs nothing from elsewhere."""

from __future__ import annotations

from html import escape
from typing import Final

from ._summary import Summary

__all__ = ["report"]

_MOST_BARS: Final = 30
_GOOD: Final = frozenset(("clean", "ok"))
_BAD: Final = frozenset(
    ("errors", "incomplete", "invalid_json", "unknown_tool", "invalid_arguments", "json", "file")
)  # fmt: skip
_STYLE: Final = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.1rem;margin:2rem 0 .5rem}
table{border-collapse:collapse;width:100%}td{padding:.15rem .5rem;vertical-align:middle}
td:first-child{width:18rem;overflow-wrap:anywhere}td:nth-child(2){width:9rem;text-align:right}
svg{display:block;width:100%;height:1rem}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}}
"""


def report(summary: Summary, title: str) -> str:
    """Return a page with a bar chart for each kind of figures."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1><p>{summary.rows:,} rows, {summary.calls:,} calls.</p>",
    ]
    for head, table in summary.tables().items():
        total = summary.calls if head in ("statuses of calls", "tools") else summary.rows
        parts.append(f"<h2>{escape(head.capitalize())}</h2><table>")
        shown = list(table.items())[:_MOST_BARS]
        parts += [_bar(name, count, total, max(table.values())) for name, count in shown]
        parts.append("</table>")
        if len(table) > len(shown):
            parts.append(f"<p>… and {len(table) - len(shown):,} more</p>")
    return "\n".join([*parts, "</body></html>", ""])


def _bar(name: str, count: int, total: int, most: int) -> str:
    colour = "#2a9d5c" if name in _GOOD else "#c9413b" if name in _BAD else "#3b78c9"
    width = 100 * count / most if most else 0
    share = f"{100 * count / total:.2f} %" if total else ""
    bar = f'<svg role="img"><rect width="{width:.2f}%" height="100%" fill="{colour}"/></svg>'
    return f"<tr><td>{escape(name)}</td><td>{count:,} ({share})</td><td>{bar}</td></tr>"
