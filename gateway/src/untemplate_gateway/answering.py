"""The way of one request: its key, its body, its place among the running ones, its answer, its line in the log.

* A request for output is read by its dialect, answered by a `Session` and written by its dialect.
* Every failure reaches the client as its dialect's error object. Internal details go to the log.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Mapping
from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from .access import Access, is_personal
from .asgi import BodyReader, Receive, Scope, Send, Sent, path_of, send_json, send_stream, while_connected
from .background import RESPONSE
from .endpoints import dialect_of
from .errors import ApiError, client_left, overloaded, shutting_down, took_too_long
from .exchange import Endpoint, Exchange, Gateway
from .generation import Generation, Meta
from .grammars import GrammarCompiler
from .manager import Model
from .notes import Notes
from .observe import NotesLog, RawLog, Record, log_request
from .protocols import dialects
from .protocols.base import Dialect
from .protocols.encoding import Writer
from .protocols.gemini import GEMINI
from .protocols.responses import RESPONSES
from .request_context import RequestContext, current
from .session import Session
from .threads import in_thread
from .tracing import Tracing

if TYPE_CHECKING:
    from .settings import Settings

_log: Final = logging.getLogger("untemplate.gateway")


class Answers:
    """Answers the requests of one gateway."""

    def __init__(self, gateway: Gateway) -> None:
        settings = gateway.settings
        self._gateway = gateway
        self.access = Access(settings)
        self._bodies = BodyReader(settings.max_body_bytes, settings.body_timeout)
        self._raw_log = RawLog(settings.log_raw) if settings.log_raw else None
        self.grammars = GrammarCompiler(settings.grammar_timeout)
        self._told = NotesLog()
        self._tracing = Tracing() if settings.traces else None
        self.running = 0
        """Number of requests that take a place among the ``max_concurrent_requests``."""

    def apply(self, settings: Settings) -> None:
        """Apply settings that were read again."""
        self.access.apply(settings)
        self._bodies.limit, self._bodies.timeout = settings.max_body_bytes, settings.body_timeout

    async def close(self) -> None:
        """End the workers, and write what is left."""
        self.grammars.workers.close()
        if self._tracing is not None:
            await in_thread(self._tracing.close)  # it may wait for the collector
        if self._raw_log is not None:
            self._raw_log.close()

    async def answer(self, scope: Scope, receive: Receive, send: Sent, endpoint: Endpoint) -> None:
        """Answer one request: check its key, read its body, admit it, handle it, and count it."""
        record = Record(_request_id(scope), endpoint.name)
        record.context = _context_of(scope, record.id)
        current.set(record.context)
        record.client = record.context.owner
        record.asked = f"{scope['method']} {(path_of(scope) if scope.get('root_path') else scope['path'])[:100]}"
        send.headers.append((b"x-request-id", record.id.encode()))
        if self._tracing is None or not endpoint.traced:
            await self._answer_recorded(record, scope, receive, send, endpoint)
            return
        with self._tracing.span(record):
            await self._answer_recorded(record, scope, receive, send, endpoint)

    async def _answer_recorded(
        self, record: Record, scope: Scope, receive: Receive, send: Sent, endpoint: Endpoint
    ) -> None:
        key = None
        try:
            if not endpoint.open:
                key = self.access.key_of(scope)
                if key is not None:
                    record.owner = record.context.owner = key.name
            if endpoint.limited and key is not None:
                record.key = key.name
                key.begin(counts=RESPONSE not in scope)  # otherwise it was counted when its response was begun
            else:
                key = None
            # A body that is still arriving does not count as a running request.
            body = await self._bodies.read_json(scope, receive, record.context.owner) if endpoint.reads_body else {}
            notes = Notes(refuse_unknown=self._gateway.settings.unknown_fields == "refuse")
            exchange = Exchange(self._gateway, scope, receive, send, record, body, notes)
            await (self._limited(endpoint, exchange) if endpoint.limited else endpoint.handle(exchange))
        except ApiError as error:
            await self._fail(send, record, dialect_of(path_of(scope)), error)
        except asyncio.CancelledError:
            # The server shuts down, and its grace is over. A traceback of the server would help nobody.
            await self._fail(send, record, dialect_of(path_of(scope)), shutting_down())
        except Exception:
            _log.exception("request %s", record.id)
            await self._fail(send, record, dialect_of(path_of(scope)), _inside(record))
        finally:
            if key is not None:
                key.end(record.usage.total_tokens)
            if endpoint.counted:
                self._gateway.metrics.count(record)
                log_request(record)
            if self._raw_log is not None and record.ended:
                self._raw_log.write(record)
            if record.after is not None:
                record.after()

    async def _limited(self, endpoint: Endpoint, exchange: Exchange) -> None:
        """Handle a request that takes one of the ``max_concurrent_requests``."""
        limit = self._gateway.settings.max_concurrent_requests
        if limit and self.running >= limit:
            raise overloaded(f"the server is answering {limit} requests already")
        self.running += 1
        self._gateway.metrics.running.set(self.running)
        timeout = self._gateway.settings.request_timeout
        record = exchange.record

        def stops(left: bool) -> None:
            record.stopped = client_left() if left else took_too_long(timeout)

        try:
            # A session ends in time by itself, unless it waits for a client that does not read.
            seconds = timeout + 1 if timeout else None
            done = await while_connected(exchange.receive, endpoint.handle(exchange), seconds, stops)
        finally:
            self.running -= 1
            self._gateway.metrics.running.set(self.running)
        if not done:
            record.status = 499
            record.error = "the client closed the connection, or does not read"

    async def _fail(self, send: Sent, record: Record, dialect: str, error: ApiError) -> None:
        if not send.begun:
            record.status = error.status
        record.fail(error)
        if send.begun or error.status == 499:
            return
        headers = [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
        await send_json(send, error.status, error_body(dialect, error), headers)

    async def generate(self, exchange: Exchange, dialect: Dialect) -> None:
        """Answer a request for model output."""
        try:
            await self._generate(exchange, dialect)
        except ApiError as error:
            raise error.renamed(dialect.fields) from None

    async def _generate(self, exchange: Exchange, dialect: Dialect) -> None:
        record, send = exchange.record, exchange.send
        assert isinstance(send, Sent)
        notes, body, keep = exchange.notes, exchange.body, None
        notes.names = dialect.fields
        if dialect is RESPONSES:
            body = await self._gateway.store.expanded(record.owner, body)
            again = RESPONSE in exchange.scope
            keep = self._gateway.store.keeper(record.owner, body, exchange.body.get("input"), again=again)
        # A request that refers to stored items may be much larger than its body.
        large = body is not exchange.body or _large(exchange.scope)

        def read() -> Generation:
            request = dialect.read(body, notes)
            inside = _look_inside(exchange.scope)
            diagnostics, raw = request.diagnostics or "diagnostics" in inside, request.raw or "raw" in inside
            return msgspec.structs.replace(request, notes=notes, keep=keep, diagnostics=diagnostics, raw=raw)

        request = await in_thread(read) if large else read()
        self._limit(request)
        record.requested, record.stream = request.model, request.stream
        record.offered = bool(request.tools) and request.tool_choice != "none"
        for other in self._gateway.manager.fallbacks(request.model):
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
        assert isinstance(send, Sent)
        async with self._gateway.manager.use(request.model) as model:
            record.model = model
            self._count_parser_errors(model)
            # A new id, because clients repeat theirs, and the ids of calls are derived from it.
            id = exchange.scope.get(RESPONSE) or secrets.token_hex(16)
            meta = Meta(id=id, created=int(time.time()), model=request.model or model.name)
            session = await self._session(model, request, meta, large=large)
            record.ended = session.ended
            if request.stream:
                work = self._stream(send, record, dialect, session)
            else:
                work = self._whole(send, record, dialect, session)
            try:
                await work
            finally:
                record.usage = session.usage
                record.first, record.longest_gap = session.first, session.longest_gap
                self._told.tell(notes)
                if session.failed is not None:
                    record.fail(session.failed)
                    session.failed = None  # the error refers to frames that refer to the session

    def _count_parser_errors(self, model: Model) -> None:
        """Count the failures of parsers that belong to the engine."""
        if getattr(model.parser, "on_failure", "") is None:
            model.parser.on_failure = lambda parser: self._gateway.metrics.parser_errors.labels(parser).inc()  # type: ignore[attr-defined]

    async def _session(self, model: Model, request: Generation, meta: Meta, *, large: bool) -> Session:
        """Return the session of a request. A long prompt is rendered in a thread, so that other streams continue."""
        timeout = self._gateway.settings.request_timeout

        def make() -> Session:
            return Session(model, request, meta, timeout=timeout, grammars=self.grammars)

        return await in_thread(make) if large else make()

    async def _whole(self, send: Send, record: Record, dialect: Dialect, session: Session) -> None:
        usage = await session.whole()
        respond = partial(dialect.respond, session.request, session.ended, usage, session.meta)
        body = await asyncio.to_thread(respond) if session.request.keep is not None else respond()
        record.status = 200
        await send_json(send, 200, body, session.request.notes.headers())

    async def _stream(self, send: Sent, record: Record, dialect: Dialect, session: Session) -> None:
        writer = dialect.writer(session.request, session.meta)
        notes, silence = session.request.notes, self._gateway.settings.ping_seconds
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
                reason = record.stopped or shutting_down()
                if send.begun and reason.status != 499:  # otherwise nobody is there
                    await self._last_words(send, writer, reason)
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
        if constraint is not None and constraint.kind != "choice" and not _takes_grammars(self._gateway.settings):
            problem = f"{constraint.field}: the operator of this gateway does not take grammars (--client-grammars on)"
            raise ApiError(403, problem, type="permission_error", param=constraint.field, code="not_allowed")
        messages, most = request.messages or [], self._gateway.settings.max_messages
        calls = sum(len(message.get("tool_calls") or ()) for message in messages)
        counts = [("messages", "", len(messages)), ("messages", "tool calls ", calls)]
        for field, what, count in (*counts, ("tools", "", len(request.tools or ()))):
            if count > most:
                raise ApiError(400, f"{field}: {count} {what}are more than {most}", param=field)
        most = self._gateway.settings.max_choices
        if request.n > most:
            raise ApiError(400, f"n: {request.n} is more than {most}", param="n")
        if request.further_prompts and request.choices > most:
            prompts = 1 + len(request.further_prompts)
            problem = f"prompt: {prompts} prompts with n = {request.n} have {request.choices} choices, more than {most}"
            raise ApiError(400, problem, param="prompt")


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


def error_body(dialect: str, error: ApiError) -> dict[str, Any]:
    known: Mapping[str, Dialect] = {d.name: d for d in (*dialects().values(), GEMINI)}
    return known[dialect if dialect in known else "chat"].error(error)


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


def _look_inside(scope: Scope) -> set[str]:
    """Return the words of ``X-Untemplate: diagnostics, raw``, which mean the same as ``untemplate`` in the body."""
    return {word.strip().lower() for word in scope["untemplate.headers"].get(b"x-untemplate", "").split(",")}


def _large(scope: Scope) -> bool:
    """True if rendering a request may take milliseconds."""
    announced = scope["untemplate.headers"].get(b"content-length", "")
    return not announced.isdecimal() or int(announced) > _LARGE


_LARGE: Final = 32 * 1024
