"""Vectors as fixtures of canitoolcall, and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.vectors import DATA
from tests.vectors_rules import load
from untemplate._internal import cli
from untemplate.integrations.canitoolcall import fixture_of, main, vector_of

VECTORS = {vector["id"]: vector for vector in load(DATA)}
CALL = VECTORS["hermes/content-and-call"]


def test_a_vector_as_a_fixture() -> None:
    assert fixture_of(CALL, "Qwen/Qwen3-0.6B", "2") == {
        "id": "hermes/content-and-call", "family": "hermes", "models": ["Qwen/Qwen3-0.6B"], "spec_version": "0.1",
        "provenance": {
            "kind": "spec_example", "source_url": "https://github.com/untemplate/untemplate", "revision": "2",
            "license": "CC0-1.0",
        },
        "tools": CALL["tools"], "raw_output": CALL["output"],
        "expected": {
            "content": "I write it.", "reasoning_content": None,
            "tool_calls": [{"name": "write_file", "arguments": {"path": "notes/a.txt", "text": "Hello, world."}}],
        },
        "tags": ["single-call", "text-before-call", "x-clean"],
        "notes": "What the format's models write for this message. Rules: A1, J1, M3, T2.",
    }  # fmt: skip


@pytest.mark.parametrize(
    "name", ["hermes/ids-spelled", "hermes/cut-in-a-value", "hermes/no-tools", "hermes/corpus.empty"]
)
def test_vectors_that_no_fixture_can_mean(name: str) -> None:
    assert fixture_of(VECTORS[name], "a/b", "2") is None


def test_there_and_back() -> None:
    for vector in VECTORS.values():
        fixture = fixture_of(vector, "a/b", "2")
        if fixture is None:
            continue
        back = vector_of(fixture, vector["format"])
        assert back is not None
        for key in ("format", "tools", "prompt", "output"):
            assert back[key] == vector[key]
        assert {**back["expect"], "tool_calls": 0} == {**vector["expect"], "tool_calls": 0}
        for one, other in zip(back["expect"]["tool_calls"], vector["expect"]["tool_calls"], strict=True):
            assert (one["name"], json.loads(one["arguments"])) == (other["name"], json.loads(other["arguments"]))


def test_an_expected_error_is_no_vector() -> None:
    assert vector_of({"id": "a/b", "expected_error": {}}, "hermes") is None


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--format", "hermes", "--model", "Qwen/Qwen3-0.6B"]) == 0
    fixtures = capsys.readouterr().out
    (tmp_path / "fixtures.jsonl").write_text(fixtures, "utf-8")
    count = len(fixtures.rstrip("\n").split("\n"))
    assert main(["import", "--format", "hermes", "--to", str(tmp_path / "to"), str(tmp_path / "fixtures.jsonl")]) == 0
    assert capsys.readouterr().out == f"{count} of {count} fixtures\n"
    assert cli.main(["conform", "--vectors", str(tmp_path / "to"), "--splits", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["formats"]["hermes"]["right"] == count
