"""Runs two half parsers as one: reasoning first, then calls in the remaining content.

* The content of the reasoning parser is the whole input of the tool parser: its texts and ids begin where content
  begins. So both halves are right about a part that ends reasoning and begins a call.
* The halves may come from any library. As they expect, each call passes all that came before. What they still buffer at
  the end is requested, or taken from a parse of the whole content.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._internal.backends.requests import takes_calls
from .._internal.deltas import merge_deltas
from ..messages import (
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    ExtractedToolCallInformation,
    FunctionCall,
    ToolCall,
)
from ._requests import delta_of, extracted_of

__all__ = ["StreamState", "remainder", "run", "run_whole"]


@dataclass
class StreamState:
    """The state of a stream, for ``Parser.parse_delta``."""

    reasoning_ended: bool = False
    prompt_reasoning_checked: bool = False
    skips_reasoning: bool = False
    """The prompt has closed reasoning already: the reasoning parser is not called."""
    finished: bool = False
    previous_text: str = ""
    """The text given to the reasoning parser so far."""
    previous_token_ids: list[int] = field(default_factory=list)
    content_text: str = ""
    """The text given to the tool parser so far."""
    content_token_ids: list[int] = field(default_factory=list)
    sent: list[DeltaMessage] = field(default_factory=list)
    """The results of the tool parser so far."""
    tool_call_id_type: str = "random"
    history_tool_call_cnt: int = 0
    """Number of calls in the history, for ids that count them."""


def run_whole(
    parser: Any, text: str, request: Any, skips_reasoning: bool = False
) -> tuple[str | None, str | None, list[FunctionCall] | None]:
    """Parse a whole output with the parser's methods for whole outputs. ``skips_reasoning``: as in `StreamState`."""
    reasoning, content = (None, text) if skips_reasoning else parser.extract_reasoning(text, request)
    if not content or not takes_calls(request):
        return reasoning or None, content or None, None
    found = extracted_of(parser.extract_tool_calls(content, request))
    calls = [with_id(call) for call in found.tool_calls] if found.tools_called else None
    return reasoning or None, found.content or None, calls or None


def with_id(call: ToolCall) -> FunctionCall:
    """Return a call without its ToolCall, for ``Parser.parse``."""
    return FunctionCall(name=call.function.name, arguments=call.function.arguments, id=call.id)


def run(
    parser: Any,
    state: StreamState,
    text: str,
    ids: list[int],
    request: Any,
    prompt_ids: Sequence[int] | None,
    finished: bool,
) -> DeltaMessage | None:
    """Parse one part of an output."""
    if state.finished:
        raise RuntimeError("parse_delta() after finished=True: a parser serves one output; make another")
    if prompt_ids is not None and not state.prompt_reasoning_checked:
        state.prompt_reasoning_checked = True
        state.skips_reasoning = state.reasoning_ended = parser._closed_by_prompt(prompt_ids)
    deltas = []
    if text or ids:
        deltas += _piece(parser, state, text, ids, request)
    if finished:
        state.finished = True
        deltas += _finish(parser, state, request)
    return merge_deltas(deltas)


def _piece(parser: Any, state: StreamState, text: str, ids: list[int], request: Any) -> list[DeltaMessage]:
    if state.skips_reasoning or not parser._has_reasoning:
        return _content(parser, state, text, ids, request)
    current = state.previous_text + text
    current_ids = state.previous_token_ids + ids
    found = delta_of(
        parser.extract_reasoning_streaming(
            state.previous_text, current, text, state.previous_token_ids, current_ids, ids
        )
    )
    state.previous_text = current
    state.previous_token_ids = current_ids
    if found is None:
        found = DeltaMessage()
    content_ids = ids if state.reasoning_ended else []
    if not state.reasoning_ended:
        ends = bool(ids) and parser.is_reasoning_end_streaming(current_ids, ids)
        if found.content or (ends and (parser._trusts_ids or not found.reasoning)):
            state.reasoning_ended = True
            content_ids = list(parser.extract_content_ids(current_ids)) if ends or found.reasoning else ids
    deltas = []
    if found.reasoning or found.tool_calls:
        deltas.append(DeltaMessage(reasoning=found.reasoning, tool_calls=found.tool_calls))
    return deltas + _content(parser, state, found.content or "", content_ids, request)


def _content(parser: Any, state: StreamState, text: str, ids: list[int], request: Any) -> list[DeltaMessage]:
    if not parser._has_tools or not takes_calls(request):
        return [DeltaMessage(content=text)] if text else []
    if not text and not ids:
        return []
    current = state.content_text + text
    current_ids = state.content_token_ids + ids
    found = delta_of(
        parser.extract_tool_calls_streaming(
            state.content_text, current, text, state.content_token_ids, current_ids, ids, request
        )
    )
    state.content_text = current
    state.content_token_ids = current_ids
    if found is None:
        return []
    if parser._reconciles:
        state.sent.append(found)
    return [found]


def _finish(parser: Any, state: StreamState, request: Any) -> list[DeltaMessage]:
    deltas = []
    rest = None if state.skips_reasoning else delta_of(parser._finish_reasoning())
    if rest is not None:
        if rest.reasoning:
            deltas.append(DeltaMessage(reasoning=rest.reasoning))
        deltas += _content(parser, state, rest.content or "", [], request)
    if parser._has_tools and takes_calls(request) and (state.content_text or state.content_token_ids):
        rest = delta_of(parser._finish_tools(request))
        if rest is not None:
            deltas.append(rest)
    if parser._has_reasoning and not state.reasoning_ended:
        promoted = parser.get_streaming_fallback_content(state.previous_text, request)
        if promoted:
            deltas.append(DeltaMessage(content=promoted))
    return deltas


def remainder(sent: Iterable[DeltaMessage], whole: ExtractedToolCallInformation) -> DeltaMessage | None:
    """Return what a parse of the whole content found and the stream has not sent.

    Return ``None`` if nothing is missing, or if the two differ in what was sent, which cannot be retracted.
    """
    merged = merge_deltas(list(sent)) or DeltaMessage()
    content = merged.content or ""
    expected = whole.content or ""
    calls = sorted(merged.tool_calls or (), key=lambda call: call.index)
    if not expected.startswith(content) or len(calls) > len(whole.tool_calls):
        return None
    missing: list[DeltaToolCall] = []
    for index, call in enumerate(whole.tool_calls):
        function = call.function
        if index >= len(calls):
            made = DeltaFunctionCall(name=function.name, arguments=function.arguments)
            missing.append(DeltaToolCall(index=index, id=call.id, type="function", function=made))
            continue
        said = calls[index].function or DeltaFunctionCall()
        arguments = said.arguments or ""
        if said.name != function.name or not function.arguments.startswith(arguments):
            return None
        if len(arguments) < len(function.arguments):
            rest = DeltaFunctionCall(arguments=function.arguments[len(arguments) :])
            missing.append(DeltaToolCall(index=index, function=rest))
    return delta_of(DeltaMessage(content=expected[len(content) :], tool_calls=missing))
