"""The report as JUnit XML, for continuous integration."""

from __future__ import annotations

import json
import re
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from ._causes import cause_of
from ._model import Report, Result

_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow, not even escaped."""


def junit(report: Report) -> str:
    """Return the report as one test suite. Checks that cannot be done are skipped tests, soft differences pass."""
    counts = f'tests="{len(report.results)}" failures="{report.count("fail")}" skipped="{report.count("cannot")}"'
    name = quoteattr(_allowed(f"untemplate check {report.url}"))
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append(
        f'<testsuite name={name} {counts} errors="0" time="{report.seconds:g}" timestamp="{report.date[:19]}">'
    )
    lines += [_case(result) for result in report.results]
    return "\n".join([*lines, "</testsuite>", ""])


def _case(result: Result) -> str:
    group, _, name = result.id.partition("/")
    inner = ""
    message = quoteattr(_allowed(result.reason))
    if result.verdict == "fail":
        evidence = json.dumps(
            {
                "raw": result.raw,
                "got": result.got,
                "expected": result.expected,
                "first difference": result.first_difference,
                "issue": result.issue,
                "replay": result.replay,
            },
            ensure_ascii=False,
            indent=1,
        )
        kind = quoteattr(_allowed(cause_of(result)))
        inner = f"<failure type={kind} message={message}>{escape(_allowed(evidence))}</failure>"
    elif result.verdict == "cannot":
        inner = f"<skipped message={message}/>"
    elif result.reason:
        inner = f"<system-out>{escape(_allowed(result.reason))}</system-out>"
    attributes = f"classname={quoteattr(_allowed(group))} name={quoteattr(_allowed(name))}"
    return f"<testcase {attributes}>{inner}</testcase>"


def _allowed(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
