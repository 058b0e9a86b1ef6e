"""Endpoints for embeddings and reranking."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from .engines.base import Embeddings, Engine, Scores
from .errors import ApiError, bad_request, took_too_long
from .exchange import Exchange
from .prompt import check_length
from .protocols.fields import read_as
from .protocols.parameters import prompts_of
from .protocols.vectors import (
    MOST,
    EmbeddingRequest,
    EmbeddingsRequest,
    EmbedRequest,
    RerankRequest,
    respond_embed,
    respond_embeddings,
    respond_rerank,
)

_T = TypeVar("_T", Embeddings, Scores)


async def embeddings(exchange: Exchange) -> None:
    """Answer OpenAI's request for embeddings."""
    asked = read_as(EmbeddingsRequest, exchange.body, notes=exchange.notes)
    inputs = prompts_of(asked.input, "input")
    if len(inputs) > MOST:
        raise bad_request("input", f"{len(inputs)} inputs are more than {MOST}")
    name, found = await _asked(exchange, asked.model, inputs, lambda engine: engine.embed(inputs, asked.dimensions))
    await exchange.reply(respond_embeddings(asked, found, name))


async def embed(exchange: Exchange) -> None:
    """Answer Ollama's request for embeddings."""
    began = time.perf_counter_ns()
    asked = read_as(EmbedRequest, exchange.body, notes=exchange.notes)
    inputs = [asked.input] if isinstance(asked.input, str) else asked.input
    name, found = await _asked(exchange, asked.model, inputs, lambda engine: engine.embed(inputs, asked.dimensions))
    await exchange.reply(respond_embed(found, name, time.perf_counter_ns() - began))


async def embedding(exchange: Exchange) -> None:
    """Answer a request for an embedding in Ollama's older API."""
    asked = read_as(EmbeddingRequest, exchange.body, notes=exchange.notes)
    texts = [asked.prompt]
    _, found = await _asked(exchange, asked.model, texts, lambda engine: engine.embed(texts), "prompt")
    await exchange.reply({"embedding": found.vectors[0]})


async def embedded(exchange: Exchange, name: str, texts: Sequence[str], dimensions: int | None) -> Embeddings:
    """Return the embeddings of texts by the model of a name. Raises as `_asked`."""
    if len(texts) > MOST:
        raise bad_request("requests", f"{len(texts)} inputs are more than {MOST}")
    _, found = await _asked(exchange, name, texts, lambda engine: engine.embed(texts, dimensions), "content")
    return found


async def rerank(exchange: Exchange) -> None:
    """Answer a request for the relevance of documents."""
    asked = read_as(RerankRequest, exchange.body, notes=exchange.notes)
    name, found = await _asked(
        exchange, asked.model, asked.documents, lambda engine: engine.rerank(asked.query, asked.documents), "documents"
    )
    await exchange.reply(respond_rerank(asked, found, name, exchange.record.id))


async def _asked(
    exchange: Exchange,
    name: str | None,
    texts: Sequence[str | list[int]],
    ask: Callable[[Engine], Awaitable[_T]],
    field: str = "input",
) -> tuple[str, _T]:
    """Return the name of the model, and what its engine computes.

    Args:
        texts: the texts in the request.
        ask: asks the engine.
        field: the request's field that has the texts.

    Raises:
        ApiError: 501: the engine cannot; 504: it takes too long; 400: a text is too long.
    """
    seconds = exchange.gateway.settings.request_timeout
    async with exchange.gateway.manager.use(name or "") as model:
        exchange.record.model = model
        for text in texts:
            check_length(model, text, field)
        try:
            async with asyncio.timeout(seconds or None):
                found = await ask(model.engine)
        except NotImplementedError as error:
            problem = str(error) or f"the engine {model.engine.kind!r} cannot do this with this model"
            raise ApiError(501, problem, code="not_supported") from None
        except TimeoutError:
            raise took_too_long(seconds) from None
        except ApiError as error:
            raise error.renamed({"messages": field}) from None
        exchange.record.usage.prompt_tokens = found.prompt_tokens
        return name or model.name, found
