"""A call inside reasoning: it counts as a call only if the output ends on it.

Its events are recorded and not emitted. The machine decides whether they are replayed or forgotten.
"""

from __future__ import annotations

from typing import final

from .call_policy import AS_CONTENT, DROP, CallPolicy
from .call_state import CallState
from .events import CallRecorder, EventReceiver, emit_call
from .ledger import Ledger


@final
class ReasoningCall:
    """One or more calls in a row. Places are counted in characters from where it began."""

    def __init__(self, out: EventReceiver, first: int) -> None:
        self.out: EventReceiver = out
        """Whom it will be told to."""
        self.recorder: CallRecorder = CallRecorder()
        self.safe: int = 0
        """Where the last whole call ends."""
        self.close: int = -1
        """Where reasoning closes behind it; -1: nowhere."""
        self.after: int = 0
        """Where that close ends."""
        self._first: int = first
        self._arguments: list[str] | None = None

    def decided(self, policy: CallPolicy | None, calls: list[CallState], ledger: Ledger) -> list[CallState] | None:
        """Return all calls of the output that are kept, or None if these calls are text: one that the policy turns into
        content makes all of them text."""
        if policy is None:
            return calls
        kept: list[CallState] = calls[: self._first]
        self._arguments = []
        for call, arguments in zip(calls[self._first :], self.recorder.arguments_of_calls(), strict=True):
            verdict = policy.decide(call, arguments, len(kept))
            if verdict == AS_CONTENT:
                return None
            if verdict == DROP:
                ledger.report("dropped_call", ledger.saved, ledger.frontier)
            else:
                call.index = len(kept)
                kept.append(call)
                self._arguments.append(policy.arguments)
        return kept

    def tell(self, kept: list[CallState]) -> None:
        """It stands: says what it has said."""
        if self._arguments is None:
            self.recorder.replay(self.out)
            return
        for call, arguments in zip(kept[self._first :], self._arguments, strict=True):
            emit_call(self.out, call, arguments)
