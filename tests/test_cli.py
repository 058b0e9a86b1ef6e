"""The command line: its exact output, its errors for wrong usage, and that it never raises."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.analysis.test_selection import CODER
from untemplate import OutputParser, __version__
from untemplate._internal import cli
from untemplate._internal.cli import common
from untemplate._internal.cli.formats import evidence_word
from untemplate._internal.deltas import merge_deltas
from untemplate.format import Format, Marker, Reasoning
from untemplate.formats import entries, lookup, named

OUTPUT = """\
<think>
Look it up.
</think>

Sure.
<tool_call>
{"name": "get_weather", "arguments": {"city": "Paris"}}
</tool_call>"""

MESSAGE = """\
{
  "role": "assistant",
  "content": "Sure.",
  "reasoning": "Look it up.",
  "tool_calls": [
    {
      "id": "call_b34c8a5956697a24bb7b478e",
      "type": "function",
      "function": {
        "name": "get_weather",
        "arguments": "{\\"city\\": \\"Paris\\"}"
      }
    }
  ]
}
"""

ODD = OUTPUT + "\n</tool_call>"

QWEN = ["parse", "--format", "hermes", "--reasoning", "qwen3"]


UNCLEAR = (
    "the output does not show its format: name it by --format NAME (`untemplate guess FILE` ranks them), or "
    "--template, --model or --enforce-parser"
)
EMPTY = UNCLEAR.replace("output does", "output is empty, and does", 1)
NEEDS = "needs a format: --format NAME (`untemplate guess FILE` finds it), or --template, --model or --enforce-parser"


class Run:
    """Runs the command in this process, in a folder of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._capsys = capsys
        self._monkeypatch = monkeypatch
        monkeypatch.chdir(folder)

    def file(self, name: str, text: str | bytes) -> str:
        (self.folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
        return name

    def __call__(self, *arguments: str, stdin: str | bytes = b"") -> tuple[int, str, str]:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        try:
            code = cli.main(arguments)
        except SystemExit as exit:
            code = int(exit.code or 0)
        out, err = self._capsys.readouterr()
        return code, out, err

    def fails(self, *arguments: str, stdin: str | bytes = b"") -> str:
        """Check that the command fails; return the one line on stderr. Nothing may be on stdout."""
        code, out, err = self(*arguments, stdin=stdin)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        assert err.endswith("\n")
        return err[:-1]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    return Run(tmp_path, capsys, monkeypatch)


# -- parse: a format that is not named ----------------------------------------------------------------------------

GUESSED = "untemplate: --format hermes+qwen3, guessed from the output (untemplate guess shows others)\n"


def test_the_format_is_guessed_where_it_is_clear(run: Run):
    assert run("parse", stdin=OUTPUT) == (0, MESSAGE, GUESSED)
    assert run("parse", "--explain", stdin=ODD) == (0, EXPLAINED, GUESSED)
    code, page, err = run("parse", "--explain", "--html", stdin=OUTPUT)
    assert (code, err, page.startswith("<!doctype html>")) == (0, GUESSED, True)
    assert run("parse", "--stream", stdin=OUTPUT) == (2, "", f"untemplate: error: parse {NEEDS}\n")


@pytest.mark.parametrize("output", ["", "Hello.", "<think>\nGo.\n<tool_call>\n{}\n</tool_call>\nI wait."])
def test_a_format_that_is_not_clear_is_asked_for(run: Run, output: str):
    unclear = UNCLEAR if output else EMPTY
    assert run("parse", stdin=output) == (2, "", f"untemplate: error: {unclear}\n")


# -- parse: the message -------------------------------------------------------------------------------------------


def test_the_message_from_stdin(run: Run):
    assert run(*QWEN, stdin=OUTPUT) == (0, MESSAGE, "")
    assert run(*QWEN, "-", stdin=OUTPUT) == (0, MESSAGE, "")


def test_the_message_from_a_file(run: Run):
    assert run(*QWEN, run.file("output.txt", OUTPUT)) == (0, MESSAGE, "")


@pytest.mark.parametrize("size", [1, 2, 7, 10_000])
def test_pieces_change_nothing(run: Run, size: int):
    assert run(*QWEN, "--split", str(size), stdin=OUTPUT) == (0, MESSAGE, "")


def test_empty_output(run: Run):
    assert run("parse", "--format", "hermes") == (0, '{\n  "role": "assistant",\n  "content": null\n}\n', "")


def test_text_comes_back_to_the_byte(run: Run):
    code, out, _ = run("parse", "--format", "hermes", stdin=b" a\r\nb\t\xc3\xa9 \n")
    assert (code, json.loads(out)["content"]) == (0, " a\r\nb\té \n")


def test_bytes_that_are_not_utf8_are_kept(run: Run):
    text = b"\xff \xf0\x9f\x98\x80 \xf0\x9f"
    expected = '{\n  "role": "assistant",\n  "content": "\\udcff 😀 \\udcf0\\udc9f"\n}\n'
    assert run("parse", "--format", "hermes", stdin=text) == (0, expected, "")
    assert run("parse", "--format", "hermes", "--split", "1", stdin=text) == (0, expected, "")


def test_what_terminals_act_on_is_escaped(run: Run):
    _, out, _ = run("parse", "--format", "hermes", stdin="\x1b[2J \x9b31m \u202e")
    assert out == '{\n  "role": "assistant",\n  "content": "\\u001b[2J \\u009b31m \\u202e"\n}\n'


def test_the_prompt_says_where_the_output_begins(run: Run):
    prompt = run.file("prompt.txt", "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n")
    _, out, _ = run(*QWEN, "--prompt", prompt, stdin="Easy.\n</think>\n\nHello!")
    assert json.loads(out) == {"role": "assistant", "content": "Hello!", "reasoning": "Easy."}


TOOL = {"type": "function", "function": {"name": "f", "parameters": {"properties": {"n": {"type": "integer"}}}}}


@pytest.mark.parametrize(
    ("tools", "arguments"),
    [(None, '{"n": "7"}'), ([TOOL], '{"n": 7}'), ({"model": "m", "tools": [TOOL]}, '{"n": 7}')],
)
def test_tools_give_arguments_their_types(run: Run, tools: object, arguments: str):
    options = [] if tools is None else ["--tools", run.file("tools.json", json.dumps(tools))]
    output = "<tool_call>\n<function=f>\n<parameter=n>\n7\n</parameter>\n</function>\n</tool_call>"
    _, out, _ = run("parse", "--format", "qwen3_coder", *options, stdin=output)
    assert json.loads(out)["tool_calls"][0]["function"]["arguments"] == arguments


@pytest.mark.parametrize("tools", [[], {"tools": None}])
def test_no_tools_no_calls(run: Run, tools: object):
    file = run.file("tools.json", json.dumps(tools))
    _, out, _ = run(*QWEN, "--tools", file, stdin=OUTPUT)
    assert json.loads(out)["content"] == OUTPUT.partition("</think>\n\n")[2]


def test_a_format_of_ones_own(run: Run):
    mine = Format(name="mine", reasoning=Reasoning(open=Marker("<r>"), close=Marker("</r>")))
    file = run.file("mine.json", mine.to_json())
    _, out, _ = run("parse", "--format", file, stdin="<r>a</r>b")
    assert json.loads(out) == {"role": "assistant", "content": "b", "reasoning": "a"}


def test_a_format_of_ones_own_with_reasoning_of_another(run: Run):
    file = run.file("mine.json", named("hermes").to_json())
    assert run("parse", "--format", f".{os.sep}{file}", "--reasoning", "qwen3", stdin=OUTPUT) == (0, MESSAGE, "")


# -- parse: other views -------------------------------------------------------------------------------------------


DELTAS = """\
{"reasoning":"Look"}
{"reasoning":" it up."}
{"content":"Sure."}
{"tool_calls":[{"index":0,"id":"call_b34c8a5956697a24bb7b478e","type":"function","function":{"name":"get_weather"}}]}
{"tool_calls":[{"index":0,"function":{"arguments":"{\\"city\\": \\"P"}}]}
{"tool_calls":[{"index":0,"function":{"arguments":"aris\\"}"}}]}
"""


def test_deltas_as_they_come(run: Run):
    assert run(*QWEN, "--stream", "--split", "12", stdin=OUTPUT) == (0, DELTAS, "")


def test_a_line_is_flushed_before_more_is_read(run: Run, monkeypatch: pytest.MonkeyPatch):
    log: list[str] = []

    class Stdin(io.RawIOBase):
        def read1(self, size: int) -> bytes:
            log.append("read")
            return b"word " if log.count("read") < 3 else b""

    class Stdout(io.StringIO):
        def write(self, text: str) -> int:
            log.append(text)
            return len(text)

        def flush(self) -> None:
            log.append("flush")

    monkeypatch.setattr(common, "stdin", lambda: Stdin())
    monkeypatch.setattr(sys, "stdout", Stdout())
    assert cli.main(["parse", "--format", "passthrough", "--stream"]) == 0
    first, second = '{"content":"word"}\n', '{"content":" word"}\n'
    assert log[:6] == ["read", first, "flush", "read", second, "flush"]


def test_everything_on_one_line(run: Run):
    cut = '<tool_call>\n{"name": "f", "arguments": {"a": 1'
    code, out, err = run("parse", "--format", "kimi_k2", "--json", "--finish-reason", "length", stdin="Hi")
    assert (code, err) == (0, "")
    assert out == (
        '{"message":{"role":"assistant","content":"Hi"},"finish_reason":"length","statuses":[],"reasons":[],"repairs":[],'
        '"diagnostics":[]}\n'
    )
    _, out, _ = run(*QWEN, "--json", "--finish-reason", "length", stdin=cut)
    assert out.count("\n") == 1
    everything = json.loads(out)
    assert everything["message"]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a": 1'}
    assert (everything["finish_reason"], everything["statuses"]) == ("length", ["incomplete"])
    assert everything["repairs"] == [[]]


def test_everything_with_spans(run: Run):
    _, out, _ = run(*QWEN, "--json", "--explain", stdin=ODD)
    everything = json.loads(out)
    assert everything["message"] == json.loads(MESSAGE)
    assert everything["finish_reason"] == "tool_calls"
    assert everything["statuses"] == ["ok"]
    assert everything["diagnostics"] == [
        {
            "code": "stray_close",
            "message": "a closing marker with nothing to close was dropped",
            "start": 117,
            "end": 129,
            "text": "</tool_call>",
        }
    ]
    assert [(span["kind"], ODD[span["start"] : span["end"]]) for span in everything["spans"]] == [
        ("markup", "<think>\n"),
        ("reasoning", "Look it up."),
        ("markup", "\n</think>\n\n"),
        ("content", "Sure."),
        ("markup", '\n<tool_call>\n{"name": "'),
        ("name", "get_weather"),
        ("markup", '", "arguments": '),
        ("arguments", '{"city": "Paris"}'),
        ("markup", "}\n</tool_call>\n"),
        ("dropped", "</tool_call>"),
    ]


def test_odd_output_is_noted(run: Run):
    note = "untemplate: 1 diagnostic (stray_close); --explain shows where\n"
    assert run(*QWEN, stdin=ODD) == (0, MESSAGE, note)
    assert run(*QWEN, "--json", stdin=ODD)[2] == ""
    _, _, err = run(*QWEN, stdin=ODD + "\n</tool_call>")
    assert err == "untemplate: 2 diagnostics (stray_close); --explain shows where\n"


EXPLAINED = """\
[markup]<think>↵
[reasoning]Look it up.[markup]↵
</think>↵
↵
[content]Sure.[markup]↵
<tool_call>↵
{"name": "[name]get_weather[markup]", "arguments": [arguments]{"city": "Paris"}[markup]}↵
</tool_call>↵
[dropped]</tool_call>

diagnostics
  stray_close at 117:129 (line 9, column 1): a closing marker with nothing to close was dropped
    | </tool_call>
    hint: Nothing is lost: the model wrote a close too many.

result  reasoning, content, 1 call: get_weather (ok); finish_reason tool_calls
"""


def test_explained(run: Run):
    assert run(*QWEN, "--explain", stdin=ODD) == (0, EXPLAINED, "")


def test_explained_in_colour(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    code, out, err = run("parse", "--format", "kimi_k2", "--explain", stdin="a\n<|tool_calls_section_begin|>")
    assert (code, err) == (0, "")
    assert out == (
        "\x1b[32ma\x1b[0m\x1b[2m↵\x1b[0m\n\x1b[7;31m<|tool_calls_section_begin|>\x1b[0m\n\n"
        "\x1b[1mregions\x1b[0m  \x1b[35mreasoning\x1b[0m  \x1b[32mcontent\x1b[0m  \x1b[1;33mname\x1b[0m  "
        "\x1b[33mid\x1b[0m  \x1b[36marguments\x1b[0m  \x1b[2mmarkup\x1b[0m  \x1b[7;31mdropped\x1b[0m\n\n"
        "\x1b[1mdiagnostics\x1b[0m\n"
        "\x1b[31m  incomplete_call\x1b[0m\x1b[2m at 2:30 (line 2, column 1): \x1b[0mthe output ended inside a call\n"
        "    | <|tool_calls_section_begin|>\n"
        "    hint: If the finish reason is length, raise the limit of tokens, or ask the model for less. "
        "Do not run a call with the status incomplete.\n\n"
        "\x1b[1mresult\x1b[0m  content; finish_reason stop (assumed; --finish-reason)\n"
    )


def test_the_explanation_shows_all_of_the_output(run: Run, monkeypatch: pytest.MonkeyPatch):
    _, out, _ = run(*QWEN, "--explain", stdin=ODD)
    assert re.sub(r"\[\w+\]|↵", "", out).startswith(ODD)
    monkeypatch.setenv("FORCE_COLOR", "1")
    _, out, _ = run(*QWEN, "--explain", stdin=ODD)
    assert re.sub(r"\x1b\[[\d;]*m|↵", "", out).startswith(ODD)


def test_nothing_is_explained_as_well(run: Run):
    assert run("parse", "--format", "hermes", "--explain") == (
        0,
        "\n\ndiagnostics  none\n\nresult  nothing; finish_reason stop\n",
        "",
    )


def test_an_explanation_sends_nothing_that_a_terminal_acts_on(run: Run):
    _, out, _ = run("parse", "--format", "hermes", "--explain", "--finish-reason", "\x1b[0m", stdin=b"\x1b[2J\r\xff\n")
    assert out == "[content]\\x1b[2J\\x0d\\xff\n\n\ndiagnostics  none\n\nresult  content; finish_reason \\x1b[0m\n"


def test_json_in_colour(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    _, out, _ = run("parse", "--format", "hermes", stdin='say "hi":')
    key, text = "\x1b[2m{}\x1b[0m: ".format, "\x1b[32m{}\x1b[0m".format
    assert out == (
        f"{{\n  {key(chr(34) + 'role' + chr(34))}{text(chr(34) + 'assistant' + chr(34))},\n"
        f"  {key(chr(34) + 'content' + chr(34))}{text(json.dumps('say ' + chr(34) + 'hi' + chr(34) + ':'))}\n}}\n"
    )
    _, out, _ = run(*QWEN, "--json", stdin=OUTPUT)
    assert "\x1b" not in out


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    raw=st.binary(max_size=200)
    | st.lists(st.sampled_from([*re.findall(r"\S+|\s", ODD), "<function=f>", "\x1b", "{"]))
    .map("".join)
    .map(str.encode),
    view=st.sampled_from([[], ["--json"], ["--stream"], ["--explain"], ["--explain", "--json"]]),
    fmt=st.sampled_from(["hermes", "qwen3_coder", "gpt-oss", "gemma4", "pythonic", "kimi_k2", "json"]),
)
def test_no_output_is_an_error(run: Run, raw: bytes, view: list[str], fmt: str):
    code, out, _ = run("parse", "--format", fmt, "--split", "3", *view, stdin=raw)
    assert code == 0
    if "--explain" not in view:
        json.loads(f"[{','.join(out.splitlines())}]" if "--stream" in view else out)


# -- parse: errors ------------------------------------------------------------------------------------------------


def test_a_bad_name(run: Run):
    assert run.fails("parse", "--format", "hermez") == (
        "untemplate: error: unknown format 'hermez'; did you mean 'hermes'? `untemplate formats` lists all names"
    )
    assert run.fails("parse", "--format", "") == (
        "untemplate: error: unknown format ''; `untemplate formats` lists all names"
    )
    assert run.fails("parse", "--format", "hermes", "--reasoning", "qwen33") == (
        "untemplate: error: unknown reasoning format 'qwen33'; did you mean 'qwen3' or 'qwen38' or 'qwen36'? "
        "`untemplate formats --kind reasoning` lists all names"
    )


def test_two_formats_that_do_not_go_together(run: Run):
    assert run.fails("parse", "--format", "gpt-oss", "--reasoning", "qwen3") == (
        "untemplate: error: reasoning 'qwen3' and tools 'gpt-oss' cannot be combined: 'gpt-oss' writes a turn as "
        "messages in channels, which carry reasoning, content and calls together"
    )


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("{", "$: not JSON: Expecting property name enclosed in double quotes (line 1, column 2)"),
        ('{"version": 1, "name": ""}', "name: is empty"),
        ('{"version": 1, "name": "x", "reasoning": {}}', "reasoning.close: is missing"),
    ],
)
def test_a_format_file_that_is_none(run: Run, document: str, problem: str):
    file = run.file("mine.json", document)
    message = run.fails("parse", "--format", file)
    if document == "{":
        assert message.startswith("untemplate: error: --format mine.json: ")
        assert "Expecting property name" in message
    else:
        assert message == f"untemplate: error: --format mine.json: {problem}"


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("[\n  x]", "not JSON: Expecting value (line 2, column 3)"),
        (b"\xff\xfe\xfd", "not JSON: 'utf-16-le' codec can't decode byte 0xfd in position 2: truncated data"),
        ("{}", "tools: expected a list, got dict"),
        ("7", "tools: expected a list, got int"),
        (
            '[{"type": "function", "function": {"name": "a"}}, {"type": "function", "function": {}}]',
            "tools[1].function.name: is required",
        ),
        (
            '[{"type": "function", "function": {"name": "a", "parameters": 7}}]',
            "tools[0].function.parameters: expected an object (a JSON schema), got int",
        ),
    ],
)
def test_tools_that_are_none(run: Run, document: str | bytes, problem: str):
    file = run.file("tools.json", document)
    message = run.fails("parse", "--format", "hermes", "--tools", file)
    assert message == f"untemplate: error: --tools tools.json: {problem}"


