"""`untemplate batch`, `stats` and `drift`: their output, their exit codes, and errors for wrong usage."""

from __future__ import annotations

import importlib.util
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from untemplate._internal import cli
from untemplate._internal.cli.batch import line_of
from untemplate._internal.installed import install_command
from untemplate._internal.tokens.decoding import encode
from untemplate.batch import Progress, Summary
from untemplate.batch._report import report

from ..real_tokenizers import byte_level
from .conftest import TOOLS, answer, output, read, rows

FIGURES = """\
rows: 4, of which 2 (50.00 %) are not clean
             2  clean
             1  errors
             1  flawed
parts
             3  calls
             3  content
             0  reasoning
finish reasons
             3  tool_calls
statuses of calls
             2  ok
             1  invalid_arguments
errors
             1  output: missing
tools
             3  ping
"""


@pytest.fixture
def given(jsonl: Callable[..., str]) -> str:
    return jsonl([*rows(2), {"output": output('{"x": "no"}'), "tools": TOOLS}, {}])


def test_files_to_files(given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out, page = str(tmp_path / "out.jsonl"), tmp_path / "report.html"
    arguments = ["batch", given, "-o", out, "--format", "hermes", "--processes", "1", "--report", str(page)]
    assert (cli.main(arguments), capsys.readouterr()) == (0, (FIGURES, ""))
    assert [line["row"] for line in read(out)] == [1, 2, 3, 4]
    assert page.read_text("utf-8") == report(_figures(given), f"untemplate batch: {given}")
    assert (cli.main(["stats", out]), capsys.readouterr()) == (0, (FIGURES, ""))
    assert cli.main(["stats", out, out, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == {"clean": 4, "errors": 2, "flawed": 2}
    assert cli.main([*arguments[:2], "-o", str(tmp_path / "strict.jsonl"), *arguments[4:8], "--strict"]) == 3


def _figures(path: str) -> Summary:
    from untemplate.batch import parse_many

    summary = Summary()
    for record in parse_many(read(path), "hermes"):
        summary.add(record)
    return summary


@pytest.mark.parametrize(
    ("option", "name"), [("--output-column", "out"), ("--tools-column", "tool"), ("--keep", "key")]
)
def test_a_named_column_that_rows_lack_stops_the_run(
    option: str, name: str, given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "out.jsonl"
    assert cli.main(["batch", given, "-o", str(out), "--format", "hermes", option, name]) == 2
    problem = f"untemplate: error: {given}: the first rows have no column {name!r}; columns: id, output, tools\n"
    assert (capsys.readouterr(), list(tmp_path.glob("out*"))) == (("", problem), [])


def test_a_column_that_only_a_later_row_has(jsonl: Callable[..., str], tmp_path: Path):
    given = jsonl([*[{"output": "Hi."}] * 99, {"output": "Hi.", "tools": None}])
    out = str(tmp_path / "out.jsonl")
    assert cli.main(["batch", given, "-o", out, "--format", "hermes", "--keep", "tools", "--quiet"]) == 0


NEEDS = "needs a format: --format NAME (`untemplate guess FILE` finds it), or --template, --model or --enforce-parser"


def test_rows_without_an_output_stop_the_run(
    jsonl: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    given, out = jsonl([{"ts": 1, "response": output()}] * 2), tmp_path / "out.jsonl"
    arguments = ["batch", given, "-o", str(out), "--format", "hermes", "--processes", "1"]
    has = "its columns: ts, response; --output-column names one"
    problem = f"untemplate: error: {given}: none of the first rows has an output in column 'output' ({has})\n"
    assert (cli.main(arguments), capsys.readouterr().err, list(tmp_path.glob("out*"))) == (2, problem, [])
    assert cli.main([*arguments, "--output-column", "response"]) == 0


def test_rows_of_saved_answers(jsonl: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    given, out = jsonl([answer(f"Hi.\n{output()}"), answer("Hm.", "length")]), tmp_path / "out.jsonl"
    assert cli.main(["guess", given]) == 0
    assert capsys.readouterr().out.endswith("\n--format hermes\n")
    assert cli.main(["batch", given, "-o", str(out), "--processes", "1", "--quiet"]) == 0
    assert [(line["finish_reason"], line["message"]["content"]) for line in read(out)] == [
        ("tool_calls", "Hi.\nHi."),
        ("length", "Hm."),
    ]


def test_rows_of_answers_that_the_server_parsed(
    jsonl: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    parsed = {"choices": [{"message": {"content": None, "tool_calls": [{"id": "a"}]}, "finish_reason": "tool_calls"}]}
    given, out = jsonl([parsed] * 2), tmp_path / "out.jsonl"
    for command in (["guess", given], ["batch", given, "-o", str(out), "--format", "hermes"]):
        assert cli.main(command) == 2
        assert "without the raw output: the server parsed it already (tool_calls); give" in capsys.readouterr().err
    assert list(tmp_path.glob("out*")) == []


def test_calls_without_tools(jsonl: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Numbers came out as text, and nothing said why: a batch API's answers do not have the tools of their requests."""
    call = "<tool_call>\n<function=ping>\n<parameter=x>\n5\n</parameter>\n</function>\n</tool_call>"
    for row, said in (
        ({"output": call, "tools": TOOLS}, ""),
        (
            {"output": call},
            "untemplate: calls in 2 rows without tools: their arguments are text, whatever type the tool declares; "
            "--tools-column names the column of tools\n",
        ),
    ):
        given = jsonl([row] * 2)
        out = str(tmp_path / f"out{len(said)}.jsonl")
        assert cli.main(["batch", given, "-o", out, "--format", "qwen3_coder", "--processes", "1"]) == 0
        assert capsys.readouterr().err == said


def test_no_row_parsed(jsonl: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    given = jsonl([{"output": None}] * 2)
    assert cli.main(["batch", given, "-o", str(tmp_path / "out.jsonl"), "--format", "hermes"]) == 3
    assert (
        capsys.readouterr().err
        == "untemplate: no row was parsed: output: missing (2); the records have the reasons, under error\n"
    )


def test_names_of_hostile_models_are_text_on_the_page():
    summary = Summary(rows=1, calls=1, tools={"<script>alert(1)</script>": 1})
    page = report(summary, "a & b")
    assert "<script" not in page
    assert "<td>&lt;script&gt;alert(1)&lt;/script&gt;</td><td>1 (100.00 %)</td>" in page
    assert "<h1>a &amp; b</h1>" in page


def test_the_longest_charts_are_cut():
    summary = Summary(rows=40, calls=40, tools={f"f{i:02}": 1 for i in range(40)})
    assert "<p>… and 10 more</p>" in report(summary, "x")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ids-column", "ids"], "--ids-column needs one of: --format, --template, --model, --enforce-parser"),
        (["--reasoning", "qwen3"], f"batch {NEEDS}"),
        (["--format", "herms"], "unknown format 'herms'; did you mean 'hermes'?"),
        (["--format", "hermes", "--ids-column", "ids"], "tokenizer: token ids need one"),
        (["--format", "hermes", "--keep", "row"], "keep: 'row' is a column of the results"),
        (
            ["--format", "hermes", "--format-column", "f"],
            "--format-column excludes --format, --template, --model and --enforce-parser",
        ),
        (["--format", "hermes", "--policy", "drafts=no"], "--policy drafts: 'no' is not one of: 'recover', "),
        (["--format", "hermes", "--tokenizer", "/no/where/at", "--ids-column", "id"], "/no/where/at: no tokenizer: "),
    ],
)  # fmt: skip
def test_wrong_usage(
    arguments: list[str], message: str, given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert cli.main(["batch", given, "-o", str(tmp_path / "out.jsonl"), *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"untemplate: error: {message}")


def test_files_that_are_missing_or_in_the_way(given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = tmp_path / "out.jsonl"
    assert cli.main(["batch", "missing.jsonl", "-o", str(out), "--format", "hermes"]) == 2
    assert capsys.readouterr().err == "untemplate: error: missing.jsonl: No such file or directory\n"
    out.write_text("")
    assert cli.main(["batch", given, "-o", str(out), "--format", "hermes"]) == 2
    problem = "the file exists; remove it, or name another output"
    assert capsys.readouterr().err == f"untemplate: error: {out}: {problem}\n"
    assert cli.main(["stats", given]) == 2
    problem = "row 1: not a result: Object missing required field `row`"
    assert capsys.readouterr().err == f"untemplate: error: {given}, {problem}\n"


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is not None, reason="needs an environment without pyarrow")
def test_a_missing_package_is_named(given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out = str(tmp_path / "out.parquet")
    assert cli.main(["batch", given, "-o", out, "--format", "hermes"]) == 2
    assert capsys.readouterr().err == (
        f"untemplate: error: {out}: needs pyarrow: {install_command('untemplate', 'batch')}\n"
    )


@pytest.mark.parametrize(
    ("progress", "line"),
    [
        (
            Progress(Summary(rows=1500, clean=1400, flawed=90, errors=10), 50, 200, 30.0, 50.0),
            "█████░░░░░░░░░░░░░░░  25 %  1,500 rows (1,400 clean, 90 flawed, 10 errors)  50 rows/s, 1:30 left",
        ),
        (
            Progress(Summary(), 1, 3_601, 2.0, 0.0),
            "░░░░░░░░░░░░░░░░░░░░   0 %  0 rows (0 clean, 0 flawed, 0 errors)  0 rows/s, 2:00:00 left",
        ),
        (
            Progress(Summary(rows=2), 7, 7, 1.0, 2.0),
            "████████████████████ 100 %  2 rows (0 clean, 0 flawed, 0 errors)  2 rows/s",
        ),
    ],
)
def test_the_progress_bar(progress: Progress, line: str):
    assert line_of(progress) == line


def test_drift(jsonl: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    tokenizer = byte_level(())
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    ids = encode(tokenizer, "The harbour")
    letters = [tokenizer.get_vocab()[letter] for letter in "The"]
    path = jsonl([{"ids": ids}, {"ids": letters}, {"ids": 7}])
    assert cli.main(["drift", path, "--tokenizer", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    whole = encode(tokenizer, "The")
    assert json.loads(lines[0]) == {"row": 2, "tokens": 3, "at": 0, "sampled": letters, "encoded": whole}
    assert json.loads(lines[1])["error"]["problem"] == "expected a list of token ids, got a number"
    assert [line.split(maxsplit=1) for line in lines[2:]] == [
        ["3", "rows"], ["1", "differ"], ["1", "errors"], [str(len(ids) + 3), "tokens"], ["3", "tokens that differ"]
    ]  # fmt: skip
    assert cli.main(["drift", path, "--tokenizer", str(tmp_path), "--strict", "--json"]) == 3
    assert cli.main(["drift", path, "--tokenizer", str(tmp_path / "none")]) == 2


def test_a_format_that_is_not_named_is_guessed(given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    arguments = ["batch", given, "--processes", "1"]
    said = "untemplate: --format hermes, guessed from the first 3 rows (untemplate guess shows others)\n"
    assert (cli.main([*arguments, "-o", str(tmp_path / "out.jsonl")]), capsys.readouterr()) == (0, (FIGURES, said))
    assert cli.main([*arguments, "-o", str(tmp_path / "quiet.jsonl"), "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_rows_of_two_models(jsonl: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    other = [{"output": '[TOOL_CALLS]ping[ARGS]{"x": 1}'}] * 2
    path = jsonl([*rows(5), *other, {"output": "Plain."}])
    said = (
        "untemplate: 2 of 8 rows, the first is row 6, seem to be of another model: mistral reads them; "
        "with --format-column NAME each row names its format, and if one model writes both, a Format can read both\n"
    )
    assert cli.main(["guess", path]) == 0
    assert capsys.readouterr().err == said
    assert cli.main(["batch", path, "-o", str(tmp_path / "out.jsonl")]) == 0
    guessed = "untemplate: --format hermes, guessed from the first 8 rows (untemplate guess shows others)\n"
    assert capsys.readouterr().err == guessed + said


def test_calls_of_a_family_that_is_not_known(
    jsonl: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """The format whose reasoning fits would leave all calls in content."""
    given = jsonl([{"output": '<think>Hm.</think><call>{"name": "f", "arguments": {}}</call>'}] * 3)
    assert cli.main(["batch", given, "-o", str(tmp_path / "out.jsonl")]) == 2
    assert capsys.readouterr().err == (
        """untemplate: error: no format reads '<call>{"name": "f", "arguments": {' in the first 3 rows: name it by """
        "--format, --template or --model\n"
    )


def test_regions_of_text_have_no_tokens(given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    tokenizer = tmp_path / "tokenizer.json"
    byte_level(("<tool_call>", "</tool_call>")).save(str(tokenizer))
    arguments = ["--format", "hermes", "--processes", "1", "--spans", "--tokenizer", str(tokenizer)]
    assert cli.main(["batch", given, "-o", str(tmp_path / "out.jsonl"), *arguments]) == 0
    assert capsys.readouterr().err == (
        "untemplate: --spans: rows of text have regions in characters; those in tokens need the ids (--ids-column)\n"
    )


def test_rows_that_tell_no_format(jsonl: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    given = jsonl([{"output": "Hello."}] * 3)
    assert cli.main(["batch", given, "-o", str(tmp_path / "out.jsonl")]) == 2
    assert capsys.readouterr().err == (
        "untemplate: error: no output of the first 3 rows has a marker or call of a format: name it by --format, "
        "--template or --model\n"
    )


def test_a_format_that_hardly_fits_is_reported(
    jsonl: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    given, out = jsonl([{"output": "<think>\nHm.\n</think>\n\nHi."}] * 200), str(tmp_path / "out.jsonl")
    assert cli.main(["batch", given, "-o", out, "--format", "hermes", "--processes", "1"]) == 0
    doubts = (
        "untemplate: reasoning and calls in 0 of 200 rows; if the model writes any, untemplate guess shows whether the "
        "format is right\n"
        "untemplate: foreign_marker in 200 of 200 rows; untemplate guess shows whether the format is right\n"
    )
    assert capsys.readouterr().err == doubts
    assert cli.main(["stats", out]) == 0
    assert capsys.readouterr().err == doubts
    given, out = jsonl([{"output": "Hm.</think>Hi."}] * 200), str(tmp_path / "other.jsonl")
    assert cli.main(["batch", given, "-o", out, "--format", "qwen3", "--processes", "1"]) == 0
    assert capsys.readouterr().err == (
        "untemplate: reasoning and calls in 0 of 200 rows; if the model writes any, untemplate guess shows whether the "
        "format is right\n"
        "untemplate: stray_close in 200 of 200 rows; if the prompts open reasoning, give the column with the prompts\n"
    )


def test_ctrl_c_says_how_to_go_on(
    given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("untemplate.batch.parse_files", interrupted)
    out = str(tmp_path / "out.jsonl")
    assert cli.main(["batch", given, "-o", out, "--format", "hermes"]) == 130
    assert capsys.readouterr().err.splitlines()[0] == (
        f"untemplate: interrupted; the same command with --resume goes on from the last rows in {out}.partial"
    )


def test_a_pipe_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Its first rows are read to guess the format, and again."""
    given = "".join(json.dumps(row) + "\n" for row in rows(3000))
    out = tmp_path / "out.jsonl"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
    assert cli.main(["batch", "-", "-o", str(out), "--processes", "1", "--json"]) == 0
    assert [line["row"] for line in read(out)] == list(range(1, 3001))
    said = capsys.readouterr().err
    assert said == (
        "untemplate: --format hermes, guessed from the first 1,000 rows (untemplate guess shows others)\n"
        "untemplate: reasoning in 0 of 3,000 rows; if the model writes any, untemplate guess shows whether the format "
        "is right\n"
    )
