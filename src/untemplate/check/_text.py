"""The report as text for a terminal."""

from __future__ import annotations

import json
from typing import Any

from .._internal.terminal import visible
from ._causes import causes_of
from ._model import VERDICTS, Cause, Report, Result

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
    if verbose:
        for result in report.results:
            lines += _shown(result)
    else:
        for cause in report.causes or causes_of(report.results):
            lines += _explained(cause)
        lines += _soft(report)
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


def _explained(cause: Cause) -> list[str]:
    """Return a cause with the evidence of one check."""
    count = len(cause.ids)
    only = {"whole": ", whole only", "stream": ", streamed only"}.get(cause.only, "")
    issue = f" [{cause.issue}]" if cause.issue else ""
    lines = [f"fail   {cause.cause} ({count} check{'' if count == 1 else 's'}{only}){issue}"]
    lines.append(f"       {cause.example}: {cause.reason}")
    evidence = {"raw": cause.raw, "first difference": cause.first_difference}
    if cause.first_difference is None:
        evidence |= {"got": cause.got, "expected": cause.expected}
    lines += [f"       {name}: {_short(value)}" for name, value in evidence.items() if value is not None]
    if cause.replay:
        lines.append(f"       replay: {cause.replay}")
    return lines


def _soft(report: Report) -> list[str]:
    """Return the soft differences, one line each."""
    return [line for result in report.results if result.verdict == "soft" for line in _shown(result)[:2]]


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
