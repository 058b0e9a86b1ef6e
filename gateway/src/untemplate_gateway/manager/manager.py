"""The models of one gateway: leased to requests, loaded and replaced. `retiring` closes those that go.

* A request leases a `Model` and keeps it until it ends, even if its name gets another model in the meantime. An engine
  is closed when its last model is unloaded and the last lease has ended.
* A model that is being loaded gets its name only when it is ready. A load that fails changes nothing.
* All code runs in one event loop, and tables change only between two awaits. The only locks order the loads of one
  name.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Final

from untemplate._internal.suggestions import close_names, did_you_mean

from ..engines.base import Health
from ..errors import ApiError, bad_request, not_found, shutting_down
from .model import Loader, Model
from .offers import Offer, Offers
from .restarts import Restarts
from .retiring import Event, Retiring, Slot, Status, log_event

_RETRY_AFTER: Final = {"Retry-After": "5"}
"""Seconds to wait before a retry, while a model is being loaded or the gateway shuts down."""


class Names:
    """The names by which requests ask for one manager's models. Ollama's tag ``:latest`` may follow any name.

    Args:
        aliases: names that the settings add → the model that each stands for; ``""`` for the only one.
        any_name: an unknown name means the only model.
    """

    def __init__(self, aliases: Mapping[str, str], *, any_name: bool) -> None:
        self.offers: Offers | None = None
        self._aliases = dict(aliases)
        self._any_name = any_name
        self._loaded: dict[str, str] = {}
        """Names and aliases of the loaded models → the names of the models."""

    def find(self, name: str) -> str | None:
        """Return the name of the model that has this name or alias; ``None`` if none has. An empty name means the
        only model.
        """
        for one in dict.fromkeys((name, name.removesuffix(":latest"))):
            found = self._model(one)
            if found is None and one in self._aliases:
                found = self._model(self._aliases[one])
            if found is not None:
                return found
        return None

    def find_for_request(self, name: str) -> str | None:
        """Return the name of the model that a request means. As `find`, but ``any_name`` has an effect."""
        found = self.find(name)
        return self._only() if found is None and self._any_name else found

    def _model(self, name: str) -> str | None:
        if not name:
            return self._only()
        offered = None if self.offers is None else self.offers.name_of(name)
        return offered or self._loaded.get(name)

    def _only(self) -> str | None:
        models = () if self.offers is None else self.offers.names()
        models = models or tuple(dict.fromkeys(self._loaded.values()))
        return models[0] if len(models) == 1 else None

    def replace(self, old: Iterable[Model], new: Iterable[Model] = ()) -> None:
        """Give new models their names and aliases, which may be those of the old models.

        Raises:
            ValueError: a name belongs to another model; nothing has changed.
        """
        gone = {name for model in old for name in (model.name, *model.aliases)}
        loaded = {name: model for name, model in self._loaded.items() if name not in gone}
        for model in new:
            for name in (model.name, *model.aliases):
                if name in loaded or (name in self._aliases and name != model.name):
                    raise ValueError(f"the name {name!r} of model {model.name!r} belongs to another model")
            loaded |= dict.fromkeys((model.name, *model.aliases), model.name)
        self._loaded = loaded

    def _taken(self) -> set[str]:
        """Return the names and aliases of all models."""
        return {*self._loaded, *self._aliases, *(() if self.offers is None else self.offers.all_names())}

    # -- Messages ------------------------------------------------------------------------------------------------

    def listed(self) -> str:
        """Return the names of all models, for an error message."""
        offered = () if self.offers is None else self.offers.names()
        return ", ".join(dict.fromkeys((*offered, *self._loaded.values()))) or "none"

    def unknown(self, name: str) -> str:
        """Return the message for a name that means no model."""
        hint = did_you_mean(close_names(name, sorted(self._taken() - {name}), 1))
        which = f"the model {name!r} does not exist" if name else "no model is loaded"
        return f"{which}{hint} (models: {self.listed()})"


class Lease:
    """A request's lease of a model: ``async with manager.use(name) as model``."""

    __slots__ = ("_manager", "_name", "_slot")

    def __init__(self, manager: Manager, name: str) -> None:
        self._manager = manager
        self._name = name
        self._slot: Slot | None = None

    async def __aenter__(self) -> Model:
        manager = self._manager
        while True:
            offered = manager.offered(self._name)
            if manager.offers is not None and offered is not None:
                await manager.offers.ensure(offered)
            slot = manager._slot(self._name)
            engine = slot.model.engine
            if not engine.ended and engine not in manager.restarts.states:
                break
            await manager.restarts.wait(slot.model)  # meanwhile, the name may have got another model
        self._slot = slot
        slot.leases += 1
        slot.last_used = manager.now()
        return slot.model

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        slot, self._slot = self._slot, None
        assert slot is not None
        slot.leases -= 1
        if slot.leases:
            return
        slot.idle_since = self._manager.now()
        if slot.retired:
            slot.idle.set()
        elif self._manager.offers is not None:
            self._manager.offers.freed()


