"""The demonstration model under llama.cpp, through every API: what only a real model and a real engine can show."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import ollama
import openai
import pytest

from untemplate import OutputParser
from untemplate.serving.manager.model import Model
from untemplate.validation import validate

from .server import Running, running

pytest.importorskip("xllamacpp")
GGUF = Path(__file__).parents[2] / "demo/src/untemplate_demo/untemplate-demo.gguf"
if not GGUF.is_file():
    pytest.skip("the demonstration model is not there", allow_module_level=True)

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "the city"}},
    "required": ["city"],
}
FUNCTION = {"name": "get_weather", "description": "The weather in a city", "parameters": PARAMETERS}
TOOL = {"type": "function", "function": FUNCTION}
OTHER = {
    "type": "function",
    "function": {
        "name": "set_volume",
        "description": "Set the volume",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"level": {"type": "integer"}, "room": {"type": "string", "enum": ["kitchen", "hall"]}},
            "required": ["level", "room"],
            "additionalProperties": False,
        },
    },
}
ASKED: list[Any] = [{"role": "user", "content": "What is the weather in Rosenheim?"}]
HOT = {"min_p": 0, "top_k": 0, "top_p": 1}
"""Any token may come: llama.cpp cuts off the unlikely ones before it heats the rest."""
HELLO: list[Any] = [{"role": "user", "content": "Hello! Who are you?"}]


async def demo() -> Model:
    from untemplate.serving.engines.llamacpp import LlamaCppEngine

    engine = LlamaCppEngine(GGUF, n_parallel=4, threads=1)
    await engine.start()
    template = engine.template()
    assert template is not None
    parser = OutputParser.from_template(template, tokenizer=engine.vocabulary())
    return Model(name="demo", engine=engine, parser=parser, template=template, context_length=engine.context_length)


@pytest.fixture(scope="module")
def gateway() -> Iterator[Running]:
    with running(load=demo) as running_:
        yield running_


@pytest.fixture(scope="module")
def client(gateway: Running) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def ask(messages: list[Any], **more: Any) -> dict[str, Any]:
    return {"model": "demo", "messages": messages, "temperature": 0, "max_tokens": 200, **more}


def chat(client: openai.OpenAI, messages: list[Any], **more: Any) -> Any:
    return client.chat.completions.create(**ask(messages, **more)).choices[0]


def streamed(client: openai.OpenAI, messages: list[Any], **more: Any) -> Any:
    with client.chat.completions.stream(**ask(messages, **more)) as stream:
        for _ in stream:
            pass
        return stream.get_final_completion().choices[0]


def calls_of(message: Any) -> list[tuple[str, Any]]:
    return [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()]


class TestEveryApi:
    def test_chat(self, client: openai.OpenAI) -> None:
        whole = chat(client, ASKED, tools=[TOOL])
        assert calls_of(whole.message) == [("get_weather", {"city": "Rosenheim"})]
        assert whole.finish_reason == "tool_calls"
        part = streamed(client, ASKED, tools=[TOOL])
        assert calls_of(part.message) == calls_of(whole.message)
        assert part.message.reasoning == whole.message.reasoning
        assert part.finish_reason == "tool_calls"

    def test_a_whole_conversation(self, client: openai.OpenAI) -> None:
        first = chat(client, ASKED, tools=[TOOL]).message
        result = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": '{"temperature": 17}'}
        second = chat(client, [*ASKED, first.model_dump(exclude_none=True), result], tools=[TOOL])
        assert second.finish_reason == "stop"
        assert "17" in second.message.content

    def test_completions(self, client: openai.OpenAI) -> None:
        """A prompt as it stands, and what comes as it stands."""
        prompt = "<|im_start|>user\nHello! Who are you?<|im_end|>\n<|im_start|>assistant\n"
        request: Any = {"model": "demo", "prompt": prompt, "temperature": 0, "max_tokens": 200}
        whole = client.completions.create(**request)
        parts = [chunk.choices[0] for chunk in client.completions.create(**request, stream=True) if chunk.choices]
        said = chat(client, HELLO).message
        assert "".join(part.text for part in parts) == whole.choices[0].text
        assert whole.choices[0].text == f"<think>\n{said.reasoning}\n</think>\n\n{said.content}"
        assert (parts[-1].finish_reason, whole.choices[0].finish_reason) == ("stop", "stop")

    def test_responses(self, client: openai.OpenAI) -> None:
        tool = {"type": "function", **FUNCTION}
        request: Any = {"model": "demo", "input": ASKED[0]["content"], "tools": [tool], "temperature": 0}
        whole = client.responses.create(**request)
        with client.responses.stream(**request) as stream:
            for _ in stream:
                pass
            part = stream.get_final_response()
        for response in (whole, part):
            (call,) = [item for item in response.output if item.type == "function_call"]
            assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "Rosenheim"})

    def test_messages(self, gateway: Running) -> None:
        with anthropic.Anthropic(base_url=gateway.url, api_key="none") as claude:
            request: Any = {
                "model": "demo",
                "max_tokens": 200,
                "extra_body": {"temperature": 0},
                "messages": ASKED,
                "tools": [{"name": "get_weather", "description": "The weather", "input_schema": PARAMETERS}],
            }
            whole = claude.messages.create(**request)
            with claude.messages.stream(**request) as stream:
                part = stream.get_final_message()
            for message in (whole, part):
                assert message.stop_reason == "tool_use"
                assert message.content[0].type == "thinking"
                assert (message.content[-1].name, message.content[-1].input) == ("get_weather", {"city": "Rosenheim"})
            counted = claude.messages.count_tokens(model="demo", messages=ASKED, tools=request["tools"])
            usage = whole.usage
            assert counted.input_tokens == usage.input_tokens + (usage.cache_read_input_tokens or 0)

    def test_ollama(self, gateway: Running) -> None:
        with ollama.Client(host=gateway.url) as llama:
            request: Any = {"model": "demo", "messages": ASKED, "tools": [TOOL], "options": {"temperature": 0}}
            whole = llama.chat(**request).message
            parts = [part.message for part in llama.chat(**request, stream=True)]
        assert [(c.function.name, dict(c.function.arguments)) for c in whole.tool_calls or ()] == [
            ("get_weather", {"city": "Rosenheim"})
        ]
        assert [c for part in parts for c in part.tool_calls or ()] == whole.tool_calls
        assert "".join(part.thinking or "" for part in parts) == whole.thinking

    def test_thinking_can_be_switched_off(self, client: openai.OpenAI) -> None:
        assert getattr(chat(client, HELLO).message, "reasoning", None)
        assert getattr(chat(client, HELLO, reasoning_effort="none").message, "reasoning", None) is None


class TestSampling:
    def test_seeds(self, client: openai.OpenAI) -> None:
        """The same seed gives the same message, another one another."""

        def said(seed: int) -> str:
            found = chat(client, HELLO, temperature=2.0, seed=seed, max_tokens=60, extra_body=HOT)
            return json.dumps(found.message.model_dump())

        assert said(1) == said(1)
        assert len({said(seed) for seed in range(8)}) > 1

    def test_several(self, client: openai.OpenAI) -> None:
        found = client.chat.completions.create(
            **ask(HELLO, n=8, temperature=2.0, seed=1, max_tokens=40, extra_body=HOT)
        )
        assert [choice.index for choice in found.choices] == list(range(8))
        assert found.usage.completion_tokens >= 8
        texts = [choice.message.model_dump() for choice in found.choices]
        assert any(text != texts[0] for text in texts)
        said = dict.fromkeys(range(8), "")
        for chunk in client.chat.completions.create(
            **ask(HELLO, n=8, temperature=2.0, seed=1, max_tokens=40, extra_body=HOT, stream=True)
        ):
            for choice in chunk.choices:
                said[choice.index] += choice.delta.content or ""
        assert list(said.values()) == [text["content"] or "" for text in texts]

    def test_stop_strings(self, client: openai.OpenAI) -> None:
        whole = chat(client, HELLO)
        word = whole.message.content.split()[2]
        cut = whole.message.content[: whole.message.content.index(word)]
        for found in (chat(client, HELLO, stop=[word]), streamed(client, HELLO, stop=[word])):
            assert found.finish_reason == "stop"
            assert (found.message.content or "") == cut
            assert found.message.reasoning == whole.message.reasoning

    def test_length(self, client: openai.OpenAI) -> None:
        found = client.chat.completions.create(**ask(HELLO, max_tokens=7))
        assert (found.choices[0].finish_reason, found.usage.completion_tokens) == ("length", 7)

    def test_a_budget_for_thinking(self, client: openai.OpenAI) -> None:
        free = client.chat.completions.create(**ask(HELLO))
        thought = free.usage.completion_tokens_details.reasoning_tokens
        assert thought > 3
        short = client.chat.completions.create(**ask(HELLO, extra_body={"thinking_budget": 3}))
        assert short.usage.completion_tokens_details.reasoning_tokens == 3
        assert short.choices[0].message.content
        assert free.choices[0].message.reasoning.startswith(short.choices[0].message.reasoning)

    def test_logprobs(self, client: openai.OpenAI) -> None:
        found = chat(client, HELLO, logprobs=True, top_logprobs=2)
        assert "".join(token.token for token in found.logprobs.content).strip() == found.message.content.strip()
        assert all(token.logprob <= 0 and len(token.top_logprobs) == 2 for token in found.logprobs.content)

    def test_usage_adds_up(self, client: openai.OpenAI) -> None:
        found = client.chat.completions.create(**ask(HELLO))
        assert found.usage.total_tokens == found.usage.prompt_tokens + found.usage.completion_tokens
        *_, last = client.chat.completions.create(**ask(HELLO, stream=True, stream_options={"include_usage": True}))
        assert last.usage.completion_tokens == found.usage.completion_tokens
        assert last.usage.prompt_tokens == found.usage.prompt_tokens


class TestGrammars:
    """What the grammar allows is all that can come, however hot the model runs."""

    @pytest.mark.parametrize("seed", range(4))
    def test_a_call_that_is_required(self, client: openai.OpenAI, seed: int) -> None:
        request: Any = {"tools": [TOOL, OTHER], "tool_choice": "required", "temperature": 1.5, "seed": seed}
        request |= {"reasoning_effort": "none", "max_tokens": 600}
        for found in (chat(client, HELLO, **request), streamed(client, HELLO, **request)):
            assert found.finish_reason == "tool_calls"
            for name, arguments in calls_of(found.message):
                assert name in ("get_weather", "set_volume")
                if name == "set_volume":  # the strict one
                    assert not validate(json.dumps(arguments), OTHER["function"]["parameters"])

    @pytest.mark.parametrize("seed", range(4))
    def test_a_named_one(self, client: openai.OpenAI, seed: int) -> None:
        choice = {"type": "function", "function": {"name": "set_volume"}}
        request: Any = {"tools": [TOOL, OTHER], "tool_choice": choice, "temperature": 1.5, "seed": seed}
        found = chat(client, HELLO, reasoning_effort="none", extra_body=HOT, **request)
        assert found.finish_reason in ("stop", "tool_calls")
        assert found.message.tool_calls
        for name, arguments in calls_of(found.message):
            assert name == "set_volume"
            assert not validate(json.dumps(arguments), OTHER["function"]["parameters"])

    def test_none(self, client: openai.OpenAI) -> None:
        assert chat(client, ASKED, tools=[TOOL], tool_choice="none").message.tool_calls is None

    @pytest.mark.parametrize("effort", ["none", "high"])
    def test_json_that_follows_a_schema(self, client: openai.OpenAI, effort: str) -> None:
        schema = {
            "type": "object",
            "properties": {"ok": {"type": "boolean"}, "kind": {"enum": ["a", "b"]}},
            "required": ["ok", "kind"],
            "additionalProperties": False,
        }
        wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        found = chat(client, HELLO, response_format=wanted, reasoning_effort=effort, temperature=1.0, seed=3)
        assert found.finish_reason == "stop"
        assert bool(getattr(found.message, "reasoning", None)) == (effort == "high")
        assert not validate(found.message.content, schema)


class TestLeaving:
    def test_the_slot_is_freed(self, gateway: Running) -> None:
        """A client that goes away in the middle: llama.cpp stops at once."""
        model = gateway.app.manager.get("demo")
        slots = f"http://{model.engine._server.listening_address.removeprefix('http://')}/slots"  # type: ignore[attr-defined]
        body = json.dumps(ask(HELLO, stream=True, max_tokens=900, temperature=2.0)).encode()
        with socket.create_connection(("127.0.0.1", gateway.port)) as connection:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
            connection.recv(100)
        until = time.monotonic() + 10
        while any(slot["is_processing"] for slot in httpx.get(slots).json()):
            assert time.monotonic() < until, "the engine still writes"
            time.sleep(0.005)
