"""Raw outputs in files that hold more: an API's answer, rows as JSON."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from untemplate import OutputParser
from untemplate._internal.cli import main
from untemplate._internal.inspector.inspector import entries
from untemplate._internal.saved import Answer, Output, answer_in, columns_in, may_be_answer, rows_in

RAW = '<think>\nHm.\n</think>\n\n<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>'
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT = "an answer of Chat Completions"


def chat(message: dict[str, Any], reason: str | None = "stop", **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason, **more}]}


def events(*chunks: Any) -> str:
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


def deltas(text: str) -> list[dict[str, Any]]:
    return [{"choices": [{"index": 0, "delta": {"content": text[i : i + 7]}}]} for i in range(0, len(text), 7)]


ANSWERS = {
    "chat": (chat({"content": RAW}, "length"), Answer(CHAT, (Output(RAW, "length"),))),
    "no reason": (chat({"content": RAW}, None), Answer(CHAT, (Output(RAW),))),
    "without reasoning": (
        chat({"content": RAW, "reasoning_content": "Hm.", "reasoning": "Hm."}),
        Answer(CHAT, (Output(RAW, "stop", "Hm."),), ("reasoning_content", "reasoning")),
    ),
    "half parsed": (
        chat({"content": RAW, "reasoning_content": "Hm.", "tool_calls": [CALL]}),
        Answer(CHAT, (), ("reasoning_content", "tool_calls")),
    ),
    "empty": (chat({"content": ""}), Answer(CHAT, (Output("", "stop"),))),
    "without text": (chat({"content": None}), Answer(CHAT)),
    "parsed": (
        chat({"content": "Fine.", "reasoning": "Hm.", "tool_calls": [CALL]}),
        Answer(CHAT, (), ("reasoning", "tool_calls")),
    ),
    "the gateway's raw output": (
        chat({"content": None, "tool_calls": [CALL]}, "tool_calls", untemplate={"raw": RAW}),
        Answer(CHAT, (Output(RAW, "tool_calls"),), read="raw output"),
    ),
    "completions": (
        {"choices": [{"text": RAW, "finish_reason": "length"}]},
        Answer("an answer of Completions", (Output(RAW, "length"),), read="text"),
    ),
    "ollama": (
        {"message": {"role": "assistant", "content": RAW}, "done": True, "done_reason": "stop"},
        Answer("an answer of Ollama", (Output(RAW, "stop"),)),
    ),
    "ollama generate": ({"response": RAW, "done": True}, Answer("an answer of Ollama", (Output(RAW),))),
    "messages": (
        {"type": "message", "content": [{"type": "text", "text": RAW}], "stop_reason": "max_tokens"},
        Answer("an answer of Messages", (Output(RAW, "length"),)),
    ),
    "messages, parsed": (
        {"type": "message", "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Fine."}]},
        Answer("an answer of Messages", (Output("Fine.", None, "Hm."),), ("thinking",)),
    ),
    "messages that reason twice": (
        {
            "type": "message",
            "content": [
                {"type": "thinking", "thinking": "Hm. "},
                {"type": "text", "text": "Fine."},
                {"type": "thinking", "thinking": "So."},
            ],
        },
        Answer("an answer of Messages", (Output("Fine.", None, "Hm. So."),), ("thinking",)),
    ),
    "two fields of reasoning": (
        chat({"content": "Fine.", "reasoning_content": "Hm.", "reasoning": "Another."}),
        Answer(CHAT, (), ("reasoning_content", "reasoning")),
    ),
    "responses with reasoning": (
        {
            "object": "response",
            "status": "incomplete",
            "output": [
                {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
                {"type": "message", "content": [{"type": "output_text", "text": RAW}]},
            ],
        },
        Answer("an answer of Responses", (Output(RAW, "length", "Hm."),), ("reasoning",)),
    ),
    "responses with a summary alone": (
        {
            "object": "response",
            "output": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
                {"type": "message", "content": [{"type": "output_text", "text": RAW}]},
            ],
        },
        Answer("an answer of Responses", (), ("reasoning",)),
    ),
    "messages with a call": (
        {"type": "message", "content": [{"type": "text", "text": RAW}, {"type": "tool_use", "name": "f"}]},
        Answer("an answer of Messages", (), ("tool_use",)),
    ),
    "responses": (
        {"object": "response", "output": [{"type": "message", "content": [{"type": "output_text", "text": RAW}]}]},
        Answer("an answer of Responses", (Output(RAW),)),
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_of_apis(name: str) -> None:
    value, expected = ANSWERS[name]
    for indent in (None, 2):
        text = json.dumps(value, indent=indent)
        assert answer_in(text) == answer_in("\n" + text + "\n") == expected
        assert may_be_answer(text)


def test_streams_of_chunks() -> None:
    chunks = [*deltas(RAW), {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}, {"choices": []}]
    assert answer_in(events(*chunks)) == Answer(CHAT, (Output(RAW, "length"),))
    assert answer_in(events({"choices": [{"index": 0, "delta": {"reasoning": "Hm."}}]})) == Answer(
        CHAT, (Output("", None, "Hm."),), ("reasoning",)
    )
    assert answer_in(events({"type": "content_block_delta"})) == Answer("a stream of Messages", (), ("as a stream",))
    assert may_be_answer(events(*chunks)[:30])


def test_a_json_string_with_markers() -> None:
    assert answer_in(json.dumps(RAW)) == Answer("a JSON string", (Output(RAW),), read="value")


OUTPUTS = [
    "Hello.",
    RAW,
    "",
    '{"name": "f", "arguments": {}}',
    '[{"name": "f", "arguments": {}}]',
    '{"name": "f", "arguments": {}}\n{"name": "g", "arguments": {}}',
    '{"choices": ["a", "b"]}',
    '{"choices": []}',
    '{"output": 3}',
    '"Fine."',
    '"Fine," she said.\n"Good."',
    "[1, 2",
    "data of the week",
    "{" * 5000,
]


@pytest.mark.parametrize("text", OUTPUTS)
def test_outputs_are_neither(text: str) -> None:
    assert answer_in(text) is None
    assert rows_in(text) is None


def test_rows() -> None:
    row = {"output": RAW, "id": 1}
    assert rows_in(json.dumps(row) + "\n" + json.dumps(row)) == [(1, row), (2, row)]
    assert rows_in(json.dumps([RAW, "Hi"])) == [(1, {"output": RAW}), (2, {"output": "Hi"})]
    assert rows_in(json.dumps(RAW) + "\n" + json.dumps("Hi")) == [(1, {"output": RAW}), (2, {"output": "Hi"})]


def test_rows_keep_their_numbers_and_what_is_not_one_stays_among_them() -> None:
    row = {"output": RAW, "id": 1}
    given = json.dumps(row) + '\n\nnot JSON\n{"id": 2}\n' + json.dumps(row)
    assert rows_in(given) == [(1, row), (3, b"not JSON"), (4, {"id": 2}), (5, row)]


def test_the_column_of_a_row_comes_before_an_answer_in_it() -> None:
    """As `untemplate batch` reads it."""
    answer = chat({"content": "Hi"})
    assert rows_in(json.dumps(answer) + "\n" + json.dumps(answer | {"output": RAW})) == [
        (1, answer),
        (2, answer | {"output": RAW}),
    ]
    assert rows_in('{"raw": "x"}\n{"raw": "y"}') is None
    assert rows_in('{"raw": "x"}\n{"raw": "y"}', "raw") == [(1, {"raw": "x"}), (2, {"raw": "y"})]
    assert columns_in('{"raw": "x", "id": 1}\n{"raw": "y"}') == columns_in('[{"raw": "x", "id": 1}]') == ["raw", "id"]
    assert columns_in("Hello.") == columns_in("[]") == []


# -- The commands -------------------------------------------------------------------------------------------------


def given(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_a_saved_answer_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "response.json"
    file.write_text(json.dumps(chat({"content": RAW}, "length")))
    note = f"untemplate: {file} is an answer of Chat Completions: its content is read\n"
    assert main(["guess", str(file)]) == 0
    out, err = capsys.readouterr()
    assert (out.splitlines()[-1], err) == ("--format hermes+qwen3", note)
    assert main(["parse", "--format", "hermes+qwen3", "--json", str(file)]) == 0
    out, err = capsys.readouterr()
    assert (json.loads(out)["finish_reason"], json.loads(out)["message"]["reasoning"], err) == ("length", "Hm.", note)
    assert main(["parse", "--format", "hermes+qwen3", "--json", "--finish-reason", "stop", str(file)]) == 0
    assert json.loads(capsys.readouterr().out)["finish_reason"] == "tool_calls"


def test_an_answer_that_was_parsed_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "response.json"
    file.write_text(json.dumps(chat({"content": None, "tool_calls": [CALL]})))
    wrong = (
        f"untemplate: error: {file} is an answer of Chat Completions without the raw output: the server parsed it "
        'already (tool_calls); give the raw output: from untemplate\'s gateway with "untemplate": {"raw": true} in the '
        'request, from vLLM and SGLang with "skip_special_tokens": false and a server that was started without '
        "parsers\n"
    )
    for command in (["guess"], ["parse", "--format", "hermes"], ["parse", "--format", "hermes", "--stream"]):
        assert main([*command, str(file)]) == 2
        assert capsys.readouterr() == ("", wrong)


HALF = (
    " is an answer of Chat Completions without the raw output: the server parsed it already (reasoning_content, "
    'tool_calls); give the raw output: from untemplate\'s gateway with "untemplate": {"raw": true} in the request, '
    'from vLLM and SGLang with "skip_special_tokens": false and a server that was started without parsers'
)
OWN = (
    "the server took reasoning out of it, and its content has reasoning of its own; give the raw output: "
    'from untemplate\'s gateway with "untemplate": {"raw": true} in the request, from vLLM and SGLang with '
    '"skip_special_tokens": false and a server that was started without parsers'
)


def test_parse_and_batch_give_the_same_verdict_on_a_half_parsed_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`parse` noted what the server had taken, and `batch` counted the row as clean, without its reasoning and with
    half of its calls."""
    call = RAW.partition("</think>\n\n")[2]
    calls = {"content": call, "reasoning_content": "First f, then g.", "tool_calls": [CALL]}
    reasoning = {"content": call, "reasoning_content": "First f."}
    both = {"content": RAW, "reasoning_content": "First f."}
    file, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    file.write_text("".join(json.dumps(chat(one)) + "\n" for one in (calls, reasoning, both)))
    named = ["--format", "hermes+qwen3"]
    assert main(["batch", str(file), "-o", str(out), *named, "--quiet", "--processes", "1"]) == 0
    capsys.readouterr()
    half, merged, own = map(json.loads, out.read_text().splitlines())
    assert half["error"]["problem"] == f"the row{HALF}"
    assert own["error"]["problem"] == OWN
    assert merged["message"]["reasoning"] == "First f."
    assert [c["function"]["name"] for c in merged["message"]["tool_calls"]] == ["f"]

    def parse(message: dict[str, Any], *options: str) -> tuple[str, str]:
        file.write_text(json.dumps(chat(message)))
        main(["parse", *named, *options, str(file)])
        return capsys.readouterr()

    assert parse(calls) == ("", f"untemplate: error: {file}{HALF}\n")
    note = (
        f"untemplate: {file} is an answer of Chat Completions: its content is read, from which the server took "
        "reasoning_content\n"
    )
    assert parse(both) == ("", f"{note}untemplate: error: {file}: {OWN}\n")
    printed, said = parse(reasoning, "--json")
    assert (json.loads(printed)["message"]["reasoning"], said) == ("First f.", note)
    assert json.loads(parse(reasoning, "--stream")[0].splitlines()[0]) == {"reasoning": "First f."}


