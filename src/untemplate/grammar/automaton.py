"""Free text as an automaton: which literals it may not hold, and where it ends.

There is one Aho-Corasick automaton over all literals of a :class:`~.rules.Scan`. A state lists only what may
come next, so writers that know nothing but rules and character classes (GBNF, xgrammar's EBNF) can write it down.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .rules import WS, Node, Scan, Token

__all__ = ["State", "automaton"]


@dataclass(slots=True)
class State:
    """A state: the characters that may follow. Characters in no list lead to ``other``."""

    moves: dict[int, list[str]] = field(default_factory=dict)
    """Next state → the characters that lead there."""
    dead: list[str] = field(default_factory=list)
    """Characters that would complete an excluded literal."""
    stops: list[tuple[str, Node]] = field(default_factory=list)
    """Characters that complete a stop, and what follows it."""
    other: int = 0


def automaton(scan: Scan) -> tuple[list[State], int]:
    """The states of a Scan's text and the index of the first. Stops that are tokens are left to the writer."""
    stops = {stop: then for stop, then in scan.stops if not isinstance(stop, Token)}
    # Where a token ends the text, its own text is nowhere in it.
    excludes = scan.forbidden if len(stops) < len(scan.stops) else scan.excludes
    children: list[dict[str, int]] = [{}]
    found: list[str | None] = [None]
    for literal in (*stops, *excludes):
        node = 0
        for c in literal:
            if c not in children[node]:
                children[node][c] = len(children)
                children.append({})
                found.append(None)
            node = children[node][c]
        found[node] = literal
    fail = [0] * len(children)
    leads: list[dict[str, int]] = [dict(children[0])] + [{}] * (len(children) - 1)
    order = [0]
    for node in order:
        for c, child in children[node].items():
            if node:
                fail[child] = leads[fail[node]].get(c, 0)
            # The longest literal that ends here decides: a stop with white space in front beats the bare one.
            found[child] = found[child] or found[fail[child]]
            leads[child] = {**leads[fail[child]], **children[child]}
            order.append(child)
    live = [node for node in order if found[node] is None]
    index = {node: i for i, node in enumerate(live)}
    states: list[State] = []
    for node in live:
        state = State()
        for c, target in sorted(leads[node].items()):
            literal_found = found[target]
            if literal_found is None:
                state.moves.setdefault(index[target], []).append(c)
            elif literal_found in stops:
                state.stops.append((c, stops[literal_found]))
            else:
                state.dead.append(c)
        states.append(state)
    if not scan.begins_not:
        return states, 0
    first = State()
    root = states[0]
    start = len(states)
    taken: set[str] = set()
    for target, characters in root.moves.items():
        kept = [c for c in characters if c not in scan.begins_not]
        taken.update(kept)
        if kept:
            first.moves[target] = kept
    first.dead = sorted({*root.dead, *scan.begins_not})
    first.stops = [(c, then) for c, then in root.stops if c not in scan.begins_not]
    spaces = [c for c in WS if c not in taken and c not in first.dead]
    first.moves[start] = spaces
    states.append(first)
    return states, start