def test_tools_too_deep_to_read(run: Run):
    message = run.fails("parse", "--format", "hermes", "--tools", run.file("tools.json", "[" * 100_000))
    assert message.startswith("untemplate: error: --tools tools.json: not JSON: maximum recursion depth exceeded")


@pytest.mark.parametrize(
    ("arguments", "named_as"),
    [
        (["no.txt"], "no.txt"),
        (["--prompt", "no.txt"], "--prompt no.txt"),
        (["--tools", "no.txt"], "--tools no.txt"),
    ],
)
def test_a_file_that_is_not_there(run: Run, arguments: list[str], named_as: str):
    message = run.fails("parse", "--format", "hermes", *arguments)
    assert message == f"untemplate: error: {named_as}: {os.strerror(errno.ENOENT)}"
    assert (
        run.fails("parse", "--format", "no.json") == f"untemplate: error: --format no.json: {os.strerror(errno.ENOENT)}"
    )


def test_a_switch_in_the_environment_that_is_none(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("UNTEMPLATE_STRICT_TOOL_CALL", "maybe")
    assert run.fails("parse", "--format", "hermes") == (
        "untemplate: error: UNTEMPLATE_STRICT_TOOL_CALL: 'maybe' is not one of: 1, true, 0, false"
    )


def test_a_folder_is_no_file(run: Run):
    (run.folder / "folder").mkdir()
    problem = os.strerror(errno.EISDIR)
    assert run.fails("parse", "--format", "hermes", "folder") == f"untemplate: error: folder: {problem}"
    assert run.fails("parse", "--format", "hermes", "--prompt", "folder") == (
        f"untemplate: error: --prompt folder: {problem}"
    )


def test_a_name_that_no_file_can_have(run: Run):
    assert run.fails("parse", "--format", "hermes", "a\0b") == "untemplate: error: a\\x00b: embedded null byte"


def test_stdin_is_there_once(run: Run):
    assert run.fails("parse", "--format", "hermes", "--prompt", "-") == (
        "untemplate: error: --prompt and FILE cannot both be read from stdin"
    )
    _, out, _ = run(*QWEN, "--prompt", "-", run.file("o", "a</think>b"), stdin="<|im_start|>assistant\n<think>\n")
    assert json.loads(out) == {"role": "assistant", "content": "b", "reasoning": "a"}


def test_an_error_in_colour(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    message = run.fails("parse", "--format", "hermes", "no.txt")
    assert message == f"untemplate: \x1b[31merror:\x1b[0m no.txt: {os.strerror(errno.ENOENT)}"


COMMANDS = (
    "parse, batch, stats, drift, conform, guess, inspect, explain, export, formats, check, serve, pull, list, show, rm"
)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["pars"], "untemplate: error: unknown command 'pars'; did you mean 'parse'? commands: " + COMMANDS),
        (["frobnicate"], "untemplate: error: unknown command 'frobnicate'; commands: " + COMMANDS),
        (
            ["parse", "--fromat", "hermes"],
            "untemplate: error: unrecognized arguments: --fromat; did you mean '--format' or '--prompt'?",
        ),
        (
            ["parse"],
            f"untemplate: error: {EMPTY}",
        ),
        (
            ["parse", "--format", "hermes", "--split", "0"],
            "untemplate parse: error: argument --split: '0' is not a positive number",
        ),
        (
            ["parse", "--format", "hermes", "--split", "x"],
            "untemplate parse: error: argument --split: 'x' is not a positive number",
        ),
        (
            ["parse", "--format", "hermes", "--stream", "--explain"],
            "untemplate parse: error: argument --explain: not allowed with argument --stream",
        ),
        (
            ["parse", "--form", "hermes"],
            "untemplate: error: unrecognized arguments: --form; did you mean '--format'?",
        ),
    ],
)
def test_arguments_that_are_wrong(run: Run, arguments: list[str], problem: str):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == problem


