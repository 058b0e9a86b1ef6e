"""Work that takes more than a few milliseconds, off the event loop.

* Work that is bounded by the request's body (decoding, rendering, validation) shares two threads. Work that a client
  can make long (`/parse`, the inspector) has a thread of its own. Each kind has one thread more, for an owner that has
  no running work. Grammars, large prompts and clients' templates have worker processes, each kind its own.
* Each kind has a queue, and its work a price: the bytes of the request. Owners (API keys, or addresses where there are
  no keys) take turns by it. One with many long requests delays another one by the work that runs.
* All work of one request together may take `BUDGET` seconds.
* When a client leaves, its waiting work is dropped, and its running work ends at the next call of `go_on`. What runs in
  another process is stopped at once (`stopped_by`). The turn of work ends with the thread's work, not with the client.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Final, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from .engines.admission import Turns
from .errors import ApiError
from .request_context import current

_P = ParamSpec("_P")
_T = TypeVar("_T")
BUDGET: Final = 60.0
"""Most seconds of work for one request, on a busy machine too. Waiting for other work does not count."""


class Kind:
    """A kind of work.

    Args:
        places: how much of it runs at a time, and one more of an owner without any. Few: each thread that computes
            delays the event loop, and more of them do not compute faster.
        name: of its threads.
    """

    def __init__(self, places: int, name: str) -> None:
        self.places = places
        self.pool = ThreadPoolExecutor(places + 1, name)
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = WeakKeyDictionary()

    def turns(self) -> Turns:
        """Return the turns of the running event loop at this work."""
        return self._turns.setdefault(asyncio.get_running_loop(), Turns(self.places))


_BOUNDED: Final = Kind(2, "untemplate-work")
_SLOW: Final = Kind(1, "untemplate-slow-work")


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
    return await work(_BOUNDED, partial(function, *args, **kwargs))


async def in_slow_thread(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call a function that may take seconds: reading a client's template. Requests without such work do not wait."""
    return await work(_SLOW, partial(function, *args, **kwargs))


async def work(kind: Kind, function: Callable[[], _T], seconds: float = BUDGET) -> _T:
    """Call a function in a thread, when its owner's turn has come. It runs in a copy of this context.

    Raises:
        TimeoutError: it takes longer than so many seconds.
        ApiError: 413: all work of this request together takes too long.
    """
    loop, request, here = asyncio.get_running_loop(), current.get(), _Work()
    context = copy_context()
    context.run(work_here.set, here)
    turn = await kind.turns().reserve(price=1 if request is None else request.size)
    begun, left = loop.time(), BUDGET if request is None else BUDGET - request.worked
    running = kind.pool.submit(context.run, function)

    def ended(_: object) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(turn.end)

    running.add_done_callback(ended)
    try:
        async with asyncio.timeout(min(seconds, left)):
            return await asyncio.wrap_future(running)
    except TimeoutError:
        if seconds < left:
            raise
        problem = f"the request needs more than {BUDGET:g} seconds of work before an engine is asked"
        raise ApiError(413, problem, code="request_too_large") from None
    finally:
        del running  # its error refers to this frame
        here.leave()
        if request is not None:
            request.worked += loop.time() - begun
