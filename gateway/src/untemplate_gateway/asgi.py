"""The parts of ASGI that the gateway needs: read bodies, send JSON and streams, and notice when a client has left.

* A body is read up to a limit in bytes and within a deadline. All bodies that are still arriving together hold a
  bounded number of bytes.
* A frame is one ASGI message, sent at once. The server's flow control makes the sender wait for a slow reader, which
  costs the memory of one frame.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, Final

import msgspec

from .errors import ApiError, client_left
from .protocols.encoding import encode
from .request_context import current
from .threads import in_thread

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

_MAX_DEPTH: Final = 128
"""Depth of brackets in a request: deeper than any schema, shallower than Python's stack."""
_MAX_BRACKETS: Final = 500_000
"""Each object or list takes some 60 bytes of memory for two bytes of body."""
_BODIES: Final = 8
"""Largest bodies that may be arriving at the same time, in bytes."""
_SLOW: Final = 1024
"""Bodies of one owner that may be arriving at the same time. Another one takes the place of the oldest."""
_PER_SECOND: Final = 64 * 1024
_LARGE: Final = 256 * 1024
"""Bodies of this many bytes or more are decoded in a thread."""
_decoder: Final = msgspec.json.Decoder()


def headers_of(scope: Scope) -> dict[bytes, str]:
    """Return the first header of each lower-case name. They are read once for each request."""
    found: dict[bytes, str] | None = scope.get("untemplate.headers")
    if found is None:
        found = {name: value.decode("latin-1") for name, value in reversed(scope["headers"])}
        scope["untemplate.headers"] = found
    return found


def header(scope: Scope, name: bytes) -> str:
    """Return the first header of this lower-case name; ``""`` if the request does not have it."""
    return headers_of(scope).get(name, "")


def path_of(scope: Scope) -> str:
    """Return the path of a request, without the prefix of a reverse proxy."""
    path: str = scope["path"]
    root = scope.get("root_path", "")
    return path[len(root) :] if root and path.startswith(root + "/") else path


def is_gemini(path: str) -> bool:
    """True if a path is one of Google's Gemini API: its clients use ``v1beta``, or ``v1`` with a method."""
    return path.startswith("/v1beta/") or (path.startswith("/v1/models/") and ":" in path)


class BodyReader:
    """Reads the bodies of one gateway's requests.

    Args:
        limit: most bytes of a body.
        timeout: seconds in which a body must arrive, plus one for every 64 KB of it; 0: no limit.
    """

    def __init__(self, limit: int, timeout: float) -> None:
        self.limit = limit
        self.timeout = timeout
        self._arriving: Counter[str] = Counter()
        """Bytes of bodies that have not arrived whole, by owner."""
        self._slow: dict[str, dict[asyncio.Timeout, None]] = {}
        """The deadlines of bodies that have not arrived whole, by owner; the oldest first."""

    async def read(self, scope: Scope, receive: Receive, owner: str = "") -> bytes:
        """Return the body of a request.

        Args:
            owner: the API key or address that sends it. One may hold half of the bytes that all may hold.

        Raises:
            ApiError: 413, it is too long; 408, it did not arrive in time; 499, the client left; 503, too many large
                bodies are arriving at once.
        """
        announced = header(scope, b"content-length")
        if announced.isdecimal() and (len(announced) > 18 or int(announced) > self.limit):
            raise self._too_long()
        size = 0
        chunks: list[bytes] = []
        try:
            async with asyncio.timeout(self.timeout or None) as deadline:
                self._begin(owner, deadline)
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise client_left()
                    chunk = message.get("body", b"")
                    size += len(chunk)
                    self._arriving[owner] += len(chunk)
                    if size > self.limit:
                        raise self._too_long()
                    chunks.append(chunk)
                    if not message.get("more_body"):
                        return b"".join(chunks)
                    most = _BODIES * self.limit
                    if self._arriving[owner] > most // 2 or self._arriving.total() > most:
                        raise _busy()
                    when = deadline.when()
                    if when is not None:
                        deadline.reschedule(when + len(chunk) / _PER_SECOND)
        except TimeoutError:
            problem = f"the body did not arrive within {self.timeout:g} seconds"
            if deadline not in self._slow.get(owner, ()):
                problem = f"more than {_SLOW} bodies of this client are arriving"
            raise ApiError(408, problem, code="request_timeout") from None
        finally:
            self._arriving[owner] -= size
            if not self._arriving[owner]:
                del self._arriving[owner]
            arriving = self._slow.get(owner, {})
            arriving.pop(deadline, None)
            if not arriving:
                self._slow.pop(owner, None)

    def _begin(self, owner: str, deadline: asyncio.Timeout) -> None:
        """Note a body that is arriving. If its owner has too many of them, the oldest has no more time."""
        arriving = self._slow.setdefault(owner, {})
        arriving[deadline] = None
        if len(arriving) > _SLOW:
            oldest = next(iter(arriving))
            del arriving[oldest]
            if not oldest.expired():
                oldest.reschedule(asyncio.get_running_loop().time())

    async def read_json(self, scope: Scope, receive: Receive, owner: str = "") -> dict[str, Any]:
        """Return the body of a request as a JSON object.

        Raises:
            ApiError: it is not a JSON object, or nested too deeply; or as `read`.
        """
        data = await self.read(scope, receive, owner)
        if (context := current.get()) is not None:
            context.size = len(data)
        if len(data) > _LARGE:
            return await in_thread(_json_object, data)
        return _json_object(data)

    def _too_long(self) -> ApiError:
        return ApiError(413, f"the body is longer than {self.limit} bytes", code="request_too_large")


