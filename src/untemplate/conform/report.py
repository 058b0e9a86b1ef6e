"""What a run over the vectors shows: counts by level and by format, and the smallest failures first."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final
from xml.sax.saxutils import quoteattr

from .run import Outcome, Result

__all__ = ["Report", "report_of"]

Counts = dict[str, dict[str, int]]
_COLOURS: Final = ((100.0, "brightgreen"), (95.0, "green"), (80.0, "yellow"), (0.0, "red"))


@dataclass(frozen=True, slots=True)
class Report:
    """The results of a run.

    Attributes:
        results: one for each vector.
        levels, formats: the number of vectors by level or format, then by outcome.
        new: failures that are not known; all failures, where none are.
        mended: known failures that are right now.
    """

    results: tuple[Result, ...]
    levels: Counts
    formats: Counts
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
            "formats": self.formats,
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


def _printable(text: str) -> str:
    """Return the text without characters that XML does not allow."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def report_of(results: Iterable[Result], known: Collection[str] = ()) -> Report:
    """Return the report of a run. ``known``: ids of vectors that the parser is known to get wrong."""
    found = tuple(results)
    levels: Counts = {}
    formats: Counts = {}
    for result in found:
        for counts, key in ((levels, result.level), (formats, result.format)):
            one = counts.setdefault(key, dict.fromkeys(Outcome, 0))
            one[result.outcome] += 1
    failed = [r for r in found if r.outcome in (Outcome.WRONG, Outcome.SPACE)]
    new = sorted((r for r in failed if r.id not in known), key=lambda r: sum(map(len, r.pieces)))
    mended = tuple(r.id for r in found if r.id in known and r.outcome is Outcome.RIGHT)
    return Report(found, dict(sorted(levels.items())), dict(sorted(formats.items())), tuple(new), mended)
