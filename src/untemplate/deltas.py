"""Putting deltas together: into a whole message, or into one delta."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from .messages import (
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    FunctionCall,
    Item,
    ItemType,
    ParsedOutput,
    ToolCall,
)

_REASONING: Final[ItemType] = "reasoning"
_CONTENT: Final[ItemType] = "content"

__all__ = ["assemble", "finish_reason_of", "merge_deltas", "merge_tool_calls"]


def assemble(deltas: Iterable[DeltaMessage], finish_reason: str | None = "stop") -> ParsedOutput:
    """Return the message that the deltas of one output add up to.

    Deltas do not carry the statuses of calls, diagnostics or spans; :meth:`Stream.result` returns those as well.

    Args:
        deltas: all deltas of the output, in order.
        finish_reason: the engine's.
    """
    items: list[Item] = []
    reasoning: list[str] = []
    content: list[str] = []
    calls: dict[int, ToolCall] = {}
    arguments: dict[int, list[str]] = {}
    item: list[str] = []
    """The pieces of the last item, where that is a text."""
    kind: ItemType | None = None
    for delta in deltas:
        for text, type_, whole in ((delta.reasoning, _REASONING, reasoning), (delta.content, _CONTENT, content)):
            if text:
                if type_ != kind:
                    _end_text(items, item)
                    items.append(Item(type=type_))
                    item, kind = [], type_
                item.append(text)
                whole.append(text)
        for piece in delta.tool_calls or ():
            call = calls.get(piece.index)
            if call is None:
                _end_text(items, item)
                item, kind = [], None
                call = calls[piece.index] = ToolCall(id="", function=FunctionCall(name="", arguments=""))
                arguments[piece.index] = []
                items.append(Item(type="tool_call", call=call))
            _add_to_call(call, piece, arguments[piece.index])
    _end_text(items, item)
    for index, pieces in arguments.items():
        calls[index].function.arguments = "".join(pieces)
    return ParsedOutput(
        reasoning="".join(reasoning) or None,
        content="".join(content) or None,
        tool_calls=list(calls.values()),
        tools_called=bool(calls),
        finish_reason=finish_reason_of(finish_reason, bool(calls)),
        items=items,
    )


def _add_to_call(call: ToolCall, piece: DeltaToolCall, arguments: list[str]) -> None:
    call.id = call.id or piece.id or ""
    function = piece.function
    if function is not None:
        call.function.name = call.function.name or function.name or ""
        if function.arguments:
            arguments.append(function.arguments)


def _end_text(items: list[Item], pieces: list[str]) -> None:
    if pieces:
        items[-1].text = "".join(pieces)


def finish_reason_of(finish_reason: str | None, has_calls: bool) -> str:
    """Return the engine's finish reason, with ``tool_calls`` in place of ``stop`` where there are calls."""
    reason = finish_reason or "stop"
    return "tool_calls" if reason == "stop" and has_calls else reason


def merge_deltas(deltas: Sequence[DeltaMessage]) -> DeltaMessage | None:
    """Return one delta with all that these add; ``None`` if that is nothing.

    The order between reasoning, content and calls is lost.
    """
    if len(deltas) == 1 and len(deltas[0].tool_calls or ()) < 2:
        return deltas[0]
    calls = merge_tool_calls(call for delta in deltas for call in delta.tool_calls or ())
    content = "".join(delta.content or "" for delta in deltas)
    reasoning = "".join(delta.reasoning or "" for delta in deltas)
    if not (calls or content or reasoning):
        return None
    return DeltaMessage(content=content or None, reasoning=reasoning or None, tool_calls=calls or None)


def merge_tool_calls(deltas: Iterable[DeltaToolCall]) -> list[DeltaToolCall]:
    """Return one delta per call, in the order in which the calls first appear."""
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
