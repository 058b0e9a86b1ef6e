"""Anthropic's Messages (``/v1/messages``, ``/v1/messages/count_tokens``)."""

from ..base import Dialect
from .request import MessagesRequest, read_messages
from .response import MessagesWriter, error_object, respond_messages

MESSAGES = Dialect(
    name="anthropic",
    request=MessagesRequest,
    read=read_messages,
    respond=respond_messages,
    writer=MessagesWriter,
    error=error_object,
    fields={
        "response_format": "output_config.format",
        "thinking_budget": "thinking.budget_tokens",
        "reasoning_effort": "output_config.effort",
        "enable_thinking": "thinking.type",
    },
)
