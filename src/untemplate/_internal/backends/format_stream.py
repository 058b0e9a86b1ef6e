"""One output that a Format describes: the machine, the scanner of token ids and the builder of deltas."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Final, final

from ...messages import (
    CallStatus,
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    Diagnostic,
    ParsedOutput,
    Span,
    SpanKind,
)
from ...tools import ToolSet
from ..jsontext.well_formed import reason_of_json
from ..machine.call_state import STATUS_DIAGNOSTICS, WHOLE, CallState, call_status, next_index
from ..machine.diagnostics import DIAGNOSTICS, DiagnosticCode
from ..machine.events import DeltaBuilder
from ..machine.growing import grown
from ..machine.ledger import ARGUMENT_TEXT, CONTENT_TEXT, DROPPED, ID_TEXT, MARKUP, NAME_TEXT, REASONING_TEXT
from ..machine.machine import Machine
from ..machine.snapshot import Snapshot, snapshot
from .abilities import abilities_of_calls
from .call_log import INVALID, reason_of, warn_of_call
from .markup_in_values import MarkupInValues
from .stream import StreamBackend
from .text_reports import TextReports
from .unread_markers import UnreadMarkers

if TYPE_CHECKING:
    from ..schemas.validation import Problem

__all__ = ["FormatStream"]

_USUAL_NAME: Final = re.compile(r"[^\W\d](?:[\w\-./ ]|:(?!\d))*+")
"""Matches the name of a tool. A number, a number after a colon and signs of markup are no part of one."""
_NEAR: Final = 1024
"""Characters before the place of a call in which its name is looked for; no longer name is read."""
_OPENED_BY_PROMPT: Final = (
    "; if the prompt opens reasoning, pass the prompt: what is before the close is reasoning then"
)
_CALL_KINDS: Final = frozenset({NAME_TEXT, ID_TEXT, ARGUMENT_TEXT})
_KINDS: Final[dict[int, SpanKind]] = {
    MARKUP: "markup",
    NAME_TEXT: "name",
    ID_TEXT: "id",
    ARGUMENT_TEXT: "arguments",
    DROPPED: "dropped",
    REASONING_TEXT: "reasoning",
    CONTENT_TEXT: "content",
}


@final
class FormatStream(StreamBackend):
    """One output that a Format describes."""

    def __init__(
        self,
        machine: Machine,
        builder: DeltaBuilder,
        keep_text: bool,
        unread: UnreadMarkers,
        values: MarkupInValues,
        own: frozenset[str],
        denied: frozenset[str] = frozenset(),
    ) -> None:
        self._path = machine.path
        self._sends_pieces = machine.receiver is builder
        """True if what passes on the short path becomes a delta at once."""
        self._denied = denied
        self._unread = unread
        self._values = values
        self._machine = machine
        self._builder = builder
        self._own = own
        self._raw: list[str] | None = [] if keep_text else None
        self._waiting: list[DeltaMessage] | None = None
        """Deltas of another parser, while a call is open; ``None``: there were none so far."""
        self._numbers: dict[int, int] | None = None
        """Numbers of calls in those deltas → numbers in the message."""
        self._found: Sequence[Problem] = ()
        """Problems of the call that was validated last."""
        if not keep_text:
            machine.forget_call = _forget_call

    def feed(self, text: str, token_ids: Sequence[int]) -> list[DeltaMessage]:
        path = self._path
        if path.kind and text:
            piece = path.take_passing(text, token_ids)
            if piece is not None and self._sends_pieces:
                if self._raw is not None:
                    self._raw.append(text)
                if not piece:
                    return []
                if path.kind == CONTENT_TEXT:
                    return [DeltaMessage(content=piece)]
                if path.kind == REASONING_TEXT:
                    return [DeltaMessage(reasoning=piece)]
                function = DeltaFunctionCall(arguments=piece)
                return [DeltaMessage(tool_calls=[DeltaToolCall(index=path.call, function=function)])]
            if piece is None:
                text = self._machine.read(text, token_ids)
            elif piece:
                self._machine.emit(piece)
        elif path.goes_on is None or not text or not path.take_waiting(text, token_ids):
            text = self._machine.read(text, token_ids)
        if self._raw is not None and text:
            self._raw.append(text)
        deltas = self._builder.take() if self._builder.deltas else []
        return deltas if self._waiting is None else deltas + self._numbered()

    def feed_tokens(self, text: str, token_ids: Sequence[int], places: Sequence[int]) -> list[DeltaMessage]:
        scanner = self._machine.scanner
        if scanner is None or (scanner.active and not places):
            return self.feed(text, ())
        text = self._machine.read(text, (), places)
        if self._raw is not None and text:
            self._raw.append(text)
        return self._take()

    def _take(self) -> list[DeltaMessage]:
        return self._builder.take() if self._waiting is None else self._builder.take() + self._numbered()

    def finish(self, finish_reason: str | None) -> list[DeltaMessage]:
        machine = self._machine
        held = machine.finish()
        if self._raw is not None and held:
            self._raw.append(held)
        machine.receiver.end(finish_reason)
        if self._raw is None:
            for call in machine.calls:
                _forget_call(call, machine.tools)
        return self._take()

    def accept(self, delta: DeltaMessage) -> list[DeltaMessage]:
        self._waiting = [*(self._waiting or ()), delta]
        self._sends_pieces = False
        return self._builder.take() + self._numbered()

    def _numbered(self) -> list[DeltaMessage]:
        """Return the deltas of another parser, their calls numbered; none of them while a call is open."""
        machine = self._machine
        if not machine.finished and machine.calls and not machine.calls[-1].whole:
            return []
        deltas = self._waiting or []
        self._waiting = None
        if self._numbers is None:
            self._numbers = {}
        for delta in deltas:
            for part in delta.tool_calls or ():
                if part.index not in self._numbers:
                    name = part.function.name if part.function is not None else None
                    call = CallState(next_index(machine.calls), part.id or "", name or "")
                    call.ending = WHOLE
                    self._numbers[part.index] = call.index
                    machine.calls = grown(machine.calls, call)
                part.index = self._numbers[part.index]
        return deltas

    @property
    def has_calls(self) -> bool:
        return bool(self._machine.calls)

    @property
    def has_whole_calls(self) -> bool:
        return any(call.whole or call.follows_whole for call in self._machine.calls)

    @property
    def ends_in_cut_call(self) -> bool:
        calls = self._machine.calls
        return bool(calls) and not calls[-1].whole

    @property
    def in_reasoning(self) -> bool:
        return self._machine.in_reasoning

    @property
    def in_call(self) -> bool:
        """True while the output is inside what may be a call."""
        return self._machine.in_call

    @property
    def marked(self) -> Sequence[tuple[int, int, int]]:
        self._machine.settle()
        return self._machine.ledger.spans or ()

    @property
    def snapshot(self) -> Snapshot:
        self._machine.settle()
        return snapshot(self._machine)

    def complete(self, result: ParsedOutput) -> None:
        """Add statuses, diagnostics and spans to a result. Content is read before a status is decided, since it may
        lower one; the edges of texts are looked at where nothing else was found."""
        reports = TextReports(self._machine, "".join(self._raw or ()), self._unread, self._own)
        in_content = reports.content(result.content)
        reports.lower_calls(in_content)
        problems: list[tuple[DiagnosticCode, int, int]] = []
        invalid: dict[int, str] = {}
        for call, found in zip(self._machine.calls, result.tool_calls, strict=True):
            if call.status is None:
                call.status = self._status(call, found.function.arguments)
                if call.status in INVALID:
                    call.reason = reason_of(call.status, self._found)
                    warn_of_call("kept", call.name, call.reason)
            status = found.status = call.status
            found.reason = call.reason or None
            found.model_id = call.model_id or None
            found.repairs = list(call.repairs)
            if status in STATUS_DIAGNOSTICS:
                problems.append((STATUS_DIAGNOSTICS[status], call.start, call.end))
            if status == "invalid_json":
                invalid[call.start] = found.function.arguments
        problems += self._problems_of_output()
        if self._denied:
            problems += self._uncertified(result)
        if problems:
            result.diagnostics = self._diagnostics(problems, invalid)
        result.diagnostics += in_content
        result.diagnostics += reports.reasoning(result)
        result.diagnostics += reports.values()
        result.diagnostics += reports.inside_invalid(result)
        result.diagnostics += reports.unclosed(tuple(result.diagnostics))
        at_edge = None if result.diagnostics else reports.edges(result)
        if at_edge is not None:
            result.diagnostics.append(at_edge)
        if self._machine.ledger.spans:
            result.spans = self._spans(self._machine.ledger.spans)

    def _problems_of_output(self) -> Iterator[tuple[DiagnosticCode, int, int]]:
        """Yield what the machine has reported, and names that are hardly those of tools."""
        machine = self._machine
        for note in machine.ledger.notes:
            yield note.code, note.start, note.end
        for at in () if machine.scanner is None else machine.scanner.ambiguous:
            yield "ambiguous_marker", at, at
        if not machine.tools.known:
            yield from self._unusual_names()

    def _unusual_names(self) -> Iterator[tuple[DiagnosticCode, int, int]]:
        unusual = [call for call in self._machine.calls if self._is_unusual(call.name)]
        raw = "".join(self._raw or ()) if unusual else ""
        for call in unusual:
            start = raw.rfind(call.name, max(call.start - _NEAR, 0), call.start + 1)
            start = call.start if start < 0 else start
            end = start + len(call.name)
            if _USUAL_NAME.fullmatch(call.name) is None or self._unread.constraint not in raw[end : call.start]:
                yield "unusual_name", start, end

    def _is_unusual(self, name: str) -> bool:
        """True if this is hardly the name of a tool, or may have swallowed the type of its arguments."""
        return _USUAL_NAME.fullmatch(name) is None or self._unread.ends_in_constraint(name)

    def _uncertified(self, result: ParsedOutput) -> Iterator[tuple[DiagnosticCode, int, int]]:
        """Yield a diagnostic for each call that needs an ability which the certificate denies."""
        needed = abilities_of_calls(
            (call.function.arguments for call in result.tool_calls),
            content=bool((result.content or "").strip()),
            reasoning=bool(result.reasoning),
            ids=any(call.model_id for call in result.tool_calls),
        )
        for call, abilities in zip(self._machine.calls, needed, strict=True):
            if abilities & self._denied:
                yield "uncertified_arguments", call.start, call.end

    def _status(self, call: CallState, arguments: str) -> CallStatus:
        """Return the status of a call when no call policy is active."""
        tools = self._machine.tools
        problems = partial(self._problems, call, arguments) if tools.known else None
        return call_status(call, arguments, tools, self._values.find, problems)

    def _problems(self, call: CallState, arguments: str) -> list[str]:
        self._found = _validate()(call.name, arguments, self._machine.tools)
        return [problem.slug for problem in self._found]

    def _diagnostics(
        self, problems: list[tuple[DiagnosticCode, int, int]], invalid: dict[int, str]
    ) -> list[Diagnostic]:
        """Return the diagnostics of these problems. ``invalid``: arguments that are not valid, by the call's place."""
        raw = "".join(self._raw or ())
        return [
            Diagnostic(
                code=code,
                message=self._message(code, raw[start:end], invalid.get(start, "")),
                start=start,
                end=end,
                text=raw[start:end][:200],
            )
            for code, start, end in sorted(problems, key=lambda problem: problem[1])
        ]

    def _message(self, code: DiagnosticCode, text: str, arguments: str) -> str:
        """Return what a diagnostic says about this text of the output, which is a call with these arguments."""
        if code == "invalid_json" and (why := reason_of_json(arguments)):
            return f"{DIAGNOSTICS[code]}: {why}"
        may_open = code == "stray_close" and not self._machine.text.has_closed_reasoning
        lone = may_open and text.strip() in self._unread.closes_of_reasoning
        return DIAGNOSTICS[code] + _OPENED_BY_PROMPT if lone else DIAGNOSTICS[code]

    def _spans(self, marked: list[tuple[int, int, int]]) -> list[Span]:
        """Return the spans of the output, neighbours of one kind and call joined."""
        spans: list[Span] = []
        calls = self._machine.calls
        raw = "".join(self._raw or ())
        current = 0
        for number, begin, end in marked:
            call = None
            if number in _CALL_KINDS:
                while current < len(calls) - 1 and begin >= max(calls[current].start, calls[current].end):
                    current += 1
                call = current
                # An id may follow the arguments of its call.
                if number == ID_TEXT and current and raw[begin:end] == calls[current - 1].model_id:
                    call -= 1
            kind = _KINDS[number]
            if spans and spans[-1].kind == kind and spans[-1].call == call:
                spans[-1].end = end
            else:
                spans.append(Span(kind=kind, start=begin, end=end, call=call))
        return spans


@cache
def _validate() -> Callable[[str, str, ToolSet], list[Problem]]:
    """Import the check of arguments, which outputs without calls need not pay for."""
    from ..schemas.validation import check_call

    return check_call


def _forget_call(call: CallState, tools: ToolSet) -> None:
    """Warn of a call whose arguments were streamed and not kept, as far as they need not be read again."""
    if call.status is None:
        if not call.whole:
            warn_of_call("kept", call.name, reason_of("incomplete"))
        elif tools.known and call.name not in tools.names:
            warn_of_call("kept", call.name, reason_of("unknown_tool"))
