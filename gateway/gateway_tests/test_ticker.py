"""The event loop stays free while requests of hostile size are answered: `make hostile`, on an idle machine."""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from untemplate._internal.output_parser import OutputParser
from untemplate_gateway.manager import Model

from .scripted import replay
from .server import LONG, Running, running

LATEST = 0.3
"""Most seconds by which a ticker of 10 ms may be late: on an idle machine, the median of three runs."""


def _tool(number: int) -> dict[str, Any]:
    properties = {f"p{i}": {"type": "string", "enum": ["a", "b"]} for i in range(5)}
    function = {"name": f"f{number}", "parameters": {"type": "object", "properties": properties}}
    return {"type": "function", "function": function}


def _called(arguments: list[str]) -> list[dict[str, Any]]:
    """Return a conversation that consists mostly of calls."""
    calls = [
        {"id": f"c{i}", "type": "function", "function": {"name": "f", "arguments": text}}
        for i, text in enumerate(arguments)
    ]
    answers = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in calls]
    return [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": None, "tool_calls": calls}, *answers]


def _chat(messages: list[dict[str, Any]], **more: Any) -> bytes:
    return json.dumps({"messages": messages, **more}).encode()


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


_PATTERNS = {"type": "object", "patternProperties": {f"^(x{i}|y){{1,200}}$": {"type": "string"} for i in range(500)}}
USER = {"role": "user", "content": "Hi"}
CASES = {
    "tokenize": ("/tokenize", json.dumps({"prompt": "word " * 1_800_000}).encode()),
    "a lone surrogate": ("/v1/chat/completions", _chat([{"role": "user", "content": "x" * 20_000_000 + "\ud800"}])),
    "tools": ("/v1/chat/completions", _chat([USER], tools=[_tool(i) for i in range(4096)])),
    "prompt ids": ("/v1/completions", json.dumps({"prompt": [1] * 1_000_000, "max_tokens": 1}).encode()),
    "many calls": ("/v1/chat/completions", _chat(_called([json.dumps({"a": "x" * 2000})] * 4000))),
    "patterns": ("/v1/chat/completions", _chat([USER], response_format=_json(_PATTERNS))),
    "a large call": ("/v1/chat/completions", _chat(_called([json.dumps({"a": ["x"] * 1_000_000})]))),
}


_CLIENT = """
import sys, urllib.request
request = urllib.request.Request(sys.argv[1], sys.stdin.buffer.read(), {"content-type": "application/json"})
with urllib.request.urlopen(request) as answer:
    answer.read()
"""


@pytest.fixture(scope="module")
def gateway() -> Iterator[Running]:
    engine = replay("hermes")
    parser = OutputParser.from_format(engine.format, tokenizer=engine.tokenizer)
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.001)  # as `untemplate serve`
    with running([Model(name="m", engine=engine, parser=parser, template=engine.template())]) as found:
        yield found
    sys.setswitchinterval(before)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CASES)
def test_the_loop_is_never_late(gateway: Running, name: str) -> None:
    path, body = CASES[name]
    late: list[float] = []

    async def tick() -> None:
        last = time.perf_counter()
        late.append(0.0)
        while True:
            await asyncio.sleep(0.01)
            now = time.perf_counter()
            late[-1] = max(late[-1], now - last - 0.01)
            last = now

    for _ in range(3):
        ticking = asyncio.run_coroutine_threadsafe(tick(), gateway.loop)
        # In a process of its own, which does not take Python's lock from the server.
        asked = subprocess.run(
            [sys.executable, "-c", _CLIENT, gateway.url + path], input=body, timeout=LONG, check=False
        )
        ticking.cancel()
        assert asked.returncode == 0
    print(f"{name}: late by {', '.join(f'{one:.3f}' for one in late)} s")
    assert statistics.median(late) < LATEST
