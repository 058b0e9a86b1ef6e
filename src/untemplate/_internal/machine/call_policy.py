"""The decision on a whole call: keep it, drop it, or turn it into text.

A machine without a call policy streams every call. One with a call policy holds each call back until it is whole, asks
the policy, and then emits the call at once.
"""

from __future__ import annotations

from typing import Final

from .call_state import CallState
from .mypyc_compat import mypyc_attr

# Decisions on a call.
KEEP: Final = 0
DROP: Final = 1
AS_CONTENT: Final = 2


@mypyc_attr(allow_interpreted_subclasses=True)
class CallPolicy:
    """Decides what becomes of whole calls."""

    arguments: str
    """The arguments to emit, set by ``decide``."""

    def decide(self, call: CallState, arguments: str, kept: int) -> int:
        """Return KEEP, DROP or AS_CONTENT, and set ``self.arguments``. May change the call. ``kept``: number of calls
        of this output that were kept before."""
        self.arguments = arguments
        return KEEP
