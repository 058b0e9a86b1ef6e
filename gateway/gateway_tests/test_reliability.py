"""Reliability: clients that send nonsense, do not read, leave, or all come at once; upstreams that fail; models that
are replaced under load; a server that is shut down.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import socket
import threading
import time
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from untemplate._internal.output_parser import OutputParser
from untemplate._internal.stream import Stream
from untemplate.templates import ChatTemplate
from untemplate_gateway import parsing
from untemplate_gateway.answering import Answers
from untemplate_gateway.app import create_app
from untemplate_gateway.engines.base import EngineChunk, Job, Takes
from untemplate_gateway.engines.openai import OpenAIEngine
from untemplate_gateway.engines.replay import Recording, ReplayEngine
from untemplate_gateway.errors import ApiError
from untemplate_gateway.manager import Manager
from untemplate_gateway.manager.model import Model
from untemplate_gateway.observe import TextFormatter
from untemplate_gateway.settings import Settings

from .scripted import TEMPLATE, Scripted, scripted
from .server import LONG, Running, running, soon

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
CALL = '<tool_call>\n{"name": "f", "arguments": {"x": "a"}}\n</tool_call>'
ASK: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}
CHAT = "/v1/chat/completions"


def post(gateway: Running, path: str, body: Any, **more: Any) -> httpx.Response:
    return httpx.post(gateway.url + path, json=body, timeout=LONG, **more)


def sent(gateway: Running, path: str, body: Any) -> socket.socket:
    """Return the socket of a client that sends a request and does nothing more."""
    data = json.dumps(body).encode()
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", gateway.port))
    client.sendall(f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data)
    return client


def metric(gateway: Running, line: str) -> float:
    """Return the value of a metric, by its name and labels; 0 if it is missing."""
    for row in gateway.app.metrics.text().decode().splitlines():
        if row.startswith(line + " "):
            return float(row.rpartition(" ")[2])
    return 0.0


def replayed(outputs: list[str], name: str = "replayed", **settings: Any) -> Model:
    parser = OutputParser.named("hermes", reasoning="qwen3")
    engine = ReplayEngine(parser.format, [Recording(output=output) for output in outputs], **settings)
    return Model(name=name, engine=engine, parser=parser, template=ChatTemplate(TEMPLATE))


# -- Memory ------------------------------------------------------------------------------------------------------------

COUNT = 3217


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"stream": False}, 200),
        ({"stream": True}, 200),
        ({"temperature": "x"}, 400),
        ({"model": "none"}, 404),
        ({"model": "breaks"}, 502),
        ({"model": "breaks", "stream": True}, 502),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"required": 1}}}}, 400),
    ],
)  # fmt: skip
def test_a_request_is_freed_when_it_has_ended(fields: dict[str, Any], status: int) -> None:
    """Not when the garbage collector comes: it counts objects, and comes late where a few of them hold much."""
    body = json.dumps({"model": "scripted", "messages": ASK["messages"] * COUNT, **fields}).encode()

    def held() -> bool:
        lists = [one for one in gc.get_objects() if type(one) is list and len(one) == COUNT]
        return any(isinstance(one[0], dict | msgspec.Struct) for one in lists)  # other tests leave other lists

    with running([scripted("x"), replace(scripted("\0"), name="breaks")]) as gateway:
        post(gateway, CHAT, ASK)  # fills caches
        gc.collect()
        gc.disable()
        try:
            answered = httpx.post(gateway.url + CHAT, content=body, timeout=LONG)
            assert answered.status_code == status
            assert soon(lambda: not held())
            body = body.replace(b'"messages"', b'"input"')
            httpx.post(gateway.url + "/v1/responses", content=body, timeout=LONG)
            assert soon(lambda: not held())
        finally:
            gc.enable()


def test_a_request_whose_worker_ends_may_be_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may have ended it, for want of memory."""
    monkeypatch.setattr(parsing._WORKERS, "program", "import os; os._exit(1)")
    monkeypatch.setattr(parsing._WORKERS, "idle", [])
    with running([scripted("x")]) as gateway:
        answered = post(gateway, "/parse", {"text": "x", "template": "x"})
    assert (answered.status_code, answered.headers["retry-after"]) == (503, "1")
    assert answered.json()["error"]["message"] == "the worker process has ended"


