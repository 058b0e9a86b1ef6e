"""The corpus of `untemplate.check`: byte-exact cases of our own; each holds under every split and every other law."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from untemplate.testing import check

FOLDER = Path(__file__).parents[1] / "src/untemplate/check/corpus"
KEYS = ["id", "format", "reasoning", "tools", "prompt", "finish_reason", "raw", "expect", "why"]
OPTIONAL = {"reasoning", "tools", "prompt", "finish_reason"}
RECORDS: list[dict[str, Any]] = [
    record for path in sorted(FOLDER.glob("*.json")) for record in json.loads(path.read_text("utf-8"))
]


def _name(record: dict[str, Any]) -> str:
    return f"{record['format']}/{record['id']}"


@pytest.mark.parametrize("record", RECORDS, ids=_name)
def test_means_exactly_this(record: dict[str, Any], count: Any) -> None:
    context = {key: record[key] for key in OPTIONAL if key in record}
    parsed = check(record["format"], record["raw"], **context)
    calls = [
        {"name": call.function.name, "arguments": call.function.arguments, "status": call.status}
        for call in parsed.tool_calls
    ]
    got = {
        "reasoning": parsed.reasoning_content or "",
        "content": parsed.content or "",
        "tool_calls": calls,
        "finish_reason": parsed.finish_reason,
    }
    count("corpus", got == record["expect"])
    assert got == record["expect"], record["why"]


def test_records_are_well_formed() -> None:
    """Keys in the order of the README, no key too many, no name twice."""
    for record in RECORDS:
        keys = [key for key in KEYS if key in record]
        assert list(record) == keys, _name(record)
        assert set(KEYS) - set(keys) <= OPTIONAL, _name(record)
        assert list(record["expect"]) == ["reasoning", "content", "tool_calls", "finish_reason"], _name(record)
    names = [_name(record) for record in RECORDS]
    assert sorted(set(names)) == sorted(names)


def test_there_are_enough() -> None:
    assert len(RECORDS) >= 80
    assert len({record["format"] for record in RECORDS}) >= 12
