"""Deltas and results of other parsers, read by field name whatever their type, and the smallest request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from .. import messages
from .._internal.backends.requests import get
from ..messages import (
    ChatCompletionRequest,
    DeltaFunctionCall,
    DeltaToolCall,
    ExtractedToolCallInformation,
    FunctionCall,
    ToolCall,
)

__all__ = [
    "DeltaMessage",
    "delta_of",
    "extracted_of",
    "hides_cuts",
    "make_parser_request",
]


def make_parser_request(
    model: str, messages: Sequence[Any], tools: Sequence[Any] | None = None, tool_choice: Any = "auto"
) -> ChatCompletionRequest:
    """Return a request with the fields that a parser reads. Without tools its ``tool_choice`` is ``"none"``."""
    return ChatCompletionRequest(
        model=model,
        messages=list(messages),
        tools=None if tools is None else list(tools),
        tool_choice=tool_choice if tools else "none",
    )


def hides_cuts(request: Any) -> bool:
    """True if the end of a stream would not show that a call was cut.

    vLLM's finish reason of a call that a stop string has cut is ``tool_calls``. In the Responses API (``input``) vLLM
    marks each call as completed. Only texts and lists count: an object may have any attribute.
    """
    stops = (get(request, "stop"), get(request, "stop_token_ids"))
    return any(map(_is_given, stops)) or isinstance(get(request, "input"), (str, list, tuple))


def _is_given(value: object) -> bool:
    return isinstance(value, (str, list, tuple)) and len(value) > 0


class DeltaMessage(messages.DeltaMessage, metaclass=messages.OldNames, gc=False):
    """A delta of code written for vLLM: ``reasoning_content`` may be given, and ``tool_calls`` always has a length."""

    tool_calls: list[DeltaToolCall] | None = msgspec.field(default_factory=list)


# -- Results of parsers -------------------------------------------------------------------------------------------


def delta_of(found: Any) -> messages.DeltaMessage | None:
    """Convert a delta of any type; ``None`` if it is empty."""
    if found is None:
        return None
    if isinstance(found, messages.DeltaMessage):
        delta = found
    else:
        reasoning = get(found, "reasoning")
        delta = messages.DeltaMessage(
            content=get(found, "content"),
            reasoning=get(found, "reasoning_content") if reasoning is None else reasoning,
            tool_calls=[_delta_call(call) for call in get(found, "tool_calls") or ()],
        )
    delta = messages.DeltaMessage(
        role=delta.role,
        content=delta.content or None,
        reasoning=delta.reasoning or None,
        tool_calls=delta.tool_calls or None,
    )
    return delta if delta.content or delta.reasoning or delta.tool_calls else None


def _delta_call(call: Any) -> DeltaToolCall:
    function = get(call, "function")
    return DeltaToolCall(
        index=get(call, "index") or 0,
        id=get(call, "id"),
        type=get(call, "type"),
        function=None
        if function is None
        else DeltaFunctionCall(name=get(function, "name"), arguments=get(function, "arguments")),
    )


def extracted_of(found: Any) -> ExtractedToolCallInformation:
    """Convert the result of any tool parser."""
    if isinstance(found, ExtractedToolCallInformation):
        return found
    calls = [_call(call) for call in get(found, "tool_calls") or ()]
    return ExtractedToolCallInformation(tools_called=bool(calls), tool_calls=calls, content=get(found, "content"))


def _call(call: Any) -> ToolCall:
    function = get(call, "function")
    made = FunctionCall(name=get(function, "name") or "", arguments=get(function, "arguments") or "")
    return ToolCall(id=get(call, "id") or "", function=made)
