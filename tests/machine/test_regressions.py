"""Bugs found by independent readers: each once, in its smallest form."""

from __future__ import annotations

import json
import re

import pytest

from untemplate import OutputParser, Policy
from untemplate._internal.machine.events import SemanticEvent
from untemplate.format import Format, Marker, NamedBody, Tools
from untemplate.testing import check

PROMPT = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"


def test_a_prompt_that_looks_like_a_call_says_nothing() -> None:
    assert OutputParser.named("hermes").stream(prompt=PROMPT + "<tool_call> x").finish() == []


def test_a_prompt_that_ends_inside_a_draft_leaves_reasoning_open() -> None:
    parsed = check(
        "hermes",
        "hello <tool_call> world",
        reasoning="qwen3",
        prompt=PROMPT + "<think>\nhm <tool_call>",
        roundtrip=False,
    )
    assert parsed.message() == {"role": "assistant", "content": None, "reasoning": "hello <tool_call> world"}


def test_filters_and_events_outlive_text_that_is_given_back() -> None:
    trimmed = OutputParser.named("hermes", policy=Policy(outer_white_space="trim"))
    assert trimmed.parse("<tool_call> b  \n").content == "<tool_call> b"
    events: list[SemanticEvent] = []
    OutputParser.named("hermes").parse("a <tool_call> b", on_event=events.append)
    assert "".join(e.value for e in events) == "a <tool_call> b"


def test_a_comparison_is_no_argument() -> None:
    assert check("pythonic", "[f(x==1)]", roundtrip=False).content == "[f(x==1)]"


def test_surrogate_pairs_in_arguments_inside_a_string() -> None:
    arguments = json.dumps(json.dumps({"a": "😀"}))
    parsed = check("hermes", f'<tool_call>{{"name": "f", "arguments": {arguments}}}</tool_call>', roundtrip=False)
    assert json.loads(parsed.tool_calls[0].function.arguments) == {"a": "😀"}


@pytest.mark.parametrize(
    ("written", "value"),
    [("null", None), ("None", None), ("null x", "null x"), ("nu ll", "nu ll"), ("nul", "nul"), ("", ""), ("x", "x")],
)
def test_nullable_strings(written: str, value: str | None) -> None:
    schema = {"properties": {"s": {"type": ["string", "null"]}}}
    raw = f"<tool_call>\n<function=f>\n<parameter=s>\n{written}\n</parameter>\n</function>\n</tool_call>"
    parsed = check("qwen3_coder", raw, tools=[{"type": "function", "function": {"name": "f", "parameters": schema}}])
    assert json.loads(parsed.tool_calls[0].function.arguments) == {"s": value}


SHELL = {
    "type": "function",
    "function": {"name": "send_command_to_shell", "parameters": {"properties": {"command": {"type": "string"}}}},
}
MERGED = "send_command_to_shellcommand</arg_key><arg_value>echo test</arg_value>"


@pytest.mark.parametrize("name", ["glm45", "glm47"])
def test_a_name_and_its_first_key_in_one_word(name: str) -> None:
    """GLM leaves ``<arg_key>`` out (vllm#47190)."""
    raw = f"<tool_call>{MERGED}</tool_call>"
    expected = {"tool_calls": [("send_command_to_shell", '{"command": "echo test"}')]}
    check(name, raw, expected, tools=[SHELL], exhaustive=True)
    # Without a matching tool, or with two readings, it is text.
    assert check(name, raw, roundtrip=False).content == raw
    short = {"type": "function", "function": {"name": "send", "parameters": {"properties": {MERGED[4:28]: {}}}}}
    assert check(name, raw, tools=[SHELL, short], roundtrip=False).content == raw
    more = f"<tool_call>{MERGED}<arg_key>n</arg_key><arg_value>1</arg_value></tool_call>"
    expected = {"tool_calls": [("send_command_to_shell", '{"command": "echo test", "n": "1"}')]}
    check(name, more, expected, tools=[SHELL], exhaustive=True)


@pytest.mark.parametrize("written", ["abc", "true", "\u00a0{}", "12"])
def test_a_word_where_the_arguments_should_be(written: str) -> None:
    """Cut inside it, it is in the arguments and in the ledger."""
    raw = f'<tool_call>{{"name": "f", "arguments": {written}}}</tool_call>'
    parsed = check("hermes", raw, exhaustive=True, roundtrip=False)
    assert [c.function.arguments for c in parsed.tool_calls] == [written]


def test_an_object_that_the_output_ends_in_is_reported() -> None:
    """The arguments are whole, but not the object around them, as before a closing tag."""
    for end in ("", "</tool_call>"):
        parsed = OutputParser.named("hermes").parse('<tool_call>{"name": "f", "arguments": {"a": 1}' + end)
        (call,) = parsed.tool_calls
        assert (call.function.arguments, call.status) == ('{"a": 1}', "recovered")
        assert [d.code for d in parsed.diagnostics] == ["unclosed_object"]


