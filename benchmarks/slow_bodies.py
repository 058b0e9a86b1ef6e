"""Answers of the gateway while thousands of bodies arrive slowly.

    python benchmarks/slow_bodies.py [--connections 5000] [--seconds 20] [--tls]

The gateway serves recorded outputs in a process of its own. A second process opens the connections at once; each sends
a head and then a byte of its body now and then, and is opened again when it is closed. Meanwhile `/health`, `/metrics`
and a chat are requested, each on a new connection. Exits with 1 if `/health` or `/metrics` takes more than a second, or
a chat more than five.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

CHAT = json.dumps({"model": "hermes", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4}).encode()
ASKED = {
    "health": (b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", 1.0),
    "metrics": (b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", 1.0),
    "chat": (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
        % len(CHAT) + CHAT,
        5.0,
    ),
}  # fmt: skip
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n"


async def slow(port: int, until: float) -> None:
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(HEAD)
            while time.monotonic() < until and not reader.at_eof():
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(5)
            writer.close()
        await asyncio.sleep(0.5)


def attack(port: int, until: float, connections: int) -> None:
    _allow_files(connections)

    async def all_of_them() -> None:
        await asyncio.gather(*(slow(port, until) for _ in range(connections)))

    asyncio.run(all_of_them())


def _allow_files(count: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, count + 500), most))


async def ask(port: int, name: str) -> tuple[float, bytes]:
    begun = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(ASKED[name][0])
    answer = await reader.read()
    writer.close()
    return time.monotonic() - begun, answer[9:12]


async def measure(port: int, until: float) -> dict[str, list[tuple[float, bytes]]]:
    found: dict[str, list[tuple[float, bytes]]] = {name: [] for name in ASKED}

    async def one(name: str) -> None:
        while time.monotonic() < until:
            try:
                found[name].append(await ask(port, name))
            except OSError:
                found[name].append((99.0, b"---"))
            await asyncio.sleep(0.1)

    await asyncio.gather(*map(one, ASKED))
    return found


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--connections", type=int, default=5000)
    arguments.add_argument("--seconds", type=float, default=20)
    given = arguments.parse_args()
    command = [sys.executable, "-m", "untemplate", "serve", "replay:hermes", "--port", "0", "--replay-speed", "100"]
    server = subprocess.Popen([*command, "--log-level", "error"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = next(int(m[1]) for line in server.stdout if (m := re.search(r"127\.0\.0\.1:(\d+)$", line.strip())))
        until = time.monotonic() + given.seconds
        attacker = multiprocessing.get_context("spawn").Process(target=attack, args=(port, until, given.connections))
        attacker.start()
        found = asyncio.run(measure(port, until))
        ticks = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        attacker.join(60)
        attacker.kill()
    finally:
        server.kill()
        server.wait()
    late = False
    for name, answers in found.items():
        worst, statuses = max(seconds for seconds, _ in answers), sorted({status.decode() for _, status in answers})
        late = late or worst > ASKED[name][1] or statuses != ["200"]
        print(f"{name:8} {len(answers):5} answers  worst {worst:6.2f} s  statuses {', '.join(statuses)}")
    print(f"CPU of the server: {sum(map(int, ticks)) / 100:.1f} s")
    return late


if __name__ == "__main__":
    sys.exit(main())
