"""A server's two request handlers around `OutputParser`, as vLLM's interface is documented: they run unchanged."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from untemplate import OutputParser
from untemplate.messages import ChatCompletionRequest, DeltaMessage
from untemplate.vllm_api import FormatToolParser, make_parser_request

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("get_weather", "search")
]
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
PARIS = ("get_weather", '{"city": "Paris"}')
QWEN = ("qwen3", "hermes")

OUTPUTS: dict[str, tuple[tuple[str | None, str | None], str, dict[str, Any]]] = {
    # name: (reasoning parser, tool parser), output, the parts of its message
    "reasoning": (QWEN, "<think>\nWhy?\n</think>\n\nBecause.", {"reasoning": "Why?", "content": "Because."}),
    "call": (QWEN, CALL, {"calls": [PARIS]}),
    "content and call": (QWEN, "Let me look.\n" + CALL, {"content": "Let me look.", "calls": [PARIS]}),
    "all three": (
        QWEN,
        f"<think>\nWhy?\n</think>\n\nLet me look.\n{CALL}\n{CALL}",
        {"reasoning": "Why?", "content": "Let me look.", "calls": [PARIS, PARIS]},
    ),
    "plain": (QWEN, "Words,  with spaces \n\n and lines.", {"content": "Words,  with spaces \n\n and lines."}),
    "a tail that begins like a marker": (QWEN, "a < b, and <tool", {"content": "a < b, and <tool"}),
    "cut reasoning": (QWEN, "<think>\nWhy? Well", {"reasoning": "Why? Well"}),
    "cut call": (QWEN, CALL[:59], {"calls": [("get_weather", '{"city": "')]}),
    "no parser": ((None, None), "a  b <think>c</think>", {"content": "a  b <think>c</think>"}),
    "reasoning from the start": (
        ("deepseek_r1", None),
        "Why?\n</think>\n\nBecause.",
        {"reasoning": "Why?", "content": "Because."},
    ),
    "tagged": (
        (None, "qwen3_coder"),
        "Look:\n<tool_call>\n<function=search>\n<parameter=q>\na b\n</parameter>\n</function>\n</tool_call>",
        {"content": "Look:", "calls": [("search", '{"q": "a b"}')]},
    ),
    "mistral": (
        (None, "mistral"),
        '[TOOL_CALLS][{"name": "search", "arguments": {"q": 1}}]',
        {"calls": [("search", '{"q": 1}')]},
    ),
    "held to the end": (
        (None, "llama3_json"),
        '{"name": "nothing", "parameters": {"q": 1}}',
        {"content": '{"name": "nothing", "parameters": {"q": 1}}'},
    ),
}  # fmt: skip
CUT = "cut call"
"""Its call is passed on as far as it was written, and is not one to run."""
UNFINISHED = {"a tail that begins like a marker", "held to the end"}
"""Streams that miss their end: the handler has no call at which the parser could send what it buffers."""


def parts(reasoning: str | None, content: str | None, calls: list[tuple[str, str]]) -> dict[str, Any]:
    found = {"reasoning": reasoning, "content": content, "calls": calls}
    return {name: value for name, value in found.items() if value}


@pytest.mark.parametrize("name", OUTPUTS)
def test_whole(name: str) -> None:
    names, output, expected = OUTPUTS[name]
    parser = OutputParser(None, *names)
    parsed = parser.parse(model_output=output, request=make_parser_request("m", [], TOOLS), finish_reason="stop")
    message: dict[str, Any] = {"role": "assistant", "content": parsed.content}
    if parsed.reasoning_content is not None:
        message["reasoning_content"] = parsed.reasoning_content
    assert parsed.tools_called == (bool(expected.get("calls")) and name != CUT)
    if parsed.tools_called or name == CUT:
        message["tool_calls"] = [
            {
                "id": tc.id,
                "type": "function",
                "function": {"name": tc.function.name, "arguments": tc.function.arguments},
            }
            for tc in parsed.tool_calls
        ]
        message["content"] = parsed.content
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls", ())]
    assert parts(message.get("reasoning_content"), message["content"], calls) == expected
    assert parsed.finish_reason == ("tool_calls" if calls and name != CUT else "stop")


async def generate(output: str, size: int) -> Any:
    for end in range(size, len(output) + size, size):
        text = output[:end]
        one = SimpleNamespace(text=text, token_ids=list(range(len(text))), finish_reason="stop")
        yield SimpleNamespace(outputs=[one], finished=end >= len(output))


async def handler(parser: OutputParser, request: Any, engine: Any) -> Any:
    """Stream one output as chunks."""
    previous_text = ""
    previous_token_ids: list[int] = []
    async for output in engine:
        current_text = output.outputs[0].text
        current_token_ids = list(output.outputs[0].token_ids)
        delta_text = current_text[len(previous_text) :]
        delta_token_ids = current_token_ids[len(previous_token_ids) :]
        is_finished = output.finished
        if delta_text or is_finished:
            delta_msg = parser.parse_streaming(
                previous_text=previous_text,
                current_text=current_text,
                delta_text=delta_text,
                previous_token_ids=previous_token_ids,
                current_token_ids=current_token_ids,
                delta_token_ids=delta_token_ids,
                request=request,
            )
            chunk_delta: dict[str, Any] = {"role": "assistant"}
            if delta_msg is not None:
                if delta_msg.reasoning_content is not None:
                    chunk_delta["reasoning_content"] = delta_msg.reasoning_content
                if delta_msg.content is not None:
                    chunk_delta["content"] = delta_msg.content
                if delta_msg.tool_calls:
                    chunk_delta["tool_calls"] = [tc.model_dump() for tc in delta_msg.tool_calls]
            else:
                chunk_delta["content"] = delta_text
            finish_reason = None
            if is_finished:
                finish_reason = output.outputs[0].finish_reason or "stop"
                if parser.has_tools:
                    full_parsed = parser.parse(current_text, request)
                    if full_parsed.tools_called:
                        finish_reason = "tool_calls"
            yield {"delta": chunk_delta, "finish_reason": finish_reason}
        previous_text = current_text
        previous_token_ids = current_token_ids


async def finishing_handler(parser: OutputParser, request: Any, engine: Any) -> Any:
    """The same handler with one line more: what the parser still holds is part of the last chunk but one."""
    reason = None
    async for chunk in handler(parser, request, engine):
        reason = chunk["finish_reason"] or reason
        yield {**chunk, "finish_reason": None}
    rest = parser.finish_streaming(reason)
    if rest is not None:
        yield {"delta": rest.model_dump(exclude_none=True), "finish_reason": None}
    yield {"delta": {}, "finish_reason": reason}


async def collected(chunks: Any) -> tuple[dict[str, Any], str | None]:
    texts = {"reasoning_content": "", "content": ""}
    calls: list[list[str]] = []
    reason = None
    async for chunk in chunks:
        for field in texts:
            texts[field] += chunk["delta"].get(field, "")
        for call in chunk["delta"].get("tool_calls", ()):
            function = call["function"]
            if function.get("name") is not None:
                calls.append([function["name"], ""])
            calls[-1][1] += function["arguments"] or ""
        reason = chunk["finish_reason"]
    return parts(texts["reasoning_content"], texts["content"], [(name, text) for name, text in calls]), reason


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize("name", OUTPUTS)
def test_streamed(name: str, size: int) -> None:
    names, output, expected = OUTPUTS[name]
    parser = OutputParser(None, *names)
    request = make_parser_request("m", [], TOOLS)
    found, reason = asyncio.run(collected(handler(parser, request, generate(output, size))))
    if name in UNFINISHED:
        for field, value in found.items():
            assert str(expected[field]).startswith(str(value).rstrip("')]"))
    else:
        assert found == expected
    assert reason == ("tool_calls" if "calls" in expected and name != CUT else "stop")
    rest = parser.finish_streaming()
    assert (rest is None) == (name not in UNFINISHED or found == expected)


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize("name", OUTPUTS)
def test_streamed_to_its_end(name: str, size: int) -> None:
    names, output, expected = OUTPUTS[name]
    parser = OutputParser(None, *names)
    request = make_parser_request("m", [], TOOLS)
    found, reason = asyncio.run(collected(finishing_handler(parser, request, generate(output, size))))
    assert found == expected
    assert reason == ("tool_calls" if "calls" in expected and name != CUT else "stop")


def test_halves_belong_to_their_parser() -> None:
    parser = OutputParser(None, "qwen3", "hermes")
    assert parser.tool_parser is parser.tool_parser
    assert isinstance(parser.tool_parser, FormatToolParser)
    request = parser.tool_parser.adjust_request(ChatCompletionRequest(messages=[]))
    assert request.skip_special_tokens is False


def test_halves_can_be_set() -> None:
    parser = OutputParser(None, "qwen3", "hermes")
    parser.tool_parser = None
    assert (parser.has_reasoning, parser.has_tools) == (True, False)
    parsed = parser.parse(f"<think>\na\n</think>\n\n{CALL}")
    assert (parsed.reasoning, parsed.content, parsed.tools_called) == ("a", CALL, False)
    other = OutputParser(None, None, "qwen3_coder")
    parser.tool_parser = other.tool_parser
    output = OUTPUTS["tagged"][1]
    parsed = parser.parse(f"<think>\na\n</think>\n\n{output}")
    assert (parsed.reasoning, parsed.content) == ("a", "Look:")
    assert [call.function.arguments for call in parsed.tool_calls] == ['{"q": "a b"}']
    parser.reasoning_parser = parser.tool_parser = None
    assert parser.parse_streaming("", "a ", "a ") is None


def test_a_fresh_half_reads_what_came_before() -> None:
    parser = OutputParser(None, "qwen3", "hermes")
    half = parser.reasoning_parser
    assert half is not None
    delta = half.extract_reasoning_streaming("<think>\na", "<think>\nab", "b", [], [], [])
    assert delta == DeltaMessage(reasoning="b")
    # The same half on another output.
    delta = half.extract_reasoning_streaming("<think>\na</think>x", "<think>\na</think>xy", "y", [], [], [])
    assert delta == DeltaMessage(content="y")
    tools = parser.tool_parser
    assert tools is not None
    delta = tools.extract_tool_calls_streaming(CALL[:-20], CALL, CALL[-20:], [], [], [], None)
    assert delta is not None
    assert delta.tool_calls is not None
    assert delta.tool_calls[0].function is not None
    assert delta.tool_calls[0].function.name is None
