"""Free text as an automaton: which literals it may not hold, and where it ends.

There is one Aho-Corasick automaton over all literals of a :class:`~._rules.Scan`. A state lists only what may
come next, so writers that know nothing but rules and character classes (GBNF, xgrammar's EBNF) can write it down.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ._rules import WS, Node, Scan, Token

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
    found, leads, order = _match((*stops, *excludes))
    live = [node for node in order if found[node] is None]
    index = {node: i for i, node in enumerate(live)}
    states: list[State] = []
    for node in live:
        state = State()
        for c, target in sorted(leads[node].items()):
            literal = found[target]
            if literal is None:
                state.moves.setdefault(index[target], []).append(c)
            elif literal in stops:
                state.stops.append((c, stops[literal]))
            else:
                state.dead.append(c)
        states.append(state)
    return (states, _before_text(states, scan.heads)) if scan.heads else (states, 0)


def _match(literals: Iterable[str]) -> tuple[list[str | None], list[dict[str, int]], list[int]]:
    """Return the automaton that finds the literals (Aho and Corasick, 1975).

    Returns:
        The literal that ends at each node, where each node leads, and the nodes from the shortest text to the longest.
    """
    children: list[dict[str, int]] = [{}]
    found: list[str | None] = [None]
    for literal in literals:
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
    return found, leads, order


def _before_text(states: list[State], heads: tuple[str, ...]) -> int:
    """Add states for the beginning of a text that may not begin with some literals, white space aside. Return the index
    of the first. Each stands for a state of the text and for how much of a literal has been read."""
    wholes = set(heads)
    begun = {head[:size] for head in heads for size in range(len(head))}
    places: dict[tuple[int, str], int] = {}
    waiting: list[tuple[int, str]] = []

    def place(key: tuple[int, str]) -> int:
        if key not in places:
            places[key] = len(states)
            states.append(State())
            waiting.append(key)
        return places[key]

    start = place((0, ""))
    while waiting:
        key = waiting.pop()
        text, read = key
        state, old = states[places[key]], states[text]
        targets = {c: target for target, characters in old.moves.items() for c in characters}
        further = {head[len(read)] for head in heads if head.startswith(read)}
        state.dead = sorted({*old.dead, *(c for c in further if read + c in wholes)})
        state.stops = [(c, then) for c, then in old.stops if c not in state.dead]
        ended = {*state.dead, *(c for c, _ in state.stops)}
        for c in sorted({*targets, *further, *(WS if not read else "")} - ended):
            target = targets.get(c, 0)
            if read + c in begun:
                target = place((target, read + c))
            elif not read and c in WS:
                target = place((target, ""))
            if target:
                state.moves.setdefault(target, []).append(c)
    return start
