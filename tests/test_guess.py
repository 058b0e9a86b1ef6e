"""Ranking the formats for an output."""

from __future__ import annotations

import json
import logging
import random
from pathlib import Path
from typing import Any

import pytest

from untemplate import OutputParser
from untemplate._internal.backends.recognition import markers_in
from untemplate._internal.cli import main
from untemplate._internal.guess import Sample, guess, guess_many, meaning
from untemplate.formats import half, named
from untemplate.formats._registry import markers

from .public import CASES, NO_CASES

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]
CALL = {"id": "functions.get_weather:0", "function": {"name": "get_weather", "arguments": {"city": "Paris"}}}
NAMES = ["hermes", "mistral", "qwen3_coder", "kimi_k2", "deepseek_v31", "gpt-oss", "gemma4", "lfm2", "minimax_m2"]


@pytest.mark.parametrize("name", NAMES)
def test_the_best_format_reads_what_the_format_means(name: str) -> None:
    parser = OutputParser.named(name)
    raw = parser.render({"role": "assistant", "tool_calls": [CALL]})
    ranked = guess(raw, TOOLS)
    mine = next(one for one in ranked if one.name == name)
    best = ranked[0]
    assert best.is_evident
    assert (best.left_over, best.calls, best.problems) == (mine.left_over, mine.calls, mine.problems) == (0, 1, 0)
    assert [call.function for call in best.parsed.tool_calls] == [call.function for call in mine.parsed.tool_calls]
    assert best.rank <= mine.rank


def test_reasoning_is_found_too() -> None:
    raw = "<think>\nHm.\n</think>\n\n" + OutputParser.named("hermes").render({"tool_calls": [CALL]})
    best = guess(raw, TOOLS)[0]
    assert (best.name, best.parsed.reasoning, best.calls, best.left_over) == ("hermes", "Hm.", 1, 0)
    assert best.reasoning is not None


def test_of_equal_readings_one_that_begins_in_content_comes_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A format that begins in reasoning takes a plain answer for reasoning, without a word."""
    raw = "<think>\nHm.\n</think>\n\n" + OutputParser.named("hermes").render({"tool_calls": [CALL]})
    file = tmp_path / "output.txt"
    file.write_text(raw, "utf-8")
    assert main(["guess", str(file)]) == 0
    row = capsys.readouterr().out.splitlines()[1].split()
    assert row[:5] == ["hermes+qwen3", "1", "0", "0", "yes"]
    assert OutputParser.named(row[0]).parse("Hello there.").content == "Hello there."


@pytest.mark.parametrize("reasoning", ["<think>Hm.</think>", "<think>\nHm.\n</think>\n\n"])
def test_the_reasoning_that_is_added_keeps_a_plain_answer(reasoning: str) -> None:
    for name in NAMES:
        raw = reasoning + OutputParser.named(name).render({"tool_calls": [CALL]})
        best = guess(raw, TOOLS)[0]
        if best.reasoning is not None:
            assert OutputParser.named(best.format).parse("Hello there.").content == "Hello there.", (name, best.format)


def test_reasoning_that_nothing_closes_is_found_too() -> None:
    raw = "<think>\nI call the tool.\n\n" + OutputParser.named("hermes").render({"tool_calls": [CALL]})
    best = guess(raw, TOOLS)[0]
    assert (best.format, best.parsed.reasoning, best.calls, best.left_over) == (
        "hermes+qwen3",
        "I call the tool.",
        1,
        0,
    )


def test_a_close_too_many_is_explained_by_the_format_that_reports_it() -> None:
    """Otherwise a format that takes it without a word comes first, and hides the slips of the model."""
    raw = OutputParser.named("hermes").render({"tool_calls": [CALL]}) + "\n</tool_call>"
    best = guess(raw, TOOLS)[0]
    assert (best.format, [d.code for d in best.parsed.diagnostics]) == ("hermes", ["stray_close"])
    rows = [Sample(f"<think>\nHm.\n</think>\n\n{raw if i < 5 else HERMES % i}") for i in range(30)]
    assert guess_many(rows)[0].format == "hermes+qwen3"


def test_a_close_that_a_stop_string_took_away_says_nothing_against_a_format() -> None:
    assert guess('<tool_call>\n{"name": "f", "arguments": {}}')[0].format == "hermes"


def test_plain_text_fits_every_format() -> None:
    assert not guess("Hello.")[0].is_evident


def test_a_text_is_needed() -> None:
    with pytest.raises(TypeError, match=r"^guess\(\) text: expected str, got bytes: b'x'$"):
        guess(b"x")  # type: ignore[arg-type]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "output.txt"
    file.write_text('<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>', "utf-8")
    assert main(["guess", str(file)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split() == ["FORMAT", "CALLS", "PROBLEMS", "MARKERS", "LEFT", "REASONING", "ENGINES"]
    assert shown[1].split() == ["hermes", "1", "0", "0", "no", "7"]
    assert (len(shown), shown[-1]) == (13, "--format hermes")
    assert main(["guess", str(file), "--json"]) == 0
    first = json.loads(capsys.readouterr().out)[0]
    assert (first["format"], first["calls"], first["markers_left"]) == ("hermes", 1, 0)
    assert first["message"]["tool_calls"][0]["function"] == {"name": "f", "arguments": "{}"}


def test_the_command_with_text_that_tells_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "output.txt"
    file.write_text("Hello.", "utf-8")
    assert main(["guess", str(file)]) == 0
    assert capsys.readouterr().err == (
        "untemplate: the output has no marker or call of any format, so every format reads it as content\n"
    )


UNKNOWN = [
    ('<think>Hm.</think>\n<my_call>{"name": "f", "arguments": {}}</my_call>', '<my_call>{"name": "f", "arguments": {'),
    ("<fn name=f><p k=x>1</p></fn><|im_end|>", "<fn name=f>"),
]


@pytest.mark.parametrize(("raw", "unread"), UNKNOWN)
def test_calls_of_a_family_that_is_not_known(
    raw: str, unread: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A format that reads only what is around them is not the model's own."""
    file = tmp_path / "output.txt"
    file.write_text(raw, "utf-8")
    assert main(["guess", str(file)]) == 0
    shown = capsys.readouterr()
    assert "--format " not in shown.out
    assert shown.err == (
        f"untemplate: no format reads {unread!r}; if that is a call, use the model's template (--template), or "
        "describe a Format (--format FILE.json)\n"
    )
    assert main(["parse", str(file)]) == 2


