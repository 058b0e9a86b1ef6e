"""The gateway from outside: keys, limits, errors, clients that leave, metrics."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from untemplate import OutputParser, Policy
from untemplate_gateway.engines.base import EngineChunk, Job, Takes
from untemplate_gateway.manager import Report
from untemplate_gateway.manager.model import Model
from untemplate_gateway.manager.offers import Offer
from untemplate_gateway.observe import JsonFormatter
from untemplate_gateway.protocols.encoding import encode

from .scripted import Scripted, scripted
from .server import LONG, Running, running, soon

CALL = '<tool_call>\n{"name": "f", "arguments": {"x": "a"}}\n</tool_call>'
OUTPUT = f"<think>\nHm.\n</think>\n\nSure.\n{CALL}"
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
ASK: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}


def post(gateway: Running, path: str = "/v1/chat/completions", body: Any = ASK, **more: Any) -> httpx.Response:
    if isinstance(body, bytes):
        return httpx.post(gateway.url + path, content=body, timeout=LONG, **more)
    return httpx.post(gateway.url + path, json=body, timeout=LONG, **more)


async def _never(report: Report) -> Model:
    raise AssertionError("is loaded")


def error(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["message"]


class TestDoor:
    def test_keys(self) -> None:
        with running([scripted("x")], api_keys=("one", "two")) as gateway:
            problem = "no valid API key: send it as 'Authorization: Bearer KEY' or as 'x-api-key: KEY'"
            for headers in ({}, {"authorization": "Bearer three"}, {"authorization": "Basic one"}, {"x-api-key": "ö"}):
                given = {name: value.encode("latin-1") for name, value in headers.items()}
                assert error(post(gateway, headers=given)) == (401, problem)
            for headers in ({"authorization": "Bearer one"}, {"authorization": "bearer two"}, {"x-api-key": "one"}):
                assert post(gateway, headers=headers).status_code == 200
            assert httpx.get(gateway.url + "/health", timeout=LONG).status_code == 200
            assert httpx.get(gateway.url + "/metrics", timeout=LONG).status_code == 401

    def test_limits(self) -> None:
        with running([scripted("x")], max_body_bytes=2000, max_messages=2, max_choices=2) as gateway:
            assert error(post(gateway, body={**ASK, "user": "u" * 2000})) == (413, "the body is longer than 2000 bytes")
            asked = ASK["messages"] * 3
            assert error(post(gateway, body={"messages": asked})) == (400, "messages: 3 are more than 2")
            call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            asked = [*ASK["messages"], {"role": "assistant", "tool_calls": [call] * 3}]
            assert error(post(gateway, body={"messages": asked})) == (400, "messages: 3 tool calls are more than 2")
            tools = [{"type": "function", "function": {"name": f"f{i}"}} for i in range(3)]
            assert error(post(gateway, body={**ASK, "tools": tools})) == (400, "tools: 3 are more than 2")
            assert error(post(gateway, body={**ASK, "n": 3})) == (400, "n: 3 is more than 2")

    def test_too_many_at_once(self) -> None:
        with running([scripted("a\1", size=1)], max_concurrent_requests=1) as gateway:
            with httpx.stream(
                "POST", gateway.url + "/v1/chat/completions", json={**ASK, "stream": True}, timeout=LONG
            ) as first:
                chunks = first.iter_raw()
                next(chunks)
                refused = post(gateway)
            assert error(refused) == (429, "the server is answering 1 requests already; try again")
            assert refused.headers["retry-after"] == "1"

    def test_pages_of_other_origins(self) -> None:
        with running([scripted("x")], cors_origins=("https://a.example",)) as gateway:
            url = gateway.url + "/v1/chat/completions"
            asked = httpx.options(
                url, headers={"origin": "https://a.example", "access-control-request-method": "POST"}, timeout=LONG
            )
            assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (204, "https://a.example")
            assert post(gateway, headers={"origin": "https://a.example"}).headers["vary"] == "origin"
            other = post(gateway, headers={"origin": "https://b.example"})
            assert "access-control-allow-origin" not in other.headers


class TestErrors:
    @pytest.mark.parametrize(
        ("body", "status", "problem"),
        [
            (b"", 400, "the body is not JSON: Input data was truncated"),
            (b"\xff", 400, "the body is not JSON: JSON is malformed: invalid character (byte 0)"),
            (b"[]", 400, "the body must be a JSON object"),
            (b'{"a":' * 5000 + b"1" + b"}" * 5000, 400, "the body is nested too deeply"),
            (b'{"a":' * 200 + b"1" + b"}" * 200, 400, "the body is nested too deeply"),
            ({"messages": [{"role": "robot"}]}, 400,
             "messages[0].role: must be one of system, developer, user, assistant, tool, function, got 'robot'"),
            ({**ASK, "tool_choice": {"type": "function", "function": {"name": "g"}}, "tools": TOOLS}, 400,
             "tool_choice.function.name: 'g' is not among the tools"),
            ({**ASK, "stream_options": {"include_usage": True}}, 400, "stream_options: needs stream: true"),
            ({**ASK, "model": "gpt"}, 404, "the model 'gpt' does not exist (models: scripted)"),
            ({**ASK, "chat_template_kwargs": {"messages": []}}, 400,
             "chat_template_kwargs.messages: cannot be set by requests"),
            ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, 400,
             "messages[0].content[0]: parts of type 'image_url' need an engine that renders messages itself"),
        ],
    )  # fmt: skip
    def test_whole_texts(self, shared: Running, body: Any, status: int, problem: str) -> None:
        assert error(post(shared, body=body)) == (status, problem)

    def test_unknown_fields_are_ignored_and_reported_once(
        self, shared: Running, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, "untemplate.gateway")
        body = {**ASK, "frobnicate": 1, "mood": False, "untemplate": {"diagnostics": True, "é\n": [1]}}
        notes = ["untemplate.é\n: unknown field; ignored", "frobnicate: unknown field; ignored"]
        for stream in (False, True):
            answer = post(shared, body={**body, "stream": stream})
            assert answer.status_code == 200
            shown = "untemplate.\\xe9?: unknown field; ignored | frobnicate: unknown field; ignored"
            assert answer.headers["x-untemplate-notes"] == shown
            assert encode(notes) in answer.content
        assert "x-untemplate-notes" not in post(shared).headers
        told = [r.getMessage() for r in caplog.records if r.getMessage().startswith("note on requests")]
        assert told == [
            r"note on requests: untemplate.é\n: unknown field; ignored",
            "note on requests: frobnicate: unknown field; ignored",
        ]

    def test_half_an_emoji_is_replaced(self, shared: Running) -> None:
        body = rb'{"messages": [{"role": "user", "content": "\ud83d x \ud83d\ude00 \\ud83d"}], "max_tokens": 2}'
        assert post(shared, body=body).status_code == 200
        engine = shared.app.manager.get("scripted").engine
        assert isinstance(engine, Scripted)
        assert "\ufffd x \U0001f600 \\ud83d" in str(engine.jobs[-1].prompt)
        assert post(shared, body=rb'{"messages": [{"role": "user", "content": "cut \ud83d"}]}').status_code == 200
        assert "cut \ufffd<|im_end|>" in str(engine.jobs[-1].prompt)
        assert error(post(shared, body=rb'{"messages": "\ud83d')) == (
            400, "the body is not JSON: Input data was truncated"
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("path", "ping"),
        [("/v1/chat/completions", b": ping\n\n"), ("/v1/messages", b'event: ping\ndata: {"type":"ping"}\n\n')],
    )
    def test_a_silent_stream_is_kept_alive(self, path: str, ping: bytes) -> None:
        asked = {**ASK, "max_tokens": 50, "stream": True}
        for output, before in (("\1", b""), ("ab\1", b"ab")):
            with (
                running([scripted(output, size=2)], ping_seconds=0.02) as gateway,
                httpx.stream("POST", gateway.url + path, json=asked, timeout=LONG) as response,
            ):
                assert response.status_code == 200
                data = b""
                for chunk in response.iter_raw():
                    data += chunk
                    if data.count(ping) >= 4:
                        break
                assert before in data

    def test_an_error_after_a_ping_is_an_event(self) -> None:
        class Late(Scripted):
            async def generate(self, job: Any) -> Any:
                await asyncio.sleep(0.2)
                async for chunk in super().generate(job):
                    yield chunk

        model = replace(scripted("x"), engine=Late("\0"))
        with running([model], ping_seconds=0.02) as gateway:
            answer = post(gateway, body={**ASK, "stream": True})
            assert answer.status_code == 200
            assert answer.text.startswith(": ping\n\n")
            assert '"message":"the engine broke"' in answer.text

    def test_a_shutdown_ends_streams_with_an_event(self) -> None:
        with running([scripted("ab\1", size=2)], shutdown_grace=0.0) as gateway:
            with httpx.stream(
                "POST", gateway.url + "/v1/chat/completions", json={**ASK, "stream": True}, timeout=LONG
            ) as response:
                chunks = response.iter_text()
                text = next(chunks)
                gateway.server.should_exit = True
                text += "".join(chunks)
            assert '"message":"the server is shutting down"' in text
            assert text.endswith("data: [DONE]\n\n")

    def test_unknown_fields_can_be_refused(self) -> None:
        with running([scripted("x")], unknown_fields="refuse") as gateway:
            assert error(post(gateway, body={**ASK, "frobnicate": 1})) == (400, "frobnicate: is not supported")
            nested = {**ASK, "untemplate": {"mood": 1}}
            assert error(post(gateway, body=nested)) == (400, "untemplate.mood: is not supported")
            neutral = {**ASK, "echo": False, "mood": None, "tags": [], "top_logprobs": 0, "best_of": ""}
            assert post(gateway, body=neutral).status_code == 200

    def test_errors_name_the_field_of_the_client(self, shared: Running) -> None:
        schema = {"type": "json_schema", "schema": {"type": "object", "$ref": "#/nowhere"}}
        asked = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5, "output_config": {"format": schema}}
        problem = post(shared, "/v1/messages", asked).json()["error"]["message"]
        assert problem.startswith("output_config.format: ")
        asked = {"model": "scripted", "input": "Hi", "text": {"format": {**schema, "name": "n"}}}
        answer = post(shared, "/v1/responses", asked).json()["error"]
        assert answer["param"] == "text.format"
        assert answer["message"].startswith("text.format: ")
        asked = {"messages": [{"role": "user", "content": "Hi"}], "format": schema["schema"]}
        assert post(shared, "/api/chat", asked).json()["error"].startswith("format: ")

    def test_wrong_paths_and_methods(self, shared: Running) -> None:
        assert error(httpx.get(shared.url + "/v2", timeout=LONG)) == (404, "there is nothing at /v2")
        assert error(httpx.get(shared.url + "/v1/completions", timeout=LONG)) == (
            405,
            "/v1/completions does not take GET",
        )

    def test_no_trace_of_the_inside(self, caplog: pytest.LogCaptureFixture) -> None:
        def broken(job: Any) -> str:
            raise KeyError("secret")

        with running([scripted(broken)]) as gateway:
            for stream in (False, True):
                failed = post(gateway, body={**ASK, "stream": stream}, headers={"x-request-id": "abcdefgh"})
                problem = "internal server error; the server's log has details under request abcdefgh"
                assert error(failed) == (500, problem)
                assert failed.headers["x-request-id"] == "abcdefgh"
        assert "secret" in caplog.text

    def test_an_engine_that_dies_in_the_middle(self) -> None:
        with running([scripted("one two \0", size=4)]) as gateway:
            text = post(gateway, body={**ASK, "stream": True}).text
            events = [json.loads(line[6:]) for line in text.split("\n\n") if line.startswith("data: {")]
            assert "".join(c["delta"].get("content", "") for e in events for c in e.get("choices", ())) == "one two "
            assert events[-1] == {
                "error": {"message": "the engine broke", "type": "server_error", "param": None, "code": "engine_error"}
            }
            assert text.endswith("data: [DONE]\n\n")
            assert error(post(gateway)) == (502, "the engine broke")


class TestLeaving:
    @pytest.mark.parametrize("stream", [True, False])
    @pytest.mark.parametrize("n", [1, 2])
    def test_the_engine_is_freed(self, stream: bool, n: int) -> None:
        """The goal is a tenth of a second; the test allows for a busy machine."""
        model = scripted("word " * 20 + "\1", size=5)
        assert isinstance(model.engine, Scripted)
        with running([model]) as gateway:
            body = json.dumps({**ASK, "stream": stream, "n": n}).encode()
            with socket.create_connection(("127.0.0.1", gateway.port)) as connection:
                head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
                connection.sendall(head.encode() + body)
                assert soon(lambda: len(model.engine.jobs) == n)
            assert soon(lambda: len(model.engine.closed) == n)
            assert soon(lambda: 'status="499"' in gateway.app.metrics.text().decode())

    def test_the_place_of_a_request_whose_model_is_being_loaded(self) -> None:
        begun = threading.Event()

        async def load(report: Report) -> Model:
            begun.set()
            await asyncio.sleep(LONG)
            raise AssertionError("takes too long")

        with running(max_concurrent_requests=1) as gateway:
            gateway.app.manager.offers.change([Offer(name="slow", load=load)])
            body = json.dumps({**ASK, "model": "slow"}).encode()
            with socket.create_connection(("127.0.0.1", gateway.port)) as client:
                head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
                client.sendall(head.encode() + body)
                assert begun.wait(LONG)
                assert post(gateway).status_code == 429
            assert soon(lambda: gateway.app.answers.running == 0)
            asyncio.run_coroutine_threadsafe(gateway.app.manager.close(timeout=0), gateway.loop).result(LONG)


class WithIds(Scripted):
    """Reports the bytes of its output as token ids."""

    async def generate(self, job: Job) -> AsyncGenerator[EngineChunk, None]:
        async for chunk in super().generate(job):
            chunk.token_ids = list(chunk.text.encode())
            yield chunk


class TestTokenIds:
    PROMPT = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"

    @pytest.mark.parametrize("stream", [False, True])
    def test_chat(self, stream: bool) -> None:
        with running([replace(scripted("x"), engine=WithIds(OUTPUT))]) as gateway:
            body = {**ASK, "tools": TOOLS, "return_token_ids": True, "n": 2, "stream": stream}
            response = post(gateway, body=body)
            answers = events(response.text) if stream else [response.json()]
            plain = post(gateway, body={**ASK, "tools": TOOLS, "stream": stream}).text
        choices = [one for answer in answers for one in answer["choices"] if "token_ids" in one]
        found = [[i for one in choices if one["index"] == index for i in one["token_ids"]] for index in (0, 1)]
        assert found == [list(OUTPUT.encode())] * 2
        if stream:  # with each delta those of its tokens: the raw text of an event contains what it adds
            for one in choices:
                assert (one["delta"].get("content") or "") in bytes(one["token_ids"]).decode()
            assert len(choices) > 10
        ids = [answer["prompt_token_ids"] for answer in answers if "prompt_token_ids" in answer]
        assert ids == [list(self.PROMPT.encode())]
        assert "prompt_token_ids" in answers[0]
        assert "token_ids" not in plain

    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize("prompt", ["6 times 7", [54, 32]])
    def test_completions(self, prompt: Any, stream: bool) -> None:
        with running([replace(scripted("x"), engine=WithIds("is 42"))]) as gateway:
            body = {"prompt": prompt, "return_token_ids": True, "stream": stream}
            response = post(gateway, "/v1/completions", body)
        answers = events(response.text) if stream else [response.json()]
        choices = [one for answer in answers for one in answer["choices"]]
        assert [one["token_ids"] for one in choices] == ([[], [*b"is "], [*b"42"], []] if stream else [[*b"is 42"]])
        wanted = prompt if isinstance(prompt, list) else list(prompt.encode())
        assert [one["prompt_token_ids"] for one in choices if "prompt_token_ids" in one] == [wanted]
        assert choices[0]["prompt_token_ids"] == wanted

    def test_engines_that_report_none(self, shared: Running) -> None:
        body = {**ASK, "return_token_ids": True, "untemplate": {"diagnostics": True}}
        response = post(shared, body=body).json()
        assert (response["choices"][0]["token_ids"], response["prompt_token_ids"]) == (None, list(self.PROMPT.encode()))
        assert response["choices"][0]["untemplate"]["notes"] == ["return_token_ids: the engine reports none; ignored"]


class TestSeveralPrompts:
    @pytest.mark.parametrize("stream", [False, True])
    def test_choices_of_each(self, stream: bool) -> None:
        model = scripted(lambda job: f"<{job.prompt}:{job.sampling.seed}>")
        body = {"prompt": ["a", "bc"], "n": 2, "echo": True, "seed": 5, "stream": stream, "return_token_ids": True}
        with running([model]) as gateway:
            response = post(gateway, "/v1/completions", {**body, "untemplate": {"raw": True}})
            assert error(post(gateway, "/v1/completions", {"prompt": ["a"] * 9, "n": 2})) == (
                400,
                "prompt: 9 prompts with n = 2 have 18 choices, more than 16",
            )
        answers = events(response.text) if stream else [response.json()]
        texts, prompts = [""] * 4, [None] * 4
        for choice in (one for answer in answers for one in answer["choices"]):
            texts[choice["index"]] += choice["text"]
            prompts[choice["index"]] = choice.get("prompt_token_ids", prompts[choice["index"]])
        assert texts == ["a<a:5>", "a<a:6>", "bc<bc:5>", "bc<bc:6>"]
        assert prompts == [list(b"a"), list(b"a"), list(b"bc"), list(b"bc")]
        if not stream:
            assert answers[0]["usage"]["prompt_tokens"] == 14  # 7 for each prompt

    def test_logprobs_of_the_prompt(self, shared: Running) -> None:
        body = {"prompt": "a", "echo": True, "logprobs": 1}
        problem = "with logprobs needs an engine that reports those of prompts (--upstream: vLLM, SGLang)"
        assert error(post(shared, "/v1/completions", body)) == (400, f"echo: {problem}")
        takes = Takes(logprobs=True, prompt_logprobs=True)
        with running([scripted("a b", takes=takes)]) as gateway:
            (choice,) = post(gateway, "/v1/completions", body).json()["choices"]
        assert choice["text"] == "a b"  # the engine has repeated the prompt


def events(text: str) -> list[Any]:
    """Return the objects of a stream."""
    return [json.loads(event[6:]) for event in text.split("\n\n") if event.startswith("data: {")]


class TestLookingInside:
    def test_on_request(self, shared: Running) -> None:
        body = {**ASK, "tools": TOOLS, "untemplate": {"diagnostics": True, "raw": True}}
        wanted = {
            "diagnostics": [],
            "calls": [{"index": 0, "name": "f", "status": "ok", "model_id": None, "repairs": []}],
            "raw": OUTPUT,
        }
        assert post(shared, body=body).json()["choices"][0]["untemplate"] == wanted
        asked = post(shared, body={**ASK, "tools": TOOLS}, headers={"X-Untemplate": "diagnostics, raw"})
        assert asked.json()["choices"][0]["untemplate"] == wanted
        assert "untemplate" not in post(shared).json()["choices"][0]
        streamed = post(shared, body={**body, "stream": True}).text
        last = json.loads(streamed.split("\n\n")[-3][6:])
        assert last["choices"][0]["untemplate"] == wanted

    def test_on_request_of_a_fallback(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, logger="untemplate.gateway")
        first, second = scripted("Half\x00"), replace(scripted("Whole."), name="second")
        with running([first, second]) as gateway:
            gateway.app.manager.offers.change(
                [Offer(name=first.name, load=_never, fallbacks=("second",)), Offer(name="second", load=_never)]
            )
            asked = post(gateway, body={**ASK, "model": first.name}, headers={"X-Untemplate": "raw"})
        assert (asked.status_code, asked.json()["model"]) == (200, "second")
        assert asked.json()["choices"][0]["untemplate"]["raw"] == "Whole."
        assert asked.headers["x-untemplate-notes"] == "model: second is asked, because scripted is not available"
        every = [getattr(record, "fields", {}) for record in caplog.records]
        [fields] = [fields for fields in every if fields.get("request") == asked.headers["x-request-id"]]
        assert (fields["model"], fields["status"], "error" in fields) == ("second", 200, False)

    def test_metrics(self) -> None:
        cut = CALL[:30]
        with running([scripted([OUTPUT, cut, "<tool_call> is how", CALL.replace('"f"', '"g"')])]) as gateway:
            for _ in range(4):
                post(gateway, body={**ASK, "tools": TOOLS})

            def shown() -> str:
                return httpx.get(gateway.url + "/metrics", timeout=LONG).text

            counted = 'untemplate_requests_total{dialect="chat",model="scripted",status="200"} 4.0'
            assert soon(lambda: counted in (text := shown()) and "untemplate_requests_running 0.0" in text)
            text = shown()
        labels = 'format="hermes+qwen3",model="scripted"'
        for outcome in ("ok", "fell_back_to_content", "unknown_tool"):
            assert f'untemplate_outputs_total{{{labels},outcome="{outcome}"}}' in text
        assert counted in text
        assert 'untemplate_tokens_total{kind="prompt",model="scripted"} 28.0' in text
        assert "untemplate_requests_running 0.0" in text  # without the request that asks

    def test_dropped_calls_and_markers_of_other_formats(self, caplog: pytest.LogCaptureFixture) -> None:
        model = scripted([CALL.replace('"f"', '"g"'), "[TOOL_CALLS]f[ARGS]{}"])
        model = replace(model, parser=OutputParser.named("hermes", policy=Policy(unknown_tools="drop")))
        with caplog.at_level(logging.WARNING, "untemplate"), running([model]) as gateway:
            for _ in range(2):
                post(gateway, body={**ASK, "tools": TOOLS})

            def shown() -> str:
                return httpx.get(gateway.url + "/metrics", timeout=LONG).text

            assert soon(lambda: 'untemplate_diagnostics_total{code="foreign_marker"' in shown())
            text = shown()
        labels = 'format="hermes",model="scripted"'
        assert f'untemplate_outputs_total{{{labels},outcome="dropped_call"}} 1.0' in text
        assert f'untemplate_diagnostics_total{{code="dropped_call",{labels}}} 1.0' in text
        assert f'untemplate_diagnostics_total{{code="foreign_marker",{labels}}} 1.0' in text
        warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert warned == ["dropped call of 'g': the tool was not offered"]

    def test_raw_outputs_where_the_operator_wants_them(self, tmp_path: Path) -> None:
        file = tmp_path / "raw.jsonl"
        with running([scripted(OUTPUT)], log_raw=str(file), log_raw_consent=True) as gateway:
            post(gateway, body={**ASK, "tools": TOOLS}, headers={"x-request-id": "abcdefgh"})
        (line,) = [json.loads(line) for line in file.read_text().splitlines()]
        message = line.pop("message")
        assert message["content"] == "Sure."
        assert line == {
            "request": "abcdefgh",
            "choice": 0,
            "model": "scripted",
            "format": "hermes+qwen3",
            "finish_reason": "tool_calls",
            "outcome": "ok",
            "raw": OUTPUT,
        }

    def test_a_line_of_log_for_a_request(self, shared: Running, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "untemplate.gateway")
        post(shared, body={**ASK, "tools": TOOLS}, headers={"x-request-id": "abcdefgh"})

        def lines() -> list[Any]:
            shown = [JsonFormatter().format(r) for r in caplog.records if r.name == "untemplate.gateway"]
            return [line for line in map(json.loads, shown) if line["request"] == "abcdefgh"]  # an earlier one may come

        assert soon(lambda: bool(lines()))
        (line,) = lines()
        shown = ("request", "client", "asked", "message", "model", "format", "status", "calls", "outcome")
        assert {key: line[key] for key in shown} == {
            "request": "abcdefgh",
            "client": "127.0.0.1",
            "asked": "POST /v1/chat/completions",
            "message": "chat 200",
            "model": "scripted",
            "format": "hermes+qwen3",
            "status": 200,
            "calls": ["ok"],
            "outcome": ["ok"],
        }
        assert "Sure." not in json.dumps(line)


class TestOtherEndpoints:
    def test_models(self, shared: Running) -> None:
        model = {
            "id": "scripted",
            "object": "model",
            "created": 0,
            "owned_by": "untemplate",
            "untemplate": {
                "format": "hermes+qwen3",
                "engine": "scripted",
                "reasoning": True,
                "tools": True,
                "grammar": "gbnf",
            },
        }
        assert httpx.get(shared.url + "/v1/models", timeout=LONG).json() == {"object": "list", "data": [model]}
        assert httpx.get(shared.url + "/v1/models/scripted", timeout=LONG).json() == model

    def test_health(self, shared: Running) -> None:
        assert httpx.get(shared.url + "/health", timeout=LONG).json() == {
            "status": "ok",
            "models": {"scripted": {"status": "ok"}},
        }

    def test_tokens(self, shared: Running) -> None:
        tokens = list(b"ab")
        shown = post(shared, "/tokenize", {"prompt": "ab"}).json()
        assert shown == {"count": 2, "max_model_len": None, "tokens": tokens}
        assert post(shared, "/detokenize", {"tokens": tokens}).json() == {"prompt": "ab"}
        rendered = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
        assert post(shared, "/tokenize", ASK).json()["count"] == len(rendered)
        assert error(post(shared, "/detokenize", {"tokens": [-1]})) == (400, "tokens[0]: must be a token id, got -1")

    def test_parse(self, shared: Running) -> None:
        parsed = post(shared, "/parse", {"text": OUTPUT, "tools": TOOLS}).json()
        assert (parsed["format"], parsed["finish_reason"]) == ("hermes+qwen3", "tool_calls")
        assert parsed["message"]["reasoning"] == "Hm."
        assert [call["status"] for call in parsed["calls"]] == ["ok"]
        other = post(shared, "/parse", {"text": "[f(x=1)]", "format": "pythonic"}).json()
        assert other["message"]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"x": 1}'}
        status, problem = error(post(shared, "/parse", {"text": "", "format": "hermess"}))
        assert (status, "did you mean 'hermes'" in problem) == (400, True), problem


@pytest.fixture(scope="module")
def shared() -> Any:
    with running([scripted(OUTPUT)]) as gateway:
        yield gateway


class TestThePage:
    """`GET /` in a browser."""

    @staticmethod
    def page(gateway: Running) -> str:
        found = httpx.get(gateway.url, headers={"accept": "text/html,*/*"}, timeout=LONG)
        assert (found.status_code, found.headers["content-type"]) == (200, "text/html; charset=utf-8")
        return found.text

    def test_it_has_models_links_and_examples(self) -> None:
        with running([scripted("x")]) as gateway:
            page = self.page(gateway)
            assert "<tr><td>scripted<td>ready" in page
            assert '<a href="inspect/">inspector</a>' in page
            assert page.count(f"curl {gateway.url}/") == 3
            assert '{"model": "scripted", "messages"' in page
            assert httpx.get(gateway.url, timeout=LONG).text == "untemplate is running\n"

    def test_with_keys_it_names_no_model(self) -> None:
        with running([scripted("x")], api_keys=("k",)) as gateway:
            assert "scripted" not in self.page(gateway)

    def test_it_quotes_what_clients_send(self) -> None:
        with running([scripted("x")], api_keys=("k",)) as gateway:
            found = httpx.get(gateway.url, headers={"accept": "text/html", "host": "<b>"}, timeout=LONG)
            assert "<b>" not in found.text
