"""Tentative calls: what follows them decides if they are calls.

* Calls inside reasoning count only if no text follows them: only further calls, the close of reasoning and the end of
  the turn.
* A call whose opener comes directly after the backtick of inline code is a quotation if a backtick follows it.
* A call with words between it and a sign that opens inline code or a quotation on its line is a quotation if the sign
  that closes it follows on that line.
* A call without any marker, ``f(a=1)``, counts only if no text follows it on its line.

Their events are recorded and not emitted. The machine decides if the calls are accepted or become text again.
"""

from __future__ import annotations

from typing import Final, final

from .call_policy import AS_CONTENT, DROP, CallPolicy
from .call_state import CallState, next_index
from .events import CallRecorder, EventReceiver, emit_call
from .ledger import Ledger
from .rules import MarkerRule

# When a call inside reasoning counts.
DRAFTS_RECOVER: Final = 0
"""If no text follows it."""
DRAFTS_IMMEDIATELY: Final = 1
"""As soon as it is read."""
DRAFTS_NEVER: Final = 2

# Kinds of tentative calls.
IN_REASONING_TEXT: Final = 0
"""Inside reasoning."""
QUOTED: Final = 1
"""In content, where inline code or a quotation may hold them."""
ALONE: Final = 2
"""In content, without any marker."""


@final
class TentativeCalls:
    """One or more calls in a row. Places are counted in characters from where speculation began."""

    def __init__(self, out: EventReceiver, first: int, kind: int, closing: str) -> None:
        self.kind: int = kind
        """IN_REASONING_TEXT, QUOTED or ALONE."""
        self.closing: str = closing
        """The sign that makes them text if it follows them on their line: inline code or a quotation began before them.
        Empty if only a backtick directly after them does."""
        self.out: EventReceiver = out
        """The receiver that gets the events if the calls are accepted."""
        self.recorder: CallRecorder = CallRecorder()
        self.end_of_last_call: int = 0
        """Place of the end of the last whole call."""
        self.close_start: int = -1
        """Place of the marker that closes reasoning after the calls; -1 without one."""
        self.close_end: int = 0
        """Place of its end."""
        self.close_rule: MarkerRule | None = None
        """The rule of that marker."""
        self._first: int = first
        self._arguments: list[str] | None = None

    def decide(self, policy: CallPolicy | None, calls: list[CallState], ledger: Ledger) -> list[CallState] | None:
        """Return all calls of the output that are kept. Return None if the policy turns one of these calls into text:
        then all of them become text."""
        if policy is None:
            return calls
        kept: list[CallState] = calls[: self._first]
        self._arguments = []
        for call, arguments in zip(calls[self._first :], self.recorder.arguments_of_calls(), strict=True):
            index = next_index(kept)
            decision = policy.decide(call, arguments, index)
            if decision == AS_CONTENT:
                return None
            if decision == DROP:
                ledger.report("dropped_call", ledger.saved, ledger.frontier)
            else:
                call.index = index
                kept.append(call)
                self._arguments.append(policy.arguments)
        return kept

    def emit(self, kept: list[CallState]) -> None:
        """Emit the accepted calls: the recorded events, or what the policy has made of them."""
        if self._arguments is None:
            self.recorder.replay(self.out)
            return
        for call, arguments in zip(kept[self._first :], self._arguments, strict=True):
            emit_call(self.out, call, arguments)
