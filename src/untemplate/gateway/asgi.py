"""ASGI, as far as the gateway needs it: bodies read, JSON and streams sent, clients that leave noticed.

Rules of this module:

* A body is read up to a limit, and not a byte further.
* A frame is one ASGI message, sent when it is there; the server's flow control holds the writer back, so a slow
  reader costs one frame.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, Final

import msgspec

from .errors import ApiError
from .protocols.common import encode

__all__ = ["Receive", "Scope", "Send", "header", "read_json", "send_json", "send_stream", "while_connected"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

_MAX_DEPTH: Final = 128
"""Of brackets in a request: deeper than any schema, shallower than Python's stack."""
_decoder: Final = msgspec.json.Decoder()


def header(scope: Scope, name: bytes) -> str:
    """The first header of this (lower-case) name, or ``""``."""
    for key, value in scope["headers"]:
        if key == name:
            text: str = value.decode("latin-1")
            return text
    return ""


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The request's body.

    Raises:
        ApiError: 413, it is longer than ``limit`` bytes; 499, the client left.
    """
    announced = header(scope, b"content-length")
    if announced.isdecimal() and int(announced) > limit:
        raise _too_long(limit)
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ApiError(499, "the client closed the connection")
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise _too_long(limit)
        chunks.append(chunk)
        if not message.get("more_body"):
            return b"".join(chunks)


def _too_long(limit: int) -> ApiError:
    return ApiError(413, f"the body is longer than {limit} bytes", code="request_too_large")


async def read_json(scope: Scope, receive: Receive, limit: int) -> dict[str, Any]:
    """The request's body as a JSON object.

    Raises:
        ApiError: it is none, or too long, or too deep.
    """
    data = await read_body(scope, receive, limit)
    try:
        body = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ApiError(400, f"the body is not JSON: {error}", code="invalid_json") from None
    except RecursionError:
        raise ApiError(400, "the body is nested too deeply", code="invalid_json") from None
    if not isinstance(body, dict):
        raise ApiError(400, "the body must be a JSON object", code="invalid_json")
    if (data.count(b"{") + data.count(b"[")) > _MAX_DEPTH and _deep(body):
        raise ApiError(400, "the body is nested too deeply", code="invalid_json")
    return body


def _deep(body: Any) -> bool:
    """Whether brackets stand deeper than allowed; level by level, so without recursion."""
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


async def send_json(send: Send, status: int, value: Any, headers: Headers) -> None:
    """A whole response."""
    await send_bytes(send, status, encode(value), b"application/json", headers)


async def send_bytes(send: Send, status: int, body: bytes, media_type: bytes, headers: Headers) -> None:
    fixed = [(b"content-type", media_type), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": fixed + headers})
    await send({"type": "http.response.body", "body": body})


async def send_stream(
    send: Send, first: bytes, frames: AsyncGenerator[bytes, None], media_type: str, headers: Headers
) -> None:
    """A streamed response: the first frame, which is known already, and the others as they come."""
    fixed = [
        (b"content-type", media_type.encode()),
        (b"cache-control", b"no-cache"),
        (b"x-accel-buffering", b"no"),  # nginx would collect frames otherwise
    ]
    await send({"type": "http.response.start", "status": 200, "headers": fixed + headers})
    await send({"type": "http.response.body", "body": first, "more_body": True})
    async for frame in frames:
        if frame:
            await send({"type": "http.response.body", "body": frame, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def while_connected(receive: Receive, work: Coroutine[Any, Any, None], timeout: float | None = None) -> bool:
    """Does the work, or stops it as soon as the client has left or the time is up. Returns whether it was done.

    The body must have been read: what ``receive`` has to say then is only that.
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
        return False
    finally:
        for task in (worker, watcher):
            if not task.done():
                task.cancel()
        await asyncio.gather(worker, watcher, return_exceptions=True)
