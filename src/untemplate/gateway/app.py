"""The gateway as an ASGI application.

Rules of this module:

* A request is read by its dialect, answered by a `Session`, written by its dialect: this module only brings them
  together, and guards the door.
* Whatever goes wrong, a client gets its dialect's error object; what went wrong inside goes to the log.
* Routing is Starlette's; frames are sent by `asgi.send_stream`: one ASGI message each, nothing between
  (docs/gateway.md has the figures).
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Route, Router

from .asgi import Receive, Scope, Send, header, read_json, send_bytes, send_json, send_stream, while_connected
from .endpoints import Call, dialect_of, endpoints, ollama_load
from .errors import ApiError
from .generation import Generation, Meta
from .manager import Manager, Model
from .observe import Metrics, RawLog, Record, log_request
from .protocols import dialects, ollama
from .protocols.base import Dialect
from .protocols.common import encode
from .session import Session

if TYPE_CHECKING:
    from .settings import Settings

__all__ = ["Gateway", "create_app"]

_log: Final = logging.getLogger("untemplate.gateway")
_OPEN: Final = frozenset(("/", "/health", "/openapi.json", "/api/version"))
"""What needs no key."""


def create_app(manager: Manager, settings: Settings) -> Gateway:
    """The application that serves the manager's models.

    Args:
        manager: the models. It is closed when the application shuts down.
        settings: keys, limits, and what is logged.
    """
    return Gateway(manager, settings)


class Gateway:
    """The ASGI application. ``metrics`` and ``manager`` are there to look at."""

    def __init__(self, manager: Manager, settings: Settings) -> None:
        self.manager = manager
        self.settings = settings
        self.metrics = Metrics()
        self.started = time.time()
        self._keys = [hashlib.sha256(key.encode()).digest() for key in settings.api_keys]
        self._raw_log = RawLog(settings.log_raw) if settings.log_raw else None
        self._running = 0
        routes: list[BaseRoute] = [
            Route(path, _Endpoint(self, dialect.name, _generate(dialect, path)), methods=["POST"])
            for path, dialect in dialects().items()
        ]
        routes += [
            Route(path, _Endpoint(self, dialect_of(path), _answer(call)), methods=[method])
            for (method, path), call in endpoints().items()
        ]
        self._router = Router(routes, redirect_slashes=False, lifespan=self._lifespan)

    @asynccontextmanager
    async def _lifespan(self, app: Any) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            await self.manager.close(timeout=self.settings.shutdown_grace)
            if self._raw_log is not None:
                self._raw_log.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1003})
            return
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        scope["app"] = self  # so that Starlette raises instead of answering in its own way
        sent = _Sent(send, _cors(scope, self.settings.cors_origins))
        if scope["method"] == "OPTIONS" and sent.cors:
            await send_bytes(sent, 204, b"", b"text/plain", _PREFLIGHT)
            return
        try:
            await self._router(scope, receive, sent)
        except HTTPException as error:
            problem = _no_route(scope, error)
            body = encode(_error_body(dialect_of(scope["path"]), problem))
            await send_bytes(sent, problem.status, body, b"application/json", [])

    # -- One request ---------------------------------------------------------------------------------------------

    async def answer(self, scope: Scope, receive: Receive, send: _Sent, dialect: str, handle: Handler) -> None:
        """Answers one request: lets it in, handles it, and counts it."""
        record = Record(_request_id(scope), dialect)
        send.headers.append((b"x-request-id", record.id.encode()))
        counted = scope["path"] not in _OPEN
        self._running += counted
        self.metrics.running.set(self._running)
        try:
            self._admit(scope)
            await handle(self, scope, receive, send, record)
        except ApiError as error:
            await self._fail(send, record, dialect, error)
        except Exception:
            _log.exception("request %s", record.id)
            await self._fail(send, record, dialect, _inside(record))
        finally:
            self._running -= counted
            self.metrics.running.set(self._running)
            self.metrics.count(record)
            if counted:
                log_request(record)
            if self._raw_log is not None and record.ended:
                self._raw_log.write(record)

    def _admit(self, scope: Scope) -> None:
        """Keys and load.

        Raises:
            ApiError: 401, 429.
        """
        if scope["path"] in _OPEN:
            return
        if self._keys:
            given = header(scope, b"authorization")
            key = given[7:].strip() if given[:7].lower() == "bearer " else header(scope, b"x-api-key")
            digest = hashlib.sha256(key.encode("latin-1", "replace")).digest()
            # Every key is compared, so that the time tells nothing.
            if not sum([hmac.compare_digest(digest, known) for known in self._keys]):
                problem = "no valid API key: send it as 'Authorization: Bearer KEY' or as 'x-api-key: KEY'"
                raise ApiError(401, problem, type="authentication_error", code="invalid_api_key")
        limit = self.settings.max_concurrent_requests
        if limit and self._running > limit:
            problem = f"the server answers {limit} requests already; try again"
            raise ApiError(
                429, problem, type="rate_limit_error", code="overloaded", headers={"Retry-After": "1"}
            )  # fmt: skip

    async def _fail(self, send: _Sent, record: Record, dialect: str, error: ApiError) -> None:
        if not send.begun:
            record.status = error.status
        record.error, record.param = error.message[:200], error.param
        if send.begun or error.status == 499:
            return
        headers = [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
        await send_json(send, error.status, _error_body(dialect, error), headers)

    async def generate(
        self, scope: Scope, receive: Receive, send: _Sent, record: Record, dialect: Dialect, body: dict[str, Any]
    ) -> None:
        """Answers a request for output."""
        request = dialect.read(body)
        _look_inside(scope, request)
        self._limit(request)
        record.stream = request.stream
        record.offered = bool(request.tools) and request.tool_choice != "none"
        large = _large(scope, body)
        async with self.manager.use(request.model) as model:
            record.model = model
            self._hear(model)
            # An id of its own: clients repeat theirs, and ids of calls are made from this one.
            meta = Meta(id=secrets.token_hex(16), created=int(time.time()), model=request.model or model.name)
            session = await self._session(model, request, meta, record, large=large)
            record.notes = session.notes
            record.ended = session.ended
            if request.stream:
                work = self._stream(send, record, dialect, session)
            else:
                work = self._whole(send, record, dialect, session)
            try:
                timeout = self.settings.request_timeout
                # The session ends by itself in time, unless it waits for a client that does not read.
                done = await while_connected(receive, work, timeout + 1 if timeout else None)
            finally:
                record.usage = session.usage
                if session.failed is not None:
                    record.error = session.failed.message[:200]
            if not done:
                record.status = 499
                record.error = "the client closed the connection, or does not read"

    def _hear(self, model: Model) -> None:
        """Counts the failures of parsers that are not ours."""
        if getattr(model.parser, "on_failure", "") is None:
            model.parser.on_failure = lambda parser: self.metrics.parser_errors.labels(parser).inc()  # type: ignore[attr-defined]

    async def _session(self, model: Model, request: Generation, meta: Meta, record: Record, *, large: bool) -> Session:
        """The session, in a thread where its prompt takes long: other streams go on meanwhile."""
        timeout = self.settings.request_timeout

        def make() -> Session:
            return Session(model, request, meta, on_first=record.first_piece, timeout=timeout)

        return await asyncio.to_thread(make) if large else make()

    async def _whole(self, send: _Sent, record: Record, dialect: Dialect, session: Session) -> None:
        usage = await session.whole()
        body = dialect.respond(session.request, session.ended, usage, session.meta)
        record.status = 200
        await send_json(send, 200, body, [])

    async def _stream(self, send: _Sent, record: Record, dialect: Dialect, session: Session) -> None:
        writer = dialect.writer(session.request, session.meta)
        async with aclosing(session.frames(writer)) as frames:
            first = await anext(frames)
            record.status = 200
            try:
                await send_stream(send, first, frames, writer.media_type, [])
            except Exception:
                _log.exception("request %s", record.id)
                error = _inside(record)
                record.error = error.message
                await send({"type": "http.response.body", "body": writer.error(error)})

    def _limit(self, request: Generation) -> None:
        most = self.settings.max_messages
        if most and request.messages is not None and len(request.messages) > most:
            raise ApiError(400, f"messages: {len(request.messages)} are more than {most}", param="messages")
        if request.n > self.settings.max_choices:
            raise ApiError(400, f"n: {request.n} is more than {self.settings.max_choices}", param="n")


Handler = Callable[[Gateway, Scope, Receive, "_Sent", Record], Awaitable[None]]


def _generate(dialect: Dialect, path: str) -> Handler:
    async def handle(gateway: Gateway, scope: Scope, receive: Receive, send: _Sent, record: Record) -> None:
        body = await read_json(scope, receive, gateway.settings.max_body_bytes)
        if dialect.name != ollama.CHAT.name or not await ollama_load(gateway, send, record, path, body):
            await gateway.generate(scope, receive, send, record, dialect, body)

    return handle


def _answer(call: Call) -> Handler:
    async def handle(gateway: Gateway, scope: Scope, receive: Receive, send: _Sent, record: Record) -> None:
        await call(gateway, scope, receive, send, record)

    return handle


class _Endpoint:
    """An ASGI application for one route: Starlette hands requests to it as they are."""

    def __init__(self, gateway: Gateway, dialect: str, handle: Handler) -> None:
        self._gateway = gateway
        self._dialect = dialect
        self._handle = handle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert isinstance(send, _Sent)
        await self._gateway.answer(scope, receive, send, self._dialect, self._handle)


class _Sent:
    """``send``, with the headers that every response has; and whether one has begun."""

    __slots__ = ("_send", "begun", "cors", "headers")

    def __init__(self, send: Send, cors: list[tuple[bytes, bytes]]) -> None:
        self._send = send
        self.begun = False
        self.cors = cors
        self.headers: list[tuple[bytes, bytes]] = list(cors)

    def __call__(self, message: Any) -> Awaitable[None]:
        if not self.begun:
            self.begun = True
            message["headers"] += self.headers
        return self._send(message)


def _inside(record: Record) -> ApiError:
    return ApiError(
        500,
        f"something went wrong inside the server; its log has it under request {record.id}",
        type="server_error",
        code="internal_error",
    )


def _error_body(dialect: str, error: ApiError) -> dict[str, Any]:
    known: Mapping[str, Dialect] = {d.name: d for d in dialects().values()}
    return known[dialect if dialect in known else "chat"].error(error)


def _no_route(scope: Scope, error: HTTPException) -> ApiError:
    if error.status_code == 405:
        return ApiError(405, f"{scope['path']} does not take {scope['method']}", code="method_not_allowed")
    return ApiError(404, f"there is nothing at {scope['path']}", type="not_found_error", code="not_found")


def _request_id(scope: Scope) -> str:
    """The client's, where it is one (so that logs can be joined), else a new one: 32 hex digits."""
    given = header(scope, b"x-request-id")
    if 8 <= len(given) <= 64 and given.isascii() and given.replace("-", "").replace("_", "").isalnum():
        return given
    return secrets.token_hex(16)


