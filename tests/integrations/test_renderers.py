"""``untemplate.integrations.renderers`` in the package's default renderer: ``make test-integrations``."""

from __future__ import annotations

import json
from typing import Any

import pytest

parsers = pytest.importorskip("renderers.parsers", reason="needs renderers")

from renderers import DefaultRendererConfig, create_renderer  # noqa: E402
from renderers.base import ToolCallParseStatus  # noqa: E402

from untemplate._internal.output_parser import OutputParser  # noqa: E402
from untemplate._internal.render import expressible, render  # noqa: E402
from untemplate.formats import entries, named  # noqa: E402
from untemplate.integrations.renderers import register  # noqa: E402

from .helper import TIME, call, tokenizer  # noqa: E402

FIND = call("find", q="two words", deep=[1, None])
MESSAGES: list[dict[str, Any]] = [
    {"content": "Certainly: a < b, and {c}."},
    {"tool_calls": [FIND]},
    {"content": "One moment.", "tool_calls": [FIND, TIME]},
    {"reasoning": "Look it up.", "content": "One moment.", "tool_calls": [TIME, FIND]},
]
SPECIAL = ("<|im_start|>", "<tool_call>", "</tool_call>")
register()


def response(made: Any, text: str, name: str = "untemplate", prompt: str | None = None) -> Any:
    renderer = create_renderer(made, DefaultRendererConfig(tool_parser=name, reasoning_parser=name))
    prompt_ids = None if prompt is None else made.encode(prompt, add_special_tokens=False)
    return renderer.parse_response(made.encode(text, add_special_tokens=False), prompt_ids=prompt_ids)


OUTPUT = (
    "<think>\nLook it up.\n</think>\n\nOne moment.\n"
    '<tool_call>\n{"name": "find", "arguments": {"q": "tea"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "time", "arguments": {}}\n</tool_call><|im_end|>'
)


def test_the_message_and_the_tokens_of_calls():
    made = tokenizer(*SPECIAL)
    parsed = response(made, OUTPUT)
    assert (parsed.reasoning_content, parsed.content) == ("Look it up.", "One moment.")
    ids = made.encode(OUTPUT.removesuffix("<|im_end|>"), add_special_tokens=False)
    assert [(one.name, one.arguments, one.status) for one in parsed.tool_calls] == [
        ("find", {"q": "tea"}, ToolCallParseStatus.OK),
        ("time", {}, ToolCallParseStatus.OK),
    ]
    spans = [made.decode(ids[slice(*call.token_span)]) for call in parsed.tool_calls]
    first, _, second = OUTPUT.removesuffix("<|im_end|>").partition("One moment.")[2].partition("</tool_call>")
    assert spans == [first + "</tool_call>", second] == [call.raw for call in parsed.tool_calls]


def test_the_prompt_may_open_reasoning():
    parsed = response(tokenizer(*SPECIAL), OUTPUT.removeprefix("<think>\n"), prompt="<|im_start|>assistant\n<think>\n")
    assert (parsed.reasoning_content.strip(), parsed.content.strip()) == ("Look it up.", "One moment.")
    assert [call.name for call in parsed.tool_calls] == ["find", "time"]


@pytest.mark.parametrize(
    ("body", "status", "arguments"),
    [
        ('{"name": "find", "arguments": {"q": "te', ToolCallParseStatus.UNCLOSED_BLOCK, '{"q": "te'),
        ('{"name": "find", "arguments": {"q": tea}}\n</tool_call>', ToolCallParseStatus.INVALID_JSON, '{"q": tea}'),
    ],
)
def test_broken_calls_have_a_status(body: str, status: Any, arguments: str):
    (call,) = response(tokenizer(*SPECIAL), f"<tool_call>\n{body}").tool_calls
    assert (call.name, call.status, call.arguments) == ("find", status, arguments)


@pytest.mark.parametrize("format_name", sorted({entry.name for entry in entries()}))
def test_every_format_gives_the_same_calls_and_content(format_name: str):
    fmt, name = named(format_name), f"untemplate:{format_name}"
    made = tokenizer(*fmt.special_tokens)
    calls, reasoning = parsers.get_tool_parser(name, made), parsers.get_reasoning_parser(name, made)
    for message in MESSAGES:
        if expressible(fmt, message) is not None:
            continue
        text = render(fmt, message)
        expected = OutputParser.from_format(fmt).parse(text)
        thoughts, close, after = text.partition("</think>")
        if close and fmt.reasoning is not None:  # the default renderer gives the ids after it
            text = after
        ids, found = calls.extract(made.encode(text, add_special_tokens=False))
        assert [(call.name, call.arguments) for call in found] == [
            (call.function.name, json.loads(call.function.arguments)) for call in expected.tool_calls
        ], text
        if close and fmt.reasoning is not None:
            ids = made.encode(thoughts + close, add_special_tokens=False) + ids
        got = reasoning.extract(made.decode(ids, skip_special_tokens=False))
        assert (got[0], got[1]) == (expected.reasoning, expected.content or ""), text
