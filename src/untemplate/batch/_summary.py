"""Figures about records: outcomes, statuses of calls, diagnostics, formats, tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ._rows import Record

__all__ = ["Summary"]

_MOST_NAMES: Final = 1_000
_FEWEST_ROWS: Final = 100
"""Fewest parsed rows of which a part that never occurs is reported."""
_OTHERS: Final = "(others)"
"""Models can write any name of a tool, so only so many are counted by name."""

_GUESS: Final = "untemplate guess shows whether the format is right"
_UNTYPED: Final = "their arguments are text, whatever type the tool declares; --tools-column names the column of tools"
_ADVICE: Final = {"stray_close": "if the prompts open reasoning, give the column with the prompts"}
"""Code → what to do if most rows have it."""


class Summary(msgspec.Struct):
    """Figures about records.

    ``clean`` rows have content or a call, no error, no diagnostic and no call whose status is not ``ok``. ``flawed``
    ones have a message and are not clean; ``errors`` are rows without a message. ``problems`` counts errors by column
    and code.
    """

    rows: int = 0
    clean: int = 0
    flawed: int = 0
    errors: int = 0
    calls: int = 0
    reasoning: int = 0
    """Rows with reasoning."""
    content: int = 0
    """Rows with content."""
    unanswered: int = 0
    """Rows with neither content nor a call: empty outputs, and those that end in reasoning."""
    finish_reasons: dict[str, int] = {}
    statuses: dict[str, int] = {}
    diagnostics: dict[str, int] = {}
    flawed_rows: dict[str, int] = {}
    """Rows with each diagnostic."""
    formats: dict[str, int] = {}
    tools: dict[str, int] = {}
    problems: dict[str, int] = {}
    untyped: int = 0
    """Rows with calls whose values have no types, because the row has no tools; of a run, not of its records."""

    def add(self, record: Record) -> None:
        """Count one record."""
        self.rows += 1
        error = record.error
        if error is not None:
            self.errors += 1
            _count(self.problems, f"{error.column}: {error.code}" if error.column else error.code)
            return
        message = record.message or {}
        answered = self._add_message(message)
        if record.format:
            _count(self.formats, record.format)
        _count(self.finish_reasons, record.finish_reason)
        for status in record.statuses:
            _count(self.statuses, status)
        for diagnostic in record.diagnostics:
            _count(self.diagnostics, diagnostic.code)
        for code in {diagnostic.code for diagnostic in record.diagnostics}:
            _count(self.flawed_rows, code)
        flawed = not answered or bool(record.diagnostics) or any(status != "ok" for status in record.statuses)
        self.flawed += flawed
        self.clean += not flawed

    def _add_message(self, message: Mapping[str, Any]) -> bool:
        """Count the parts of a message. Return True if it has content or a call."""
        content = message.get("content")
        self.content += bool(content)
        self.reasoning += "reasoning" in message or "reasoning_content" in message
        for call in message.get("tool_calls", ()):
            self.calls += 1
            _count(self.tools, call["function"]["name"])
        answered = bool(message.get("tool_calls") or (content or "").strip())
        self.unanswered += not answered
        return answered

    def merge(self, other: Summary) -> None:
        """Add the figures of other records."""
        for name in self.__struct_fields__:
            own, more = getattr(self, name), getattr(other, name)
            if isinstance(own, int):
                setattr(self, name, own + more)
            else:
                for key, count in more.items():
                    _count(own, key, count)

    @property
    def failed(self) -> bool:
        """True if a row has an error, or a call is not ``ok``."""
        return self.errors > 0 or any(status != "ok" for status in self.statuses)

    def doubts(self) -> list[str]:
        """Return signs of a wrong format (a part that never occurs, a diagnostic of most rows), and of tools that are
        missing."""
        parsed = self.rows - self.errors
        untyped = [f"calls in {self.untyped:,} rows without tools: {_UNTYPED}"] if self.untyped else []
        if parsed < _FEWEST_ROWS:
            return untyped
        parts = {"reasoning": self.reasoning, "content": self.content, "calls": self.calls}
        missing = " and ".join(part for part, count in parts.items() if not count)
        found = untyped
        found += [f"{missing} in 0 of {parsed:,} rows; if the model writes any, {_GUESS}"] if missing else []
        for code, rows in self.flawed_rows.items():
            if 2 * rows > parsed:
                advice = _ADVICE.get(code, _GUESS)
                found.append(f"{code} in {rows:,} of {parsed:,} rows; {advice}")
        return found

    def tables(self) -> dict[str, dict[str, int]]:
        """Return the figures by heading, the largest first; headings without figures are left out."""
        unanswered = {"neither content nor calls": self.unanswered} if self.unanswered else {}
        tables = {
            "rows": {"clean": self.clean, "flawed": self.flawed, "errors": self.errors},
            "parts": {"reasoning": self.reasoning, "content": self.content, "calls": self.calls, **unanswered},
            "finish reasons": self.finish_reasons,
            "statuses of calls": self.statuses,
            "diagnostics": self.diagnostics,
            "errors": self.problems,
            "formats": self.formats,
            "tools": self.tools,
        }
        by_count = {
            head: dict(sorted(table.items(), key=lambda item: (-item[1], item[0]))) for head, table in tables.items()
        }
        return {head: table for head, table in by_count.items() if table}


def _count(counts: dict[str, int], key: str, count: int = 1) -> None:
    if key not in counts and len(counts) >= _MOST_NAMES:
        key = _OTHERS
    counts[key] = counts.get(key, 0) + count
