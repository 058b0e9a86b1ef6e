"""The state in which an output begins, from its prompt.

Only the text after the last turn start counts. If the Format has no turn start, only the very end of the prompt counts,
because anything before it may have been written by the user.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from .events import EventReceiver
from .lexer import WS
from .machine import Machine
from .program import Program

_WINDOWS: Final = (256, 4096)
"""Characters at the end of a prompt that are searched first. A prompt for an answer ends just after a turn start."""
_PART: Final = 6
"""Length of the texts that turn starts are grouped by: long enough to be rare."""
_MOST_SPACE: Final = 1_024
"""Characters at the end of a prompt in which its last marker is looked for. No template writes more white space."""


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
    end = prompt[-_MOST_SPACE:].rstrip(WS)
    if end.endswith(program.opened):
        machine.open_reasoning()
    elif end.endswith(program.closed):
        machine.start_turn()


def turn_tail(program: Program, prompt: str) -> str | None:
    """Return the prompt's text after its last turn start, or None if the prompt has none, or if it has ended."""
    for size in (*_WINDOWS, len(prompt)):
        recent = prompt[-size:]
        end = _last_end(recent, program.turn_starts)
        if end >= 0 or size >= len(prompt):
            break
    tail = recent[end:] if end >= 0 else None
    if not tail:
        return tail
    if program.turn_end.pattern.search(tail) is not None:
        return None
    if program.start_in_output and not tail.strip(WS).startswith((*program.opened, *program.closed)):
        return "" if not tail.strip(WS) else None
    return tail


def _last_end(text: str, literals: tuple[str, ...]) -> int:
    last = -1
    for sign, sharing in _shared_parts(literals, 1):
        if sign not in text:
            continue
        for part, alike in _shared_parts(sharing, _PART):
            if text.rfind(part) >= 0:  # faster than `in` in long texts
                last = max(last, *(at + len(one) for one in alike if (at := text.rfind(one)) >= 0), -1)
    return last


@lru_cache
def _shared_parts(literals: tuple[str, ...], size: int) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Group literals by a text of ``size`` characters that they share; one that shares none is a group of its own.

    Most turn starts share ``assistant``: a prompt without it has none of them.
    """
    left = list(literals)
    groups: list[tuple[str, tuple[str, ...]]] = []
    while left:
        counts: dict[str, int] = {}
        for literal in left:
            parts = dict.fromkeys(literal[i : i + size] for i in range(max(len(literal) - size, 0) + 1))
            for part in parts:
                if size > 1 or not part.isalnum():  # prose holds every letter
                    counts[part] = counts.get(part, 0) + 1
        part = max(counts, key=lambda found: counts[found], default=left[0])
        sharing = tuple(literal for literal in left if part in literal)
        groups.append((part if len(sharing) > 1 or size == 1 else sharing[0], sharing))
        left = [literal for literal in left if part not in literal]
    return tuple(groups)
