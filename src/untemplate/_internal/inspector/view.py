"""The view of one output: its regions, its message, and its parse step by step.

The parse is short even for a long output: deltas only append, so the message after any step is a prefix of every text
of the final message. A step where a text grows like the step before it is not written again.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...format import Format
from ...formats._registry import chosen_name
from ...messages import DeltaMessage
from ..backends.call_log import no_warnings
from ..output_parser import OutputParser
from ..stream import Stream
from .advice import advice_for
from .cases import Case, open_stream, parser_for_tokens, pieces
from .splits import every_split
from .units import Units, units


def alone(parser: OutputParser, case: Case) -> dict[str, Any]:
    """Return what a page without a server shows of a case, as `one_file` takes it.

    Raises:
        ValueError: the tools are not tools.
    """
    with no_warnings():
        return {"case": msgspec.to_builtins(case), "view": view(parser, case), "splits": every_split(parser, case)}


def view(parser: OutputParser, case: Case) -> dict[str, Any]:
    """Return everything that the pages show about an output, as JSON values. Places are in UTF-16 code units.

    Raises:
        ValueError: the tools are not tools.
    """
    parser = parser_for_tokens(parser, case, parser.policy)
    stream = open_stream(parser, case)
    steps = _Steps()
    for text, ids in pieces(case):
        steps.take(stream.feed(text, ids), stream, units(text))
    steps.take(stream.finish(case.finish_reason), stream, 1)
    parsed = stream.result()
    places = Units(case.text)
    return {
        "format": _name(parser.format),
        "text": case.text,
        "special": list(parser.format.special_tokens),
        "tokens": _token_ends(case),
        "spans": [[s.kind, places.of(s.start), places.of(s.end), s.call] for s in parsed.spans],
        "message": parsed.message(reasoning_field=parser.policy.reasoning_field),
        "reasoning_field": parser.policy.reasoning_field,
        "finish_reason": parsed.finish_reason,
        "calls": [
            {
                "name": c.function.name,
                "status": c.status,
                "reason": c.reason,
                "repairs": c.repairs,
                "model_id": c.model_id,
            }
            for c in parsed.tool_calls
        ],
        "diagnostics": [
            {
                **d.model_dump(),
                "advice": advice_for(d, case.text),
                "start": places.of(d.start),
                "end": places.of(d.end),
                **_line_and_column(case.text, d.start),
            }
            for d in parsed.diagnostics
        ],
        "kinds": [list(kind) for kind in steps.kinds],
        "states": [[*state, None if held is None else places.of(held)] for *state, held in steps.states],
        "growth": steps.growth,
    }


def _name(fmt: Format) -> str:
    """Return the name by which the Format is found, or, if the catalogue does not have it, its own."""
    try:
        return chosen_name(fmt)
    except ValueError:
        return fmt.name


def _token_ends(case: Case) -> list[int]:
    ends: list[int] = []
    for _, text in case.tokens:
        ends.append((ends[-1] if ends else 0) + units(text))
    return ends


def _line_and_column(text: str, place: int) -> dict[str, int]:
    return {"line": text.count("\n", 0, place) + 1, "column": place - text.rfind("\n", 0, place)}


class _Steps:
    """Records the states of a stream and the growth of its message."""

    def __init__(self) -> None:
        self.kinds: dict[tuple[str, str, str, str], int] = {}
        """(mode, what of a call is read, state, reason for holding text back) → its number."""
        self.states: list[list[Any]] = []
        """[place, number of the kind, decided], one for each change. ``decided`` is ``None`` while nothing is held
        back."""
        self.growth: list[list[int]] = []
        """[place, field, length, steps]: each of so many steps of one code unit added one to the field."""
        self._place = 0
        self._lengths: dict[int, int] = {}
        self._runs: dict[int, list[int]] = {}

    def take(self, deltas: list[DeltaMessage], stream: Stream, size: int) -> None:
        """Record one step, after a piece of so many code units."""
        self._place += size
        for delta in deltas:
            for field, text in _added(delta):
                self._grow(field, units(text))
        self._look(stream)

    def _grow(self, field: int, added: int) -> None:
        length = self._lengths[field] = self._lengths.get(field, 0) + added
        run = self._runs.get(field)
        if run is not None and added == 1 and self._place == run[0] + run[3] and length == run[2] + run[3]:
            run[3] += 1
            return
        run = self._runs[field] = [self._place, field, length, 1]
        self.growth.append(run)

    def _look(self, stream: Stream) -> None:
        found = stream.snapshot
        if found is None:
            return
        kind = self.kinds.setdefault((found.mode, found.reader, found.state, found.why), len(self.kinds))
        state = [kind, found.decided if found.why else None]
        if not self.states or self.states[-1][1:] != state:
            self.states.append([self._place, *state])


def _added(delta: DeltaMessage) -> list[tuple[int, str]]:
    """Return the texts that a delta adds to. Fields are numbered: reasoning, content, then name and arguments of each
    call."""
    found = []
    if delta.reasoning:
        found.append((0, delta.reasoning))
    if delta.content:
        found.append((1, delta.content))
    for call in delta.tool_calls or ():
        function = call.function
        if function is not None and function.name:
            found.append((2 + 2 * call.index, function.name))
        if function is not None and function.arguments:
            found.append((3 + 2 * call.index, function.arguments))
    return found