def test_without_arguments_it_prints_its_help(run: Run):
    code, out, err = run()
    assert (code, err) == (0, "")
    assert out.startswith("usage: untemplate [-h] [--version] COMMAND ...\n")


# -- formats ------------------------------------------------------------------------------------------------------


def rows_of(lines: list[str]) -> list[list[str]]:
    return [re.split(r"  +", line) for line in lines[1:]]


def test_the_list_has_every_model_of_every_entry(run: Run):
    code, out, err = run("formats")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["MODEL", "NAME", "KIND", "EVIDENCE", "ENGINES", "ALIASES"]
    rows = rows_of(lines)
    assert sorted(row[:3] for row in rows) == sorted([m, e.name, e.kind] for e in entries() for m in e.models or "-")
    assert [row[0].lower() for row in rows] == sorted(row[0].lower() for row in rows)
    hermes = lookup("tool", "hermes")
    assert next(row for row in rows if row[1] == "hermes") == [
        sorted(hermes.models, key=str.lower)[0],
        "hermes",
        "tool",
        "template",
        "vllm sglang vllm.rs llama.cpp dynamo ollama tensorrt-llm",
        " ".join(hermes.aliases),
    ]


@pytest.mark.parametrize("kind", ["reasoning", "tool"])
def test_the_list_of_one_kind(run: Run, kind: str):
    _, out, _ = run("formats", "--kind", kind)
    assert {(row[1], row[2]) for row in rows_of(out.splitlines())} == {
        (e.name, kind) for e in entries() if e.kind == kind
    }


