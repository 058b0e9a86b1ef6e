"""Reports of what stayed text in a message although it looks like a call or a marker.

Most of it is about whole texts: the pieces of a stream do not show if a line is inline code, or if a call is offered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, final

from ...messages import Diagnostic, ParsedOutput
from ..machine.diagnostics import DIAGNOSTICS, DiagnosticCode
from ..machine.machine import Machine
from .recognition import foreign_marker
from .unread_markers import UnreadMarkers

__all__ = ["TextReports"]

_READ_WHOLE: Final = frozenset({"ok", "unknown_tool", "invalid_arguments", "invalid_json"})
"""Statuses of calls with arguments that have ended where the model ended them."""
_REPORTS_OF_TEXT: Final = frozenset({"quoted_call", "held_too_long"})


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
class TextReports:
    """Reports on the texts of one message. ``raw``: the output; ``own``: the markers that make a text its own."""

    def __init__(self, machine: Machine, raw: str, unread: UnreadMarkers, own: frozenset[str]) -> None:
        self._machine = machine
        self._raw = raw
        self._markers = unread
        self._own = own

    def content(self, text: str | None) -> list[Diagnostic]:
        """Report a marker of another format in the content, and text that looks like a call of this one, or else a
        marker that was not read as one."""
        if text is None or not self._is_worth_reading(text):
            return []
        foreign = foreign_marker(text, self._own)
        found = [] if foreign is None else [self._foreign(text, *foreign)]
        unread = self._unread_in_content(text, foreign is not None)
        return found if unread is None else [*found, unread]

    def lower_calls(self, in_content: Iterable[Diagnostic]) -> None:
        """Make a call ``recovered`` after which one of its closes was found in content: text of it may be content."""
        for note in in_content:
            if note.text in self._markers.closes_of_calls:
                for call in [call for call in self._machine.calls if 0 < call.end <= note.start][-1:]:
                    call.recover()

    def _is_worth_reading(self, text: str) -> bool:
        """True if a text may hold a marker, or a call that is written without one."""
        may_be_called = "(" in text and self._markers.calls.is_literal
        return may_be_called or self._markers.has_lines or _may_hold_markers(text)

    def _foreign(self, content: str, marker: str, place: int, meaning: str) -> Diagnostic:
        note = self._unread("foreign_marker", content, place, marker)
        note.message = f"content holds {marker!r}, which {meaning}"
        return note

    def _may_report_calls(self) -> bool:
        """True if calls are wanted, and none was made content in a way that is known or reported."""
        machine = self._machine
        if not machine.program.call_syntaxes or machine.text.has_policy_text:
            return False
        return all(note.code not in _REPORTS_OF_TEXT for note in machine.ledger.notes)

    def _unread_in_content(self, content: str, foreign: bool) -> Diagnostic | None:
        """``foreign``: a marker of another format is reported, so an object of any name belongs to that."""
        wanted = self._may_report_calls()
        tools = self._machine.tools
        names = tools.names if tools.known or foreign else None
        found = self._markers.calls.find(content, names) if wanted else None
        if found is not None:
            return self._unread("call_like_text", content, *found)
        found = self._markers.in_content(content, wanted)
        if found is None or (self._markers.is_begun(found[1]) and self._raw.endswith(found[1])):
            return None
        return self._unread("unread_marker", content, *found)

    def reasoning(self, result: ParsedOutput) -> list[Diagnostic]:
        """Report a marker in reasoning that was not read as one, or else a call in reasoning that was not closed, or
        is all of the message."""
        text = result.reasoning
        if text is None or not self._is_worth_reading(text):
            return []
        closed = self._machine.text.has_closed_reasoning
        found = self._markers.in_reasoning(text, closed)
        if found is not None:
            return [self._unread("unread_marker", text, *found)]
        found = None if closed and not self._is_all(result) else self._call_in_reasoning(text)
        return [] if found is None else [self._unread("call_like_text", text, *found)]

    @staticmethod
    def _is_all(result: ParsedOutput) -> bool:
        """True if the message is reasoning and nothing else."""
        return not (result.tool_calls or (result.content or "").strip())

    def _call_in_reasoning(self, text: str) -> tuple[int, str] | None:
        if not self._may_report_calls():
            return None
        tools = self._machine.tools
        names = tools.names if tools.known else None
        return self._markers.call_in_reasoning(text, names, bool(self._machine.calls))

    def values(self) -> Iterator[Diagnostic]:
        """Yield a report of each call with a key that is there twice, or with markup that its values hold."""
        for call in self._machine.calls:
            if call.repeated:
                place = self._raw[call.start : call.end].rfind(call.repeated)
                yield self._report("repeated_key", call.start + max(place, 0), call.repeated)
            if call.markup:
                place = self._raw[call.start : call.end].find(call.markup)
                yield self._report("markup_in_value", call.start + max(place, 0), call.markup)

    def inside_invalid(self, result: ParsedOutput) -> Iterator[Diagnostic]:
        """Yield a report of each call whose arguments are no JSON and hold the opener of a call: a string that was not
        closed takes in what follows."""
        for call in result.tool_calls:
            if call.status == "invalid_json":
                found = self._markers.opener_in(call.function.arguments)
                if found is not None:
                    yield self._unread("call_like_text", call.function.arguments, *found)

    def unclosed(self, found: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
        """Yield a report of a whole call with which the output ends although its close did not come, unless something
        after it was ``found``: the machine reports a call that the output continues after."""
        call = self._machine.calls[-1] if self._machine.calls else None
        if call is None or not call.end or call.status not in _READ_WHOLE or self._is_closed(call.end):
            return
        if all(note.start < call.end for note in found):
            yield self._report("unclosed_call", call.end, "")

    def _is_closed(self, end: int) -> bool:
        """True if a close of calls comes after this place, or if calls may have none."""
        ends = self._markers.ends_of_calls
        return not ends or any(marker in self._raw[end:] for marker in ends)

    def edges(self, result: ParsedOutput) -> Diagnostic | None:
        """Report a marker with a sign too many, or a piece of one, that a text begins or ends with."""
        for text in (result.content, result.reasoning):
            place = self._markers.sign_too_many(self._raw) if text and self._markers.has_edge(text) else None
            if place is not None:
                return self._report("unread_marker", place[0], self._raw[place[0] : place[1]])
        if not (result.tool_calls or result.reasoning):
            return None
        found = self._markers.fragment_in(result.items, self._machine.text.has_closed_reasoning)
        return None if found is None else self._unread("unread_marker", *found)

    def _unread(self, code: DiagnosticCode, text: str, place: int, found: str) -> Diagnostic:
        """Report what is at this place of a text of the message."""
        raw = self._raw
        before = text[max(place - 32, 0) : place]
        start = raw.find(before + text[place : place + 64])
        if start >= 0:
            start += len(before)
        else:  # a marker that was dropped is near or in it
            start = next(at for size in (len(found), 8, 2, 0) if (at := raw.find(found[:size])) >= 0)
        return self._report(code, start, found)

    def _report(self, code: DiagnosticCode, start: int, found: str) -> Diagnostic:
        end = min(start + len(found), len(self._raw))
        return Diagnostic(code=code, message=DIAGNOSTICS[code], start=start, end=end, text=found)
