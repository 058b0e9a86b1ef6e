"""Work that requests wait for together: the load of a model, the restart of an engine.

It has a task of its own, which a client that leaves does not stop. After a failure it is not tried again at once.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Final

from ..errors import ApiError, not_loaded

_log: Final = logging.getLogger("untemplate.gateway.manager")
_AGAIN: Final = 10.0
"""Seconds after a failure before the next attempt."""

Work = Callable[[], Coroutine[Any, Any, None]]


class Attempts:
    """The attempts of one manager, each by its key."""

    def __init__(self) -> None:
        self.states: dict[Hashable, asyncio.Task[None] | float] = {}
        """The task of an attempt that runs, or the time at which the last one failed."""

    def begin(self, key: Hashable, model: str, what: str, work: Work) -> asyncio.Task[None] | None:
        """Return the attempt that runs, or a new one; ``None`` if the last one has just failed.

        Args:
            model: name of the model, for messages.
            what: what could not be done, if it fails: ``loaded``.
        """
        state = self.states.get(key)
        if isinstance(state, asyncio.Task):
            return state
        if state is not None and time.monotonic() - state < _AGAIN:
            return None
        # In a context of its own: the model outlives the request.
        attempt = self._attempt(key, model, what, work)
        task = asyncio.get_running_loop().create_task(attempt, context=contextvars.Context())
        task.add_done_callback(partial(self._ended, key))
        self.states[key] = task
        return task

    async def wait(self, key: Hashable, model: str, what: str, work: Work) -> None:
        """Wait for an attempt, which may be cancelled meanwhile. The arguments are those of `begin`.

        Raises:
            ApiError: 503: it failed; the log has the reason.
        """
        task = self.begin(key, model, what, work)
        if task is None:
            raise not_loaded(model)
        await asyncio.wait((task,))
        if not task.cancelled():
            task.result()

    async def _attempt(self, key: Hashable, model: str, what: str, work: Work) -> None:
        try:
            await work()
        except Exception as error:
            if isinstance(error, ApiError) and error.code in ("shutting_down", "models_busy"):
                raise
            _log.error("model %s: could not be %s: %s", model, what, getattr(error, "detail", "") or error)
            self.states[key] = time.monotonic()
            raise not_loaded(model) from None

    def _ended(self, key: Hashable, task: asyncio.Task[None]) -> None:
        if self.states.get(key) is task:
            del self.states[key]
        if not task.cancelled():
            task.exception()  # every request that waited may have gone

    def cancel(self, key: Hashable) -> asyncio.Task[None] | None:
        """Forget an attempt and its failure. Return its task, cancelled, if it still runs."""
        state = self.states.pop(key, None)
        if isinstance(state, asyncio.Task):
            state.cancel()
            return state
        return None
