"""What becomes of a whole call, where somebody wants a say.

Rule of this module: a machine without a policy streams every call; one with a policy keeps each call back until it is
whole, and then does what the policy says, in one go.
"""

from __future__ import annotations

from typing import Final, final

from .compiled import mypyc_attr

KEEP: Final = 0
DROP: Final = 1
AS_CONTENT: Final = 2


@final
class CallState:
    """What is known of one call, its arguments aside."""

    def __init__(self, index: int, call_id: str, name: str) -> None:
        self.index: int = index
        self.id: str = call_id
        self.name: str = name
        self.model_id: str = ""
        self.start: int = 0
        """Where it committed, in characters of the output."""
        self.end: int = 0
        """Where its arguments ended."""
        self.whole: bool = False
        """Whether its arguments have ended."""
        self.valid: bool = False
        """Whether they are known to be JSON; False: not looked at."""
        self.status: str = ""
        """What a policy found; empty: nothing was asked."""
        self.repairs: tuple[str, ...] = ()
        """What a policy mended."""


@mypyc_attr(allow_interpreted_subclasses=True)
class CallPolicy:
    """Decides on calls."""

    def decide(self, call: CallState, arguments: str, kept: int) -> int:
        """KEEP, DROP or AS_CONTENT. May change the call, and sets ``arguments`` to what is to be sent. ``kept``: calls
        of this output that have been kept before."""
        self.arguments: str = arguments
        return KEEP
