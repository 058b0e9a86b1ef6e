"""Embeddings (OpenAI, Ollama) and reranking (Jina, Cohere): requests and responses."""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta

from ..engines.base import Embeddings, Scores
from .fields import Closed, about
from .parameters import ModelName, TokenId

MOST = 2048
"""Most inputs of a request, as in OpenAI's API."""
Dimensions = Annotated[
    Annotated[int, Meta(ge=1, le=1 << 20)] | None,
    about("Length of each embedding, for upstreams that can shorten them."),
]


class EmbeddingsRequest(Closed, kw_only=True, ignored="user"):
    """A request for embeddings."""

    input: Annotated[
        str | Annotated[list[TokenId | str | list[TokenId]], Meta(max_length=1 << 20)],
        about(
            f"The text, its token ids, or a list of these, at most {MOST}.",
            expected="a string, a list of token ids, or a list of these",
        ),
    ]
    model: ModelName = None
    encoding_format: Annotated[
        Literal["float", "base64"] | None, about("`base64`: each embedding as 32-bit floats in base64.")
    ] = None
    dimensions: Dimensions = None


class EmbedRequest(Closed, kw_only=True, ignored="truncate options keep_alive"):
    """A request for embeddings in Ollama's API."""

    input: Annotated[
        str | Annotated[list[str], Meta(max_length=MOST)],
        about("The text, or a list of texts.", expected="a string or a list of strings"),
    ]
    model: ModelName = None
    dimensions: Dimensions = None


class EmbeddingRequest(Closed, kw_only=True, ignored="options keep_alive"):
    """A request for an embedding in Ollama's older API."""

    prompt: Annotated[str, about("The text.")]
    model: ModelName = None


class RerankRequest(Closed, kw_only=True):
    """A request for the relevance of documents."""

    query: Annotated[str, about("The question.")]
    documents: Annotated[Annotated[list[str], Meta(min_length=1, max_length=MOST)], about("The documents, as text.")]
    model: ModelName = None
    top_n: Annotated[
        Annotated[int, Meta(ge=1, le=1 << 31)] | None, about("Return this many of the best documents.")
    ] = None
    return_documents: Annotated[bool | None, about("Repeat the text of each document.")] = None


def respond_embeddings(request: EmbeddingsRequest, found: Embeddings, model: str) -> dict[str, Any]:
    """Return OpenAI's list of embeddings."""
    shown: Sequence[Any] = found.vectors
    if request.encoding_format == "base64":
        shown = [b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode() for vector in found.vectors]
    return {
        "object": "list",
        "data": [{"object": "embedding", "index": index, "embedding": one} for index, one in enumerate(shown)],
        "model": model,
        "usage": _usage(found.prompt_tokens),
    }


def respond_embed(found: Embeddings, model: str, nanoseconds: int) -> dict[str, Any]:
    """Return the response of ``/api/embed``."""
    return {
        "model": model,
        "embeddings": found.vectors,
        "total_duration": nanoseconds,
        "load_duration": 0,
        "prompt_eval_count": found.prompt_tokens,
    }


def respond_rerank(request: RerankRequest, found: Scores, model: str, id: str) -> dict[str, Any]:
    """Return the documents, the most relevant first."""
    ranked = sorted(enumerate(found.scores), key=lambda one: -one[1])
    results: list[dict[str, Any]] = [{"index": index, "relevance_score": score} for index, score in ranked]
    if request.return_documents:
        results = [{**one, "document": {"text": request.documents[one["index"]]}} for one in results]
    return {
        "id": f"rerank-{id}",
        "model": model,
        "results": results[: request.top_n],
        "usage": _usage(found.prompt_tokens),
    }


def _usage(tokens: int) -> dict[str, int]:
    return {"prompt_tokens": tokens, "total_tokens": tokens}
