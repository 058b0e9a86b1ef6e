"""A call inside reasoning, which may be none.

Rule of this module: what a draft says is kept back. It is told if the output ends on the draft, and forgotten if the
output goes on; which of them, the machine says.
"""

from __future__ import annotations

from typing import final

from .events import Recorder, Sink, tell_call
from .judge import AS_CONTENT, DROP, Call, Judge
from .ledger import Ledger


@final
class Draft:
    """One or more calls in a row. Places are counted in characters from where it began."""

    def __init__(self, out: Sink, first: int) -> None:
        self.out: Sink = out
        """Whom it will be told to."""
        self.recorder: Recorder = Recorder()
        self.safe: int = 0
        """Where the last whole call ends."""
        self.close: int = -1
        """Where reasoning closes behind it; -1: nowhere."""
        self.after: int = 0
        """Where that close ends."""
        self._first: int = first
        self._arguments: list[str] | None = None

    def judged(self, judge: Judge | None, calls: list[Call], ledger: Ledger) -> list[Call] | None:
        """All calls of the output that are kept, these included. One that is to be text again makes all of the draft
        text: ``None``."""
        if judge is None:
            return calls
        kept: list[Call] = calls[: self._first]
        self._arguments = []
        for call, arguments in zip(calls[self._first :], self.recorder.arguments_of_calls(), strict=True):
            verdict = judge.judge(call, arguments, len(kept))
            if verdict == AS_CONTENT:
                return None
            if verdict == DROP:
                ledger.report("dropped_call", ledger.saved, ledger.frontier)
            else:
                call.index = len(kept)
                kept.append(call)
                self._arguments.append(judge.arguments)
        return kept

    def tell(self, kept: list[Call]) -> None:
        """It stands: says what it has said."""
        if self._arguments is None:
            self.recorder.replay(self.out)
            return
        for call, arguments in zip(kept[self._first :], self._arguments, strict=True):
            tell_call(self.out, call, arguments)
