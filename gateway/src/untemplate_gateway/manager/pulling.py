"""Models that clients add and remove while the gateway runs, as far as the operator allows it.

* A download is ``untemplate pull`` in a process of its own, which can be ended at any time.
* Requests for the same model wait for one download. It ends when the last of them leaves, and when the gateway does.
* The number of downloads at a time is bounded.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import Final

import msgspec

from ..errors import ApiError, EngineError, bad_request, overloaded, shutting_down
from ..processes import python_environment
from ..settings import Settings
from . import hub
from .checkpoint import CheckpointError
from .loading import loader
from .manager import Manager
from .model import Report
from .opening import offer_of

_MOST: Final = 4
"""Most downloads at a time."""


async def download(name: str, report: Report) -> None:
    """Download a model. Cancelling this ends the download.

    Raises:
        HubError: it cannot be downloaded; the message has the remedy.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "untemplate", "pull", name),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**python_environment(), "HF_HUB_DISABLE_PROGRESS_BARS": "1"},
        start_new_session=True,
    )
    assert process.stderr is not None
    line = f"{name}: the download ended unexpectedly"
    try:
        while said := await process.stderr.readline():
            line = said.decode("utf-8", "replace").strip().removeprefix("untemplate: ")
            if not line.startswith("error: "):
                report(line)
        if await process.wait():
            raise hub.HubError(line.removeprefix("error: "))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


class _Pull:
    """A model that is being downloaded and loaded."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.clients = 0
        self.task: asyncio.Task[None]
        self._changed = asyncio.Event()

    def report(self, step: str) -> None:
        self.steps.append(step)
        self.wake()

    def wake(self) -> None:
        """Wake all that wait in `follow`."""
        self._changed.set()
        self._changed.clear()

    async def follow(self) -> AsyncGenerator[str, None]:
        """Yield all steps until the work has ended."""
        seen = 0
        while True:
            while seen < len(self.steps):
                seen += 1
                yield self.steps[seen - 1]
            if self.task.done():
                return
            await self._changed.wait()


class Pulls:
    """The downloads of one gateway.

    Args:
        manager: gets the models.
        settings: returns those of the gateway; the models get its engines' settings.
    """

    def __init__(self, manager: Manager, settings: Callable[[], Settings]) -> None:
        self._manager = manager
        self._settings = settings
        self._running: dict[str, _Pull] = {}
        self._closed = False

    async def pull(self, name: str) -> AsyncGenerator[str, None]:
        """Download a model from the hub, unless it is on disk, and load it. Yield each step in a few words.

        Raises:
            ApiError: it cannot be downloaded or loaded; 429: there are too many downloads.
        """
        yield f"pulling {name}"
        if self._manager.names.find(name) is not None:
            return
        if not hub.is_hub_name(name):
            raise bad_request("model", f"{name!r} is not a name on the hub; expected org/repo or org/repo:Q4_K_M")
        one = self._running.get(name) or self._begun(name)
        one.clients += 1
        try:
            async for step in one.follow():
                yield step
        finally:
            one.clients -= 1
            if not one.clients and self._running.get(name) is one:
                del self._running[name]  # the next request begins a new download
                one.task.cancel()
        if one.task.cancelled():
            raise shutting_down()
        one.task.result()

    def _begun(self, name: str) -> _Pull:
        if self._closed or len(self._running) >= _MOST:
            raise overloaded(f"{len(self._running)} models are being downloaded already", 30)
        one = self._running[name] = _Pull()
        one.task = asyncio.create_task(self._work(name, one))
        one.task.add_done_callback(partial(self._ended, name, one))
        return one

    def _ended(self, name: str, one: _Pull, task: asyncio.Task[None]) -> None:
        if self._running.get(name) is one:
            del self._running[name]
        if not task.cancelled():
            task.exception()  # every client may have left
        one.wake()

    async def _work(self, name: str, one: _Pull) -> None:
        try:
            if await asyncio.to_thread(hub.find, name) is None:
                await download(name, one.report)
            one.report("loading")
            settings = _settings_of(self._settings(), name)
            if not self._manager.offers.several:
                await self._manager.load(name, loader(settings))
                return
            offer = await offer_of(settings)
            if self._manager.offered(name) is None:  # otherwise the settings were read again meanwhile
                self._manager.offers.add(offer)
            await self._manager.offers.ensure(name)
        except (ValueError, CheckpointError, hub.HubError) as error:
            raise ApiError(400, str(error), param="model", code="model_not_loaded") from None

    async def close(self) -> None:
        """End all downloads."""
        self._closed = True
        tasks = [one.task for one in self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _settings_of(settings: Settings, name: str) -> Settings:
    """Return the settings of a model that a client names: the operator's, without what belongs to another model."""
    vllm = msgspec.structs.replace(settings.vllm, trust_remote_code=False, extra={})
    llamacpp = msgspec.structs.replace(settings.llamacpp, mmproj="", extra={})
    kept = ("preflight", "generic_tools", "policy")
    return Settings(
        model=name, name=name, vllm=vllm, llamacpp=llamacpp, **{field: getattr(settings, field) for field in kept}
    )


async def delete(manager: Manager, name: str) -> None:
    """Forget a model. The model finishes its running requests; if it has the name of a model in
    the cache of the hub, it is deleted there.

    Raises:
        ApiError: it does not exist, or its files cannot be deleted.
    """
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
