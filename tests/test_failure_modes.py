"""The failure modes of docs/failure-modes.md, by their numbers: each trigger once, checked under every law.

Failure modes of gateways are left out: hard failures of servers (9, in part), Responses and Anthropic translation (26,
27), stop strings and budgets (31, 32), log probabilities (37), template defects (25, 45). GLM's name written as one
word with its first key (7, vllm#54971) becomes content as a whole.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from untemplate import OutputParser, Policy
from untemplate.formats import UnknownFormatError
from untemplate.testing import check

Calls = list[tuple[str, Any]]


def tool(name: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": properties}},
    }


# id, format, reasoning, raw, expected reasoning, content, calls
TRIGGERS: list[tuple[str, str, str | None, str, str, str, Calls]] = [
    (
        "01-several-markers-in-one-delta-vllm#48347",
        "internlm",
        None,
        '<|action_start|><|plugin|>{"name": "get_weather", "parameters": {"city": "Tokyo"}}<|action_end|>',
        "",
        "",
        [("get_weather", {"city": "Tokyo"})],
    ),
    (
        "01-text-and-markers-in-one-delta-vllm#48347",
        "internlm",
        None,
        'Sure, let me check.<|action_start|><|plugin|>{"name": "f", "parameters": {"city": "Tokyo"}}<|action_end|>',
        "",
        "Sure, let me check.",
        [("f", {"city": "Tokyo"})],
    ),
    (
        "01-gigachat-vllm#47907",
        "gigachat3",
        None,
        '<|function_call|>{"name": "get_weather", "arguments": {"x": 42}}',
        "",
        "",
        [("get_weather", {"x": 42})],
    ),
    (
        "01-granite-list-vllm#47907",
        "granite",
        None,
        '<|tool_call|>[{"name": "get_weather", "arguments": {"x": 42}}, {"name": "b", "arguments": {"y": 7}}]',
        "",
        "",
        [("get_weather", {"x": 42}), ("b", {"y": 7})],
    ),
    (
        "01-granite-20b-vllm#47907",
        "granite-20b-fc",
        None,
        '<function_call> {"name": "a", "arguments": {"x": 42}}<function_call> {"name": "b", "arguments": {"y": 7}}',
        "",
        "",
        [("a", {"x": 42}), ("b", {"y": 7})],
    ),
    (
        "01-functiongemma-vllm#48020",
        "functiongemma",
        None,
        "<start_function_call>call:get_weather{location:<escape>Paris<escape>}<end_function_call>",
        "",
        "",
        [("get_weather", {"location": "Paris"})],
    ),
    (
        "02-markup-cut-in-the-middle-GenericAgent#804",
        "deepseek_v4",
        None,
        "hello<｜DSML｜tool_calls>world",
        "",
        "hello<｜DSML｜tool_calls>world",
        [],
    ),
    ("03-gemma-without-its-word-ollama#17274", "gemma4", None, "<|tool_call>:name{a:1}", "", "", [("name", {"a": 1})]),
    (
        "03-gemma-in-pythons-words-ollama#17882",
        "gemma4",
        None,
        '<|tool_call>call:name(key="v")<tool_call|>',
        "",
        "",
        [("name", {"key": "v"})],
    ),
    (
        "03-unknown-tool-and-the-end-ollama#17274",
        "hermes",
        None,
        '<tool_call>\n{"name": "nobody", "arguments": {}}',
        "",
        "",
        [("nobody", {})],
    ),
    (
        "04-a-call-inside-reasoning-vllm#39056",
        "qwen3_coder",
        "qwen3",
        "<think>\nThe user wants me to read /tmp/probe.txt.\n<tool_call>\n<function=read>\n<parameter=filePath>\n"
        "/tmp/probe.txt\n</parameter>\n</function>\n</tool_call>\n</think>",
        "The user wants me to read /tmp/probe.txt.",
        "",
        [("read", {"filePath": "/tmp/probe.txt"})],
    ),
    (
        "05-a-draft-is-no-call-verl#4757",
        "hermes",
        "qwen3",
        '<think>\nlet me call tool A\n<tool_call>{"name": "A", "arguments": {}}</tool_call>\n</think>\n'
        '<tool_call>{"name": "A", "arguments": {}}</tool_call>',
        'let me call tool A\n<tool_call>{"name": "A", "arguments": {}}</tool_call>',
        "",
        [("A", {})],
    ),
    (
        "05-prose-names-a-marker-astronomical#346",
        "hermes",
        None,
        "Write `<tool_call>` and then the JSON.",
        "",
        "Write `<tool_call>` and then the JSON.",
        [],
    ),
    (
        "05-prose-names-a-marker-before-a-call-astronomical#346",
        "hermes",
        None,
        'It is `<tool_call>`. Now: <tool_call>{"name": "f", "arguments": {}}</tool_call>',
        "",
        "It is `<tool_call>`. Now:",
        [("f", {})],
    ),
    (
        "07-qwen3-coder-drops-its-opener-ollama#16686",
        "qwen3_coder",
        None,
        "<function=Glob>\n<parameter=pattern>\n*.md\n</parameter>\n</function>\n</tool_call>",
        "",
        "",
        [("Glob", {"pattern": "*.md"})],
    ),
    (
        "07-dsml-opens-one-way-and-closes-another-vllm#51914",
        "deepseek_v4",
        None,
        '<｜DSML｜toolcalls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">Paris'
        "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
        "",
        "",
        [("get_weather", {"city": "Paris"})],
    ),
    (
        "07-glm-closes-a-key-twice-vllm#47190",
        "glm47",
        None,
        "<tool_call>read<arg_key>path</arg_key></arg_key><arg_value>/tmp/x</arg_value></tool_call>",
        "",
        "",
        [("read", {"path": "/tmp/x"})],
    ),
    (
        "09-a-token-behind-the-final-message-vllm#50690",
        "gpt-oss",
        None,
        "<|channel|>final<|message|>Answer<|end|><|return|>",
        "",
        "Answer",
        [],
    ),
    (
        "09-python-call-in-tokens-llama.cpp#23838",
        "lfm2",
        None,
        "<|tool_call_start|>[web_search_exa(query='current temperature in Mexico City', numResults=5)]<|tool_call_end|>",
        "",
        "",
        [("web_search_exa", {"query": "current temperature in Mexico City", "numResults": 5})],
    ),
    (
        "11-a-close-marker-in-a-json-string-Rapid-MLX#1515",
        "hermes",
        None,
        '<tool_call>{"name":"get_weather","arguments":{"q":"check </tool_call> now"}}</tool_call>',
        "",
        "",
        [("get_weather", {"q": "check </tool_call> now"})],
    ),
    (
        "11-a-close-tag-in-a-value-Rapid-MLX#1515",
        "qwen3_coder",
        None,
        '<tool_call>\n<function=write>\n<parameter=content>\ndef f():\n    return "</parameter>"\n</parameter>\n'
        "</function>\n</tool_call>",
        "",
        "",
        [("write", {"content": 'def f():\n    return "</parameter>"'})],
    ),
    (
        "12-white-space-of-a-value-vllm#48846",
        "qwen3_coder",
        None,
        "<tool_call>\n<function=write>\n<parameter=content>\n\n    indented\n\u00a0\n\n</parameter>\n</function>\n</tool_call>",
        "",
        "",
        [("write", {"content": "\n    indented\n\u00a0\n"})],
    ),
    (
        "18-names-do-not-merge-ml-intern#340",
        "mistral",
        None,
        '[TOOL_CALLS]bash[ARGS]{"a": 1}[TOOL_CALLS]research[ARGS]{"b": 2}',
        "",
        "",
        [("bash", {"a": 1}), ("research", {"b": 2})],
    ),
    (
        "18-xlam-list-vllm#51697",
        "xlam",
        None,
        '[{"name": "a", "arguments": {"x": 1}}, {"name": "b", "arguments": {"y": 2}}]',
        "",
        "",
        [("a", {"x": 1}), ("b", {"y": 2})],
    ),
    (
        "18-arguments-before-the-name-vllm#9693",
        "hermes",
        None,
        '<tool_call>{"arguments": {"x": 1}, "name": "a"}</tool_call>',
        "",
        "",
        [("a", {"x": 1})],
    ),
    (
        "19-names-with-signs-dynamo#8532",
        "gemma4",
        None,
        "<|tool_call>call:google:mcp:text_generation:create-pdf-file{}<tool_call|>",
        "",
        "",
        [("google:mcp:text_generation:create-pdf-file", {})],
    ),
    (
        "20-no-arguments-glm-vllm#44326",
        "glm45",
        None,
        "<tool_call>get_current_time</tool_call>",
        "",
        "",
        [("get_current_time", {})],
    ),
    (
        "20-no-arguments-step3-vllm#48131",
        "step3",
        None,
        '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="ping"></steptml:invoke>'
        "<｜tool_call_end｜><｜tool_calls_end｜>",
        "",
        "",
        [("ping", {})],
    ),
    (
        "29-a-refusal-without-a-header-harmony#80",
        "gpt-oss",
        None,
        "I must refuse<|end|><|start|>assistant<|channel|>analysis<|message|>We must refuse<|end|>",
        "We must refuse",
        "I must refuse",
        [],
    ),
    (
        "29-two-starts-harmony#82",
        "gpt-oss",
        None,
        "<|start|><|start|>assistant<|channel|>final<|message|>Hi",
        "",
        "Hi",
        [],
    ),
    ("29-an-empty-channel-vllm#43408", "gpt-oss", None, "<|channel|><|message|>Hi", "", "Hi", []),
    ("29-a-channel-and-a-question-vllm#43408", "gpt-oss", None, "<|channel|>commentary 2?<|message|>Hi", "", "Hi", []),
    (
        "29-the-recipient-first-vllm#47062",
        "gpt-oss",
        None,
        ' to=functions.x<|channel|>commentary json<|message|>{"a": 1}',
        "",
        "",
        [("x", {"a": 1})],
    ),
    ("29-a-header-that-never-closes-vllm#47062", "gpt-oss", None, "<|channel|>analysis", "", "", []),
    (
        "39-one-bad-call-does-not-poison-the-next-vllm#51075",
        "hermes",
        None,
        '<tool_call>{bad}</tool_call>\n<tool_call>{"name": "b", "arguments": {"x": 1}}</tool_call>',
        "",
        "<tool_call>{bad}</tool_call>",
        [("b", {"x": 1})],
    ),
    (
        "41-only-the-first-close-ends-reasoning-inspect_ai#4385",
        "deepseek_v3",
        "deepseek_r1",
        "<think>Outer <think>inner</think> continues</think>Visible text",
        "Outer <think>inner",
        "continuesVisible text",
        [],
    ),
    (
        "07-three-objects-and-semicolons-llama.cpp#20260",
        "llama3_json",
        None,
        '{"name": "a", "parameters": {}}; {"name": "b", "parameters": {}}; {"name": "c", "parameters": {}}',
        "",
        "",
        [("a", {}), ("b", {}), ("c", {})],
    ),
    (
        "07-json-under-a-pythonic-model-vllm#46863",
        "llama4_pythonic",
        None,
        '{"name": "a", "parameters": {"x": 1}}',
        "",
        "",
        [("a", {"x": 1})],
    ),
    (
        "33-characters-of-several-tokens-ferrox#124",
        "hermes",
        "qwen3",
        "<think>e\u0301 😀\ufffd</think>👩‍👩‍👧",
        "e\u0301 😀\ufffd",
        "👩‍👩‍👧",
        [],
    ),
]


@pytest.mark.parametrize("trigger", TRIGGERS, ids=lambda t: t[0])
def test_trigger(trigger: tuple[str, str, str | None, str, str, str, Calls]) -> None:
    _, name, reasoning, raw, thought, content, calls = trigger
    expected = {"reasoning": thought, "content": content, "tool_calls": calls}
    if calls:
        expected["finish_reason"] = "tool_calls"
    parsed = check(name, raw, reasoning=reasoning, roundtrip=False)
    assert (parsed.reasoning_content or "", parsed.content or "") == (thought, content)
    assert [(c.function.name, json.loads(c.function.arguments)) for c in parsed.tool_calls] == calls
    assert parsed.finish_reason == ("tool_calls" if calls else "stop")


def test_06_the_prompt_decides_where_reasoning_begins() -> None:
    """tabbyAPI#309, llama.cpp#24674, vllm#48863: prefilled, prefilled with a newline, closed, and absent."""
    parser = OutputParser.named("hermes", reasoning="qwen3")
    start = "<|im_start|>user\nSay <think>!<|im_end|>\n<|im_start|>assistant\n"
    for opened in ("<think>", "<think>\n"):
        parsed = parser.parse("1. The user asks.</think>391", prompt=start + opened)
        assert (parsed.reasoning_content, parsed.content) == ("1. The user asks.", "391")
    for closed in ("", "<think>\n\n</think>\n\n"):
        assert parser.parse('{"answer": 42}', prompt=start + closed).message() == {
            "role": "assistant",
            "content": '{"answer": 42}',
        }