def test_arguments_next_to_the_name_are_another_spelling() -> None:
    raw = '<tool_call>\n{"name": "f", "city": "Paris", "days": 3}\n</tool_call>'
    expected = {"tool_calls": [("f", {"city": "Paris", "days": 3})], "diagnostics": ["variant_spelling"]}
    check("hermes", raw, expected, exhaustive=True, roundtrip=False)


def test_objects_in_one_block_are_calls() -> None:
    one, two = '{"name": "f", "arguments": {"a": 1}}', '{"name": "g", "arguments": {}}'
    for between in ("", "\n", ",\n"):
        raw = f"<tool_call>\n{one}{between}{two}\n</tool_call>\nDone."
        expected = {
            "content": "\nDone.",
            "tool_calls": [("f", {"a": 1}), ("g", {})],
            "diagnostics": ["variant_spelling"],
        }
        check("hermes", raw, expected, exhaustive=True, roundtrip=False)
    raw = f'<tool_call>\n{one}\n{{"x": 1}}\n</tool_call>'
    text = '\n{"x": 1}\n</tool_call>'
    # The close stayed content, so the call is not ok.
    expected = {"content": text, "tool_calls": [("f", {"a": 1}, "recovered")], "diagnostics": ["call_like_text"]}
    check("hermes", raw, expected, exhaustive=True, roundtrip=False)


def test_the_beginning_of_a_close_at_the_end_of_the_output_is_dropped() -> None:
    raw = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_ca'
    expected = {"tool_calls": [("f", {"a": 1})], "diagnostics": ["stray_close"]}
    check("hermes", raw, expected, exhaustive=True, roundtrip=False)
    assert OutputParser.named("hermes").parse("Close it with </tool_ca").content == "Close it with </tool_ca"


M3 = "]<]minimax[>["
THREE_CALLS = (
    f'{M3}<tool_call>\n{M3}<invoke name="f">{M3}<s>see{M3}</invoke>\n{M3}<invoke name="get_weather{M3}<city>x'
    f'{M3}</city>{M3}</invoke>\n{M3}<invoke name="ping">{M3}</invoke>\n{M3}</tool_call>'
)


def _tool(name: str, **properties: object) -> dict[str, object]:
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def test_the_name_of_a_call_may_end_in_the_beginning_of_a_longer_marker() -> None:
    """The opener of the second call is damaged: what closes its name is missing."""
    string = {"type": "string"}
    tools = [_tool("f", s=string), _tool("get_weather", city=string), _tool("ping")]
    expected = {
        "tool_calls": [
            ("f", {"s": "see"}, "recovered"),
            ("get_weather", {"city": "x"}, "recovered"),
            ("ping", {}, "ok"),
        ],
        "diagnostics": ["missing_close", "missing_close"],
    }
    check("minimax_m3", THREE_CALLS, expected, tools=tools, exhaustive=True, roundtrip=False)


@pytest.mark.parametrize(
    ("value", "codes"),
    [
        ("a text that is longer than all fifty of the characters that may be held", []),
        (" " * 60 + "text", ["held_too_long"]),
        (" " * 49 + "text", []),
    ],
)
def test_a_value_that_is_not_null_is_not_too_long(value: str, codes: list[str]) -> None:
    tools = [_tool("f", v={"type": ["string", "null"]})]
    raw = f"<tool_call>f\n<arg_key>v</arg_key>\n<arg_value>{value}</arg_value>\n</tool_call>"
    parser = OutputParser.named("glm45", policy=Policy(max_held=50))
    expected = {"tool_calls": [("f", {"v": value}, "recovered" if codes else "ok")], "diagnostics": codes}
    check(parser, raw, expected, tools=tools, exhaustive=True, roundtrip=False)


def test_a_lone_surrogate_keeps_token_ids_in_step() -> None:
    vocabulary = {"<pad>": 0, "…": 1, "b": 2}  # the text of 1 has as many bytes as a surrogate

    class Tokenizer:
        all_special_tokens = ("<pad>",)

        def get_vocab(self) -> dict[str, int]:
            return vocabulary

    parser = OutputParser.named("hermes", tokenizer=Tokenizer())
    stream = parser.stream(collect=True)
    stream.feed("\udce1b<pad>b", [1, 2, 0, 2])
    stream.finish()
    parsed = stream.result()
    assert parsed.content == "\udce1bb"
    assert [d.code for d in parsed.diagnostics] == ["unknown_token"]


@pytest.mark.parametrize("value", ["1", "[1, 2", "nul", '"a"', '{"b": -1.5'])
@pytest.mark.parametrize("name", ["hermes", "deepseek_v31"])
def test_a_close_ends_arguments_after_any_value(name: str, value: str) -> None:
    """A word took the close that followed it directly, and what came after that."""
    parser = OutputParser.named(name)
    call = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": '{"x": 0}'}}] * 2}
    written = '{"x": 0}}' if name == "hermes" else '{"x": 0}'
    raw = parser.render(call).replace(written, f'{{"x": {value}', 1)
    found = check(name, raw, exhaustive=True, roundtrip=False)
    said = [(one.function.arguments.rstrip(), one.status) for one in found.tool_calls]
    assert said == [(f'{{"x": {value}', "invalid_json"), ('{"x": 0}', "ok")]


