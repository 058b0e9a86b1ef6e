"""Putting deltas together: into a whole message, or into one delta."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, final

from ..messages import (
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
REASONS: Final = {
    "completed": "stop",
    "incomplete": "length",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "STOP": "stop",
    "MAX_TOKENS": "length",
}
"""Finish reason of another API → that of Chat Completions."""

__all__ = ["REASONS", "assemble", "finish_reason_of", "merge_deltas", "merge_tool_calls"]


def assemble(deltas: Iterable[DeltaMessage], finish_reason: str | None = "stop") -> ParsedOutput:
    """Return the message that the deltas of one output add up to.

    Deltas do not carry the statuses of calls, diagnostics or spans; :meth:`Stream.result` returns those as well.

    Args:
        deltas: all deltas of the output, in order.
        finish_reason: the engine's.
    """
    collected = Collected()
    collected.add(deltas)
    return collected.message(finish_reason)


class _Call:
    """The parts of one call so far."""

    __slots__ = ("arguments", "id", "name")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []


@final
class Collected:
    """The texts of an output's deltas so far. The deltas themselves are ten times as large."""

    __slots__ = ("_calls", "_kind", "_parts", "_pieces")

    def __init__(self) -> None:
        self._parts: list[tuple[ItemType, list[str]] | _Call] = []
        self._calls: dict[int, _Call] = {}
        self._kind: ItemType | None = None
        """Kind of the last part, if that is a text."""
        self._pieces: list[str] = []
        """The pieces of that text."""

    def add(self, deltas: Iterable[DeltaMessage]) -> None:
        """Take the next deltas of the output."""
        for delta in deltas:
            text = delta.reasoning
            if text:
                if self._kind is not _REASONING:
                    self._begin(_REASONING)
                self._pieces.append(text)
            text = delta.content
            if text:
                if self._kind is not _CONTENT:
                    self._begin(_CONTENT)
                self._pieces.append(text)
            for piece in delta.tool_calls or ():
                call = self._calls.get(piece.index)
                if call is None:
                    call = self._calls[piece.index] = _Call()
                    self._parts.append(call)
                    self._kind = None
                if piece.id and not call.id:
                    call.id = piece.id
                function = piece.function
                if function is not None:
                    if function.name and not call.name:
                        call.name = function.name
                    if function.arguments:
                        call.arguments.append(function.arguments)

    def _begin(self, kind: ItemType) -> None:
        self._kind = kind
        self._pieces = []
        self._parts.append((kind, self._pieces))

    def message(self, finish_reason: str | None = "stop") -> ParsedOutput:
        """Return the message so far, a new one in each call. ``finish_reason``: the engine's."""
        items: list[Item] = []
        texts: dict[ItemType, list[str]] = {_REASONING: [], _CONTENT: []}
        calls: list[ToolCall] = []
        for part in self._parts:
            if isinstance(part, _Call):
                function = FunctionCall(name=part.name, arguments="".join(part.arguments))
                calls.append(ToolCall(id=part.id, function=function))
                items.append(Item(type="tool_call", call=calls[-1]))
            else:
                kind, pieces = part
                text = "".join(pieces)
                texts[kind].append(text)
                items.append(Item(type=kind, text=text))
        return ParsedOutput(
            reasoning="".join(texts[_REASONING]) or None,
            content="".join(texts[_CONTENT]) or None,
            tool_calls=calls,
            tools_called=bool(calls),
            finish_reason=finish_reason_of(finish_reason, bool(calls)),
            items=items,
        )


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
