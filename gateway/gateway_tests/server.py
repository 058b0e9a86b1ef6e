"""The gateway on a real server on loopback, for tests with clients."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import uvicorn

from untemplate_gateway.app import Gateway, create_app
from untemplate_gateway.connections import ServerConfig
from untemplate_gateway.manager import Manager, Slot
from untemplate_gateway.manager.model import Model
from untemplate_gateway.settings import Settings

LONG = 120.0
"""Seconds that no test takes, even on a busy machine."""


def soon(met: Callable[[], bool]) -> bool:
    """True if the condition is met within the time that a busy machine may need."""
    until = time.monotonic() + LONG
    while time.monotonic() < until:
        if met():
            return True
        time.sleep(0.005)
    return False


class Running:
    """A running gateway. ``url`` ends without a slash."""

    def __init__(self, app: Gateway, server: uvicorn.Server, port: int) -> None:
        self.app = app
        self.server = server
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.loop: asyncio.AbstractEventLoop
        """The event loop of the server."""

    def ps(self) -> tuple[Slot, ...]:
        """Return the manager's list of models, computed in the server's loop, in which it changes."""

        async def ask() -> tuple[Slot, ...]:
            return self.app.manager.ps()

        return asyncio.run_coroutine_threadsafe(ask(), self.loop).result(LONG)


@contextlib.contextmanager
def running(
    models: Sequence[Model] = (),
    *,
    load: Callable[[], Awaitable[Model]] | None = None,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
    patience: float = LONG,
    **settings: Any,
) -> Iterator[Running]:
    """Serve these models from a thread until the block ends; ``load`` makes a model in the server's loop, in
    ``patience`` seconds at most."""
    manager = Manager(models, any_name=settings.get("any_model_name", False))
    settings.setdefault("shutdown_grace", 1.0)
    held = Settings(**settings)
    app = create_app(manager, held)
    config = ServerConfig(app, held, log_level="error", lifespan="on")
    config.timeout_graceful_shutdown = round(settings["shutdown_grace"]) + 1
    server = uvicorn.Server(config)
    # Without a protocol number, asyncio leaves Nagle's algorithm on, and each request waits 40 ms for an
    # acknowledgement.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))

    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        if load is not None:
            manager.add(await load())
        await server.serve([listening])

    def run() -> None:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    until = time.monotonic() + patience
    while not server.started:
        if time.monotonic() > until or not thread.is_alive():
            raise RuntimeError("the server did not start")
        time.sleep(0.005)
    try:
        found = Running(app, server, listening.getsockname()[1])
        found.loop = loops[0]
        yield found
    finally:
        server.should_exit = True
        thread.join(60)
        listening.close()
