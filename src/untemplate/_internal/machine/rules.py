"""The rules of markers in free text: what a marker does, and where it counts.

The readers use the constants with the name of this module: ``rules.OPEN_CALLS``. mypyc replaces each by its value.
"""

from __future__ import annotations

from typing import Final, final

from .call_syntax import CallSyntax

# What a rule does with its marker.
ENTER_STATE: Final = 0
"""Enter another state, and emit the rule's events (only in hand-written configs)."""
OPEN_REASONING: Final = 1
CLOSE_REASONING: Final = 2
OPEN_WRAP: Final = 3
CLOSE_WRAP: Final = 4
END_TURN: Final = 5
OPEN_CALLS: Final = 6
OPEN_BARE_CALLS: Final = 7
"""Calls without a marker: only where content begins."""
CLOSE_SECTION: Final = 8
CLOSE_CALL: Final = 9
OPEN_HEADER: Final = 10
CLOSE_MESSAGE: Final = 11
CALL_TEXT: Final = 12
"""A marker of calls where calls are text, if its closer or a part of it has another meaning as well."""
END_TOKEN: Final = 13
"""A special token that counts only at the end of the output, where it is dropped."""
OPEN_TURN: Final = 14
"""The start of the turn, which counts once, where the output begins."""

# Where a marker counts, and what it is a part of.
ANYWHERE: Final = 0
AT_START: Final = 1
"""OPEN_WRAP, OPEN_TURN, and CLOSE_REASONING that is a sentence of prose: only at the start."""
IN_SECTION: Final = 2
"""OPEN_CALLS: only in an open section."""
IN_HEADER: Final = 3
"""OPEN_HEADER: the literal is part of the header, which is then read from it on."""
ON_ITS_LINE: Final = 4
"""OPEN_BARE_CALLS: the calls have no marker at all, so that text on their line makes them text."""
ON_ANY_LINE: Final = 5
"""The same; such a call may also follow another one, on a line of its own."""


@final
class MarkerRule:
    """The action at a marker in free text."""

    def __init__(self, kind: int, next_state: int = 0, place: int = ANYWHERE, closers: int = 0) -> None:
        self.kind: int = kind
        self.next_state: int = next_state
        """ENTER_STATE: index of the state that comes next."""
        self.closers: int = closers
        """CALL_TEXT: 1 if its closer is text, too."""
        self.place: int = place
        """Where the marker counts: ANYWHERE and so on."""
        self.missing_section: str = ""
        """OPEN_CALLS: the opener of the section that should be around these calls, if it has a special token. Models
        leave it out: then calls of offered tools are read, and reported. Where ids are in use, the opener's would have
        come, so that this is text."""
        self.events: tuple[int, ...] = ()
        """ENTER_STATE: the events to emit, as numbers that only the ConfigEvents know."""
        self.needs_id: int = 0
        """ENTER_STATE: 1 if the literal counts only by its id once ids are in use, 2 if it counts only by its id."""
        self.entries: list[tuple[CallSyntax, int]] = []
        """OPEN_CALLS: the call syntaxes that may begin here, best first, each with its entry (ENTRY_*)."""
        self.ambiguous: bool = False
        """OPEN_CALLS: True if prose may hold the opener too. Then the tool must be an offered one, and if the tools are
        unknown, the opener must be at the start."""
        self.space_before: str = ""
        """White space that the Format writes before the marker."""
        self.space_after: str = ""
        """White space that the Format writes after the marker."""
