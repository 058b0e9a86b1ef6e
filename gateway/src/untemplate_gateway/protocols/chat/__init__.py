"""OpenAI's Chat Completions (``/v1/chat/completions``)."""

from ..base import Dialect
from ..objects import error_object
from .request import ChatRequest, read_chat
from .response import chat_writer, respond_chat

CHAT = Dialect(
    name="chat",
    request=ChatRequest,
    read=read_chat,
    respond=respond_chat,
    writer=chat_writer,
    error=error_object,
)
