"""The demo: its outputs parse as expected under every law, and it works on any terminal."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from importlib.resources import files

import pytest

from untemplate import testing
from untemplate._internal import demo
from untemplate._internal.demo import as_expected
from untemplate._internal.examples import Example, examples, pieces
from untemplate._internal.terminal import width

EXAMPLES = examples()
VERDICT = "12 outputs, 11 formats: every message is as expected.\n"


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)


# -- the outputs --------------------------------------------------------------------------------------------------


def test_there_are_many():
    assert len(EXAMPLES) == 12
    assert len({example.format for example in EXAMPLES}) == 11


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_an_output_means_what_it_says(example: Example):
    expect = dict(example.expect)
    expect["tool_calls"] = [tuple(call) for call in expect.get("tool_calls", [])]
    parsed = testing.check(
        example.format,
        example.output,
        expect,
        tools=example.tools,
        prompt=example.prompt,
        reasoning=example.reasoning,
        finish_reason=example.finish_reason,
    )
    assert as_expected(parsed, example.expect)


def test_the_files_are_as_they_are_written_by_hand():
    folder = files("untemplate") / "_internal/examples"
    found = sorted((f for f in folder.iterdir() if f.name.endswith(".json")), key=lambda f: f.name)
    assert found
    for file in found:
        text = file.read_text("utf-8")
        assert text == json.dumps(json.loads(text), ensure_ascii=False, indent=2) + "\n", file.name


@pytest.mark.parametrize(
    "change",
    [
        {"reasoning": "another"},
        {"content": "another"},
        {"finish_reason": "stop"},
        {"tool_calls": []},
        {"tool_calls": [["another", {"city": "Lisbon", "days": 1}]]},
        {"tool_calls": [["get_forecast", {"city": "Porto", "days": 1}]]},
        {"tool_calls": [["get_forecast", {"city": "Lisbon", "days": 1}, "incomplete"]]},
        {"tool_calls": [["get_forecast", '{"city":"Lisbon","days":1}']]},
    ],
)
def test_another_message_is_not_the_expected_one(change: dict[str, object]):
    example = EXAMPLES[0]
    parsed = example.parser.parse(example.output, tools=example.tools, prompt=example.prompt)
    assert as_expected(parsed, example.expect)
    assert not as_expected(parsed, {**example.expect, **change})


def test_pieces_are_token_like():
    assert pieces("<think>\nCalling get_weather, now!</think>", ["<think>", "</think>"]) == [
        *("<think>", "\n", "Callin", "g", " get_we", "ather", ", ", "now", "!", "</think>")
    ]
    for example in EXAMPLES:
        assert "".join(pieces(example.output, [])) == example.output


# -- the show -----------------------------------------------------------------------------------------------------

FIRST = """\
1/12 Qwen3: reasoning, a word to the user, a call  hermes+qwen3
<think>                                 │ reasoning  The user is in Lisbon and
The user is in Lisbon and asks about    │            asks about tomorrow. One
tomorrow. One look at the forecast      │            look at the forecast will do.
will do.                                │ content    Let me look that up.
</think>                                │ call 0     get_forecast
                                        │            call_06b163a3ea1b54fc50da38af
Let me look that up.                    │            {"city": "Lisbon", "days": 1}
<tool_call>                             │
{"name": "get_forecast", "arguments":   │
{"city": "Lisbon", "days": 1}}          │
</tool_call><|im_end|>                  │
60 pieces, 39 deltas, finish_reason tool_calls

"""


def test_two_columns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("COLUMNS", "82")
    assert demo.main([]) == 0
    shown = capsys.readouterr().out
    assert shown[: len(FIRST)] == FIRST
    assert shown.endswith("\n\n" + VERDICT)


def test_one_column_where_two_have_no_room(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setattr(demo, "examples", lambda: EXAMPLES[1:2])
    assert demo.main([]) == 0
    assert (
        capsys.readouterr().out
        == """\
1/1 Mistral: two calls at
once  mistral
[TOOL_CALLS]convert[ARGS]{"amo
unt": 120, "from": "EUR",
"to":
"JPY"}[TOOL_CALLS]convert[ARGS
]{"amount": 80, "from":
"GBP", "to": "JPY"}</s>
---------
call 0
convert  pBeLbwHei
{"amount": 120, "from":
"EUR", "to": "JPY"}
call 1
convert  v3CkyVK4H
{"amount": 80, "from": "GBP",
"to": "JPY"}
43 pieces, 34 deltas,
finish_reason tool_calls

1 outputs, 1 formats: every
message is as expected.
"""
    )


@pytest.mark.parametrize("columns", [1, 2, 11, 31, 59, 60, 61, 97, 300])
def test_any_width(columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert demo.main([]) == 0
    for line in capsys.readouterr().out.split("\n"):
        assert width(line) <= max(columns, 2)


def test_colour_changes_nothing_else(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    demo.main([])
    plain = capsys.readouterr().out
    monkeypatch.setenv("FORCE_COLOR", "1")
    demo.main([])
    coloured = capsys.readouterr().out
    assert coloured != plain
    without = re.sub(r"\x1b\[[\d;]*m", "", coloured)
    assert [line.rstrip() for line in without.split("\n")] == [line.rstrip() for line in plain.split("\n")]


def test_a_wrong_message_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    wrong = Example(title="t", format="hermes", output="Hi", expect={"content": "Ho", "finish_reason": "stop"})
    monkeypatch.setattr(demo, "examples", lambda: [EXAMPLES[0], wrong])
    assert demo.main([]) == 1
    assert capsys.readouterr().out.endswith("\n\n1 of 2 outputs gave a wrong message.\n")


class Terminal(io.StringIO):
    """A terminal of 40 lines that records the written text, and the text that is visible at the end."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    def seen(self) -> list[str]:
        lines, row, text = [""], 0, ""
        for token in re.findall(r"\x1b\[\??\d*[;\d]*[A-Za-z]|\n|[^\x1b\n]+", self.getvalue()):
            if up := re.fullmatch(r"\x1b\[(\d+)F", token):
                assert int(up[1]) < 40
                row, text = row - int(up[1]), ""
            elif token == "\n":
                row, text = row + 1, ""
                lines += [""] * (row + 1 - len(lines))
            elif token == "\x1b[K":
                lines[row] = text
            elif not token.startswith("\x1b"):
                text += token
        return [line.rstrip() for line in lines]


def test_on_a_terminal_it_is_drawn_as_it_comes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    demo.main([])
    plain = capsys.readouterr().out
    terminal, naps = Terminal(), []
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(demo.time, "sleep", naps.append)
    monkeypatch.setenv("LINES", "40")
    monkeypatch.setenv("TERM", "xterm")
    assert demo.main([]) == 0
    assert terminal.seen() == [line.rstrip() for line in plain.split("\n")]
    assert set(naps) == {demo.PACE}
    assert terminal.getvalue().startswith("\x1b[?25l")
    assert terminal.getvalue().endswith("\x1b[?25h")


def test_fast_on_a_terminal(monkeypatch: pytest.MonkeyPatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(demo.time, "sleep", lambda _: pytest.fail("no pace was asked for"))
    assert demo.main(["--fast"]) == 0
    assert "\x1b[?25l" not in terminal.getvalue()


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_as_a_program(encoding: str):
    environ = {**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-m", "untemplate._internal.demo"], capture_output=True, env=environ, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode(encoding).endswith("\n\n" + VERDICT)
