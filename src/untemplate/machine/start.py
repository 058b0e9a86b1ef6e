"""The state in which an output begins, from its prompt.

Only the text after the last turn start counts. If the Format has no turn start, only the very end of the prompt counts,
because anything before it may have been written by the user.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .events import EventReceiver
from .lexer import WS
from .machine import Machine
from .program import Program

_WINDOWS: Final = (256, 4096)
"""Characters at the end of a prompt that are searched first. A prompt for an answer ends just after a turn start."""


def start(machine: Machine, prompt: str) -> None:
    """Put the machine into the state in which the prompt ends. The caller must set its receiver again."""
    program = machine.program
    tail = turn_tail(program, prompt)
    if tail is not None:
        machine.start_turn()
        if tail:
            machine.receiver = EventReceiver()
            machine.feed(tail)
            machine.start_output()
        return
    end = prompt.rstrip(WS)
    if end.endswith(program.opened):
        machine.open_reasoning()
    elif end.endswith(program.closed):
        machine.start_turn()


def turn_tail(program: Program, prompt: str) -> str | None:
    """Return the prompt's text after its last turn start, or None if there is none or that turn has ended."""
    for size in (*_WINDOWS, len(prompt)):
        recent = prompt[-size:]
        end = _last_end(recent, program.turn_starts)
        if end >= 0 or size >= len(prompt):
            break
    tail = recent[end:] if end >= 0 else None
    if tail is not None and program.turn_end.find(tail, 0) is not None:
        return None
    return tail


def _last_end(text: str, literals: Sequence[str]) -> int:
    ends = [at + len(literal) for literal in literals if (at := text.rfind(literal)) >= 0]
    return max(ends, default=-1)
