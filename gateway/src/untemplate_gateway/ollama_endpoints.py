"""Ollama's endpoints for models: listed, described, loaded, pulled, copied and deleted."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from untemplate import __version__

from .asgi import path_of, send_stream
from .errors import ApiError
from .exchange import Exchange
from .generation import Meta
from .manager import Model, pulling
from .protocols.encoding import encode
from .protocols.fields import read_as
from .protocols.ollama import models
from .protocols.ollama.request import load_of
from .protocols.ollama.response import error_object, loaded


async def ollama_load(exchange: Exchange) -> bool:
    """Answer a request without a prompt, which asks for a model to be loaded or unloaded. Return True if it was one.

    Raises:
        ApiError: 404: no such model; 403: it asks to unload one.
    """
    load = load_of(exchange.body, chat=path_of(exchange.scope) == "/api/chat")
    if load is None:
        return False
    manager = exchange.gateway.manager
    if load.unload:
        if manager.offered(load.model) is None:
            manager.get(load.model)
        problem = "only the operator of this gateway can load or unload models"
        raise ApiError(403, problem, type="permission_error", param="keep_alive")
    async with manager.use(load.model) as model:  # loads it, if it is loaded by its first request
        exchange.record.model = model
    meta = Meta(id=exchange.record.id, created=int(time.time()), model=load.model or model.name)
    await exchange.reply(loaded(load, meta))
    return True


async def tags(exchange: Exchange) -> None:
    manager = exchange.gateway.manager
    known: dict[str, Model | str] = {model.name: model for model in manager.list()}
    known |= {name: model or name for name, model in manager.unloaded()}
    await exchange.reply(models.tags(list(known.values())))


async def ps(exchange: Exchange) -> None:
    await exchange.reply(models.ps(list(exchange.gateway.manager.list())))


async def show(exchange: Exchange) -> None:
    asked = read_as(models.ModelRequest, exchange.body)
    async with exchange.gateway.manager.use(asked.model or asked.name or "") as model:
        shown = models.show(model)
    await exchange.reply(shown)


async def version(exchange: Exchange) -> None:
    await exchange.reply({"version": __version__})


async def pull(exchange: Exchange) -> None:
    """Download a model from the hub and load it. The response is a line for each step, the last one ``success``."""
    asked = read_as(models.PullRequest, exchange.body, notes=exchange.notes)
    gateway, name = exchange.gateway, models.name_of(asked)
    if gateway.manager.names.find(name) is None:
        _check_allowed(gateway.settings.allow_pull, "download models (--allow-pull)")
    async with aclosing(_steps(gateway.pulls.pull(name))) as steps:
        if asked.stream is not False:
            exchange.record.status = 200
            await send_stream(exchange.send, steps, "application/x-ndjson", exchange.notes.headers)
            return
        async for _ in steps:
            pass
    await exchange.reply({"status": "success"})


async def _steps(statuses: AsyncGenerator[str, None]) -> AsyncGenerator[bytes, None]:
    """Yield the lines of a streamed response. A failure after the first is a line of its own."""
    begun = False
    async with aclosing(statuses):
        try:
            async for status in statuses:
                begun = True
                yield encode({"status": status}) + b"\n"
        except ApiError as error:
            if not begun:
                raise
            yield encode(error_object(error)) + b"\n"
            return
    yield encode({"status": "success"}) + b"\n"


async def delete(exchange: Exchange) -> None:
    """Unload a model and forget it; one that is named as on the hub is also deleted from disk."""
    asked = read_as(models.ModelRequest, exchange.body, notes=exchange.notes)
    _check_allowed(exchange.gateway.settings.allow_delete, "delete models (--allow-delete)")
    await pulling.delete(exchange.gateway.manager, models.name_of(asked))
    await exchange.reply({})


def _check_allowed(allowed: bool, what: str) -> None:
    if not allowed:
        problem = f"the operator of this gateway does not allow clients to {what}"
        raise ApiError(403, problem, type="permission_error", code="not_allowed")
