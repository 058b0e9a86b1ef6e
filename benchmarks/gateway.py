"""CPU time per streamed chunk: the gateway next to web frameworks that it could have used.

    python benchmarks/gateway.py                       # frameworks, then the gateway
    python benchmarks/gateway.py --streams 256         # gaps between chunks, 5000 tokens a second in all

* One server process runs at a time, uvicorn with uvloop and httptools on loopback. Its one client only reads.
* The figure is the server's own CPU time, which the server reports. Wall time would include other work on the machine.
* Every server sends the same chunks, one ASGI message each, and yields to the event loop before each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import socket
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

CHUNK = (
    b'data: {"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1,"model":"m","choices":'
    b'[{"index":0,"delta":{"content":"word"},"logprobs":null,"finish_reason":null}]}\n\n'
)


async def chunks(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        await asyncio.sleep(0)
        yield CHUNK


# -- Servers ------------------------------------------------------------------------------------------------------


def raw(count: int) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        async for chunk in chunks(count):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    return app


def starlette(count: int) -> Any:
    from starlette.applications import Starlette
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    async def stream(request: Any) -> Any:
        return StreamingResponse(chunks(count), media_type="text/event-stream")

    return Starlette(routes=[Route("/v1/chat/completions", stream, methods=["POST"])])


def fastapi(count: int) -> Any:
    from fastapi import FastAPI
    from fastapi.responses import StreamingResponse

    app = FastAPI()

    @app.post("/v1/chat/completions")
    async def stream() -> Any:
        return StreamingResponse(chunks(count), media_type="text/event-stream")

    return app


def litestar(count: int) -> Any:
    from litestar import Litestar, post
    from litestar.response import Stream

    @post("/v1/chat/completions")
    async def stream() -> Any:
        return Stream(chunks(count), media_type="text/event-stream")

    return Litestar([stream], openapi_config=None)


def gateway(count: int, *, output: str = "content") -> Any:
    """Return the whole gateway (dialect, prompt, parser, writer), on an engine that yields as the other servers do."""
    from untemplate import OutputParser
    from untemplate.templates import ChatTemplate
    from untemplate_gateway.app import create_app
    from untemplate_gateway.engines.base import Engine, EngineChunk, Health, Job, Takes
    from untemplate_gateway.generation import Usage
    from untemplate_gateway.manager import Manager, Model
    from untemplate_gateway.settings import Settings

    words = ["word"] * count
    if output == "reasoning":
        words = ["<think>", "\n", *words]
    if output == "call":
        words = ["<tool_call>", "\n", '{"name": ', '"f", ', '"arguments": ', '{"x": "', *words]

    class Endless(Engine):
        kind = "bench"
        takes = Takes()

        async def start(self) -> None: ...
        async def close(self) -> None: ...
        async def health(self) -> Health:
            return Health(True)

        async def generate(self, job: Job) -> Any:
            for word in words:
                await asyncio.sleep(0)
                yield EngineChunk(word)
            yield EngineChunk(finish_reason="length", usage=Usage(1, count))

    template = ChatTemplate("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")
    parser = OutputParser.named("hermes", reasoning="qwen3")
    model = Model(name="bench", engine=Endless(), parser=parser, template=template)
    return create_app(Manager([model]), Settings(log_level="error"))


def emitter(count: int) -> Any:
    """Return an upstream that streams Completions as vLLM does."""
    chunk = (
        b'data: {"id":"cmpl-0123456789abcdef","object":"text_completion","created":1,"model":"m","choices":[{"index":0,'
        b'"text":"word","logprobs":null,"finish_reason":null,"stop_reason":null,"token_ids":[1234]}],"usage":null}\n\n'
    )
    last = chunk.replace(b'"finish_reason":null', b'"finish_reason":"length"') + b"data: [DONE]\n\n"

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        await receive()
        models = b'{"object":"list","data":[{"id":"m","object":"model","owned_by":"vllm"}]}'
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        if scope["method"] == "GET":
            await send({"type": "http.response.body", "body": models})
            return
        for _ in range(count):
            await asyncio.sleep(0)
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": last})

    return app


def upstream(count: int) -> Any:
    """Return the gateway in front of another server (``--upstream``), which runs in a process of its own."""
    from untemplate import OutputParser
    from untemplate.templates import ChatTemplate
    from untemplate_gateway.app import create_app
    from untemplate_gateway.engines.openai import OpenAIEngine
    from untemplate_gateway.manager import Manager, Model
    from untemplate_gateway.settings import Settings

    engine = OpenAIEngine(os.environ["BENCH_UPSTREAM"])
    template = ChatTemplate("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")
    parser = OutputParser.named("hermes", reasoning="qwen3")
    model = Model(name="bench", engine=engine, parser=parser, template=template)
    app = create_app(Manager([model]), Settings(log_level="error"))

    async def starting(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and engine._client is None:
            await engine.start()
        await app(scope, receive, send)

    return starting


SERVERS: dict[str, Callable[[int], Any]] = {
    "raw ASGI": raw,
    "Starlette": starlette,
    "FastAPI": fastapi,
    "Litestar": litestar,
    "gateway": gateway,
    "  reasoning": lambda count: gateway(count, output="reasoning"),
    "  arguments": lambda count: gateway(count, output="call"),
    "  --upstream": upstream,
}


class Timed:
    """Adds the path /cpu to an application: the CPU time that the process has used."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == "/cpu":
            body = repr(time.process_time()).encode()
            length = (b"content-length", str(len(body)).encode())
            await send({"type": "http.response.start", "status": 200, "headers": [length]})
            await send({"type": "http.response.body", "body": body})
            return
        await self.app(scope, receive, send)


