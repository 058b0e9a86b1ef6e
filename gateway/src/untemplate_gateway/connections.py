"""HTTP connections with limits: uvicorn's httptools protocol, bounded in memory and time for each client.

A connection is in one of four phases, each with a limit in bytes and a deadline:

* Head: at most ``head_bytes``, received within ``head_timeout`` seconds; otherwise 431 or 408.
* Body: uvicorn stops reading until the application has taken the received bytes; `asgi.BodyReader` has the deadline.
  Framing (chunk sizes, extensions, trailers) is limited in proportion to the body.
* Answered before the whole body has arrived: the rest is dropped for a short time, then the connection is closed.
* Response: a client that does not read is disconnected after ``write_timeout`` seconds.

With TLS there is a phase before them, the handshake, with the deadline of a head. uvicorn would begin to count after
it, so the protocol makes the handshake itself, with asyncio's ``start_tls``.

Connections are counted apart from requests. At ``max_connections``, the connection that has waited longest for a
request is closed to make room for a new one; if none waits, the oldest one whose body has not arrived, of the address
that has most of these. So a crowd of slow clients cannot shut others out.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from untemplate.errors import SettingsError

if TYPE_CHECKING:
    from .settings import Settings

HEAD_BYTES: Final = 64 * 1024
PIPELINED: Final = 16
"""Most requests that may wait for the response to an earlier one on their connection."""
HEADERS: Final = 256
"""Most header fields of a request. They are searched linearly."""
_LINGER: Final = 2.0
"""Seconds in which a client can finish sending after it was answered. Only then does it read the response."""
_DROPPED: Final = 1024 * 1024
"""Most bytes that are dropped after a refusal."""
_AHEAD: Final = 1024 * 1024
"""Bytes of requests that wait for the response to an earlier one. Further ones are read after it."""
_FRAMING: Final = 16
"""Most bytes of framing for each byte of body. A chunk of one byte needs five."""


def server_config(app: Any, settings: Settings, tls: ssl.SSLContext | None = None, **more: Any) -> uvicorn.Config:
    """Return the configuration of a uvicorn server that applies the limits and TLS files of the settings.

    Args:
        app: the ASGI application.
        settings: the limits, TLS files and root path.
        tls: the context of the TLS files, if the caller has made it.
        more: further arguments of ``uvicorn.Config``.

    Raises:
        SettingsError: the TLS files cannot be used.
    """
    return uvicorn.Config(
        app,
        http=_http_protocol(settings, tls, getattr(app, "refused", None)),
        ws="none",
        root_path=settings.root_path,
        timeout_keep_alive=settings.keep_alive_seconds,  # type: ignore[arg-type]
        access_log=False,
        server_header=False,
        **more,
    )


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """Return the TLS context of a server; ``None`` if the settings have no certificate.

    Raises:
        SettingsError: the TLS files cannot be used.
    """
    if not settings.tls_cert:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    read_certificate(context, settings)
    return context


def read_certificate(context: ssl.SSLContext, settings: Settings) -> None:
    """Read the TLS files of the settings, for connections that begin from now on.

    Raises:
        SettingsError: the TLS files cannot be used. The context is unchanged.
    """
    if not settings.tls_cert:
        return
    try:
        for one in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), context):
            one.load_cert_chain(settings.tls_cert, settings.tls_key or None)
    except OSError as error:  # ssl.SSLError is one
        files = " ".join(filter(None, (settings.tls_cert, settings.tls_key)))
        raise SettingsError(f"tls_cert {files}: {error.strerror or error}") from None


def _http_protocol(
    settings: Settings, tls: ssl.SSLContext | None, refused: Callable[[int], None] | None
) -> type[asyncio.Protocol]:
    """Return a protocol class for one server. Its connections share one count."""
    shared: dict[str, Any] = {"tls": tls or tls_context(settings), "waiting": {}, "arriving": {}, "refused": refused}
    protocol = type("BoundedHttpProtocol", (_BoundedHttpProtocol,), shared)
    apply_limits(protocol, settings)
    return protocol


def apply_limits(protocol: Any, settings: Settings) -> None:
    """Apply the limits of the settings to a class of `_http_protocol`, for what its connections do from now on."""
    for name in ("head_timeout", "write_timeout", "max_connections"):
        setattr(protocol, name, getattr(settings, name))


class _BoundedHttpProtocol(HttpToolsProtocol):
    tls: ssl.SSLContext | None
    head_timeout: float
    write_timeout: float
    max_connections: int
    waiting: dict[_BoundedHttpProtocol, None]
    """Connections without a request, the one that has waited longest first."""
    arriving: dict[_BoundedHttpProtocol, None]
    """Connections whose request has a body that is still arriving, the oldest first."""
    refused: Callable[[int], None] | None
    """Called with the status of each error that no application answers."""

    _handshake: asyncio.Task[None] | None = None
    """The running TLS handshake."""
    _early = b""
    """Bytes that came before the handshake's task could start, or before it could continue after the handshake."""
    _timer: asyncio.TimerHandle | None = None
    """The deadline of the head, or the end of the time in which bytes are dropped."""
    _stalled: asyncio.TimerHandle | None = None
    """The deadline for a client that does not read its response."""
    _refused = False
    """True after the gateway has sent an error of its own. Further bytes are dropped."""
    _upgrade = False
    """True while the request has an ``Upgrade`` header."""
    _in_head = True
    _head = 0
    """Bytes of the current head, or bytes dropped after a refusal."""
    _fields = 0
    _field_bytes = 0
    _body = 0
    """Bytes of the current body."""
    _framing = 0
    """Bytes of framing received with the current body."""
    _unanswered: tuple[RequestResponseCycle, ...] = ()
    """The request that is being answered, and those that wait behind it."""

    # -- The connection ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if self.tls is None:
            super().connection_made(transport)
        else:
            self.transport = transport
            self.connections.add(self)
        if self.max_connections and len(self.connections) > self.max_connections and not self._make_room():
            if self.tls is None:
                self._refuse(503, "the server has too many connections; try again")
                self.transport.close()
            else:
                self._drop()
            return
        self.waiting[self] = None
        self._set_timer(self.head_timeout)
        if self.tls is not None:
            self._handshake = self.loop.create_task(self._shake_hands(transport, self.tls))

    async def _shake_hands(self, transport: asyncio.Transport, tls: ssl.SSLContext) -> None:
        """Put TLS between the connection and this protocol. `_late` ends a handshake that takes too long."""
        starting = self.loop.create_task(self.loop.start_tls(transport, self, tls, server_side=True))
        try:
            await asyncio.sleep(0)  # until it has put its protocol in the place of this one, and scheduled its start
            if self._early:
                self.loop.call_soon(self._hand_over, transport.get_protocol())
            secure = await starting
        except OSError:  # ssl.SSLError is one; or the client has left
            secure = None
        finally:
            starting.cancel()
        self._handshake = None
        if secure is None or secure.is_closing():
            self._drop()
            return
        super().connection_made(secure)
        self._set_timer(self.head_timeout)
        if self._early:
            data, self._early = self._early, b""
            self.data_received(data)

    def _hand_over(self, tls: Any) -> None:
        """Give the protocol of TLS, a buffered one, the bytes that came before it was there."""
        data, self._early = self._early, b""
        while data:
            buffer = tls.get_buffer(len(data))
            size = min(len(buffer), len(data))
            buffer[:size] = data[:size]
            tls.buffer_updated(size)
            data = data[size:]

    def _make_room(self) -> bool:
        """Close the connection that has waited longest for a request or its body. Return True if there was one."""
        oldest = next(iter(self.waiting), None)
        if oldest is None and self.arriving:
            [(address, _)] = Counter(one._address() for one in self.arriving).most_common(1)
            oldest = next(one for one in self.arriving if one._address() == address)
        if oldest is not None:
            oldest._drop()
        return oldest is not None

    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def connection_lost(self, exc: Exception | None) -> None:
        self.waiting.pop(self, None)
        self.arriving.pop(self, None)
        self._clear_timer()
        self._clear_stalled()
        for cycle in self._unanswered:  # uvicorn tells only the last one
            if not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self.pipeline.clear()
        super().connection_lost(exc)

    def _drop(self) -> None:
        if self._handshake is not None:
            self._handshake.cancel()
        self.waiting.pop(self, None)
        self.arriving.pop(self, None)
        self.connections.discard(self)
        self.transport.abort()

    # -- What is received --------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._handshake is not None:
            self._early += data
            return
        if self._refused:
            self._head += len(data)
            if self._head > _DROPPED:
                self._drop()
            return
        body = self._body
        was_in_body = not self._in_head
        if self._in_head:
            self._head += len(data)
            if self._timer is None:
                self._set_timer(self.head_timeout)
        self._feed(data)
        if self._in_head and self._head > HEAD_BYTES:
            self._refuse(431, f"the head of the request is longer than {HEAD_BYTES} bytes")
        elif was_in_body and not self._in_head:
            self._framing += len(data) - (self._body - body)
            if self._framing > HEAD_BYTES + _FRAMING * self._body:
                self._refuse(400, "the framing of the body is much larger than the body")

    def _feed(self, data: bytes) -> None:
        """Parse what was received. A request for another protocol is read once more without its ``Upgrade`` header:
        HTTP/1.1 is what it gets, and httptools would take its body for that protocol's bytes.
        """
        self._unset_keepalive_if_required()
        while data:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                data = self._plain_head() + data[upgrade.args[0] :]
                self._upgrade = False
                # The old one reads nothing more if the head says `Connection: close`.
                self.parser = httptools.HttpRequestParser(self)
                with contextlib.suppress(AttributeError):  # httptools before 0.6.3, which needs no leniency
                    self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            except httptools.HttpParserError:
                self._refuse(400, "this is not an HTTP request")
                return

    def _plain_head(self) -> bytes:
        """Return the head that was received last, without its ``Upgrade`` header."""
        fields = [b"%s: %s\r\n" % field for field in self.headers if field[0] != b"upgrade"]
        version = self.parser.get_http_version().encode()
        return b"%s %s HTTP/%s\r\n%s\r\n" % (self.parser.get_method(), self.url, version, b"".join(fields))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self._fields = self._field_bytes = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count(0, len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(1, len(name) + len(value))
        if not self._refused:
            super().on_header(name, value)

    def _count(self, fields: int, size: int) -> None:
        """Count a part of the head or of the trailers. ``_head`` alone would not limit the parts of one large read."""
        self._fields += fields
        self._field_bytes += size
        if self._field_bytes > HEAD_BYTES:
            self._refuse(431, f"the head of the request is longer than {HEAD_BYTES} bytes")
        elif self._fields > HEADERS:
            self._refuse(431, f"the request has more than {HEADERS} header fields")

    def on_headers_complete(self) -> None:
        if self._refused:
            return
        self._upgrade = self.parser.should_upgrade() and any(name == b"upgrade" for name, _ in self.headers)
        if self._upgrade:
            return
        if self.parser.get_http_version() == "1.1" and all(name != b"host" for name, _ in self.headers):
            self._refuse(400, "the request has no Host header")
            return
        self._in_head = False
        self._head = self._body = self._framing = 0
        self._clear_timer()
        self.waiting.pop(self, None)
        self.arriving[self] = None
        super().on_headers_complete()
        self._unanswered = (*(one for one in self._unanswered if not one.response_complete), self.cycle)
        if len(self.pipeline) > PIPELINED:
            self._refuse(429, f"more than {PIPELINED} requests wait for the response to an earlier one")
        else:
            self._read_ahead()

    def on_body(self, body: bytes) -> None:
        self._body += len(body)
        if not self._refused:
            super().on_body(body)
            self._read_ahead()

    def _read_ahead(self) -> None:
        """Continue to read while requests wait: otherwise it would not be noticed that the client has left."""
        if self.pipeline and sum(len(cycle.body) for cycle, _ in self.pipeline) < _AHEAD:
            self.flow.resume_reading()

    def on_message_complete(self) -> None:
        if self._refused or self._upgrade:
            return
        self._in_head = True
        self._head = 0
        self.arriving.pop(self, None)
        super().on_message_complete()
        if self.cycle.response_complete:  # the unread body has ended: the connection can be used again
            self._clear_timer()
            self._wait_for_request()

    def _wait_for_request(self) -> None:
        self.waiting[self] = None
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    # -- What is sent ------------------------------------------------------------------------------------------------

    def on_response_complete(self) -> None:
        queued = bool(self.pipeline)
        super().on_response_complete()
        if queued or self._refused or self.transport.is_closing():
            return
        if self._in_head:
            self.waiting[self] = None
        else:
            self._unset_keepalive_if_required()
            self._set_timer(_LINGER)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.write_timeout and self._stalled is None:
            self._stalled = self.loop.call_later(self.write_timeout, self._drop)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._clear_stalled()

    # -- Deadlines ---------------------------------------------------------------------------------------------------

    def _set_timer(self, seconds: float) -> None:
        self._clear_timer()
        if seconds:
            self._timer = self.loop.call_later(seconds, self._late)

    def _clear_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _clear_stalled(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _late(self) -> None:
        self._timer = None
        if self._in_head and self._head and not self._refused:
            self._refuse(408, f"the head of the request did not arrive within {self.head_timeout:g} seconds")
        else:
            self._drop()

    def _refuse(self, status: int, problem: str) -> None:
        """Send an error instead of the application's response, and close. A response in progress is cut off."""
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        if self.refused is not None:
            self.refused(status)
        self._head = 0
        self.arriving.pop(self, None)
        self._unset_keepalive_if_required()
        self.waiting.pop(self, None)
        if self.cycle is not None and not self.cycle.response_complete:
            self._drop()
            return
        error = {"message": problem, "type": "invalid_request_error", "param": None, "code": None}
        body = json.dumps({"error": error}).encode()
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
        self.transport.write(STATUS_LINE[status] + head + body)
        # Closing at once would reset the connection while the client still sends, and it would not see the error.
        self._set_timer(_LINGER)
        if self.transport.can_write_eof():
            self.transport.write_eof()


def allow_open_files(connections: int) -> None:
    """Raise the limit of open files, as far as the system allows, so that it is not reached before the server's own."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * connections + 256
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