def test_the_list_as_json(run: Run):
    _, out, _ = run("formats", "--json", "--kind", "tool")
    listed = json.loads(out)
    assert [entry["name"] for entry in listed] == [e.name for e in entries() if e.kind == "tool"]
    hermes = lookup("tool", "hermes")
    assert next(entry for entry in listed if entry["name"] == "hermes") == {
        "name": "hermes",
        "kind": "tool",
        "aliases": list(hermes.aliases),
        "models": list(hermes.models),
        "engines": list(hermes.engines),
        "evidence": [str(evidence) for evidence in hermes.evidence],
        "verified": True,
    }


@pytest.mark.parametrize(
    ("columns", "heads"), [(80, ["MODEL", "NAME", "KIND", "EVIDENCE"]), (60, ["MODEL", "NAME"]), (20, ["MODEL"])]
)
def test_the_list_fits_a_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, heads: list[str]):
    class Terminal(io.StringIO):
        encoding = "utf-8"

        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    assert cli.main(["formats"]) == 0
    lines = terminal.getvalue().splitlines()
    assert lines[0].split() == heads
    assert max(map(len, lines)) <= columns
    assert any("..." in line for line in lines)


@pytest.mark.parametrize("entry", entries(), ids=lambda e: f"{e.kind}-{e.name}")
def test_every_format_can_be_shown(run: Run, entry):
    code, out, err = run("formats", entry.name)
    assert (code, err) == (0, "")
    assert f"{entry.name}  {entry.kind} format" in out.splitlines()
    for text in (*entry.aliases, *entry.models, *entry.engines, *map(str, entry.evidence)):
        assert text in out
    code, out, err = run("formats", entry.name, "--kind", entry.kind, "--json")
    assert (code, err, Format.from_json(out)) == (0, "", entry.format)


