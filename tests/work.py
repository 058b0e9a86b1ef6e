"""Count work instead of timing it: counts are the same on every machine, however busy it is.

Function calls are counted quickly, lines more finely. The work inside a built-in function is not counted; benchmarks
time it.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any


def function_calls(work: Callable[[], object]) -> int:
    """Return the number of calls, of Python functions and built-in ones, that some work makes in this thread."""
    return _counted(work, sys.getprofile, sys.setprofile, ("call", "c_call"))


def lines_run(work: Callable[[], object]) -> int:
    """Return the number of lines of Python that some work runs in this thread."""
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


def bytes_copied(work: Callable[[], object]) -> int:
    """Return about how many bytes some work allocates: text that is copied, even if it is dropped at once.

    Between two calls, of Python functions or built-in ones, the most that was allocated at once counts.
    """
    total = 0
    last = 0
    traced, peak_again = tracemalloc.get_traced_memory, tracemalloc.reset_peak

    def seen(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal total, last
        now, peak = traced()
        total += max(peak - last, 0)
        peak_again()
        last = now

    before = sys.getprofile()
    tracemalloc.start()
    try:
        peak_again()
        last = traced()[0]
        sys.setprofile(seen)
        try:
            work()
        finally:
            sys.setprofile(before)
    finally:
        tracemalloc.stop()
    return total
