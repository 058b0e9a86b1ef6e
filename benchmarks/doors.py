"""One answer through each way into the parser, so that its cost can be counted: streams, servers' classes, the gateway.

The answer has a thought, a sentence and a call, and comes with token ids, one a delta. The gateway runs in this
process, without sockets and without a web server.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from untemplate import OutputParser

from .adapter import Vocabulary
from .streams import TOOLS, cut, tokens, vocabulary

OUTPUT = (
    "<think>\nThe user wants the weather in Oslo, in degrees Celsius. I have a tool for it, which needs the name of "
    "the city and the unit, so I only have to call it once.\n</think>\n\nLet me look that up for you.\n"
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "unit": "celsius"}}\n</tool_call>'
)
REQUEST = {"model": "bench", "messages": [{"role": "user", "content": "What is the weather in Oslo?"}], "tools": TOOLS}

Run = Callable[[], object]


def _collected(parser: OutputParser, deltas: list[tuple[str, list[int]]]) -> Run:
    stream = parser.stream(tools=TOOLS, collect=True, seed=1)

    def run() -> object:
        for text, ids in deltas:
            stream.feed(text, ids)
        stream.finish()
        return stream.result()

    return run


def _parse_streaming(parser: OutputParser, deltas: list[tuple[str, list[int]]]) -> Run:
    """vLLM's documented method of a parser, which gets the whole text with each delta."""

    def run() -> object:
        text = ""
        for delta, ids in deltas:
            parser.parse_streaming(text, text + delta, delta, delta_token_ids=ids, request=REQUEST)
            text += delta
        return parser.finish_streaming()

    return run


def _parse_delta(tokenizer: Vocabulary, deltas: list[tuple[str, list[int]]]) -> Run:
    from untemplate.vllm_api import ParserManager

    made = ParserManager.get_parser("hermes", "qwen3", enable_auto_tools=True, tokenizer=tokenizer)
    assert made is not None
    parser = made(tokenizer, TOOLS)

    def run() -> object:
        last = None
        for number, (text, ids) in enumerate(deltas, 1):
            last = parser.parse_delta(text, ids, REQUEST, [], finished=number == len(deltas))
        return last

    return run


def _row() -> Run:
    from untemplate.batch._rows import Columns, RowParser, Settings

    parser = RowParser(Settings(columns=Columns(), format=OutputParser.named("hermes", reasoning="qwen3").format))
    row = json.dumps({"output": OUTPUT, "tools": TOOLS}).encode()
    parser.record(row, 0)  # what is made for the first row of many does not count
    return lambda: parser.record(row, 1)


def _request(application: Any, request: dict[str, Any], loop: asyncio.AbstractEventLoop) -> Run:
    body = json.dumps(request).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), (b"host", b"127.0.0.1")]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/v1/chat/completions",
        "raw_path": b"/v1/chat/completions",
        "root_path": "",
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        "state": {},
    }

    async def ask() -> bytes:
        asked: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]
        answered: list[dict[str, Any]] = []
        never = asyncio.Event()

        async def receive() -> dict[str, Any]:
            if not asked:
                await never.wait()
            return asked.pop()

        async def send(message: dict[str, Any]) -> None:
            answered.append(message)

        await application(dict(scope), receive, send)
        assert answered[0]["status"] == 200, answered
        return b"".join(message.get("body", b"") for message in answered[1:])

    return lambda: loop.run_until_complete(ask())


def every(loop: asyncio.AbstractEventLoop) -> dict[str, Callable[[], Run]]:
    """Return what prepares one run of each way in, by its name. The gateway runs in this event loop."""
    from .gateway_profile import REQUESTS, application

    special = ["<think>", "</think>", "<tool_call>", "</tool_call>"]
    pieces = tokens(OUTPUT, special)
    ids = vocabulary(pieces, special)
    deltas = cut(pieces, ids, "ids")
    tokenizer = Vocabulary(ids)
    parser = OutputParser.named("hermes", reasoning="qwen3", tokenizer=tokenizer)
    app = application()
    return {
        "stream, collected": lambda: _collected(parser, deltas),
        "parse_streaming": lambda: _parse_streaming(parser, deltas),
        "parse_delta": lambda: _parse_delta(tokenizer, deltas),
        "batch, a row": _row,
        "gateway, whole": lambda: _request(app, REQUESTS["plain, whole"], loop),
        "gateway, streamed": lambda: _request(app, REQUESTS["reasoning and a call, streamed"], loop),
    }
