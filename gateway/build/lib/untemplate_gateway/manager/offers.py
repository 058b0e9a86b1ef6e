"""Models that are loaded by their first request, and unloaded when they are idle or others take their place.

* A request that names such a model waits until it is loaded. All requests that come in the meantime wait for the same
  load; a client that leaves does not stop it.
* A load that fails is answered with a 503. It is not tried again at once, and other models are not affected.
* Only models without running requests are unloaded, the least recently used first.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from ..errors import ApiError, not_loaded
from .model import Loader, Model

_log: Final = logging.getLogger("untemplate.gateway.manager")
_AGAIN: Final = 10.0
"""Seconds after a failed load before the next attempt."""
_PATIENCE: Final = 60.0
"""Seconds to wait until another model is idle, if as many are loaded as may be."""
_LOOKS: Final = 1.0
"""Seconds between two looks for idle models."""


class Loads(Protocol):
    """The manager, as far as its offers use it."""

    def now(self) -> float: ...
    def is_loaded(self, name: str) -> bool: ...
    def idle(self) -> dict[str, float]: ...
    async def load(self, name: str, loader: Loader) -> Model: ...
    def withdraw(self, name: str) -> asyncio.Task[bool] | None: ...


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
    """The models that a manager can load by itself.

    Args:
        manager: loads, leases and unloads them.
        offers: the models, with different names.
        max_loaded: most models of this machine that are loaded at a time; 0 for no limit.
    """

    def __init__(self, manager: Loads, offers: Iterable[Offer], *, max_loaded: int = 0) -> None:
        self._manager = manager
        self._offers: dict[str, Offer] = {}
        self._names: dict[str, str] = {}
        self._most = max_loaded
        self._take(offers)
        self._held: set[str] = set()
        """Local models from the beginning of their load until they are told to close."""
        self._leaving = 0
        """Number of local models that are being closed."""
        self._loads: dict[str, asyncio.Task[None]] = {}
        self._failed: dict[str, float] = {}
        """Time of the last failed load."""
        self._known: dict[str, Model] = {}
        """Models that were loaded before: facts about them stay known."""
        self._room = asyncio.Lock()
        self._freed = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None

    def _take(self, offers: Iterable[Offer]) -> None:
        self._offers = {offer.name: offer for offer in offers}
        self._names = {alias: offer.name for offer in self._offers.values() for alias in (offer.name, *offer.aliases)}

    def change(self, offers: Iterable[Offer], *, max_loaded: int = 0) -> None:
        """Offer other models from now on. A model of the same origin stays loaded; all others finish their running
        requests and are closed.
        """
        before = self._offers
        self._most = max_loaded
        self._take(offers)
        for name, offer in before.items():
            now = self._offers.get(name)
            if now is None or now.origin != offer.origin:
                self._withdraw(name)
        self._start_watch()
        self.freed()

    def add(self, offer: Offer) -> None:
        """Offer a further model.

        Raises:
            ValueError: its name or an alias belongs to another one.
        """
        for name in (offer.name, *offer.aliases):
            if name in self._names:
                raise ValueError(f"the name {name!r} of model {offer.name!r} belongs to another model")
        self._take((*self._offers.values(), offer))

    def remove(self, name: str) -> None:
        """Offer a model no longer. If it is loaded, its running requests can finish."""
        if name in self._offers:
            self._take([offer for offer in self._offers.values() if offer.name != name])
            self._withdraw(name)

    def _withdraw(self, name: str) -> None:
        """Forget a model, and unload it after its running requests."""
        self._failed.pop(name, None)
        self._known.pop(name, None)
        load = self._loads.pop(name, None)
        if load is not None:
            load.cancel()  # requests that wait for it look again
        self._closing(name)

    def _closing(self, name: str) -> asyncio.Task[bool] | None:
        """Return the task that closes a model after its running requests; ``None`` if it is not loaded. Until then it
        keeps its place. The task goes on when those that wait for it are cancelled.
        """
        held = name in self._held
        self._held.discard(name)
        closing = self._manager.withdraw(name)
        if closing is not None:
            self._leaving += held
            closing.add_done_callback(lambda _: self._left(held))
        return closing

    def _left(self, held: bool) -> None:
        self._leaving -= held
        self.freed()

    def __len__(self) -> int:
        return len(self._offers)

    def names(self) -> tuple[str, ...]:
        """Return the names of the models, in the order of the settings."""
        return tuple(self._offers)

    def all_names(self) -> tuple[str, ...]:
        """Return the names and aliases of the models."""
        return tuple(self._names)

    def name_of(self, name: str) -> str | None:
        """Return the name of the offered model that a name or alias means; ``None`` if it is not offered. An empty name
        means the only one.
        """
        if not name and len(self._offers) == 1:
            return next(iter(self._offers))
        return self._names.get(name) or self._names.get(name.removesuffix(":latest"))

    def fallbacks(self, name: str) -> tuple[str, ...]:
        """Return the names of the models that answer if the model of a name or alias cannot."""
        found = self.name_of(name)
        return () if found is None else self._offers[found].fallbacks

    def known(self, name: str) -> Model | None:
        """Return a model as it was when it was last loaded; ``None`` if it never was."""
        return self._known.get(name)

    async def ensure(self, name: str) -> None:
        """Load the model of a name, unless it is loaded or not offered.

        Raises:
            ApiError: 503: it could not be loaded; the log has the reason.
        """
        while (found := self.name_of(name)) is not None and not self._manager.is_loaded(found):
            load = self._loads.get(found)
            if load is None:
                # In a context of its own: the model outlives the request.
                load = asyncio.get_running_loop().create_task(self._load(found), context=contextvars.Context())
                self._loads[found] = load
                load.add_done_callback(partial(self._loaded, found))
            await asyncio.wait((load,))
            if not load.cancelled():  # by `close` or `change`
                load.result()

    def _loaded(self, name: str, task: asyncio.Task[None]) -> None:
        if self._loads.get(name) is task:
            del self._loads[name]
        if not task.cancelled():
            task.exception()  # every request that waited may have gone

    async def load(self, name: str) -> None:
        """Load a model now.

        Raises:
            ApiError: 503: as many models are in use as may be loaded.
            Exception: as `Manager.load`.
        """
        offer = self._offers[name]
        if offer.local:
            await self._make_room(name)
        try:
            self._known[name] = await self._manager.load(name, offer.load)
        except BaseException:
            if self._offers.get(name) is offer:  # otherwise its place has been given back, or is another model's
                self._held.discard(name)
                self.freed()
            raise
        self._start_watch()

    def _start_watch(self) -> None:
        if self._watch is None and any(one.idle_unload for one in self._offers.values()):
            self._watch = asyncio.get_running_loop().create_task(self._look_for_idle())

    async def _load(self, name: str) -> None:
        if time.monotonic() - self._failed.get(name, -_AGAIN) < _AGAIN:
            raise not_loaded(name)
        try:
            await self.load(name)
        except Exception as error:
            if isinstance(error, ApiError) and error.code in ("shutting_down", "models_busy"):
                raise
            self._failed[name] = time.monotonic()
            _log.error("model %s: could not be loaded: %s", name, getattr(error, "detail", "") or error)
            raise not_loaded(name) from None

    # -- Room ----------------------------------------------------------------------------------------------------

    async def _make_room(self, name: str) -> None:
        """Reserve a place for a model. Idle models are unloaded for it, as far as necessary.

        Raises:
            ApiError: 503: there is no place, even after some time.
        """
        until = time.monotonic() + _PATIENCE
        while not await self._reserved(name):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._freed.wait(), max(until - time.monotonic(), 0.0))
            if time.monotonic() >= until:
                _log.warning("model %s: no room; in use: %s", name, ", ".join(sorted(self._held)))
                problem = f"there is no room for the model {name!r} while other models are in use; try again"
                raise ApiError(503, problem, type="server_error", code="models_busy", headers={"Retry-After": "5"})

    async def _reserved(self, name: str) -> bool:
        async with self._room:
            while self._most and len(self._held) + self._leaving >= self._most:
                idle = {n: since for n, since in self._manager.idle().items() if n in self._held and self._may_go(n)}
                if not idle:
                    self._freed.clear()
                    return False
                await self._unload(min(idle, key=lambda one: (idle[one], one)))
            self._held.add(name)
            return True

    def _may_go(self, name: str) -> bool:
        return name in self._offers and not self._offers[name].pinned

    async def _unload(self, name: str) -> None:
        closing = self._closing(name)
        if closing is not None:
            await asyncio.shield(closing)

    def freed(self) -> None:
        """Note that a model may have become idle."""
        self._freed.set()

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
            for name, since in self._manager.idle().items():
                offer = self._offers.get(name)  # it may have been removed while another model was closed
                if offer is None or not offer.idle_unload:
                    continue
                if self._manager.now() - since >= offer.idle_unload and name in self._manager.idle():
                    await self._unload(name)

    async def close(self) -> None:
        """Stop loading and looking for idle models."""
        tasks = [*self._loads.values(), *([self._watch] if self._watch is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._watch = None
