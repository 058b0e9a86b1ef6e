"""vLLM's endpoint for tokens, on replay and on the demonstration model under llama.cpp, and on their tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from untemplate import OutputParser
from untemplate_gateway.engines.base import Takes
from untemplate_gateway.manager.model import Model

from .scripted import replay, scripted
from .server import Running, running
from .test_app import WithIds, error, events, post

PATH = "/inference/v1/generate"
PROMPT = "<|im_start|>user\nHello!<|im_end|>\n<|im_start|>assistant\n"


@pytest.fixture(scope="module", params=["replay", "llama.cpp"])
def gateway(request: pytest.FixtureRequest) -> Iterator[Running]:
    if request.param == "replay":
        engine = replay("hermes")
        parser = OutputParser.from_format(engine.format, tokenizer=engine.tokenizer)
        with running([Model(name="replay", engine=engine, parser=parser, template=engine.template())]) as gateway:
            yield gateway
    else:
        real_model = pytest.importorskip("gateway_tests.real_model")
        with real_model.demo(slots=1) as gateway:
            yield gateway


def tokens_of(gateway: Running, text: str) -> list[int]:
    found: list[int] = post(gateway, "/tokenize", {"prompt": text}).json()["tokens"]
    return found


def text_of(gateway: Running, ids: list[int]) -> str:
    found: str = post(gateway, "/detokenize", {"tokens": ids}).json()["prompt"]
    return found


def generate(gateway: Running, ids: list[int], more: dict[str, Any] | None = None, **sampling: Any) -> httpx.Response:
    params = {"temperature": 0, "seed": 1, "max_tokens": 40, **sampling}
    return post(gateway, PATH, {"token_ids": ids, "sampling_params": params, **(more or {})})


def test_tokens_in_and_tokens_out(gateway: Running) -> None:
    ids = tokens_of(gateway, PROMPT)
    found = generate(gateway, ids, {"request_id": "r", "return_token_ids": True}).json()
    (choice,) = found["choices"]
    assert (found["request_id"], found["output_mode"]) == ("generate-tokens-r", "tokens")
    assert found["prompt_token_ids"] == ids
    assert found["usage"]["prompt_tokens"] == len(ids)
    assert found["usage"]["completion_tokens"] == len(choice["token_ids"]) > 2
    assert choice == {
        "index": 0, "token_ids": choice["token_ids"], "logprobs": None, "finish_reason": choice["finish_reason"],
        "stop_reason": None,
    }  # fmt: skip
    raw = post(gateway, "/v1/completions", {"prompt": ids, "temperature": 0, "seed": 1, "max_tokens": 40}).json()
    assert text_of(gateway, choice["token_ids"]).startswith(raw["choices"][0]["text"])


def test_the_same_tokens_in_a_stream(gateway: Running) -> None:
    ids = tokens_of(gateway, PROMPT)
    options = {"stream": True, "stream_options": {"include_usage": True}, "return_token_ids": True}
    (whole,) = generate(gateway, ids, logprobs=0).json()["choices"]
    first, *parts, last = events(generate(gateway, ids, options, logprobs=0).text)
    assert (first["prompt_token_ids"], first["choices"]) == (ids, [])
    assert last["usage"]["completion_tokens"] == len(whole["token_ids"])
    choices = [choice for part in parts for choice in part["choices"]]
    assert [i for choice in choices for i in choice["token_ids"]] == whole["token_ids"]
    assert choices[-1]["finish_reason"] == whole["finish_reason"]
    for choice in choices[:-1]:
        assert [entry["token_id"] for entry in choice["logprobs"]["content"]] == choice["token_ids"] != []
        assert choice["finish_reason"] is None


def test_log_probabilities_of_all_tokens(gateway: Running) -> None:
    (choice,) = generate(gateway, tokens_of(gateway, PROMPT), logprobs=1).json()["choices"]
    content = choice["logprobs"]["content"]
    assert [entry["token_id"] for entry in content] == choice["token_ids"]
    assert all(entry["logprob"] <= 0 and entry["top_logprobs"] == [] for entry in content)


def test_text_with_its_tokens(gateway: Running) -> None:
    ids = tokens_of(gateway, PROMPT)
    (whole,) = generate(gateway, ids, {"output_mode": "text"}, logprobs=2).json()["choices"]
    assert text_of(gateway, whole["token_ids"]).startswith(whole["text"])
    assert all(len(entry["top_logprobs"]) == 2 for entry in whole["logprobs"]["content"])
    parts = events(generate(gateway, ids, {"output_mode": "text", "stream": True}).text)
    assert "".join(choice["text"] for part in parts for choice in part["choices"]) == whole["text"]


def test_a_stop_token_is_among_the_tokens(gateway: Running) -> None:
    ids = tokens_of(gateway, PROMPT)
    (whole,) = generate(gateway, ids).json()["choices"]
    end = next(i for i in whole["token_ids"][3:])
    (cut,) = generate(gateway, ids, stop_token_ids=[end]).json()["choices"]
    assert cut["token_ids"] == whole["token_ids"][: whole["token_ids"].index(end) + 1]
    assert (cut["finish_reason"], cut["stop_reason"]) == ("stop", end)


def test_a_stop_string_and_several_choices() -> None:
    with running([replace(scripted("x"), engine=WithIds("one two three", takes=Takes(token_ids=True)))]) as gateway:
        found = generate(gateway, [1, 2], {"output_mode": "text"}, stop=["two"], n=2).json()
    assert [(one["index"], one["text"], one["stop_reason"]) for one in found["choices"]] == [
        (0, "one ", "two"), (1, "one ", "two")
    ]  # fmt: skip
    assert [bytes(one["token_ids"]).decode() for one in found["choices"]] == ["one two t"] * 2
    assert found["usage"]["prompt_tokens"] == 2


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({}, "token_ids: is required"),
        ({"token_ids": []}, "token_ids: must not be empty"),
        ({"token_ids": "x"}, "token_ids: must be a list of token ids, got a string"),
        ({"token_ids": [-1]}, "token_ids[0]: must be a token id, got -1"),
        ({"token_ids": [1]}, "sampling_params: is required"),
        (
            {"token_ids": [1], "sampling_params": {"temperature": "hot"}},
            "sampling_params.temperature: must be a number from 0 to 10, got a string",
        ),
        (
            {"token_ids": [1], "sampling_params": {"prompt_logprobs": 1}},
            "sampling_params.prompt_logprobs: is not supported",
        ),
        ({"token_ids": [1], "sampling_params": {"bad_words": ["x"]}}, "sampling_params.bad_words: is not supported"),
        ({"token_ids": [1], "sampling_params": {}, "features": {"mm_hashes": {}}}, "features: is not supported"),
        (
            {"token_ids": [1], "sampling_params": {}, "request_id": "i" * 300},
            "request_id: must have at most 256 characters",
        ),
        (
            {"token_ids": [1], "sampling_params": {}, "output_mode": "derender"},
            "output_mode: must be one of tokens, text, got 'derender'",
        ),
    ],
)  # fmt: skip
def test_wrong_requests(body: dict[str, Any], problem: str) -> None:
    with running([scripted("x")]) as gateway:
        assert error(post(gateway, PATH, body)) == (400, problem)


def test_an_engine_without_token_ids() -> None:
    with running([scripted("x")]) as gateway:
        response = generate(gateway, [1])
    assert error(response) == (400, "token_ids: needs an engine that reports token ids")
