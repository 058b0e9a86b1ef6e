"""The events of the machine, and who receives them.

* An EventReceiver gets what the machine finds, in order, once. It returns nothing.
* DeltaBuilder builds deltas directly. EventCollector makes event objects, for those who subscribe to them.
* The events of a call inside reasoning go to a CallRecorder first, and on to the receiver if the call is accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Any, ClassVar, Final, final

from ...messages import DeltaFunctionCall, DeltaMessage, DeltaToolCall
from ..record import dataclass_fields
from .call_state import CallState
from .growing import NO_TEXTS, grown
from .mypyc_compat import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class EventReceiver:
    """Receives the events of one output. Texts are not empty. Calls are numbered from 0 in the order of their begin."""

    def reasoning(self, text: str) -> None: ...

    def reasoning_start(self) -> None: ...

    def reasoning_end(self) -> None: ...

    def content(self, text: str) -> None: ...

    def call_start(self, index: int, call_id: str, name: str) -> None: ...

    def arguments(self, index: int, text: str) -> None: ...

    def call_end(self, index: int) -> None: ...

    def end(self, finish_reason: str | None) -> None:
        """End the output."""


def emit_call(receiver: EventReceiver, call: CallState, arguments: str) -> None:
    """Emit a whole call at once."""
    receiver.call_start(call.index, call.id, call.name)
    if arguments:
        receiver.arguments(call.index, arguments)
    if call.whole:
        receiver.call_end(call.index)


# Stages of a delta: its fields, in the order in which a client reads them.
_REASONING: Final = 1
_CONTENT: Final = 2
_CALLS: Final = 3
_NO_DELTAS: Final[list[DeltaMessage]] = []


@final
class DeltaBuilder(EventReceiver):
    """Builds as few DeltaMessages as possible: each holds reasoning, then content, then calls."""

    def __init__(self) -> None:
        self.deltas: list[DeltaMessage] = _NO_DELTAS
        """Those built since they were taken last; the last one may not be complete."""
        self._stage: int = 0
        """The kind of text that the last delta got last."""
        self.parts: list[str] = NO_TEXTS
        """Text of that kind that is not in the last delta yet."""

    def take(self) -> list[DeltaMessage]:
        """Return the deltas built since the last call."""
        deltas = self.deltas
        if deltas:
            if self.parts:
                self._close_parts()
            self.deltas = _NO_DELTAS
            return deltas
        return []

    # The first text of a delta is put into it at once: most deltas have no other.

    def reasoning(self, text: str) -> None:
        if not self.deltas:
            self.deltas = [DeltaMessage(reasoning=text)]
            self._stage = _REASONING
            return
        if self._stage != _REASONING:
            self._enter(_REASONING)
        self.parts = grown(self.parts, text)

    def content(self, text: str) -> None:
        if not self.deltas:
            self.deltas = [DeltaMessage(content=text)]
            self._stage = _CONTENT
            return
        if self._stage != _CONTENT:
            self._enter(_CONTENT)
        self.parts = grown(self.parts, text)

    def call_start(self, index: int, call_id: str, name: str) -> None:
        self._enter(_CALLS)
        call = DeltaToolCall(index=index, id=call_id, type="function", function=DeltaFunctionCall(name=name))
        self._add_call(call)

    def arguments(self, index: int, text: str) -> None:
        if not self.deltas:
            call = DeltaToolCall(index=index, function=DeltaFunctionCall(arguments=text))
            self.deltas = [DeltaMessage(tool_calls=[call])]
            self._stage = _CALLS
            return
        if self._stage != _CALLS:
            self._enter(_CALLS)
            self._add_call(DeltaToolCall(index=index, function=DeltaFunctionCall()))
        self.parts = grown(self.parts, text)

    def _add_call(self, call: DeltaToolCall) -> None:
        delta = self.deltas[-1]
        if delta.tool_calls is None:
            delta.tool_calls = [call]
        else:
            delta.tool_calls.append(call)

    def _enter(self, stage: int) -> None:
        """Begin the parts of this stage, in a new delta if the current one is past it."""
        if self.parts:
            self._close_parts()
        if not self.deltas or stage < self._stage:
            self.deltas = grown(self.deltas, DeltaMessage())
        self._stage = stage

    def _close_parts(self) -> None:
        """Put the parts of this stage into the delta."""
        text = "".join(self.parts)
        self.parts = NO_TEXTS
        delta = self.deltas[-1]
        if self._stage == _CONTENT:
            delta.content = (delta.content or "") + text
        elif self._stage == _REASONING:
            delta.reasoning = (delta.reasoning or "") + text
        else:
            calls = delta.tool_calls
            assert calls is not None
            function = calls[-1].function
            assert function is not None
            function.arguments = (function.arguments or "") + text


class EventType(Enum):
    """The kinds of a :class:`SemanticEvent`."""

    TEXT_CHUNK = auto()
    REASONING_START = auto()
    REASONING_CHUNK = auto()
    REASONING_END = auto()
    TOOL_CALL_START = auto()
    TOOL_NAME = auto()
    ARG_VALUE_CHUNK = auto()
    TOOL_CALL_END = auto()


FIELDS_OF_EVENT: Final[Any] = dataclass_fields("type", "value", "tool_index")


@final
class SemanticEvent:
    """One event of an output. ``value`` is its text, ``tool_index`` the call's number or -1."""

    __slots__ = ("tool_index", "type", "value")
    __dataclass_fields__: ClassVar[Any] = FIELDS_OF_EVENT
    """Parsers written for vLLM call ``dataclasses.replace``."""

    def __init__(self, type: EventType, value: str = "", tool_index: int = -1) -> None:
        self.type: EventType = type
        self.value: str = value
        self.tool_index: int = tool_index

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SemanticEvent):
            return NotImplemented
        return (self.type, self.value, self.tool_index) == (other.type, other.value, other.tool_index)

    def __hash__(self) -> int:
        return hash((self.type, self.value, self.tool_index))

    def __repr__(self) -> str:
        return f"SemanticEvent({self.type.name}, {self.value!r}, {self.tool_index})"


