"""The vectors that were written by hand: each holds under every split and every other law."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from untemplate.testing import check
from untemplate_vectors import vectors

VECTORS = Path(__file__).parents[1] / "vectors"
CONTEXT = ("tools", "prompt", "finish_reason")
RECORDS: list[dict[str, Any]] = [vector for vector in vectors() if "/corpus." in vector["id"]]


@pytest.mark.parametrize(
    "every", [False, pytest.param(True, marks=pytest.mark.exhaustive)], ids=["sample", "every-split"]
)
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["id"])
def test_means_exactly_this(record: dict[str, Any], every: bool, count: Any) -> None:
    parsed = check(
        record["format"], record["output"], cuts=40, exhaustive=every, **{key: record[key] for key in CONTEXT}
    )
    calls = [
        {"name": call.function.name, "arguments": call.function.arguments, "status": call.status}
        for call in parsed.tool_calls
    ]
    got = {"reasoning": parsed.reasoning_content or "", "content": parsed.content or "", "tool_calls": calls}
    count("corpus", got == record["expect"])
    assert got == record["expect"], record["why"]
    runs = bool(calls) and calls[-1]["status"] != "incomplete" and record["finish_reason"] == "stop"
    assert parsed.finish_reason == ("tool_calls" if runs else record["finish_reason"])


def test_cases_are_well_formed() -> None:
    """They follow their schema, and no name is there twice."""
    validator = jsonschema_rs.validator_for(json.loads((VECTORS / "cases.schema.json").read_text("utf-8")))
    names = []
    for path in sorted((VECTORS / "cases").glob("*.json")):
        cases = json.loads(path.read_text("utf-8"))
        assert [str(error) for error in validator.iter_errors(cases)] == [], path.name
        names += [f"{case['format']}/{case['id']}" for case in cases]
    assert sorted(set(names)) == sorted(names)
    assert len(names) == len(RECORDS)


def test_the_schema_refuses_a_case_without_its_message() -> None:
    schema = json.loads((VECTORS / "cases.schema.json").read_text("utf-8"))
    case = {"id": "a", "format": "hermes", "raw": "x", "why": "y"}
    assert not jsonschema_rs.is_valid(schema, [case])


def test_there_are_enough() -> None:
    assert len(RECORDS) >= 80
    assert len({record["format"] for record in RECORDS}) >= 12
