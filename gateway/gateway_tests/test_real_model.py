"""The demonstration model under llama.cpp, through every API: tests that need a real model and a real engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import ollama
import openai
import pytest

from .real_model import (
    ASKED,
    FIXED,
    FUNCTION,
    HELLO,
    HOT,
    PARAMETERS,
    SET_VOLUME,
    TOOL,
    VOLUME,
    babbling,
    calls_of,
    chat,
    demo,
    dictated,
    streamed,
)
from .server import Running

STOPS = "<think>\nA stop here.\n</think>\n\nOne stop two."
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Ulm"}}\n</tool_call>'
OPEN_DOOR = {**SET_VOLUME, "name": "open_door"}


@pytest.fixture(scope="module")
def gateway() -> Iterator[Running]:
    with demo(slots=1) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def client(gateway: Running) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def llama(gateway: Running) -> Iterator[ollama.Client]:
    with ollama.Client(host=gateway.url) as llama:
        yield llama


@pytest.fixture(scope="module")
def claude(gateway: Running) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=gateway.url, api_key="none", max_retries=0) as claude:
        yield claude


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
        """The prompt and the output are passed on unchanged."""
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


class TestOllama:
    """Both endpoints have the same prompt for one question, and so the same answer, whole and streamed."""

    def said(self, llama: ollama.Client, temperature: float = 0, **request: Any) -> tuple[str, str, str | None, int]:
        """Return thinking, text, the reason for the end, and the number of tokens."""
        options = {"temperature": temperature, "num_predict": 300, **request.pop("options", {})}
        asked: Any = {"model": "demo", "options": options, **request}
        # Puts the prompt into the cache, so that it is computed in the same way for all later requests.
        llama.chat(**{**asked, "options": {**options, "num_predict": 1}}, messages=HELLO)
        ways = set()
        chats = [llama.chat(**asked, messages=HELLO)], [*llama.chat(**asked, messages=HELLO, stream=True)]
        for parts in chats:
            thinking = "".join(part.message.thinking or "" for part in parts)
            text = "".join(part.message.content or "" for part in parts)
            ways.add((thinking, text, parts[-1].done_reason, parts[-1].eval_count))
        prompt = HELLO[0]["content"]
        texts = [llama.generate(**asked, prompt=prompt)], [*llama.generate(**asked, prompt=prompt, stream=True)]
        for parts in texts:
            thinking = "".join(part.thinking or "" for part in parts)
            text = "".join(part.response for part in parts)
            ways.add((thinking, text, parts[-1].done_reason, parts[-1].eval_count))
        (way,) = ways
        return way

    def test_stop(self, gateway: Running, llama: ollama.Client) -> None:
        with dictated(gateway, STOPS):
            assert self.said(llama)[:3] == ("A stop here.", "One stop two.", "stop")
            assert self.said(llama, options={"stop": ["stop"]})[:3] == ("A stop here.", "One ", "stop")

    def test_num_predict(self, gateway: Running, llama: ollama.Client) -> None:
        text = "To be or not to be, that is the question. " * 3 + "Or is it?"
        with dictated(gateway, text):
            *_, part, reason, tokens = self.said(llama, options={"num_predict": 7})
            assert (reason, tokens) == ("length", 7)
            assert text.startswith(part)
            assert self.said(llama, options={"num_predict": -1})[:3] == ("", text, "stop")

    def test_temperature_and_seed(self, gateway: Running, llama: ollama.Client) -> None:
        few = {"num_predict": 12, **HOT}
        with babbling(gateway):
            cold = {self.said(llama, options={**few, "seed": seed}) for seed in range(2)}
            hot = {self.said(llama, 3.0, options={**few, "seed": seed}) for seed in range(3)}
        assert (len(cold), len(hot)) == (1, 3)

    @pytest.mark.parametrize("think", [False, True])
    def test_format(self, llama: ollama.Client, think: bool) -> None:
        thinking, text, reason, _ = self.said(llama, format=FIXED, think=think)
        assert (json.loads(text), reason, bool(thinking)) == (VOLUME, "stop", think)

    def test_think(self, llama: ollama.Client) -> None:
        thinking, text, *_ = self.said(llama, think=False)
        assert (thinking, bool(text)) == ("", True)
        assert self.said(llama, think=True)[0]

    def test_calls(self, gateway: Running, llama: ollama.Client) -> None:
        request: Any = {"model": "demo", "messages": HELLO, "tools": [TOOL], "options": {"temperature": 0}}
        with dictated(gateway, f"I look.\n{CALL}\n{CALL.replace('Ulm', 'Hof')}"):
            whole = llama.chat(**request).message
            parts = [part.message for part in llama.chat(**request, stream=True)]
        calls = [[(c.function.name, dict(c.function.arguments)) for c in m.tool_calls or ()] for m in (whole, *parts)]
        assert calls[0] == [("get_weather", {"city": "Ulm"}), ("get_weather", {"city": "Hof"})]
        assert [call for part in calls[1:] for call in part] == calls[0]
        assert whole.content == "".join(part.content or "" for part in parts) == "I look."

    def test_a_raw_prompt(self, gateway: Running, llama: ollama.Client) -> None:
        request: Any = {"model": "demo", "prompt": "Hm", "raw": True, "options": {"temperature": 0}}
        with dictated(gateway, STOPS + CALL):
            whole = llama.generate(**request)
            parts = [*llama.generate(**request, stream=True)]
        assert (whole.response, whole.thinking) == (STOPS + CALL, None)
        assert "".join(part.response for part in parts) == whole.response


class TestMessages:
    def said(self, claude: anthropic.Anthropic, messages: Any = HELLO, **request: Any) -> tuple[Any, ...]:
        """Return the blocks, the reason for the end, and the stop sequence: the same whole and streamed."""
        body = {"temperature": 0, **request}
        asked: Any = {"model": "demo", "max_tokens": 300, "messages": messages, "extra_body": body}
        with claude.messages.stream(**asked) as stream:
            part = stream.get_final_message()
        found = []
        for message in (claude.messages.create(**asked), part):
            blocks = []
            for block in message.content:
                given = block.model_dump()
                blocks.append([given[name] for name in ("thinking", "text", "name", "input") if name in given])
            found.append((blocks, message.stop_reason, message.stop_sequence))
        assert found[0] == found[1]
        return found[0]

    def tools(self, *functions: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {**{k: v for k, v in f.items() if k != "parameters"}, "input_schema": f["parameters"]} for f in functions
        ]

    def test_stop_sequences(self, gateway: Running, claude: anthropic.Anthropic) -> None:
        with dictated(gateway, STOPS):
            assert self.said(claude) == ([["A stop here."], ["One stop two."]], "end_turn", None)
            found = self.said(claude, stop_sequences=["here", "two"])
        assert found == ([["A stop here."], ["One stop "]], "stop_sequence", "two")

    def test_a_stop_sequence_behind_a_call(self, gateway: Running, claude: anthropic.Anthropic) -> None:
        """The call is kept, so that it can be answered."""
        with dictated(gateway, f"{CALL}stop and on"):
            found = self.said(claude, stop_sequences=["stop"], tools=self.tools(FUNCTION))
        assert found == ([["get_weather", {"city": "Ulm"}]], "tool_use", None)

    @pytest.mark.parametrize("kind", ["any", "tool"])
    def test_calls_that_have_to_be(self, claude: anthropic.Anthropic, kind: str) -> None:
        tools = self.tools(SET_VOLUME, OPEN_DOOR)
        for name in ("set_volume", "open_door"):
            choice = {"type": kind, "disable_parallel_tool_use": True, **({"name": name} if kind == "tool" else {})}
            ((*before, (called, given)), *why) = self.said(
                claude, tools=tools, tool_choice=choice, thinking={"type": "disabled"}
            )
            assert (before, given, why) == ([], VOLUME, ["tool_use", None])
            assert called in (("set_volume", "open_door") if kind == "any" else (name,))

    def test_no_calls(self, gateway: Running, claude: anthropic.Anthropic) -> None:
        request: Any = {"tools": self.tools(FUNCTION)}
        with dictated(gateway, CALL):
            assert self.said(claude, **request) == ([["get_weather", {"city": "Ulm"}]], "tool_use", None)
            found = self.said(claude, **request, tool_choice={"type": "none"})
        assert found == ([[CALL]], "end_turn", None)

    @pytest.mark.parametrize("thinks", [False, True])
    def test_thinking(self, claude: anthropic.Anthropic, thinks: bool) -> None:
        wanted = {"format": {"type": "json_schema", "schema": FIXED}}
        more: Any = {} if thinks else {"thinking": {"type": "disabled"}}
        (*thoughts, (text,)), *why = self.said(claude, output_config=wanted, **more)
        assert (json.loads(text), len(thoughts), why) == (VOLUME, int(thinks), ["end_turn", None])


class TestResponses:
    def said(self, client: openai.OpenAI, **request: Any) -> list[list[Any]]:
        """Return the items: the same whole and streamed."""
        asked: Any = {
            "model": "demo",
            "input": HELLO[0]["content"],
            "temperature": 0,
            "max_output_tokens": 300,
            **request,
        }
        with client.responses.stream(**asked) as stream:
            for _ in stream:
                pass
            part = stream.get_final_response()
        found = []
        for response in (client.responses.create(**asked), part):
            assert response.status == "completed"
            items = []
            for item in response.output:
                if item.type == "function_call":
                    items.append([item.name, json.loads(item.arguments)])
                else:
                    items.append([item.type, "".join(piece.text for piece in item.content or ())])
            found.append(items)
        assert found[0] == found[1]
        return found[0]

    def tools(self, *functions: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"type": "function", **function} for function in functions]

    @pytest.mark.parametrize("name", ["", "set_volume", "open_door"])
    def test_calls_that_have_to_be(self, client: openai.OpenAI, name: str) -> None:
        choice: Any = {"type": "function", "name": name} if name else "required"
        tools = self.tools(SET_VOLUME, OPEN_DOOR)
        ((called, given),) = self.said(
            client, tools=tools, tool_choice=choice, parallel_tool_calls=False, reasoning={"effort": "none"}
        )
        assert given == VOLUME
        assert called in ((name,) if name else ("set_volume", "open_door"))

    def test_no_calls(self, gateway: Running, client: openai.OpenAI) -> None:
        with dictated(gateway, CALL):
            assert self.said(client, tools=self.tools(FUNCTION)) == [["get_weather", {"city": "Ulm"}]]
            assert self.said(client, tools=self.tools(FUNCTION), tool_choice="none") == [["message", CALL]]

    @pytest.mark.parametrize("effort", ["none", "high"])
    def test_text_that_follows_a_schema(self, client: openai.OpenAI, effort: str) -> None:
        wanted = {"format": {"type": "json_schema", "name": "x", "schema": FIXED, "strict": True}}
        *thoughts, (kind, text) = self.said(client, text=wanted, reasoning={"effort": effort})
        assert (kind, json.loads(text)) == ("message", VOLUME)
        assert [kind for kind, _ in thoughts] == ([] if effort == "none" else ["reasoning"])

    def test_stop(self, gateway: Running, client: openai.OpenAI) -> None:
        with dictated(gateway, STOPS):
            found = self.said(client, extra_body={"stop": ["stop"]})
        assert found == [["reasoning", "A stop here."], ["message", "One "]]


class TestCompletions:
    def said(self, client: openai.OpenAI, n: int = 1, **request: Any) -> list[tuple[str, str]]:
        """Return the texts and the reasons for their ends: the same whole and streamed."""
        asked: Any = {"model": "demo", "prompt": "To be", "temperature": 0, "max_tokens": 100, "n": n, **request}
        client.completions.create(**{**asked, "max_tokens": 1})  # into the cache with it
        texts, reasons = [""] * n, [""] * n
        for chunk in client.completions.create(**asked, stream=True):
            for choice in chunk.choices:
                texts[choice.index] += choice.text
                reasons[choice.index] += choice.finish_reason or ""
        whole = client.completions.create(**asked).choices
        assert [choice.index for choice in whole] == [*range(n)]
        found = [(choice.text, choice.finish_reason) for choice in whole]
        assert found == list(zip(texts, reasons, strict=True))
        return found

    def test_stop(self, gateway: Running, client: openai.OpenAI) -> None:
        """A raw output has no markup: a stop string has an effect anywhere."""
        with dictated(gateway, STOPS):
            assert self.said(client) == [(STOPS, "stop")]
            assert self.said(client, n=2, stop=["here"]) == [("<think>\nA stop ", "stop")] * 2
            assert self.said(client, stop="</think>") == [("<think>\nA stop here.\n", "stop")]

    def test_seed_and_n(self, gateway: Running, client: openai.OpenAI) -> None:
        hot: Any = {"temperature": 2.0, "max_tokens": 20, "extra_body": HOT}
        with babbling(gateway):
            found = self.said(client, n=3, seed=1, **hot)
            assert len(set(found)) == 3
            assert self.said(client, seed=1, **hot) == found[:1]
            assert self.said(client, n=3, seed=11, **hot) != found