def test_a_format_of_both_kinds_as_json_is_both_in_one(run: Run):
    _, out, _ = run("formats", "glm45", "--json")
    assert Format.from_json(out) == named("glm45")


def test_an_alias_shows_what_it_stands_for(run: Run):
    assert run("formats", "qwen25") == run("formats", "hermes")


def test_the_schema_of_a_format(run: Run):
    from untemplate.format._serialization import json_schema

    assert run("formats", "--schema") == (0, json.dumps(json_schema(), indent=2) + "\n", "")


def test_an_unknown_format(run: Run):
    assert run.fails("formats", "hermez") == (
        "untemplate: error: unknown format 'hermez'; did you mean 'hermes'? `untemplate formats` lists all names"
    )
    assert run.fails("formats", "nobody/none") == (
        "untemplate: error: nobody/none: no such file or folder, and no entry of the catalogue matches; `untemplate "
        "explain nobody/none` reads the chat template of a hub id"
    )
    assert run.fails("formats", "./nobody/none") == "untemplate: error: ./nobody/none: no such file or folder"
    problem = "untemplate: error: notes.md: neither the folder of a model nor a GGUF file"
    assert run.fails("formats", run.file("notes.md", "Notes.")) == problem
    assert run.fails("parse", "--format", "untemplate:hermes", stdin="") == (
        "untemplate: error: unknown format 'untemplate:hermes'; did you mean 'hermes'? `untemplate formats` lists all "
        "names"
    )
    assert run.fails("formats", "hermes", "--kind", "reasoning") == (
        "untemplate: error: unknown reasoning format 'hermes'; `untemplate formats --kind reasoning` lists all names"
    )


