"""The gateway as an ASGI application.

* A request is read by its dialect, answered by a `Session` and written by its dialect. This module connects the three,
  after `Access` has admitted the request.
* Every failure reaches the client as its dialect's error object. Internal details go to the log.
* Routing is Starlette's. Frames are sent by `asgi.send_stream`, one ASGI message each. docs/gateway-operation.md has
  figures.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Route, Router

from .access import Access, is_personal, is_private
from .asgi import (
    BodyReader,
    Receive,
    Scope,
    Send,
    headers_of,
    path_of,
    send_bytes,
    send_json,
    send_stream,
    while_connected,
)
from .background import RESPONSE, Background
from .endpoints import dialect_of, endpoints
from .errors import ApiError
from .exchange import Endpoint, Exchange
from .generation import Generation, Meta
from .grammars import GrammarCompiler
from .inspection import Inspection
from .manager import Manager, Model
from .manager.pulling import Pulls
from .notes import Notes
from .observe import Metrics, NotesLog, RawLog, Record, log_request
from .ollama_endpoints import ollama_load
from .protocols import dialects, ollama
from .protocols.base import Dialect, Writer
from .protocols.encoding import encode
from .protocols.gemini import GEMINI
from .protocols.responses import RESPONSES
from .request_context import RequestContext, current
from .session import Session
from .store import ResponseStore
from .threads import in_thread
from .tracing import Tracing

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
        self._access = Access(settings)
        self._bodies = BodyReader(settings.max_body_bytes, settings.body_timeout)
        self._raw_log = RawLog(settings.log_raw) if settings.log_raw else None
        self._grammars = GrammarCompiler(settings.grammar_timeout)
        self._told = NotesLog()
        self._tracing = Tracing() if settings.traces else None
        self.store = ResponseStore(
            settings.response_store,
            settings.response_ttl,
            settings.response_store_bytes,
            most=settings.max_messages,
            most_bytes=settings.max_body_bytes,
        )
        self.background = Background(self)
        self.pulls = Pulls(manager, lambda: self.settings)
        self._running = 0
        found = {("POST", path): _generating(dialect) for path, dialect in dialects().items()} | endpoints()
        if self.has_inspector:
            found |= Inspection(manager).endpoints()
        routes: list[BaseRoute] = [
            Route(path, _Answering(self, endpoint), methods=[method]) for (method, path), endpoint in found.items()
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
        self._access.apply(settings)
        self._bodies.limit, self._bodies.timeout = settings.max_body_bytes, settings.body_timeout
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
        self._grammars.workers.close()
        self.store.close()
        if self._tracing is not None:
            await in_thread(self._tracing.close)  # it may wait for the collector
        if self._raw_log is not None:
            self._raw_log.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1003})
            return
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        headers_of(scope)
        scope["app"] = self  # makes Starlette raise errors instead of answering them itself
        sent = _Sent(send)
        try:
            sent.headers += self._access.cors_headers(scope)
            self._access.check_page(scope)
            if scope["method"] == "OPTIONS" and sent.headers:
                await send_bytes(sent, 204, b"", b"text/plain", _PREFLIGHT)
                return
            await self._router(scope, receive, sent)
        except (ApiError, HTTPException) as error:
            problem = error if isinstance(error, ApiError) else _no_route(scope, error)
            _log.debug("%s %s", problem.status, problem.message)
            body = encode(_error_body(dialect_of(path_of(scope)), problem))
            await send_bytes(sent, problem.status, body, b"application/json", [])

    # -- One request ---------------------------------------------------------------------------------------------

    async def answer(self, scope: Scope, receive: Receive, send: _Sent, endpoint: Endpoint) -> None:
        """Answer one request: check its key, read its body, admit it, handle it, and count it."""
        record = Record(_request_id(scope), endpoint.name)
        record.context = _context_of(scope, record.id)
        current.set(record.context)
        record.client, record.asked = (
            record.context.owner,
            f"{scope['method']} {(path_of(scope) if scope.get('root_path') else scope['path'])[:100]}",
        )
        send.headers.append((b"x-request-id", record.id.encode()))
        if self._tracing is None or not endpoint.traced:
            await self._answer_recorded(record, scope, receive, send, endpoint)
            return
        with self._tracing.span(record):
            await self._answer_recorded(record, scope, receive, send, endpoint)

    async def _answer_recorded(
        self, record: Record, scope: Scope, receive: Receive, send: _Sent, endpoint: Endpoint
    ) -> None:
        key = None
        try:
            if not endpoint.open:
                key = self._access.key_of(scope)
                if key is not None:
                    record.owner = record.context.owner = key.name
            if endpoint.limited and key is not None:
                record.key = key.name
                key.begin(counts=RESPONSE not in scope)  # otherwise it was counted when its response was begun
            else:
                key = None
            # A body that is still arriving does not count as a running request.
            body = await self._bodies.read_json(scope, receive, record.context.owner) if endpoint.reads_body else {}
            notes = Notes(refuse_unknown=self.settings.unknown_fields == "refuse")
            exchange = Exchange(self, scope, receive, send, record, body, notes)
            await (self._limited(endpoint, exchange) if endpoint.limited else endpoint.handle(exchange))
        except ApiError as error:
            await self._fail(send, record, dialect_of(path_of(scope)), error)
        except Exception:
            _log.exception("request %s", record.id)
            await self._fail(send, record, dialect_of(path_of(scope)), _inside(record))
        finally:
            if key is not None:
                key.end(record.usage.total_tokens)
            if endpoint.counted:
                self.metrics.count(record)
                log_request(record)
            if self._raw_log is not None and record.ended:
                self._raw_log.write(record)
            if record.after is not None:
                record.after()

    async def _limited(self, endpoint: Endpoint, exchange: Exchange) -> None:
        """Handle a request that takes one of the ``max_concurrent_requests``."""
        limit = self.settings.max_concurrent_requests
        if limit and self._running >= limit:
            problem = f"the server is answering {limit} requests already; try again"
            headers = {"Retry-After": "1"}
            raise ApiError(429, problem, type="rate_limit_error", code="overloaded", headers=headers)
        self._running += 1
        self.metrics.running.set(self._running)
        timeout = self.settings.request_timeout
        try:
            # A session ends in time by itself, unless it waits for a client that does not read.
            done = await while_connected(exchange.receive, endpoint.handle(exchange), timeout + 1 if timeout else None)
        finally:
            self._running -= 1
            self.metrics.running.set(self._running)
        if not done:
            exchange.record.status = 499
            exchange.record.error = "the client closed the connection, or does not read"

    async def _fail(self, send: _Sent, record: Record, dialect: str, error: ApiError) -> None:
        if not send.begun:
            record.status = error.status
        record.fail(error)
        if send.begun or error.status == 499:
            return
        headers = [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
        await send_json(send, error.status, _error_body(dialect, error), headers)

    async def generate(self, exchange: Exchange, dialect: Dialect) -> None:
        """Answer a request for model output."""
        try:
            await self._generate(exchange, dialect)
        except ApiError as error:
            raise error.renamed(dialect.fields) from None

    async def _generate(self, exchange: Exchange, dialect: Dialect) -> None:
        record, send = exchange.record, exchange.send
        assert isinstance(send, _Sent)
        notes, body, keep = exchange.notes, exchange.body, None
        notes.names = dialect.fields
        if dialect is RESPONSES:
            body = await self.store.expanded(record.owner, body)
            again = RESPONSE in exchange.scope
            keep = self.store.keeper(record.owner, body, exchange.body.get("input"), again=again)
        # A request that refers to stored items may be much larger than its body.
        large = body is not exchange.body or _large(exchange.scope)

        def read() -> Generation:
            request = dialect.read(body, notes)
            request.notes, request.keep = notes, keep
            _look_inside(exchange.scope, request)
            return request

        request = await in_thread(read) if large else read()
        self._limit(request)
        record.requested, record.stream = request.model, request.stream
        record.offered = bool(request.tools) and request.tool_choice != "none"
        for other in self.manager.fallbacks(request.model):
            try:
                await self._answer(exchange, dialect, request, large=large)
                return
            except ApiError as error:
                if send.begun or not _may_work_elsewhere(error):
                    raise
                failed = error.detail or error.message
                _log.warning("request %s: %s; asking the model %s instead", record.id, failed, other)
            notes.add(f"model: {other} is asked, because {request.model or 'the model'} is not available")
            record.error, record.param, record.detail = None, None, ""
            request = msgspec.structs.replace(request, model=other)
        await self._answer(exchange, dialect, request, large=large)

    async def _answer(self, exchange: Exchange, dialect: Dialect, request: Generation, *, large: bool) -> None:
        """Answer a request with the model that it names."""
        record, send, notes = exchange.record, exchange.send, exchange.notes
        assert isinstance(send, _Sent)
        async with self.manager.use(request.model) as model:
            record.model = model
            self._count_parser_errors(model)
            # A new id, because clients repeat theirs, and the ids of calls are derived from it.
            id = exchange.scope.get(RESPONSE) or secrets.token_hex(16)
            meta = Meta(id=id, created=int(time.time()), model=request.model or model.name)
            session = await self._session(model, request, meta, record, large=large)
            record.ended = session.ended
            if request.stream:
                work = self._stream(send, record, dialect, session)
            else:
                work = self._whole(send, record, dialect, session)
            try:
                await work
            finally:
                record.usage = session.usage
                record.longest_gap = session.longest_gap
                self._told.tell(notes)
                # Parsers have cycles, which would keep the messages until the garbage collector comes.
                session.request.messages = session.request.keep = None
                if session.failed is not None:
                    record.fail(session.failed)
                    session.failed = None  # the error refers to frames that refer to the session

    def _count_parser_errors(self, model: Model) -> None:
        """Count the failures of parsers that belong to the engine."""
        if getattr(model.parser, "on_failure", "") is None:
            model.parser.on_failure = lambda parser: self.metrics.parser_errors.labels(parser).inc()  # type: ignore[attr-defined]

    async def _session(self, model: Model, request: Generation, meta: Meta, record: Record, *, large: bool) -> Session:
        """Return the session of a request. A long prompt is rendered in a thread, so that other streams continue."""
        timeout = self.settings.request_timeout

        def make() -> Session:
            return Session(model, request, meta, on_first=record.first_piece, timeout=timeout, grammars=self._grammars)

        return await in_thread(make) if large else make()

    async def _whole(self, send: Send, record: Record, dialect: Dialect, session: Session) -> None:
        usage = await session.whole()
        respond = partial(dialect.respond, session.request, session.ended, usage, session.meta)
        body = await asyncio.to_thread(respond) if session.request.keep is not None else respond()
        record.status = 200
        await send_json(send, 200, body, session.request.notes.headers())

    async def _stream(self, send: _Sent, record: Record, dialect: Dialect, session: Session) -> None:
        writer = dialect.writer(session.request, session.meta)
        notes, silence = session.request.notes, self.settings.ping_seconds
        record.status = 200
        async with aclosing(session.frames(writer)) as frames:
            try:
                await send_stream(send, frames, writer.media_type, notes.headers, ping=writer.ping, silence=silence)
            except ApiError as error:
                if not send.begun:
                    raise
                record.fail(error)
                await self._last_words(send, writer, error)
            except asyncio.CancelledError:
                # The client has left, or the server shuts down; in the first case this reaches nobody.
                if send.begun:
                    await self._last_words(send, writer, _SHUTTING_DOWN)
                raise
            except Exception:
                if not send.begun:
                    raise
                _log.exception("request %s", record.id)
                problem = _inside(record)
                record.error = problem.message
                await self._last_words(send, writer, problem)

    async def _last_words(self, send: Send, writer: Writer, error: ApiError) -> None:
        """End a stream with an error, unless the client does not read."""
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await send({"type": "http.response.body", "body": writer.error(error)})

    def _limit(self, request: Generation) -> None:
        constraint = request.constraint
        if constraint is not None and constraint.kind != "choice" and not _takes_grammars(self.settings):
            problem = f"{constraint.field}: the operator of this gateway does not take grammars (--client-grammars on)"
            raise ApiError(403, problem, type="permission_error", param=constraint.field, code="not_allowed")
        messages, most = request.messages or [], self.settings.max_messages
        calls = sum(len(message.get("tool_calls") or ()) for message in messages)
        counts = [("messages", "", len(messages)), ("messages", "tool calls ", calls)]
        for field, what, count in (*counts, ("tools", "", len(request.tools or ()))):
            if count > most:
                raise ApiError(400, f"{field}: {count} {what}are more than {most}", param=field)
        most = self.settings.max_choices
        if request.n > most:
            raise ApiError(400, f"n: {request.n} is more than {most}", param="n")
        if request.further_prompts and request.choices > most:
            prompts = 1 + len(request.further_prompts)
            problem = f"prompt: {prompts} prompts with n = {request.n} have {request.choices} choices, more than {most}"
            raise ApiError(400, problem, param="prompt")


def _generating(dialect: Dialect) -> Endpoint:
    async def handle(exchange: Exchange) -> None:
        if dialect is RESPONSES and exchange.body.get("background") is True and RESPONSE not in exchange.scope:
            await exchange.gateway.background.begin(exchange)
        elif dialect.name != ollama.CHAT.name or not await ollama_load(exchange):
            await exchange.gateway.generate(exchange, dialect)

    return Endpoint(dialect.name, handle, reads_body=True, traced=True)


class _Answering:
    """The ASGI application of one route: Starlette passes requests to it unchanged."""

    def __init__(self, gateway: Gateway, endpoint: Endpoint) -> None:
        self._gateway = gateway
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert isinstance(send, _Sent)
        await self._gateway.answer(scope, receive, send, self._endpoint)


class _Sent:
    """``send`` with the headers of every response; ``begun`` is True once the response has begun."""

    __slots__ = ("_send", "begun", "headers")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False
        self.headers: list[tuple[bytes, bytes]] = []

    def __call__(self, message: Any) -> Awaitable[None]:
        if not self.begun:
            self.begun = True
            message["headers"] += self.headers
        return self._send(message)


def _takes_grammars(settings: Settings) -> bool:
    allowed = settings.client_grammars
    return allowed == "on" or (allowed == "auto" and is_personal(settings))


def _may_work_elsewhere(error: ApiError) -> bool:
    """True if another model may answer a request that has failed."""
    return (error.status >= 500 and error.code != "shutting_down") or error.status == 429


def _inside(record: Record) -> ApiError:
    return ApiError(
        500,
        f"internal server error; the server's log has details under request {record.id}",
        type="server_error",
        code="internal_error",
    )


def _error_body(dialect: str, error: ApiError) -> dict[str, Any]:
    known: Mapping[str, Dialect] = {d.name: d for d in (*dialects().values(), GEMINI)}
    return known[dialect if dialect in known else "chat"].error(error)


def _no_route(scope: Scope, error: HTTPException) -> ApiError:
    if error.status_code == 405:
        return ApiError(405, f"{scope['path']} does not take {scope['method']}", code="method_not_allowed")
    return ApiError(404, f"there is nothing at {scope['path']}", type="not_found_error", code="not_found")


def _request_id(scope: Scope) -> str:
    """Return the client's request id if it is valid, so that logs can be joined; otherwise 32 random hex digits."""
    given: str = scope["untemplate.headers"].get(b"x-request-id", "")
    if 8 <= len(given) <= 64 and given.isascii() and given.replace("-", "").replace("_", "").isalnum():
        return given
    return secrets.token_hex(16)


