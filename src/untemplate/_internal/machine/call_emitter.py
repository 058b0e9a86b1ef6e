"""Emits calls as they are read, and asks the call policy about whole ones.

* A call commits with ``begin_call``. From then on its arguments go to the receiver as they come.
* With a call policy the call is held back until it is closed. Then it is emitted at once, dropped, or becomes text.
* A tentative call is not held back: its events are recorded anyway, and the policy decides when they are accepted.
"""

from __future__ import annotations

from typing import final

from .call_policy import AS_CONTENT, DROP
from .call_state import CUT, CallState
from .context import ReaderContext
from .events import emit_call
from .growing import NO_TEXTS, grown
from .ids import IdFactory, new_id
from .ledger import DROPPED
from .program import IN_REASONING
from .tentative_calls import IN_REASONING_TEXT
from .text_writer import TextWriter


@final
class CallEmitter:
    """Emits the calls of one output."""

    def __init__(
        self, context: ReaderContext, text: TextWriter, make_id: IdFactory | None, seed: bytes, calls_before: int
    ) -> None:
        self._context: ReaderContext = context
        self._text: TextWriter = text
        self._make_id: IdFactory | None = make_id
        """The caller's; None: ids are made as the Program names."""
        self._seed: bytes = seed
        self._calls_before: int = calls_before
        """Calls in the history; ids are numbered after them."""

    def begin_call(self, name: str, call_id: str) -> None:
        """Commit a call: its name is complete, and a legal continuation follows."""
        context = self._context
        calls = context.calls
        index = calls[-1].index + 1 if calls else 0
        if not call_id:
            number = self._calls_before + index
            make_id = self._make_id
            call_id = make_id(name, number) if make_id else new_id(context.program.ids, self._seed, name, number)
        context.calls = grown(calls, CallState(index, call_id, name, context.ledger.frontier))
        if context.tentative is None:
            if context.call_policy is not None:
                context.held_arguments = []
                context.spaces = NO_TEXTS
                return
            context.speculation.end()
            context.spaces = NO_TEXTS
            program = context.program
            if context.state is not program.states[program.content]:
                self._leave_reasoning()
        elif context.tentative.kind != IN_REASONING_TEXT:
            context.spaces = NO_TEXTS
        context.receiver.call_start(index, call_id, name)

    def end_call(self, ending: int, recovered: bool) -> None:
        """End the arguments. ``ending``: CUT, WHOLE or VALID; ``recovered``: a part of the call was ended, dropped or
        read again."""
        context = self._context
        call = context.calls[-1]
        call.ending = ending
        call.recovered = recovered
        call.end = context.base + context.cur.pos
        if ending != CUT and context.held_arguments is None:
            context.receiver.call_end(call.index)

    def close_call(self) -> bool:
        """End the call after its closer, and do with a held call what the call policy decides. Return True if it has
        become text."""
        context = self._context
        if context.tentative is not None:
            context.mark_closed()
            context.tentative.end_of_last_call = context.speculation.length(context.cur)
        policy = context.call_policy
        held = context.held_arguments
        if policy is None or held is None:
            return False
        call = context.calls[-1]
        decision = policy.decide(call, "".join(held), call.index)
        if decision == AS_CONTENT:
            raw = context.speculation.raw(context.cur)
            context.undo_speculation()
            self._leave_reasoning()
            self._text.has_policy_text = True
            self._text.emit_trimmed(raw, context.base + context.cur.pos)
            return True
        context.mark_closed()
        context.held_arguments = None
        context.end_speculation()
        self._leave_reasoning()
        if decision == DROP:
            context.calls.pop()
            context.ledger.change_all(DROPPED)
            context.ledger.report("dropped_call", context.ledger.saved, context.ledger.frontier)
        else:
            emit_call(context.receiver, call, policy.arguments)
        return False

    def _leave_reasoning(self) -> None:
        """A call ends reasoning."""
        context = self._context
        if context.state.region == IN_REASONING:
            context.receiver.reasoning_end()
        context.state = context.program.states[context.program.content]