def _busy() -> ApiError:
    problem = "too many large requests are arriving; try again"
    return ApiError(503, problem, type="server_error", code="overloaded", headers={"Retry-After": "1"})


def _json_object(data: bytes) -> dict[str, Any]:
    brackets = data.count(b"{") + data.count(b"[")
    if brackets > _MAX_BRACKETS:
        raise ApiError(400, f"the body has more than {_MAX_BRACKETS} brackets", code="invalid_json")
    try:
        body = _decoded(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ApiError(400, f"the body is not JSON: {error}", code="invalid_json") from None
    except RecursionError:
        raise ApiError(400, "the body is nested too deeply", code="invalid_json") from None
    if not isinstance(body, dict):
        raise ApiError(400, "the body must be a JSON object", code="invalid_json")
    if brackets > _MAX_DEPTH and _deep(body):
        raise ApiError(400, "the body is nested too deeply", code="invalid_json")
    return body


_SURROGATE: Final = re.compile(rb"\\u[dD][89abcdefABCDEF]")


def _decoded(data: bytes) -> Any:
    """Return a JSON value. Half an emoji, which clients send when they cut text, becomes U+FFFD."""
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError as error:
        if _SURROGATE.search(data) is None:
            raise
        try:
            text = json.dumps(json.loads(data), ensure_ascii=False)
        except ValueError:
            raise error from None
        return _decoder.decode(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode())


def _deep(body: Any) -> bool:
    """True if brackets are nested more deeply than allowed. Walks level by level, without recursion."""
    level = [body]
    for _ in range(_MAX_DEPTH):
        level = [
            inner
            for value in level
            for inner in (value.values() if isinstance(value, dict) else value)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True


class Sent:
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


async def send_json(send: Send, status: int, value: Any, headers: Headers) -> None:
    """Send a whole response as JSON."""
    await send_bytes(send, status, encode(value), b"application/json", headers)


async def send_bytes(send: Send, status: int, body: bytes, media_type: bytes, headers: Headers) -> None:
    """Send a whole response."""
    fixed = [(b"content-type", media_type), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": fixed + headers})
    await send({"type": "http.response.body", "body": body})


async def send_stream(
    send: Send,
    frames: AsyncGenerator[bytes, None],
    media_type: str,
    headers: Callable[[], Headers],
    *,
    ping: bytes = b"",
    silence: float = 0.0,
) -> None:
    """Send a streamed response, frame by frame. The head is sent with the first frame, or before the first ping.

    Args:
        headers: returns further headers of the response, when its head is sent.
        ping: bytes that keep the connection alive; empty if the media type allows no ping.
        silence: seconds without a frame after which a ping is sent; 0 for no pings.
    """
    clock = asyncio.get_running_loop().time
    last, begun, beginning = clock(), False, asyncio.Lock()

    async def begin() -> None:
        nonlocal begun
        fixed = [
            (b"content-type", media_type.encode()),
            (b"cache-control", b"no-cache"),
            (b"x-accel-buffering", b"no"),  # otherwise nginx would collect frames
        ]
        async with beginning:
            if not begun:
                await send({"type": "http.response.start", "status": 200, "headers": fixed + headers()})
                begun = True

    async def keep_alive() -> None:
        while True:
            await asyncio.sleep(max(0.0, last + silence - clock()))
            if clock() - last >= silence:
                await begin()
                await send({"type": "http.response.body", "body": ping, "more_body": True})
                await asyncio.sleep(silence)

    keeper = asyncio.create_task(keep_alive()) if ping and silence else None
    try:
        async for frame in frames:
            if not begun:
                await begin()
            if frame:
                last = clock()
                await send({"type": "http.response.body", "body": frame, "more_body": True})
    finally:
        if keeper is not None:
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)
    await send({"type": "http.response.body", "body": b""})


async def while_connected(
    receive: Receive, work: Coroutine[Any, Any, None], timeout: float | None, stops: Callable[[bool], None]
) -> bool:
    """Do the work, but stop as soon as the client has left or the time is up. Return True if the work was finished.

    The body must have been read before: ``receive`` then only reports that the client has left.

    Args:
        stops: called before the work is stopped, with True if the client has left.
    """

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    worker = asyncio.create_task(work)
    watcher = asyncio.create_task(gone())
    try:
        await asyncio.wait((worker, watcher), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if worker.done():
            worker.result()
            return True
        stops(watcher.done())
        return False
    finally:
        for task in (worker, watcher):
            if not task.done():
                task.cancel()
        await asyncio.gather(worker, watcher, return_exceptions=True)
        # An error of the worker refers to this frame: together they would keep the request until the garbage
        # collector comes.
        del task, worker, watcher