def serve(name: str, count: int, port: int) -> None:
    import uvicorn

    app = Timed({**SERVERS, "paced": paced, "emitter": emitter}[name](count))
    uvicorn.run(app, port=port, log_level="error", loop="uvloop", http="httptools", access_log=False)


# -- The client ---------------------------------------------------------------------------------------------------

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
ASK = {"model": "bench", "stream": True, "messages": [{"role": "user", "content": "hi"}], "tools": [TOOL]}
BODY = json.dumps(ASK).encode()


def post(port: int, path: str = "/v1/chat/completions", body: bytes = BODY) -> bytes:
    """Return the response's body, read as fast as it arrives."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        rest = f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        connection.sendall((head + rest).encode() + body)
        parts = []
        while data := connection.recv(1 << 20):
            parts.append(data)
    answer = b"".join(parts)
    if not answer.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"{path} was refused: {answer[:500]!r}")
    return answer


def cpu(port: int) -> float:
    return float(post(port, "/cpu", b"").rpartition(b"\r\n\r\n")[2])


def started(name: str, count: int) -> tuple[multiprocessing.Process, int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(name, count, port), daemon=True)
    process.start()
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return process, port
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"{name} did not start")


def per_chunk(name: str, count: int, rounds: int) -> list[float]:
    """Return the microseconds of CPU time per chunk, one figure for each round."""
    others = []
    if name == "  --upstream":
        emitting, port = started("emitter", count)
        others.append(emitting)
        os.environ["BENCH_UPSTREAM"] = f"http://127.0.0.1:{port}"
    process, port = started(name, count)
    try:
        post(port)
        found = []
        for _ in range(rounds):
            before = cpu(port)
            body = post(port)
            found.append((cpu(port) - before) / body.count(b"data: {") * 1e6)
        return found
    finally:
        for one in (process, *others):
            one.terminate()
            one.join()


# -- Many streams -------------------------------------------------------------------------------------------------


def paced(count: int) -> Any:
    """Return the replay engine at ``RATE`` tokens a second for each of ``count`` streams."""
    from untemplate import OutputParser
    from untemplate_gateway.app import create_app
    from untemplate_gateway.engines.replay import Recording, ReplayEngine
    from untemplate_gateway.manager import Manager, Model
    from untemplate_gateway.settings import Settings

    output = "<think>\n" + "thinking about it " * 40 + "\n</think>\n\n" + "and the answer is this " * 40
    fmt = OutputParser.named("hermes", reasoning="qwen3").format
    engine = ReplayEngine(fmt, [Recording(output=output)], speed=RATE / count)
    parser = OutputParser.from_format(fmt, tokenizer=engine.vocabulary())
    model = Model(name="bench", engine=engine, parser=parser, template=engine.template())
    return create_app(Manager([model]), Settings(log_level="error"))


RATE = 5000.0


async def gaps(port: int, streams: int, seconds: float) -> list[list[float]]:
    """Return the seconds between the chunks of each stream."""

    async def one(delay: float) -> list[float]:
        found: list[float] = []
        await asyncio.sleep(delay)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(BODY)}\r\n\r\n"
        writer.write(head.encode() + BODY)
        last = 0.0
        until = time.perf_counter() + seconds
        while time.perf_counter() < until and (data := await reader.read(1 << 16)):
            now = time.perf_counter()
            if last and b"data: {" in data:
                found.append(now - last)
            last = now
        writer.close()
        return found

    return await asyncio.gather(*(one(i / streams) for i in range(streams)))


def many(streams: int, seconds: float) -> None:
    process, port = started("paced", streams)
    try:
        before = cpu(port)
        each = [[gap * 1e3 for gap in stream] for stream in asyncio.run(gaps(port, streams, seconds))]
        used = cpu(port) - before
    finally:
        process.terminate()
        process.join()
    pace = streams / RATE * 1e3
    found = sorted(gap for stream in each for gap in stream)
    worst = sorted(max(stream) for stream in each if stream)
    late = sorted(max(gap - pace, 0.0) for gap in found)
    at = len(found) * 99 // 100
    print(f"{streams} streams, {len(found) / seconds:.0f} chunks a second, one every {pace:.0f} ms each")
    print(f"gap: median {found[len(found) // 2]:.1f} ms, p99 {found[at]:.1f} ms, max {found[-1]:.1f} ms")
    print(
        f"worst gap of each stream: median {worst[len(worst) // 2]:.1f} ms, p99 {worst[len(worst) * 99 // 100]:.1f} ms"
    )
    print(f"over the engine's own pace: p99 {late[at]:.1f} ms; CPU {used / seconds:.0%} of a core")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--chunks", type=int, default=20_000)
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--only", action="append", choices=sorted(SERVERS))
    arguments.add_argument("--streams", type=int, help="measure the gaps between chunks of so many streams")
    arguments.add_argument("--seconds", type=float, default=10.0)
    asked = arguments.parse_args()
    if asked.streams:
        many(asked.streams, asked.seconds)
        return
    floor = 0.0
    print(f"{'server':12} {'µs per chunk (CPU)':>20} {'min':>7} {'over raw':>9}")
    for name in asked.only or SERVERS:
        figures = per_chunk(name, asked.chunks, asked.rounds)
        median = statistics.median(figures)
        floor = floor or median
        print(f"{name:12} {median:20.2f} {min(figures):7.2f} {median - floor:+9.2f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
