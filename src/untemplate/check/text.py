"""The report as text for a terminal."""

from __future__ import annotations

import json
from typing import Any

from ..terminal import visible
from .model import VERDICTS, Report, Result

_LONGEST = 300


def summary(report: Report) -> str:
    """Return the counts in one line."""
    counts = [f"{report.count(verdict)} {words}" for verdict, words in VERDICTS.items() if report.count(verdict)]
    return ", ".join(counts) or "no checks"


def described(report: Report, *, verbose: bool = False) -> str:
    """Return the report: the server, the checks that did not pass (or all), the counts."""
    found = report.capabilities
    kind = f"{found.server or 'unknown server'} {found.version}".strip()
    forced = found.way or "no way found"
    lines = [
        f"{report.url}: {kind}, model {found.model}, read as {found.format}",
        f"APIs: {', '.join(found.apis)}; texts are forced by: {forced}",
    ]
    for result in report.results:
        if verbose or result.verdict in ("soft", "fail"):
            lines += _shown(result)
    if not verbose:
        lines += _reasons(report)
    lines.append(f"{summary(report)} ({report.requests} requests, {report.tokens} tokens, {report.seconds:g} s)")
    if report.stopped:
        lines.append(f"ended early: {report.stopped}")
    return visible("\n".join(lines))


def _shown(result: Result) -> list[str]:
    issue = f" [{result.issue}]" if result.issue else ""
    lines = [f"{result.verdict:6} {result.id}{issue}" + (f": {result.reason}" if result.reason else "")]
    if result.counts:
        lines.append("       " + ", ".join(f"{name}: {value}" for name, value in result.counts.items()))
    if result.verdict == "fail":
        evidence = {
            "raw": result.raw,
            "got": result.got,
            "expected": result.expected,
            "first difference": result.first_difference,
        }
        lines += [f"       {name}: {_short(value)}" for name, value in evidence.items() if value is not None]
        if result.replay:
            lines.append(f"       replay: {result.replay}")
    return lines


def _reasons(report: Report) -> list[str]:
    """Count the reasons why checks cannot be done."""
    counts: dict[str, int] = {}
    for result in report.results:
        if result.verdict == "cannot":
            counts[result.reason] = counts.get(result.reason, 0) + 1
    return [f"cannot {count} checks: {text}" for text, count in counts.items()]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