@pytest.mark.parametrize("model", ["Qwen/Qwen3-8B", "Qwen3-8B", "qwen3_moe"])
def test_the_formats_for_a_model(run: Run, model: str):
    reason = "model type qwen3_moe" if model == "qwen3_moe" else f"{model} matches Qwen/Qwen3-*"
    code, out, err = run("formats", model)
    assert (code, err) == (0, "")
    assert [line.rstrip() for line in out.split("\n")] == [
        "  format    hermes+qwen3",
        "  vLLM      --tool-call-parser untemplate:hermes --reasoning-parser untemplate:qwen3",
        "",
        f"{'NAME':8}{'KIND':11}EVIDENCE  {'ENGINES':58}REASON",
        f"{'qwen3':8}{'reasoning':11}template  {'vllm sglang dynamo ollama tensorrt-llm':58}{reason}",
        f"{'hermes':8}{'tool':11}template  {'vllm sglang vllm.rs llama.cpp dynamo ollama tensorrt-llm':58}{reason}",
        "",
    ]
    found = json.loads(run("formats", model, "--json")[1])
    assert (found["model"], found["formats"]) == (model, ["hermes+qwen3"])
    assert [(entry["name"], entry["reason"]) for entry in found["entries"]] == [("qwen3", reason), ("hermes", reason)]


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("get_weather", "invalid_arguments", "its arguments do not fit the tool's schema ($.city type)"),
        ("get_time", "unknown_tool", "the tool was not offered"),
    ],
)
def test_why_a_call_must_not_run(run: Run, tmp_path: Path, name: str, status: str, reason: str):
    """Only the log had the reason, next to *diagnostics none*."""
    tools = tmp_path / "tools.json"
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    tools.write_text(json.dumps([{"type": "function", "function": {"name": "get_weather", "parameters": schema}}]))
    raw = f'<tool_call>{{"name": "{name}", "arguments": {{"city": 3}}}}</tool_call>'
    command = ["parse", "--format", "hermes", "--tools", str(tools)]
    found = json.loads(run(*command, "--json", stdin=raw)[1])
    assert (found["statuses"], found["reasons"]) == ([status], [reason])
    assert f"1 call: {name} ({status}: {reason})" in run(*command, "--explain", stdin=raw)[1]


def test_the_formats_for_a_folder(run: Run, tmp_path: Path):
    (tmp_path / "config.json").write_text('{"model_type": "glm4_moe"}')
    assert json.loads(run("formats", str(tmp_path), "--json")[1])["formats"] == ["glm45"]


def test_the_format_for_a_folder_is_the_one_it_is_parsed_with(run: Run, tmp_path: Path):
    """The type suggests hermes+qwen3, which the template does not write."""
    (tmp_path / "config.json").write_text('{"model_type": "qwen3_moe"}')
    (tmp_path / "chat_template.jinja").write_text(CODER)
    found = json.loads(run("formats", str(tmp_path), "--json")[1])
    assert found["formats"] == [OutputParser.for_model(tmp_path).format.name] == ["qwen3_coder"]
    assert [entry["name"] for entry in found["entries"]] == ["qwen3_coder", "qwen3", "hermes"]
    shown = run("formats", str(tmp_path))[1].splitlines()
    assert shown[:4] == [
        "  format    qwen3_coder",
        "  chosen    catalogue: its calls have the markers of the template; certified",
        f"  use       --model {tmp_path}",
        "  vLLM      --tool-call-parser untemplate:qwen3_coder",
    ]


