"""Filters: the policies that change what is emitted.

* A filter is put between the machine and the deltas only if its policy is not at its default. With the defaults there
  is no filter, and no cost.
* A filter that waits for the end of the output is notified of it (``end``), with the engine's finish reason.
* Filters change what is emitted, never how the output is parsed.
"""

from __future__ import annotations

from collections.abc import Callable

from ...format import Format, Marker
from ...format._markers import text_of
from ...policy import Policy
from ...tools import ToolSet
from ..jsontext.repair import nearest_name, repair_schema, repair_syntax
from ..machine.call_policy import AS_CONTENT, DROP, KEEP, CallPolicy
from ..machine.call_state import NOT_AN_OBJECT, CallState, call_status
from ..machine.events import EventReceiver
from ..machine.ledger import Ledger
from ..machine.lexer import WS
from ..schemas.validation import Validator, validate
from .call_log import INVALID, reason_of, warn_of_call
from .markup_in_values import MarkupInValues

__all__ = ["Filter", "RequestCallPolicy", "Tee", "call_policy", "filters"]


class Filter(EventReceiver):
    """Passes on every event."""

    def __init__(self, out: EventReceiver) -> None:
        self.out = out

    def reasoning(self, text: str) -> None:
        self.out.reasoning(text)

    def reasoning_start(self) -> None:
        self.out.reasoning_start()

    def reasoning_end(self) -> None:
        self.out.reasoning_end()

    def content(self, text: str) -> None:
        self.out.content(text)

    def call_start(self, index: int, call_id: str, name: str) -> None:
        self.out.call_start(index, call_id, name)

    def arguments(self, index: int, text: str) -> None:
        self.out.arguments(index, text)

    def call_end(self, index: int) -> None:
        self.out.call_end(index)

    def end(self, finish_reason: str | None) -> None:
        self.out.end(finish_reason)


class Tee(Filter):
    """Sends each event to another receiver first."""

    def __init__(self, first: EventReceiver, out: EventReceiver) -> None:
        super().__init__(out)
        self._first = first

    def reasoning(self, text: str) -> None:
        self._first.reasoning(text)
        self.out.reasoning(text)

    def reasoning_start(self) -> None:
        self._first.reasoning_start()
        self.out.reasoning_start()

    def reasoning_end(self) -> None:
        self._first.reasoning_end()
        self.out.reasoning_end()

    def content(self, text: str) -> None:
        self._first.content(text)
        self.out.content(text)

    def call_start(self, index: int, call_id: str, name: str) -> None:
        self._first.call_start(index, call_id, name)
        self.out.call_start(index, call_id, name)

    def arguments(self, index: int, text: str) -> None:
        self._first.arguments(index, text)
        self.out.arguments(index, text)

    def call_end(self, index: int) -> None:
        self._first.call_end(index)
        self.out.call_end(index)


class TrimContent(Filter):
    """``outer_white_space="trim"``. At most ``max_held`` characters of white space wait for text to follow them."""

    def __init__(self, out: EventReceiver, max_held: int) -> None:
        super().__init__(out)
        self._begun = False
        self._spaces: list[str] = []
        self._size = 0
        self._max_held = max_held

    def content(self, text: str) -> None:
        if not self._begun:
            text = text.lstrip(WS)
            self._begun = bool(text)
        kept = text.rstrip(WS)
        if kept:
            self.out.content("".join([*self._spaces, kept]))
            self._spaces.clear()
            self._size = 0
        if len(kept) < len(text):
            self._spaces.append(text[len(kept) :])
            self._size += len(text) - len(kept)
            while self._size > self._max_held:
                waiting = "".join(self._spaces)
                self.out.content(waiting[: self._max_held])
                self._spaces = [waiting[self._max_held :]]
                self._size -= self._max_held


class DropTextAfterCalls(Filter):
    """``text_after_calls="drop"``."""

    def __init__(self, out: EventReceiver) -> None:
        super().__init__(out)
        self._called = False

    def call_start(self, index: int, call_id: str, name: str) -> None:
        self._called = True
        self.out.call_start(index, call_id, name)

    def content(self, text: str) -> None:
        if not self._called:
            self.out.content(text)


class HoldReasoning(Filter):
    """``unclosed_reasoning="content"``: reasoning is buffered until it closes. If it gets longer than ``max_held``, it
    stays reasoning, and streams."""

    def __init__(self, out: EventReceiver, max_held: int, ledger: Ledger) -> None:
        super().__init__(out)
        self._held: list[str] = []
        self._size = 0
        self._start = 0
        self._max_held = max_held
        self._ledger = ledger

    def reasoning(self, text: str) -> None:
        if self._size > self._max_held:
            self.out.reasoning(text)
            return
        if not self._held:
            self._start = self._ledger.frontier
        self._held.append(text)
        self._size += len(text)
        if self._size > self._max_held:
            self._ledger.report("held_too_long", self._start, self._start)
            self._release(self.out.reasoning)

    def reasoning_end(self) -> None:
        self._release(self.out.reasoning)
        self._size = 0
        self.out.reasoning_end()

    def content(self, text: str) -> None:
        self._release(self.out.reasoning)
        self.out.content(text)

    def call_start(self, index: int, call_id: str, name: str) -> None:
        self._release(self.out.reasoning)
        self.out.call_start(index, call_id, name)

    def end(self, finish_reason: str | None) -> None:
        self._release(self.out.content if finish_reason == "stop" else self.out.reasoning)
        super().end(finish_reason)

    def _release(self, emit: Callable[[str], None]) -> None:
        if self._held:
            emit("".join(self._held))
            self._held.clear()


