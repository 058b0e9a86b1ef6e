"""Work that is counted instead of timed: the same on every machine, however busy it is.

Calls are counted quickly, lines more finely. What one built-in call does inside is not seen: benchmarks time that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def function_calls(work: Callable[[], object]) -> int:
    """How many calls, of Python functions and of built-in ones, some work takes in this thread."""
    return _counted(work, sys.getprofile, sys.setprofile, ("call", "c_call"))


def lines_run(work: Callable[[], object]) -> int:
    """How many lines of Python some work runs in this thread."""
    return _counted(work, sys.gettrace, sys.settrace, ("line",))


def _counted(work: Callable[[], object], get: Callable[[], Any], put: Callable[[Any], None], what: Any) -> int:
    count = 0

    def seen(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event in what
        return seen

    before = get()
    put(seen)
    try:
        work()
    finally:
        put(before)
    return count
