"""Models that are loaded by their first request, and unloaded when they are idle or others take their place.

* A request that names such a model waits until it is loaded, together with all requests that come in the meantime.
* A load that fails is answered with a 503. It is not tried again at once, and other models are not affected.
* Only models without running requests are unloaded, the least recently used first.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from ..errors import ApiError
from .model import Loader, Model
from .slots import Slot, Slots

_log: Final = logging.getLogger("untemplate.gateway.manager")
_PATIENCE: Final = 60.0
"""Seconds to wait until another model is idle, if as many are loaded as may be."""
_LOOKS: Final = 1.0
"""Seconds between two looks for idle models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A model that can be loaded."""

    name: str
    load: Loader
    aliases: tuple[str, ...] = ()
    local: bool = True
    """True if it runs on this machine, and counts for ``max_loaded``."""
    idle_unload: float = 0.0
    """Seconds without a request after which it is unloaded; 0: never."""
    fallbacks: tuple[str, ...] = ()
    """Models that answer instead if this one cannot."""
    pinned: bool = False
    """True if it is not unloaded to make room for others."""
    origin: object = None
    """The settings that it is loaded from: offers with equal ones load the same model."""


class Offers:
    """The models that a manager can load by itself, in the order of the settings.

    Args:
        slots: of the manager.
    """

    def __init__(self, slots: Slots) -> None:
        self.several = False
        """True if the settings have ``[models.NAME]`` tables."""
        self.known: dict[str, Model] = {}
        """Models that were loaded before: facts about them stay known."""
        self._slots = slots
        self.all: dict[str, Offer] = {}
        self._most = 0
        self._room = asyncio.Lock()
        self._watch: asyncio.Task[None] | None = None

    def change(self, offers: Iterable[Offer], *, max_loaded: int = 0) -> None:
        """Offer these models from now on. A model of the same origin stays loaded; all others finish their running
        requests and are closed.

        Args:
            max_loaded: most models of this machine that are loaded at a time; 0 for no limit.

        Raises:
            ValueError: a name belongs to another model; nothing has changed.
        """
        before = self._take(offers)
        self.several, self._most = True, max_loaded
        for name, offer in before.items():
            if name not in self.all or self.all[name].origin != offer.origin:
                self._withdraw(name)
        if self._slots.ready:
            self._start_watch()
        self._slots.freed.set()

    def add(self, offer: Offer) -> None:
        """Offer a further model.

        Raises:
            ValueError: its name or an alias belongs to another one.
        """
        self._take((*self.all.values(), offer))

    def remove(self, name: str) -> asyncio.Task[bool] | None:
        """Offer a model no longer. Return the task that closes it after its running requests; ``None`` if it is not
        loaded.
        """
        self._take([offer for offer in self.all.values() if offer.name != name])
        return self._withdraw(name)

    def _take(self, offers: Iterable[Offer]) -> dict[str, Offer]:
        """Replace the offers, and return the old ones."""
        old, offers = self.all, tuple(offers)
        self._slots.rename((*old.values(), *offers), offers)
        self.all = {offer.name: offer for offer in offers}
        self._slots.offered = frozenset(self.all)
        return old

    def _withdraw(self, name: str) -> asyncio.Task[bool] | None:
        self.known.pop(name, None)
        self._slots.attempts.cancel(name)  # requests that wait for it look again
        slot = self._slots.ready.get(name)
        return None if slot is None else self._slots.withdraw(slot)

    def unloaded(self) -> tuple[tuple[str, Model | None], ...]:
        """Return the names of the models that a request would load, each with the model as it was the last time it was
        loaded; ``None`` if it never was.
        """
        return tuple((name, self.known.get(name)) for name in self.all if name not in self._slots.ready)

    async def ensure(self, name: str) -> None:
        """Load a model, unless it is loaded or not offered.

        Raises:
            ApiError: 503: it could not be loaded; the log has the reason.
        """
        slots = self._slots
        while name in self.all and name not in slots.ready and not slots.closed:
            await slots.attempts.wait(name, name, "loaded", partial(self.load, name))

    async def load(self, name: str) -> None:
        """Load a model now.

        Raises:
            ApiError: 503: as many models are in use as may be loaded.
            Exception: as `Manager.load`.
        """
        offer = self.all[name]
        slot = await self._make_room(name) if offer.local else self._slots.begin(name)
        self.known[name] = await self._slots.load(slot, offer.load)
        self._start_watch()

    def _start_watch(self) -> None:
        if self._watch is None and any(one.idle_unload for one in self.all.values()):
            self._watch = asyncio.get_running_loop().create_task(self._look_for_idle())

    # -- Room ----------------------------------------------------------------------------------------------------

    async def _make_room(self, name: str) -> Slot:
        """Return a slot for a model. Idle models are unloaded for it, as far as necessary.

        Raises:
            ApiError: 503: there is no place, even after some time.
        """
        until = time.monotonic() + _PATIENCE
        while (slot := await self._reserved(name)) is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._slots.freed.wait(), max(until - time.monotonic(), 0.0))
            if time.monotonic() >= until:
                names = sorted(slot.name for slot in self._local())
                _log.warning("model %s: no room; in use: %s", name, ", ".join(names))
                problem = f"there is no room for the model {name!r} while other models are in use; try again"
                raise ApiError(503, problem, type="server_error", code="models_busy", headers={"Retry-After": "5"})
        return slot

    async def _reserved(self, name: str) -> Slot | None:
        async with self._room:
            while self._most and len(self._local()) >= self._most:
                idle = [slot for slot in self._idle() if slot.local and not self.all[slot.name].pinned]
                if not idle:
                    self._slots.freed.clear()
                    return None
                await self._unload(min(idle, key=lambda slot: (slot.idle_since, slot.name)))
            return self._slots.begin(name, local=True)

    def _local(self) -> list[Slot]:
        return [slot for slot in self._slots.all if slot.local]

    def _idle(self) -> list[Slot]:
        """Return the models that may be unloaded."""
        return [slot for name, slot in self._slots.ready.items() if name in self.all and not slot.requests]

    async def _unload(self, slot: Slot) -> None:
        # The task that closes it goes on when those that wait for it are cancelled.
        await asyncio.shield(self._slots.withdraw(slot))

    async def _look_for_idle(self) -> None:
        while True:
            await asyncio.sleep(_LOOKS)
            try:
                await self.unload_idle()
            except Exception as error:  # the next look may succeed
                _log.error("looking for idle models: %s", error)

    async def unload_idle(self) -> None:
        """Unload the models that had no request for as long as their settings allow."""
        async with self._room:  # a model that is being unloaded must not be loaded at the same time
            for slot in self._idle():
                offer = self.all.get(slot.name)  # it may have been removed while another model was closed
                if offer is None or not offer.idle_unload or slot not in self._idle():
                    continue
                if self._slots.now() - slot.idle_since >= offer.idle_unload:
                    await self._unload(slot)

    async def close(self) -> None:
        """Stop loading and looking for idle models."""
        tasks = [self._slots.attempts.cancel(name) for name in self.all] + [self._watch]
        for task in tasks:
            if task is not None:
                task.cancel()
        await asyncio.gather(*(task for task in tasks if task is not None), return_exceptions=True)
        self._watch = None