def test_the_template_decides_between_the_formats_of_a_hub_id(run: Run):
    shown = run("formats", "Qwen/Qwen3-Coder-30B-A3B-Instruct")[1].splitlines()
    assert shown[:5] == [
        "  format    qwen3_coder+qwen3",
        "  format    hermes+qwen3",
        "  chosen    the first one that the model's chat template certifies",
        "  vLLM      --tool-call-parser untemplate:qwen3_coder --reasoning-parser untemplate:qwen3",
        "",
    ]


@pytest.mark.parametrize("command", [["parse", "--format"], ["parse", "--enforce-parser"]])
def test_two_names_or_a_file_parse(run: Run, tmp_path: Path, command: list[str]):
    file = tmp_path / "mine.json"
    file.write_text(named("hermes+qwen3").to_json())
    for source in ("hermes+qwen3", str(file)):
        code, out, err = run(*command, source, stdin="<think>\nA\n</think>\n\nB")
        assert (code, err) == (0, "")
        assert json.loads(out)["reasoning"].strip() == "A"


@pytest.mark.parametrize("exists", [True, False])
def test_a_template_given_as_a_format(run: Run, tmp_path: Path, exists: bool):
    file = tmp_path / "chat_template.jinja"
    if exists:
        file.write_text(CODER)
    assert "; --template takes a chat template" in run.fails("parse", "--format", str(file))


def test_two_names_or_a_file_are_shown_and_exported(run: Run, tmp_path: Path):
    file = tmp_path / "mine.json"
    file.write_text(named("hermes+qwen3").to_json())
    assert run("export", "--format", str(file)) == run("export", "--format", "hermes+qwen3")
    for command in ("formats", "explain"):
        one, two = (json.loads(run(command, source, "--json")[1]) for source in (str(file), "hermes+qwen3"))
        assert one.get("format", one) == two.get("format", two)
    file.write_text('{"name": "x", "turns": 1}')
    for command in ("formats", "explain"):
        assert run.fails(command, str(file)).startswith(f"untemplate: error: {file}: turns: ")


def test_what_an_entry_rests_on():
    assert evidence_word(lookup("tool", "hermes")) == "template"
    assert evidence_word(lookup("tool", "plamo3")) == "engine"
    assert evidence_word(replace(lookup("tool", "hermes"), verified=False)) == "none"


# -- as a program -------------------------------------------------------------------------------------------------


def program(*arguments: str, stdin: bytes = b"", **environ: str) -> subprocess.CompletedProcess[bytes]:
    inherited = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return subprocess.run(
        [sys.executable, "-m", "untemplate", *arguments],
        input=stdin,
        capture_output=True,
        env={**inherited, "PYTHONIOENCODING": "utf-8", **environ},
        check=False,
    )


def test_version():
    done = program("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"untemplate {__version__}\n".encode(), b"")


def test_from_end_to_end():
    done = program(*QWEN, stdin=OUTPUT.encode())
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, MESSAGE, b"")


def test_from_end_to_end_streamed():
    done = program(*QWEN, "--stream", stdin=ODD.encode())
    assert (done.returncode, done.stderr) == (0, b"")
    deltas = [json.loads(line) for line in done.stdout.splitlines()]
    stream = OutputParser.named("hermes", reasoning="qwen3").stream(seed="untemplate")
    expected = merge_deltas([*stream.feed(ODD), *stream.finish()])
    assert expected is not None
    assert "".join(d.get("reasoning", "") for d in deltas) == expected.reasoning
    assert "".join(d.get("content", "") for d in deltas) == expected.content


