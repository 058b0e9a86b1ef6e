"""The gateway's endpoints as an OpenAPI document (``/openapi.json``), generated from the structs of the requests."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from . import dialects, gemini
from .anthropic import CountTokensRequest
from .fields import Open
from .ollama import ModelRequest, PullRequest
from .responses import ConversationRequest, ItemsRequest, ResponsesRequest
from .utilities import DetokenizeRequest, ParseRequest, TokenizeRequest
from .vectors import EmbeddingRequest, EmbeddingsRequest, EmbedRequest, RerankRequest

_SUMMARIES: Final = {
    "/v1/chat/completions": "Chat Completions (OpenAI)",
    "/v1/completions": "Completions (OpenAI): raw prompt in, raw output out",
    "/inference/v1/generate": "Generate (vLLM): token ids in, token ids out",
    "/v1/responses": "Responses (OpenAI)",
    "/v1/conversations": "Conversation (OpenAI)",
    "/v1/conversations/{id}/items": "Items of a conversation (OpenAI)",
    "/v1/responses/input_tokens": "Number of tokens of a prompt (OpenAI)",
    "/v1/messages": "Messages (Anthropic)",
    "/v1/messages/count_tokens": "Number of tokens of a prompt (Anthropic)",
    "/api/chat": "Chat (Ollama)",
    "/api/generate": "Generate (Ollama)",
    "/api/show": "Description of a model (Ollama)",
    "/api/pull": "Download and load a model (Ollama)",
    "/api/delete": "Unload and delete a model (Ollama)",
    "/v1beta/models/{model}:generateContent": "Content (Google's Gemini API)",
    "/v1beta/models/{model}:streamGenerateContent": "Streamed content (Google's Gemini API)",
    "/v1beta/models/{model}:countTokens": "Number of tokens of a prompt (Google's Gemini API)",
    "/v1beta/models/{model}:embedContent": "Embedding (Google's Gemini API)",
    "/v1beta/models/{model}:batchEmbedContents": "Embeddings (Google's Gemini API)",
    "/v1/embeddings": "Embeddings (OpenAI)",
    "/v1/rerank": "Relevance of documents (Jina, Cohere)",
    "/api/embed": "Embeddings (Ollama)",
    "/api/embeddings": "Embedding of a text (Ollama's older API)",
    "/tokenize": "Token ids of a text or of messages",
    "/detokenize": "Text of token ids",
    "/parse": "Message from raw output",
}
_GETS: Final = {
    "/v1/models": ("The models", "application/json"),
    "/v1beta/models": ("The models (Google's Gemini API)", "application/json"),
    "/health": ("Health of all engines; 503 if one cannot take a request", "application/json"),
    "/metrics": ("Prometheus metrics", "text/plain"),
    "/api/tags": ("The models (Ollama)", "application/json"),
    "/api/ps": ("The loaded models (Ollama)", "application/json"),
    "/api/version": ("The version (Ollama)", "application/json"),
}


_IN_PATH: Final = {"model": "Name of the model.", "id": "Id of the conversation."}
"""What the parameters of paths mean."""


def _parameters(path: str) -> dict[str, Any]:
    found = [
        {"name": name, "in": "path", "required": True, "description": text, "schema": {"type": "string"}}
        for name, text in _IN_PATH.items()
        if f"{{{name}}}" in path
    ]
    return {"parameters": found} if found else {}


def requests() -> dict[str, type[Open]]:
    """Return the struct of each path's requests."""
    return {
        **{path: dialect.request for path, dialect in dialects().items()},
        "/v1/conversations": ConversationRequest,
        "/v1/conversations/{id}/items": ItemsRequest,
        "/v1/responses/input_tokens": ResponsesRequest,
        "/v1/messages/count_tokens": CountTokensRequest,
        "/api/show": ModelRequest,
        "/api/pull": PullRequest,
        "/api/delete": ModelRequest,
        "/v1beta/models/{model}:generateContent": gemini.GenerateContentRequest,
        "/v1beta/models/{model}:streamGenerateContent": gemini.GenerateContentRequest,
        "/v1beta/models/{model}:countTokens": gemini.CountContentTokensRequest,
        "/v1beta/models/{model}:embedContent": gemini.EmbedContentRequest,
        "/v1beta/models/{model}:batchEmbedContents": gemini.BatchEmbedContentsRequest,
        "/v1/embeddings": EmbeddingsRequest,
        "/v1/rerank": RerankRequest,
        "/api/embed": EmbedRequest,
        "/api/embeddings": EmbeddingRequest,
        "/tokenize": TokenizeRequest,
        "/detokenize": DetokenizeRequest,
        "/parse": ParseRequest,
    }


def document(version: str) -> dict[str, Any]:
    """Return the document, OpenAPI 3.1."""
    structs = requests()
    schemas, components = msgspec.json.schema_components(
        [structs[path] for path in _SUMMARIES], ref_template="#/components/schemas/{name}"
    )
    streams = {path: _stream_type(path) for path in (*dialects(), "/v1beta/models/{model}:streamGenerateContent")}
    error = {
        "description": "an error in the shape of this API",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
    paths: dict[str, Any] = {}
    for (path, summary), schema in zip(_SUMMARIES.items(), schemas, strict=True):
        content: dict[str, Any] = {"application/json": {"schema": {"type": "object"}}}
        if path in streams:
            content[streams[path]] = {"schema": {"type": "string"}}
        paths[path] = {
            "delete" if path == "/api/delete" else "post": {
                "summary": summary,
                **_parameters(path),
                "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
                "responses": {"200": {"description": "success", "content": content}, "4XX": error, "501": error},
            }
        }
    for path, (summary, media_type) in _GETS.items():
        success = {"description": "success", "content": {media_type: {"schema": {}}}}
        paths[path] = {"get": {"summary": summary, "responses": {"200": success, "4XX": error}}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "untemplate",
            "version": version,
            "description": "Raw output of language models as messages, in the APIs that clients know.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _stream_type(path: str) -> str:
    return "application/x-ndjson" if path.startswith("/api/") else "text/event-stream"
