"""CPU time of HTTP clients per event of a stream: the gateway's own client next to aiohttp and httpx.

    python -m benchmarks.clients            # needs aiohttp and httpx

* One server in a process of its own sends server-sent events, each in one chunk and one segment, with a pause after it:
  a client gets them one by one, as it does from an engine.
* The figure is the CPU time of the client's process. The clients take turns.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from typing import Final

DATA: Final = (
    b'{"id":"cmpl-0123456789abcdef","object":"text_completion","created":1,"model":"m","choices":[{"index":0,'
    b'"text":"word","logprobs":null,"finish_reason":null,"stop_reason":null,"token_ids":[1234]}],"usage":null}'
)
PAUSE: Final = 0.0003
"""Seconds between two events."""


def emit(events: int, ready: Connection) -> None:
    """Serve streams of so many events; the program of the server's process."""
    event = b"data: " + DATA + b"\n\n"
    chunk = f"{len(event):x}\r\n".encode() + event + b"\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await reader.readuntil(b"\r\n\r\n{}")
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                )
                for _ in range(events):
                    writer.write(chunk)
                    await asyncio.sleep(PAUSE)
                writer.write(b"0\r\n\r\n")

    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


async def own(url: str) -> int:
    from untemplate_gateway.engines.wire import Client, events

    client, reader, found = Client(url), events(), 0
    async with client.request("POST", "/", b"{}") as response:
        while chunk := await response.read():
            found += len(reader.feed(chunk))
    await client.close()
    return found


async def with_aiohttp(url: str) -> int:
    import aiohttp

    from untemplate_gateway.engines.wire import events

    reader, found = events(), 0
    async with aiohttp.ClientSession() as session, session.post(url, data=b"{}") as response:
        async for chunk in response.content.iter_any():
            found += len(reader.feed(chunk))
    return found


async def with_httpx(url: str) -> int:
    import httpx

    from untemplate_gateway.engines.wire import events

    reader, found = events(), 0
    async with httpx.AsyncClient() as client, client.stream("POST", url, content=b"{}") as response:
        async for chunk in response.aiter_raw():
            found += len(reader.feed(chunk))
    return found


CLIENTS: Final[dict[str, Callable[[str], Awaitable[int]]]] = {
    "own": own,
    "aiohttp": with_aiohttp,
    "httpx": with_httpx,
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--events", type=int, default=3000)
    arguments.add_argument("--rounds", type=int, default=7)
    asked = arguments.parse_args()
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=emit, args=(asked.events, there), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{here.recv()}"
    import uvloop

    figures: dict[str, list[float]] = {name: [] for name in CLIENTS}
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for _ in range(asked.rounds + 1):  # the first round warms up
            for name, client in CLIENTS.items():
                before = time.process_time()
                found = runner.run(client(url))
                figures[name].append((time.process_time() - before) / asked.events * 1e6)
                if found != asked.events:
                    raise SystemExit(f"{name} found {found} of {asked.events} events")
    server.terminate()
    own_median = statistics.median(figures["own"][1:])
    print(f"{'client':8} {'µs per event (CPU)':>20} {'min':>7} {'own = 1':>8}")
    for name, found_ in figures.items():
        median = statistics.median(found_[1:])
        print(f"{name:8} {median:20.1f} {min(found_[1:]):7.1f} {median / own_median:8.2f}")


if __name__ == "__main__":
    sys.exit(main())