def test_07_kimi_ids_that_lost_their_signs() -> None:
    """sglang#21377."""
    raw = (
        "<|tool_calls_section_begin|><|tool_call_begin|>functionsexec5<|tool_call_argument_begin|>"
        '{"command": "ls"}<|tool_call_end|><|tool_calls_section_end|>'
    )
    parsed = check("kimi_k2", raw, {"tool_calls": [("exec", {"command": "ls"})]}, tools=[tool("exec")], roundtrip=False)
    assert parsed.content is None


def test_07_gemma_without_its_opener_only_for_an_offered_tool() -> None:
    """omlx#1854; prose about the syntax stays prose."""
    raw = 'I will check that. call:get_weather{location:<|"|>NYC<|"|>}<tool_call|>'
    expected = {"content": "I will check that.", "tool_calls": [("get_weather", {"location": "NYC"})]}
    check("gemma4", raw, expected, tools=[tool("get_weather")], roundtrip=False)
    check("gemma4", "Use call:f{a:1} to do it.", {"content": "Use call:f{a:1} to do it."}, roundtrip=False)


@pytest.mark.parametrize(
    ("schema", "written", "value"),
    [
        ({"type": "integer"}, "2026-01-15", "2026-01-15"),
        ({"type": ["string", "null"]}, "null", None),
        ({}, "5", "5"),
        ({"type": "boolean"}, "True", True),
        ({"type": "array"}, '[{"a": true, "b": null}]', [{"a": True, "b": None}]),
        ({"type": "string"}, "123", "123"),
        ({"type": "object"}, "__import__('os').system('true')", "__import__('os').system('true')"),
    ],
)
def test_13_tagged_values_take_their_schemas_type(schema: dict[str, Any], written: str, value: Any) -> None:
    """mlx-lm#1236, vllm#43238, sglang#35564; vllm#23266: nothing is ever evaluated."""
    raw = f"<tool_call>\n<function=f>\n<parameter=x>\n{written}\n</parameter>\n</function>\n</tool_call>"
    parsed = OutputParser.named("qwen3_coder").parse(raw, tools=[tool("f", x=schema)])
    assert json.loads(parsed.tool_calls[0].function.arguments) == {"x": value}


