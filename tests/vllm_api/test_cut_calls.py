"""A cut call is not a call to run, in every class with vLLM's interface, and nothing vanishes.

Two calls in each format of the catalogue, cut at some places, and at every one in `make laws`. Whole outputs, and
streams whose end would not show the cut, return a cut call as content. Other streams have sent what they have sent.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from untemplate._internal.render import expressible, render
from untemplate.format import Format
from untemplate.formats import entries
from untemplate.vllm_api import ParserEngine, ParserManager, ToolParserManager
from untemplate.vllm_api._format_parsers import parser_class, tool_class

from .parser_examples import Tokenizer, hermes, message, qwen_coder, tool

TOOLS = [tool("get_weather", city={"type": "string"}, days={"type": "integer"})]
ARGUMENTS = ({"city": "Paris"}, {"city": "New York", "days": 3})
CALLS = [("get_weather", arguments) for arguments in ARGUMENTS]
MESSAGE = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {"id": f"callid00{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(CALLS)
    ],
}
FORMATS: dict[str, Format] = {
    entry.name: entry.format
    for entry in entries()
    if entry.kind == "tool" and expressible(entry.format, MESSAGE, TOOLS) is None
}
CONFIGS = {"hermes": hermes(), "qwen_coder": qwen_coder()}
CHAT: dict[str, Any] = {"messages": [], "tools": TOOLS}
HIDING: dict[str, dict[str, Any]] = {
    "stop": {**CHAT, "stop": ["Paris"]},
    "stop token": {**CHAT, "stop_token_ids": [7]},
    "responses": {"input": "Hi", "tools": TOOLS},
}
"""Requests whose streams do not show at their end that a call was cut."""


def calls_of(found: Any) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in found or ()]


def streamed(parser: Any, text: str, request: Any) -> dict[str, Any]:
    deltas = [parser.parse_delta(letter, [], request, finished=False) for letter in text]
    return message([*deltas, parser.parse_delta("", [], request, finished=True)])


def same(found: dict[str, Any], content: str | None, calls: list[tuple[str, Any]]) -> bool:
    """True if a streamed message is this one."""
    try:
        sent = [(name, json.loads(arguments)) for _, name, arguments in found["calls"]]
    except ValueError:
        return False
    return bool(found["content"] == (content or "") and sent == calls)


def some(output: str, count: int) -> list[int]:
    """Return this many places of an output, each time the same."""
    places = range(1, len(output))
    return random.Random(output).sample(places, min(count, len(places)))


def check_whole(fmt: Format, output: str, ends: Sequence[int]) -> None:
    both, tools = parser_class(fmt), tool_class(fmt)
    for end in ends:
        text = output[:end]
        reasoning, content, calls = both(None, TOOLS).parse(text, CHAT)
        assert calls_of(calls) == CALLS[: len(calls or ())], text
        found = tools(None, TOOLS).extract_tool_calls(text, CHAT)
        assert found.tools_called == bool(found.tool_calls)
        assert calls_of(call.function for call in found.tool_calls) == CALLS[: len(found.tool_calls)], text
        if not calls and text.strip() and fmt.channels is None and text.strip() not in fmt.special_tokens:
            assert content or reasoning, text
            assert (content or "").strip() == text.strip(), text


def check_streams(fmt: Format, output: str, ends: Sequence[int]) -> None:
    both = parser_class(fmt)
    for end in ends:
        text = output[:end]
        _, content, calls = both(None, TOOLS).parse(text, CHAT)
        for request in HIDING.values():
            assert same(streamed(both(None, TOOLS), text, request), content, calls_of(calls)), text
        found = streamed(both(None, TOOLS), text, CHAT)
        if not same(found, content, calls_of(calls)):
            # A part of the cut call was sent: it is the only difference, and its text is not content as well.
            whole = len(calls or ())
            assert len(found["calls"]) == whole + 1, text
            assert [(one, json.loads(arguments)) for _, one, arguments in found["calls"][:whole]] == CALLS[:whole], text
            assert (content or "").startswith(found["content"]), text


@pytest.mark.parametrize("name", FORMATS)
def test_whole_outputs(name: str) -> None:
    output = render(FORMATS[name], MESSAGE)
    check_whole(FORMATS[name], output, some(output, 20))


@pytest.mark.parametrize("name", FORMATS)
def test_streams(name: str) -> None:
    output = render(FORMATS[name], MESSAGE)
    check_streams(FORMATS[name], output, some(output, 12))


@pytest.mark.exhaustive
@pytest.mark.parametrize("check", [check_whole, check_streams])
@pytest.mark.parametrize("name", FORMATS)
def test_every_cut(name: str, check: Callable[[Format, str, Sequence[int]], None]) -> None:
    output = render(FORMATS[name], MESSAGE)
    check(FORMATS[name], output, range(1, len(output)))


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "deepseek_v32", "kimi_k2", "minimax_m2", "seed_oss"])
def test_a_cut_opener_is_content_of_a_stream(name: str) -> None:
    """Nothing was sent of it, so nothing vanishes."""
    fmt = FORMATS[name]
    output = render(fmt, MESSAGE)
    at = output.index("get_weather")
    for end in some(output[:at], 12):
        found = streamed(parser_class(fmt)(None, TOOLS), output[:end], CHAT)
        assert found == {"reasoning": "", "content": output[:end], "calls": []}


@pytest.mark.parametrize("config", CONFIGS)
def test_configs(config: str) -> None:
    fmt = {"hermes": FORMATS["hermes"], "qwen_coder": FORMATS["qwen3_coder"]}[config]
    output = render(fmt, MESSAGE)

    def engine() -> ParserEngine:
        return ParserEngine(Tokenizer(), TOOLS, parser_engine_config=CONFIGS[config])

    for end in some(output, 60):
        text = output[:end]
        _, content, calls = engine().parse(text, CHAT)
        assert calls_of(calls) == CALLS[: len(calls or ())], text
        assert content or calls, text
        found = engine().extract_tool_calls(text, CHAT)
        assert (found.tools_called, found.content) == (bool(calls), content)
        for request in HIDING.values():
            assert same(streamed(engine(), text, request), content, calls_of(calls)), text


def test_the_whole_message_of_a_cut_output() -> None:
    both = ParserManager.get_parser("hermes", "qwen3")(Tokenizer(), TOOLS)
    first = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
    cut = '\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "New'
    reasoning, content, calls = both.parse(f"<think>\nHm.\n</think>\n\nLook.\n{first}{cut}", CHAT)
    assert (reasoning, content, calls_of(calls)) == ("Hm.", f"Look.{cut}", CALLS[:1])
    half = ToolParserManager.get_tool_parser("hermes")(Tokenizer(), TOOLS)
    found = half.extract_tool_calls(cut, SimpleNamespace(tools=TOOLS))
    assert (found.tools_called, found.tool_calls, found.content) == (False, [], cut)


def test_a_cut_call_in_reasoning_takes_no_whole_one_with_it() -> None:
    first = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
    cut = '\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "New'
    for end in (0, *range(len("\n<tool_call>"), len(cut) + 1)):
        text = f"<think>\nHm.\n{first}{cut[:end]}"
        both = ParserManager.get_parser("hermes", "qwen3")
        reasoning, content, calls = both(Tokenizer(), TOOLS).parse(text, CHAT)
        assert (reasoning, (content or "").strip(), calls_of(calls)) == ("Hm.", cut[:end].strip(), CALLS[:1]), text
        found = streamed(both(Tokenizer(), TOOLS), text, CHAT)
        assert found["reasoning"] == "Hm."
        assert same(found, content, calls_of(calls)), text
