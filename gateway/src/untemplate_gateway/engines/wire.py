"""A small HTTP/1.1 client for streams of many small chunks.

* A connection carries one request at a time and is used again after the whole response was read. Leaving a response
  early closes the connection, and the server stops.
* Received but unread data is bounded: beyond the bound the socket is not read, and the server has to wait.
* A chunk costs one call of httptools' parser and one append: httpx takes 6 µs more for each.
  docs/gateway-operation.md has figures.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, cast
from urllib.parse import urlsplit

import httptools

from untemplate._internal.sse import EventReader

from ..request_context import current

_HIGH: Final = 256 * 1024
"""Most bytes of a body that may wait to be read."""
_HEAD: Final = 64 * 1024
"""Most bytes of a response's head."""
_LINGER: Final = 1.0
"""Seconds to wait for the end of a response after its last event."""
_IDLE: Final = 15.0
"""Seconds after which an idle connection is not used again: less than servers keep them open."""


class WireError(Exception):
    """The server cannot be reached, or the connection broke.

    ``kind``: ``connect`` (nothing was sent), ``closed`` (the connection broke), ``timeout``, ``protocol``.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Response(asyncio.Protocol):
    """One connection, and the response that it carries now. The parser's callbacks are its methods."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.last = 0.0
        """Time of the event loop at which data last arrived, or the request was sent."""
        self.idle_since = 0.0
        self.closed = False
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._paused = False
        self._begin()

    def _begin(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self.parts: deque[bytes] = deque()
        self.size = 0
        self.status = 0
        self.headers: dict[str, str] = {}
        self.complete = False
        self.reusable = False
        self.error: WireError | None = None
        self._head = 0
        self.has_head = False

    # -- asyncio's callbacks -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's transport is not a subclass

    def data_received(self, data: bytes) -> None:
        self.last = self._loop.time()
        if not self.has_head:
            self._head += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(WireError("protocol", f"not HTTP: {error}"))
            if self.complete:  # surplus data: the next response would belong to the wrong request
                self.abort()
        if not self.has_head and self._head > _HEAD:
            self._fail(WireError("protocol", f"the head of the response is longer than {_HEAD} bytes"))
        if self.size > _HIGH and not self._paused and self.transport is not None:
            self._paused = True
            self.transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        # A body without a stated length ends with the connection.
        framed = "content-length" in self.headers or "chunked" in self.headers.get("transfer-encoding", "").lower()
        if self.has_head and not self.complete and not framed:
            self.complete = True

    def connection_lost(self, error: Exception | None) -> None:
        self.closed = True
        if not self.complete:
            self._fail(WireError("closed", str(error) if error else "the connection was closed"))
        self._wake()

    # -- httptools' callbacks ----------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self.complete:
            raise ValueError("a response without a request")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        # A 1xx response is followed by the real one, which has headers of its own.
        self.has_head = self.status >= 200
        if not self.has_head:
            self.headers = {}

    def on_body(self, data: bytes) -> None:
        self.parts.append(data)
        self.size += len(data)

    def on_message_complete(self) -> None:
        if self.has_head:
            self.complete = True
            self.reusable = self._parser.should_keep_alive()

    # -- For the client ----------------------------------------------------------------------------------------------

    def send(self, data: bytes, silence: float) -> None:
        """Send a request. It fails after ``silence`` seconds without data; 0 for no limit."""
        assert self.transport is not None
        self._begin()
        self.last = self._loop.time()
        if silence:
            self._timer = self._loop.call_later(silence, self._tick, silence)
        self.transport.write(data)

    async def head(self) -> None:
        while not self.has_head and not self.complete:
            if self.error is not None:
                raise self.error
            await self._wait()
        coding = self.headers.get("content-encoding") or "identity"
        if self.status == 200 and coding.lower() != "identity":  # with another status, the body is not needed
            raise WireError("protocol", f"the response is encoded as {coding}, which was not asked for")

    async def read(self) -> bytes:
        """Return the received part of the body, after waiting for it if needed. Empty at the end of the body."""
        while not self.parts:
            if self.complete:
                return b""
            if self.error is not None:
                raise self.error
            await self._wait()
        data = self.parts.popleft() if len(self.parts) == 1 else b"".join(self.parts)
        self.parts.clear()
        self.size = 0
        if self._paused and self.transport is not None:
            self._paused = False
            self.transport.resume_reading()
        return data

    async def body(self, limit: int = 16 * 1024 * 1024) -> bytes:
        """Return the whole body.

        Raises:
            WireError: the connection broke, or the body is longer than ``limit`` bytes.
        """
        parts: list[bytes] = []
        size = 0
        while data := await self.read():
            parts.append(data)
            size += len(data)
            if size > limit:
                raise WireError("protocol", f"the response is longer than {limit} bytes")
        return b"".join(parts)

    async def rest(self) -> None:
        """Read to the end of the body, so that the connection can be used again; give up after a short wait."""
        try:
            async with asyncio.timeout(_LINGER):
                while await self.read():
                    pass
        except (TimeoutError, WireError):
            pass

    def end(self) -> bool:
        """End the request. Return True if the connection can be used again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.complete and self.reusable and not self.parts and not self.closed and self.error is None:
            self.idle_since = self._loop.time()
            return True
        self.abort()
        return False

    def abort(self) -> None:
        self.closed = True
        if self.transport is not None:
            self.transport.abort()

    def _wait(self) -> asyncio.Future[None]:
        self._waiter = self._loop.create_future()
        return self._waiter

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _fail(self, error: WireError) -> None:
        if self.error is None:
            self.error = error
        self._wake()

    def _tick(self, silence: float) -> None:
        left = self.last + silence - self._loop.time()
        if self._paused:
            left = silence  # our own reader is slow, not the server
        if left <= 0:
            self._fail(WireError("timeout", f"no data for {silence:g} s"))
            self.abort()
        else:
            self._timer = self._loop.call_later(max(left, 0.001), self._tick, silence)


class Client:
    """Sends requests to one server.

    Args:
        url: ``http://host:port/prefix`` or ``https://…``; paths of requests are appended to it.
        headers: sent with every request.
        connect_timeout: connection timeout in seconds.
        read_timeout: seconds that the server may be silent; 0 for no limit.
        max_connections: requests at a time; further ones wait.

    Raises:
        ValueError: the URL is not valid.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        connect_timeout: float = 5.0,
        read_timeout: float = 300.0,
        max_connections: int = 1024,
    ) -> None:
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
            raise ValueError(f"{url.rpartition('@')[2]!r} is not an http:// or https:// URL")
        self.url = url.rstrip("/")
        self._host = parts.hostname
        self._tls = parts.scheme == "https"
        self._port = port or (443 if self._tls else 80)
        self._path = parts.path.rstrip("/")
        lines = [f"host: {parts.netloc.rpartition('@')[2]}", "accept: */*", "accept-encoding: identity"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        if any("\r" in line or "\n" in line for line in lines):
            raise ValueError("a header must not contain a line break")
        self._headers = "\r\n".join(lines)
        try:
            (self._path + self._headers).encode("latin-1")
        except UnicodeEncodeError as error:
            wrong = error.object[error.start]
            raise ValueError(f"{wrong!r} is not allowed in a URL, a key or a header") from None
        self._connect_timeout = connect_timeout
        self._read_timeout = read_timeout
        self._idle: list[Response] = []
        self._all: set[Response] = set()
        self._slots = asyncio.Semaphore(max_connections)
        self._context: ssl.SSLContext | None = None

    @asynccontextmanager
    async def request(
        self, method: str, path: str, body: bytes | None = None, *, read_timeout: float | None = None
    ) -> AsyncIterator[Response]:
        """Send a request and wait for the head of its response. Leaving before the body has ended aborts the request.

        Args:
            path: appended to the client's URL; begins with ``/``.
            body: JSON.
            read_timeout: used instead of the client's.

        Raises:
            WireError: the server cannot be reached, or the connection broke.
        """
        head = f"{method} {self._path}{path} HTTP/1.1\r\n{self._headers}\r\n"
        if (context := current.get()) is not None:
            head += "".join(f"{name}: {value}\r\n" for name, value in context.headers.items())
        if body is not None:
            head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
        data = (head + "\r\n").encode("latin-1") + (body or b"")
        silence = self._read_timeout if read_timeout is None else read_timeout
        async with self._slots:
            connection = await self._sent(data, silence)
            try:
                yield connection
            finally:
                if connection.end():
                    self._idle.append(connection)
                else:
                    self._all.discard(connection)

    async def _sent(self, data: bytes, silence: float) -> Response:
        """Return a connection on which the request was sent and the head of the response has arrived."""
        while True:
            connection, fresh = await self._connection()
            try:
                connection.send(data, silence)
                await connection.head()
            except BaseException as error:
                connection.end()
                self._all.discard(connection)
                # The server closed the connection while it was idle, and has not seen the request.
                if isinstance(error, WireError) and error.kind == "closed" and not fresh:
                    continue
                raise
            return connection

    async def _connection(self) -> tuple[Response, bool]:
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed and now - connection.idle_since < _IDLE:
                return connection, False
            connection.abort()
            self._all.discard(connection)
        if self._tls and self._context is None:
            self._context = ssl.create_default_context()
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_timeout):
                _, connection = await loop.create_connection(
                    Response, self._host, self._port, ssl=self._context if self._tls else None
                )
        except TimeoutError:
            raise WireError("connect", f"no connection within {self._connect_timeout:g} s") from None
        except OSError as error:  # ssl.SSLError is an OSError
            raise WireError("connect", error.strerror or str(error)) from None
        except UnicodeError as error:  # an invalid host name: with two dots in a row, or too long
            raise WireError("connect", str(error)) from None
        self._all.add(connection)
        return connection, True

    async def close(self) -> None:
        """Close all connections, including those in use."""
        for connection in self._all:
            connection.abort()
        self._all.clear()
        self._idle.clear()
        await asyncio.sleep(0)  # transports close in the loop's next turn


def events() -> EventReader:
    """Return a reader of server-sent events. It raises a `WireError` if an event is too long."""
    return EventReader(error=partial(WireError, "protocol"))