def test_15_a_cut_call_is_said_to_be_cut() -> None:
    """vllm#58228."""
    raw = '<tool_call>{"name": "write", "arguments": {"path": "a.txt", "content": "alpha'
    expected = {
        "tool_calls": [("write", '{"path": "a.txt", "content": "alpha', "incomplete")],
        "finish_reason": "length",
        "diagnostics": ["incomplete_call"],
    }
    check("hermes", raw, expected, finish_reason="length", roundtrip=False)


def test_16_reasoning_cut_by_length_stays_reasoning() -> None:
    """omlx#2457."""
    check(
        "hermes",
        "<think>Let me",
        {"reasoning": "Let me", "finish_reason": "length"},
        reasoning="qwen3",
        finish_reason="length",
        roundtrip=False,
    )


def test_09_brackets_behind_the_arguments() -> None:
    """ollama#17638."""
    raw = '<|channel|>commentary to=functions.edit<|message|>{"a": [1]}]\'<|call|>'
    expected = {"tool_calls": [("edit", {"a": [1]}, "recovered")], "diagnostics": ["stray_text"]}
    check("gpt-oss", raw, expected, roundtrip=False)


def test_09_arguments_that_are_no_json() -> None:
    """continue#10221."""
    raw = "<|channel|>commentary to=functions.bash<|message|>ls -R\n<|call|>"
    expected = {"tool_calls": [("bash", "ls -R", "invalid_json")], "diagnostics": ["invalid_json"]}
    check("gpt-oss", raw, expected, roundtrip=False)


