"""Requests of the gateway's own utilities: tokens of a text, and parsing without an engine."""

from __future__ import annotations

from typing import Annotated, Any

from .fields import Closed, Open, about
from .parameters import ModelName, TokenId

Tokens = Annotated[list[TokenId], about("", expected="a list of token ids")]


class TokenizeRequest(Open, ignored="add_special_tokens return_token_strs"):
    """A request for the token ids of a text, or of messages through the chat template."""

    model: ModelName = None
    prompt: Annotated[str | None, about("The text; required without `messages`.")] = None
    messages: Annotated[
        list[Any] | None,
        about("A conversation. With it the request may have all fields of a Chat Completions request."),
    ] = None


class DetokenizeRequest(Open):
    """A request for the text of token ids."""

    tokens: Annotated[Tokens, about("The token ids.")]
    model: ModelName = None


class ParseRequest(Closed):
    """A request to parse raw output to a message."""

    text: Annotated[str, about("The raw output.")]
    model: Annotated[str | None, about("Name of the model whose format is used.")] = None
    format: Annotated[
        str | dict[str, Any] | None,
        about("Name of a format in the catalogue, or a Format as JSON.", expected="a string or an object"),
    ] = None
    reasoning: Annotated[str | None, about("Name of the format whose reasoning is used.")] = None
    template: Annotated[str | None, about("Chat template in Jinja from which the format is inferred.")] = None
    tools: Annotated[list[Any] | None, about("Tools, as in Chat Completions.")] = None
    tool_choice: Annotated[Any, about("Tool choice, as in Chat Completions.")] = None
    prompt: Annotated[
        str | None, about("The prompt, from which the parser knows whether the output begins in reasoning.")
    ] = None
    token_ids: Annotated[Tokens | None, about("Token ids of the output.")] = None
    finish_reason: Annotated[str | None, about("Why the engine stopped.")] = None
    messages: Annotated[
        list[dict[str, Any]] | None, about("The conversation, for formats that number their calls.")
    ] = None
    policy: Annotated[dict[str, Any] | None, about("Parsing policies that differ from the defaults.")] = None
    spans: Annotated[bool | None, about("Report the meaning of each part of the text.")] = None
