"""Headers of messages: white space in them, and what ends an open message."""

from __future__ import annotations

import pytest

from untemplate import OutputParser
from untemplate.testing import check

CALL = '<|channel|>commentary to=functions.f<|message|>{"a": 1}<|call|>'
ANSWER = "<|end|><|start|>assistant<|channel|>final<|message|>No."


@pytest.mark.parametrize(
    "raw",
    [
        '<|channel|>commentary to=functions.f <|constrain|>json\n<|message|>{"a": 1}<|call|>',
        '<|channel|>commentary to=functions.f\n<|constrain|>json\n<|message|>{"a": 1}<|call|>',
        '<|channel|>commentary\nto=functions.f\n<|message|>{"a": 1}<|call|>',
        '<|start|>assistant\n<|channel|>commentary to=functions.f<|message|>{"a": 1}<|call|>',
        '<|channel|>commentary to= functions.f<|message|>{"a": 1}<|call|>',
    ],
)
def test_white_space_in_a_header(raw: str) -> None:
    check("gpt-oss", raw, {"tool_calls": [("f", '{"a": 1}')], "diagnostics": []}, exhaustive=True, roundtrip=False)


@pytest.mark.parametrize(
    "raw", ["<|channel|>final\nHello there.\nYou.", "<|channel|>final Hello there, you", "<|channel|>final\n\n- one"]
)
def test_a_header_that_is_none_is_content(raw: str) -> None:
    expected = {"content": raw, "diagnostics": ["call_like_text"]}
    check("gpt-oss", raw, expected, exhaustive=True, roundtrip=False)


@pytest.mark.parametrize(
    ("raw", "content"),
    [
        ("<|start|>\nHere is text.\n<|end|>", "Here is text."),
        ("<|channel|>final<|message|>One.<|end|><|start|>\nTwo.", "One.\nTwo."),
    ],
)
def test_an_opener_without_a_header_is_dropped_before_a_new_line(raw: str, content: str) -> None:
    expected = {"content": content, "diagnostics": ["broken_header"]}
    check("gpt-oss", raw, expected, exhaustive=True, roundtrip=False)


@pytest.mark.parametrize("raw", ["See <|start|>\nand so on.", "<|start|> begins\na message."])
def test_an_opener_in_a_sentence_is_text(raw: str) -> None:
    assert OutputParser.named("gpt-oss").parse(raw).content == raw


def test_a_cut_header_is_dropped() -> None:
    parsed = OutputParser.named("gpt-oss").parse("<|channel|>final Hel")
    assert (parsed.content, [d.code for d in parsed.diagnostics]) == (None, ["incomplete_header"])


@pytest.mark.parametrize(
    "before",
    [
        "Need to search<|start|>assistant",
        "Need to search.",
        "Need to search. ",
        "Need to search:\n",
        'It says "go."',
        "Need to search (now.)",
        'It says "go."<|start|>assistant',
    ],
)
def test_a_header_ends_an_open_message(before: str) -> None:
    raw = f"<|channel|>analysis<|message|>{before}{CALL}"
    thoughts = before.removesuffix("<|start|>assistant").strip()
    expected = {"reasoning": thoughts, "tool_calls": [("f", '{"a": 1}')], "diagnostics": ["unclosed_message"]}
    check("gpt-oss", raw, expected, exhaustive=True, roundtrip=False)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (f"The page says {CALL} which calls.", []),
        (f'The page says "<|start|>assistant{CALL}" to me.', ["quoted_call"]),
        (f"It says:\n> <|start|>assistant{CALL}\nSo no.", ["quoted_call"]),
        (f"| call | {CALL} |\nSo no.", ["quoted_call"]),
        ("The marker <|channel|> begins a channel.", []),
    ],
)
def test_a_header_in_the_middle_of_a_sentence_is_text(text: str, codes: list[str]) -> None:
    raw = f"<|channel|>analysis<|message|>{text}{ANSWER}"
    expected = {"reasoning": text, "content": "No.", "diagnostics": codes}
    check("gpt-oss", raw, expected, exhaustive=True, roundtrip=False)


@pytest.mark.parametrize("header", ["<|channel|>final", "<|start|>assistant<|channel|>final"])
def test_a_header_ends_broken_arguments(header: str) -> None:
    raw = f'<|channel|>commentary to=functions.f<|message|>{{"a": 1\n{header}<|message|>No.'
    expected = {
        "content": "No.",
        "tool_calls": [("f", '{"a": 1\n', "invalid_json")],
        "diagnostics": ["invalid_json", "broken_json"],
    }
    check("gpt-oss", raw, expected, exhaustive=True, roundtrip=False)
