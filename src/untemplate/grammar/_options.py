"""The options of one grammar, and the text that the parser would take for markers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from .._internal.machine import rules
from .._internal.machine.program import Program
from ._choose import ToolSelection
from ._rules import WS, Chars, JsonSchema, Repeat

__all__ = ["SPACES", "Options", "Start", "excluded", "spaces_before"]

_SPACE: Final = Chars(tuple((c, c) for c in WS))
SPACES: Final = Repeat(_SPACE, 0, 4)
"""White space that markers may have around them."""

Start = Literal["open", "closed", "off", "either"]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of one grammar, from the request."""

    selection: ToolSelection
    parallel: bool = True
    start: Start = "closed"
    """``open``: the output begins inside reasoning. ``closed``: the model may open it. ``off``: no reasoning.
    ``either``: no prompt is known, and outputs of this Format begin inside."""
    response: JsonSchema | None = None
    lazy: bool = False
    """The grammar begins where calls begin; the engine waits for its triggers."""


def spaces_before(marker: str) -> Repeat:
    """Return the white space that may stand before a marker: at least as much as its own."""
    own = len(marker) - len(marker.lstrip(WS))
    return Repeat(_SPACE, 0, max(own, SPACES.most or 0))


def excluded(program: Program, state: int, tokens: Mapping[str, int]) -> tuple[str, ...]:
    """Return the literals that the parser would take for markers in the text of a state.

    A token that ends a turn or closes calls does so anywhere; spelled as text it does so only where the output ends, or
    after a call.
    """
    text = program.states[state]
    by_id = (rules.END_TURN, rules.CLOSE_SECTION, rules.CLOSE_CALL)
    harmless = (*by_id, rules.END_TOKEN, rules.OPEN_BARE_CALLS)
    kinds = {t: text.rules[i].kind for t, i in text.literals.tags.items()}
    return tuple(t for t, kind in kinds.items() if kind not in harmless or (kind in by_id and t in tokens))
