"""Rows become records: columns of every kind, errors with row and column, nothing lost."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from untemplate import OutputParser, Policy
from untemplate._internal.tokens.decoding import encode
from untemplate.batch import Columns, Record, RowError, RowParser, Settings, Summary, parse_many, settings_for
from untemplate.batch._rows import encode_record

from ..real_tokenizers import byte_level
from .conftest import TOOLS, answer, output, rows

PROMPT = "expected text or a list of token ids, got"
HERMES = OutputParser.named("hermes").format


def one(row: Any, **settings: Any) -> Record:
    (record,) = parse_many([row], settings.pop("format", "hermes"), **settings)
    return record


def test_a_row_becomes_what_parse_returns():
    row = rows(1)[0]
    record = one(row)
    parsed = OutputParser.named("hermes").parse(row["output"], tools=TOOLS)
    assert record.message is not None
    parsed.tool_calls[0].id = record.message["tool_calls"][0]["id"]
    assert record == Record(row=1, message=parsed.message(), finish_reason="tool_calls", statuses=["ok"])
    assert one(json.dumps(row).encode()) == record


def test_columns_by_name_and_what_is_kept():
    row = {
        "text": output(),
        "functions": json.dumps(TOOLS),
        "why": "length",
        "before": "<|im_start|>assistant\n",
        "id": 7,
    }
    columns = Columns(output="text", tools="functions", finish_reason="why", prompt="before")
    for values in (row, json.dumps(row).encode()):
        record = one(values, columns=columns, keep=["id", "missing"])
        assert (record.statuses, record.finish_reason, json.loads(encode_record(record))["id"]) == (["ok"], "length", 7)
    assert json.loads(encode_record(one(row, columns=columns, keep=["*"]))) == {**row, **_result(record)}


@pytest.mark.parametrize("as_json", [False, True], ids=["mapping", "JSON"])
def test_a_row_may_be_a_saved_answer(as_json: bool):
    def read(row: dict[str, Any], **settings: Any) -> Record:
        return one(json.dumps(row).encode() if as_json else row, **settings)

    assert read(answer(output())).statuses == ["ok"]
    assert read({"output": output(), "choices": []}).statuses == ["ok"]
    assert read(answer("Hi.", "length")).finish_reason == "length"
    columns = Columns(finish_reason="why")
    assert read({**answer("Hi.", "length"), "why": "stop"}, columns=columns).finish_reason == "stop"
    error = read(answer("Hi."), columns=Columns(output="text")).error
    assert error is not None
    assert error.problem == "the row has no column 'text'"
    several = answer("Hi.")
    several["choices"] *= 2
    error = read(several).error
    assert error is not None
    assert error.problem == (
        "the row is an answer of Chat Completions with 2 choices; a row has one: "
        "jq -c '.choices[] as $one | .choices = [$one]' makes a row of each"
    )


def _result(record: Record) -> Any:
    line = json.loads(encode_record(record))
    return {name: line[name] for name in ("row", "message", "finish_reason", "statuses")}


def test_a_row_may_be_of_a_batch_api():
    """OpenAI's and vLLM's batches write the answer into ``response.body``."""
    message = {"role": "assistant", "content": output()}
    body = {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    row = {"id": "b1", "custom_id": "r7", "response": {"status_code": 200, "body": body}, "error": None}
    failed = {"custom_id": "r8", "response": {"status_code": 400, "body": {"error": {"message": "no"}}}}
    record, other = parse_many([row, failed], "hermes", keep=("custom_id",))
    assert record.kept == {"custom_id": "r7"}
    assert (record.statuses, record.finish_reason) == (["ok"], "tool_calls")
    assert other.error is not None
    assert (other.error.code, other.error.column, other.error.problem) == ("failed", "output", "its request failed: no")


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"response": None, "error": {"code": "batch_expired", "message": "It took too long."}}, "It took too long."),
        ({"response": None, "error": {"code": "batch_expired"}}, "batch_expired"),
        ({"response": {"status_code": 500, "body": None}, "error": None}, "HTTP 500"),
        ({"error": "out of memory"}, "out of memory"),
    ],
)
def test_a_row_of_a_batch_api_that_failed(row: dict[str, Any], problem: str):
    """The row was said to have no column 'output'."""
    error = one(row).error
    assert error is not None
    assert (error.code, error.column, error.problem) == ("failed", "output", f"its request failed: {problem}")


def test_an_answer_without_content_is_an_empty_output():
    summary = Summary()
    for row in (answer(""), {"output": ""}):
        record = one(row)
        assert record.error is None
        summary.add(record)
    assert (summary.flawed, summary.unanswered) == (2, 2)


def test_a_row_whose_output_has_another_name():
    error = one({"completion": "Hi."}).error
    assert error is not None
    assert error.problem == "the row has no column 'output'; 'completion' has text (--output-column completion)"


def test_finish_reasons_of_other_apis():
    """A cut output was kept as a clean one whose finish reason is ``MAX_TOKENS``."""
    given = ["max_tokens", "MAX_TOKENS", "incomplete", "end_turn", "STOP", "stop_sequence", "completed", "abort"]
    found = [
        record.finish_reason for record in parse_many([{"output": "Hi", "finish_reason": r} for r in given], "hermes")
    ]
    assert found == ["length", "length", "length", "stop", "stop", "stop", "stop", "abort"]


def test_an_empty_cell_of_tools_is_none():
    """CSV has no null."""
    assert one({"output": output(), "tools": ""}).statuses == ["ok"]


def test_the_format_of_each_row():
    given = [
        {"output": output(), "family": "hermes"},
        {"output": "[ping(x=1)]", "family": "pythonic"},
        {"output": "x", "family": "herms"},
        {"output": "x"},
    ]
    records = list(parse_many(given, columns=Columns(format="family")))
    assert [(r.format, r.statuses) for r in records] == [("hermes", ["ok"]), ("pythonic", ["ok"]), ("", []), ("", [])]
    assert [r.error and (r.error.code, r.error.column, r.error.problem) for r in records[2:]] == [
        ("value", "family", "unknown format 'herms'; did you mean 'hermes'?"),
        ("missing", "family", "the row has no column 'family'"),
    ]


def test_the_tools_decide_what_is_a_call():
    assert one({"output": output()}).statuses == ["ok"]
    assert one({"output": output(), "tools": None}).statuses == ["ok"]
    assert one({"output": output(), "tools": []}).statuses == []
    assert one({"output": output('{"x": "no"}'), "tools": TOOLS}).statuses == ["invalid_arguments"]
    assert one({"output": output().replace("ping", "pong"), "tools": json.dumps(TOOLS)}).statuses == ["unknown_tool"]


@pytest.mark.parametrize("as_json", [False, True], ids=["mapping", "JSON"])
@pytest.mark.parametrize(
    ("row", "columns", "error"),
    [
        ({}, Columns(), ("missing", "output", "the row has no column 'output'")),
        ({"output": None}, Columns(), ("missing", "output", "is null")),
        ({"output": 7}, Columns(), ("type", "output", "expected text, got a number")),
        ({"output": ["x"]}, Columns(), ("type", "output", "expected text, got a list")),
        ({"output": "x"}, Columns(output="text"), ("missing", "text", "the row has no column 'text'")),
        ({"output": "x"}, Columns(tools="tools"), ("missing", "tools", "the row has no column 'tools'")),
        ({"output": "x", "tools": "{"}, Columns(), ("value", "tools", "not JSON: Input data was truncated")),
        ({"output": "x", "tools": 3}, Columns(), ("value", "tools", "tools: expected a list, got int")),
        ({"output": "x", "tools": [{}]}, Columns(), ("value", "tools", "tools[0].name: is required")),
        ({"output": "x", "prompt": {}}, Columns(), ("type", "prompt", f"{PROMPT} an object")),
        ({"output": "x", "prompt": ["a"]}, Columns(), ("type", "prompt", f"{PROMPT} a list")),
        ({"output": "x", "finish_reason": True}, Columns(), ("type", "finish_reason", "expected text, got a boolean")),
    ],
)  # fmt: skip
def test_a_bad_row_becomes_an_error(row: dict[str, Any], columns: Columns, error: tuple[str, ...], as_json: bool):
    given = json.dumps(row).encode() if as_json else row
    code, column, problem = error
    record = one(given, columns=columns)
    assert record == Record(row=1, error=RowError(code, problem, column, json.dumps(row) if as_json else row))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"{", "not JSON: Input data was truncated"),
        (b"nul", "not JSON: Input data was truncated"),
        (b'{"output": "x"} x', "not JSON: JSON is malformed: trailing characters (byte 17)"),
        (b"[1]", "not a JSON object: Expected `object`, got `array`"),
        (b"[" * 100_000, "not a JSON object: Expected `object`, got `array`"),
    ],
)
def test_a_line_that_is_not_an_object(line: bytes, problem: str):
    assert one(line) == Record(row=1, error=RowError("json", problem, "", line.decode()))


def test_a_line_that_is_not_utf8_is_kept():
    record = one(b'{"output": "\xff"}')
    assert record.error is not None
    assert (record.error.code, record.error.column) == ("json", "output")
    assert base64.b64decode(record.error.input_base64) == b'{"output": "\xff"}'


def test_a_row_that_is_not_a_mapping():
    assert one(3).error == RowError("json", "expected a mapping of columns, got a number", "", 3)


def test_token_ids():
    tokenizer = byte_level(tuple(HERMES.special_tokens))
    raw = "Hi.\n" + output()
    ids = encode(tokenizer, raw)
    settings: dict[str, Any] = {"tokenizer": tokenizer, "columns": Columns(ids="ids"), "spans": True}
    record = one({"ids": ids, "tools": TOOLS}, **settings)
    assert (record.statuses, record.message and record.message["content"]) == (["ok"], "Hi.\nHi.")
    assert [i for span in record.tokens for i in range(span.first, span.end)] == list(range(len(ids)))
    assert "".join(raw[s.start : s.end] for s in record.spans if s.kind == "name") == "ping"
    errors = [one({"ids": value}, **settings).error for value in ([1 << 40], ["a"], [1, True], "abc", None)]
    size = tokenizer.get_vocab_size()
    assert [e and (e.code, e.column, e.problem) for e in errors] == [
        ("value", "ids", f"token_ids[0]: {1 << 40} is not in the vocabulary of {size} tokens"),
        ("value", "ids", "token_ids[0]: expected a token id (int), got str: 'a'"),
        ("value", "ids", "token_ids[1]: expected a token id (int), got bool: True"),
        ("type", "ids", "expected a list of token ids, got text"),
        ("type", "ids", "expected a list of token ids, got null"),
    ]


def test_a_tokenizer_of_another_model():
    record = one({"ids": [1]}, tokenizer=byte_level(("<other>",)), columns=Columns(ids="ids"))
    assert record.error is not None
    assert (record.error.column, record.error.problem[:62]) == (
        "ids", "tokenizer: has none of the special tokens of format 'hermes' ("
    )  # fmt: skip


def test_prompts_begin_the_output_in_reasoning():
    record = one({"output": "a</think>b", "prompt": "<|im_start|>assistant\n<think>\n"}, format="qwen3")
    assert record.message == {"role": "assistant", "content": "b", "reasoning": "a"}


def test_ids_of_calls_are_the_same_in_every_run():
    assert [r.message for r in parse_many(rows(3), "hermes")] == [r.message for r in parse_many(rows(3), "hermes")]
    same = [{"output": output()}] * 3
    assert len({r.message["tool_calls"][0]["id"] for r in parse_many(same, "hermes") if r.message}) == 3


def test_lone_surrogates_are_written_as_escapes():
    record = one({"output": "a\ud800"})
    assert json.loads(encode_record(record))["message"]["content"] == "a\ud800"


def test_policies():
    row = {"output": output().replace("ping", "pong"), "tools": TOOLS}
    assert one(row, policy=Policy(unknown_tools="drop")).statuses == []


def test_processes_give_the_same_records():
    given = [*rows(600), {"output": 7}, *rows(3)]
    assert list(parse_many(given, "hermes", processes=2)) == list(parse_many(given, "hermes"))


def test_rows_are_read_as_they_are_needed():
    taken = []

    def endless() -> Any:
        while True:
            taken.append(1)
            yield {"output": "x"}

    records = parse_many(endless(), "hermes")
    assert next(records).row == 1
    assert len(taken) <= 256


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: settings_for(), "format: rows need a format, or a column that names it"),
        (lambda: settings_for("hermes", columns=Columns(ids="ids")), "tokenizer: token ids need one"),
        (lambda: settings_for("hermes", keep=["message"]), "keep: 'message' is a column of the results"),
        (lambda: RowParser(Settings()), "format: rows need a format, or a column that names it"),
        (lambda: parse_many([], "herms"), "unknown format 'herms'; did you mean"),
    ],
)
def test_misuse(call: Callable[[], Any], message: str):
    with pytest.raises(ValueError, match="^" + message.replace("?", r"\?")):
        call()


def test_reasons_of_calls_that_must_not_run():
    [record] = parse_many([{"output": output('{"x": "no"}'), "tools": TOOLS}], "hermes")
    assert (record.statuses, record.reasons) == (
        ["invalid_arguments"],
        ["its arguments do not fit the tool's schema ($.x type)"],
    )
    [record] = parse_many(rows(1), "hermes")
    assert record.reasons == []


def test_a_row_without_an_answer_is_not_clean():
    """An output that was cut in reasoning, or is empty, has no diagnostic and often no finish reason."""
    summary = Summary()
    given = ["<think>\nLet me", "", " \n", "<think>\nHm.\n</think>\n\n", "<think>\nHm.\n</think>\n\nHello."]
    for record in parse_many([{"output": text} for text in given], "hermes+qwen3"):
        summary.add(record)
    assert (summary.clean, summary.flawed, summary.unanswered) == (1, 4, 4)
    assert summary.tables()["parts"] == {
        "neither content nor calls": 4, "reasoning": 3, "content": 2, "calls": 0,
    }  # fmt: skip


def test_figures():
    summary = Summary()
    given = [*rows(2), {"output": output('{"x": "no"}'), "tools": TOOLS}, {"output": "Plain."}, {}]
    for record in parse_many(given, "hermes"):
        summary.add(record)
    assert summary.tables() == {
        "rows": {"clean": 3, "errors": 1, "flawed": 1},
        "parts": {"content": 4, "calls": 3, "reasoning": 0},
        "finish reasons": {"tool_calls": 3, "stop": 1},
        "statuses of calls": {"ok": 2, "invalid_arguments": 1},
        "errors": {"output: missing": 1},
        "tools": {"ping": 3},
    }
    assert summary.failed
    twice = Summary()
    twice.merge(summary)
    twice.merge(summary)
    assert (twice.rows, twice.tools, twice.statuses) == (10, {"ping": 6}, {"ok": 4, "invalid_arguments": 2})


def test_names_of_tools_are_counted_up_to_a_limit():
    summary = Summary()
    for record in parse_many([{"output": output().replace("ping", f"f{i}")} for i in range(1_100)], "hermes"):
        summary.add(record)
    assert len(summary.tools) <= 1_001
    assert summary.tools["(others)"] == 100


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"columns": {"output": "text"}},
            "columns: expected Columns, such as Columns(output='text'), got {'output': 'text'}",
        ),
        ({"keep": "id"}, "keep: expected a list of columns, such as ['id'], got text"),
    ],
)
def test_options_of_another_type(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(TypeError) as caught:
        settings_for("hermes", **options)
    assert str(caught.value) == problem