def test_prose_with_tags_after_reasoning_is_no_call() -> None:
    best = guess("<think>Hm.</think>\nWrite <b>this</b>.")[0]
    assert (best.is_evident, best.unread) == (True, "")


def test_a_file_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["guess", "/nowhere"]) == 2
    assert capsys.readouterr().err == "untemplate: error: FILE /nowhere: No such file or directory\n"


# -- Many outputs -------------------------------------------------------------------------------------------------

THINKING = "<think>\nHm.\n</think>\n\n"
HERMES = '<tool_call>\n{"name": "f", "arguments": {"x": %d}}\n</tool_call>'


def _rows(tmp_path: Path, outputs: list[str]) -> Path:
    file = tmp_path / "outputs.jsonl"
    file.write_text("".join(json.dumps({"id": i, "output": text}) + "\n" for i, text in enumerate(outputs)), "utf-8")
    return file


def test_one_format_reads_what_single_outputs_leave_open() -> None:
    outputs = ["Hello.", THINKING + "Hi.", HERMES % 1, "Fine."]
    ranked = guess_many([Sample(text) for text in outputs])
    assert ranked[0].format == "hermes+qwen3"
    assert [meaning(parsed) for parsed in ranked[0].readings] == [
        ("", "Hello.", ()),
        ("Hm.", "Hi.", ()),
        ("", "", (("f", '{"x": 1}'),)),
        ("", "Fine.", ()),
    ]


def test_markers_in_reasoning_count_as_left_over() -> None:
    """A format that takes the whole output for reasoning leaves nothing in content."""
    raw = OutputParser.named("kimi_k2").render({"role": "assistant", "tool_calls": [CALL]})
    by_name = {one.name: one for one in guess(raw, TOOLS)}
    assert by_name["kimi_k2"].left_over == 0
    assert by_name["deepseek_r1"].left_over > 0


def test_many_outputs_are_all_read() -> None:
    """Of many outputs, the formats that read a few of them best read all."""
    outputs = [HERMES % i for i in range(200)]
    outputs[170] = "<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call>"
    best = guess_many([Sample(text) for text in outputs])[0]
    assert (best.format, best.calls, len(best.readings)) == ("hermes", 199, 200)


def test_a_damaged_call_is_no_evidence_for_a_more_lenient_format() -> None:
    outputs = [HERMES % i for i in range(19)]
    outputs.append('{"name": "f", "arguments": {"x": 1}}\n</tool_call>')
    assert guess_many([Sample(text) for text in outputs])[0].format == "hermes"


