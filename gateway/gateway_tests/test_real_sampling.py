"""The demonstration model under llama.cpp: sampling, stop strings, grammars, and clients that leave."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import openai
import pytest

from untemplate._internal.schemas.validation import validate

from .real_model import (
    ASKED,
    FIXED,
    FUNCTION,
    HELLO,
    HOT,
    SET_VOLUME,
    TOOL,
    VOLUME,
    ask,
    babbling,
    chat,
    demo,
    dictated,
    engine_of,
    said,
    streamed,
)
from .server import Running

ROOM = {"type": "string", "enum": ["kitchen", "hall"]}


def strict(name: str, **properties: Any) -> dict[str, Any]:
    """Return a tool with strict arguments."""
    parameters = {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "strict": True, "parameters": parameters}}


PLAY = strict("play", song={"enum": ["Yesterday", "Help!"]}, loud={"type": "boolean"})
SOUND = strict("set_volume", level={"enum": [1, 2, 3]}, room=ROOM)


def client_of(gateway: Running) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="module")
def gateway() -> Iterator[Running]:
    with demo(slots=1) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def client(gateway: Running) -> Iterator[openai.OpenAI]:
    with client_of(gateway) as client:
        yield client


def token(gateway: Running, text: str) -> str:
    """Return a token's id, for ``logit_bias``."""
    return str(engine_of(gateway).vocabulary().get_vocab()[text])


def warm(client: openai.OpenAI) -> None:
    """Put the prompt into the cache, so that it is computed in the same way for all later requests."""
    chat(client, HELLO, max_tokens=1)


def several(client: openai.OpenAI, request: dict[str, Any]) -> list[tuple[str, str]]:
    """Return reasoning and content of each choice of a stream."""
    found = [("", "")] * request["n"]
    for chunk in client.chat.completions.create(**request, stream=True):
        for choice in chunk.choices:
            reasoning, content = found[choice.index]
            more = getattr(choice.delta, "reasoning", None) or ""
            found[choice.index] = reasoning + more, content + (choice.delta.content or "")
    return found