def test_templates_of_clients_do_not_hold_up_large_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A template can take many seconds, until its limits end it. Its worker is ended."""
    workers = parsing._WORKERS
    monkeypatch.setattr(workers, "program", "import time; time.sleep(3600)")
    monkeypatch.setattr(workers, "idle", [])
    large = {"messages": [{"role": "user", "content": "x" * 40_000}]}
    with running([scripted("x")]) as gateway, ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(post, gateway, "/parse", {"text": "x", "template": "x"}) for _ in range(2)]
        assert soon(lambda: sum(worker.process is not None for worker in list(workers.busy)) == 2)
        assert post(gateway, CHAT, large).status_code == 200
        workers.close()
        assert [one.result().status_code for one in asked] == [503, 503]


class TestLongTextsToParse:
    """Their time is bounded, ends when the client leaves, and no other work waits for it."""

    def test_its_length_is_bounded(self, shared: Running) -> None:
        refused = post(shared, "/parse", {"text": "x" * 1_000_001})
        problem = "text: 1000001 characters are more than 1000000"
        assert (refused.status_code, refused.json()["error"]["message"]) == (413, problem)

    def test_its_pieces_give_the_same_message(self, shared: Running) -> None:
        text = "<think>\nHm.\n</think>\n\n" + ("word " * 9_000) + CALL + ("more " * 9_000)
        tools = [{"type": "function", "function": {"name": "get_weather"}}]
        parsed = post(shared, "/parse", {"text": text, "tools": tools, "spans": True}).json()
        whole = scripted("").parser.parse(text, tools=tools, spans=True)
        assert parsed["message"]["content"] == whole.content
        assert parsed["spans"] == [span.model_dump(exclude_none=True) for span in whole.spans]

    def test_clients_that_leave(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Two of them kept both threads for minutes, so that a long prompt was not rendered."""
        pieces: list[int] = []
        feed = Stream.feed

        def slow(self: Stream, text: str, token_ids: Any = (), *more: Any) -> Any:
            if threading.current_thread().name.startswith("untemplate-slow"):
                pieces.append(len(text))
                time.sleep(0.2)
            return feed(self, text, token_ids, *more)

        monkeypatch.setattr(Stream, "feed", slow)
        body = {"text": "<tool_call>" * 90_000}
        large = {"messages": [{"role": "user", "content": "x" * 40_000}]}
        with running([scripted("x")]) as gateway:
            data = json.dumps(body).encode()
            head = f"POST /parse HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(data)}\r\n\r\n".encode()
            with contextlib.ExitStack() as clients:
                for _ in range(3):
                    client = clients.enter_context(socket.create_connection(("127.0.0.1", gateway.port), timeout=LONG))
                    client.sendall(head + data)
                assert soon(lambda: gateway.app.answers.running == 3 and bool(pieces))
                assert post(gateway, CHAT, large).status_code == 200
            assert soon(lambda: gateway.app.answers.running == 0)
            seen = len(pieces)
            assert post(gateway, "/parse", {"text": "x" * 40_000}).status_code == 200
            assert len(pieces) <= seen + 3  # the piece that was being parsed, and the two of this request
            assert seen < 30


# -- Nonsense ----------------------------------------------------------------------------------------------------------


