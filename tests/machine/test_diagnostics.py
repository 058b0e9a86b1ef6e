"""Codes of diagnostics: each has a message, and each is reported somewhere."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import pytest

import untemplate
from untemplate import OutputParser
from untemplate._internal.backends.recognition import texts_of
from untemplate._internal.machine.call_state import STATUS_DIAGNOSTICS
from untemplate._internal.machine.diagnostics import DIAGNOSTICS, DiagnosticCode
from untemplate.formats import entries
from untemplate.testing import check

SOURCES = Path(untemplate.__file__).parent
REPORTED_BY_STREAM = {
    "ambiguous_marker",
    "call_like_text",
    "foreign_marker",
    "uncertified_arguments",
    "repeated_key",
    "unclosed_call",
    "unread_marker",
    "unusual_name",
}
"""Codes that a stream adds at the end of an output."""


def reported() -> set[str]:
    """The string literals in the first argument of every call of ``report``, ``drop`` and ``drop_to``."""
    found: set[str] = set()
    for path in (SOURCES / "_internal/machine").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("report", "drop", "drop_to")
            ):
                assert isinstance(node, ast.Call)
                code = node.args[0]
                choices = [code.body, code.orelse] if isinstance(code, ast.IfExp) else [code]
                found |= {choice.value for choice in choices if isinstance(choice, ast.Constant)}
    return found


def test_every_code_has_a_message():
    assert tuple(DIAGNOSTICS) == get_args(DiagnosticCode)


def test_every_code_is_reported():
    assert reported() | set(STATUS_DIAGNOSTICS.values()) | REPORTED_BY_STREAM == set(DIAGNOSTICS)


def test_a_lone_close_of_reasoning_says_what_to_do() -> None:
    parser = OutputParser.named("hermes+qwen3")
    (found,) = parser.parse("Hm.</think>Hello").diagnostics
    assert (found.code, found.message) == (
        "stray_close",
        "a closing marker with nothing to close was dropped; if the prompt opens reasoning, pass the prompt: what is "
        "before the close is reasoning then",
    )
    (found,) = parser.parse("<think>Hm.</think>Hello</think>").diagnostics
    assert found.message == "a closing marker with nothing to close was dropped"
    assert parser.parse("Hm.</think>Hello", prompt="<|im_start|>assistant\n<think>\n").diagnostics == []


CODER = "<tool_call>\n<function=f>\n{}\n</function>\n</tool_call>"
HERMES = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}'


@pytest.mark.parametrize("size", [0, 1, 7])
@pytest.mark.parametrize(
    ("name", "raw", "arguments", "key"),
    [
        ("hermes", '<tool_call>{"name": "f", "arguments": {"a": 1, "a": 2}}</tool_call>', '{"a": 1, "a": 2}', "a"),
        ("hermes", '<tool_call>{"name": "f", "arguments": {"o": {"a": 1, "a": 1}}}</tool_call>', None, "a"),
        ("hermes", '<tool_call>{"name": "f", "arguments": {"a": 1, "\\u0061": 2}}</tool_call>', None, "a"),
        ("hermes", '<tool_call>{"name": "f", "arguments": {"a" : 1, "a": 2, "b": 3}}</tool_call>', None, "a"),
        ("hermes", '<tool_call>{"name": "f", "arguments": {"a" : 1, "a" : 2}}</tool_call>', None, "a"),
        ("hermes", '<tool_call>{"name": "f", "arguments": {"a": 1, "a": 2, "b": "\\u003a"}}</tool_call>', None, "a"),
        ("hermes", '<tool_call>{"name": "f", "arguments": {"": 1, "": 2}}</tool_call>', None, '""'),
        ("hermes", '<tool_call>{"name": "f", "arguments": {"a": {"x": 1}, "b": {"x": 2}}}</tool_call>', None, ""),
        ("hermes", '<tool_call>{"name": "f", "arguments": {"a": "\\"a\\": 1, \\"a\\": 2"}}</tool_call>', None, ""),
        ("qwen3_coder", CODER.format("<parameter=a>\n1\n</parameter>\n<parameter=a>\n2\n</parameter>"),
         '{"a": "1", "a": "2"}', "a"),
        ("glm45", "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n<arg_key>a</arg_key>\n"
         "<arg_value>2</arg_value>\n</tool_call>", '{"a": "1", "a": "2"}', "a"),
        ("pythonic", "[f(a=1, a=2)]", '{"a": 1, "a": 2}', "a"),
    ],
)  # fmt: skip
def test_an_argument_that_is_written_twice(name: str, raw: str, arguments: str | None, key: str, size: int):
    """Readers of JSON keep the last value, so one of the two is lost without a word."""
    parser = OutputParser.named(name)
    if size:
        stream = parser.stream(collect=True)
        for start in range(0, len(raw), size):
            stream.feed(raw[start : start + size])
        stream.finish()
        parsed = stream.result()
    else:
        parsed = parser.parse(raw)
    [call] = parsed.tool_calls
    assert call.status == ("recovered" if key else "ok")
    assert arguments in (None, call.function.arguments)
    assert [(d.code, d.text) for d in parsed.diagnostics] == ([("repeated_key", key)] if key else [])


@pytest.mark.parametrize(
    ("name", "raw", "codes"),
    [
        ("hermes", HERMES, ["unclosed_call"]),
        ("hermes", HERMES + "<|im_end|>", ["unclosed_call"]),
        ("hermes", HERMES + "\n</tool_call>", []),
        ("olmo3", "<function_calls>\nf(a=1)", ["unclosed_call"]),
        ("mistral", '[TOOL_CALLS]f[ARGS]{"a": 1}', []),
    ],
)
def test_a_whole_call_without_its_close_is_reported(name: str, raw: str, codes: list[str]) -> None:
    """It is the output that is not as the format has it; the call is."""
    check(name, raw, {"tool_calls": [("f", {"a": 1})], "diagnostics": codes}, exhaustive=True, roundtrip=False)


def test_a_call_that_is_no_json_says_where() -> None:
    parsed = OutputParser.named("hermes").parse(HERMES.replace("1}", "1,, }") + "</tool_call>")
    (note,) = parsed.diagnostics
    assert note.message.startswith("the arguments are not valid JSON: ")
    assert note.message.endswith(" at ', }'")


def test_a_string_that_is_not_closed_takes_in_the_next_call() -> None:
    raw = HERMES.replace("1}", '"x}') + "\n</tool_call>\n" + HERMES + "\n</tool_call>"
    parsed = OutputParser.named("hermes").parse(raw)
    assert [call.status for call in parsed.tool_calls] == ["invalid_json"]
    assert [note.code for note in parsed.diagnostics] == ["invalid_json", "broken_json", "call_like_text"]
    assert raw[parsed.diagnostics[-1].start :].startswith("<tool_call>")


def test_a_marker_of_another_format_across_a_call_has_a_place() -> None:
    raw = f"a <|python_{HERMES}</tool_call>tag|> b"
    (note,) = OutputParser.named("hermes").parse(raw).diagnostics
    assert (note.code, note.text, note.start, note.end) == ("foreign_marker", "<|python_tag|>", 2, 16)


def test_white_space_is_no_text_of_a_marker() -> None:
    """Every text ends with it, and holds it."""
    assert all("" not in texts_of(entry.format) for entry in entries())
