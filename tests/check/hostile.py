"""Small servers that misbehave: each answers every request in one wrong way."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

Answer = Callable[[str, dict[str, Any]], bytes]
"""(path, request) → bytes of the response; the connection is closed after them."""
MODELS = {"object": "list", "data": [{"id": "m", "object": "model", "owned_by": "someone"}]}


def http(status: int, body: Any, kind: str = "application/json", **headers: str) -> bytes:
    """Return a response; a body that is not bytes becomes JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = (
        f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(data)}\r\n{more}connection: close\r\n\r\n"
    )
    return head.encode() + data


def completion(message: dict[str, Any], finish_reason: str = "stop") -> bytes:
    """Return a response of Chat Completions."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    return http(200, {"object": "chat.completion", "choices": [choice], "usage": usage})


def events(*values: Any, end: bytes = b"data: [DONE]\n\n") -> bytes:
    """Return a stream; it ends with the connection."""
    data = b"".join(b"data: " + json.dumps(value).encode() + b"\n\n" for value in values) + end
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n" + data


def plain(path: str, request: dict[str, Any]) -> bytes:
    """Answer as a simple server of one model does, which forces nothing."""
    if path == "/v1/models":
        return http(200, MODELS)
    if path != "/v1/chat/completions":
        return http(404, {"error": {"message": "not found"}})
    if not isinstance(request.get("messages"), list):
        return http(400, {"error": {"message": "messages is required"}})
    if not request.get("stream"):
        return completion({"content": "Hello."})
    delta = {"index": 0, "delta": {"role": "assistant", "content": "Hello."}, "finish_reason": None}
    return events({"choices": [delta]}, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})


class Hostile:
    """A running server. ``paths`` are those of all requests."""

    def __init__(self) -> None:
        self.url = ""
        self.paths: list[str] = []
        self.heads: list[str] = []


@contextlib.contextmanager
def serving(answer: Answer | None) -> Iterator[Hostile]:
    """Serve from a thread; with ``None``, accept requests and never answer."""
    found = Hostile()
    ready = threading.Event()
    stop: list[Callable[[], None]] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await respond(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        rows = head.lower().split("\r\n")
        size = next((int(row.split(":")[1]) for row in rows if row.startswith("content-length")), 0)
        body = await reader.readexactly(size)
        path = head.split(" ")[1]
        found.paths.append(path)
        found.heads.append(head)
        if answer is None:
            await asyncio.sleep(60)
            return
        try:
            request = json.loads(body or b"{}")
        except ValueError:
            request = {}
        writer.write(await asyncio.to_thread(answer, path, request))
        await writer.drain()

    async def main() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        stop.append(lambda: loop.call_soon_threadsafe(ended.set))
        ready.set()
        await ended.wait()
        server.close()

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield found
    finally:
        stop[0]()
        thread.join()


__all__ = ["MODELS", "Hostile", "completion", "events", "http", "plain", "serving"]
