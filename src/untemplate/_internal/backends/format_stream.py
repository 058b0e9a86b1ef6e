"""One output that a Format describes: the machine, the scanner of token ids and the builder of deltas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
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
from ..machine.call_state import STATUS_DIAGNOSTICS, CallState, call_status, next_index
from ..machine.diagnostics import DIAGNOSTICS, DiagnosticCode
from ..machine.events import DeltaBuilder
from ..machine.ledger import ARGUMENT_TEXT, CONTENT_TEXT, DROPPED, ID_TEXT, MARKUP, NAME_TEXT, REASONING_TEXT
from ..machine.machine import Machine
from ..machine.snapshot import Snapshot, snapshot
from .abilities import abilities_of_calls
from .call_log import INVALID, reason_of, warn_of_call
from .recognition import OwnMarkers, foreign_marker
from .stream import StreamBackend

if TYPE_CHECKING:
    from ..schemas.validation import Problem, Validator

__all__ = ["FormatStream"]

_USUAL_NAME: Final = re.compile(r"[^\W\d](?:[\w\-./ ]|:(?!\d))*+")
"""Matches the name of a tool. A number, a number after a colon and signs of markup are no part of one."""
_NEAR: Final = 1024
"""Characters before the place of a call in which its name is looked for; no longer name is read."""
_OPENED_BY_PROMPT: Final = (
    "; if the prompt opens reasoning, pass the prompt: what is before the close is reasoning then"
)
_REPORTS_OF_TEXT: Final = frozenset({"quoted_call", "held_too_long"})
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


def _may_hold_markers(text: str) -> bool:
    """True if a text has one of the characters that markers have; most texts do not."""
    return (
        "<" in text
        or ">" in text
        or "[" in text
        or "]" in text
        or "{" in text
        or "}" in text
        or "|" in text
        or "｜" in text
    )


@final
class FormatStream(StreamBackend):
    """One output that a Format describes."""

    def __init__(
        self,
        machine: Machine,
        builder: DeltaBuilder,
        keep_text: bool,
        marks: OwnMarkers | None = None,
        own_markers: frozenset[str] = frozenset(),
        denied: frozenset[str] = frozenset(),
    ) -> None:
        self._path = machine.path
        self._sends_pieces = machine.receiver is builder and not keep_text
        """True if what passes on the short path becomes a delta at once."""
        self._denied = denied
        self._own_markers = marks
        self._machine = machine
        self._builder = builder
        self._own = own_markers
        self._raw: list[str] | None = [] if keep_text else None
        self._waiting: list[DeltaMessage] | None = None
        """Deltas of another parser, while a call is open; ``None``: there were none so far."""
        self._numbers: dict[int, int] | None = None
        """Numbers of calls in those deltas → numbers in the message."""
        self._validator: Validator | None = None
        self._found: Sequence[Problem] = ()
        """Problems of the call that was validated last."""
        self._had_whole_call: bool = False
        """True if one of the calls that the machine has forgotten has ended by itself."""
        if not keep_text:
            machine.forget_call = self._forget_call

    def feed(self, text: str, token_ids: Sequence[int]) -> list[DeltaMessage]:
        path = self._path
        if path.kind and text:
            piece = path.passes(text, token_ids)
            if piece and self._sends_pieces:
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
            elif self._sends_pieces:
                return []
        else:
            text = self._machine.read(text, token_ids)
        if self._raw is not None and text:
            self._raw.append(text)
        deltas = self._builder.take()
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
                self._forget_call(call)
        return self._take()

    def _forget_call(self, call: CallState) -> None:
        """Warn of a call whose arguments were streamed and not kept, as far as they need not be read again."""
        tools = self._machine.tools
        self._had_whole_call = self._had_whole_call or call.whole
        if call.status is None:
            if not call.whole:
                warn_of_call("kept", call.name, reason_of("incomplete"))
            elif tools.known and call.name not in tools.names:
                warn_of_call("kept", call.name, reason_of("unknown_tool"))

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
                    call.whole = True
                    self._numbers[part.index] = call.index
                    machine.calls.append(call)
                part.index = self._numbers[part.index]
        return deltas

    @property
    def has_calls(self) -> bool:
        return bool(self._machine.calls)

    @property
    def has_whole_calls(self) -> bool:
        return self._had_whole_call or any(call.whole for call in self._machine.calls)

    @property
    def ends_in_cut_call(self) -> bool:
        calls = self._machine.calls
        return bool(calls) and not calls[-1].whole

    @property
    def in_reasoning(self) -> bool:
        return self._machine.in_reasoning

    @property
    def marked(self) -> Sequence[tuple[int, int, int]]:
        self._machine.settle()
        return self._machine.ledger.spans or ()

    @property
    def snapshot(self) -> Snapshot:
        self._machine.settle()
        return snapshot(self._machine)

    def complete(self, result: ParsedOutput) -> None:
        problems: list[tuple[DiagnosticCode, int, int]] = []
        for call, found in zip(self._machine.calls, result.tool_calls, strict=True):
            if call.status is None:
                call.status = self._status(call, found.function.arguments)
                if call.status in INVALID:
                    warn_of_call("kept", call.name, reason_of(call.status, self._found))
            status = found.status = call.status
            found.model_id = call.model_id or None
            found.repairs = list(call.repairs)
            if status in STATUS_DIAGNOSTICS:
                problems.append((STATUS_DIAGNOSTICS[status], call.start, call.end))
        problems += self._problems_of_output()
        if self._denied:
            problems += self._uncertified(result)
        if problems:
            result.diagnostics = self._diagnostics(problems)
        own = self._own_markers
        has_lines = own is not None and own.has_lines
        content = result.content
        if content is not None and (_may_hold_markers(content) or has_lines):
            foreign = foreign_marker(content, self._own)
            if foreign is not None:
                result.diagnostics.append(self._foreign(content, *foreign))
            if own is not None:
                found_in_content = self._unread_in_content(content, own, foreign is not None)
                result.diagnostics += found_in_content
                self._lower_before(result, found_in_content, own.closes_of_calls)
        reasoning = result.reasoning
        if reasoning is not None and own is not None and (_may_hold_markers(reasoning) or has_lines):
            found_in_reasoning = self._unread_in_reasoning(reasoning, own)
            if found_in_reasoning is not None:
                result.diagnostics.append(found_in_reasoning)
        if own is not None:
            self._report_values(result, own)
            self._report_signs(result, own)
            self._report_fragment(result, own)
        if self._machine.ledger.spans:
            result.spans = self._spans(self._machine.ledger.spans)

    def _problems_of_output(self) -> Iterator[tuple[DiagnosticCode, int, int]]:
        """Yield what the machine has reported, and names that are hardly those of tools."""
        machine = self._machine
        for note in machine.ledger.notes:
            yield note.code, note.start, note.end
        for at in () if machine.scanner is None else machine.scanner.ambiguous:
            yield "ambiguous_marker", at, at
        unusual = [] if machine.tools.known else [c for c in machine.calls if _USUAL_NAME.fullmatch(c.name) is None]
        raw = "".join(self._raw or ()) if unusual else ""
        for call in unusual:
            start = raw.rfind(call.name, max(call.start - _NEAR, 0), call.start + 1)
            start = call.start if start < 0 else start
            yield "unusual_name", start, start + len(call.name)

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
        return call_status(call, arguments, tools, partial(self._problems, call, arguments) if tools.known else None)

    def _problems(self, call: CallState, arguments: str) -> list[str]:
        from ..schemas.validation import Validator

        if self._validator is None:
            self._validator = Validator(self._machine.tools)
        self._found = self._validator.check(call.name, arguments)
        return [problem.slug for problem in self._found]

    def _diagnostics(self, problems: list[tuple[DiagnosticCode, int, int]]) -> list[Diagnostic]:
        raw = "".join(self._raw or ())
        return [
            Diagnostic(
                code=code, message=self._message(code, raw[start:end]), start=start, end=end, text=raw[start:end][:200]
            )
            for code, start, end in sorted(problems, key=lambda problem: problem[1])
        ]

    def _message(self, code: DiagnosticCode, text: str) -> str:
        """Return what a diagnostic says about this text of the output."""
        own = self._own_markers
        may_open = code == "stray_close" and own is not None and not self._machine.has_closed_reasoning
        lone = may_open and own is not None and text.strip() in own.closes_of_reasoning
        return DIAGNOSTICS[code] + _OPENED_BY_PROMPT if lone else DIAGNOSTICS[code]

    def _foreign(self, content: str, marker: str, place: int, meaning: str) -> Diagnostic:
        """Report a marker of another format in the content."""
        raw = "".join(self._raw or ())
        start = raw.find(content[place : place + 64])
        if start < 0:  # the content goes on after a call
            start = raw.find(marker)
        message = f"content holds {marker!r}, which {meaning}"
        return Diagnostic(code="foreign_marker", message=message, start=start, end=start + len(marker), text=marker)

    def _may_report_calls(self) -> bool:
        """True if calls are wanted, and none was made content in a way that is known or reported."""
        machine = self._machine
        if not machine.program.call_syntaxes or machine.has_policy_text:
            return False
        return all(note.code not in _REPORTS_OF_TEXT for note in machine.ledger.notes)

    def _unread_in_content(self, content: str, own: OwnMarkers, foreign: bool) -> list[Diagnostic]:
        """Report text in the content that looks like a call, or else a marker that was not read as one. ``foreign``: a
        marker of another format is reported, so an object of any name belongs to that."""
        wanted = self._may_report_calls()
        tools = self._machine.tools
        names = tools.names if tools.known or foreign else None
        found = own.find_call(content, names) if wanted else None
        if found is not None:
            return [self._unread("call_like_text", content, *found)]
        found = own.unread_in_content(content, wanted)
        if found is None or (own.is_begun(found[1]) and "".join(self._raw or ()).endswith(found[1])):
            return []
        return [self._unread("unread_marker", content, *found)]

    def _unread_in_reasoning(self, reasoning: str, own: OwnMarkers) -> Diagnostic | None:
        """Report a marker in reasoning that was not read as one, or else a call in reasoning that was not closed."""
        closed = self._machine.has_closed_reasoning
        found = own.unread_in_reasoning(reasoning, closed)
        if found is not None:
            return self._unread("unread_marker", reasoning, *found)
        tools = self._machine.tools
        if not closed and self._may_report_calls():
            found = own.call_in_reasoning(reasoning, tools.names if tools.known else None, bool(self._machine.calls))
        return None if found is None else self._unread("call_like_text", reasoning, *found)

    def _report_values(self, result: ParsedOutput, own: OwnMarkers) -> None:
        """Let no call be ``ok`` that has a declared parameter in the value of another one, without its opener, or a
        damaged marker."""
        search = own.keys_in_values
        if search is None:
            return
        tools = self._machine.tools
        for state, call in zip(self._machine.calls, result.tool_calls, strict=True):
            if call.status != "ok":
                continue
            arguments = call.function.arguments
            tool = tools.get(call.function.name)
            found = search.attributes_in(arguments) if tool is None else search.find(tool.properties(), arguments)
            found = found or own.damaged_in_value(arguments)
            if found is not None:
                state.status = call.status = "recovered"
                place = "".join(self._raw or ())[state.start : state.end].find(found)
                start = state.start + max(place, 0)
                code: DiagnosticCode = "markup_in_value"
                result.diagnostics.append(Diagnostic(code, DIAGNOSTICS[code], start, start + len(found), found))

    def _report_fragment(self, result: ParsedOutput, own: OwnMarkers) -> None:
        """Report a piece of a marker that a text of the message has, unless something is reported."""
        if result.diagnostics or not (result.tool_calls or result.reasoning):
            return
        found = own.fragment_in(result.items, self._machine.has_closed_reasoning)
        if found is not None:
            result.diagnostics.append(self._unread("unread_marker", *found))

    def _lower_before(self, result: ParsedOutput, unread: list[Diagnostic], closes: frozenset[str]) -> None:
        """Let no call be ``ok`` after which a close stayed content: text of the call may have become content."""
        for diagnostic in unread:
            if diagnostic.text in closes:
                ended = [call for call in self._machine.calls if 0 < call.end <= diagnostic.start]
                if ended and ended[-1].status == "ok":
                    ended[-1].status = result.tool_calls[self._machine.calls.index(ended[-1])].status = "recovered"

    def _report_signs(self, result: ParsedOutput, own: OwnMarkers) -> None:
        """Report a marker with a sign too many that a text of the message has, unless something is reported."""
        for text in () if result.diagnostics else (result.content, result.reasoning):
            if text and own.has_edge(text):
                raw = "".join(self._raw or ())
                place = own.sign_too_many(raw)
                if place is not None:
                    code: DiagnosticCode = "unread_marker"
                    start, end = place
                    found = Diagnostic(code, DIAGNOSTICS[code], start, end, raw[start:end])
                    result.diagnostics.append(found)
                    return

    def _unread(self, code: DiagnosticCode, text: str, place: int, found: str) -> Diagnostic:
        """Report what is at this place of a text of the message."""
        raw = "".join(self._raw or ())
        before = text[max(place - 32, 0) : place]
        start = raw.find(before + text[place : place + 64])
        if start >= 0:
            start += len(before)
        else:  # a marker that was dropped is near or in it
            start = next(at for size in (len(found), 8, 2, 0) if (at := raw.find(found[:size])) >= 0)
        end = min(start + len(found), len(raw))
        return Diagnostic(code=code, message=DIAGNOSTICS[code], start=start, end=end, text=found)

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
