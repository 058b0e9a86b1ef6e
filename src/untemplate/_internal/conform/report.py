"""The report of a run over the vectors: counts by level, rule and format, and the smallest failures first."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

from .run import Outcome, Result

__all__ = ["Report", "report_of"]

Counts = dict[str, dict[str, int]]
_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "table{border-collapse:collapse}th,td{padding:.15rem .7rem;text-align:right}th:first-child{text-align:left}"
    "tr.bad td:nth-child(4){color:#c33;font-weight:bold}pre{overflow-x:auto;border:1px solid #8886;padding:.5rem}"
)
_COLOURS: Final = ((100.0, "brightgreen"), (95.0, "green"), (80.0, "yellow"), (0.0, "red"))


@dataclass(frozen=True, slots=True)
class Report:
    """The results of a run.

    Attributes:
        results: one for each vector.
        levels, rules, formats: the number of vectors by level, rule or format, then by outcome. A vector counts for
            each of its rules.
        reports: the number of vectors whose diagnostics are right and wrong, by level; empty if the parser gives none.
        new: failures that are not known; all failures, where none are.
        mended: known failures that are right now.
    """

    results: tuple[Result, ...]
    levels: Counts
    rules: Counts
    formats: Counts
    reports: Counts
    new: tuple[Result, ...]
    mended: tuple[str, ...]

    @property
    def share(self) -> float:
        """Right vectors in per cent of those that the parser supports."""
        judged = [r for r in self.results if r.outcome is not Outcome.UNSUPPORTED]
        return 100 * sum(r.outcome is Outcome.RIGHT for r in judged) / len(judged) if judged else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "share": round(self.share, 2),
            "levels": self.levels,
            "rules": self.rules,
            "formats": self.formats,
            "diagnostics": self.reports,
            "mended": list(self.mended),
            "failures": [
                {"id": r.id, "outcome": r.outcome, "problem": r.problem, "pieces": list(r.pieces)} for r in self.new
            ],
        }

    def badge(self) -> str:
        """Return a badge for shields.io (an *endpoint*)."""
        colour = next(name for least, name in _COLOURS if self.share >= least)
        text = f"{self.share:.1f} % of {len(self.results)}"
        return json.dumps({"schemaVersion": 1, "label": "untemplate vectors", "message": text, "color": colour})

    def junit(self) -> str:
        """Return the results as JUnit XML: a test for each vector, skipped where it is not supported."""
        skipped = sum(r.outcome is Outcome.UNSUPPORTED for r in self.results)
        counts = f'tests="{len(self.results)}" failures="{len(self.new)}" skipped="{skipped}" errors="0"'
        lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<testsuite name="untemplate conform" {counts}>']
        failed = {result.id for result in self.new}
        for result in self.results:
            name = f"classname={quoteattr(result.level)} name={quoteattr(result.id)}"
            message = quoteattr(_printable(result.problem))
            inner = f"<failure message={message}/>" if result.id in failed else ""
            inner = f"<skipped message={message}/>" if result.outcome is Outcome.UNSUPPORTED else inner
            lines.append(f"<testcase {name}>{inner}</testcase>")
        return "\n".join([*lines, "</testsuite>", ""])

    def html(self, title: str) -> str:
        """Return the report as one page that loads nothing."""
        tables = "".join(
            _html_table(name, counts)
            for name, counts in (("Level", self.levels), ("Rule", self.rules), ("Format", self.formats))
        )
        failures = "".join(
            f"<h3 id={quoteattr(r.id)}>{escape(r.id)} ({r.outcome})</h3><p>{escape(_printable(r.problem))}</p>"
            f"<p>Rules: {escape(', '.join(r.rules))}</p><pre>{escape(_shown(r.pieces))}</pre>"
            for r in self.new
        )
        tables += _html_reports(self.reports) if self.reports else ""
        head = f"{self.share:.1f} % of the vectors that the parser supports are right"
        start = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        return (
            f"{start}<style>{_STYLE}</style>"
            f"<h1>{escape(title)}</h1><p>{head}.</p>{tables}<h2>Failures, the shortest first</h2>"
            f"{failures or '<p>None.</p>'}</html>\n"
        )


def _html_table(name: str, counts: Counts) -> str:
    heads = "".join(f"<th>{outcome}" for outcome in Outcome)
    rows = "".join(
        f"<tr{' class=bad' if one[Outcome.WRONG] else ''}><th>{escape(key)}{''.join(f'<td>{n}' for n in one.values())}"
        for key, one in counts.items()
    )
    return f"<h2>{name}</h2><table><tr><th>{heads}{rows}</table>"


def _html_reports(reports: Counts) -> str:
    rows = "".join(f"<tr><th>{escape(level)}<td>{n['right']}<td>{n['wrong']}" for level, n in reports.items())
    return f"<h2>Diagnostics</h2><table><tr><th><th>right<th>wrong{rows}</table>"


def _shown(pieces: Iterable[str]) -> str:
    return _printable("\n".join(json.dumps(piece, ensure_ascii=False) for piece in pieces), "\n")


def _printable(text: str, allowed: str = "") -> str:
    """Return the text without characters that XML does not allow."""
    return "".join(c if c.isprintable() or c in allowed else "\ufffd" for c in text)


def report_of(results: Iterable[Result], known: Collection[str] = ()) -> Report:
    """Return the report of a run. ``known``: ids of vectors that the parser is known to get wrong."""
    found = tuple(results)
    levels: Counts = {}
    rules: Counts = {}
    formats: Counts = {}
    reports: Counts = {}
    for result in found:
        if result.reports is not None:
            one = reports.setdefault(result.level, {"right": 0, "wrong": 0})
            one["right" if result.reports else "wrong"] += 1
        places = [(levels, result.level), (formats, result.format), *((rules, rule) for rule in result.rules)]
        for counts, key in places:
            one = counts.setdefault(key, dict.fromkeys(Outcome, 0))
            one[result.outcome] += 1
    by_rule = dict(sorted(rules.items(), key=lambda item: (item[0][0], int(item[0][1:]))))
    failed = [r for r in found if r.outcome in (Outcome.WRONG, Outcome.SPACE)]
    new = sorted((r for r in failed if r.id not in known), key=lambda r: sum(map(len, r.pieces)))
    mended = tuple(r.id for r in found if r.id in known and r.outcome is Outcome.RIGHT)
    return Report(
        found,
        dict(sorted(levels.items())),
        by_rule,
        dict(sorted(formats.items())),
        dict(sorted(reports.items())),
        tuple(new),
        mended,
    )
