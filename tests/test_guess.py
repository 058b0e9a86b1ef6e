"""Ranking the formats for an output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from untemplate import OutputParser
from untemplate.cli import main
from untemplate.guess import guess

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
    assert len(shown) == 11
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


def test_a_file_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["guess", "/nowhere"]) == 2
    assert capsys.readouterr().err == "untemplate: error: FILE /nowhere: No such file or directory\n"
