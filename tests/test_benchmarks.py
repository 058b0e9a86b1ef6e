"""The logic of the benchmark harness. Nothing is timed here: figures come from fakes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import asdict
from datetime import date
from pathlib import Path

import pytest

from benchmarks import compare, construction, doors, gateway_profile, instructions, written
from benchmarks.peers import chart, measure, report
from benchmarks.streams import (
    FAMILIES,
    SHAPES,
    WAYS,
    WRITTEN,
    WRITTEN_FAMILIES,
    Message,
    Stream,
    cut,
    every,
    make,
    scaled,
    tokens,
    vocabulary,
)
from benchmarks.worker import ROOT, Worker, WorkerError
from untemplate import OutputParser, ParsedOutput
from untemplate.batch._rows import Record


def test_every_format_is_measured_in_every_shape_that_it_can_express() -> None:
    found = every(size=256)
    assert {stream.format for stream in found} == set(FAMILIES)
    assert {stream.shape for stream in found} == set(SHAPES)
    assert {stream.way for stream in found} == set(WAYS)
    without_reasoning = {name for name, reasoning in FAMILIES.items() if reasoning is None}
    per_format = {name: sum(stream.format == name for stream in found) for name in FAMILIES}
    assert per_format == {name: 30 if name in without_reasoning else 36 for name in FAMILIES}


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
        ("several", [("ab", [])]),
        ("several ids", [("ab", [1, 2])]),
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
    """Answers with given times, and with the right message unless the test sets another."""

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


# -- Peers --------------------------------------------------------------------------------------------------------


def test_only_right_answers_of_a_peer_are_timed() -> None:
    streams = [
        stream
        for shape in ("plain", "reasoning", "one call")
        for stream in make("hermes", "qwen3", shape, size=256, ways=["text", "whole"])
    ]
    growth = [[stream for stream in streams if stream.shape == "plain" and stream.way == "text"]]
    lines: list[str] = []
    found = measure.run(
        ["fake"],
        streams,
        growth,
        rounds=1,
        seconds=0.0,
        write=lines.append,
        start=lambda peer: Worker("tests.fake_peer"),
    )
    assert list(found.versions) == ["untemplate", "fake"]
    assert [(row.name, row.kind, row.parser) for row in found.rows] == [
        ("hermes / plain / text", "fake", "plain"),
        ("hermes / plain / text", "fake, second", "plain"),
    ]
    assert found.wrong == {
        "fake": [
            "hermes / reasoning / text: another message",
            "hermes / one call / text: ValueError: no calls here",
        ]
    }
    assert [row.kind for row in found.growth] == ["fake", "fake, second"]
    assert measure.Results.from_json(json.loads(json.dumps(asdict(found)))) == found


def test_a_peer_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(measure, "environment", lambda peer: tmp_path / "python")
    lines: list[str] = []
    found = measure.run(["vllm", "sglang"], [], [], rounds=1, seconds=0.0, write=lines.append)
    assert found.missing == ["vLLM", "SGLang"]
    assert lines == [
        "vLLM: not installed, left out (`make bench-peers-install`)",
        "SGLang: not installed, left out (`make bench-peers-install`)",
    ]


def test_a_peer_that_does_not_start_is_named() -> None:
    found = measure.run(
        ["fake"],
        [],
        [],
        rounds=1,
        seconds=0.0,
        write=lambda line: None,
        start=lambda peer: Worker("tests.no_such_peer"),
    )
    assert found.missing == ["fake"]


ROWS = [
    measure.Row("hermes", "plain", "ids", 10, "vLLM, older", "hermes", 1e-6, 4e-6),
    measure.Row("hermes", "plain", "ids", 40, "vLLM, older", "hermes", 4e-6, 64e-6),
    measure.Row("gemma4", "20 calls", "whole ids", 1, "vLLM, engine", "gemma4", 4e-6, 2e-6),
]


def test_the_report_has_ratios_slower_streams_and_wrong_answers() -> None:
    assert report.table(ROWS, "peer", lambda row: row.kind) == [
        "| peer | streams | geometric mean | median | least | most | slower than the peer |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| vLLM, engine | 1 | 0.50 | 0.50 | 0.50 | 0.50 | 1 |",
        "| vLLM, older | 2 | 8.00 | 10.00 | 4.00 | 16.00 | 0 |",
    ]
    assert report.slower(ROWS)[2:] == ["| gemma4 / 20 calls / whole ids | vLLM, engine: gemma4 | 4 | 2 | 0.50 |"]
    assert report.slower(ROWS[:2]) == ["None."]
    wrong = {"SGLang": ["hermes / plain / text: another message", "hermes / plain / whole: ValueError: x / y"]}
    assert report.not_timed(wrong)[2:] == ["| SGLang | hermes | plain (2) |"]
    assert report.not_timed({}) == ["None."]


SPACE = "{http://www.w3.org/2000/svg}"


def test_the_page_keeps_what_is_written_by_hand(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    (tmp_path / "pictures").mkdir()
    marks = f"{report.BEGIN}\nold\n{report.END}\n\nBetween.\n\n{report.GROWTH_BEGIN}\nold\n{report.GROWTH_END}"
    page.write_text(f"Before.\n\n{marks}\n\nAfter.\n", "utf-8")
    results = measure.Results({"untemplate": "0"}, [], ROWS, {}, ROWS[:2])
    report.write_page(page, results)
    text = page.read_text("utf-8")
    assert text.startswith(f"Before.\n\n{report.BEGIN}\n\nMeasured on ")
    assert f"{report.END}\n\nBetween.\n\n{report.GROWTH_BEGIN}\n\nMeasured on " in text
    assert text.endswith(f"{report.GROWTH_END}\n\nAfter.\n")
    assert "old\n" not in text
    assert "![CPU time per delta, hermes](pictures/growth-hermes.svg)" in text
    assert "| hermes | vLLM, older | 0.40 | 10 | 1.60 | 40 | ×4.0 |" in text.splitlines()
    drawn = ElementTree.parse(tmp_path / "pictures" / "growth-hermes.svg").getroot()
    names = [element.text for element in drawn.iter(f"{SPACE}text") if element.get("x") == "622"]
    assert names == ["vLLM, older", "untemplate, ids"]
    # A run without ratios leaves theirs in place.
    report.write_page(page, measure.Results({"untemplate": "1"}, growth=ROWS[:2]))
    assert page.read_text("utf-8") == text.replace(
        f"{report.GROWTH_BEGIN}\n\nMeasured on {date.today()}: untemplate 0;",
        f"{report.GROWTH_BEGIN}\n\nMeasured on {date.today()}: untemplate 1;",
    )


def test_a_page_without_a_place_for_the_results_is_an_error(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{report.BEGIN}\n", "utf-8")
    needed = re.escape(f"the page needs the lines {report.BEGIN} and {report.END}")
    with pytest.raises(ValueError, match=f"^{needed}$"):
        report.write_page(page, measure.Results({"untemplate": "0"}, [], ROWS))
    assert page.read_text("utf-8") == f"{report.BEGIN}\n"


def test_a_chart_places_points_on_logarithmic_axes() -> None:
    lines = {"low": [(1, 1), (4, 10), (16, 100)], "high": [(1, 10), (4, 1000)]}
    drawn = ElementTree.fromstring(chart.line_chart("a < b", "Two lines.", "x", "y", lines, ["a & b"]))
    curves = {line.get("class"): line.get("points") for line in drawn.iter(f"{SPACE}polyline")}
    assert curves.pop("grid") is not None
    assert curves == {"c0 curve": "70.0,350.0 330.0,249.3 590.0,148.7", "c1 curve": "70.0,249.3 330.0,48.0"}
    texts = [element.text for element in drawn.iter(f"{SPACE}text")]
    assert texts == [
        *("a < b", "1", "10", "100", "1000", "1", "4", "16", "x", "y"),
        *("high", "low", "a & b"),
    ]


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "deepseek_v31"])
def test_the_charts_of_the_page_are_readable(name: str) -> None:
    """A chart has a text for readers who do not see it, colours for both schemes, and date, versions and machine."""
    root = ElementTree.parse(ROOT / "docs" / "pictures" / f"growth-{name}.svg").getroot()
    assert root.get("aria-labelledby") == "t d"
    assert root.findtext(f"{SPACE}title") == f"{name}: one long argument, one token per delta"
    assert len(root.findtext(f"{SPACE}desc") or "") > 10
    assert "prefers-color-scheme:dark" in (root.findtext(f"{SPACE}style") or "")
    texts = [element.text or "" for element in root.iter(f"{SPACE}text")]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d: untemplate .+", texts[-2])
    assert re.fullmatch(r"\d+ cores of .+, Python 3\.\d+\.\d+", texts[-1])


# -- Before the first delta, and a request through the gateway -----------------------------------------------------


def test_figures_of_two_checkouts_are_side_by_side() -> None:
    assert construction.table({"before": {"a": 0.0123, "b": 2e-6}, "now": {"a": 0.001, "c": 1e-4}}) == (
        "| step | before, µs | now, µs |\n| --- | ---: | ---: |\n| a | 12,300 | 1,000 |\n| b | 2.0 |  |\n| c |  | 100 |"
    )


@pytest.mark.parametrize(
    ("file", "area"),
    [
        ("gateway/src/untemplate_gateway/engines/replay.py", "engine: recorded outputs"),
        ("gateway/src/untemplate_gateway/protocols/chat/request.py", "reading the request"),
        ("gateway/src/untemplate_gateway/protocols/chat/response.py", "writing the answer"),
        ("gateway/src/untemplate_gateway/app.py", "routes, access, limits, frames of the stream"),
        ("src/untemplate/templates/_sandbox.py", "prompt: the chat template"),
        ("src/untemplate/_internal/machine/machine.py", "parser"),
        ("site-packages/uvicorn/protocols/http/httptools_impl.py", "HTTP server and sockets"),
        ("python3.11/json/decoder.py", None),
    ],
)
def test_a_file_belongs_to_an_area(file: str, area: str | None) -> None:
    assert gateway_profile.area_of(file) == area


def test_the_parts_of_a_profile_exist() -> None:
    for part, _ in gateway_profile.AREAS:
        if part.startswith("untemplate"):
            assert any((ROOT / folder / part).exists() for folder in ("src", "gateway/src")), part


def test_the_cost_of_a_request_is_shared_out() -> None:
    found = {"one": (1e-3, {"a": 0.75, "b": 0.25}), "two": (2e-3, {"b": 1.0})}
    assert gateway_profile.table(found) == (
        "| area | one, µs | two, µs |\n"
        "| --- | ---: | ---: |\n"
        "| b | 250 | 2000 |\n"
        "| a | 750 | 0 |\n"
        "| all | 1000 | 2000 |"
    )


# -- Instruction counts -------------------------------------------------------------------------------------------


def test_a_rise_over_the_limit_fails(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    lines: list[str] = []

    def check(found: dict[str, int], *, update: bool = False) -> int:
        lines.clear()
        return instructions.check(record, "callgrind", found, update=update, write=lines.append)

    assert check({"a": 1000}) == 0
    assert lines[-1] == "not compared: the record is for another counter; --update writes a new one"
    assert check({"a": 1000}, update=True) == 0
    assert lines[-1] == "recorded in record.json"
    assert check({"a": 1050, "b": 1}) == 0
    assert [line.split() for line in lines[1:]] == [["a", "1,050", "+5.0%"], ["b", "1", "new"]]
    assert check({"a": 1051}) == 1
    assert lines[1].split() == ["a", "1,051", "+5.1%", "ROSE"]
    assert lines[-1] == (
        "a figure rose by more than 5 %; if that is meant, record it: make bench-check OPTIONS=--update"
    )


def test_figures_of_another_python_are_not_compared(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    record.write_text(json.dumps({"callgrind": {"python": "CPython 2.7", "instructions": {"a": 1}}}), "utf-8")
    lines: list[str] = []
    assert instructions.check(record, "callgrind", {"a": 5}, update=False, write=lines.append) == 0
    assert lines[-1] == "not compared: the record is for CPython 2.7; --update writes a new one"


def test_opcodes_are_the_same_in_every_run() -> None:
    def work() -> None:
        sum(number * 2 for number in range(10))

    assert instructions.opcodes(work) == instructions.opcodes(work) > 50


def test_the_recorded_streams_exist() -> None:
    names = [stream["name"] for stream in instructions.chosen()]
    assert names == [
        f"{format} / {shape} / {way}" for (format, shape), ways in instructions.CHOSEN.items() for way in ways
    ]
    recorded = json.loads(instructions.RECORD.read_text("utf-8"))
    assert list(recorded["callgrind"]["instructions"]) == [*names, *instructions.NAMES]


def test_every_way_in_takes_the_answer() -> None:
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        prepared = doors.every(loop)
        assert tuple(prepared) == instructions.NAMES
        found = {name: prepare()() for name, prepare in prepared.items()}
    collected = found["stream, collected"]
    assert isinstance(collected, ParsedOutput)
    assert collected.tools_called
    assert collected == OutputParser.named("hermes", reasoning="qwen3").parse(doors.OUTPUT, seed=1)
    assert (found["parse_streaming"], found["parse_delta"]) == (None, None)  # all had come before
    row = found["batch, a row"]
    assert isinstance(row, Record)
    assert row.error is None
    whole, streamed = found["gateway, whole"], found["gateway, streamed"]
    assert isinstance(whole, bytes)
    assert b'"finish_reason":"stop"' in whole
    assert isinstance(streamed, bytes)
    assert b'"finish_reason":"tool_calls"' in streamed


def test_texts_that_models_write_are_expressible() -> None:
    found = written.written(size=256, ways=["text"])
    assert {stream.shape for stream in found} == set(WRITTEN)
    assert {stream.format for stream in found} == set(WRITTEN_FAMILIES)
    assert not {stream.name for stream in found} & {stream.name for stream in every(WRITTEN_FAMILIES, size=256)}


def test_costs_of_written_text_are_multiples_of_prose() -> None:
    rows = [("hermes", "prose", [1e-6, 2e-6]), ("hermes", "list", [2e-6, 3e-6])]
    assert written.table(rows, ["before", "now"]) == (
        "| format | text | before, µs | × prose | now, µs | × prose |\n"
        "| --- | --- | ---: | ---: | ---: | ---: |\n"
        "| hermes | prose | 1.00 | 1.00 | 2.00 | 1.00 |\n"
        "| hermes | list | 2.00 | 2.00 | 3.00 | 1.50 |"
    )