def _look_inside(scope: Scope, request: Generation) -> None:
    """``X-Untemplate: diagnostics, raw`` asks for what the body's ``untemplate`` asks for."""
    wanted = {word.strip().lower() for word in header(scope, b"x-untemplate").split(",")}
    request.diagnostics = request.diagnostics or "diagnostics" in wanted
    request.raw = request.raw or "raw" in wanted


def _large(scope: Scope, body: dict[str, Any]) -> bool:
    """Whether a request may take milliseconds to render, or to be made a grammar of."""
    announced = header(scope, b"content-length")
    return not announced.isdecimal() or int(announced) > _LARGE or bool(body.get("response_format"))


_LARGE: Final = 32 * 1024
_PREFLIGHT: Final = [
    (b"access-control-allow-methods", b"GET, POST, DELETE, OPTIONS"),
    (b"access-control-allow-headers", b"*, authorization"),
    (b"access-control-max-age", b"86400"),
]


def _cors(scope: Scope, origins: tuple[str, ...] | list[str]) -> list[tuple[bytes, bytes]]:
    origin = header(scope, b"origin")
    if not origin or not origins:
        return []
    if "*" in origins:
        return [(b"access-control-allow-origin", b"*")]
    if origin in origins:
        return [(b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"origin")]
    return []
