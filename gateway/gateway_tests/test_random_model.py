"""A model that writes noise, under llama.cpp and our grammar: the official clients get calls that are valid."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import jsonschema_rs
import ollama
import openai
import pytest

from untemplate import OutputParser
from untemplate_gateway.manager.model import Model
from untemplate_gateway.settings import LlamaCpp

from .server import LONG, Running, running
from .tiny_gguf import NOISE, tiny_gguf

SCHEMA = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["a", "b"]},
        "count": {"type": "integer"},
        "flags": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2},
    },
    "required": ["kind", "flags"],
    "additionalProperties": False,
}
FUNCTION = {"name": "f", "parameters": SCHEMA, "strict": True}
TOOLS: list[Any] = [{"type": "function", "function": FUNCTION}]
ASKED: list[Any] = [{"role": "user", "content": "Do it."}]
SEEDS = range(6)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path: Path = tiny_gguf(tmp_path_factory.mktemp("model"))

    async def load() -> Model:
        from untemplate_gateway.engines.llamacpp import LlamaCppEngine

        engine = LlamaCppEngine(path, LlamaCpp(n_ctx=2048, n_parallel=2, threads=1))
        await engine.start()
        parser = OutputParser.named("hermes", tokenizer=engine.vocabulary())
        return Model(name="noise", engine=engine, parser=parser, template=engine.template())

    with running(load=load) as running_:
        yield running_


def valid(name: str, arguments: Any) -> None:
    assert name == "f"
    assert jsonschema_rs.is_valid(SCHEMA, arguments), arguments


@pytest.mark.parametrize("seed", SEEDS)
def test_chat(gateway: Running, seed: int) -> None:
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0) as client:
        ask: Any = {
            "model": "noise",
            "messages": ASKED,
            "tools": TOOLS,
            "tool_choice": "required",
            "parallel_tool_calls": False,
            "seed": seed,
            "max_tokens": 400,
            "logit_bias": NOISE,
        }
        whole = client.chat.completions.create(**ask)
        choice = whole.choices[0]
        with client.chat.completions.stream(**ask, stream_options={"include_usage": True}) as stream:
            for _ in stream:
                pass
            final = stream.get_final_completion()
    assert choice.finish_reason == "tool_calls", choice
    (call,) = choice.message.tool_calls or ()
    valid(call.function.name, json.loads(call.function.arguments))
    (same,) = final.choices[0].message.tool_calls or ()
    assert same.function.arguments == call.function.arguments
    assert final.choices[0].finish_reason == "tool_calls"
    assert final.usage is not None
    assert whole.usage is not None
    assert (final.usage.prompt_tokens, final.usage.completion_tokens) == (
        whole.usage.prompt_tokens,
        whole.usage.completion_tokens,
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_an_answer_in_json(gateway: Running, seed: int) -> None:
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0) as client:
        wanted: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": True}}
        found = client.chat.completions.create(
            model="noise", messages=ASKED, response_format=wanted, seed=seed, max_tokens=400, logit_bias=dict(NOISE)
        ).choices[0]
    assert found.finish_reason == "stop"
    assert jsonschema_rs.is_valid(SCHEMA, json.loads(found.message.content or "")), found.message.content


def test_the_other_dialects(gateway: Running) -> None:
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0) as client:
        response: Any = client.responses.create(
            model="noise",
            input="Do it.",
            tools=[{"type": "function", **FUNCTION}],  # type: ignore[list-item]
            tool_choice="required",
            parallel_tool_calls=False,
            max_output_tokens=800,
        )
        (item,) = response.output
        valid(item.name, json.loads(item.arguments))
    with anthropic.Anthropic(base_url=gateway.url, api_key="none", max_retries=0) as claude:
        message: Any = claude.messages.create(
            model="noise",
            max_tokens=800,
            messages=ASKED,
            tools=[{"name": "f", "input_schema": SCHEMA, "strict": True}],
            tool_choice={"type": "any", "disable_parallel_tool_use": True},
        )
        (block,) = message.content
        valid(block.name, block.input)
    with ollama.Client(host=gateway.url) as llama:
        schema: Any = SCHEMA
        found = llama.chat(model="noise", messages=ASKED, format=schema, options={"num_predict": 800})
        assert jsonschema_rs.is_valid(SCHEMA, json.loads(found.message.content or ""))


def test_ids_that_are_none(gateway: Running) -> None:
    answer = httpx.post(f"{gateway.url}/detokenize", json={"tokens": [65, 264]}, timeout=LONG)
    assert (answer.status_code, answer.json()["error"]["message"]) == (
        400,
        "tokens: 264 is not a token id: the vocabulary has 264 tokens",
    )
    assert httpx.post(f"{gateway.url}/detokenize", json={"tokens": [65, 66]}, timeout=LONG).json() == {"prompt": "AB"}
