"""Describe the place of a machine in its output, for people who look at a parse step by step."""

from __future__ import annotations

from typing import Final, final

from .calls import PHASES
from .lexer import WS
from .machine import Machine
from .modes import MODES, READ_CALL, READ_HEADER, READ_HEADER_START, READ_TEXT, READ_TURN_END
from .tentative_calls import IN_REASONING_TEXT

_WHY: Final = {
    READ_TEXT: "a marker may begin here",
    READ_CALL: "a marker of the call, or a value that is converted when it ends",
    READ_TURN_END: "the turn may end here, if nothing follows",
    READ_HEADER_START: "white space before a message header",
    READ_HEADER: "a message header is not complete",
}


@final
class Snapshot:
    """The place of a machine in its output, and the text that it holds back."""

    def __init__(self, mode: str, reader: str, state: str, decided: int, why: str) -> None:
        self.mode: str = mode
        """The mode, by the name in ``modes.py``."""
        self.reader: str = reader
        """In a call: what of it is read."""
        self.state: str = state
        """The state of free text, or the path of the call syntax."""
        self.decided: int = decided
        """Number of characters of the output of which it is decided what they are."""
        self.why: str = why
        """The reason for holding back the text after them; empty if none is held back."""


def snapshot(machine: Machine) -> Snapshot:
    """Return the place of a machine in its output."""
    machine.settle()
    mode = machine._mode
    calls = machine._calls
    in_call = mode == READ_CALL and calls is not None
    decided = machine.ledger.saved if machine.speculation.active else machine.ledger.frontier
    return Snapshot(
        MODES[mode][0],
        PHASES[calls.phase] if in_call and calls is not None else "",
        calls.group.syntax.path if in_call and calls is not None else machine.state.name,
        decided,
        _why(machine, mode) if decided < machine.base + len(machine.cur.text) else "",
    )


def _why(machine: Machine, mode: int) -> str:
    """Return the reason for holding back text."""
    if machine.tentative is not None:
        if machine.tentative.kind != IN_REASONING_TEXT:
            return "a call after a backtick: the character after it decides if it is a quotation"
        return "a call inside reasoning: what follows it decides if it counts"
    if machine.held_arguments is not None:
        return "a policy decides on the call when it has ended"
    if mode == READ_CALL and machine.speculation.active:
        return "a call may begin here: its name is not complete"
    if (machine.spaces or machine.cur.text) and not machine.cur.text.strip(WS):
        return "white space belongs to what follows it"
    return _WHY.get(mode, "")
