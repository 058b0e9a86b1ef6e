"""The verifier's data set: its lines are asked as they are, and its figures are counted as it counts them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from untemplate._internal.cli import main
from untemplate.check import Result
from untemplate.check._vendor import read_samples, totals

from .fakes import fake
from .hostile import serving
from .test_hostile import check

TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "parameters": {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
    },
}
CALLS = '<tool_call>\n{"name": "look", "arguments": {"at": "sea"}}\n</tool_call>'
WRONG = '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'


def written(path: Path, *lines: Any) -> str:
    path.write_text("".join(f"{json.dumps(line)}\n" if line else "\n" for line in lines))
    return str(path)


def sample(text: str, **fields: Any) -> dict[str, Any]:
    """Return a request that the fake server answers with a text."""
    messages = [{"role": "_input", "content": "Be brief."}, {"role": "user", "content": "Go."}]
    return {"messages": messages, "tools": [TOOL], "structured_outputs": {"choice": [text]}, **fields}


def test_the_figures(tmp_path: Path) -> None:
    path = written(
        tmp_path / "samples.jsonl", sample(CALLS, model="kimi", stream=True), None, sample(WRONG), sample("Hi")
    )
    results = [{"data_index": n, "status": "success", "finish_reason": r} for n, r in ((1, "tool_calls"), (3, "stop"))]
    late = {"data_index": 4, "status": "failed", "finish_reason": "tool_calls"}
    samples = read_samples(path, written(tmp_path / "results.jsonl", *results, late))
    assert [one.calls for one in samples] == [True, False, None]
    with serving(fake("vllm")) as server:
        report = check(server.url, vendor="kimi", samples=samples, only=("vendor/",))
    first, second, third, accuracy, similarity = report.results
    assert first.counts == {"finish_reason": "tool_calls", "valid": True, "reference": True}
    assert (second.verdict, second.reason) == ("soft", "$.at: is required")
    assert third.counts == {"finish_reason": "stop", "valid": False, "reference": None}
    assert (accuracy.verdict, accuracy.reason) == ("fail", "1 of 2 answers with calls do not fit")
    assert accuracy.counts["schema_accuracy"] == "1 of 2 (9–91 %)"
    assert similarity.counts == {"tool_call_f1": 0.667, "hits": 1, "wrong": 1, "missed": 0}
    assert (similarity.verdict, similarity.reason) == ("soft", "F1 is 0.67, under the verifier's 0.8")


def test_a_request_is_sent_as_the_verifier_sends_it(tmp_path: Path) -> None:
    asked = []

    def answer(path: str, request: dict[str, Any]) -> bytes:
        asked.append(request)
        return fake("vllm")(path, request)

    samples = read_samples(
        written(tmp_path / "samples.jsonl", sample(CALLS, model="kimi", stream=True, temperature=0.6))
    )
    with serving(answer) as server:
        check(server.url, vendor="kimi", samples=samples, only=("vendor/",))
    last = asked[-1]
    assert (last["model"], last["stream"], last["temperature"]) == ("m", True, 0.6)
    assert [message["role"] for message in last["messages"]] == ["system", "user"]


@pytest.mark.parametrize(("model", "verdict"), [("kimi-k2-0905", "soft"), ("Kimi-K2-Thinking", "pass")])
def test_the_least_similarity_depends_on_the_model(model: str, verdict: str) -> None:
    def result(called: bool, wanted: bool) -> Result:
        counts = {"finish_reason": "tool_calls" if called else "stop", "valid": called, "reference": wanted}
        return Result(id="vendor/kimi/sample 1", verdict="pass", counts=counts)

    results = [result(True, True)] * 3 + [result(True, False), result(False, True)]
    similarity = totals(model, results)[1]
    assert (similarity.counts["tool_call_f1"], similarity.verdict) == (0.75, verdict)


def test_without_answers_nothing_is_claimed() -> None:
    assert [(one.verdict, one.reason) for one in totals("m", [])] == [
        ("cannot", "no output has calls"),
        ("cannot", "no answers of a reference are known"),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "line 1: not JSON"),
        ("\n[]", "line 2: not an object"),
        ('{"messages": "hi"}', "line 1: needs 'messages', a list"),
        ("\n", "no samples in it"),
        ('{"messages": [], "tools": [{"type": "function"}]}', "line 1: tools[0].name: is required"),
    ],
)
def test_a_wrong_file(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(f"{path}") + ",? ?:? ?" + re.escape(problem)):
        read_samples(str(path))


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--samples", "x"], "--samples: needs --vendor, the profile that they belong to"),
        (
            ["--vendor", "kimi", "--reference", "x"],
            "--reference: needs --samples, the requests that it has results for",
        ),
        (["--vendor", "kimi", "--samples", "/nowhere"], "/nowhere: No such file or directory"),
    ],
)
def test_wrong_options(options: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--base-url", "http://127.0.0.1:1", *options]) == 2
    assert capsys.readouterr().err == f"untemplate: error: {line}\n"
