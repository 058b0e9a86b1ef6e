"""Embeddings and reranking through the gateway, with the official clients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import httpx
import ollama
import openai
import pytest

from untemplate_gateway.engines.base import Embeddings, Scores
from untemplate_gateway.errors import ApiError

from .scripted import Scripted, scripted
from .server import LONG, Running, running


class Embedding(Scripted):
    """Embeds a text as its length and its first byte; documents are relevant by their length."""

    async def embed(self, inputs: Sequence[str | list[int]], dimensions: int | None = None) -> Embeddings:
        if "" in inputs:
            raise ApiError(400, "messages: too long", param="messages")
        sizes = [[float(len(one)), float(one[0] if isinstance(one, list) else ord(one[0]))] for one in inputs]
        return Embeddings([size[:dimensions] for size in sizes], len(inputs))

    async def rerank(self, query: str, documents: Sequence[str]) -> Scores:
        return Scores([len(query) / len(one) for one in documents], 3)


@pytest.fixture(scope="module")
def gateway() -> Iterator[Running]:
    with running([replace(scripted("x"), engine=Embedding("x")), replace(scripted("x"), name="without")]) as gateway:
        yield gateway


def post(gateway: Running, path: str, body: dict[str, Any]) -> httpx.Response:
    return httpx.post(gateway.url + path, json={"model": "scripted", **body}, timeout=LONG)


@pytest.mark.parametrize("encoding", [{}, {"encoding_format": "float"}])
def test_openai(gateway: Running, encoding: dict[str, Any]) -> None:
    """Its client asks for base64 unless told otherwise."""
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0) as client:
        found = client.embeddings.create(model="scripted", input=["abc", "z"], **encoding)
        (short,) = client.embeddings.create(model="scripted", input="abc", dimensions=1).data
        (tokens,) = client.embeddings.create(model="scripted", input=[7, 8]).data
    assert [(one.index, one.embedding) for one in found.data] == [(0, [3.0, 97.0]), (1, [1.0, 122.0])]
    assert (found.usage.prompt_tokens, found.usage.total_tokens, found.model) == (2, 2, "scripted")
    assert (short.embedding, tokens.embedding) == ([3.0], [2.0, 7.0])


def test_ollama(gateway: Running) -> None:
    with ollama.Client(gateway.url) as client:
        found = client.embed("scripted", ["abc", "z"])
        one = client.embed("scripted", "abc")
    assert (found.embeddings, found.prompt_eval_count) == ([[3.0, 97.0], [1.0, 122.0]], 2)
    assert one.embeddings == [[3.0, 97.0]]


def test_ollamas_older_api(gateway: Running) -> None:
    found = post(gateway, "/api/embeddings", {"model": "scripted", "prompt": "abc"})
    assert (found.status_code, found.json()) == (200, {"embedding": [3.0, 97.0]})
    assert post(gateway, "/api/embeddings", {}).json() == {"error": "prompt: is required"}


def test_rerank(gateway: Running) -> None:
    asked = {"query": "ab", "documents": ["abcd", "ab", "abcdefgh"]}
    found = post(gateway, "/v1/rerank", asked).json()
    assert found.pop("id").startswith("rerank-")
    results = [{"index": i, "relevance_score": score} for i, score in ((1, 1.0), (0, 0.5), (2, 0.25))]
    assert found == {"model": "scripted", "results": results, "usage": {"prompt_tokens": 3, "total_tokens": 3}}
    (best,) = post(gateway, "/v1/rerank", {**asked, "top_n": 1, "return_documents": True}).json()["results"]
    assert best == {"index": 1, "relevance_score": 1.0, "document": {"text": "ab"}}


INPUT = "input: must be a string, a list of token ids, or a list of these"


@pytest.mark.parametrize(
    ("path", "body", "status", "problem"),
    [
        ("/v1/embeddings", {}, 400, "input: is required"),
        ("/v1/embeddings", {"input": []}, 400, INPUT),
        ("/v1/embeddings", {"input": ["a", 1]}, 400, INPUT),
        ("/v1/embeddings", {"input": ["a"] * 2049}, 400, "input: 2049 inputs are more than 2048"),
        ("/v1/embeddings", {"input": ""}, 400, "input: too long"),
        (
            "/v1/embeddings",
            {"input": "a", "model": "without"},
            501,
            "the engine 'scripted' cannot do this with this model",
        ),
        ("/v1/rerank", {"query": "a", "documents": []}, 400, "documents: must not be empty"),
        ("/v1/rerank", {"query": "a", "documents": [1]}, 400, "documents[0]: must be a string, got a number"),
    ],
)
def test_what_is_refused(gateway: Running, path: str, body: dict[str, Any], status: int, problem: str) -> None:
    response = post(gateway, path, body)
    assert (response.status_code, response.json()["error"]["message"]) == (status, problem)


def test_ollama_errors(gateway: Running) -> None:
    response = post(gateway, "/api/embed", {"input": 5})
    assert (response.status_code, response.json()) == (
        400,
        {"error": "input: must be a string or a list of strings, got a number"},
    )
