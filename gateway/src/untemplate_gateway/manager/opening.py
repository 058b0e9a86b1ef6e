"""From settings to a manager with its models, and back to the settings at a reload.

* One model is loaded at once; several (``[models.NAME]``) are offered, and loaded when they are needed.
* Mistakes in settings are reported before anything is loaded, as far as possible.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ..errors import ApiError
from ..settings import ModelSettings, Settings, SettingsError
from . import hub
from .checkpoint import CheckpointError, size_text
from .loading import check_model, context_of, load_models, loader, locate
from .manager import Event, Manager, Report
from .model import Model
from .offers import Offer
from .preflight import estimate


async def open_manager(settings: Settings, *, on_event: Callable[[Event], None] | None = None) -> Manager:
    """Return a manager with all models that the settings name, ready to answer.

    Raises:
        SettingsError, CheckpointError, HubError: the settings cannot be applied; the message has the remedy.
        EngineError: the engine does not start.
    """
    aliases = settings.aliases
    manager = Manager(aliases=aliases, any_name=settings.any_model_name, on_event=on_event)
    if settings.models:
        try:
            await _offer(manager, settings)
        except BaseException:
            await manager.close(timeout=0)
            raise
        return manager
    what = settings.name or settings.model or settings.upstream or settings.upstream_chat
    manager.add(*await load_models(settings, lambda text: manager.tell(Event("progress", what, text))))
    return manager


async def reload_models(manager: Manager, settings: Settings, report: Report) -> tuple[str, ...]:
    """Replace the models by those of new settings, and return their names. Models whose settings have not changed stay
    loaded; the others finish their running requests.

    Raises:
        SettingsError: as `open_manager`; nothing has changed.
        Exception: as `open_manager`, if the settings have no ``[models.NAME]`` tables. With tables, a model that cannot
            be loaded is logged, and its requests get a 503.
    """
    offers = manager.offers
    if (offers is None) == bool(settings.models):
        raise SettingsError("models: changing between one model and [models.NAME] tables needs a restart")
    if offers is None:
        models = await load_models(settings, report)
        await manager.change(*models)
        return tuple(model.name for model in models)
    offers.change(await _offers(settings), budget=settings.memory_budget)
    for name in _at_start(settings):
        with contextlib.suppress(ApiError):  # has been logged
            await offers.ensure(name)
    return offers.names()


async def _offer(manager: Manager, settings: Settings) -> None:
    """Offer several models, and load those that are to be loaded at the start.

    Raises:
        SettingsError: a model cannot be served; the message names it.
        Exception: as `open_manager`.
    """
    manager.offer(await _offers(settings), budget=settings.memory_budget)
    for name in _at_start(settings):
        assert manager.offers is not None
        try:
            await manager.offers.load(name)
        except (SettingsError, CheckpointError, hub.HubError) as error:
            raise SettingsError(f"models.{name}: {error}") from None
        except ApiError as error:
            problem = f"models.{name}: {error.message}{f': {error.detail}' if error.detail else ''}"
            raise SettingsError(problem) from None


async def _offers(settings: Settings) -> list[Offer]:
    """Return the models of the ``[models.NAME]`` tables.

    Raises:
        SettingsError: a model cannot be served; the message names it.
    """
    return [
        Offer(
            name=name,
            load=partial(_load_named, table),
            aliases=table.aliases,
            size=await asyncio.to_thread(_size_of, name, table, settings.memory_budget),
            idle_unload=table.idle_unload,
            pinned=table.load == "start" and not table.idle_unload,
            fallbacks=table.fallbacks,
            origin=(table.settings, table.aliases),
        )
        for name, table in settings.models.items()
    ]


async def offer_of(settings: Settings) -> Offer:
    """Return the offer of the one model that settings name.

    Raises:
        SettingsError: it cannot be served.
    """
    size = await asyncio.to_thread(_size_of, settings.name, ModelSettings(settings=settings), settings.memory_budget)
    return Offer(name=settings.name, load=loader(settings), size=size)


def _at_start(settings: Settings) -> list[str]:
    return [name for name, table in settings.models.items() if table.load == "start"]


async def _load_named(table: ModelSettings, report: Report) -> Model:
    model = await loader(table.settings)(report)
    return replace(model, aliases=table.aliases)


def _size_of(name: str, table: ModelSettings, budget: int) -> Callable[[], int]:
    """Return the function that estimates the memory of a model, after checking what can be checked.

    Raises:
        SettingsError: the model cannot be loaded, or needs more than the budget.
    """
    settings = table.settings
    try:
        kind = check_model(settings)
    except (SettingsError, CheckpointError) as error:
        raise SettingsError(f"models.{name}: {error}") from None
    if kind in ("openai", "replay"):
        return lambda: 0

    def size() -> int:
        checkpoint = locate(settings.model, lambda what: None)
        return estimate(checkpoint, context=context_of(settings, kind, checkpoint)).needed

    is_here = not hub.is_hub_name(settings.model) or hub.find(settings.model) is not None
    if budget and is_here:
        try:
            needed = size()
        except CheckpointError as error:
            raise SettingsError(f"models.{name}: {error}") from None
        if needed > budget:
            problem = f"needs about {size_text(needed)}, more than the memory_budget of {size_text(budget)}"
            raise SettingsError(f"models.{name}: {problem}")
    return size