@final
class EventCollector(EventReceiver):
    """Passes SemanticEvents to its subscriber, or collects them."""

    def __init__(self, subscriber: Callable[[SemanticEvent], None] | None = None) -> None:
        self.events: list[SemanticEvent] = []
        self._subscriber: Callable[[SemanticEvent], None] | None = subscriber

    def take(self) -> list[SemanticEvent]:
        """Return the events collected since the last call."""
        events = self.events
        self.events = []
        return events

    def add(self, type: EventType, value: str, index: int) -> None:
        event = SemanticEvent(type, value, index)
        if self._subscriber is None:
            self.events.append(event)
        else:
            self._subscriber(event)

    def reasoning(self, text: str) -> None:
        self.add(EventType.REASONING_CHUNK, text, -1)

    def reasoning_start(self) -> None:
        self.add(EventType.REASONING_START, "", -1)

    def reasoning_end(self) -> None:
        self.add(EventType.REASONING_END, "", -1)

    def content(self, text: str) -> None:
        self.add(EventType.TEXT_CHUNK, text, -1)

    def call_start(self, index: int, call_id: str, name: str) -> None:
        self.add(EventType.TOOL_CALL_START, "", index)
        self.add(EventType.TOOL_NAME, name, index)

    def arguments(self, index: int, text: str) -> None:
        self.add(EventType.ARG_VALUE_CHUNK, text, index)

    def call_end(self, index: int) -> None:
        self.add(EventType.TOOL_CALL_END, "", index)


@final
class CallRecorder(EventReceiver):
    """Records the events of calls, to emit them later."""

    def __init__(self) -> None:
        self._calls: list[tuple[int, str, str]] = []
        self._arguments: list[list[str]] = []
        self._ended: set[int] = set()

    def call_start(self, index: int, call_id: str, name: str) -> None:
        self._calls.append((index, call_id, name))
        self._arguments.append([])

    def arguments(self, index: int, text: str) -> None:
        self._arguments[-1].append(text)

    def call_end(self, index: int) -> None:
        self._ended.add(index)

    def forget_last(self) -> None:
        """Remove the last call."""
        self._calls.pop()
        self._arguments.pop()

    def arguments_of_calls(self) -> list[str]:
        """Return the arguments of each call, in order."""
        return ["".join(parts) for parts in self._arguments]

    def replay(self, receiver: EventReceiver) -> None:
        """Emit the recorded events."""
        for (index, call_id, name), parts in zip(self._calls, self._arguments, strict=True):
            receiver.call_start(index, call_id, name)
            for part in parts:
                receiver.arguments(index, part)
            if index in self._ended:
                receiver.call_end(index)
