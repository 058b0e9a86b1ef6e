"""The gateway's endpoints as an OpenAPI document (``/openapi.json``), generated from the structs of the requests."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from . import completions, dialects, generate
from .anthropic.request import CountTokensRequest, MessagesRequest
from .chat.request import ChatRequest
from .fields import Open
from .gemini import request as gemini
from .ollama import models
from .ollama import request as ollama
from .responses.request import ConversationRequest, ItemsRequest, ResponsesRequest
from .utilities import DetokenizeRequest, ParseRequest, TokenizeRequest
from .vectors import EmbeddingRequest, EmbeddingsRequest, EmbedRequest, RerankRequest

_GEMINI: Final = "/v1beta/models/{model}:"
_POSTS: Final[dict[str, tuple[str, type[Open]]]] = {
    "/v1/chat/completions": ("Chat Completions (OpenAI)", ChatRequest),
    "/v1/completions": ("Completions (OpenAI): raw prompt in, raw output out", completions.CompletionsRequest),
    "/inference/v1/generate": ("Generate (vLLM): token ids in, token ids out", generate.TokensRequest),
    "/v1/responses": ("Responses (OpenAI)", ResponsesRequest),
    "/v1/conversations": ("Conversation (OpenAI)", ConversationRequest),
    "/v1/conversations/{id}/items": ("Items of a conversation (OpenAI)", ItemsRequest),
    "/v1/responses/input_tokens": ("Number of tokens of a prompt (OpenAI)", ResponsesRequest),
    "/v1/messages": ("Messages (Anthropic)", MessagesRequest),
    "/v1/messages/count_tokens": ("Number of tokens of a prompt (Anthropic)", CountTokensRequest),
    "/api/chat": ("Chat (Ollama)", ollama.OllamaChatRequest),
    "/api/generate": ("Generate (Ollama)", ollama.GenerateRequest),
    "/api/show": ("Description of a model (Ollama)", models.ModelRequest),
    "/api/pull": ("Download and load a model (Ollama)", models.PullRequest),
    "/api/delete": ("Unload and delete a model (Ollama)", models.ModelRequest),
    f"{_GEMINI}generateContent": ("Content (Google's Gemini API)", gemini.GenerateContentRequest),
    f"{_GEMINI}streamGenerateContent": ("Streamed content (Google's Gemini API)", gemini.GenerateContentRequest),
    f"{_GEMINI}countTokens": ("Number of tokens of a prompt (Google's Gemini API)", gemini.CountContentTokensRequest),
    f"{_GEMINI}embedContent": ("Embedding (Google's Gemini API)", gemini.EmbedContentRequest),
    f"{_GEMINI}batchEmbedContents": ("Embeddings (Google's Gemini API)", gemini.BatchEmbedContentsRequest),
    "/v1/embeddings": ("Embeddings (OpenAI)", EmbeddingsRequest),
    "/v1/rerank": ("Relevance of documents (Jina, Cohere)", RerankRequest),
    "/api/embed": ("Embeddings (Ollama)", EmbedRequest),
    "/api/embeddings": ("Embedding of a text (Ollama's older API)", EmbeddingRequest),
    "/tokenize": ("Token ids of a text or of messages", TokenizeRequest),
    "/detokenize": ("Text of token ids", DetokenizeRequest),
    "/parse": ("Message from raw output", ParseRequest),
}
"""Path → its summary, and the struct of its requests."""
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
    return {path: kind for path, (_, kind) in _POSTS.items()}


def document(version: str) -> dict[str, Any]:
    """Return the document, OpenAPI 3.1."""
    schemas, components = msgspec.json.schema_components(
        requests().values(), ref_template="#/components/schemas/{name}"
    )
    streams = {path: _stream_type(path) for path in (*dialects(), f"{_GEMINI}streamGenerateContent")}
    error = {
        "description": "an error in the shape of this API",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
    paths: dict[str, Any] = {}
    for (path, (summary, _)), schema in zip(_POSTS.items(), schemas, strict=True):
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
