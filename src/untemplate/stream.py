"""Stream: one output on its way from the engine to the client.

Rules of this module:

* A stream belongs to one request and one thread. It holds what is open, not the output, unless ``collect`` is set.
* ``feed`` may be called with any cut of the text; ``finish`` must be called, and may be called again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from .machine.call_state import STATUS_DIAGNOSTICS, CallState, CallStatus, call_status
from .machine.diagnostics import DIAGNOSTICS, DiagnosticCode
from .machine.events import DeltaBuilder
from .machine.ledger import ARGUMENT_TEXT, CONTENT_TEXT, DROPPED, ID_TEXT, MARKUP, NAME_TEXT, REASONING_TEXT
from .machine.machine import Machine
from .machine.scanner import TokenScanner
from .messages import (
    DeltaMessage,
    Diagnostic,
    FunctionCall,
    Item,
    ParsedOutput,
    Span,
    ToolCall,
    name_reasoning,
)
from .policy import Policy

if TYPE_CHECKING:
    from .validation import Validator

__all__ = ["DIAGNOSTICS", "Stream"]

_KINDS: Final = {
    MARKUP: "markup",
    NAME_TEXT: "name",
    ID_TEXT: "id",
    ARGUMENT_TEXT: "arguments",
    DROPPED: "dropped",
    REASONING_TEXT: "reasoning",
    CONTENT_TEXT: "content",
}


class Stream:
    """Parses one output as it comes. Made by :meth:`OutputParser.stream`."""

    __slots__ = (
        "_accepted",
        "_collected",
        "_finish_reason",
        "_machine",
        "_pending",
        "_policy",
        "_raw",
        "_scanner",
        "_sink",
        "_tools",
        "_validator",
        "_waiting",
    )

    def __init__(
        self,
        machine: Machine,
        sink: DeltaBuilder,
        scanner: TokenScanner | None,
        policy: Policy,
        tools: Sequence[Any] | None,
        *,
        collect: bool,
    ) -> None:
        self._machine = machine
        self._sink = sink
        self._scanner = scanner
        machine.scanner = scanner
        self._policy = policy
        self._tools = tools
        self._collected: list[DeltaMessage] | None = [] if collect else None
        self._raw: list[str] | None = [] if collect else None
        self._validator: Validator | None = None
        self._pending: list[DeltaMessage] = []
        self._waiting: list[DeltaMessage] = []
        self._accepted: dict[int, int] = {}
        self._finish_reason: str | None = None

    def feed(self, text: str, token_ids: Sequence[int] = ()) -> list[DeltaMessage]:
        """The next piece of the output, and the token ids that have come with it.

        Returns: the deltas that it completes, in order; often one, often none.

        Raises:
            RuntimeError: after ``finish``.
            TypeError: ``text`` is not a str.
        """
        machine = self._machine
        if machine.finished:
            raise RuntimeError("feed() after finish(): a stream parses one output; open a new one with parser.stream()")
        if not isinstance(text, str):
            raise TypeError(f"feed() takes text, got {type(text).__name__}")
        scanner = self._scanner
        if scanner is not None:
            text = scanner.feed(text, token_ids)
            machine.checks_ids = scanner.active and self._policy.spelled_markers == "text"
        if text:
            machine.feed(text)
            if self._raw is not None:
                self._raw.append(text)
        return self._take()

    def accept(self, delta: DeltaMessage) -> list[DeltaMessage]:
        """A part of the message that somebody else has parsed, such as a server with a parser of its own: it is part of
        the message as it is, its calls numbered on. Returns what can be said now; a call that is being read ends first.

        Raises:
            RuntimeError: after ``finish``.
        """
        if self._machine.finished:
            raise RuntimeError("accept() after finish(): a stream parses one output; open a new one")
        self._waiting.append(delta)
        return self._take()

    def _take_in(self) -> list[DeltaMessage]:
        """What was accepted, numbered."""
        machine = self._machine
        if not machine.finished and machine.calls and not machine.calls[-1].whole:
            return []
        deltas, self._waiting = self._waiting, []
        for delta in deltas:
            for part in delta.tool_calls or ():
                if part.index not in self._accepted:
                    name = part.function.name if part.function is not None else None
                    call = CallState(len(machine.calls), part.id or "", name or "")
                    call.whole = True
                    self._accepted[part.index] = call.index
                    machine.calls.append(call)
                part.index = self._accepted[part.index]
        return deltas

    def finish(self, finish_reason: str | None = "stop") -> list[DeltaMessage]:
        """The output has ended: says what was still open. Later calls do nothing and return nothing.

        Args:
            finish_reason: the engine's; kept for :attr:`finish_reason`.
        """
        machine = self._machine
        if machine.finished:
            return []
        self._finish_reason = finish_reason
        machine.finish()
        machine.receiver.end(finish_reason)
        return self._take()

    def _take(self) -> list[DeltaMessage]:
        deltas = self._sink.take()
        if self._pending:
            deltas = self._pending + deltas
            self._pending = []
        if self._waiting:
            deltas = deltas + self._take_in()
        if deltas and self._collected is not None:
            self._collected += deltas
        return deltas

    def begin(self, prefill: str) -> None:
        """Text of the message that stands in the prompt: parsed as the beginning of the output, told with the first
        delta."""
        if self._scanner is not None:
            self._scanner.feed(prefill, ())
        self._machine.feed(prefill)
        if self._raw is not None:
            self._raw.append(prefill)
        self._pending = self._sink.take()

    @property
    def finish_reason(self) -> str:
        """The engine's, with ``tool_calls`` in place of ``stop`` where there are calls."""
        reason = self._finish_reason or "stop"
        calls = self._machine.calls
        if reason == "stop" and calls:
            return "tool_calls"
        renames = self._policy.length_with_calls == "tool_calls" and any(call.whole for call in calls)
        return "tool_calls" if reason == "length" and renames else reason

    def dump(self, delta: DeltaMessage) -> dict[str, Any]:
        """A delta as it goes on the wire: without what is None, reasoning under the name that the policy wants."""
        return name_reasoning(delta.model_dump(exclude_none=True), self._policy.reasoning_field)

    @property
    def in_reasoning(self) -> bool:
        """Whether the output is inside reasoning now."""
        return self._machine.in_reasoning

    @property
    def marked(self) -> Sequence[tuple[int, int, int]]:
        """(kind, start, end) of the output so far, where spans are kept; kinds are the ledger's. What lies behind the
        text that has been told may still change."""
        return self._machine.ledger.spans or ()

    def result(self) -> ParsedOutput:
        """The whole message.

        Raises:
            RuntimeError: the stream does not collect, or has not been finished.
        """
        if self._collected is None or self._raw is None:
            raise RuntimeError("result() needs parser.stream(collect=True)")
        if not self._machine.finished:
            raise RuntimeError("result() before finish()")
        items, calls = _merge(self._collected)
        statuses: list[tuple[DiagnosticCode, int, int]] = []
        for call in self._machine.calls:
            found = calls[call.index]
            found.model_id = call.model_id or None
            found.repairs = list(call.repairs)
            status = call.status or self._status(call, found.function.arguments)
            found.status = status
            if status in STATUS_DIAGNOSTICS:
                statuses.append((STATUS_DIAGNOSTICS[status], call.start, call.end))
        reasoning = "".join(i.text or "" for i in items if i.type == "reasoning")
        content = "".join(i.text or "" for i in items if i.type == "content")
        return ParsedOutput(
            reasoning_content=reasoning or None,
            content=content or None,
            tool_calls=calls,
            tools_called=bool(calls),
            finish_reason=self.finish_reason,
            items=items,
            diagnostics=self._diagnostics("".join(self._raw), statuses),
            spans=_spans(self._machine.ledger.spans or ()),
        )

    def _status(self, call: CallState, arguments: str) -> CallStatus:
        """Return the status of a call when no call policy is active."""
        tools = self._machine.tools
        return call_status(call, arguments, tools, partial(self._problems, call, arguments) if tools.known else None)

    def _problems(self, call: CallState, arguments: str) -> list[str]:
        from .validation import Validator

        if self._validator is None:
            self._validator = Validator(self._tools)
        return [problem.slug for problem in self._validator.check(call.name, arguments)]

    def _diagnostics(self, raw: str, notes: list[tuple[DiagnosticCode, int, int]]) -> list[Diagnostic]:
        notes = notes + [(n.code, n.start, n.end) for n in self._machine.ledger.notes]
        if self._scanner is not None:
            notes += [("ambiguous_marker", at, at) for at in self._scanner.ambiguous]
        return [
            Diagnostic(code=code, message=DIAGNOSTICS[code], start=start, end=end, text=raw[start:end][:200])
            for code, start, end in sorted(notes, key=lambda n: n[1])
        ]


