"""Endpoints of Google's Gemini API: ``/v1beta/models/…``. The path has the model and the method."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

from .counting import count_prompt
from .errors import bad_request, not_found
from .exchange import Exchange
from .protocols.fields import read_as
from .protocols.gemini import GEMINI, GEMINI_ARRAY
from .protocols.gemini.request import (
    BatchEmbedContentsRequest,
    EmbedContentRequest,
    camel,
    plain_text,
    read_count_tokens,
)
from .vector_endpoints import embedded


async def call(exchange: Exchange) -> None:
    """Answer ``models/NAME:METHOD``."""
    name, _, method = exchange.scope["path_params"]["call"].rpartition(":")
    exchange.body = {**exchange.body, "model": name}
    exchange.body.pop("stream", None)
    if method == "generateContent":
        await exchange.gateway.generate(exchange, GEMINI)
    elif method == "streamGenerateContent":
        exchange.body["stream"] = True
        events = parse_qs(exchange.scope["query_string"].decode("latin-1")).get("alt") == ["sse"]
        await exchange.gateway.generate(exchange, GEMINI if events else GEMINI_ARRAY)
    elif method == "countTokens":
        counted = read_count_tokens(exchange.body, exchange.notes)
        await exchange.reply({"totalTokens": await count_prompt(exchange, counted)})
    elif method == "embedContent":
        asked = read_as(EmbedContentRequest, camel(exchange.body), notes=exchange.notes)
        (vector,) = await _embedded(exchange, name, [asked])
        await exchange.reply({"embedding": vector})
    elif method == "batchEmbedContents":
        batch = read_as(BatchEmbedContentsRequest, camel(exchange.body), notes=exchange.notes)
        await exchange.reply({"embeddings": await _embedded(exchange, name, batch.requests)})
    else:
        raise not_found(f"there is no method {method[:64]!r}; valid ones: generateContent, streamGenerateContent, "
                        "countTokens, embedContent, batchEmbedContents")  # fmt: skip


async def _embedded(exchange: Exchange, name: str, asked: list[EmbedContentRequest]) -> list[dict[str, Any]]:
    texts = [plain_text(one.content, "content") for one in asked]
    sizes = {one.outputDimensionality for one in asked}
    if len(sizes) > 1:
        raise bad_request("outputDimensionality", "must be the same in all requests")
    found = await embedded(exchange, name, texts, sizes.pop())
    return [{"values": vector} for vector in found.vectors]
