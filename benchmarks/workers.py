"""Chunks a second that the gateway streams with one worker process and with several.

    python -m benchmarks.workers [--workers 2] [--rounds 3]

Servers run alternately on the replay engine without pauses. The one client only counts events, so it needs less than
a fifth of a core. The figure is wall time: run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

STREAMS = 32
SECONDS = 8.0
WORDS = ("the", "a", "boat", "night", "harbour", "was", "with", "and", "morning", "one")
BODY = json.dumps({"model": "replay", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}).encode()
REQUEST = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
)


def recordings(path: Path) -> None:
    """Write four outputs of 3,000 words."""
    choose = random.Random(1).choice
    rows = ({"output": " ".join(choose(WORDS) for _ in range(3_000))} for _ in range(4))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextlib.contextmanager
def serving(file: Path, workers: int) -> Iterator[int]:
    """Run ``untemplate serve`` and yield its port once it answers."""
    port = free_port()
    command = [sys.executable, "-m", "untemplate", "serve", "replay:hermes", "--replay-file", str(file)]
    command += ["--replay-speed", "0", "--workers", str(workers), "--port", str(port), "--log-level", "error"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        for _ in range(300):
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                break
            time.sleep(0.1)
        time.sleep(2)  # for the other workers
        yield port
    finally:
        process.terminate()
        process.wait()


def chunks_a_second(port: int) -> float:
    selector = selectors.DefaultSelector()

    def start() -> None:
        connection = socket.create_connection(("127.0.0.1", port))
        connection.sendall(REQUEST)
        connection.setblocking(False)
        selector.register(connection, selectors.EVENT_READ)

    for _ in range(STREAMS):
        start()
    buffer, count, begin = bytearray(1 << 18), 0, time.perf_counter()
    while time.perf_counter() - begin < SECONDS:
        for key, _ in selector.select(1):
            connection = key.fileobj
            assert isinstance(connection, socket.socket)
            if read := connection.recv_into(buffer):
                count += buffer.count(b"data: ", 0, read)
            else:
                selector.unregister(connection)
                connection.close()
                start()
        time.sleep(0.01)  # larger reads
    for key in list(selector.get_map().values()):
        key.fileobj.close()  # type: ignore[union-attr]
    return count / (time.perf_counter() - begin)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--rounds", type=int, default=3)
    asked = arguments.parse_args()
    found: dict[int, list[float]] = {1: [], asked.workers: []}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "outputs.jsonl")
        recordings(file)
        for _ in range(asked.rounds):
            for workers, figures in found.items():
                with serving(file, workers) as port:
                    figures.append(chunks_a_second(port))
                print(f"{workers} workers: {figures[-1]:,.0f} chunks a second", flush=True)
    one, several = (statistics.median(figures) for figures in found.values())
    print(f"medians: {one:,.0f} and {several:,.0f}, {several / one:.2f} times")


if __name__ == "__main__":
    main()
