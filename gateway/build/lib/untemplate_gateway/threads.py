"""Threads for work in Python that takes more than a few milliseconds.

* Work that is bounded by the request's body (decoding, rendering, validation) shares two threads. Work that a client
  can make long (its templates, `/parse`, the inspector) has a thread of its own, so that no other work waits for it.
* Owners (API keys, or addresses where there are no keys) take turns: one with many long requests delays another one by
  the work that runs.
* When a client leaves, its waiting work is dropped, and its running work ends at the next call of `go_on`. What runs in
  another process is stopped at once (`stopped_by`).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Final, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from .engines.admission import Turns

_P = ParamSpec("_P")
_T = TypeVar("_T")
_POOL: Final = ThreadPoolExecutor(2, "untemplate-work")
"""Few: each thread that computes delays the event loop, and more of them do not compute faster."""
_SLOW: Final = ThreadPoolExecutor(1, "untemplate-slow-work")
_WAITING: Final = ThreadPoolExecutor(2, "untemplate-waiting")
"""For work of processes."""
_turns: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, dict[ThreadPoolExecutor, Turns]]] = WeakKeyDictionary()
"""The turns of each event loop at the threads."""


class Abandoned(Exception):
    """Nobody waits for the result of this work any more."""


class _Work:
    """Work in a thread, and the client that waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stop: Callable[[], None] | None = None
        self.left = False

    def leave(self) -> None:
        """Nobody waits for the result any more."""
        with self._lock:
            self.left = True
            if self._stop is not None:
                self._stop()

    def stop_with(self, stop: Callable[[], None] | None) -> None:
        """Call a function when the client leaves, or no longer."""
        with self._lock:
            self._stop = stop


work_here: Final[ContextVar[_Work | None]] = ContextVar("untemplate_work", default=None)
"""The work that runs in this thread; ``None`` in all other threads."""


def go_on() -> None:
    """Continue the work that runs in this thread.

    Raises:
        Abandoned: its client has left.
    """
    work = work_here.get()
    if work is not None and work.left:
        raise Abandoned


@contextmanager
def stopped_by(stop: Callable[[], None]) -> Iterator[None]:
    """Call a function, from another thread, if the client leaves meanwhile.

    Raises:
        Abandoned: the client has left.
    """
    work = work_here.get()
    if work is None:
        yield
        return
    work.stop_with(stop)
    try:
        go_on()
        yield
    except Exception:
        go_on()
        raise
    finally:
        work.stop_with(None)


async def in_thread(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call a function in one of a few threads shared by all requests, and return its result."""
    return await _run(_POOL, partial(function, *args, **kwargs))


async def in_slow_thread(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call a function that may take seconds: reading a client's template. Requests without such work do not wait."""
    return await _run(_SLOW, partial(function, *args, **kwargs))


async def for_process(ask: Callable[[bytes], bytes], job: bytes, seconds: float) -> bytes:
    """Return the answer of `Workers`.

    Raises:
        TimeoutError: it takes too long. The time in which other work runs does not count.
    """
    return await _run(_WAITING, partial(ask, job), seconds)


async def _run(pool: ThreadPoolExecutor, function: Callable[[], _T], seconds: float | None = None) -> _T:
    loop = asyncio.get_running_loop()
    turns = _turns.setdefault(loop, {_POOL: Turns(2), _SLOW: Turns(1), _WAITING: Turns(2)})[pool]
    work = _Work()
    context = copy_context()
    context.run(work_here.set, work)
    with await turns.reserve():
        try:
            async with asyncio.timeout(seconds):
                return await loop.run_in_executor(pool, context.run, function)
        finally:
            work.leave()