def test_the_command_with_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _rows(tmp_path, ["Hello.", THINKING + "Hi.", HERMES % 1])
    assert main(["guess", str(file)]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    heads = ["FORMAT", "CALLS", "PROBLEMS", "MARKERS LEFT", "REASONING", "DIFFERS IN ROW", "SAME READING"]
    assert lines[0].split() == " ".join(heads).split()
    assert lines[1].split()[:6] == ["hermes+qwen3", "1", "0", "0", "1", "-"]
    second = lines[2].split()[0]
    at = lines.index(next(line for line in lines if line.startswith("row ")))
    assert lines[at].endswith(f"as hermes+qwen3 and {second} read it:")
    assert lines[at + 1].startswith("  hermes+qwen3: ")
    assert lines[at + 2].startswith(f"  {second}: ")
    assert (lines[-1], err) == ("--format hermes+qwen3", "")
    assert main(["guess", str(file), "--json"]) == 0
    first, second_group = json.loads(capsys.readouterr().out)[:2]
    assert (first["format"], first["differs_in_row"]) == ("hermes+qwen3", None)
    assert isinstance(second_group["same_reading"], list)


def test_the_command_says_how_many_rows_it_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _rows(tmp_path, [HERMES % i for i in range(3)])
    assert main(["guess", str(file), "--rows", "2"]) == 0
    assert capsys.readouterr().err == "untemplate: read the first 2 rows (--rows)\n"


def test_rows_that_tell_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _rows(tmp_path, ["Hello.", "Bye."])
    assert main(["guess", str(file)]) == 0
    assert capsys.readouterr().err == (
        "untemplate: no output of 2 has a marker or call of a format; every format reads them as content\n"
    )
    file = _rows(tmp_path, [])
    assert main(["guess", str(file)]) == 2
    assert capsys.readouterr().err == (
        f"untemplate: error: {file}: no row has an output in column 'output' "
        "(rows are JSON objects, one in each line)\n"
    )


def test_rows_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"output": "hi", "tools": 5}\n', "utf-8")
    assert main(["guess", str(file)]) == 2
    said = f"untemplate: error: {file}: no row can be read; row 1: tools: expected a list, got int\n"
    assert capsys.readouterr().err == said


def test_rows_have_tools_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["guess", str(_rows(tmp_path, ["x"])), "--tools", "tools.json"]) == 2
    assert capsys.readouterr().err == ("untemplate: error: --tools is for one output; rows have a column of tools\n")


_FILE = 20
_FEWEST = 8


@pytest.mark.skipif(not CASES.is_dir(), reason=NO_CASES)
@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_the_format_of_twenty_outputs_comes_first(step: int, caplog: pytest.LogCaptureFixture) -> None:
    """In 98 % of files with outputs of one format, the best guess is that format or reads every output alike. Every
    ninth file is tried, or all."""
    caplog.set_level(logging.CRITICAL, logger="untemplate")
    random_source = random.Random(7)
    right, wrong = 0, []
    for (tools, reasoning), samples in sorted(_by_format().items(), key=str)[::step]:
        mine = named(tools, reasoning=reasoning) if reasoning else half("tool", tools)
        samples = [one for one in samples if not _is_foreign(mine, one)]
        if len(samples) < _FEWEST:
            continue
        chosen = random_source.sample(samples, min(_FILE, len(samples)))
        best = guess_many(chosen)[0]
        found = named(best.format)
        same = mine.tools == found.tools and (reasoning is None or mine.reasoning in (None, found.reasoning))
        if same or _meanings(mine, chosen) == [meaning(parsed) for parsed in best.readings]:
            right += 1
        else:
            wrong.append((tools, reasoning, best.format))
    assert right + len(wrong) > 20 // step
    assert right / (right + len(wrong)) >= 0.98, wrong


def _is_foreign(fmt: Any, sample: Sample) -> bool:
    """True if the format leaves markup of calls in content: the case is about text that is not of the format."""
    content = OutputParser.from_format(fmt).parse(sample.text, tools=sample.tools, prompt=sample.prompt).content or ""
    return any("reasoning" not in markers()[marker] for marker, _ in markers_in(content))


def _meanings(fmt: Any, samples: list[Sample]) -> list[Any]:
    parser = OutputParser.from_format(fmt)
    return [meaning(parser.parse(one.text, tools=one.tools, prompt=one.prompt)) for one in samples]


def _by_format() -> dict[tuple[str, str | None], list[Sample]]:
    """Return the public outputs by the formats of their calls and reasoning."""
    groups: dict[tuple[str, str | None], dict[str, Sample]] = {}
    all_tools = json.loads((CASES / "by_format_tools.json").read_text("utf-8"))
    for name in ("by_format", "by_format_3", "by_format_4"):
        for line in (CASES / f"{name}.jsonl").read_text("utf-8").splitlines():
            case = json.loads(line)
            if case.get("tool_parser") in (None, "passthrough"):  # of a reasoning parser, with calls of any format
                continue
            tools = case.get("tools", all_tools)
            sample = Sample(case["output"], tools, case.get("prompt"))
            groups.setdefault((case["tool_parser"], case.get("reasoning_parser")), {})[sample.text] = sample
    return {key: list(group.values()) for key, group in groups.items()}
