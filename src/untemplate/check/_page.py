"""The report as one HTML page without scripts, and a badge. Everything that a server wrote is escaped."""

from __future__ import annotations

import json
from html import escape
from typing import Any, Final

from .._internal.terminal import visible
from ._causes import causes_of
from ._model import VERDICTS, Report, Result
from ._text import summary

_STYLE: Final = """
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin:2rem 0 .5rem}
details{border-left:.4rem solid #999;padding:.2rem .8rem;margin:.3rem 0}
details.fail{border-color:#c9413b}details.soft{border-color:#d08b1d}details.pass{border-color:#2a9d5c}
summary{overflow-wrap:anywhere}pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:.85rem;margin:.2rem 0 .8rem}
dt{font-weight:600}td,th{padding:.1rem .8rem .1rem 0;text-align:left;vertical-align:top}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}}
"""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_ORDER: Final = ("fail", "soft", "cannot", "pass")


def page(report: Report) -> str:
    """Return the report as a page; failures come first."""
    found = report.capabilities
    title = f"{found.server or 'server'} {found.version}: {summary(report)}"
    facts = {
        "server": report.url,
        "model": found.model,
        "format": found.format,
        "APIs": ", ".join(found.apis),
        "texts are forced by": found.way or "nothing",
        "date": report.date,
        "untemplate": report.untemplate,
        "cost": f"{report.requests} requests, {report.tokens} tokens, {report.seconds:g} s",
        "ended early": report.stopped,
    }
    rows = [f"<tr><th>{name}</th><td>{_text(value)}</td></tr>" for name, value in facts.items() if value]
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{_text(title)}</h1><table>{''.join(rows)}</table>",
    ]
    causes = report.causes or causes_of(report.results)
    if causes:
        rows = [
            f"<tr><td>{len(one.ids)}</td><td>{_text(one.cause)}</td><td>{_text(one.example)}</td></tr>"
            for one in causes
        ]
        head = "<tr><th>Checks</th><th>Cause</th><th>Example</th></tr>"
        parts.append(f"<h2>Causes of failures</h2><table>{head}{''.join(rows)}</table>")
    for verdict in _ORDER:
        results = [result for result in report.results if result.verdict == verdict]
        if results:
            parts.append(f"<h2>{len(results)} {VERDICTS[verdict]}</h2>")
            parts += map(_details, results)
    return "\n".join([*parts, "</body></html>", ""])


def _details(result: Result) -> str:
    fields = {
        "why": result.title,
        "known issue": result.issue,
        "raw text": result.raw,
        "came": result.got,
        "expected": result.expected,
        "first difference": result.first_difference,
        "figures": result.counts,
        "replay": result.replay,
    }
    inner = "".join(f"<dt>{name}</dt><dd><pre>{_shown(value)}</pre></dd>" for name, value in fields.items() if value)
    reason = f": {_text(result.reason)}" if result.reason else ""
    opened = " open" if result.verdict == "fail" else ""
    head = f"<b>{_text(result.id)}</b>{reason}"
    return f'<details class="{result.verdict}"{opened}><summary>{head}</summary><dl>{inner}</dl></details>'


def _shown(value: Any) -> str:
    return _text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1))


def _text(text: str) -> str:
    return escape(visible(text))


def badge(report: Report) -> str:
    """Return an SVG badge: ``tool parsing | 120 of 124``, green without failures."""
    judged = len(report.results) - report.count("cannot")
    right = f"{judged - report.count('fail')} of {judged}"
    colour = "#c9413b" if report.failed else "#2a9d5c" if judged else "#888"
    left, width = 88, 88 + 14 + 7 * len(right)
    middle = left + (width - left) / 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" '
        f'aria-label="tool parsing: {right}"><rect width="{left}" height="20" fill="#444"/>'
        f'<rect x="{left}" width="{width - left}" height="20" fill="{colour}"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{left / 2:g}" y="14">tool parsing</text><text x="{middle:g}" y="14">{right}</text></g></svg>\n'
    )
