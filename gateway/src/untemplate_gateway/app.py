"""The gateway as an ASGI application: its parts, its routes, its start and end.

Routing is Starlette's. `answering` has the way of a request. docs/gateway-operation.md has figures.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Route, Router

from .access import is_private
from .answering import Answers, error_body
from .asgi import Receive, Scope, Send, Sent, headers_of, path_of, send_bytes
from .background import RESPONSE, Background
from .endpoints import dialect_of, endpoints
from .errors import ApiError
from .exchange import Endpoint, Exchange
from .inspection import Inspection
from .manager import Manager
from .manager.pulling import Pulls
from .observe import Metrics
from .ollama_endpoints import ollama_load
from .protocols import dialects, ollama
from .protocols.base import Dialect
from .protocols.encoding import encode
from .protocols.responses import RESPONSES
from .store import ResponseStore

if TYPE_CHECKING:
    from .settings import Settings

_log: Final = logging.getLogger("untemplate.gateway")


def create_app(manager: Manager, settings: Settings) -> Gateway:
    """Return the application that serves the manager's models.

    Args:
        manager: the models. It is closed when the application shuts down.
        settings: access, limits and logging.
    """
    return Gateway(manager, settings)


class Gateway:
    """The ASGI application. ``metrics`` and ``manager`` can be inspected."""

    def __init__(self, manager: Manager, settings: Settings) -> None:
        self.manager = manager
        self.settings = settings
        self.metrics = Metrics()
        self.started = time.time()
        self.store = ResponseStore(
            settings.response_store,
            settings.response_ttl,
            settings.response_store_bytes,
            most=settings.max_messages,
            most_bytes=settings.max_body_bytes,
        )
        self.background = Background(self)
        self.pulls = Pulls(manager, lambda: self.settings)
        self.answers = Answers(self)
        self.generate = self.answers.generate
        found = {("POST", path): _generating(dialect) for path, dialect in dialects().items()} | endpoints()
        if self.has_inspector:
            found |= Inspection(manager).endpoints()
        routes: list[BaseRoute] = [
            Route(path, _Answering(self.answers, one), methods=[method]) for (method, path), one in found.items()
        ]
        self._router = Router(routes, redirect_slashes=False, lifespan=self._lifespan)

    @property
    def has_inspector(self) -> bool:
        """True if the gateway serves the inspector's pages."""
        wanted = self.settings.inspect
        return wanted == "on" or (wanted == "auto" and is_private(self.settings))

    def refused(self, status: int) -> None:
        """Count a connection that the server refused before it was a request."""
        self.metrics.refused.labels(str(status)).inc()

    def apply(self, settings: Settings) -> list[str]:
        """Apply settings that were read again: keys, hosts, limits. Running requests keep those that they began with.

        Returns:
            The names of changed settings that need a restart.
        """
        before = {name: getattr(self.settings, name) for name in _FIXED}
        changed = [name for name, value in before.items() if getattr(settings, name) != value]
        self.settings = settings = msgspec.structs.replace(settings, **before)
        self.answers.apply(settings)
        return changed

    @asynccontextmanager
    async def _lifespan(self, app: Any) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the models, after their running requests, and everything else."""
        await self.pulls.close()
        await self.background.close()
        await self.manager.close(timeout=self.settings.shutdown_grace)
        self.store.close()
        await self.answers.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1003})
            return
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        headers_of(scope)
        scope["app"] = self  # makes Starlette raise errors instead of answering them itself
        sent = Sent(send)
        try:
            sent.headers += self.answers.access.cors_headers(scope)
            self.answers.access.check_page(scope)
            if scope["method"] == "OPTIONS" and sent.headers:
                await send_bytes(sent, 204, b"", b"text/plain", _PREFLIGHT)
                return
            await self._router(scope, receive, sent)
        except (ApiError, HTTPException) as error:
            problem = error if isinstance(error, ApiError) else _no_route(scope, error)
            _log.debug("%s %s", problem.status, problem.message)
            body = encode(error_body(dialect_of(path_of(scope)), problem))
            await send_bytes(sent, problem.status, body, b"application/json", [])


def _generating(dialect: Dialect) -> Endpoint:
    async def handle(exchange: Exchange) -> None:
        if dialect is RESPONSES and exchange.body.get("background") is True and RESPONSE not in exchange.scope:
            await exchange.gateway.background.begin(exchange)
        elif dialect.name != ollama.CHAT.name or not await ollama_load(exchange):
            await exchange.gateway.generate(exchange, dialect)

    return Endpoint(dialect.name, handle, reads_body=True, traced=True)


class _Answering:
    """The ASGI application of one route: Starlette passes requests to it unchanged."""

    def __init__(self, answers: Answers, endpoint: Endpoint) -> None:
        self._answers = answers
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert isinstance(send, Sent)
        await self._answers.answer(scope, receive, send, self._endpoint)


def _no_route(scope: Scope, error: HTTPException) -> ApiError:
    if error.status_code == 405:
        return ApiError(405, f"{scope['path']} does not take {scope['method']}", code="method_not_allowed")
    return ApiError(404, f"there is nothing at {scope['path']}", type="not_found_error", code="not_found")


_FIXED: Final = (
    *("host", "port", "uds", "root_path", "workers", "shutdown_grace", "keep_alive_seconds"),
    *("response_store", "response_ttl", "response_store_bytes", "grammar_timeout", "inspect"),
    *("log_format", "log_level", "log_raw", "log_raw_consent", "traces"),
)
"""Settings that only take effect at the start."""
_PREFLIGHT: Final = [
    (b"access-control-allow-methods", b"GET, POST, DELETE, OPTIONS"),
    (b"access-control-allow-headers", b"*, authorization"),
    (b"access-control-max-age", b"86400"),
]
