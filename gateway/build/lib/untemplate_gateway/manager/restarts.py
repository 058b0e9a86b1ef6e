"""Engines that have ended by themselves are started again by the next request.

All requests that come in the meantime wait for the same start, which a client that leaves does not stop. A start that
fails is not tried again at once.
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
    """The starts of one manager's engines."""

    def __init__(self) -> None:
        self.states: dict[Engine, asyncio.Task[None] | float] = {}
        """Engines that do not run: the task that starts one again, or the time at which that failed."""

    async def wait(self, model: Model) -> None:
        """Wait until the engine of a model has been started again.

        Raises:
            ApiError: 503: it could not be started; the log has the reason.
        """
        task = self.begin(model)
        if task is not None:
            await asyncio.wait((task,))
        if isinstance(self.states.get(model.engine), float):
            raise not_loaded(model.name)

    def begin(self, model: Model) -> asyncio.Task[None] | None:
        """Start the engine of a model again, unless it runs or a start has just failed. Return the task that does."""
        engine = model.engine
        state = self.states.get(engine)
        if isinstance(state, asyncio.Task):
            return state
        if time.monotonic() - state < _AGAIN if state is not None else not engine.ended:
            return None
        # In a context of its own: the engine outlives the request.
        task = asyncio.get_running_loop().create_task(self._start(model), context=contextvars.Context())
        self.states[engine] = task
        return task

    async def _start(self, model: Model) -> None:
        engine, begun = model.engine, time.monotonic()
        _log.error("model %s: %s; it is started again", model.name, engine.ended or "the engine does not run")
        try:
            await engine.close()
            await engine.start()
        except Exception as error:
            reason = error.detail or error.message if isinstance(error, ApiError) else error
            _log.error("model %s: could not be started again: %s", model.name, reason)
            await engine.close()
            self.states[engine] = time.monotonic()
        except BaseException:  # the engine is about to be closed
            self.states.pop(engine, None)
            raise
        else:
            self.states.pop(engine, None)
            _log.info("model %s ready again (%.1f s)", model.name, time.monotonic() - begun)

    async def end(self, engine: Engine) -> None:
        """Forget an engine that is about to be closed. A start is cancelled."""
        state = self.states.get(engine)
        if isinstance(state, asyncio.Task):
            state.cancel()
            await asyncio.wait((state,))
        self.states.pop(engine, None)
