"""Calls that become text again, by a policy or because too much is held: whole, and the same under every cut."""

from __future__ import annotations

from typing import Any

import pytest

from untemplate import OutputParser, Policy
from untemplate.testing import check

TOOLS = [{"type": "function", "function": {"name": "f"}}]
AS_CONTENT = Policy(malformed_arguments="content", unknown_tools="content")
OPEN, CLOSE = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
KEPT = "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
OTHER = "<|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}<|tool_call_end|>"


@pytest.mark.parametrize(
    ("raw", "content", "calls"),
    [
        (f"Hi{OPEN}{OTHER}{CLOSE}bye", f"Hi{OPEN}{OTHER}{CLOSE}bye", 0),
        (f"Hi\n{OPEN}\n{OTHER}\n{CLOSE}\nbye", f"Hi\n{OPEN}\n{OTHER}\n{CLOSE}\nbye", 0),
        (f"Hi{OPEN}{OTHER}{KEPT}{CLOSE}bye", f"Hi{OPEN}{OTHER}{CLOSE}bye", 1),
        (f"Hi{OPEN}{KEPT}{OTHER}{CLOSE}bye", f"Hi{OTHER}bye", 1),
        (f"Hi{OPEN}{OTHER}{CLOSE}{OPEN}{KEPT}{CLOSE}bye", f"Hi{OPEN}{OTHER}{CLOSE}bye", 1),
        (f"Hi{OPEN}{OTHER}", f"Hi{OPEN}{OTHER}", 0),
    ],
)
def test_a_section_whose_opener_is_text_closes_as_text(raw: str, content: str, calls: int) -> None:
    expected = {"content": content, "tool_calls": [("f", "{}")] * calls}
    check("kimi_k2", raw, expected, tools=TOOLS, policy=AS_CONTENT, exhaustive=True, roundtrip=False)


@pytest.mark.parametrize(
    ("calls", "content", "kept"),
    [
        ("[g(b=2)]", "<|tool_call_start|>[g(b=2)]<|tool_call_end|>", 0),
        ("[f(), g(b=2)]", ", g(b=2)", 1),
        ("[g(b=2), f()]", "<|tool_call_start|>[g(b=2)]<|tool_call_end|>", 1),
    ],
)
def test_a_list_whose_opener_is_text_closes_as_text(calls: str, content: str, kept: int) -> None:
    raw = f"Hi<|tool_call_start|>{calls}<|tool_call_end|>bye"
    expected = {"content": f"Hi{content}bye", "tool_calls": [("f", "{}")] * kept}
    check("lfm2", raw, expected, tools=TOOLS, policy=AS_CONTENT, exhaustive=True, roundtrip=False)


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("most", [1, 2, 3, 7, 20, 33, 40])
@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("hermes", 'A call: <tool_call>{"arguments": {"x": "12345678"}, "name": "f"}</tool_call> and on.'),
        ("hermes", 'Hm <tool_call> {"na <tool_call>\n{"name": "f", "arguments": {}}\n</tool_call> <tool_call> x'),
        ("qwen3_coder", "Hm <tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>"),
        ("pythonic", "[f(a='x', b=[1, 2, 3]), f(a='a longer one')]"),
        ("kimi_k2", f"Hi{OPEN}{KEPT} {KEPT}{CLOSE}"),
        ("gpt-oss", "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>"),
        ("llama3_json", '{"name": "f", "parameters": {"a": 1}}'),
    ],
)
def test_what_is_too_much_to_hold_does_not_depend_on_the_cut(name: str, raw: str, most: int, every: bool) -> None:
    tried: Any = {"policy": Policy(max_held=most), "cuts": 40, "exhaustive": every, "roundtrip": False}
    check(name, raw, **tried)
    if name == "hermes":
        check(name, f"<think>Hm {raw}</think>", reasoning="qwen3", **tried)


BEGUN = '<tool_call>{"nam": 1, "x": "'
CALL = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'


@pytest.mark.parametrize(
    ("prefill", "raw", "content"),
    [
        (BEGUN + 'nothing of the kind, at some length, and then some more"}</tool_call> ', BEGUN + CALL, BEGUN),
        (BEGUN, f"abc{CALL}", "abc"),
        ("<tool_call>", '{"a' + CALL, '{"a'),
        ("<tool_call>", CALL, ""),
        ("<tool_call>", "x", "x"),
        ("<tool", f"_call>{CALL}", "_call>"),
    ],
)
def test_what_the_prompt_began_says_nothing_of_the_output(prefill: str, raw: str, content: str) -> None:
    """The output is searched for markers from its first character, whatever the prompt has at the same offset."""
    expected = {"content": content, "tool_calls": [("f", "{}")] * raw.count("arguments")}
    check("hermes", raw, expected, prompt="<|im_start|>assistant\n" + prefill, exhaustive=True, roundtrip=False)


def test_white_space_before_a_held_call_that_grows_too_long() -> None:
    """A call policy holds the call; the white space before it is content again when the call is."""
    raw = 'Hi.\n\n<tool_call>{"name": "g", "arguments": {"a": "' + "x" * 99 + '"}}</tool_call> there'
    parsed = OutputParser.named("hermes").parse(raw, policy=Policy(unknown_tools="drop", max_held=50), tools=TOOLS)
    assert (parsed.content, [d.code for d in parsed.diagnostics]) == (raw, ["held_too_long"])


NUMBER = [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"n": {"type": "integer"}}}}}]


@pytest.mark.parametrize(
    ("name", "begun", "cut", "arguments"),
    [
        (
            "qwen3_coder",
            "<tool_call>\n<function=f>\n<parameter=n>\n7777",
            "<tool_call>\n<function=f>\n<parameter=s>\nabc",
            '{"s": "abc',
        ),
        (
            "glm45",
            "<tool_call>f\n<arg_key>n</arg_key>\n<arg_value>7777",
            "<tool_call>f\n<arg_key>s</arg_key>\n<arg_value>abc",
            '{"s": "abc',
        ),
        (
            "hermes",
            '<tool_call>{"name": "f", "arguments": {"n": 1 2 ',
            '<tool_call>{"name": "f", "arguments": {"n": 1 2 3',
            '{"n": 1 2 3',
        ),
    ],
)
def test_nothing_of_a_call_that_became_text_is_in_a_later_one(name: str, begun: str, cut: str, arguments: str) -> None:
    """The readers of a call read later ones as well. Here the first call becomes reasoning in the middle of a value."""
    most = 2 * len(cut)
    thought = f"Hm {begun}{' ' * most} and so on."
    reasoning = None if name == "glm45" else "qwen3"
    policy = Policy(max_held=most)
    expected = {"reasoning": thought, "tool_calls": [("f", arguments, "incomplete")]}
    raw = f"<think>{thought}</think>\n{cut}"
    check(name, raw, expected, reasoning=reasoning, tools=NUMBER, policy=policy, roundtrip=False)
