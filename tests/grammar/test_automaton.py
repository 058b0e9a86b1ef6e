"""The automaton of free text takes exactly the texts that a Scan describes."""

from __future__ import annotations

from itertools import product

import pytest

from untemplate.grammar._automaton import automaton
from untemplate.grammar._rules import EMPTY, WS, Scan


def taken(scan: Scan, text: str) -> bool:
    """Return whether the automaton takes a text whole, and the text may end there."""
    states, here = automaton(scan)
    for at, c in enumerate(text):
        state = states[here]
        if c in state.dead:
            return False
        if any(c == letter for letter, _ in state.stops):
            return at == len(text) - 1
        here = next((target for target, letters in state.moves.items() if c in letters), state.other)
    return scan.ends


def described(scan: Scan, text: str) -> bool:
    """The same, from the meaning of the fields."""
    stops = [stop for stop, _ in scan.stops if isinstance(stop, str)]
    ends = [at + len(stop) for stop in stops for at in range(len(text)) if text.startswith(stop, at)]
    if ends and min(ends) != len(text):
        return False
    return (
        (bool(ends) or scan.ends)
        and not any(literal in text for literal in scan.excludes)
        and not any(text.lstrip(WS).startswith(head) for head in scan.heads)
    )


@pytest.mark.parametrize(
    "scan",
    [
        Scan(("ba",), ends=True),
        Scan(("ba",), ends=True, begins_not="a"),
        Scan(("ba", "\na"), ends=True, begins_not="b"),
        Scan((), ends=True, begins_not_with=("ab", "aab")),
        Scan(("bb",), (("\na", EMPTY),), ends=True, begins_not_with=("aba",)),
        Scan(("aa",), (("bb", EMPTY),), begins_not="a", begins_not_with=("ba",)),
        Scan((" b",), (("ba", EMPTY),), ends=True, begins_not_with=("a b", "bba")),
    ],
)
def test_it_takes_what_the_scan_describes(scan: Scan) -> None:
    for size in range(8):
        for letters in product("ab \n", repeat=size):
            text = "".join(letters)
            assert taken(scan, text) == described(scan, text), text
