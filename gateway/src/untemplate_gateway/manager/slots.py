"""The models of one manager from the beginning of their load until they are closed.

* A model that is being loaded gets its name only when it is ready. A load that fails changes nothing.
* A model that goes has no name any more. It is closed when its last lease has ended, or when its time is over.
* Models may share an engine, which is closed with the last of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Protocol

from ..engines.base import Engine
from ..errors import ApiError, shutting_down
from .attempts import Attempts
from .model import Loader, Model, Report

_log: Final = logging.getLogger("untemplate.gateway.manager")


def reporting(name: str) -> Report:
    """Return a function that logs the progress of a load."""
    return partial(_log.info, "model %s %s", name)


@dataclass(slots=True, eq=False, kw_only=True)
class Slot:
    """A model, and the requests that lease it."""

    name: str
    state: str = "loading"
    """``loading``, ``ready`` or ``draining`` (takes no new requests; some are still running)."""
    requests: int = 0
    """Number of running requests."""
    since: float
    """Time of the last change of state, in seconds since the epoch."""
    idle_since: float = 0.0
    """Time at which the last request ended, or the model was loaded."""
    local: bool = False
    """True if it counts for ``max_loaded``."""
    loaded: Model | None = None
    """``None`` while it is being loaded."""
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the model goes and its last lease has ended."""

    @property
    def model(self) -> Model:
        """Return the model, which is loaded."""
        assert self.loaded is not None
        return self.loaded


class Named(Protocol):
    """A model that has names, loaded or not."""

    @property
    def name(self) -> str: ...
    @property
    def aliases(self) -> tuple[str, ...]: ...


class Slots:
    """All slots of one manager.

    Args:
        rename: takes old models their names, and gives them to new ones.
        clock: seconds since the epoch.
    """

    def __init__(self, rename: Callable[[Iterable[Named], Iterable[Named]], None], clock: Callable[[], float]) -> None:
        self.rename = rename
        self.now = clock
        self.ready: dict[str, Slot] = {}
        """The models that take requests, by name."""
        self.all: dict[Slot, None] = {}
        self.offered: frozenset[str] = frozenset()
        """Models that have their names also while they are not loaded."""
        self.attempts = Attempts()
        """Loads of the models that requests load, by name, and restarts of engines."""
        self.freed = asyncio.Event()
        """Set when a model may have become idle or has gone."""
        self.closed = False
        self._locks: dict[str, asyncio.Lock] = {}
        self._closing: set[asyncio.Task[bool]] = set()

    def begin(self, name: str, *, local: bool = False) -> Slot:
        """Return the slot of a model that is to be loaded."""
        slot = Slot(name=name, since=self.now(), local=local)
        self.all[slot] = None
        return slot

    async def load(self, slot: Slot, loader: Loader) -> Model:
        """Load a model, which replaces the one that has its name. Loads of one name run one after another. Raises as
        `Manager.load`.
        """
        name = slot.name
        try:
            async with self._locks.setdefault(name, asyncio.Lock()):
                if self.closed:
                    raise shutting_down()
                begun = time.monotonic()
                _log.info("model %s loading", name)
                try:
                    model = replace(await loader(reporting(name)), name=name)
                    await self.take_in([model], [self.ready[name]] if name in self.ready else [], slot)
                except BaseException as error:
                    what = str(error) or type(error).__name__
                    _log.warning("model %s failed: %s (%.1f s)", name, what, time.monotonic() - begun)
                    raise
        except BaseException:
            self._gone(slot)
            raise
        _log.info("model %s ready: %s (%.1f s)", name, model.engine.kind, time.monotonic() - begun)
        return model

    async def take_in(self, models: Sequence[Model], old: Sequence[Slot], slot: Slot | None = None) -> None:
        """Add models instead of old ones. If a name is taken, the new models are closed."""
        try:
            if self.closed:
                raise shutting_down()
            self.add(models, old, slot)
        except (ApiError, ValueError):
            for engine in {model.engine for model in models}:
                if not self._used(engine):
                    await engine.close()
            raise
        for one in old:
            self._close_later(one)

    def add(self, models: Sequence[Model], old: Sequence[Slot] = (), slot: Slot | None = None) -> None:
        """Add models that are ready, the only one in the slot of its load.

        Raises:
            ValueError: a name is taken; nothing has changed.
        """
        self._rename(old, models)
        for one in old:
            self._drain(one)
        for model in models:
            one = slot or self.begin(model.name)
            one.loaded, one.state = model, "ready"
            one.since = one.idle_since = self.now()
            self.ready[model.name] = one

    def withdraw(self, slot: Slot, timeout: float | None = None) -> asyncio.Task[bool]:
        """Take its name from a model, and return the task that closes it after its running requests, or when the time
        is over. Its result is True if all requests could finish.
        """
        self._rename([slot])
        self._drain(slot)
        return self._close_later(slot, timeout)

    async def close(self, timeout: float | None) -> bool:
        """Close all models after their running requests, or when the time is over. Return True if all requests could
        finish."""
        for slot in list(self.ready.values()):
            self.withdraw(slot)
        tasks = list(self._closing)
        _, late = await asyncio.wait(tasks, timeout=timeout) if tasks else ((), ())
        for slot in list(self.all) if late else ():
            slot.idle.set()
        return all(await asyncio.gather(*tasks)) and not late

    def _rename(self, old: Sequence[Slot], models: Sequence[Model] = ()) -> None:
        gone = [slot.model for slot in old]
        self.rename(*([one for one in some if one.name not in self.offered] for some in (gone, models)))

    def _drain(self, slot: Slot) -> None:
        del self.ready[slot.name]
        slot.state, slot.since = "draining", self.now()
        if not slot.requests:
            slot.idle.set()

    def _close_later(self, slot: Slot, timeout: float | None = None) -> asyncio.Task[bool]:
        task = asyncio.get_running_loop().create_task(self._close(slot, timeout))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task

    async def _close(self, slot: Slot, timeout: float | None) -> bool:
        begun, engine = time.monotonic(), slot.model.engine
        if slot.requests:
            _log.info("model %s draining: %d running", slot.name, slot.requests)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(slot.idle.wait(), timeout)
        cut = slot.requests
        del self.all[slot]
        if not self._used(engine):
            # A slot whose engine is being closed still takes its place.
            self.all[slot] = None
            await self._end(slot.name, engine)
        self._gone(slot)
        level, what = (logging.WARNING, f": {cut} cut off") if cut else (logging.INFO, "")
        _log.log(level, "model %s gone%s (%.1f s)", slot.name, what, time.monotonic() - begun)
        return not cut

    async def _end(self, name: str, engine: Engine) -> None:
        """Close an engine. If it is being started again, that is cancelled."""
        restart = self.attempts.cancel(engine)
        if restart is not None:
            await asyncio.wait((restart,))
        try:
            await engine.close()
        except Exception:
            _log.exception("model %s: its engine did not close", name)

    def _gone(self, slot: Slot) -> None:
        self.all.pop(slot, None)
        self.freed.set()

    def _used(self, engine: Engine) -> bool:
        return any(slot.loaded is not None and slot.loaded.engine is engine for slot in self.all)
