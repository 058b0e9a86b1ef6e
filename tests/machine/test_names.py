"""Words that no model writes as the name of a tool."""

from __future__ import annotations

import pytest

from untemplate import OutputParser
from untemplate._internal.render import expressible, render
from untemplate.testing import check

TOOLS = [{"type": "function", "function": {"name": "f"}}]


@pytest.mark.parametrize("word", ["…", "...", "?", ".*", "-"])
@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("glm45", "Write <tool_call>{}</tool_call>."),
        ("qwen3_coder", "Write <function={}></function>."),
        ("gpt-oss", "<|channel|>commentary to=functions.{} <|message|>x"),
    ],
)
@pytest.mark.parametrize("tools", [None, TOOLS])
def test_a_name_has_a_letter_a_digit_or_an_underscore(name: str, raw: str, word: str, tools: object) -> None:
    parsed = check(OutputParser.named(name).format, raw.format(word), tools=tools)
    assert (parsed.content, parsed.tool_calls) == (raw.format(word), [])


@pytest.mark.parametrize("name", ["glm45", "glm47", "poolside_v1"])
def test_a_word_of_prose_between_the_markers_is_not_a_call(name: str) -> None:
    parser = OutputParser.named(name, reasoning="identity")
    raw = "It stands between <tool_call> and </tool_call>."
    assert parser.parse(raw, tools=TOOLS).message() == {"role": "assistant", "content": raw}
    for tools, word in ((TOOLS, "f"), (None, "and")):
        (call,) = parser.parse(f"<tool_call>{word}</tool_call>", tools=tools).tool_calls
        assert (call.function.name, call.function.arguments) == (word, "{}")


NAME_IN_TAG = [
    "deepseek_v32", "deepseek_v4", "dots", "hy_v3", "minicpm5", "minimax_m2", "minimax_m3", "qwen3_coder"
]  # fmt: skip


@pytest.mark.parametrize("name", NAME_IN_TAG)
def test_a_name_in_a_tag_of_its_own_is_no_word_of_prose(name: str) -> None:
    parser = OutputParser.named(name)
    message = {"role": "assistant", "tool_calls": [{"function": {"name": "other", "arguments": "{}"}}]}
    assert expressible(parser.format, message, TOOLS) is None
    parsed = check(parser.format, render(parser.format, message), tools=TOOLS)
    (call,) = parsed.tool_calls
    assert (call.function.name, call.function.arguments, call.status) == ("other", "{}", "unknown_tool")
    assert parsed.content is None


def test_a_word_between_markers_that_ids_prove_is_a_call() -> None:
    class Tokenizer:
        def get_vocab(self) -> dict[str, int]:
            return {"<tool_call>": 1, "</tool_call>": 2, "g": 3}

    parser = OutputParser.named("glm45", tokenizer=Tokenizer())
    (call,) = parser.parse("<tool_call>g</tool_call>", tools=TOOLS, token_ids=[1, 3, 2]).tool_calls
    assert (call.function.name, call.status) == ("g", "unknown_tool")


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("deepseek_v31", '"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>"\nEND = "x"'),
        ("functionary_v3.1", 'They write "<function=f>": \'<\', then "x".'),
    ],
)
def test_a_text_in_quotes_is_not_encoded_arguments(name: str, raw: str) -> None:
    parsed = check(OutputParser.named(name).format, raw)
    assert (parsed.content, parsed.tool_calls) == (raw, [])


def test_encoded_arguments_are_read() -> None:
    raw = '<function=f>" {\\"a\\": 1}"</function>'
    (call,) = check(OutputParser.named("functionary_v3.1").format, raw).tool_calls
    assert call.function.arguments.strip() == '{"a": 1}'
