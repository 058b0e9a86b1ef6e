"""Count work instead of timing it: counts are the same on every machine, however busy it is.

Function calls are counted quickly, lines more finely. The work inside a built-in function is not counted; benchmarks
time it.
"""

from __future__ import annotations

import cProfile
import gc
import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any


def function_calls(work: Callable[[], object]) -> int:
    """Return the number of calls, of Python functions and built-in ones, that some work makes in this thread."""
    before = sys.getprofile()
    sys.setprofile(None)  # it may be one of ours: Python 3.12 and later allow one at a time
    profile = cProfile.Profile()
    gc.disable()  # what a collection of garbage calls is not a part of the work
    try:
        profile.runcall(work)
    finally:
        gc.enable()
        sys.setprofile(before)
    return sum(entry.callcount for entry in profile.getstats()) - 1  # without the end of the profile itself


def lines_run(work: Callable[[], object]) -> int:
    """Return the number of lines of Python that some work runs in this thread."""
    count = 0

    def seen(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return seen

    before = sys.gettrace()
    sys.settrace(seen)
    try:
        work()
    finally:
        sys.settrace(before)
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
