"""The models of one gateway, leased to requests.

* A request leases a `Model` and keeps it until it ends, even if its name gets another model in the meantime.
* `slots` loads and closes models, `offers` has those that requests load.
* All code runs in one event loop, and tables change only between two awaits. The only locks order the loads of one
  name.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from untemplate._internal.suggestions import close_names, did_you_mean

from ..engines.base import Engine, Health
from ..errors import ApiError, bad_request, not_found, shutting_down
from .attempts import Work
from .model import Loader, Model
from .offers import Offers
from .slots import Named, Slot, Slots

_log: Final = logging.getLogger("untemplate.gateway.manager")
_RETRY_AFTER: Final = {"Retry-After": "5"}
"""Seconds to wait before a retry, while a model is being loaded or the gateway shuts down."""


class Names:
    """The names by which requests ask for one manager's models. Ollama's tag ``:latest`` may follow any name.

    Args:
        aliases: names that the settings add → the model that each stands for; ``""`` for the only one.
        any_name: an unknown name means the only model.
    """

    def __init__(self, aliases: Mapping[str, str], *, any_name: bool) -> None:
        self._aliases = dict(aliases)
        self._any_name = any_name
        self._models: dict[str, str] = {}
        """Names and aliases of the models → the names of the models."""

    def find(self, name: str) -> str | None:
        """Return the name of the model that has this name or alias; ``None`` if none has. An empty name means the
        only model.
        """
        for one in (name, name.removesuffix(":latest")):
            found = self._model(one) or (self._model(self._aliases[one]) if one in self._aliases else None)
            if found is not None:
                return found
        return None

    def find_for_request(self, name: str) -> str | None:
        """Return the name of the model that a request means. As `find`, but ``any_name`` has an effect."""
        return self.find(name) or (self._model("") if self._any_name else None)

    def _model(self, name: str) -> str | None:
        if name:
            return self._models.get(name)
        models = self.all()
        return models[0] if len(models) == 1 else None

    def all(self) -> tuple[str, ...]:
        """Return the names of the models, without aliases."""
        return tuple(dict.fromkeys(self._models.values()))

    def replace(self, old: Iterable[Named], new: Iterable[Named] = ()) -> None:
        """Give new models their names and aliases, which may be those of the old models.

        Raises:
            ValueError: a name belongs to another model; nothing has changed.
        """
        gone = {one.name for one in old}
        models = {name: model for name, model in self._models.items() if model not in gone}
        for one in new:
            for name in (one.name, *one.aliases):
                if name in models or (name in self._aliases and name != one.name):
                    raise ValueError(f"the name {name!r} of model {one.name!r} belongs to another model")
            models |= dict.fromkeys((one.name, *one.aliases), one.name)
        self._models = models

    def listed(self) -> str:
        """Return the names of all models, for an error message."""
        return ", ".join(self.all()) or "none"

    def unknown(self, name: str) -> str:
        """Return the message for a name that means no model."""
        known = sorted({*self._models, *self._aliases} - {name})
        which = f"the model {name!r} does not exist" if name else "no model is loaded"
        return f"{which}{did_you_mean(close_names(name, known, 1))} (models: {self.listed()})"


class Manager:
    """All models that requests can name.

    Args:
        models: models that are ready, with their engines started.
        aliases: further names → the model that each stands for; ``""`` for the only one.
        any_name: accept any unknown name if there is exactly one model.
        clock: seconds since the epoch.

    Raises:
        ValueError: two models, or a model and an alias, have the same name.
    """

    def __init__(
        self,
        models: Iterable[Model] = (),
        *,
        aliases: Mapping[str, str] | None = None,
        any_name: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.names = Names(aliases or {}, any_name=any_name)
        self.slots = Slots(self.names.replace, clock)
        self.offers = Offers(self.slots)
        """Models that are loaded by their first request."""
        self.add(*models)

    # -- Requests ------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def use(self, name: str = "") -> AsyncIterator[Model]:
        """Lease a model for one request: ``async with manager.use(name) as model``.

        Args:
            name: a model's name or alias, with or without Ollama's ``:latest``; ``""`` for the only model.

        Raises:
            ApiError: on entering: 404 if the name is unknown (the message lists the models), 400 if there is no name
                but several models, 503 if the model is still being loaded or the gateway is shutting down.
        """
        slot = await self._running_slot(name)
        assert slot.loaded is not None
        slot.requests += 1
        try:
            yield slot.loaded
        finally:
            slot.requests -= 1
            if not slot.requests:
                slot.idle_since = self.slots.now()
                if slot.state == "draining":
                    slot.idle.set()
                self.slots.freed.set()

    def offered(self, name: str) -> str | None:
        """Return the name of the model that requests for a name load, if it is one of the offered ones."""
        found = self.names.find_for_request(name)
        return found if found in self.offers.all else None

    def fallbacks(self, name: str) -> tuple[str, ...]:
        """Return the names of the models that answer if the model of a name cannot."""
        found = self.offers.all.get(self.names.find_for_request(name) or "")
        return () if found is None else found.fallbacks

    def unloaded(self) -> tuple[tuple[str, Model | None], ...]:
        """Return the names of the models that a request would load, each with the model as it was the last time it was
        loaded; ``None`` if it never was.
        """
        return self.offers.unloaded()

    def get(self, name: str = "") -> Model:
        """Return the model of a name without a lease: for its properties, not for generating. Raises as `use`."""
        return self._slot(name).model

    def list(self) -> tuple[Model, ...]:
        """Return the models that take requests, in the order in which they were added."""
        return tuple(slot.model for slot in self.slots.ready.values())

    def ps(self) -> tuple[Slot, ...]:
        """Return every model: loaded, being loaded, or finishing its running requests."""
        others = sorted(self.slots.all, key=lambda slot: slot.since)
        states = ([slot for slot in others if slot.state == state] for state in ("loading", "draining"))
        return tuple(slot for slots in (self.slots.ready.values(), *states) for slot in slots)

    async def health(self) -> dict[str, Health]:
        """Return the health of each engine by the name of its model. An engine that does not answer is not healthy."""
        slots = dict(self.slots.ready)
        for slot in slots.values():  # a balancer that sends no requests to an unhealthy server must see it recover
            if not self._runs(slot.model.engine):
                self.slots.attempts.begin(*self._restart(slot.model))
        found = await asyncio.gather(*(slot.model.engine.health() for slot in slots.values()), return_exceptions=True)
        return {
            name: health if isinstance(health, Health) else Health(False, f"{type(health).__name__}: {health}")
            for name, health in zip(slots, found, strict=True)
        }

    async def _running_slot(self, name: str) -> Slot:
        """Return the slot that a request leases, after its model is loaded and its engine runs."""
        while True:
            found = self.names.find_for_request(name)
            if found is not None and found not in self.slots.ready:
                await self.offers.ensure(found)
            slot = self._slot(name)
            assert slot.loaded is not None
            if self._runs(slot.loaded.engine):
                return slot
            await self.slots.attempts.wait(*self._restart(slot.model))  # meanwhile, the name may get another model

    def _runs(self, engine: Engine) -> bool:
        return not engine.ended and engine not in self.slots.attempts.states

    def _restart(self, model: Model) -> tuple[Engine, str, str, Work]:
        """Return the arguments of an attempt to start an engine again that has ended by itself."""
        return model.engine, model.name, "started again", partial(_start_again, model)

    def _slot(self, name: str) -> Slot:
        found = self.names.find_for_request(name)
        slot = None if found is None else self.slots.ready.get(found)
        if slot is None or self.slots.closed:
            raise self._missing(name)
        return slot

    def _missing(self, name: str) -> ApiError:
        """Return the error for a name that means no model."""
        if self.slots.closed:
            return shutting_down()
        loading = {slot.name for slot in self.slots.all if slot.state == "loading"}
        if (self.names.find(name) or name) in loading or (not name and loading and not self.slots.ready):
            which = f"the model {name!r}" if name else "the model"
            problem = f"{which} is being loaded; try again in a few seconds"
            return ApiError(
                503, problem, type="server_error", param="model", code="model_loading", headers=_RETRY_AFTER
            )
        if not name and (self.names.all() or self.offers.several):
            return bad_request("model", f"is required: there are several models: {self.names.listed()}")
        return self._unknown(name)

    def _unknown(self, name: str) -> ApiError:
        return not_found(self.names.unknown(name), code="model_not_found", param="model")

    # -- Loading -------------------------------------------------------------------------------------------------

    def add(self, *models: Model) -> None:
        """Add models that are ready. They may share an engine.

        Raises:
            ValueError: a name is taken.
        """
        self.slots.add(models)

    async def load(self, name: str, loader: Loader) -> Model:
        """Load a model under a free name, or `swap` the model that has the name. Loads of one name run one after
        another.

        Raises:
            ApiError: 503: the gateway is shutting down.
            ValueError: the name, or an alias of the model, belongs to another model.
            Exception: ``loader`` raised it; nothing has changed.
        """
        return await self.slots.load(self.slots.begin(name), loader)

    async def swap(self, name: str, loader: Loader) -> Model:
        """Replace a loaded model. The new one takes requests as soon as it is ready; the old one finishes its running
        requests and closes. Both are in memory in the meantime.

        Raises:
            ApiError: 404: the model does not exist; 503 as `load`.
            Exception: as `load`.
        """
        if name not in self.slots.ready:
            raise self._unknown(name)
        return await self.load(name, loader)

    async def change(self, *models: Model) -> None:
        """Replace all models by models that are ready. The old ones finish their running requests and close.

        Raises:
            ApiError, ValueError: as `load`; nothing has changed.
        """
        await self.slots.take_in(models, list(self.slots.ready.values()))

    async def unload(self, name: str, timeout: float | None = None) -> bool:
        """Unload a model: new requests get a 404 at once; when the running ones have ended, the model is closed.

        Args:
            timeout: seconds after which the model is closed even if requests are running; ``None`` for no limit.

        Returns: True if every request could finish.

        Raises:
            ApiError: 404: the model does not exist.
        """
        if name not in self.slots.ready:
            raise self._unknown(name)
        return await asyncio.shield(self.slots.withdraw(self.slots.ready[name], timeout))

    def forget(self, name: str) -> asyncio.Task[bool] | None:
        """Stop offering a model. Return the task that closes it after its running requests; ``None`` if it is not
        loaded.

        Raises:
            ApiError: 404: it does not exist; 400: the name is an alias.
        """
        found = self.names.find(name)
        if found is None or self.slots.closed:
            raise self._missing(name)
        if found not in (name, name.removesuffix(":latest")):
            raise bad_request("model", f"{name!r} is an alias of {found!r}, which must be named itself")
        if found in self.offers.all:
            return self.offers.remove(found)
        return self.slots.withdraw(self.slots.ready[found])

    async def close(self, timeout: float | None = None) -> bool:
        """Close everything: new requests get a 503, running ones may finish. May be called twice.

        Args:
            timeout: seconds after which engines are closed even if requests are running; ``None`` for no limit.

        Returns: True if every request could finish.
        """
        self.slots.closed = True
        await self.offers.close()
        return await self.slots.close(timeout)


async def _start_again(model: Model) -> None:
    """Start the engine of a model again."""
    engine, begun = model.engine, time.monotonic()
    _log.error("model %s: %s; it is started again", model.name, engine.ended or "the engine does not run")
    await engine.close()
    try:
        await engine.start()
    except Exception:
        await engine.close()
        raise
    _log.info("model %s ready again (%.1f s)", model.name, time.monotonic() - begun)