def test_without_unicode_everything_can_be_printed():
    done = program(*QWEN, stdin="é｜\udcff".encode("utf-8", "surrogateescape"), PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout) == (
        0,
        b'{\n  "role": "assistant",\n  "content": "\\u00e9\\uff5c\\udcff"\n}\n',
    )
    done = program(*QWEN, "--explain", stdin="é<think>\n\n</think>".encode(), PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.startswith(b"[content]\\xe9[markup]<think>\\n\n\\n\n</think>\n")
    done = program("parse", "--format", "é", PYTHONIOENCODING="ascii")
    assert done.stderr.startswith(b"untemplate: error: unknown format '\\xe9';")
    assert program("formats", "deepseek_v31", PYTHONIOENCODING="ascii").returncode == 0


def test_help_loads_no_parser():
    code = """if True:
        import sys
        from untemplate._internal import cli
        try:
            cli.main(["--help"])
        finally:
            print(sorted(m for m in sys.modules if "untemplate" in m or m in ("msgspec", "jinja2")))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == (
        "['untemplate', 'untemplate._internal', 'untemplate._internal.cli', 'untemplate._internal.cli.arguments', "
        "'untemplate._internal.cli.common', "
        "'untemplate._internal.cli.options', 'untemplate._internal.cli.options.common', "
        "'untemplate._internal.installed', 'untemplate._internal.suggestions', 'untemplate._internal.terminal', "
        "'untemplate.errors', "
        "'untemplate_gateway', 'untemplate_gateway.cli', 'untemplate_gateway.cli.models']"
    )


def test_every_help_ends_with_the_exit_codes(capsys):
    shown = ("parse", "batch", "stats", "drift", "guess", "inspect", "explain", "export", "formats", "serve", "check")
    commands = (*shown, "pull", "list", "show", "rm")
    for command in commands:
        with pytest.raises(SystemExit):
            cli.main([command, "--help"])
        last = capsys.readouterr().out.split("\n\n")[-1]
        assert last.startswith("exit codes: 0 "), command
        assert ("3 a check failed" in last, "with --strict" in last) == (
            command == "check",
            command in ("batch", "drift"),
        )


def test_a_reader_that_leaves():
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as out:
        done = subprocess.run(
            [sys.executable, "-m", "untemplate", "formats"], stdout=out, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_disk_that_is_full():
    with open("/dev/full", "wb") as out:
        done = subprocess.run(
            [sys.executable, "-m", "untemplate", "formats"], stdout=out, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (
        1,
        f"untemplate: error: cannot write: {os.strerror(errno.ENOSPC)}\n".encode(),
    )


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
def test_closed_streams():
    command = f"{sys.executable} -m untemplate"
    done = subprocess.run(f"{command} formats >&-", shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "untemplate: error: cannot write: stdout is closed\n")
    done = subprocess.run(
        f"{command} parse --format hermes <&-", shell=True, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (2, "untemplate: error: stdin is closed\n")


def test_dropped_and_invalid_calls_are_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    tools = tmp_path / "tools.json"
    tools.write_text('[{"type": "function", "function": {"name": "f"}}]', "utf-8")
    output = tmp_path / "output.txt"
    output.write_text('<tool_call>{"name": "g", "arguments": {}}</tool_call>', "utf-8")
    arguments = ["parse", "--format", "hermes", "--tools", str(tools), str(output)]
    assert cli.main(arguments) == 0
    assert capsys.readouterr().err == "untemplate: warning: kept call of 'g': the tool was not offered\n"
    assert cli.main([*arguments, "--policy", "strict=true"]) == 0
    assert capsys.readouterr().err == (
        "untemplate: warning: dropped call of 'g': the tool was not offered\n"
        "untemplate: 1 diagnostic (dropped_call); --explain shows where\n"
    )


def test_a_marker_of_another_format_has_a_hint(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    output = tmp_path / "output.txt"
    output.write_text("[TOOL_CALLS]f", "utf-8")
    assert cli.main(["parse", "--format", "hermes", "--explain", str(output)]) == 0
    shown = capsys.readouterr().out
    assert "content holds '[TOOL_CALLS]', which begins calls in mistral" in shown
    assert "    hint: `untemplate guess FILE` ranks the formats for an output\n" in shown


def test_the_first_diagnostic_of_a_code_has_advice(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    output = tmp_path / "output.txt"
    output.write_text('<tool_call>{"name": "f", "arguments": {}}</tool_call>\n</tool_call>\n' * 2, "utf-8")
    assert cli.main(["parse", "--format", "hermes", "--explain", str(output)]) == 0
    shown = capsys.readouterr().out
    assert shown.count("  stray_close at") == 2
    assert shown.count("    hint: Nothing is lost: the model wrote a close too many.\n") == 1


@pytest.mark.parametrize(
    ("name", "output", "hint"),
    [
        (
            "hermes",
            '<tool_call>\n{"name": "f", "arguments": {"city": "Paris}}\n</tool_call>',
            "more tokens do not help",
        ),
        ("hermes", '<tool_call>\n{"name": "f", "arguments": {"city": "Paris}}\n</tool_call><|im_end|>', "was not cut"),
        ("lfm2", "<|tool_call_start|>[f(city='Paris)]<|tool_call_end|>", "was not cut"),
        ("hermes", '<tool_call>\n{"name": "f", "arguments": {"city": "Par', "If the finish reason is length, raise"),
        ("hermes", '<tool_call>\n{"name": "f", "arguments": {"html": "<b>x</b>', "If the finish reason is length"),
        ("hermes+qwen3", "Hm.\n</think>\n\nHi.", "If the prompt opens the reasoning, give it: --prompt FILE."),
    ],
)
def test_advice_follows_what_the_output_shows(
    name: str, output: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "output.txt"
    file.write_text(output, "utf-8")
    assert cli.main(["parse", "--format", name, "--explain", str(file)]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("    hint: ")]
    assert hint in line


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("untemplate pars", ["parse"]),
        ("untemplate parse --form", ["--format"]),
        ("untemplate check --base", ["--base-url"]),
        ("untemplate serve --upstream-con", ["--upstream-concurrency"]),
        ("untemplate parse --format qwen3_cod", ["qwen3_coder"]),
        ("untemplate parse --format hermes+deepseek_r", ["hermes+deepseek_r1"]),
        ("untemplate parse --reasoning granite_th", ["granite_thinking_parser"]),
        ("untemplate formats ling", ["ling3"]),
    ],
)
def test_completion(line: str, words: list[str], tmp_path: Path):
    answer = tmp_path / "answer"
    asked = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": "\n"}
    command = [sys.executable, "-m", "untemplate"]
    subprocess.run(command, env=os.environ | asked | {"_ARGCOMPLETE_STDOUT_FILENAME": str(answer)}, check=True)
    assert [word.strip() for word in answer.read_text().splitlines()] == words
