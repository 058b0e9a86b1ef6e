"""HTTP connections with limits: uvicorn's httptools protocol, bounded in memory and time for each client.

A connection is in one of four phases, each with a limit in bytes and a deadline:

* Head: at most ``head_bytes``, received within ``head_timeout`` seconds; otherwise 431 or 408.
* Body: uvicorn stops reading until the application has taken the received bytes; `asgi.BodyReader` has the deadline.
* Answered before the whole body has arrived: the rest is dropped for a short time, then the connection is closed.
* Response: a client that does not read is disconnected after ``write_timeout`` seconds.

With TLS there is a phase before them, the handshake, with the deadline of a head. uvicorn would begin to count after
it, so the protocol makes the handshake itself, with asyncio's ``start_tls``.

Connections are counted apart from requests. At ``max_connections`` the one that has waited longest for a handshake, a
request or its body is closed to make room for a new one: of the address that has most of these. So a crowd of slow
clients cannot shut others out.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import ssl
from typing import TYPE_CHECKING, Any, Final

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from untemplate.errors import SettingsError

if TYPE_CHECKING:
    from .settings import Settings

HEAD_BYTES: Final = 64 * 1024
HEADERS: Final = 256
"""Most header fields of a request. They are searched linearly."""
_LINGER: Final = 2.0
"""Seconds in which a client can finish sending after it was answered. Only then does it read the response."""
_DROPPED: Final = 1024 * 1024
"""Most bytes that are dropped after a refusal."""
_PIECE: Final = 16 * 1024
"""Bytes of a body for which the application is woken. Its end wakes it, too."""


class Limits:
    """The limits of one server's connections, and the connections that they concern.

    ``uvicorn.Config`` carries it: everything about a server can be sent to a worker process.
    """

    def __init__(self, settings: Settings) -> None:
        self.waiting: dict[str, dict[_BoundedHttpProtocol, None]] = {}
        """Connections that wait for a request, or for its body, by address; the one that waits longest first."""
        self.tls: ssl.SSLContext | None = None
        """For the handshakes; None without TLS, and before the server starts."""
        self.apply(settings)

    def apply(self, settings: Settings) -> None:
        """Apply settings that were read again, to what happens from now on."""
        self.head_timeout = settings.head_timeout
        self.write_timeout = settings.write_timeout
        self.connections = settings.max_connections


class ServerConfig(uvicorn.Config):
    """The configuration of a uvicorn server that applies the limits and TLS files of the settings.

    Args:
        app: the ASGI application.
        settings: the limits, TLS files, grace and root path.
        more: further arguments of ``uvicorn.Config``.
    """

    def __init__(self, app: Any, settings: Settings, **more: Any) -> None:
        self.limits = Limits(settings)
        super().__init__(
            app,
            http=_BoundedHttpProtocol,
            ws="none",
            root_path=settings.root_path,
            timeout_keep_alive=settings.keep_alive_seconds,  # type: ignore[arg-type]
            timeout_graceful_shutdown=math.ceil(settings.shutdown_grace),
            ssl_certfile=settings.tls_cert or None,
            ssl_keyfile=settings.tls_key or None,
            access_log=False,
            log_config=None,
            server_header=False,
            **more,
        )

    def load(self) -> None:
        super().load()
        # Otherwise the listening socket would make the handshakes, before there is a protocol that limits them.
        self.limits.tls, self.ssl = self.ssl, None


def read_certificate(context: ssl.SSLContext | None, settings: Settings) -> None:
    """Read the TLS files of the settings, if they name any, for connections that begin from now on.

    Args:
        context: gets the certificate; ``None`` to check the files only.

    Raises:
        SettingsError: the TLS files cannot be used. The context is unchanged.
    """
    if not settings.tls_cert:
        return
    try:
        for one in filter(None, (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), context)):
            one.load_cert_chain(settings.tls_cert, settings.tls_key or None)
    except OSError as error:  # ssl.SSLError is one
        files = " ".join(filter(None, (settings.tls_cert, settings.tls_key)))
        raise SettingsError(f"tls_cert {files}: {error.strerror or error}") from None


class _BoundedHttpProtocol(HttpToolsProtocol):
    """A connection. All of one server share `ServerConfig.limits`."""

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

    # -- The connection ----------------------------------------------------------------------------------------------

    def __init__(self, config: ServerConfig, *args: Any, **kwargs: Any) -> None:
        super().__init__(config, *args, **kwargs)
        self._limits = config.limits

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        tls = self._limits.tls
        most = self._limits.connections
        if most and len(self.connections) > most and not self._make_room():
            if tls is None:
                self._refuse(503, "the server has too many connections; try again")
                self.transport.close()
            else:
                self._drop()
            return
        self._waits()
        self._set_timer(self._limits.head_timeout)
        if tls is not None:
            self._handshake = self.loop.create_task(self._shake_hands(transport, tls))

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
        self._set_timer(self._limits.head_timeout)
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
        most = max(self._limits.waiting.values(), key=len, default=None)
        oldest = None if most is None else next(iter(most))
        if oldest is not None:
            oldest._drop()
        return oldest is not None

    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def connection_lost(self, exc: Exception | None) -> None:
        self._waits_no_more()
        self._set_timer()
        self.resume_writing()
        super().connection_lost(exc)

    def _waits(self) -> None:
        """Note that the connection waits for a request."""
        self._limits.waiting.setdefault(self._address(), {})[self] = None

    def _waits_no_more(self) -> None:
        same = self._limits.waiting.get(self._address(), {})
        same.pop(self, None)
        if not same:
            self._limits.waiting.pop(self._address(), None)

    def _drop(self) -> None:
        if self._handshake is not None:
            self._handshake.cancel()
        self._waits_no_more()
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
        if self._in_head:
            self._head += len(data)
            # While a response is running, the client may take as long as it wants: with an empty line after its body.
            if self._timer is None and (self.cycle is None or self.cycle.response_complete):
                self._set_timer(self._limits.head_timeout)
        self._feed(data)
        if self._in_head and self._head > HEAD_BYTES:
            self._refuse(431, f"the head of the request is longer than {HEAD_BYTES} bytes")

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
        self._head = 0
        self._set_timer()
        if self.cycle is not None and not self.cycle.response_complete:
            # It comes before the answer to the last one, which is the last on this connection. Reading continues:
            # otherwise it would not be noticed that the client has left.
            self.cycle.keep_alive = False
            self._refused = True
            return
        self._in_head = False
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self._refused or self.cycle.response_complete:
            return
        self.cycle.body += body
        if len(self.cycle.body) >= _PIECE:
            super().on_body(b"")  # wakes the application, which costs more than all of this

    def on_message_complete(self) -> None:
        if self._refused or self._upgrade:
            return
        self._in_head = True
        self._head = 0
        self._waits_no_more()
        super().on_message_complete()
        if self.cycle.response_complete:  # the unread body has ended: the connection can be used again
            self._set_timer()
            self._waits()
            self._unset_keepalive_if_required()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    # -- What is sent ------------------------------------------------------------------------------------------------

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._refused or self.transport.is_closing():
            return
        if self._in_head:
            self._waits()
        else:
            self._unset_keepalive_if_required()
            self._set_timer(_LINGER)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._limits.write_timeout and self._stalled is None:
            self._stalled = self.loop.call_later(self._limits.write_timeout, self._drop)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    # -- Deadlines ---------------------------------------------------------------------------------------------------

    def _set_timer(self, seconds: float = 0.0) -> None:
        """Set the deadline; 0: there is none."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(seconds, self._late) if seconds else None

    def _late(self) -> None:
        self._timer = None
        if self._in_head and self._head and not self._refused:
            self._refuse(408, f"the head of the request did not arrive within {self._limits.head_timeout:g} seconds")
        else:
            self._drop()

    def _refuse(self, status: int, problem: str) -> None:
        """Send an error instead of the application's response, and close. A response in progress is cut off."""
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        self._head = 0
        self._waits_no_more()
        self._unset_keepalive_if_required()
        if (count := getattr(self.config.app, "refused", None)) is not None:
            count(status)
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