def test_reasoning_that_the_server_took_has_ended() -> None:
    """Formats whose prompts open reasoning read the rest of an output as reasoning."""
    for entry in entries():
        parser = OutputParser.named(entry.name)
        output = Output("Paris is nice.", None, "Hm.")
        parsed = parser.parse(output.text, **output.context(parser.format))
        assert output.put_back(parsed) == ""
        assert (parsed.reasoning, parsed.content) == ("Hm.", "Paris is nice."), entry.name


def test_an_empty_output_shows_no_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "output.txt"
    file.write_text(" \n")
    assert main(["parse", str(file)]) == 2
    assert capsys.readouterr().err == (
        "untemplate: error: the output is empty, and does not show its format: name it by --format NAME (`untemplate "
        "guess FILE` ranks them), or --template, --model or --enforce-parser\n"
    )


def test_a_stream_of_an_api_is_read_as_a_stream(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given(monkeypatch, events(*deltas(RAW)))
    assert main(["parse", "--format", "hermes+qwen3", "--stream"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out.splitlines()[0])["reasoning"] == "Hm."
    assert err == "untemplate: stdin is an answer of Chat Completions: its content is read\n"


def test_rows_of_stdin_are_guessed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    note = "untemplate: stdin has rows as JSON; each is read as an output\n"
    for text in (f"{json.dumps({'output': RAW})}\n" * 2, json.dumps([RAW, RAW])):
        given(monkeypatch, text)
        assert main(["guess"]) == 0
        out, err = capsys.readouterr()
        assert (out.splitlines()[1].split()[1], out.splitlines()[-1], err) == ("2", "--format hermes+qwen3", note)
    given(monkeypatch, f"{json.dumps({'raw': RAW, 'id': 1})}\n" * 2)
    assert main(["guess"]) == 0
    hint = "untemplate: it is JSON; if one of raw, id is the output, name it with --output-column\n"
    assert capsys.readouterr().err == hint
    given(monkeypatch, f"{json.dumps({'raw': RAW, 'id': 1})}\n" * 2)
    assert main(["guess", "--output-column", "text"]) == 2
    assert capsys.readouterr().err.endswith(
        "error: stdin: no row has an output in column 'text' (its columns: raw, id; --output-column names one)\n"
    )


def test_rows_without_an_output_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = json.dumps({"output": RAW})
    for name in ("rows.txt", "rows.jsonl"):
        file = tmp_path / name
        file.write_text(f'{row}\nnot JSON\n{{"id": 2}}\n{row}\n')
        assert main(["guess", str(file)]) == 0
        out, err = capsys.readouterr()
        assert out.splitlines()[1].split()[:2] == ["hermes+qwen3", "2"]
        assert err.splitlines()[-1].startswith("untemplate: 2 unreadable rows left out; row 2: not JSON: ")


def test_raw_takes_an_output_that_looks_like_an_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "output.jsonl"
    text = json.dumps({"response": RAW, "done": True})
    file.write_text(text)
    assert main(["parse", "--format", "passthrough", "--raw", str(file)]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["content"] == text
    assert " is an answer of " not in err
    assert main(["guess", "--raw", str(file)]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0].endswith("ENGINES")
    assert "--format" not in out
    assert "no format reads the markers in it: <tool_call>" in err


def test_rows_given_to_parse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"output": "a"}\n{"output": "b"}\n')
    assert main(["parse", "--format", "hermes", str(file)]) == 0
    assert capsys.readouterr().err == (
        f"untemplate: {file} has 2 rows as JSON, and is parsed as one output; untemplate batch parses each\n"
    )


def test_markers_that_no_format_reads(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, "<tool_call> and [TOOL_CALLS] are not calls")
    assert main(["guess"]) == 0
    assert capsys.readouterr().err == "untemplate: no format reads the markers in it: <tool_call> [TOOL_CALLS]\n"


def test_a_cut_output_says_that_its_finish_reason_is_assumed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for options, end in (([], "stop (assumed; --finish-reason)"), (["--finish-reason", "stop"], "stop")):
        given(monkeypatch, RAW[:-20])
        assert main(["parse", "--format", "hermes+qwen3", "--explain", *options]) == 0
        assert capsys.readouterr().out.endswith(
            f"result  reasoning, 1 call: f (incomplete: the output ended inside it); finish_reason {end}\n"
        )


@pytest.mark.parametrize("choices", [1, "x", [1], {"a": 1}])
def test_a_stream_whose_choices_are_none_is_no_answer(choices: Any) -> None:
    assert answer_in(events({"choices": choices})) is None


def test_an_index_of_any_kind_names_a_choice() -> None:
    chunks = ({"choices": [{"index": [], "text": text}]} for text in ("a", "b"))
    assert answer_in(events(*chunks)) == Answer("an answer of Completions", (Output("ab", None),), read="text")