class TestSampling:
    def test_seeds(self, gateway: Running, client: openai.OpenAI) -> None:
        """The same seed gives the same message, another seed gives another one."""

        def written(seed: int) -> str:
            found = chat(client, HELLO, temperature=2.0, seed=seed, max_tokens=30, extra_body=HOT)
            return repr(said(found))

        with babbling(gateway):
            warm(client)
            assert written(1) == written(1)
            assert len({written(seed) for seed in range(4)}) == 4

    @pytest.mark.parametrize("seed", range(3))
    def test_a_seed_streamed(self, client: openai.OpenAI, seed: int) -> None:
        hot: Any = {"temperature": 2.0, "seed": seed, "max_tokens": 40, "extra_body": HOT}
        warm(client)
        assert said(streamed(client, HELLO, **hot)) == said(chat(client, HELLO, **hot))

    def test_several(self, gateway: Running, client: openai.OpenAI) -> None:
        request = ask(HELLO, n=8, temperature=2.0, seed=1, max_tokens=40, extra_body=HOT)
        with babbling(gateway):
            warm(client)
            found = client.chat.completions.create(**request)
            again = several(client, request)
        assert [choice.index for choice in found.choices] == list(range(8))
        assert found.usage.completion_tokens >= 8
        texts = [(said(choice)[0] or "", choice.message.content or "") for choice in found.choices]
        assert len(set(texts)) == 8
        assert again == texts

    def test_several_at_once(self) -> None:
        """Requests run in slots of their own: no text of one gets into another."""
        colour = {"enum": ["red", "green", "blue"]}
        schema = strict("paint", wall=colour, door=colour)["function"]["parameters"]
        wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        request = ask(HELLO, n=8, temperature=2.0, response_format=wanted, reasoning_effort="none", extra_body=HOT)
        request["max_tokens"] = 230  # more than all the space that the grammar allows, and four are in one context
        with demo(slots=4) as gateway, client_of(gateway) as client:
            found = [said(choice)[:2] for choice in client.chat.completions.create(**request).choices]
            found += [(reasoning or None, content) for reasoning, content in several(client, request)]
        assert len(found) == 16
        for reasoning, content in found:
            assert reasoning is None
            assert not validate(content, schema)
        assert len({json.dumps(json.loads(content)) for _, content in found}) > 1

    def test_stop_strings(self, client: openai.OpenAI) -> None:
        """The model writes the stop string by itself."""
        whole = said(chat(client, HELLO))
        word = whole[1][len(whole[1]) // 2 :][:3]
        cut = whole[1][: whole[1].index(word)] or None
        for way in (chat, streamed):
            assert said(way(client, HELLO, stop=[word])) == (whole[0], cut, [], "stop")

    @pytest.mark.parametrize("way", [chat, streamed])
    @pytest.mark.parametrize(
        ("stop", "content"),
        [(["stop"], "One "), (["A stop"], "One stop two."), (["nowhere", "two", "stop two"], "One ")],
    )
    def test_a_stop_string_in_reasoning(
        self, gateway: Running, client: openai.OpenAI, way: Any, stop: list[str], content: str
    ) -> None:
        """In reasoning it has no effect."""
        with dictated(gateway, "<think>\nA stop here.\n</think>\n\nOne stop two."):
            assert said(way(client, HELLO, stop=stop)) == ("A stop here.", content, [], "stop")

    @pytest.mark.parametrize("way", [chat, streamed])
    def test_a_stop_string_behind_a_call(self, gateway: Running, client: openai.OpenAI, way: Any) -> None:
        """The first call has it in its arguments, where it has no effect; after it, everything is cut."""
        calls = [f'<tool_call>\n{{"name": "get_weather", "arguments": {{"city": "{c}"}}}}\n</tool_call>' for c in "SU"]
        with dictated(gateway, f"I look.\n{calls[0]}S{calls[1]}"):
            more: Any = {"tools": [TOOL]}
            cities = [("get_weather", {"city": c}) for c in "SU"]
            assert said(way(client, HELLO, **more)) == (None, "I look.S", cities, "tool_calls")
            assert said(way(client, HELLO, stop="S", **more)) == (None, "I look.", cities[:1], "tool_calls")

    def test_length(self, client: openai.OpenAI) -> None:
        found = client.chat.completions.create(**ask(HELLO, max_tokens=7))
        assert (found.choices[0].finish_reason, found.usage.completion_tokens) == ("length", 7)

    def test_length_anywhere(self, gateway: Running, client: openai.OpenAI) -> None:
        """The cut may be in the middle of a character, whose bytes are tokens."""
        parts = ("ä😀", "€😀")
        with dictated(gateway, f"<think>\n{parts[0]}\n</think>\n\n{parts[1]}"):
            *_, last = found = [said(chat(client, HELLO, max_tokens=most)) for most in range(1, 30)]
            assert last == (*parts, [], "stop")
            assert sum(reason == "length" for *_, reason in found) > 10
            for most, one in enumerate(found, 1):
                for text, part in zip(one, parts, strict=False):
                    assert part.startswith((text or "").rstrip("\ufffd\n"))
                assert said(streamed(client, HELLO, max_tokens=most)) == one

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
    """Only text that the grammar allows can be written, at any temperature."""

    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("choice", ["required", "set_volume"])
    def test_calls(self, client: openai.OpenAI, choice: str, seed: int) -> None:
        named = {"type": "function", "function": {"name": choice}}
        request: Any = {"tools": [PLAY, SOUND], "tool_choice": "required" if choice == "required" else named}
        request |= {"temperature": 1.5, "seed": seed, "reasoning_effort": "none", "parallel_tool_calls": False}
        warm(client)
        reasoning, content, ((name, arguments),), reason = found = said(chat(client, HELLO, **request))
        assert (reasoning, content, reason) == (None, None, "tool_calls")
        assert name in (("play", "set_volume") if choice == "required" else (choice,))
        schema = next(tool["function"]["parameters"] for tool in (PLAY, SOUND) if tool["function"]["name"] == name)
        assert not validate(json.dumps(arguments), schema)
        assert said(streamed(client, HELLO, **request)) == found

    def test_none(self, client: openai.OpenAI) -> None:
        assert chat(client, ASKED, tools=[TOOL], tool_choice="none").message.tool_calls is None

    @pytest.mark.parametrize("effort", ["none", "high"])
    def test_json_that_follows_a_schema(self, client: openai.OpenAI, effort: str) -> None:
        schema = strict("x", ok={"type": "boolean"}, kind={"enum": ["a", "b"]})["function"]["parameters"]
        wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        request: Any = {"response_format": wanted, "reasoning_effort": effort}
        warm(client)
        reasoning, content, calls, reason = said(chat(client, HELLO, **request))
        assert (bool(reasoning), calls, reason) == (effort == "high", [], "stop")
        assert not validate(content, schema)
        assert said(streamed(client, HELLO, **request)) == (reasoning, content, calls, reason)

    @pytest.mark.parametrize("way", [chat, streamed])
    def test_a_stop_string_in_json(self, client: openai.OpenAI, way: Any) -> None:
        """The engine is stopped in the middle of its grammar."""
        wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"const": "To be or not"}}}
        request: Any = {"response_format": wanted, "reasoning_effort": "none"}
        _, content, *_ = said(way(client, HELLO, **request))
        assert content.strip() == '"To be or not"'
        _, content, _, reason = said(way(client, HELLO, **request, stop=["or"]))
        assert (content.lstrip(), reason) == ('"To be ', "stop")

    @pytest.mark.parametrize("way", [chat, streamed])
    def test_a_required_call_behind_reasoning(self, gateway: Running, client: openai.OpenAI, way: Any) -> None:
        """The model is made to think until its budget is used up; then it has to call."""
        bias = {token(gateway, "<think>"): 100, token(gateway, "</think>"): -100}
        function = {"type": "function", "function": SET_VOLUME}
        request: Any = {"tools": [TOOL, function], "parallel_tool_calls": False, "logit_bias": bias}
        choice = {"type": "function", "function": {"name": "set_volume"}}
        found = way(client, HELLO, **request, tool_choice=choice, extra_body={"thinking_budget": 6})
        reasoning, *rest = said(found)
        assert reasoning
        assert rest == [None, [("set_volume", VOLUME)], "tool_calls"]

    @pytest.mark.parametrize("way", [chat, streamed])
    def test_a_call_of_its_own_behind_reasoning(self, client: openai.OpenAI, way: Any) -> None:
        """A strict tool that the model may call: the grammar is inactive until a call begins. The city is not the one
        in the question, which proves that the grammar has set it.
        """
        city = {**FIXED, "properties": {"city": {"const": "Ulm"}}, "required": ["city"]}
        function = {"type": "function", "function": {**FUNCTION, "strict": True, "parameters": city}}
        reasoning, *rest = said(way(client, ASKED, tools=[function], parallel_tool_calls=False))
        assert reasoning
        assert rest == [None, [("get_weather", {"city": "Ulm"})], "tool_calls"]