def test_21_a_wrong_name_is_not_silent() -> None:
    """vllm#33894."""
    with pytest.raises(UnknownFormatError, match="did you mean"):
        OutputParser.named("hermez")


def test_24_ids_follow_the_family() -> None:
    """sglang#33343, vllm#9019."""
    kimi = OutputParser.named("kimi_k2").parse(
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:3<|tool_call_argument_begin|>{}<|tool_call_end|>"
    )
    assert [c.id for c in kimi.tool_calls] == ["functions.f:3"]
    mistral = OutputParser.named("mistral").parse("[TOOL_CALLS]f[CALL_ID]123456789[ARGS]{}")
    assert [c.id for c in mistral.tool_calls] == ["123456789"]


def test_34_and_35_are_policies() -> None:
    """sglang#12226 and vllm#37790; vllm#9451."""
    raw = '<tool_call>{"name": "a", "arguments": {}}</tool_call><tool_call>{"name": "b", "arguments": {}}</tool_call>'
    names = [c.function.name for c in OutputParser.named("hermes").parse(raw, tools=[tool("b")]).tool_calls]
    assert names == ["a", "b"]
    dropping = OutputParser.named("hermes", policy=Policy(unknown_tools="drop"))
    assert [c.function.name for c in dropping.parse(raw, tools=[tool("b")]).tool_calls] == ["b"]
    first = OutputParser.named("hermes", policy=Policy(parallel_calls="first"))
    assert [c.function.name for c in first.parse(raw).tool_calls] == ["a"]


def test_43_markers_from_users_are_text_when_ids_say_so() -> None:
    """transformers#47822."""

    class Tokenizer:
        def get_vocab(self) -> dict[str, int]:
            return {"<tool_call>": 0, "</tool_call>": 1, "x": 2}

    parser = OutputParser.named("hermes", tokenizer=Tokenizer())
    raw = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    assert parser.parse(raw, token_ids=[2]).message() == {"role": "assistant", "content": raw}