class InlineReasoning(Filter):
    """``reasoning_field="inline"``: reasoning becomes content, between its markers."""

    def __init__(self, out: EventReceiver, opening: Marker | None, closing: Marker) -> None:
        super().__init__(out)
        self._opening = text_of(opening)
        self._closing = closing.text
        self._open = False

    def reasoning(self, text: str) -> None:
        if not self._open:
            self._open = True
            text = self._opening + text
        self.out.content(text)

    def reasoning_end(self) -> None:
        if self._open:
            self._open = False
            self.out.content(self._closing)
        self.out.reasoning_end()


def filters(policy: Policy, fmt: Format, receiver: EventReceiver, ledger: Ledger) -> EventReceiver:
    """Return the receiver for the machine: the one of the deltas, after the filters that the policy needs."""
    if policy.text_after_calls == "drop":
        receiver = DropTextAfterCalls(receiver)
    if policy.outer_white_space == "trim":
        receiver = TrimContent(receiver, policy.max_held)
    if policy.reasoning_field == "inline":
        markers = (None, None) if fmt.reasoning is None else (fmt.reasoning.open, fmt.reasoning.close)
        opening, closing = markers
        receiver = InlineReasoning(receiver, opening or Marker("<think>\n"), closing or Marker("\n</think>\n\n"))
    if policy.unclosed_reasoning == "content":
        receiver = HoldReasoning(receiver, policy.max_held, ledger)
    return receiver


def call_policy(policy: Policy, tools: ToolSet, values: MarkupInValues) -> CallPolicy | None:
    """Return the policy that decides on whole calls; ``None`` if none is needed.

    Raises:
        ValueError: a strict policy, and an invalid schema.
    """
    if not policy.needs_whole_calls:
        return None
    return RequestCallPolicy(policy, tools, Validator(tools, strict=bool(policy.strict)), values)


class RequestCallPolicy(CallPolicy):
    """Applies the policies that need a whole call, and sets the call's status."""

    def __init__(self, policy: Policy, tools: ToolSet, validator: Validator, values: MarkupInValues) -> None:
        self._policy = policy
        self._tools = tools
        self._validator = validator
        self._values = values
        self.arguments: str = ""

    def decide(self, call: CallState, arguments: str, kept: int) -> int:
        self.arguments = arguments
        if self._policy.parallel_calls == "first" and kept:
            warn_of_call("dropped", call.name, "it is not the first call")
            return DROP
        if self._policy.parallel_calls != "all" and kept:
            return AS_CONTENT
        self._repair(call)
        known = not self._tools.known or call.name in self._tools.names
        problems = self._validator.check(call.name, self.arguments) if known else validate(self.arguments, None)
        slugs = {p.slug for p in problems}
        call.status = call_status(call, self.arguments, self._tools, self._values.find, lambda: slugs)
        decision = self._decision(call, known, malformed=bool(slugs & NOT_AN_OBJECT))
        if decision != AS_CONTENT and call.status in INVALID:
            call.reason = reason_of(call.status, problems)
            warn_of_call("kept" if decision == KEEP else "dropped", call.name, call.reason)
        return decision

    def _decision(self, call: CallState, known: bool, malformed: bool) -> int:
        """Return what the policies want with a call of this status."""
        policy = self._policy
        if not known and policy.unknown_tools != "forward":
            return AS_CONTENT if policy.unknown_tools == "content" else DROP
        if not call.whole and policy.cut_calls != "forward":
            return AS_CONTENT if policy.shows_cut_calls else DROP
        if malformed and policy.malformed_arguments == "content":
            return AS_CONTENT
        if call.status == "recovered" and policy.recovered_calls != "forward":
            if policy.recovered_calls == "content":
                return AS_CONTENT
            warn_of_call("dropped", call.name, "it is recovered, as its diagnostics say")
            return DROP
        return DROP if policy.strict and call.status in INVALID else KEEP

    def _repair(self, call: CallState) -> None:
        """Repair as much as the policy allows, and record the steps on the call."""
        policy = self._policy
        level = policy.repair
        if level == "none" and policy.malformed_arguments == "repaired":
            level = "syntax"
        if level == "none":
            return
        steps: list[str] = []
        if level == "schema" and self._tools.known and call.name not in self._tools.names:
            name = nearest_name(call.name, self._tools.names)
            if name is not None:
                steps.append("tool_name")
                call.name = name
        repaired = repair_syntax(self.arguments, cut=not call.whole)
        if repaired is not None:
            self.arguments = repaired.arguments
            steps += repaired.steps
        if level == "schema":
            tool = self._tools.get(call.name)
            repaired = repair_schema(self.arguments, None if tool is None else tool.schema)
            if repaired is not None:
                self.arguments = repaired.arguments
                steps += repaired.steps
        call.repairs = tuple(steps)