class TestLeaving:
    """The end token is forbidden, and the context shifts: an output is as long as requested unless it is stopped."""

    ASKED = 1_000_000  # written in an hour: no machine is busy enough to end it before the client leaves

    @pytest.mark.parametrize("n", [1, 3])  # three, and two of them wait for the slot
    @pytest.mark.parametrize("stream", [True, False])
    def test_the_slot_is_freed(self, gateway: Running, client: openai.OpenAI, stream: bool, n: int) -> None:
        before = decoded(gateway)
        bias = {token(gateway, end): -100 for end in ("<|im_end|>", "<|endoftext|>")}
        request = ask(HELLO, stream=stream, n=n, max_tokens=self.ASKED, logit_bias=bias)
        body = json.dumps(request).encode()
        with socket.create_connection(("127.0.0.1", gateway.port)) as connection:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
            until(lambda: busy(gateway) and decoded(gateway) > before + 20)
            assert requests(gateway) == 1
        until(lambda: not busy(gateway) and not requests(gateway))
        assert 20 < decoded(gateway) - before < self.ASKED
        with dictated(gateway, "Here again."):
            assert said(chat(client, HELLO)) == (None, "Here again.", [], "stop")


def until(condition: Callable[[], bool]) -> None:
    last = time.monotonic() + 100  # longer than writing everything takes
    while not condition():
        assert time.monotonic() < last
        time.sleep(0.005)


def llama(gateway: Running, path: str) -> httpx.Response:
    return httpx.get(f"{engine_of(gateway)._server.url}/{path}", timeout=100).raise_for_status()


def metric(text: str, name: str) -> float:
    (value,) = [line.split()[1] for line in text.splitlines() if line.startswith(f"{name} ")]
    return float(value)


def decoded(gateway: Running) -> float:
    """Return the number of llama.cpp's decodes: one for each token, in its one slot."""
    return metric(llama(gateway, "metrics").text, "llamacpp:n_decode_total")


def busy(gateway: Running) -> bool:
    """True if llama.cpp is working or has waiting requests."""
    waiting = metric(llama(gateway, "metrics").text, "llamacpp:requests_deferred")
    return bool(waiting) or any(slot["is_processing"] for slot in llama(gateway, "slots").json())


def requests(gateway: Running) -> float | None:
    """Return the number of requests that the gateway is answering."""
    return gateway.app.metrics.registry.get_sample_value("untemplate_requests_running")
