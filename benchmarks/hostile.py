"""Latency of honest clients of the gateway, alone and next to hostile connections.

    python benchmarks/hostile.py [--seconds 10] [--clients 64]

The gateway serves recorded outputs in a process of its own. Honest clients request a short stream again and again. The
same number of hostile connections send endless headers, bodies that arrive byte by byte, or tools with an enum of a
megabyte. When one is closed, another is opened. All clients run in other processes, on loopback. The two phases
alternate, because machines are shared.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import re
import subprocess
import sys
import time
from typing import Any

PATH = "/v1/chat/completions"
ASK = {"model": "hermes", "messages": [{"role": "user", "content": "Hi"}], "stream": True, "max_tokens": 16}
ENUM = [f"value-{i:06}" for i in range(70_000)]


def request(body: Any) -> bytes:
    data = json.dumps(body).encode()
    return b"POST %b HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % (PATH.encode(), len(data)) + data


async def honest(port: int, until: float, found: list[float]) -> None:
    """Send a request, measure the time to the end of the stream, wait a little, and repeat."""
    data = request(ASK)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.monotonic() < until:
        begun = time.monotonic()
        writer.write(data)
        await reader.readuntil(b"0\r\n\r\n")
        found.append(time.monotonic() - begun)
        await asyncio.sleep(0.5)
    writer.close()


async def endless_head(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nx: ")
    while True:
        writer.write(b"a" * 4096)
        await writer.drain()
        await asyncio.sleep(0.05)


async def slow_body(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST %b HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n" % PATH.encode())
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.1)


async def large_enum(port: int) -> None:
    schema = {"type": "object", "properties": {"x": {"enum": ENUM}}, "required": ["x"]}
    tool = {"type": "function", "function": {"name": "f", "strict": True, "parameters": schema}}
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request({**ASK, "stream": False, "tools": [tool]}))
    await reader.read(1)
    await asyncio.sleep(20)
    writer.close()


async def again(attack: Any, port: int, until: float) -> None:
    while time.monotonic() < until:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(until - time.monotonic()):
                await attack(port)


async def _honest(port: int, until: float, clients: int) -> list[float]:
    found: list[float] = []
    await asyncio.gather(*(honest(port, until, found) for _ in range(clients)))
    return found


async def _hostile(port: int, until: float, clients: int) -> None:
    attacks = [endless_head, slow_body, large_enum]
    await asyncio.gather(*(again(attacks[i % 3], port, until) for i in range(clients)))


def run_hostile(port: int, until: float, clients: int) -> None:
    asyncio.run(_hostile(port, until, clients))


def measure(port: int, seconds: float, clients: int, *, attacked: bool) -> list[float]:
    """Return the seconds that each honest request took."""
    until = time.monotonic() + seconds
    attacker = multiprocessing.get_context("spawn").Process(target=run_hostile, args=(port, until, clients))
    if attacked:
        attacker.start()
        time.sleep(1)
    found = asyncio.run(_honest(port, until, clients))
    if attacked:
        attacker.join(30)
        attacker.kill()
        attacker.join()
    return found


def shown(name: str, found: list[float]) -> float:
    found.sort()
    p50, p99 = (found[int(len(found) * part)] * 1000 for part in (0.5, 0.99))
    print(f"{name:8} {len(found):6} requests  p50 {p50:7.1f} ms  p99 {p99:7.1f} ms", flush=True)
    return p99


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seconds", type=float, default=10, help="seconds of each phase")
    arguments.add_argument("--clients", type=int, default=64, help="honest clients, and as many hostile ones")
    arguments.add_argument("--limit", type=float, help="fail if the p99 rises by more than this factor")
    arguments.add_argument("--rounds", type=int, default=2, help="pairs of phases")
    given = arguments.parse_args()
    command = [sys.executable, "-m", "untemplate", "serve", "replay:hermes", "--port", "0", "--replay-speed", "100"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout is not None
        port = next(int(m[1]) for line in server.stdout if (m := re.search(r"127\.0\.0\.1:(\d+)$", line.strip())))
        alone: list[float] = []
        attacked: list[float] = []
        for _ in range(given.rounds):
            alone += measure(port, given.seconds, given.clients, attacked=False)
            attacked += measure(port, given.seconds, given.clients, attacked=True)
        ratio = 1 / shown("alone", alone) * shown("attacked", attacked)
        print(f"p99 attacked / alone: {ratio:.2f}")
        if given.limit is not None and ratio > given.limit:
            sys.exit(1)
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
