"""Events of models, which are logged, and the end of a model.

* A model that goes has no name any more. It is closed when its last lease has ended, or when its time is over.
* Models may share an engine, which is closed with the last of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from ..engines.base import Engine
from .model import Model
from .restarts import Restarts

_log: Final = logging.getLogger("untemplate.gateway.manager")


class Event(msgspec.Struct, frozen=True):
    """A change in the state of a model: ``loading``, ``progress``, ``ready``, ``failed``, ``draining``, ``gone``."""

    kind: str
    model: str
    detail: str = ""
    seconds: float | None = None
    """Duration, for ``ready``, ``failed`` and ``gone``."""


class Status(msgspec.Struct, frozen=True):
    """A model as ``ps`` shows it."""

    name: str
    state: str
    """``loading``, ``ready`` or ``draining`` (takes no new requests; some are still running)."""
    requests: int = 0
    """Number of running requests."""
    since: float = 0.0
    """Time of the last change of state, in seconds since the epoch."""
    last_used: float | None = None
    """Time at which the last request began, in seconds since the epoch."""
    idle_since: float = 0.0
    """Time at which the last request ended, or the model was loaded."""
    model: Model | None = None
    """``None`` while it is being loaded."""


@dataclass(slots=True, eq=False)
class Slot:
    """A model and its leases."""

    model: Model
    since: float
    leases: int = 0
    last_used: float | None = None
    idle_since: float = 0.0
    retired: bool = False
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the model is retired and its last lease has ended."""

    def status(self, state: str) -> Status:
        return Status(self.model.name, state, self.leases, self.since, self.last_used, self.idle_since, self.model)


class Retiring:
    """The models of one manager that take no further requests, and the engines that all its models use.

    Args:
        restarts: are ended before an engine is closed.
        tell: called for each event.
        clock: seconds since the epoch.
    """

    def __init__(self, restarts: Restarts, tell: Callable[[Event], None], clock: Callable[[], float]) -> None:
        self.slots: set[Slot] = set()
        self._restarts = restarts
        self._tell = tell
        self._clock = clock
        self._users: dict[int, int] = {}
        """Number of models that use each engine, by the engine's ``id()``."""
        self._tasks: set[asyncio.Task[bool]] = set()

    def uses(self, engine: Engine) -> bool:
        """True if a model uses this engine."""
        return id(engine) in self._users

    def took(self, engine: Engine) -> None:
        """Count a new model of an engine."""
        self._users[id(engine)] = self._users.get(id(engine), 0) + 1

    def begin(self, slot: Slot) -> None:
        """Let no further request lease a model whose names are gone."""
        slot.retired = True
        slot.since = self._clock()
        self.slots.add(slot)
        if not slot.leases:
            slot.idle.set()

    def close(self, slot: Slot, timeout: float | None = None) -> asyncio.Task[bool]:
        """Return the task that closes a model after its running requests, or when the time is over. Its result is True
        if all requests could finish."""
        task = asyncio.get_running_loop().create_task(self._close(slot, timeout))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _close(self, slot: Slot, timeout: float | None) -> bool:
        begun, name = time.monotonic(), slot.model.name
        if slot.leases:
            self._tell(Event("draining", name, f"{slot.leases} running"))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(slot.idle.wait(), timeout)
        ended = not slot.leases
        engine = slot.model.engine
        self._users[id(engine)] -= 1
        if not self._users[id(engine)]:
            del self._users[id(engine)]
            await self._restarts.end(engine)
            try:
                await engine.close()
            except Exception:
                _log.exception("model %s: its engine did not close", name)
        self.slots.discard(slot)
        cut = "" if ended else f"{slot.leases} cut off"
        self._tell(Event("gone", name, cut, time.monotonic() - begun))
        return ended

    async def close_all(self, timeout: float | None) -> bool:
        """Wait until all models that go are closed; when the time is over, close them. Return True if all requests
        could finish."""
        tasks = list(self._tasks)
        _, late = await asyncio.wait(tasks, timeout=timeout) if tasks else ((), ())
        for slot in list(self.slots) if late else ():
            slot.idle.set()
        return all(await asyncio.gather(*tasks)) and not late


def log_event(event: Event) -> None:
    level = logging.WARNING if event.kind == "failed" or event.detail.endswith("cut off") else logging.INFO
    what = ": ".join(part for part in (event.kind, event.detail) if part).removeprefix("progress: ")
    took = "" if event.seconds is None else f" ({event.seconds:.1f} s)"
    _log.log(level, "model %s %s%s", event.model, what, took)
