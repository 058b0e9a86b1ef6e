"""Grammars must not block the gateway: they are bounded, compiled in a worker, and stopped when their client leaves."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import httpx
import pytest

from untemplate import GrammarError, OutputParser
from untemplate_gateway import grammars
from untemplate_gateway.grammars import AT_ONCE, GrammarCompiler

from .scripted import scripted
from .server import LONG, running, soon

ASK: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}
CHAT = "/v1/chat/completions"
NEVER = "import time; time.sleep(3600)"
LARGE = {"type": "object", "properties": {f"p{i}": {"type": "string", "description": "d" * 64} for i in range(64)}}


def doubling(depth: int) -> dict[str, Any]:
    """Return a schema in which each part contains the part before twice."""
    parts: dict[str, Any] = {"d0": {"type": "object", "properties": {"x": {"type": "string"}}}}
    for i in range(1, depth):
        ref = {"$ref": f"#/$defs/d{i - 1}"}
        parts[f"d{i}"] = {"allOf": [ref, ref]}
    return {"$ref": f"#/$defs/d{depth - 1}", "$defs": parts}


def order(schema: Any, **more: Any) -> dict[str, Any]:
    tool = {"type": "function", "function": {"name": "f", "strict": True, "parameters": schema}}
    settings = {"tool_choice": "required", "parallel_tool_calls": True, "dialect": "gbnf", "reasoning": "closed"}
    return {"tools": [tool], "response_format": None, **settings, **more}


def parser() -> OutputParser:
    return OutputParser.named("hermes", reasoning="qwen3")


def response_format(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}


class TestRequests:
    @pytest.mark.parametrize(
        "fields",
        [
            {"tools": order(doubling(30))["tools"], "tool_choice": "required"},
            {"response_format": response_format(doubling(30))},
        ],
        ids=["tools", "response_format"],
    )
    def test_a_schema_that_doubles(self, fields: dict[str, Any]) -> None:
        """2 KB that once froze the process: they now have a grammar, or are refused."""
        with running([scripted("{}", reasoning=None)]) as gateway:
            answer = httpx.post(gateway.url + CHAT, json={**ASK, **fields}, timeout=LONG)
            assert answer.status_code in (200, 400)

    def test_an_enum_of_a_megabyte(self) -> None:
        values = [f"value-{i:06}" for i in range(80_000)]
        with running([scripted("x")]) as gateway:
            body = {**ASK, "response_format": response_format({"enum": values})}
            answer = httpx.post(gateway.url + CHAT, json=body, timeout=LONG)
            assert answer.status_code == 400
            assert answer.json()["error"]["param"] == "response_format"
            assert gateway.app.manager.get("scripted").engine.jobs == []  # type: ignore[attr-defined]

    def test_a_client_that_leaves_ends_the_worker(self, monkeypatch: pytest.MonkeyPatch) -> None:
        body = json.dumps({**ASK, "response_format": response_format(LARGE)}).encode()
        with running([scripted("x")]) as gateway:
            compiler = gateway.app.answers.grammars
            monkeypatch.setattr(compiler.workers, "program", NEVER)
            with socket.create_connection(("127.0.0.1", gateway.port)) as client:
                head = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
                client.sendall(head.encode() + body)
                assert soon(lambda: any(worker.process for worker in list(compiler.workers.busy)))
                (worker,) = compiler.workers.busy
                # Meanwhile the gateway answers other requests.
                assert httpx.post(gateway.url + CHAT, json=ASK, timeout=LONG).status_code == 200
            assert soon(lambda: worker.process is not None and worker.process.poll() is not None)

    def test_one_that_takes_too_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with running([scripted("x")], grammar_timeout=0.2) as gateway:
            monkeypatch.setattr(gateway.app.answers.grammars.workers, "program", NEVER)
            body = {**ASK, "response_format": response_format(LARGE)}
            answer = httpx.post(gateway.url + CHAT, json=body, timeout=LONG)
            problem = "response_format: the grammar takes longer than 0.2 seconds"
            assert (answer.status_code, answer.json()["error"]["message"]) == (400, problem)


class TestCompiler:
    def test_the_worker_makes_the_same_grammar_and_it_is_kept(self) -> None:
        async def both() -> None:
            compiler = GrammarCompiler()
            try:
                found = await compiler.compile(parser(), **order(LARGE))
                tools = order(LARGE)["tools"]
                assert found == parser().grammar(tools, "required", reasoning="closed")
                assert await compiler.compile(parser(), **order(LARGE)) is found
                assert len(compiler.workers.idle) == 1
            finally:
                compiler.workers.close()

        asyncio.run(both())

    @pytest.mark.parametrize("dialect", ["gbnf", "lark", "structural_tag"])
    def test_all_dialects_come_back_whole(self, dialect: str) -> None:
        async def made() -> None:
            compiler = GrammarCompiler()
            try:
                found = await compiler.compile(parser(), **order(LARGE, dialect=dialect))
                wanted = parser().grammar(order(LARGE)["tools"], "required", reasoning="closed", dialect=dialect)
                assert found == wanted
                assert found.json == wanted.json
            finally:
                compiler.workers.close()

        asyncio.run(made())

    def test_small_schemas_need_no_process(self) -> None:
        async def made() -> None:
            compiler = GrammarCompiler()
            await compiler.compile(parser(), **order({"type": "object", "properties": {"x": {"type": "string"}}}))
            assert compiler.workers.idle == []
            compiler.workers.close()

        asyncio.run(made())

    def test_what_needs_one(self) -> None:
        assert grammars._is_cheap(b"x" * AT_ONCE)
        assert not grammars._is_cheap(b"x" * (AT_ONCE + 1))
        assert not grammars._is_cheap(b'{"$ref":"#"}')

    def test_what_cannot_be_written(self) -> None:
        async def refused() -> str:
            compiler = GrammarCompiler()
            try:
                with pytest.raises(GrammarError) as caught:
                    await compiler.compile(parser(), **order({**LARGE, "$ref": "#/nowhere"}))
                # The worker is still there.
                await compiler.compile(parser(), **order(LARGE))
                assert len(compiler.workers.idle) == 1
                return str(caught.value)
            finally:
                compiler.workers.close()

        assert "'#/nowhere' points at nothing" in asyncio.run(refused())

    def test_numbers_of_any_size(self) -> None:
        async def made() -> None:
            compiler = GrammarCompiler()
            try:
                found = await compiler.compile(parser(), **order({**LARGE, "default": 1 << 70}))
                assert found == await compiler.compile(parser(), **order(LARGE))
            finally:
                compiler.workers.close()

        asyncio.run(made())

    def test_closing_ends_what_runs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def closed() -> None:
            compiler = GrammarCompiler()
            monkeypatch.setattr(compiler.workers, "program", NEVER)
            task = asyncio.create_task(compiler.compile(parser(), **order(LARGE)))
            while not any(worker.process for worker in list(compiler.workers.busy)):
                await asyncio.sleep(0.01)
            (worker,) = compiler.workers.busy
            compiler.workers.close()
            with pytest.raises(RuntimeError):
                await task
            assert worker.process is not None
            assert worker.process.poll() is not None

        asyncio.run(closed())
