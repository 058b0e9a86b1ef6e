"""Shapes of calls that models write and their templates do not: each is read, or is text that is reported.

Each shape is read where nothing quotes it, and is text in the contexts in which injected text is quoted.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from untemplate import OutputParser, Policy
from untemplate.testing import PieceTokenizer, check

TOOLS = [
    {
        "type": "function",
        "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}},
    }
]
CALLS = {
    "built-in": ("llama3_json", '<|python_tag|>f.call(a="1")'),
    "JSON in a function tag": ("qwen3_coder", '<function=f>{"a": "1"}</function>'),
    "JSON after the name": ("glm45", '<tool_call>f\n{"a": "1"}</tool_call>'),
}
EVERY = pytest.mark.parametrize(("name", "call"), CALLS.values(), ids=list(CALLS))
QUOTING: dict[str, Callable[[str], str]] = {
    "inline code": lambda c: f"The page says `{c}` which is how it calls.",
    "double backticks": lambda c: f"The page says ``{c}`` which is how it calls.",
    "blockquote": lambda c: "It says:\n\n> " + c.replace("\n", "\n> ") + "\n\nThat is all.",
    "table row": lambda c: "| kind | text |\n|---|---|\n| call | " + c.replace("\n", " ") + " |\n\nDone.",
    "quotation marks": lambda c: f'The page says "{c}".',
    "JSON string": lambda c: '{"note": ' + json.dumps(c) + "}",
    "diff": lambda c: "```diff\n@@ -1 +1,2 @@\n+" + c.replace("\n", "\n+") + "\n```\nA diff.",
}


@EVERY
def test_it_is_read(name: str, call: str) -> None:
    found = check(name, call, tools=TOOLS, exhaustive=True, roundtrip=False)
    assert [(c.function.name, c.function.arguments, c.status) for c in found.tool_calls] == [("f", '{"a": "1"}', "ok")]


@EVERY
@pytest.mark.parametrize("context", QUOTING)
def test_a_quoted_one_is_text(name: str, call: str, context: str) -> None:
    text = QUOTING[context](call)
    found = check(name, text, tools=TOOLS, roundtrip=False, cuts=30)
    assert (found.tool_calls, found.content) == ([], text)


@pytest.mark.parametrize(
    ("raw", "calls"),
    [
        ('<|python_tag|>f.call(a="1"); g.call(b=2, c=true)', [("f", '{"a": "1"}'), ("g", '{"b": 2, "c": true}')]),
        ("<|python_tag|>f.call()", [("f", "{}")]),
        ('<|python_tag|>print("x")', []),
        ("<|python_tag|>import os\nprint(os.getcwd())", []),
    ],
)
def test_built_in_calls_of_llama(raw: str, calls: list[tuple[str, str]]) -> None:
    found = check("llama3_json", raw, exhaustive=True, roundtrip=False)
    assert [(c.function.name, c.function.arguments) for c in found.tool_calls] == calls
    assert [d.code for d in found.diagnostics] == ([] if calls else ["call_like_text"])


@pytest.mark.parametrize(
    ("name", "raw", "code"),
    [
        ("qwen3_coder", "<function=f>\n<a>1</a>\n</function>", "call_like_text"),
        ("glm45", "<tool_call>f\n<a>1</a>\n</f>\n</tool_call>", "call_like_text"),
        ("qwen3_coder", "<function>f</function>\n<parameter>a</parameter>", "call_like_text"),
        ("hermes", '<tool_call>f\n{"a": "1"}</tool_call>', "call_like_text"),
        ("lfm2", '<|tool_call_start|>[[f(a="1")]]<|tool_call_end|>', "call_like_text"),
    ],
)
def test_what_is_not_read_is_reported(name: str, raw: str, code: str) -> None:
    parsed = OutputParser.named(name).parse(raw, tools=TOOLS)
    assert (parsed.tool_calls, parsed.content, [d.code for d in parsed.diagnostics]) == ([], raw, [code])


def test_the_next_channel_closes_reasoning_of_gemma() -> None:
    found = check("gemma4", "<|channel>thought\nHm.\n<|channel>response\nHello.", exhaustive=True, roundtrip=False)
    assert (found.reasoning, found.content) == ("Hm.", "Hello.")


TYPED = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "string"}}},
        },
    }
]


@pytest.mark.parametrize(
    ("key", "text", "value", "status", "code"),
    [
        ("a", "<value>0.8</value>", "0.8", "recovered", "stray_text"),
        ("a", "<value>\n0.8\n</value>", "0.8", "recovered", "stray_text"),
        ("a", "<a>1</a>", "1", "recovered", "stray_text"),
        ("a", "<value>loud</value>", '"<value>loud</value>"', "invalid_arguments", None),
        ("a", "<value>1</a>", '"<value>1</a>"', "invalid_arguments", None),
        ("b", "<value>0.8</value>", '"<value>0.8</value>"', "ok", None),
    ],
)
def test_an_element_around_a_value(key: str, text: str, value: str, status: str, code: str | None) -> None:
    raw = f"<tool_call>\n<function=f>\n<parameter={key}>\n{text}\n</parameter>\n</function>\n</tool_call>"
    found = check("qwen3_coder", raw, tools=TYPED, exhaustive=True, roundtrip=False)
    assert [(c.function.arguments, c.status) for c in found.tool_calls] == [(f'{{"{key}": {value}}}', status)]
    assert [d.code for d in found.diagnostics] == ([code] * 2 if code else [])


INVOKE = '<invoke name="f">\n<parameter name="a">1</parameter>\n</invoke>'


def test_a_call_without_the_opener_of_its_section() -> None:
    raw = f"</think>\n\nSure.\n{INVOKE}\n{INVOKE}\nDone."
    found = check("minimax_m2", raw, tools=TOOLS, exhaustive=True, roundtrip=False)
    assert [(c.function.arguments, c.status) for c in found.tool_calls] == [('{"a": "1"}', "recovered")] * 2
    assert (found.content, [d.code for d in found.diagnostics]) == ("Sure.\nDone.", ["missing_open"] * 2)


@pytest.mark.parametrize("tools", [None, [{"type": "function", "function": {"name": "g"}}]])
def test_with_other_tools_it_is_text(tools: list[dict[str, object]] | None) -> None:
    found = check("minimax_m2", f"</think>\n\nSure.\n{INVOKE}", tools=tools, exhaustive=True, roundtrip=False)
    assert (found.tool_calls, found.content) == ([], f"Sure.\n{INVOKE}")
    assert [d.code for d in found.diagnostics] == ["call_like_text"]


def test_with_ids_it_is_text() -> None:
    raw = f"</think>\n\nSure.\n{INVOKE}"
    tokenizer = PieceTokenizer(("</think>", "<minimax:tool_call>", "</minimax:tool_call>"))
    parser = OutputParser.named("minimax_m2", tokenizer=tokenizer)
    found = parser.parse(raw, token_ids=tokenizer.encode(raw), tools=TOOLS)
    assert (found.tool_calls, found.content) == ([], f"Sure.\n{INVOKE}")
    assert [(d.code, d.text) for d in found.diagnostics] == [("call_like_text", '<invoke name="')]


@pytest.mark.parametrize(
    ("name", "raw", "marker"),
    [
        ("lfm2", '<|tool_call_start|><|tool_call_start|>[f(a="1")]<|tool_call_end|>', "<|tool_call_start|>"),
        ("hermes", '<tool_call>\n<tool_call>\n{"name": "f", "arguments": {"a": "1"}}\n</tool_call>', "<tool_call>"),
        (
            "deepseek_v31",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>"
            '{"a": "1"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
            "<｜tool▁call▁begin｜>",
        ),
    ],
)
def test_a_doubled_opener(name: str, raw: str, marker: str) -> None:
    found = check(name, raw, tools=TOOLS, exhaustive=True, roundtrip=False)
    assert [(c.function.arguments, c.status) for c in found.tool_calls] == [('{"a": "1"}', "recovered")]
    assert (found.content, [(d.code, d.text) for d in found.diagnostics]) == (None, [("doubled_open", marker)])


@pytest.mark.parametrize(
    ("raw", "content"),
    [
        ("Use <tool_call><tool_call> twice.", "Use <tool_call><tool_call> twice."),
        (
            '<tool_call><tool_call><tool_call>{"name": "f", "arguments": {}}</tool_call>',
            "<tool_call>",
        ),
    ],
)
def test_a_doubled_opener_without_its_call_is_text(raw: str, content: str) -> None:
    found = check("hermes", raw, tools=TOOLS, exhaustive=True, roundtrip=False)
    assert found.content == content


@pytest.mark.parametrize(
    ("members", "arguments", "status", "code"),
    [
        ('"argumentsss": {"a": "1"}', '{"argumentsss": {"a": "1"}}', "recovered", "missing_open"),
        ('"paramters": {}', '{"paramters": {}}', "recovered", "missing_open"),
        ('"argumentsss": "1"', '{"argumentsss": "1"}', "ok", "variant_spelling"),
        ('"options": {"a": 1}', '{"options": {"a": 1}}', "ok", "variant_spelling"),
        ('"paramters": {}, "a": 1', '{"paramters": {}, "a": 1}', "ok", "variant_spelling"),
    ],
)
def test_a_damaged_key_of_the_arguments(members: str, arguments: str, status: str, code: str) -> None:
    raw = f'<tool_call>\n{{"name": "f", {members}}}\n</tool_call>'
    found = check("hermes", raw, exhaustive=True, roundtrip=False)
    assert [(c.function.arguments, c.status) for c in found.tool_calls] == [(arguments, status)]
    assert [d.code for d in found.diagnostics] == [code]


def test_a_doubled_opener_that_is_only_spelled() -> None:
    raw = '<tool_call><tool_call>{"name": "f", "arguments": {}}</tool_call>'
    tokenizer = PieceTokenizer(("<tool_call>", "</tool_call>"), spell=True)
    policy = Policy(spelled_markers="marker")
    stream = OutputParser.named("hermes", tokenizer=tokenizer, policy=policy).stream(collect=True)
    for piece, token in zip(tokenizer.pieces(raw), tokenizer.encode(raw), strict=True):
        stream.feed(piece, [token])
    stream.finish()
    assert [call.status for call in stream.result().tool_calls] == ["recovered"]
