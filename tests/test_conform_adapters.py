"""The parts of the adapters of other projects' parsers that need none of these projects."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.conform import __main__ as matrix
from benchmarks.conform.program import Unsupported, stream_of
from tests.vectors import DATA
from tests.vectors_rules import load
from untemplate._internal.conform import Outcome, Result

FORM = {"turn": {"end": {"text": "<e>", "accepted": ["<f>"]}}, "special_tokens": ["<e>", "<tool>"]}
REQUEST: dict[str, Any] = {"format": "hermes+qwen3", "tools": [{}], "pieces": ["a <to", "ol>b", "<e> \n<f>"]}


def test_cuts_are_moved_to_the_ends_of_tokens_and_the_turn_has_no_end() -> None:
    stream = stream_of(REQUEST, FORM, ids=True)
    assert [text for text, _ in stream["deltas"]] == ["a <tool>", "b"]
    numbers = stream["vocabulary"]
    assert stream["deltas"][0][1] == [numbers["a"], numbers[" "], numbers["<tool>"]]
    assert (stream["format"], stream["way"], stream["special"]) == ("hermes", "split", ["<e>", "<tool>"])


def test_token_by_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["adapter", "0", "tokens"])
    stream = stream_of({**REQUEST, "pieces": ["a <tool>b"]}, FORM, ids=False)
    assert stream["deltas"] == [("a", ()), (" ", ()), ("<tool>", ()), ("b", ())]
    assert stream["way"] == "split"


def test_tokens_of_a_vector() -> None:
    request = {**REQUEST, "tokens": [[["x", False], ["<new>", True]]]}
    assert "<new>" in stream_of(request, FORM, ids=True)["special"]
    with pytest.raises(Unsupported, match="it gets text only"):
        stream_of(request, FORM, ids=False)


def test_calls_that_servers_may_treat_differently_do_not_count() -> None:
    counted = matrix.counted(load(DATA))
    assert len(counted) > 3000
    assert {call["status"] for one in counted for call in one["expect"]["tool_calls"]} == {"ok", "recovered"}


def result(fmt: str, outcome: Outcome) -> Result:
    return Result(f"{fmt}/x", fmt, "clean", outcome)


def test_a_parser_of_another_variant_is_not_counted() -> None:
    vectors = [{"level": "clean", "expect": {"tool_calls": [1]}}] * 2
    results = [result("a", Outcome.RIGHT), result("b", Outcome.WRONG)]
    reads = matrix.formats_read(vectors, results)
    assert reads == {"a"}
    assert [one.outcome for one in matrix.only(reads, results)] == [Outcome.RIGHT, Outcome.UNSUPPORTED]


def test_the_best_setting_counts_and_space_is_shown() -> None:
    one, other = [result("a", Outcome.WRONG)], [result("a", Outcome.SPACE)]
    assert matrix.cell(matrix.best([one, other])) == "0 (+1) of 1"
    assert matrix.cell([result("a", Outcome.UNSUPPORTED)]) == "–"


def test_every_peer_has_an_adapter_of_its_number_of_settings() -> None:
    for peer in matrix.PEERS:
        text = (Path(matrix.__file__).parent / f"{peer.module}.py").read_text("utf-8")
        assert len(text.splitlines()) < 100
        assert "SETTINGS" in text
