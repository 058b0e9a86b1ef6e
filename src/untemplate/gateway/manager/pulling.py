"""Models that clients add and remove while the gateway runs, as far as the operator allows it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import msgspec

from ..errors import ApiError, EngineError, bad_request
from ..settings import Settings
from . import hub
from .checkpoint import CheckpointError
from .loading import loader, locate, offer_of
from .manager import Manager

__all__ = ["delete", "pull"]


async def pull(manager: Manager, settings: Settings, name: str) -> AsyncGenerator[str, None]:
    """Download a model from the hub, unless it is on disk, and load it. Yield each step in a few words.

    Args:
        settings: those of the gateway; the model gets its engines' settings.

    Raises:
        ApiError: it cannot be downloaded or loaded.
    """
    yield f"pulling {name}"
    if manager.knows(name):
        return
    if not hub.is_hub_name(name):
        raise bad_request("model", f"{name!r} is not a name on the hub; expected org/repo or org/repo:Q4_K_M")
    loop, steps = asyncio.get_running_loop(), asyncio.Queue[str | None]()

    def report(what: str) -> None:
        loop.call_soon_threadsafe(steps.put_nowait, what)

    async def load() -> None:
        try:
            await asyncio.to_thread(locate, name, report)
            report("loading")
            await _loaded(manager, _settings_of(settings, name), name)
        except (ValueError, CheckpointError, hub.HubError) as error:
            raise ApiError(400, str(error), param="model", code="model_not_loaded") from None
        finally:
            steps.put_nowait(None)

    work = asyncio.create_task(load())
    try:
        while (step := await steps.get()) is not None:
            yield step
        await work
    finally:
        work.cancel()


async def _loaded(manager: Manager, settings: Settings, name: str) -> None:
    if manager.offers is None:
        await manager.load(name, loader(settings))
    else:
        manager.offers.add(await offer_of(settings))
        await manager.offers.ensure(name)


def _settings_of(settings: Settings, name: str) -> Settings:
    """Return the settings of a model that a client names: the operator's, without what belongs to another model."""
    vllm = msgspec.structs.replace(settings.vllm, trust_remote_code=False)
    kept = ("preflight", "memory_budget", "generic_tools", "policy", "llamacpp")
    return Settings(model=name, name=name, vllm=vllm, **{field: getattr(settings, field) for field in kept})


async def delete(manager: Manager, name: str) -> None:
    """Forget a model or a copy of its name. The model finishes its running requests; if it has the name of a model in
    the cache of the hub, it is deleted there.

    Raises:
        ApiError: it does not exist, or its files cannot be deleted.
    """
    if manager.forget_copy(name):
        return
    closing = manager.forget(name)
    if closing is not None:
        await asyncio.shield(closing)
    if hub.is_hub_name(name):
        try:
            await asyncio.to_thread(_remove, name)
        except hub.HubError as error:
            raise EngineError(f"the files of {name!r} cannot be deleted", status=500, detail=str(error)) from None


def _remove(name: str) -> None:
    found = hub.find(name)
    hub.remove([one for one in hub.cached() if found is not None and one.name == found.name])
