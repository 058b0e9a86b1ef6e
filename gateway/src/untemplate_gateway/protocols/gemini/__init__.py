"""Google's Gemini API (``/v1beta/models/NAME:generateContent`` and its relatives)."""

from dataclasses import replace

from ..base import Dialect
from .request import GenerateContentRequest, read_generate_content
from .response import ArrayWriter, EventWriter, error_object, respond_generate_content

GEMINI = Dialect(
    name="gemini",
    request=GenerateContentRequest,
    read=read_generate_content,
    respond=respond_generate_content,
    writer=EventWriter,
    error=error_object,
    fields={
        "messages": "contents",
        "response_format": "generationConfig.responseSchema",
        "thinking_budget": "generationConfig.thinkingConfig.thinkingBudget",
        "reasoning_effort": "generationConfig.thinkingConfig.thinkingLevel",
        "enable_thinking": "generationConfig.thinkingConfig.thinkingBudget",
    },
)
GEMINI_ARRAY = replace(GEMINI, writer=ArrayWriter)
"""Streams without ``alt=sse``: one JSON array, which grows."""