def _merge(deltas: Iterable[DeltaMessage]) -> tuple[list[Item], list[ToolCall]]:
    """Deltas put together: the parts of the message in order, and its calls."""
    items: list[Item] = []
    parts: list[str] = []
    calls: list[ToolCall] = []
    arguments: list[list[str]] = []

    def text(kind: str, piece: str | None) -> None:
        if not piece:
            return
        if not items or items[-1].type != kind:
            close()
            items.append(Item(type=kind))
        parts.append(piece)

    def close() -> None:
        if parts:
            items[-1].text = "".join(parts)
            parts.clear()

    for delta in deltas:
        text("reasoning", delta.reasoning)
        text("content", delta.content)
        for piece in delta.tool_calls or ():
            function = piece.function
            assert function is not None
            if piece.id is not None:
                close()
                calls.append(ToolCall(id=piece.id, function=FunctionCall(name=function.name or "", arguments="")))
                arguments.append([])
                items.append(Item(type="tool_call", call=calls[-1]))
            if function.arguments:
                arguments[piece.index].append(function.arguments)
    close()
    for call, pieces in zip(calls, arguments, strict=True):
        call.function.arguments = "".join(pieces)
    return items, calls


def _spans(marked: Iterable[tuple[int, int, int]]) -> list[Span]:
    """Neighbours of one kind are one span."""
    spans: list[Span] = []
    for kind, start, end in marked:
        if spans and spans[-1].kind == _KINDS[kind]:
            spans[-1].end = end
        else:
            spans.append(Span(kind=_KINDS[kind], start=start, end=end))
    return spans