def schema(value: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": value}}}


class TestNonsense:
    @pytest.mark.parametrize(
        ("fields", "problem"),
        [
            ({"chat_template_kwargs": {"self": 1}}, "chat_template_kwargs.self: cannot be set by requests"),
            ({"chat_template_kwargs": {"documents": 3}}, "chat_template_kwargs.documents: must be a list of objects"),
            ({"chat_template_kwargs": {"documents": [1]}}, "chat_template_kwargs.documents: must be a list of objects"),
            (schema({"type": "object", "required": 1}),
             "response_format: 'required' is not a list of names"),
            (schema({"allOf": [{"$ref": "#"}]}),
             "response_format: '$ref' points at itself"),
            ({"guided_choice": ["x"] * 5001},
             "guided_choice: may hold at most 5,000 texts with 500,000 characters together"),
            ({"guided_choice": ["x" * 500_001]},
             "guided_choice: may hold at most 5,000 texts with 500,000 characters together"),
            ({"grammar": "root ::= " + "(" * 97}, "grammar: may be nested at most 96 levels deep"),
            ({"grammar": "root ::= " + "|" * 5001},
             "grammar: may have at most 500,000 characters and 5,000 alternatives"),
            ({"grammar": "root ::= " + "[" * 499_992},
             "grammar: may have at most 500,000 characters and 5,000 alternatives"),
        ],
    )  # fmt: skip
    def test_it_is_named(self, shared: Running, fields: dict[str, Any], problem: str) -> None:
        refused = post(shared, CHAT, {**ASK, **fields})
        assert (refused.status_code, refused.json()["error"]["message"]) == (400, problem)

    @pytest.mark.parametrize(
        ("settings", "status"),
        [
            ({"host": "0.0.0.0", "insecure": True}, 403),
            ({"host": "0.0.0.0", "insecure": True, "client_grammars": "on"}, 200),
            ({"client_grammars": "off"}, 403),
            ({"api_keys": ("key",)}, 403),
            ({}, 200),
        ],
    )
    def test_grammars_of_clients_need_permission(self, settings: dict[str, Any], status: int) -> None:
        """``s ::= "a" s "b" | "a" s "c"`` takes the double memory of llama.cpp with each token."""
        takes = Takes(grammar="gbnf", constraints=frozenset(("grammar", "choice")))
        with running([scripted("a", takes=takes)], **settings) as gateway:
            key = {"authorization": "Bearer key"}
            answered = post(gateway, CHAT, {**ASK, "grammar": 'root ::= "a"'}, headers=key)
            assert answered.status_code == status
            if status == 403:
                assert answered.json()["error"]["message"] == (
                    "grammar: the operator of this gateway does not take grammars (--client-grammars on)"
                )
            assert post(gateway, CHAT, {**ASK, "guided_choice": ["a"]}, headers=key).status_code == 200

    def test_literals_of_grammars_do_not_count_as_nesting(self, shared: Running) -> None:
        refused = post(shared, CHAT, {**ASK, "grammar": 'root ::= "' + "(" * 97 + '" [(]'})
        assert refused.json()["error"]["message"] == "grammar: this engine takes no grammar"

    def test_a_template_to_parse_by_is_no_file(self, shared: Running, tmp_path: Path) -> None:
        """Otherwise clients could read files of the server."""
        file = tmp_path / "template.jinja"
        file.write_text(TEMPLATE)
        assert post(shared, "/parse", {"text": "x", "template": TEMPLATE}).status_code == 200
        refused = post(shared, "/parse", {"text": "x", "template": str(file)})
        problem = "not a chat template: it renders no conversation: the user's message does not show up"
        assert (refused.status_code, refused.json()["error"]["message"]) == (400, problem)

    def test_messages_to_parse_by(self, shared: Running) -> None:
        body = {"text": CALL, "messages": [{"role": "assistant", "tool_calls": 3}]}
        refused = post(shared, "/parse", body)
        problem = "tools, tool_choice or messages do not have the shape of Chat Completions"
        assert (refused.status_code, refused.json()["error"]["message"]) == (400, problem)

    @pytest.mark.parametrize(
        ("path", "shown"),
        [
            ("/v1/models/a%2Fb", "'a/b'"),
            ("/v1/models/a/b", "'a/b'"),
            ("/v1/models/%C3%A9", "'é'"),
        ],
    )
    def test_odd_names_of_models(self, shared: Running, path: str, shown: str) -> None:
        missing = httpx.get(shared.url + path, timeout=LONG)
        problem = f"the model {shown} does not exist (models: scripted)"
        assert (missing.status_code, missing.json()["error"]["message"]) == (404, problem)

    @pytest.mark.parametrize(
        ("method", "path", "body"),
        [
            ("GET", "/v1/nope", {"error": {"message": "there is nothing at /v1/nope", "type": "not_found_error",
                                           "param": None, "code": "not_found"}}),
            ("GET", "/api/nope", {"error": "there is nothing at /api/nope"}),
            ("GET", "/v1/messages/nope", {"type": "error", "error": {
                "type": "not_found_error", "message": "there is nothing at /v1/messages/nope"}}),
            ("DELETE", "/api/chat", {"error": "/api/chat does not take DELETE"}),
        ],
    )  # fmt: skip
    def test_each_api_has_its_own_errors(self, shared: Running, method: str, path: str, body: Any) -> None:
        assert httpx.request(method, shared.url + path, timeout=LONG).json() == body

    def test_names_that_clients_make_up_are_no_labels(self) -> None:
        with running([scripted("x")]) as gateway:
            for i in range(20):
                post(gateway, CHAT, {**ASK, "model": f"made-up-{i}"})
                httpx.get(f"{gateway.url}/made-up-{i}", timeout=LONG)
            assert soon(
                lambda: metric(gateway, 'untemplate_requests_total{dialect="chat",model="",status="404"}') == 20
            )
            assert "made-up" not in gateway.app.metrics.text().decode()
        with running([scripted("x")], any_model_name=True) as gateway:
            assert post(gateway, CHAT, {**ASK, "model": "made-up"}).json()["model"] == "made-up"
            assert soon(lambda: 'model="scripted",status="200"' in gateway.app.metrics.text().decode())
            assert "made-up" not in gateway.app.metrics.text().decode()

    def test_what_clients_send_makes_no_lines_of_log(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "untemplate.gateway")
        headers = {"x-request-id": "abcdefgh ijkl", "authorization": "Bearer s3cret-key"}
        with running([scripted("x")], unknown_fields="refuse") as gateway:
            post(gateway, CHAT, {**ASK, "a\nFAKE 200\x1b[2J\u2028": 1}, headers=headers)

        def lines() -> list[str]:
            shown = [TextFormatter("%(message)s").format(r) for r in caplog.records if r.name == "untemplate.gateway"]
            return [line for line in shown if line.startswith("chat 400")]  # an earlier test's may still come

        assert soon(lambda: bool(lines()))
        (line,) = lines()
        assert line.startswith("chat 400 request=")
        assert line.endswith(
            r" error=a\nFAKE 200\x1b[2J\u2028: is not supported param=a\nFAKE 200\x1b[2J\u2028"
        )  # fmt: skip
        assert line.isprintable()
        assert "abcdefgh" not in line
        assert "s3cret" not in caplog.text


# -- Clients that do not read, or leave -------------------------------------------------------------------------------


class Endless(Scripted):
    """Writes without end, as fast as it is read; with ``silent``, nothing at all."""

    def __init__(self, *, silent: bool = False) -> None:
        super().__init__("")
        self.silent = silent
        self.written = 0

    async def generate(self, job: Job) -> AsyncGenerator[EngineChunk, None]:
        self.jobs.append(job)
        try:
            while True:
                await asyncio.sleep(3600 if self.silent else 0)
                self.written += 1
                yield EngineChunk("word " * 50_000)  # a few fill the buffers of both sockets
        finally:
            self.closed.append(job.id)


def endless(**settings: Any) -> tuple[Model, Endless]:
    engine = Endless(**settings)
    parser = OutputParser.named("hermes", reasoning="qwen3")
    return Model(name="endless", engine=engine, parser=parser, template=ChatTemplate(TEMPLATE)), engine


class TestReaders:
    @pytest.mark.parametrize("n", [1, 3])
    def test_one_that_never_reads_holds_back_its_own_engine_only(self, n: int) -> None:
        model, engine = endless()
        with running([model, scripted("x")]) as gateway:
            with sent(gateway, CHAT, {**ASK, "model": "endless", "stream": True, "n": n}):
                assert soon(lambda: engine.written > 2)
                before = -1
                while before != engine.written:  # until the buffers of both sockets are full
                    before = engine.written
                    time.sleep(0.3)
                    assert before < 200
                # 250 000 characters a piece: besides the buffers of the sockets, the gateway holds only a few of them.
                other = post(gateway, CHAT, {**ASK, "model": "scripted"})
                assert other.json()["choices"][0]["message"]["content"] == "x"
            assert soon(lambda: len(engine.closed) == n)
            assert soon(lambda: metric(gateway, "untemplate_requests_running") == 0)

    def test_one_that_never_reads_has_no_more_time_than_others(self) -> None:
        model, engine = endless()
        with (
            running([model], request_timeout=1.0) as gateway,
            sent(gateway, CHAT, {**ASK, "stream": True}),
        ):
            assert soon(lambda: bool(engine.closed))
            assert soon(lambda: metric(gateway, "untemplate_requests_running") == 0)
            line = 'untemplate_requests_total{dialect="chat",model="endless",status="499"}'
            assert soon(lambda: metric(gateway, line) == 1)

    def test_last_words_give_the_reason(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One that reads too slowly learns that its time is up, not that the server ends; one that left, nothing."""
        said: list[str | None] = []

        async def last_words(self: Answers, send: Any, writer: Any, error: ApiError) -> None:
            said.append(error.code)

        monkeypatch.setattr(Answers, "_last_words", last_words)
        model, engine = endless()
        with running([model], request_timeout=1.0) as gateway:
            with sent(gateway, CHAT, {**ASK, "stream": True}):
                assert soon(lambda: said == ["timeout"])
            with sent(gateway, CHAT, {**ASK, "stream": True}) as client:
                assert client.recv(12) == b"HTTP/1.1 200"
            assert soon(lambda: len(engine.closed) == 2)
            assert soon(lambda: metric(gateway, "untemplate_requests_running") == 0)
        assert said == ["timeout"]

    @pytest.mark.parametrize("stream", [True, False])
    @pytest.mark.parametrize("n", [1, 3])
    def test_one_that_leaves_before_the_first_token(self, stream: bool, n: int) -> None:
        model, engine = endless(silent=True)
        with running([model]) as gateway:
            with sent(gateway, CHAT, {**ASK, "stream": stream, "n": n}):
                assert soon(lambda: len(engine.jobs) == n)
            assert soon(lambda: len(engine.closed) == n)

    @pytest.mark.parametrize("stream", [True, False])
    def test_one_that_leaves_frees_the_upstream_too(self, stream: bool) -> None:
        model, engine = endless()
        with running([model]) as upstream:

            async def load() -> Model:
                between = OpenAIEngine(upstream.url)
                await between.start()
                return Model(name="between", engine=between, parser=model.parser, template=model.template)

            with running(load=load) as gateway:
                with sent(gateway, CHAT, {**ASK, "stream": stream, "max_tokens": 1_000_000}):
                    assert soon(lambda: engine.written > 1)
                assert soon(lambda: bool(engine.closed))


@pytest.fixture(scope="module")
def shared() -> Any:
    with running([scripted(f"<think>\nHm.\n</think>\n\nSure.\n{CALL}")]) as gateway:
        yield gateway


# -- Upstreams that die -----------------------------------------------------------------------------------------------

DYING = f"<think>\nHm.\n</think>\n\nSure. {CALL[:47]}"
ANTHROPIC = {**ASK, "max_tokens": 100, "tools": [{"name": "f", "input_schema": {"type": "object"}}]}
RESPONSES = {"input": "Hi", "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}]}


def events(text: str) -> list[Any]:
    """Return the data of server-sent events, or lines of JSON."""
    lines = (line.removeprefix("data: ") for line in text.splitlines())
    return [json.loads(line) for line in lines if line.startswith("{")]


def chat_said(found: list[Any]) -> tuple[str, str, str]:
    deltas = [choice["delta"] for event in found for choice in event.get("choices", ())]
    calls = [call["function"] for delta in deltas for call in delta.get("tool_calls", ())]
    return (
        "".join(delta.get("reasoning") or "" for delta in deltas),
        "".join(delta.get("content") or "" for delta in deltas),
        "".join(call.get("name", "") + (call.get("arguments") or "") for call in calls),
    )


def responses_said(found: list[Any]) -> tuple[str, str, str]:
    def joined(kind: str) -> str:
        return "".join(event["delta"] for event in found if event["type"] == f"response.{kind}.delta")

    names = "".join(event["item"].get("name", "") for event in found if event["type"] == "response.output_item.added")
    return joined("reasoning_text"), joined("output_text"), names + joined("function_call_arguments")


def anthropic_said(found: list[Any]) -> tuple[str, str, str]:
    deltas = [event["delta"] for event in found if event["type"] == "content_block_delta"]
    starts = [event["content_block"] for event in found if event["type"] == "content_block_start"]
    return (
        "".join(delta.get("thinking", "") for delta in deltas),
        "".join(delta.get("text", "") for delta in deltas),
        "".join(start.get("name", "") for start in starts) + "".join(d.get("partial_json", "") for d in deltas),
    )


def ollama_said(found: list[Any]) -> tuple[str, str, str]:
    messages = [event["message"] for event in found if "message" in event]
    calls = [call["function"] for message in messages for call in message.get("tool_calls", ())]
    return (
        "".join(message.get("thinking", "") for message in messages),
        "".join(message["content"] for message in messages),
        "".join(call["name"] + json.dumps(call["arguments"]) for call in calls),
    )


def completions_said(found: list[Any]) -> tuple[str, str, str]:
    return "", "".join(choice["text"] for event in found for choice in event.get("choices", ())), ""


BROKE = "the upstream broke off: the connection was closed"
OPENAI = {"error": {"message": BROKE, "type": "server_error", "param": None, "code": "upstream_broke_off"}}


class TestDyingUpstreams:
    @pytest.mark.parametrize(
        ("path", "body", "said", "wanted"),
        [
            (CHAT, {**ASK, "tools": TOOLS}, chat_said, ("Hm.", "Sure.", 'f{"x": "a')),
            ("/v1/responses", RESPONSES, responses_said, ("Hm.", "Sure.", 'f{"x": "a')),
            ("/v1/messages", ANTHROPIC, anthropic_said, ("Hm.", "Sure.", 'f{"x": "a')),
            ("/api/chat", {**ASK, "model": "between", "tools": TOOLS}, ollama_said,
             ("Hm.", "Sure.", 'f{"INVALID_JSON": "{\\"x\\": \\"a"}')),
            ("/v1/completions", {"prompt": "x", "max_tokens": 100}, completions_said, ("", DYING, "")),
        ],
        ids=["chat", "responses", "anthropic", "ollama", "completions"],
    )  # fmt: skip
    def test_what_was_parsed_is_told_then_the_error(
        self, dying: Running, path: str, body: Any, said: Any, wanted: tuple[str, str, str]
    ) -> None:
        answer = post(dying, path, {**body, "stream": True})
        found = events(answer.text)
        assert answer.status_code == 200
        assert said(found) == wanted
        last = found[-1]
        if path.startswith("/api"):
            assert last == {"error": BROKE}
        elif path == "/v1/messages":
            assert last == {"type": "error", "error": {"type": "api_error", "message": BROKE}}
        elif path == "/v1/responses":
            assert found[-2]["type"] == "response.failed"
            assert found[-2]["response"]["error"] == {"code": "server_error", "message": BROKE}
            assert (last["type"], last["message"]) == ("error", BROKE)
        else:
            assert last == OPENAI
            assert answer.text.endswith("data: [DONE]\n\n")
        whole = post(dying, path, {**body, "stream": False})
        assert whole.status_code == 502
        assert BROKE in whole.text

    def test_the_log_says_so(self, dying: Running, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "untemplate.gateway")
        post(dying, CHAT, {**ASK, "stream": True})
        assert soon(lambda: any(getattr(r, "fields", {}).get("error") == BROKE for r in caplog.records))
        line = 'untemplate_outputs_total{format="hermes+qwen3",model="between",outcome="incomplete"}'
        assert metric(dying, line) > 0


class Before(OpenAIEngine):
    """An engine whose server is stopped together with it."""

    def __init__(self, url: str, server: asyncio.Server) -> None:
        super().__init__(url)
        self._behind = server

    async def close(self) -> None:
        await super().close()
        self._behind.close()


@pytest.fixture(scope="module")
def dying() -> Any:
    """Run a gateway in front of another one whose server breaks each connection in the middle of the output."""

    async def broken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next((int(h[15:]) for h in head.lower().split(b"\r\n") if h.startswith(b"content-length:")), 0)
        await reader.readexactly(length)
        start = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\n"
        if not head.startswith(b"POST"):
            body = b'{"data": [{"id": "x"}]}'
            writer.write(start % b"application/json" + b"content-length: %d\r\n\r\n" % len(body) + body)
        else:
            writer.write(start % b"text/event-stream" + b"transfer-encoding: chunked\r\n\r\n")
            for i in range(0, len(DYING), 5):
                text = DYING[i : i + 5]
                event = b"data: " + json.dumps({"choices": [{"text": text}]}).encode() + b"\n\n"
                writer.write(b"%x\r\n%b\r\n" % (len(event), event))
        await writer.drain()
        writer.close()

    async def load() -> Model:
        server = await asyncio.start_server(broken, "127.0.0.1", 0)
        engine = Before(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", server)
        await engine.start()
        parser = OutputParser.named("hermes", reasoning="qwen3")
        return Model(name="between", engine=engine, parser=parser, template=ChatTemplate(TEMPLATE))

    with running(load=load) as gateway:
        yield gateway


# -- Many at once ------------------------------------------------------------------------------------------------------


class Echo(Scripted):
    """Repeats the last word of its prompt in its reasoning, its answer and a call."""

    def __init__(self) -> None:
        super().__init__(self._written, size=4)
        self.is_closed = False

    def _written(self, job: Job) -> str:
        assert isinstance(job.prompt, str)
        assert not self.is_closed
        word = next(word for word in job.prompt.split() if word.startswith("word-")).removesuffix("<|im_end|>")
        call = CALL.replace('"a"', f'"{word}"')
        return f"<think>\nthought {word}\n</think>\n\nsaid {word}\n{call}"

    async def close(self) -> None:
        self.is_closed = True


def echo(name: str = "echo") -> Model:
    parser = OutputParser.named("hermes", reasoning="qwen3")
    return Model(name=name, engine=Echo(), parser=parser, template=ChatTemplate(TEMPLATE))


def asked(kind: int, word: str) -> tuple[str, dict[str, Any], Any]:
    """Return a request in one of the dialects, and the function that reads its stream."""
    messages = [{"role": "user", "content": word}]
    kinds: list[tuple[str, dict[str, Any], Any]] = [
        (CHAT, {"messages": messages, "tools": TOOLS}, chat_said),
        ("/v1/responses", {**RESPONSES, "input": word}, responses_said),
        ("/v1/messages", {**ANTHROPIC, "max_tokens": 1000, "messages": messages}, anthropic_said),
        ("/api/chat", {"messages": messages, "tools": TOOLS}, ollama_said),
    ]
    return kinds[kind]


WORDS = " ".join(["one two three four five six seven eight nine ten"] * 3)


class TestCrowds:
    @pytest.mark.parametrize("clients", [16, pytest.param(64, marks=pytest.mark.exhaustive)])
    def test_everyone_gets_their_own_while_models_are_swapped(self, clients: int) -> None:
        """Many clients at a time, in four APIs, streamed, while the model is replaced again and again."""
        with running([echo()]) as gateway:
            manager = gateway.app.manager
            loop = gateway.loop

            def one(i: int) -> list[tuple[int, Any, Any]]:
                found = []
                for turn in range(3):
                    word = f"word-{i}-{turn}"
                    path, body, said = asked((i + turn) % 4, word)
                    answer = post(gateway, path, {**body, "model": "echo", "stream": True})
                    call = {"x": word}
                    wanted = (f"thought {word}", f"said {word}", "f" + json.dumps(call))
                    found.append((answer.status_code, said(events(answer.text)), wanted))
                return found

            with ThreadPoolExecutor(clients) as threads:
                running_ = [threads.submit(one, i) for i in range(clients)]
                swaps = 0
                while not all(future.done() for future in running_):

                    async def load(progress: Any) -> Model:
                        return echo()

                    asyncio.run_coroutine_threadsafe(manager.swap("echo", load), loop).result(LONG)
                    swaps += 1
                    time.sleep(0.05)
            assert swaps
            for future in running_:
                for status, said, wanted in future.result():
                    assert (status, said) == (200, wanted)
            assert soon(lambda: metric(gateway, "untemplate_requests_running") == 0)

            def answered() -> float:
                return sum(
                    metric(gateway, f'untemplate_requests_total{{dialect="{name}",model="echo",status="200"}}')
                    for name in ("chat", "responses", "messages", "anthropic", "ollama")
                )

            assert soon(lambda: answered() == 3 * clients)
            line = 'untemplate_outputs_total{format="hermes+qwen3",model="echo",outcome="ok"}'
            assert soon(lambda: metric(gateway, line) == 3 * clients)
            assert soon(lambda: [status.state for status in gateway.ps()] == ["ready"])

    def test_a_model_that_is_unloaded_ends_what_it_has_begun(self) -> None:
        model = scripted(WORDS)
        assert isinstance(model.engine, Scripted)
        model.engine.gate.clear()
        with running([model]) as gateway:
            manager = gateway.app.manager
            with ThreadPoolExecutor(4) as threads:
                whole = [threads.submit(post, gateway, CHAT, ASK) for _ in range(4)]
                # Not the metric: a request counts from its first line on, and has a model once its body is read.
                assert soon(lambda: [status.requests for status in gateway.ps()] == [4])
                unloading = asyncio.run_coroutine_threadsafe(manager.unload("scripted"), gateway.loop)
                assert soon(lambda: [status.state for status in gateway.ps()] == ["draining"])
                late = post(gateway, CHAT, {**ASK, "model": "scripted"})
                problem = "the model 'scripted' does not exist (models: none)"
                assert (late.status_code, late.json()["error"]["message"]) == (404, problem)
                assert not unloading.done()
                gateway.loop.call_soon_threadsafe(model.engine.gate.set)
                assert unloading.result(LONG)
            for future in whole:
                content = future.result().json()["choices"][0]["message"]["content"]
                assert content == WORDS


# -- A server that is told to go ---------------------------------------------------------------------------------------


class TestGoing:
    def test_streams_end_and_nobody_new_comes_in(self) -> None:
        model = replayed([WORDS], speed=40)
        with running([model], shutdown_grace=30.0) as gateway:
            body = {**ASK, "stream": True}
            with httpx.stream("POST", gateway.url + CHAT, json=body, timeout=LONG) as answer:
                lines = answer.iter_lines()
                first = next(lines)
                gateway.server.should_exit = True

                def refused() -> bool:
                    try:
                        return httpx.get(gateway.url + "/health", timeout=5).status_code == 503
                    except httpx.TransportError:
                        return True

                assert soon(refused)
                text = "\n".join([first, *lines])
            assert chat_said(events(text))[1] == WORDS
            assert text.rstrip().endswith("data: [DONE]")

    @pytest.mark.parametrize("begun", [True, False])
    def test_what_is_cut_off_ends_with_the_reason(self, caplog: pytest.LogCaptureFixture, begun: bool) -> None:
        """When the grace is over, the server cancels what runs. It gets no error of which it would log a traceback."""

        async def act() -> tuple[int, bytes]:
            model, _ = endless(silent=not begun)
            app = create_app(Manager([model]), Settings())
            data = json.dumps({**ASK, "stream": True}).encode()
            parts: list[Any] = [{"type": "http.request", "body": data}]
            sent: list[Any] = []

            async def receive() -> Any:
                while not parts:
                    await asyncio.sleep(3600)
                return parts.pop()

            async def send(message: Any) -> None:
                sent.append(message)
                await asyncio.sleep(0)

            headers = [(b"host", b"localhost"), (b"content-length", b"%d" % len(data))]
            scope = {"type": "http", "method": "POST", "path": CHAT, "query_string": b"", "headers": headers}
            task = asyncio.create_task(app(scope, receive, send))
            while not (model.engine.jobs and (len(sent) > 1 or not begun)):  # type: ignore[attr-defined]
                await asyncio.sleep(0.001)
            task.cancel()
            await task
            await app.close()
            return sent[0]["status"], sent[-1]["body"]

        with caplog.at_level(logging.INFO, "untemplate.gateway"):
            status, last = asyncio.run(act())
        assert status == (200 if begun else 503)
        assert b'"code":"shutting_down"' in last
        assert [r.fields["error"] for r in caplog.records if hasattr(r, "fields")] == ["the server is shutting down"]
