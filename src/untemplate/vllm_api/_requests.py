"""Requests and parser results of any make: dicts, pydantic models, structs, dataclasses, plain objects.

Rules of this module:

* What comes from outside is read by name, never by type.
* A request is never changed: who adjusts one gets a copy of the same type.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from ..messages import (
    ChatCompletionRequest,
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    ExtractedToolCallInformation,
    FunctionCall,
    ToolCall,
)

__all__ = [
    "adjusted",
    "coalesced",
    "count_calls",
    "delta_of",
    "extracted_of",
    "get",
    "joined",
    "make_parser_request",
    "takes_calls",
]

_R = TypeVar("_R")


def get(part: Any, name: str) -> Any:
    """A field of an object or a mapping; ``None`` where it is missing."""
    return part.get(name) if isinstance(part, Mapping) else getattr(part, name, None)


def takes_calls(request: Any) -> bool:
    """Whether the request can have calls: not with ``tool_choice="none"``, nor with an empty list of tools."""
    if request is None:
        return True
    tools = get(request, "tools")
    return get(request, "tool_choice") != "none" and (tools is None or len(tools) > 0)


def count_calls(messages: Iterable[Any] | None) -> int:
    """How many calls the history holds; Kimi K2 numbers its calls on from them."""
    return sum(len(get(message, "tool_calls") or ()) for message in messages or ())


def make_parser_request(
    model: str, messages: Sequence[Any], tools: Sequence[Any] | None = None, tool_choice: Any = "auto"
) -> ChatCompletionRequest:
    """The least that a parser wants to know of a request. Without tools its ``tool_choice`` is ``"none"``."""
    return ChatCompletionRequest(
        model=model,
        messages=list(messages),
        tools=None if tools is None else list(tools),
        tool_choice=tool_choice if tools else "none",
    )


def adjusted(request: _R, **changes: Any) -> _R:
    """A copy of the request, of the same type, with the changes; parts that do not change are shared.

    Raises:
        TypeError: the request has no place for a field.
    """
    if request is None:
        return request
    if isinstance(request, Mapping):
        if not hasattr(request, "__setitem__"):
            return type(request)({**request, **changes})  # type: ignore[call-arg]
        result: Any = copy.copy(request)
        for name, value in changes.items():
            result[name] = value
        return result  # type: ignore[no-any-return]
    if isinstance(request, tuple) and hasattr(request, "_replace"):
        return request._replace(**changes)  # type: ignore[no-any-return]
    model_copy = getattr(request, "model_copy", None)
    if callable(model_copy):
        # pydantic: frozen models and validators on assignment are no hindrance.
        return model_copy(update=changes)  # type: ignore[no-any-return]
    result = copy.copy(request)
    for name, value in changes.items():
        try:
            setattr(result, name, value)
        except AttributeError as error:
            _force(result, name, value, error)
    return result  # type: ignore[no-any-return]


def _force(part: Any, name: str, value: Any, error: AttributeError) -> None:
    """Sets a field of a frozen copy."""
    if hasattr(part, name):
        set_field = msgspec.structs.force_setattr if isinstance(part, msgspec.Struct) else object.__setattr__
        try:
            set_field(part, name, value)
            return
        except (AttributeError, TypeError):
            pass
    raise TypeError(f"{type(part).__name__} has no field {name!r} that can be set") from error


# -- Results of parsers -------------------------------------------------------------------------------------------


def delta_of(found: Any) -> DeltaMessage | None:
    """A delta of any make as ours; ``None`` if it says nothing."""
    if found is None:
        return None
    if isinstance(found, DeltaMessage):
        delta = found
    else:
        reasoning = get(found, "reasoning")
        delta = DeltaMessage(
            content=get(found, "content"),
            reasoning=get(found, "reasoning_content") if reasoning is None else reasoning,
            tool_calls=[_delta_call(call) for call in get(found, "tool_calls") or ()],
        )
    delta = DeltaMessage(
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


def coalesced(deltas: Iterable[DeltaToolCall]) -> list[DeltaToolCall]:
    """One delta per call, in the order of their first."""
    merged: dict[int, DeltaToolCall] = {}
    arguments: dict[int, list[str]] = {}
    for delta in deltas:
        call = merged.setdefault(delta.index, DeltaToolCall(index=delta.index))
        call.id = call.id or delta.id
        call.type = call.type or delta.type
        if delta.function is not None:
            function = call.function = call.function or DeltaFunctionCall()
            function.name = function.name or delta.function.name
            if delta.function.arguments:
                arguments.setdefault(delta.index, []).append(delta.function.arguments)
    for index, parts in arguments.items():
        made = merged[index].function
        assert made is not None
        made.arguments = "".join(parts)
    return list(merged.values())


def joined(deltas: Sequence[DeltaMessage]) -> DeltaMessage | None:
    """Deltas as one: all of their texts, but not the order between reasoning, content and calls."""
    if len(deltas) == 1 and len(deltas[0].tool_calls or ()) < 2:
        return deltas[0]
    calls = coalesced(call for delta in deltas for call in delta.tool_calls or ())
    content = "".join(delta.content or "" for delta in deltas)
    reasoning = "".join(delta.reasoning or "" for delta in deltas)
    if not (calls or content or reasoning):
        return None
    return DeltaMessage(content=content or None, reasoning=reasoning or None, tool_calls=calls or None)


def extracted_of(found: Any) -> ExtractedToolCallInformation:
    """What any tool parser has found, as ours."""
    if isinstance(found, ExtractedToolCallInformation):
        return found
    calls = [_call(call) for call in get(found, "tool_calls") or ()]
    return ExtractedToolCallInformation(tools_called=bool(calls), tool_calls=calls, content=get(found, "content"))


def _call(call: Any) -> ToolCall:
    function = get(call, "function")
    made = FunctionCall(name=get(function, "name") or "", arguments=get(function, "arguments") or "")
    return ToolCall(id=get(call, "id") or "", function=made)
