"""Threads for work in Python that takes more than a few milliseconds.

* Work that is bounded by the request's body (decoding, rendering, validation) shares two threads. Work that a client
  can make long (its templates, `/parse`, the inspector) has a thread of its own, so that no other work waits for it.
* When a client leaves, its waiting work is dropped, and its running work ends at the next call of `go_on`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Final, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
_POOL: Final = ThreadPoolExecutor(2, "untemplate-work")
"""Few: each thread that computes delays the event loop, and more of them do not compute faster."""
_SLOW: Final = ThreadPoolExecutor(1, "untemplate-slow-work")
_left: Final[ContextVar[threading.Event | None]] = ContextVar("untemplate_left", default=None)
"""Set when nobody waits for the result of the running work any more."""


class Abandoned(Exception):
    """Nobody waits for the result of this work any more."""


def go_on() -> None:
    """Continue the work that runs in this thread.

    Raises:
        Abandoned: its client has left.
    """
    left = _left.get()
    if left is not None and left.is_set():
        raise Abandoned


async def in_thread(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call a function in one of a few threads shared by all requests, and return its result."""
    return await _run(_POOL, partial(function, *args, **kwargs))


async def in_slow_thread(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call a function that may take seconds: reading a client's template. Requests without such work do not wait."""
    return await _run(_SLOW, partial(function, *args, **kwargs))


async def _run(pool: ThreadPoolExecutor, work: Callable[[], _T]) -> _T:
    left = threading.Event()
    context = copy_context()
    context.run(_left.set, left)
    try:
        return await asyncio.get_running_loop().run_in_executor(pool, context.run, work)
    finally:
        left.set()
