"""The official clients drive the gateway: the same message whole and streamed, in every dialect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import ollama
import openai
import pytest

from untemplate import OutputParser
from untemplate_gateway.engines.replay import ReplayEngine, example_formats
from untemplate_gateway.manager.model import Model

from .server import Running, running

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
TOOL = {"type": "function", "function": {"name": "get_forecast", "description": "Weather", "parameters": PARAMETERS}}
ASKED = "Will I need an umbrella in Lisbon?"
FORMATS = {name: fmt for name, fmt in example_formats().items() if fmt.tools or fmt.channels}
NAMES = list(FORMATS)


def replay(name: str) -> Model:
    engine = ReplayEngine(FORMATS[name])
    parser = OutputParser.from_format(engine.format, tokenizer=engine.vocabulary())
    return Model(name=name, engine=engine, parser=parser, template=engine.template())


@pytest.fixture(scope="module")
def gateway() -> Iterator[Running]:
    with running([replay(name) for name in NAMES]) as running_:
        yield running_


@pytest.fixture(scope="module")
def client(gateway: Running) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def claude(gateway: Running) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=gateway.url, api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def llama(gateway: Running) -> Iterator[ollama.Client]:
    with ollama.Client(host=gateway.url) as client:
        yield client


def calls_of(message: Any) -> list[tuple[str, Any]]:
    return [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()]


@pytest.mark.parametrize("name", NAMES)
class TestEveryFormat:
    def test_chat(self, client: openai.OpenAI, name: str) -> None:
        ask: Any = {"model": name, "messages": [{"role": "user", "content": ASKED}], "tools": [TOOL]}
        whole = client.chat.completions.create(**ask)
        message = whole.choices[0].message
        (called,) = {name for name, _ in calls_of(message)}
        assert called == "get_forecast"
        assert all("city" in arguments for _, arguments in calls_of(message))
        assert whole.choices[0].finish_reason == "tool_calls"
        assert whole.usage is not None
        with client.chat.completions.stream(**ask, stream_options={"include_usage": True}) as stream:
            for _ in stream:
                pass
            final = stream.get_final_completion()
        streamed = final.choices[0].message
        assert (streamed.content or None, calls_of(streamed)) == (message.content, calls_of(message))
        assert getattr(streamed, "reasoning", None) == getattr(message, "reasoning", None)
        assert final.choices[0].finish_reason == "tool_calls"
        assert final.usage is not None
        counts = ("prompt_tokens", "completion_tokens", "total_tokens")
        assert [getattr(final.usage, c) for c in counts] == [getattr(whole.usage, c) for c in counts]
        assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens

    def test_a_conversation(self, client: openai.OpenAI, name: str) -> None:
        """The call is sent back with its result, and an answer follows."""
        messages: list[Any] = [{"role": "user", "content": ASKED}]
        first = client.chat.completions.create(model=name, messages=messages, tools=[TOOL]).choices[0].message
        assert first.tool_calls
        messages.append(first.model_dump(exclude_none=True))
        messages += [{"role": "tool", "tool_call_id": c.id, "content": "Rain."} for c in first.tool_calls]
        second = client.chat.completions.create(model=name, messages=messages, tools=[TOOL]).choices[0]
        assert second.finish_reason == "stop"
        assert "Rain." in (second.message.content or "")

    def test_responses(self, client: openai.OpenAI, name: str) -> None:
        ask: Any = {
            "model": name,
            "input": ASKED,
            "tools": [{"type": "function", "name": "get_forecast", "parameters": PARAMETERS}],
        }
        whole = client.responses.create(**ask)
        with client.responses.stream(**ask) as stream:
            for _ in stream:
                pass
            streamed = stream.get_final_response()
        assert [shown(item) for item in streamed.output] == [shown(item) for item in whole.output]
        assert whole.output[-1].type == "function_call"
        assert streamed.usage == whole.usage

    def test_messages(self, claude: anthropic.Anthropic, name: str) -> None:
        ask: Any = {
            "model": name,
            "max_tokens": 1000,
            "messages": [{"role": "user", "content": ASKED}],
            "tools": [{"name": "get_forecast", "input_schema": PARAMETERS}],
        }
        whole = claude.messages.create(**ask)
        with claude.messages.stream(**ask) as stream:
            streamed = stream.get_final_message()
        assert [shown(block) for block in streamed.content] == [shown(block) for block in whole.content]
        assert whole.content[-1].type == "tool_use"
        assert (whole.stop_reason, streamed.stop_reason) == ("tool_use", "tool_use")
        assert whole.usage.output_tokens == streamed.usage.output_tokens

    def test_ollama(self, llama: ollama.Client, name: str) -> None:
        ask: Any = {"model": name, "messages": [{"role": "user", "content": ASKED}], "tools": [TOOL]}
        whole = llama.chat(**ask)
        assert whole.message.tool_calls
        assert {call.function.name for call in whole.message.tool_calls} == {"get_forecast"}
        parts = list(llama.chat(**ask, stream=True))
        assert "".join(part.message.content or "" for part in parts) == (whole.message.content or "")
        assert "".join(part.message.thinking or "" for part in parts) == (whole.message.thinking or "")
        calls = [call for part in parts for call in part.message.tool_calls or ()]
        assert [call.function for call in calls] == [call.function for call in whole.message.tool_calls]
        assert (parts[-1].done, parts[-1].done_reason, parts[-1].eval_count) == (True, "stop", whole.eval_count)


def shown(item: Any) -> dict[str, Any]:
    """Return an item without the fields that differ between responses."""
    dump: dict[str, Any] = item.model_dump(exclude_none=True)
    for key in ("id", "call_id", "parsed_arguments", "parsed_output", "toolu"):
        dump.pop(key, None)
    for part in dump.get("content") or ():
        if isinstance(part, dict):
            part.pop("parsed", None)
            part.pop("parsed_output", None)
    return dump


class TestChat:
    def test_choices_with_seeds(self, client: openai.OpenAI) -> None:
        found = client.chat.completions.create(
            model="hermes", messages=[{"role": "user", "content": "Hi"}], n=3, seed=1, max_tokens=40
        )
        assert [choice.index for choice in found.choices] == [0, 1, 2]
        assert {choice.finish_reason for choice in found.choices} <= {"stop", "length"}

    def test_length(self, client: openai.OpenAI) -> None:
        found = client.chat.completions.create(
            model="hermes", messages=[{"role": "user", "content": "Hi"}], max_completion_tokens=5
        )
        assert found.choices[0].finish_reason == "length"
        assert found.usage is not None
        assert found.usage.completion_tokens <= 5

    def test_logprobs(self, client: openai.OpenAI) -> None:
        ask: Any = {"model": "hermes", "messages": [{"role": "user", "content": "Hi"}], "logprobs": True}
        whole = client.chat.completions.create(**ask, top_logprobs=2).choices[0]
        assert whole.logprobs is not None
        assert whole.logprobs.content is not None
        assert (
            "".join(token.token for token in whole.logprobs.content).strip().startswith(str(whole.message.content)[:20])
        )
        tokens = [
            token.token
            for chunk in client.chat.completions.create(**ask, stream=True)
            for choice in chunk.choices
            if choice.logprobs is not None
            for token in choice.logprobs.content or ()
        ]
        assert tokens == [token.token for token in whole.logprobs.content]

    def test_errors_are_the_clients_own(self, client: openai.OpenAI) -> None:
        with pytest.raises(openai.NotFoundError, match="the model 'nope' does not exist") as missing:
            client.chat.completions.create(model="nope", messages=[{"role": "user", "content": "Hi"}])
        assert missing.value.code == "model_not_found"
        with pytest.raises(openai.BadRequestError, match="max_tokens: must be an integer from 1, or -1"):
            client.chat.completions.create(model="hermes", messages=[{"role": "user", "content": "Hi"}], max_tokens=0)

    def test_models(self, client: openai.OpenAI) -> None:
        assert [model.id for model in client.models.list()] == NAMES

    def test_completions_are_raw(self, client: openai.OpenAI) -> None:
        ask: Any = {"model": "hermes", "prompt": "Hello", "max_tokens": 200}
        whole = client.completions.create(**ask).choices[0].text
        assert "<think>" in whole
        assert "".join(c.choices[0].text for c in client.completions.create(**ask, stream=True) if c.choices) == whole


class TestOllama:
    def test_generate(self, llama: ollama.Client) -> None:
        whole = llama.generate(model="hermes", prompt="Hi")
        assert "".join(part.response for part in llama.generate(model="hermes", prompt="Hi", stream=True)) == (
            whole.response
        )
        assert whole.done_reason == "stop"

    def test_models(self, llama: ollama.Client) -> None:
        assert [model.model for model in llama.list().models] == NAMES
        assert [model.model for model in llama.ps().models] == NAMES
        assert "tools" in (llama.show("hermes").capabilities or [])

    def test_loading_is_nothing(self, llama: ollama.Client) -> None:
        assert llama.generate(model="hermes").done_reason == "load"
        with pytest.raises(ollama.ResponseError, match="only the operator of this gateway can load or unload models"):
            llama.generate(model="hermes", keep_alive=0)

    def test_errors_are_the_clients_own(self, llama: ollama.Client) -> None:
        with pytest.raises(ollama.ResponseError, match="the model 'nope' does not exist"):
            llama.chat(model="nope", messages=[{"role": "user", "content": "Hi"}])


class TestAnthropic:
    def test_tokens_are_counted(self, claude: anthropic.Anthropic) -> None:
        asked: Any = [{"role": "user", "content": ASKED}]
        counted = claude.messages.count_tokens(model="hermes", messages=asked)
        answered = claude.messages.create(model="hermes", max_tokens=10, messages=asked)
        assert counted.input_tokens == answered.usage.input_tokens

    def test_errors_are_the_clients_own(self, claude: anthropic.Anthropic) -> None:
        with pytest.raises(anthropic.NotFoundError, match="the model 'nope' does not exist"):
            claude.messages.create(model="nope", max_tokens=1, messages=[{"role": "user", "content": "Hi"}])

    def test_a_model_is_described(self, claude: anthropic.Anthropic) -> None:
        assert claude.models.retrieve("hermes").display_name == "hermes"

    def test_the_tool_runner(self, claude: anthropic.Anthropic) -> None:
        asked: list[str] = []

        @anthropic.beta_tool
        def get_weather(city: str) -> str:
            """Return the weather of a city.

            Args:
                city: its name.
            """
            asked.append(city)
            return "17 degrees"

        runner = claude.beta.messages.tool_runner(
            model="hermes", max_tokens=300, tools=[get_weather], messages=[{"role": "user", "content": "Weather?"}]
        )
        last = runner.until_done()
        assert asked == ["Lisbon"]
        assert last.stop_reason == "end_turn"
        assert "17 degrees" in next(block.text for block in last.content if block.type == "text")
