"""Where the CPU time of a chat request goes in the gateway, as a Markdown table.

    python -m benchmarks.gateway_profile [--seconds 20]

The gateway runs in a process of its own, with recorded outputs as its engine and its default settings; the client runs
in this one and uses one connection. After each millisecond of CPU time, a signal records the innermost frame that
belongs to one of the areas below. The CPU time of a request is measured without that.
"""

from __future__ import annotations

import argparse
import collections
import http.client
import json
import multiprocessing
import os
import signal
import socket
import sys
import time
from types import FrameType
from typing import Any

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Return the weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "unit": {"type": "string"}},
            "required": ["city"],
        },
    },
}
TEXT = "The harbour was quiet in the morning, and the boats came back one after the other. " * 3
THOUGHT = "<think>\n" + "I should look up the weather for this city. " * 5 + "</think>\n\nLet me see.\n"
CALLED = '{"city": "Oslo", "unit": "celsius"}'
REQUESTS = {
    "plain, whole": {"model": "bench", "messages": [{"role": "user", "content": "Hello, how are you?"}]},
    "reasoning and a call, streamed": {
        "model": "bench",
        "stream": True,
        "messages": [{"role": "user", "content": "What is the weather in Oslo?"}],
        "tools": [TOOL],
    },
}

AREAS = (
    ("untemplate_gateway/engines/", "engine: recorded outputs"),
    ("untemplate_gateway/prompt.py", "prompt: the chat template"),
    ("untemplate_gateway/templates/", "prompt: the chat template"),
    ("untemplate/templates/", "prompt: the chat template"),
    ("jinja2/", "prompt: the chat template"),
    ("<template>", "prompt: the chat template"),
    ("response.py", "writing the answer"),
    ("untemplate_gateway/protocols/encoding.py", "writing the answer"),
    ("untemplate_gateway/protocols/", "reading the request"),
    ("untemplate_gateway/observe.py", "metrics and log"),
    ("untemplate_gateway/tracing.py", "metrics and log"),
    ("prometheus_client/", "metrics and log"),
    ("logging/", "metrics and log"),
    ("untemplate_gateway/session.py", "session: chunks to deltas"),
    ("untemplate_gateway/choice.py", "session: chunks to deltas"),
    ("untemplate_gateway/", "routes, access, limits, frames of the stream"),
    ("untemplate/", "parser"),
    ("uvicorn/", "HTTP server and sockets"),
    ("starlette/", "HTTP server and sockets"),
)
"""Parts of file names → areas; the first that fits counts. Other frames belong to the area of their caller."""
LOOP = "event loop"


def area_of(file: str) -> str | None:
    """Return the area of a file; None if it counts for its caller."""
    name = file.replace(os.sep, "/")
    return next((area for part, area in AREAS if part in name), None)


# -- In the server ------------------------------------------------------------------------------------------------


def application() -> Any:
    """Return the gateway with two recorded outputs."""
    from untemplate import OutputParser
    from untemplate_gateway.app import create_app
    from untemplate_gateway.engines.replay import Recording, ReplayEngine
    from untemplate_gateway.manager import Manager, Model
    from untemplate_gateway.settings import Settings

    call = f'{THOUGHT}<tool_call>\n{{"name": "get_weather", "arguments": {CALLED}}}\n</tool_call>'
    recordings = [Recording(output=TEXT), Recording(output=call, calls=("get_weather",))]
    fmt = OutputParser.named("hermes", reasoning="qwen3").format
    engine = ReplayEngine(fmt, recordings)
    parser = OutputParser.from_format(fmt, tokenizer=engine.vocabulary())
    model = Model(name="bench", engine=engine, parser=parser, template=engine.template())
    return create_app(Manager([model]), Settings())