def test_arguments_of_nothing_end_at_the_close() -> None:
    raw = '<tool_call>{"name": "f", "arguments": </tool_call>'
    found = check("hermes", raw, exhaustive=True, roundtrip=False)
    assert [(one.function.arguments, one.status) for one in found.tool_calls] == [("{}", "recovered")]


@pytest.mark.parametrize("arguments", ['{"a": [{"b": true}]}', '{"a": {"b": 1}, "c": 2}', '{"a": {"b": {"c": 3}}}'])
def test_a_closer_of_braces_does_not_end_an_object(arguments: str) -> None:
    """Where ``}}`` closes a call, braces that JSON has opened are JSON's, in any pieces."""
    tools = Tools(call_open=Marker("{{"), body=NamedBody(name_close=Marker(": ")), call_close=Marker("}}"))
    fmt = Format(name="braces", tools=(tools,))
    parsed = check(fmt, f"{{{{f: {arguments}}}}}")
    assert [(c.function.name, c.function.arguments) for c in parsed.tool_calls] == [("f", arguments)]
    assert parsed.diagnostics == []


def test_a_damaged_close_of_a_section_whose_call_was_dropped() -> None:
    """A policy had dropped the only call, and the close after it looked for the last call to mark."""
    parser = OutputParser.named("minimax_m2")
    raw = '<minimax:tool_call>\n<invoke name="f">\n<parameter name="a">1</parameter>\n</invoke>\n</minimax:tool_call'
    tools = [{"type": "function", "function": {"name": "g", "parameters": {"type": "object"}}}]
    parsed = parser.parse(raw, tools=tools, policy=Policy(unknown_tools="drop"))
    assert parsed.tool_calls == []
    assert parsed.content is None


def test_white_space_before_what_ends_an_id_is_no_part_of_it_under_any_split() -> None:
    """By characters the id ended at the space, and its end was called missing."""
    raw = '[TOOL_CALLS]f[CALL_ID]call_1 [ARGS]{"x": 1}'
    found = check("ministral", raw, exhaustive=True, roundtrip=False)
    assert [(c.id, c.function.arguments, c.status) for c in found.tool_calls] == [("call_1", '{"x": 1}', "ok")]
    assert found.diagnostics == []


@pytest.mark.parametrize(
    ("name", "raw", "cut"),
    [
        ("hermes", "x" * 600 + '{true, "a <tool_call>{"name": "f", "arguments": {}}</tool_call>', 601),
        ("hermes", "x" * 600 + '["a\\\nb <tool_call>{"name": "f", "arguments": {}}</tool_call>', 604),
        ("pythonic", "[f(" + "x" * 1000 + "='a')]", 600),
        ("qwen3_coder", "<tool_call>\n<function=f>{" + " " * 600 + '"a": 1}</function>\n</tool_call>', 200),
    ],
)
def test_text_far_from_its_end_is_read_alike_whole_and_cut(name: str, raw: str, cut: int) -> None:
    parser = OutputParser.named(name)
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    stream = parser.stream(tools=tools, collect=True)
    stream.feed(raw[:cut])
    stream.feed(raw[cut:])
    stream.finish("stop")
    whole, streamed = parser.parse(raw, tools=tools), stream.result()
    assert [call.function for call in streamed.tool_calls] == [call.function for call in whole.tool_calls]
    assert streamed.content == whole.content


def test_a_report_on_a_marker_that_a_dropped_one_divides_has_a_place() -> None:
    raw = " \n<think>a</think>b</tool_</think>call>"
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    found = OutputParser.named("hermes+qwen3").parse(raw, tools=tools).diagnostics
    assert all(0 <= one.start <= one.end <= len(raw) for one in found), found


def test_a_call_that_the_prompt_left_open_is_not_held_for_the_output() -> None:
    """A policy holds calls back until they are closed. The prompt's must not be closed with a call of the output."""
    stream = OutputParser.named("hermes").stream(
        prompt=PROMPT + '<tool_call>\n{"name": "f", "arguments": {"a": "x',
        policy=Policy(parallel_calls="first_rest_as_content"),
        collect=True,
    )
    stream.feed('See: "> `<tool_call>\n{"name": "g", "arguments": {"a": 1}}\n</tool_call>')
    stream.finish()
    assert [call.function.name for call in stream.result().tool_calls] == ["g"]


@pytest.mark.parametrize("value", ["12345678", "null", "-2.5"])
@pytest.mark.parametrize("rest", [', "id": "1"', ':5, "a"'])
def test_a_bare_word_for_arguments_ends_alike_whole_and_streamed(value: str, rest: str) -> None:
    """At the top level, a comma or colon after a word ends it; inside an object such a sign passes."""
    raw = f'<tool_call>\n{{"name": "f", "arguments": {value}{rest}}}\n</tool_call>'
    parser = OutputParser.named("hermes")
    for pieces in (list(raw), re.findall(r"\w+|\W", raw), re.findall(r"\w+|\W+", raw)):
        stream = parser.stream(collect=True, seed=1)
        for piece in pieces:
            stream.feed(piece)
        stream.finish()
        assert stream.result() == parser.parse(raw, seed=1), pieces
