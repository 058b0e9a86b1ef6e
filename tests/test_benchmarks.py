"""The logic of the benchmark harness. Nothing is timed here: figures come from fakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks import compare
from benchmarks.streams import FAMILIES, SHAPES, WAYS, Message, Stream, cut, every, make, scaled, tokens, vocabulary
from benchmarks.worker import ROOT, Worker, WorkerError


def test_every_format_is_measured_in_every_shape_that_it_can_express() -> None:
    found = every(size=256)
    assert {stream.format for stream in found} == set(FAMILIES)
    assert {stream.shape for stream in found} == set(SHAPES)
    assert {stream.way for stream in found} == set(WAYS)
    without_reasoning = {name for name, reasoning in FAMILIES.items() if reasoning is None}
    per_format = {name: sum(stream.format == name for stream in found) for name in FAMILIES}
    assert per_format == {name: 25 if name in without_reasoning else 30 for name in FAMILIES}


def test_a_stream_survives_json() -> None:
    for stream in make("gpt-oss", "gpt-oss", "mixed", size=256):
        assert Stream.from_json(json.loads(json.dumps(stream.to_json()))) == stream


def test_tokens_join_to_the_text_and_special_ones_stay_whole() -> None:
    text = "<think>Two  spaces,\n12345 naïve <tool_call>"
    pieces = tokens(text, ["<think>", "<tool_call>"])
    assert "".join(pieces) == text
    assert pieces[0] == "<think>"
    assert pieces[-1] == "<tool_call>"
    assert vocabulary(pieces, ["<tool_call>"])["<tool_call>"] == 0


@pytest.mark.parametrize(
    ("way", "deltas"),
    [
        ("text", [("a", []), ("b", [])]),
        ("ids", [("a", [1]), ("b", [2])]),
        ("several", [("ab", [1, 2])]),
        ("whole", [("ab", [])]),
        ("whole ids", [("ab", [1, 2])]),
    ],
)
def test_ways_to_cut(way: str, deltas: list[tuple[str, list[int]]]) -> None:
    assert cut(["a", "b"], {"a": 1, "b": 2}, way) == deltas


def test_scaled_text_has_nothing_to_strip() -> None:
    assert scaled("one two ", 17) == "one two one two"


def test_messages_are_compared_without_outer_white_space() -> None:
    one = Message.build("a", " b\n", [("f", '{"x": 1}')])
    assert one.same_as(Message.build("a\n", "b", [("f", '{"x":1}')]))
    assert not one.same_as(Message.build("a", "b", [("f", '{"x": 2}')]))
    assert not one.same_as(Message.build("a", "b", []))
    assert Message.build(None, None, [("f", "{")]).calls == (("f", "{"),)


def test_the_worker_parses_every_shape_rightly() -> None:
    with Worker("benchmarks.adapter", folder=ROOT / "src") as worker:
        assert worker.ask("version")["name"] == "untemplate"
        for stream in every({"hermes": "qwen3", "gemma4": "gemma4"}, size=256):
            assert worker.ask("load", stream=stream.to_json()) == [{"name": "untemplate", "kind": "untemplate"}]
            assert compare.answer(worker, stream).same_as(stream.expected), stream.name


def test_a_worker_reports_what_went_wrong() -> None:
    with Worker("benchmarks.adapter", folder=ROOT / "src") as worker:
        with pytest.raises(WorkerError) as error:
            worker.ask("dance")
        allowed = "version, load, parse, time, prepare"
        assert str(error.value) == f"ValueError: do: 'dance' is not one of: {allowed}"
    with Worker("benchmarks.no_such_adapter") as worker, pytest.raises(WorkerError) as error:
        worker.ask("version")
    assert str(error.value) == "the worker process ended with status 1"


class FakeWorker:
    """Answers with given times, and with the right message unless told otherwise."""

    def __init__(self, times: list[float], stream: Stream, content: str | None = None) -> None:
        self.times = iter(times)
        self.message = {
            "reasoning": "",
            "content": stream.expected.content if content is None else content,
            "calls": [],
        }

    def ask(self, do: str, **details: object) -> object:
        return next(self.times) if do == "time" else {"load": [], "parse": self.message}[do]


def plain() -> Stream:
    return next(make("hermes", "qwen3", "plain", size=256, ways=["text"]))


def test_the_best_of_each_version_counts() -> None:
    stream = plain()
    base, new = FakeWorker([3.0, 2.0], stream), FakeWorker([2.06, 4.0], stream)
    result = compare.compared(stream, [base, new], 2, 0.0)  # type: ignore[list-item]
    assert isinstance(result, compare.Result)
    assert (result.base, result.new) == (2.0, 2.06)


def test_a_doubtful_difference_is_measured_again() -> None:
    stream = plain()
    base, new = FakeWorker([2.0] * 4, stream), FakeWorker([3.0, 3.0, 2.0, 9.0], stream)
    result = compare.compared(stream, [base, new], 2, 0.0)  # type: ignore[list-item]
    assert isinstance(result, compare.Result)
    assert result.ratio == 1.0


def test_a_wrong_answer_is_not_timed() -> None:
    stream = plain()
    base, new = FakeWorker([], stream), FakeWorker([], stream, content="wrong")
    found = compare.compared(stream, [base, new], 2, 0.0)  # type: ignore[list-item]
    assert found == "hermes / plain / text: NEW parses it into another message"


def test_the_order_of_turns_alternates() -> None:
    asked: list[str] = []

    def named(name: str) -> float:
        asked.append(name)
        return 1.0

    assert compare.best_of([lambda: named("a"), lambda: named("b")], 3) == [1.0, 1.0]
    assert asked == ["a", "b", "b", "a", "a", "b"]


def test_a_folder_without_the_package_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as error:
        compare.source_folder(tmp_path)
    assert str(error.value) == f"{tmp_path}: no untemplate package in it, nor in its src folder"
    assert compare.source_folder(ROOT) == ROOT / "src"


def test_the_table_gives_means_by_shape_way_and_format() -> None:
    stream = plain()
    text = compare.table([compare.Result(stream, 1.0, 2.0), compare.Result(stream, 2.0, 1.0)])
    assert text.splitlines()[-1].split() == ["all", "streams", "2", "1.000", "0.500", "2.000"]
    assert text.splitlines()[1].split() == ["shape", "plain", "2", "1.000", "0.500", "2.000"]
