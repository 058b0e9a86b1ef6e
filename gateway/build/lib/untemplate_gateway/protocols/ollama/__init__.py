"""Ollama's API: ``/api/chat``, ``/api/generate``, and the endpoints that list and describe models."""

from ..base import Dialect
from .models import ModelRequest, PullRequest, name_of, ps, show, tags, version
from .request import (
    GenerateRequest,
    Load,
    OllamaChatRequest,
    load_of,
    read_chat,
    read_generate,
)
from .response import ChatWriter, GenerateWriter, error_object, loaded, respond_chat, respond_generate

__all__ = [
    "CHAT",
    "GENERATE",
    "ChatWriter",
    "GenerateRequest",
    "GenerateWriter",
    "Load",
    "ModelRequest",
    "OllamaChatRequest",
    "PullRequest",
    "load_of",
    "loaded",
    "name_of",
    "ps",
    "show",
    "tags",
    "version",
]

CHAT = Dialect(
    name="ollama",
    request=OllamaChatRequest,
    read=read_chat,
    respond=respond_chat,
    writer=ChatWriter,
    error=error_object,
    fields={"response_format": "format", "reasoning_effort": "think", "enable_thinking": "think"},
)
GENERATE = Dialect(
    name="ollama",
    request=GenerateRequest,
    read=read_generate,
    respond=respond_generate,
    writer=GenerateWriter,
    error=error_object,
    fields={"messages": "prompt", "response_format": "format", "reasoning_effort": "think", "enable_thinking": "think"},
)
