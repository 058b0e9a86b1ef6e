"""Ollama's API: ``/api/chat``, ``/api/generate``, and the endpoints that list and describe models."""

from ..base import Dialect
from .request import GenerateRequest, OllamaChatRequest, read_chat, read_generate
from .response import ChatWriter, GenerateWriter, error_object, respond_chat, respond_generate

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
