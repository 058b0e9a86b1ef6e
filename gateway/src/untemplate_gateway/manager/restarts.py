"""Engines that have ended by themselves are started again by the next request.

* All requests that come in the meantime wait for the same start; a client that leaves does not stop it.
* A start that fails is not tried again at once.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from typing import Final

from ..engines.base import Engine
from ..errors import ApiError, not_loaded
from .model import Model

_log: Final = logging.getLogger("untemplate.gateway.manager")
_AGAIN: Final = 10.0
"""Seconds after a failed start before the next attempt."""


class Restarts:
    """The restarts of the engines of one manager."""

    def __init__(self) -> None:
        self._tasks: dict[Engine, asyncio.Task[None]] = {}
        self._failed: dict[Engine, float] = {}
        """Time of the last failed start."""

    def needs(self, engine: Engine) -> bool:
        """True if the engine does not run: requests for it must `wait`."""
        return engine in self._tasks or engine in self._failed or bool(engine.ended())

    async def wait(self, model: Model) -> None:
        """Wait until the engine of a model has been started again.

        Raises:
            ApiError: 503: it could not be started; the log has the reason.
        """
        task = self.begin(model)
        if task is not None:
            await asyncio.wait((task,))
        if model.engine in self._failed:
            raise not_loaded(model.name)

    def begin(self, model: Model) -> asyncio.Task[None] | None:
        """Start the engine of a model again, unless it runs or a start has just failed. Return the task that does."""
        engine = model.engine
        if engine in self._tasks:
            return self._tasks[engine]
        if engine in self._failed and time.monotonic() - self._failed[engine] < _AGAIN:
            return None
        if engine not in self._failed and not engine.ended():
            return None
        # In a context of its own: the engine outlives the request.
        task = asyncio.get_running_loop().create_task(self._start(model), context=contextvars.Context())
        self._tasks[engine] = task
        task.add_done_callback(lambda _: self._tasks.pop(engine, None))
        return task

    async def _start(self, model: Model) -> None:
        engine, begun = model.engine, time.monotonic()
        _log.error("model %s: %s; it is started again", model.name, engine.ended() or "the engine does not run")
        try:
            await engine.close()
            await engine.start()
        except Exception as error:
            self._failed[engine] = time.monotonic()
            reason = error.detail or error.message if isinstance(error, ApiError) else error
            _log.error("model %s: could not be started again: %s", model.name, reason)
            await engine.close()
        else:
            self._failed.pop(engine, None)
            _log.info("model %s ready again (%.1f s)", model.name, time.monotonic() - begun)

    async def end(self, engine: Engine) -> None:
        """Forget an engine that is about to be closed. A start is cancelled."""
        self._failed.pop(engine, None)
        task = self._tasks.get(engine)
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))
