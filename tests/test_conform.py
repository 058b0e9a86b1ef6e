"""`untemplate conform` and the data of untemplate-vectors."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests import vectors as builder
from tests import vectors_rules as rules
from untemplate._internal import cli
from untemplate._internal.cli.conform import described
from untemplate._internal.conform import CommandError, Outcome, command, own_parser, report_of, run

ROOT = Path(__file__).parents[1]
LINES = (builder.DATA / "vectors.jsonl").read_text("utf-8").rstrip("\n").split("\n")
VECTORS = rules.load(builder.DATA)
FORMATS = json.loads((builder.DATA / "formats.json").read_text("utf-8"))
MANIFEST = json.loads((builder.DATA / "manifest.json").read_text("utf-8"))
TEN = (
    "hermes", "qwen3_coder", "mistral", "llama3_json", "pythonic", "deepseek_v31", "kimi_k2", "glm45", "minimax_m2",
    "gpt-oss",
)  # fmt: skip
"""Formats that the parser from the specification was written for."""
CALL = {
    "id": "hermes/x", "format": "hermes", "level": "clean", "tools": None, "prompt": None, "finish_reason": "stop",
    "output": 'Hi.<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>', "why": "An example.",
    "expect": {
        "reasoning": "", "content": "Hi.", "tool_calls": [{"name": "f", "arguments": '{"x": 1}', "status": "ok"}]
    },
}  # fmt: skip


def test_the_data_are_up_to_date() -> None:
    """`python -m tests.vectors` writes them."""
    made = builder.build()
    assert [one["id"] for one in made] == [one["id"] for one in VECTORS], "run: python -m tests.vectors"
    changed = [one["id"] for one, other in zip(made, VECTORS, strict=True) if one != other]
    assert changed == [], "run: python -m tests.vectors"
    assert builder.definitions_of(made) == FORMATS
    assert builder.with_named_tools(made)[1] == json.loads((builder.DATA / "tools.json").read_text("utf-8"))


def test_vectors_are_well_formed() -> None:
    schema = json.loads((builder.DATA / "vectors.schema.json").read_text("utf-8"))
    validator = jsonschema_rs.validator_for(schema)
    for line in LINES:
        assert list(validator.iter_errors(json.loads(line))) == [], line
    ids = [vector["id"] for vector in VECTORS]
    assert sorted(set(ids)) == ids
    assert len(ids) >= 2000
    assert {vector["format"] for vector in VECTORS} <= set(FORMATS)


def test_the_specification_and_the_vectors_name_the_same_rules() -> None:
    names = rules.identifiers()
    assert len(set(names)) == len(names)
    shown = rules.shown(VECTORS)
    assert {rule for rule, ids in shown.items() if not ids} == rules.OF_LAWS
    for page in rules.PAGES:
        text = page.read_text("utf-8")
        assert text == rules.with_table(rules.with_vectors(text, shown), shown), "run `python -m tests.vectors`"
        mentioned = set(re.findall(r"`([A-Z][0-9]+)`", text))
        assert mentioned <= set(names), page.name


def test_disputed_vectors_count_for_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "vectors.jsonl").write_text(json.dumps(CALL) + "\n" + json.dumps({**CALL, "policy": "Both are right."}))
    (tmp_path / "tools.json").write_text("{}")
    (tmp_path / "formats.json").write_text(json.dumps({"hermes": FORMATS["hermes"]}))
    (tmp_path / "manifest.json").write_text('{"known": []}')
    assert cli.main(["conform", "--vectors", str(tmp_path), "--json", "--splits", "0"]) == 0
    assert json.loads(capsys.readouterr().out)["levels"]["clean"]["right"] == 1


def test_the_report_as_a_page(tmp_path: Path) -> None:
    report = report_of(run([{**CALL, "rules": ["T2"]}], answering({"message": {"content": "<b>\x00"}}), splits=0))
    page = report.html("mine")
    assert "<h3 id=\"hermes/x\">hermes/x (wrong)</h3><p>content: '&lt;b&gt;\\x00', expected 'Hi.'</p>" in page
    assert "<tr class=bad><th>T2<td>0<td>0<td>1<td>0" in page


def test_our_own_parser_over_all_vectors(count: Any) -> None:
    report = report_of(run(VECTORS, own_parser(FORMATS), splits=2), MANIFEST["known"])
    for result in report.results:
        count("vectors", result.outcome is Outcome.RIGHT)
    assert [(r.id, r.problem, r.pieces) for r in report.new] == []
    assert report.mended == ()
    assert [result.id for result in report.results if not result.reports] == []


@pytest.mark.exhaustive
def test_our_own_parser_under_many_splits() -> None:
    report = report_of(run(VECTORS, own_parser(FORMATS), splits=50), MANIFEST["known"])
    assert [(r.id, r.problem, r.pieces) for r in report.new] == []


def answering(message: dict[str, Any]) -> Any:
    def answers(requests: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for request in requests:
            yield {"id": request["id"], **message}

    return answers


CALLS = [{"name": "f", "arguments": '{"x":1}'}]


@pytest.mark.parametrize(
    ("answer", "outcome", "problem"),
    [
        ({"message": {"content": "Hi.", "tool_calls": CALLS}}, "right", ""),
        ({"message": {"content": "Hi.\n", "tool_calls": CALLS}}, "space", "content: 'Hi.\\n', expected 'Hi.'"),
        ({"message": {"content": "Ho.", "tool_calls": CALLS}}, "wrong", "content: 'Ho.', expected 'Hi.'"),
        ({"message": {"content": "Hi."}}, "wrong", "calls: [], expected ['f']"),
        (
            {"message": {"content": "Hi.", "tool_calls": [{"name": "f", "arguments": "{}"}]}},
            "wrong",
            "arguments of f: '{}', expected '{\"x\": 1}'",
        ),
        (
            {"message": {"content": "Hi.", "tool_calls": [{**CALLS[0], "status": "recovered"}]}},
            "wrong",
            "status of f: recovered, expected ok",
        ),
        ({"unsupported": "no Hermes"}, "unsupported", "no Hermes"),
    ],
)
def test_judgements(answer: dict[str, Any], outcome: str, problem: str) -> None:
    (result,) = run([CALL], answering(answer), splits=1)
    assert (result.outcome, result.problem) == (outcome, problem)


@pytest.mark.parametrize(("codes", "right"), [([], True), (["stray_close"], False)])
def test_diagnostics_are_counted_apart(codes: list[str], right: bool) -> None:
    message = {"content": "Hi.", "tool_calls": CALLS}
    vector = {**CALL, "diagnostics": []}
    report = report_of(run([vector], answering({"message": message, "diagnostics": codes}), splits=1))
    assert report.levels["clean"]["right"] == 1
    assert report.reports == {"clean": {"right": int(right), "wrong": int(not right)}}
    assert f"diagnostics: right in {int(right)} of 1" in described(report, 1)


@pytest.mark.parametrize(
    ("of_vector", "of_answer"), [({"diagnostics": []}, {}), ({}, {"diagnostics": ["stray_close"]})]
)
def test_diagnostics_that_one_side_lacks_do_not_count(of_vector: dict[str, Any], of_answer: dict[str, Any]) -> None:
    answer = {"message": {"content": "Hi.", "tool_calls": CALLS}, **of_answer}
    report = report_of(run([{**CALL, **of_vector}], answering(answer), splits=1))
    assert (report.reports, report.new) == ({}, ())
    assert "diagnostics" not in described(report, 1)


def test_a_parser_that_reads_only_whole_outputs_is_wrong_in_pieces() -> None:
    right = {"content": "Hi.", "tool_calls": CALLS}

    def answers(requests: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for request in requests:
            yield {"id": request["id"], "message": right if len(request["pieces"]) == 1 else {"content": ""}}

    assert [result.outcome for result in run([CALL], answers, splits=0)] == [Outcome.RIGHT]
    (result,) = run([CALL], answers, splits=3)
    assert (result.outcome, "".join(result.pieces)) == (Outcome.WRONG, CALL["output"])
    assert len(result.pieces) > 1


def test_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    program = [sys.executable, str(ROOT / "examples/conform_parser.py")]
    results = list(run(VECTORS[:40], command(program, FORMATS), splits=1))
    assert {result.outcome for result in results if result.level != "ids"} == {Outcome.RIGHT}
    assert {result.problem for result in results if result.level == "ids"} == {"it reads text only"}


@pytest.mark.parametrize(
    ("program", "folder"),
    [
        pytest.param(
            ["node", "main.mjs"],
            "",
            marks=pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed"),
        ),
        ([sys.executable, "main.py"], "python"),
    ],
)
def test_the_parsers_from_the_specification(program: list[str], folder: str, count: Any) -> None:
    """What their READMEs say of them is right."""
    folder_of = ROOT / "examples/from_the_specification" / folder
    report = report_of(run(VECTORS, command([program[0], str(folder_of / program[1])], FORMATS), splits=0))
    for result in report.results:
        count(f"vectors, by {program[1]} from the specification", result.outcome is Outcome.RIGHT)
    rows = re.findall(
        r"^\| (\w+) \| (\d+) \| (\d+) \| (\d+) \|$", (folder_of / "README.md").read_text("utf-8"), re.MULTILINE
    )
    shown = {level: tuple(map(int, numbers)) for level, *numbers in rows}
    assert shown == {
        level: (c["right"], c["wrong"] + c["space"], c["unsupported"]) for level, c in report.levels.items()
    }
    own = [result for result in report.results if result.format.partition("+")[0] in TEN]
    for levels, least in ((("clean", "cut"), 0.95), (("slipped", "quoted"), 0.85)):
        of_level = [result.outcome is Outcome.RIGHT for result in own if result.level in levels]
        assert sum(of_level) >= least * len(of_level) > 100


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("print('no')", "answered hermes/x with something else than JSON (Expecting value"),
        ('print(\'{"id": "y"}\')', 'expected an answer to hermes/x, got \'{"id": "y"}\\n\''),
        ('print(\'{"id": "hermes/x"}\')', "hermes/x: an answer has message, deltas or unsupported, got "),
        ("pass", "ended with exit code 0 before it had answered all requests"),
    ],
)
def test_programs_that_break_the_protocol(code: str, problem: str) -> None:
    program = [sys.executable, "-c", f"import sys\nsys.stdin.readline(); sys.stdin.readline()\n{code}"]
    with pytest.raises(CommandError) as caught:
        list(run([CALL], command(program, FORMATS), splits=0))
    assert str(caught.value).startswith(f"{sys.executable}: {problem}")


def test_a_program_that_does_not_exist() -> None:
    with pytest.raises(CommandError, match=r"^/no/such: cannot be started: No such file or directory$"):
        list(run([CALL], command(["/no/such"], FORMATS)))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--junit", str(tmp_path / "r.xml"), "--badge", str(tmp_path / "b.json"), "--vectors", str(builder.DATA)]
    assert cli.main(["conform", "--format", "hermes", "--level", "cut", "--splits", "1", *files]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split() == ["LEVEL", "RIGHT", "SPACE", "WRONG", "UNSUPPORTED"]
    assert shown[1].split()[0] == "cut"
    assert shown[-2] == "100.0 % of the vectors that the parser supports are right"
    counts = json.loads((tmp_path / "b.json").read_text("utf-8"))["message"].rpartition(" ")[2]
    assert shown[-1] == f"diagnostics: right in {counts} of {counts}"
    assert (
        (tmp_path / "r.xml").read_text("utf-8").startswith('<?xml version="1.0" encoding="UTF-8"?>\n<testsuite name=')
    )
    assert json.loads((tmp_path / "b.json").read_text("utf-8"))["color"] == "brightgreen"


def test_the_command_with_a_program_that_fails(capsys: pytest.CaptureFixture[str]) -> None:
    code = (
        "import json, sys\nsys.stdin.readline()\nfor line in sys.stdin:\n"
        "    print(json.dumps({'id': json.loads(line)['id'], 'message': {}}), flush=True)"
    )
    options = ["--vectors", str(builder.DATA), "--format", "gemma4", "--rule", "Q7", "--splits", "0"]
    assert cli.main(["conform", *options, "--", sys.executable, "-c", code]) == 3
    assert "gemma4/inline-code (wrong; Q7)\n  content: None, expected 'It writes " in capsys.readouterr().out
    assert cli.main(["conform", *options, "--json", "--", sys.executable, "-c", code]) == 3
    wrong = {"right": 0, "space": 0, "wrong": 1, "unsupported": 0}
    shown = json.loads(capsys.readouterr().out)
    assert (shown["levels"], shown["rules"], shown["formats"]) == ({"quoted": wrong}, {"Q7": wrong}, {"gemma4": wrong})


def test_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["conform", "--vectors", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"untemplate: error: {tmp_path}/vectors.jsonl: No such file or directory\n"
    assert cli.main(["conform", "--vectors", str(builder.DATA), "--format", "nothing"]) == 2
    assert capsys.readouterr().err == "untemplate: error: no vector is of these formats, levels and rules\n"


def test_without_the_vectors_the_command_that_installs_them_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "untemplate_vectors", None)
    monkeypatch.setattr("untemplate._internal.installed._checkout", lambda: Path("/checkout"))
    assert cli.main(["conform"]) == 2
    problem = "conform needs --vectors FOLDER, or untemplate-vectors: pip install '/checkout/vectors'"
    assert capsys.readouterr().err == f"untemplate: error: {problem}\n"


def test_the_loader() -> None:
    code = (
        "import untemplate_vectors as v; print(sum(1 for _ in v.vectors()), len(v.formats()), v.manifest()['version'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(ROOT / "vectors/src")}, capture_output=True, text=True
    )
    assert done.stdout == f"{len(VECTORS)} {len(FORMATS)} {builder.VERSION}\n", done.stderr


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_the_loader_of_the_readme_in_node(tmp_path: Path) -> None:
    text = (ROOT / "vectors/README.md").read_text("utf-8")
    loader = text.partition("```javascript\n")[2].partition("```")[0]
    (ROOT / "vectors/loader-test.mjs").write_text(f"{loader}\nconsole.log(vectors.length);\n", "utf-8")
    try:
        done = subprocess.run(["node", str(ROOT / "vectors/loader-test.mjs")], capture_output=True, text=True)
    finally:
        (ROOT / "vectors/loader-test.mjs").unlink()
    assert done.stdout == f"{len(VECTORS)}\n", done.stderr


@pytest.mark.skipif(
    shutil.which("cargo") is None or not list(Path("/usr/share/cargo/registry").glob("serde_json-1*")),
    reason="cargo, or Debian's librust-serde-json-dev, is not installed",
)
def test_the_loader_in_rust(tmp_path: Path) -> None:
    folder = shutil.copytree(ROOT / "examples/rust_vectors", tmp_path / "rust")
    done = subprocess.run(
        ["cargo", "run", "--offline", "--quiet", "--", str(builder.DATA), "hostile"],
        cwd=folder, env={**os.environ, "CARGO_HOME": str(tmp_path / "home")}, capture_output=True, text=True,
    )  # fmt: skip
    hostile = [vector for vector in VECTORS if vector["level"] == "hostile"]
    plain = [v for v in hostile if not v["expect"]["tool_calls"] and v["output"] == v["expect"]["content"]]
    assert done.stdout == f"{len(plain)} of {len(hostile)}\n", done.stderr