_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_TRACESTATE: Final = re.compile(r"[ -~]{1,512}")


def _context_of(scope: Scope, request_id: str) -> RequestContext:
    """Return the context of a request. Upstreams continue its trace (W3C Trace Context), if its headers are valid."""
    headers, sent = scope["untemplate.headers"], {"x-request-id": request_id}
    if _TRACEPARENT.fullmatch(headers.get(b"traceparent", "")):
        sent["traceparent"] = headers[b"traceparent"]
        if _TRACESTATE.fullmatch(headers.get(b"tracestate", "")):
            sent["tracestate"] = headers[b"tracestate"]
    client = scope.get("client")
    return RequestContext(client[0] if client else "", sent)


def _look_inside(scope: Scope, request: Generation) -> None:
    """Apply the header ``X-Untemplate: diagnostics, raw``, which means the same as ``untemplate`` in the body."""
    wanted = {word.strip().lower() for word in scope["untemplate.headers"].get(b"x-untemplate", "").split(",")}
    request.diagnostics = request.diagnostics or "diagnostics" in wanted
    request.raw = request.raw or "raw" in wanted


def _large(scope: Scope) -> bool:
    """True if rendering a request may take milliseconds."""
    announced = scope["untemplate.headers"].get(b"content-length", "")
    return not announced.isdecimal() or int(announced) > _LARGE


_FIXED: Final = (
    *("host", "port", "uds", "root_path", "workers", "shutdown_grace", "keep_alive_seconds"),
    *("response_store", "response_ttl", "response_store_bytes", "grammar_timeout", "inspect"),
    *("log_format", "log_level", "log_raw", "log_raw_consent", "traces"),
)
"""Settings that only take effect at the start."""
_SHUTTING_DOWN: Final = ApiError(503, "the server is shutting down", type="server_error", code="shutting_down")
_LARGE: Final = 32 * 1024
_PREFLIGHT: Final = [
    (b"access-control-allow-methods", b"GET, POST, DELETE, OPTIONS"),
    (b"access-control-allow-headers", b"*, authorization"),
    (b"access-control-max-age", b"86400"),
]
