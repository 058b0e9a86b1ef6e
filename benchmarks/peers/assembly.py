"""Put streamed parts of a message together, for adapters of parsers that emit OpenAI's deltas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Part = tuple[str | None, str | None, Iterable[tuple[int, str | None, str | None]]]
"""Reasoning, content, and pieces of calls as (index, name, arguments)."""


def message(parts: Iterable[Part]) -> dict[str, Any]:
    """Return reasoning, content and calls; names and arguments of one index are joined."""
    reasoning, content = "", ""
    calls: dict[int, list[str]] = {}
    for more_reasoning, more_content, pieces in parts:
        reasoning += more_reasoning or ""
        content += more_content or ""
        for index, name, arguments in pieces:
            call = calls.setdefault(index, ["", ""])
            call[0] += name or ""
            call[1] += arguments or ""
    return {"reasoning": reasoning, "content": content, "calls": [calls[index] for index in sorted(calls)]}