class Manager:
    """All models that requests can name.

    Args:
        models: models that are ready, with their engines started.
        aliases: further names → the model that each stands for; ``""`` for the only one.
        any_name: accept any unknown name if there is exactly one model.
        on_event: called for each event of a model; by default events are logged.
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
        on_event: Callable[[Event], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.names = Names(aliases or {}, any_name=any_name)
        self.tell = on_event or log_event
        self.restarts = Restarts()
        self._clock = clock
        self._retiring = Retiring(self.restarts, self.tell, clock)
        self.offers: Offers | None = None
        """Models that are loaded by their first request."""
        self._slots: dict[str, Slot] = {}
        self._loading: dict[str, float] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._closed = False
        self.add(*models)

    def offer(self, offers: Iterable[Offer], *, max_loaded: int = 0) -> None:
        """Offer models that requests load.

        Args:
            offers: the models.
            max_loaded: most models of this machine that are loaded at a time; 0 for no limit.
        """
        self.offers = self.names.offers = Offers(self, offers, max_loaded=max_loaded)

    # -- Requests ------------------------------------------------------------------------------------------------

    def use(self, name: str = "") -> Lease:
        """Lease a model for one request: ``async with manager.use(name) as model``.

        Args:
            name: a model's name or alias, with or without Ollama's ``:latest``; ``""`` for the only model.

        Raises:
            ApiError: on entering: 404 if the name is unknown (the message lists the models), 400 if there is no name
                but several models, 503 if the model is still being loaded or the gateway is shutting down.
        """
        return Lease(self, name)

    def offered(self, name: str) -> str | None:
        """Return the name of the model that requests for a name load, if it is one of the offered ones."""
        found = self.names.find_for_request(name)
        return None if self.offers is None or found is None else self.offers.name_of(found)

    def fallbacks(self, name: str) -> tuple[str, ...]:
        """Return the names of the models that answer if the model of a name cannot."""
        found = self.offered(name)
        return () if self.offers is None or found is None else self.offers.fallbacks(found)

    def is_loaded(self, name: str) -> bool:
        """True if requests can lease the model of this name now."""
        return name in self._slots or self._closed

    def idle(self) -> dict[str, float]:
        """Return the loaded models that no request uses, each with the time since which it is idle."""
        return {name: slot.idle_since for name, slot in self._slots.items() if not slot.leases}

    def unloaded(self) -> tuple[tuple[str, Model | None], ...]:
        """Return the names of the models that a request would load, each with the model as it was the last time it was
        loaded; ``None`` if it never was.
        """
        offers = self.offers
        if offers is None:
            return ()
        return tuple((name, offers.known(name)) for name in offers.names() if name not in self._slots)

    def now(self) -> float:
        """Return the time in seconds since the epoch."""
        return self._clock()

    def get(self, name: str = "") -> Model:
        """Return the model of a name without a lease: for its properties, not for generating. Raises as `use`."""
        return self._slot(name).model

    def list(self) -> tuple[Model, ...]:
        """Return the models that take requests, in the order in which they were added."""
        return tuple(slot.model for slot in self._slots.values())

    def ps(self) -> tuple[Status, ...]:
        """Return every model: loaded, being loaded, or finishing its running requests."""
        ready = [slot.status("ready") for slot in self._slots.values()]
        loading = [Status(name, "loading", since=since) for name, since in self._loading.items()]
        draining = [slot.status("draining") for slot in self._retiring.slots]
        return (*ready, *loading, *sorted(draining, key=lambda status: status.since))

    async def health(self) -> dict[str, Health]:
        """Return the health of each engine by the name of its model. An engine that does not answer is not healthy."""
        slots = dict(self._slots)
        for slot in slots.values():  # a balancer that sends no requests to an unhealthy server must see it recover
            self.restarts.begin(slot.model)
        found = await asyncio.gather(*(slot.model.engine.health() for slot in slots.values()), return_exceptions=True)
        return {
            name: health if isinstance(health, Health) else Health(False, f"{type(health).__name__}: {health}")
            for name, health in zip(slots, found, strict=True)
        }

    def _slot(self, name: str) -> Slot:
        found = self.names.find_for_request(name)
        slot = None if found is None else self._slots.get(found)
        if slot is None or self._closed:
            raise self._missing(name)
        return slot

    def _missing(self, name: str) -> ApiError:
        """Return the error for a name that means no model."""
        if self._closed:
            return shutting_down()
        if (self.names.find(name) or name) in self._loading or (not name and self._loading and not self._slots):
            which = f"the model {name!r}" if name else "the model"
            problem = f"{which} is being loaded; try again in a few seconds"
            return ApiError(
                503, problem, type="server_error", param="model", code="model_loading", headers=_RETRY_AFTER
            )
        if not name and (self._slots or self.offers is not None):
            return bad_request("model", f"is required: there are several models: {self.names.listed()}")
        return not_found(self.names.unknown(name), code="model_not_found", param="model")

    # -- Loading -------------------------------------------------------------------------------------------------

    def add(self, *models: Model) -> None:
        """Add models that are ready. They may share an engine.

        Raises:
            ValueError: a name is taken.
        """
        self._install(models)

    async def load(self, name: str, loader: Loader) -> Model:
        """Load a model under a free name, or `swap` the model that has the name. Loads of one name run one after
        another.

        Raises:
            ApiError: 503: the gateway is shutting down.
            ValueError: the name, or an alias of the model, belongs to another model.
            Exception: ``loader`` raised it; nothing has changed.
        """
        async with self._locks.setdefault(name, asyncio.Lock()):
            if self._closed:
                raise shutting_down()
            begun = time.monotonic()
            self._loading[name] = self._clock()
            self._tell("loading", name)
            try:
                model = await loader(lambda what: self._tell("progress", name, what))
                if model.name != name:
                    model = replace(model, name=name)
                await self._take_in([model], lambda slot: slot.model.name == name)
            except BaseException as error:
                what = str(error) or type(error).__name__
                self._tell("failed", name, what, time.monotonic() - begun)
                raise
            finally:
                del self._loading[name]
            self._tell("ready", name, model.engine.kind, time.monotonic() - begun)
            return model

    async def swap(self, name: str, loader: Loader) -> Model:
        """Replace a loaded model. The new one takes requests as soon as it is ready; the old one finishes its running
        requests and closes. Both are in memory in the meantime.

        Raises:
            ApiError: 404: the model does not exist; 503 as `load`.
            Exception: as `load`.
        """
        if name not in self._slots:
            raise not_found(self.names.unknown(name), code="model_not_found", param="model")
        return await self.load(name, loader)

    async def change(self, *models: Model) -> None:
        """Replace all models by models that are ready. The old ones finish their running requests and close.

        Raises:
            ApiError, ValueError: as `load`; nothing has changed.
        """
        await self._take_in(models, lambda slot: True)

    async def unload(self, name: str, timeout: float | None = None) -> bool:
        """Unload a model: new requests get a 404 at once; when the running ones have ended, the model is closed.

        Args:
            timeout: seconds after which the model is closed even if requests are running; ``None`` for no limit.

        Returns: True if every request could finish.

        Raises:
            ApiError: 404: the model does not exist.
        """
        slot = self._slots.get(name)
        if slot is None:
            raise not_found(self.names.unknown(name), code="model_not_found", param="model")
        self._remove(slot)
        return await asyncio.shield(self._retiring.close(slot, timeout))

    def withdraw(self, name: str) -> asyncio.Task[bool] | None:
        """Take its name from a model, and return the task that closes it after its running requests; ``None`` if it is
        not loaded."""
        slot = self._slots.get(name)
        if slot is None:
            return None
        self._remove(slot)
        return self._retiring.close(slot)

    def forget(self, name: str) -> asyncio.Task[bool] | None:
        """Stop offering a model, and close it as `withdraw` does.

        Raises:
            ApiError: 404: it does not exist; 400: the name is an alias.
        """
        found = self.names.find(name)
        if found is None or self._closed:
            raise self._missing(name)
        if found not in (name, name.removesuffix(":latest")):
            raise bad_request("model", f"{name!r} is an alias of {found!r}, which must be named itself")
        if self.offers is not None:
            self.offers.remove(found)
        return self.withdraw(found)

    async def close(self, timeout: float | None = None) -> bool:
        """Close everything: new requests get a 503, running ones may finish. May be called twice.

        Args:
            timeout: seconds after which engines are closed even if requests are running; ``None`` for no limit.

        Returns: True if every request could finish.
        """
        self._closed = True
        if self.offers is not None:
            await self.offers.close()
        for slot in list(self._slots.values()):
            self._remove(slot)
            self._retiring.close(slot)
        return await self._retiring.close_all(timeout)

    async def _take_in(self, models: Sequence[Model], replaces: Callable[[Slot], bool]) -> None:
        """Give new models their names, which may be those of models that they replace. If a name is taken, the new
        models are closed.
        """
        old = [slot for slot in self._slots.values() if replaces(slot)]
        try:
            if self._closed:
                raise shutting_down()
            self._install(models, old)
        except (ApiError, ValueError):
            for engine in {id(model.engine): model.engine for model in models}.values():
                if not self._retiring.uses(engine):
                    await engine.close()
            raise
        for slot in old:
            self._retiring.close(slot)

    def _install(self, models: Sequence[Model], instead_of: Sequence[Slot] = ()) -> None:
        self.names.replace([slot.model for slot in instead_of], models)
        for slot in instead_of:
            self._drain(slot)
        for model in models:
            now = self._clock()
            self._slots[model.name] = Slot(model, now, idle_since=now)
            self._retiring.took(model.engine)

    def _remove(self, slot: Slot) -> None:
        self.names.replace([slot.model])
        self._drain(slot)

    def _drain(self, slot: Slot) -> None:
        del self._slots[slot.model.name]
        self._retiring.begin(slot)

    def _tell(self, kind: str, model: str, detail: str = "", seconds: float | None = None) -> None:
        self.tell(Event(kind, model, detail, seconds))
