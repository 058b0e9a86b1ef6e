"""JSON of any depth means the same to any caller: the recursion limit of Python's reader has no influence."""

from __future__ import annotations

import ast
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from untemplate import OutputParser, Policy
from untemplate._internal.jsontext.well_formed import MAX_DEPTH, _is_deep_json, is_deep, is_json

TOOLS = [
    {
        "type": "function",
        "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "array"}}}},
    }
]


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def from_deep(levels: int, answer: Any) -> Any:
    """Return ``answer()``, called this many frames further down."""
    return answer() if levels == 0 else from_deep(levels - 1, answer)


def tagged(value: str) -> str:
    return f"<tool_call>\n<function=f>\n<parameter=a>\n{value}\n</parameter>\n</function>\n</tool_call>"


@pytest.mark.parametrize("frames", [0, 700], ids=["shallow", "deep"])
@pytest.mark.parametrize(
    ("levels", "arguments"),
    [
        (MAX_DEPTH, f'{{"a": {nested(MAX_DEPTH)}}}'),
        (MAX_DEPTH + 1, f'{{"a": "{nested(MAX_DEPTH + 1)}"}}'),
        (100_000, f'{{"a": "{nested(100_000)}"}}'),
    ],
)
def test_tagged_values_are_read_down_to_one_depth(levels: int, arguments: str, frames: int) -> None:
    parser = OutputParser.named("qwen3_coder")
    parsed = from_deep(frames, lambda: parser.parse(tagged(nested(levels)), tools=TOOLS))
    (call,) = parsed.tool_calls
    assert (call.function.name, call.function.arguments) == ("f", arguments)


@pytest.mark.parametrize("frames", [0, 700], ids=["shallow", "deep"])
@pytest.mark.parametrize("levels", [10, 500, 100_000])
def test_json_arguments_are_valid_however_deep(levels: int, frames: int) -> None:
    parser = OutputParser.named("hermes")
    arguments = f'{{"a": {nested(levels)}}}'
    raw = f'<tool_call>{{"name": "f", "arguments": {arguments}}}</tool_call>'
    (call,) = from_deep(frames, lambda: parser.parse(raw)).tool_calls
    assert (call.function.arguments, call.status) == (arguments, "ok")
    (call,) = from_deep(frames, lambda: parser.parse(raw.replace("]", "}", 1))).tool_calls
    assert call.status == "invalid_json"


def test_deeper_than_is_looked_into_is_nothing_that_fits_a_schema() -> None:
    raw = f'<tool_call>{{"name": "f", "arguments": {{"a": {nested(MAX_DEPTH)}}}}}</tool_call>'
    (call,) = OutputParser.named("hermes").parse(raw, tools=TOOLS).tool_calls
    assert call.status == "invalid_arguments"


def test_python_values_are_read_down_to_one_depth() -> None:
    tools = TOOLS
    python = "[" * 32 + "'x'" + "]" * 32
    parser = OutputParser.named("qwen3_coder")
    (call,) = parser.parse(tagged(python), tools=tools).tool_calls
    assert json.loads(call.function.arguments) == {"a": ast.literal_eval(python)}
    (call,) = parser.parse(tagged(f"[{python}]"), tools=tools).tool_calls
    assert call.function.arguments == f'{{"a": "[{python}]"}}'


def test_brackets_in_strings_have_no_depth() -> None:
    quoted = json.dumps("[" * 1000 + '"' + "\\" + "{" * 1000)
    assert not is_deep(f"[{quoted}]")
    assert not is_deep("[]" * 1000)
    assert is_deep(f"[{quoted}, {nested(MAX_DEPTH)}]")


PIECES = [*'[]{},:"', '"a"', "1", " ", "-", "true", "null", "\\", '"a":', "NaN", "-Infinity", "0", "1.5", "1e999", "\n"]


@settings(max_examples=2000)
@given(st.lists(st.sampled_from(PIECES), max_size=9).map("".join), st.booleans())
def test_both_readers_say_the_same(text: str, finite: bool) -> None:
    assert _is_deep_json(text, finite) == is_json(text, finite=finite)


def test_the_levels_of_python_style_values_count_as_held() -> None:
    """Sixteen bytes are kept for each level. What is deeper is passed on as written."""
    parser = OutputParser.named("pythonic")
    raw = f"[f(a={nested(200)}, b=3)]"
    (call,) = parser.parse(raw).tool_calls
    assert (json.loads(call.function.arguments), call.status) == ({"a": json.loads(nested(200)), "b": 3}, "ok")
    parsed = parser.parse(raw, policy=Policy(max_held=1600))
    (call,) = parsed.tool_calls
    assert call.function.arguments == f'{{"a": {nested(200)}, "b": 3}}'
    assert (call.status, [d.code for d in parsed.diagnostics]) == ("recovered", ["nested_too_deep", "unquoted_value"])


def test_a_level_of_json_takes_a_byte() -> None:
    """A model may open very many brackets and close none."""
    stream = OutputParser.named("hermes").stream()
    stream.feed('<tool_call>{"name": "f", "arguments": {"a": ')
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(300):
            stream.feed("[" * 1000)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 500_000
