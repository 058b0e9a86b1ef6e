"""The catalogue against analysis: entries that rest on a public template certify against it, and what the two say
differently is printed."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from tests.public import SHARED, needs_templates
from untemplate.analysis import Prepared, prepare
from untemplate.analysis._pipeline import analyze_template
from untemplate.format import Format
from untemplate.formats import named
from untemplate.formats._registry import Entry, entries
from untemplate.templates import ChatTemplate

CERTIFIED = 41

pytestmark = needs_templates


@cache
def prepared(name: str) -> Prepared:
    return prepare(ChatTemplate.load(SHARED / "templates" / name))


def resting() -> list[tuple[Entry, str]]:
    """Tool entries and the templates that they rest on."""
    found = []
    for entry in entries():
        for evidence in entry.evidence:
            name = evidence.source.rpartition("/")[2]
            if entry.kind == "tool" and evidence.kind == "template" and (SHARED / "templates" / name).exists():
                found.append((entry, name))
    return found


def with_reasoning(entry: Entry, name: str) -> Format:
    """The entry together with the reasoning entry that rests on the same template, if there is one."""
    for other in entries():
        if other.kind == "reasoning" and any(evidence.source.endswith(name) for evidence in other.evidence):
            return named(entry.name, reasoning=other.name)
    return entry.format


def test_entries_certify_against_the_templates_they_rest_on(capsys: pytest.CaptureFixture[str]) -> None:
    failed = []
    for entry, name in resting():
        certificate = prepared(name).certify(with_reasoning(entry, name))
        if not certificate.certified:
            wrong = [k for k, v in certificate.capabilities.items() if v == "failed"]
            failed.append(f"{entry.name} on {name}: {', '.join(wrong)}; {certificate.failed[0].problem[:100]}")
    with capsys.disabled():
        print(f"\n{len(resting()) - len(failed)} of {len(resting())} catalogue entries certify against their templates")
        for line in failed:
            print(f"  {line}")
    assert len(resting()) - len(failed) >= CERTIFIED


def flat(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, dict) and "text" in value:
        return {path: value["text"].strip()}
    if isinstance(value, dict):
        return {k: v for key, item in value.items() for k, v in flat(item, f"{path}.{key}" if path else key).items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return flat(value[0], path)
    return {path: value.strip() if isinstance(value, str) else value}


def test_what_the_two_say_differently(capsys: pytest.CaptureFixture[str]) -> None:
    ignored = ("name", "version", "special_tokens", "turn.end", "turn.start", "accepted", "optional")
    with capsys.disabled():
        print()
        for entry, name in resting():
            mine = flat(json.loads(analyze_template(prepared(name).template, prepared(name)).format.to_json()))
            theirs = flat(json.loads(with_reasoning(entry, name).to_json()))
            keys = [k for k in {**mine, **theirs} if mine.get(k) != theirs.get(k) and not any(i in k for i in ignored)]
            if keys:
                said = "; ".join(f"{k}: inferred {mine.get(k)!r}, catalogue {theirs.get(k)!r}" for k in keys)
                print(f"  {name} / {entry.name}: {said}")
