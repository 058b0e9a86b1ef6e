"""From settings to a manager with its models, and back to the settings at a reload.

* One model is loaded at once; several (``[models.NAME]``) are offered, and loaded when they are needed.
* Mistakes in settings are reported before anything is loaded, as far as possible.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from functools import partial

from ..errors import ApiError
from ..settings import ModelSettings, Settings, SettingsError
from . import hub
from .checkpoint import CheckpointError
from .loading import check_model, load_models, loader
from .manager import Manager
from .model import Model, Report
from .offers import Offer
from .slots import reporting


async def open_manager(settings: Settings) -> Manager:
    """Return a manager with all models that the settings name, ready to answer.

    Raises:
        SettingsError, CheckpointError, HubError: the settings cannot be applied; the message has the remedy.
        EngineError: the engine does not start.
    """
    manager = Manager(aliases=settings.aliases, any_name=settings.any_model_name)
    if settings.models:
        try:
            await _offer(manager, settings)
        except BaseException:
            await manager.close(timeout=0)
            raise
        return manager
    what = settings.name or settings.model or settings.upstream or settings.upstream_chat
    manager.add(*await load_models(settings, reporting(what)))
    return manager


async def reload_models(manager: Manager, settings: Settings, report: Report) -> tuple[str, ...]:
    """Replace the models by those of new settings, and return their names. Models whose settings have not changed stay
    loaded; the others finish their running requests.

    Raises:
        SettingsError: as `open_manager`; nothing has changed.
        Exception: as `open_manager`, if the settings have no ``[models.NAME]`` tables. With tables, a model that cannot
            be loaded is logged, and its requests get a 503.
    """
    if manager.offers.several != bool(settings.models):
        raise SettingsError("models: changing between one model and [models.NAME] tables needs a restart")
    if not settings.models:
        models = await load_models(settings, report)
        await manager.change(*models)
        return tuple(model.name for model in models)
    await _change(manager, settings)
    for name in _at_start(settings):
        with contextlib.suppress(ApiError):  # has been logged
            await manager.offers.ensure(name)
    return tuple(settings.models)


async def _offer(manager: Manager, settings: Settings) -> None:
    """Offer several models, and load those that are to be loaded at the start.

    Raises:
        SettingsError: a model cannot be served; the message names it.
        Exception: as `open_manager`.
    """
    await _change(manager, settings)
    for name in _at_start(settings):
        try:
            await manager.offers.load(name)
        except (SettingsError, CheckpointError, hub.HubError) as error:
            raise SettingsError(f"models.{name}: {error}") from None
        except ApiError as error:
            problem = f"models.{name}: {error.message}{f': {error.detail}' if error.detail else ''}"
            raise SettingsError(problem) from None


async def _change(manager: Manager, settings: Settings) -> None:
    offers = await _offers(settings)
    try:
        manager.offers.change(offers, max_loaded=settings.max_loaded)
    except ValueError as error:
        raise SettingsError(f"models: {error}") from None


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
            local=await asyncio.to_thread(_is_local, name, table.settings),
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
    local = await asyncio.to_thread(_is_local, settings.name, settings)
    return Offer(name=settings.name, load=loader(settings), local=local)


def _at_start(settings: Settings) -> list[str]:
    return [name for name, table in settings.models.items() if table.load == "start"]


async def _load_named(table: ModelSettings, report: Report) -> Model:
    model = await loader(table.settings)(report)
    return replace(model, aliases=table.aliases)


def _is_local(name: str, settings: Settings) -> bool:
    """True if a model runs on this machine. Checks what can be checked without loading it.

    Raises:
        SettingsError: the model cannot be loaded.
    """
    try:
        return check_model(settings) not in ("openai", "replay")
    except (SettingsError, CheckpointError) as error:
        raise SettingsError(f"models.{name}: {error}") from None
