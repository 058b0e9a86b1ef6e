"""A server with scripted answers: HTTP written by hand, so that it can break any rule.

An answer is a list of byte strings, each written by itself; ``DIE`` breaks the connection, ``WAIT`` keeps it open and
sends nothing more.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

DIE = object()
WAIT = object()


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Answer:
    parts: Sequence[Any] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    type: str = "text/event-stream"

    @staticmethod
    def json(value: Any, status: int = 200, **headers: str) -> Answer:
        return Answer([json.dumps(value).encode()], status, headers, "application/json")


def events(*values: Any) -> list[bytes]:
    """Return values as server-sent events, with ``[DONE]`` at the end."""
    return [*(b"data: " + json.dumps(value).encode() + b"\n\n" for value in values), b"data: [DONE]\n\n"]


class Upstream:
    """``async with Upstream({path: answer}) as upstream``: ``upstream.url``, ``upstream.requests``, ``upstream.gone``.

    An answer may be an `Answer`, a list of them (one for each request, the last for all further ones), or a function
    of the request.
    """

    def __init__(self, answers: dict[str, Any], *, models: Any = None) -> None:
        self.answers = answers
        if "/v1/models" not in answers:
            listed = {"object": "list", "data": [{"id": "m", "object": "model", **(models or {})}]}
            self.answers["/v1/models"] = Answer.json(listed)
        self.requests: list[Request] = []
        self.connections = 0
        self.gone = asyncio.Event()
        """Set when a client has left in the middle of an answer."""
        self._tasks: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Upstream:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def to(self, path: str) -> list[Request]:
        return [request for request in self.requests if request.path == path]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        request = Request(method, path, headers, json.loads(body) if body else None)
        self.requests.append(request)
        answer = self.answers.get(path, Answer.json({"error": {"message": "no such path"}}, 404))
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if isinstance(answer, Callable):
            answer = answer(request)
        if answer.parts and answer.parts[0] is DIE:
            return False
        lines = [f"HTTP/1.1 {answer.status} Whatever", f"content-type: {answer.type}", "transfer-encoding: chunked"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in answer.headers.items()]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        for part in answer.parts:
            if part is DIE:
                return False
            if part is WAIT:
                await reader.read(1)
                self.gone.set()
                return False
            writer.write(b"%x\r\n%s\r\n" % (len(part), part))
            await writer.drain()
            await asyncio.sleep(0)
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True
