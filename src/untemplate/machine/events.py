"""What the machine says, and to whom.

Rules of this module:

* A EventReceiver is told what the machine found, in order, once. It never answers and is never asked.
* Deltas are built directly (DeltaBuilder). Events exist for who subscribes (EventCollector).
* The events of a call inside reasoning go to a CallRecorder first, and on to the receiver if the call is accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import final

from ..messages import DeltaFunctionCall, DeltaMessage, DeltaToolCall
from .call_state import CallState
from .compiled import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class EventReceiver:
    """Who listens. Texts are not empty. Calls are numbered from 0 in the order in which they began."""

    def reasoning(self, text: str) -> None: ...

    def reasoning_start(self) -> None: ...

    def reasoning_end(self) -> None: ...

    def content(self, text: str) -> None: ...

    def call_start(self, index: int, call_id: str, name: str) -> None: ...

    def arguments(self, index: int, text: str) -> None: ...

    def call_end(self, index: int) -> None: ...

    def end(self, finish_reason: str | None) -> None:
        """The output has ended."""


def emit_call(receiver: EventReceiver, call: CallState, arguments: str) -> None:
    """A whole call at once."""
    receiver.call_start(call.index, call.id, call.name)
    if arguments:
        receiver.arguments(call.index, arguments)
    if call.whole:
        receiver.call_end(call.index)


@final
class DeltaBuilder(EventReceiver):
    """Builds DeltaMessages: as few as the order allows (reasoning, then content, then calls within each)."""

    def __init__(self) -> None:
        self.deltas: list[DeltaMessage] = []
        self._current: DeltaMessage | None = None
        self._stage: int = 0
        self._parts: list[str] = []

    def take(self) -> list[DeltaMessage]:
        """What has been built since the last time."""
        if self._current is None:
            return []
        self._close_parts()
        self._current = None
        deltas = self.deltas
        self.deltas = []
        return deltas

    def reasoning(self, text: str) -> None:
        if self._current is None or self._stage != 1:
            self._enter(1)
        self._parts.append(text)

    def content(self, text: str) -> None:
        if self._current is None or self._stage != 2:
            self._enter(2)
        self._parts.append(text)

    def call_start(self, index: int, call_id: str, name: str) -> None:
        self._enter(3)
        call = DeltaToolCall(index=index, id=call_id, type="function", function=DeltaFunctionCall(name=name))
        self._add_call(call)

    def arguments(self, index: int, text: str) -> None:
        if self._current is None or self._stage != 3:
            self._enter(3)
            self._add_call(DeltaToolCall(index=index, function=DeltaFunctionCall()))
        self._parts.append(text)

    def _add_call(self, call: DeltaToolCall) -> None:
        delta = self._current
        assert delta is not None
        if delta.tool_calls is None:
            delta.tool_calls = [call]
        else:
            delta.tool_calls.append(call)

    def _enter(self, stage: int) -> None:
        """Parts that follow belong to this stage; a new delta where the old one is past it already."""
        if self._current is not None:
            self._close_parts()
        if self._current is None or stage < self._stage:
            self._current = DeltaMessage()
            self.deltas.append(self._current)
        self._stage = stage

    def _close_parts(self) -> None:
        if not self._parts:
            return
        text = "".join(self._parts)
        self._parts = []
        delta = self._current
        assert delta is not None
        if self._stage == 2:
            delta.content = text
        elif self._stage == 1:
            delta.reasoning = text
        else:
            calls = delta.tool_calls
            assert calls is not None
            function = calls[-1].function
            assert function is not None
            function.arguments = text


class EventType(Enum):
    """What a :class:`SemanticEvent` says."""

    TEXT_CHUNK = auto()
    REASONING_START = auto()
    REASONING_CHUNK = auto()
    REASONING_END = auto()
    TOOL_CALL_START = auto()
    TOOL_NAME = auto()
    ARG_VALUE_CHUNK = auto()
    TOOL_CALL_END = auto()


@final
class SemanticEvent:
    """One thing that the model's output means. ``value`` is its text, ``tool_index`` the call's number or -1."""

    __slots__ = ("tool_index", "type", "value")

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
    """Hands SemanticEvents to its subscriber, or collects them."""

    def __init__(self, subscriber: Callable[[SemanticEvent], None] | None = None) -> None:
        self.events: list[SemanticEvent] = []
        self._subscriber: Callable[[SemanticEvent], None] | None = subscriber

    def take(self) -> list[SemanticEvent]:
        """What has been collected since the last time."""
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
    """Keeps what it is told about calls, and tells it to another receiver later."""

    def __init__(self) -> None:
        self._said: list[tuple[int, str, str, int]] = []

    def call_start(self, index: int, call_id: str, name: str) -> None:
        self._said.append((index, call_id, name, 0))

    def arguments(self, index: int, text: str) -> None:
        self._said.append((index, text, "", 1))

    def call_end(self, index: int) -> None:
        self._said.append((index, "", "", 2))

    def arguments_of_calls(self) -> list[str]:
        """The arguments of each call, in order."""
        texts: list[list[str]] = []
        for _, text, _, what in self._said:
            if what == 0:
                texts.append([])
            elif what == 1:
                texts[-1].append(text)
        return ["".join(parts) for parts in texts]

    def replay(self, receiver: EventReceiver) -> None:
        for index, first, second, what in self._said:
            if what == 0:
                receiver.call_start(index, first, second)
            elif what == 1:
                receiver.arguments(index, first)
            else:
                receiver.call_end(index)