class Sampled:
    """Adds paths to an application: `/cpu` is the CPU time so far, `/start` and `/stop` are around the sampling."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.counts: collections.Counter[str] = collections.Counter()

    def _sample(self, number: int, frame: FrameType | None) -> None:
        while frame is not None:
            if area := area_of(frame.f_code.co_filename):
                self.counts[area] += 1
                return
            frame = frame.f_back
        self.counts[LOOP] += 1

    def _answer(self, path: str) -> Any:
        if path == "/start":
            self.counts.clear()
            signal.signal(signal.SIGPROF, self._sample)
            signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
        if path == "/stop":
            signal.setitimer(signal.ITIMER_PROF, 0)
            return self.counts
        return time.process_time()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] not in ("/cpu", "/start", "/stop"):
            await self.app(scope, receive, send)
            return
        body = json.dumps(self._answer(scope["path"])).encode()
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": body})


def serve(port: int) -> None:
    import uvicorn

    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the log is written, but not here
    uvicorn.run(Sampled(application()), port=port, log_level="error", loop="uvloop", http="httptools", access_log=False)


# -- The client ---------------------------------------------------------------------------------------------------


class Client:
    """One connection to the server."""

    def __init__(self, port: int) -> None:
        for _ in range(600):
            try:
                self._connection = http.client.HTTPConnection("127.0.0.1", port)
                self._connection.connect()
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit("the gateway did not start")

    def get(self, path: str) -> Any:
        self._connection.request("GET", path)
        return json.loads(self._connection.getresponse().read())

    def ask(self, body: bytes) -> bytes:
        headers = {"content-type": "application/json"}
        self._connection.request("POST", "/v1/chat/completions", body, headers)
        response = self._connection.getresponse()
        answer = response.read()
        if response.status != 200:
            raise SystemExit(f"the request was refused: {answer[:500]!r}")
        return answer

    def run(self, body: bytes, seconds: float) -> float:
        """Ask for some seconds, and return the server's CPU seconds per request."""
        before, until, count = self.get("/cpu"), time.monotonic() + seconds, 0
        while time.monotonic() < until:
            self.ask(body)
            count += 1
        return float(self.get("/cpu") - before) / count


def measured(client: Client, body: bytes, seconds: float) -> tuple[float, dict[str, float], bytes]:
    """Return the CPU seconds of a request, the share of each area, and the answer."""
    answer = client.ask(body)
    client.run(body, 1.0)
    cost = min(client.run(body, seconds / 10) for _ in range(5))
    client.get("/start")
    client.run(body, seconds / 2)
    counts = client.get("/stop")
    total = sum(counts.values())
    return cost, {area: count / total for area, count in counts.items()}, answer


def table(found: dict[str, tuple[float, dict[str, float]]]) -> str:
    """Return the time of each area, the largest of the last column first."""
    last = list(found.values())[-1][1]
    areas = sorted({area for _, shares in found.values() for area in shares}, key=lambda area: -last.get(area, 0.0))
    lines = [f"| area | {' | '.join(f'{name}, µs' for name in found)} |", f"| --- |{' ---: |' * len(found)}"]
    for area in areas:
        cells = (f"{cost * shares.get(area, 0.0) * 1e6:.0f}" for cost, shares in found.values())
        lines.append(f"| {area} | {' | '.join(cells)} |")
    lines.append(f"| all | {' | '.join(f'{cost * 1e6:.0f}' for cost, _ in found.values())} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    description = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateway_profile", description=description)
    parser.add_argument("--seconds", type=float, default=20.0, help="time for each kind of request (default: 20)")
    chosen = parser.parse_args(arguments)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(port,), daemon=True)
    server.start()
    try:
        client = Client(port)
        found = {}
        for name, request in REQUESTS.items():
            cost, shares, answer = measured(client, json.dumps(request).encode(), chosen.seconds)
            found[name] = cost, shares
            chunks = answer.count(b"data: {")
            print(f"{name}: {chunks} chunks" if chunks else f"{name}: {len(answer)} bytes", file=sys.stderr)
    finally:
        server.terminate()
        server.join()
    print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
