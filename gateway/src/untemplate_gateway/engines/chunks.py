"""The chunks that an OpenAI-compatible server streams, as far as the gateway needs them.

Chunks are read as far as possible: a field that is missing or has another type than OpenAI's counts as absent.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from untemplate.messages import DeltaFunctionCall, DeltaMessage, DeltaToolCall

from ..generation import TokenLogprob, Usage
from .base import EngineChunk, EngineError


class _Top(msgspec.Struct, gc=False):
    token: str = ""
    logprob: float = 0.0


class _Token(msgspec.Struct, gc=False):
    token: str = ""
    logprob: float | None = None
    top_logprobs: list[_Top] | None = None
    id: int | None = None


class _Logprobs(msgspec.Struct, gc=False):
    """Log probabilities, in the shape of chat (``content``) or of completions."""

    content: list[_Token] | None = None
    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None
    top_logprobs: list[dict[str, float | None] | None] | None = None


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: Any = None
    """Text; some servers send the object itself."""


class _Call(msgspec.Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class ServerDelta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[_Call] | None = None


_NULL: Final = msgspec.Raw(b"null")


class ServerChoice(msgspec.Struct, gc=False):
    text: str | None = None
    token_ids: list[int] | None = None
    finish_reason: str | None = None
    logprobs: msgspec.Raw = _NULL
    delta: ServerDelta | None = None
    message: ServerDelta | None = None


class _Cached(msgspec.Struct, gc=False):
    cached_tokens: Any = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: Any = None
    completion_tokens: Any = None
    prompt_tokens_details: _Cached | None = None


class Chunk(msgspec.Struct, gc=False):
    choices: list[ServerChoice] | None = None
    usage: _Usage | None = None
    error: Any = None
    object: Any = ""
    message: Any = None


_T = TypeVar("_T")
_log: Final = logging.getLogger("untemplate.gateway.engines")
_MOST_TOKENS: Final = 1 << 32
_CHUNK: Final = msgspec.json.Decoder(Chunk)
_LOGPROBS: Final = msgspec.json.Decoder(_Logprobs | None)


def decoded(decoder: msgspec.json.Decoder[_T], text: bytes | msgspec.Raw) -> _T:
    """Return the value of a JSON text. Invalid UTF-8, which models write and servers pass on, becomes U+FFFD.

    Raises:
        msgspec.DecodeError: the text is not such a value.
    """
    try:
        return decoder.decode(text)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        return decoder.decode(bytes(text).decode("utf-8", "replace"))


def read_chunk(event: bytes) -> Chunk:
    """Return the chunk of an event.

    Raises:
        EngineError: the event is an error, or not valid.
    """
    try:
        chunk = decoded(_CHUNK, event)
    except msgspec.DecodeError:
        shown = event[:200].decode("utf-8", "replace")
        raise EngineError("the upstream sent an invalid event", code="bad_upstream", detail=shown) from None
    if chunk.error is not None or chunk.object == "error":
        text = chunk.error.get("message") if isinstance(chunk.error, dict) else chunk.error
        raise EngineError("the upstream failed", code="upstream_error", detail=str(text or chunk.message))
    return chunk


def usage_of(usage: _Usage) -> Usage:
    details = usage.prompt_tokens_details
    cached = 0 if details is None else counted(details.cached_tokens)
    return Usage(counted(usage.prompt_tokens), counted(usage.completion_tokens), cached_tokens=cached)


def counted(tokens: Any) -> int:
    """Return a number of tokens that a server reports; 0 if it reports none, or a value that is not a number of tokens.

    Limits per key and metrics add these numbers up. 0 has the gateway count what it has received.
    """
    if isinstance(tokens, int) and not isinstance(tokens, bool) and 0 <= tokens <= _MOST_TOKENS:
        return tokens
    if tokens is not None:
        shown = str(tokens)[:40]
        _log.warning("the upstream reports %s tokens, which cannot be: the gateway counts them itself", shown)
    return 0


def reason_of(reason: str) -> str:
    if reason in ("length", "content_filter"):
        return reason
    if reason in ("abort", "error"):
        raise EngineError(f"the upstream ended the output: {reason}", code="upstream_error")
    return "stop"


def ended(last: EngineChunk | None) -> EngineChunk:
    if last is None:
        raise ended_early()
    return last


def ended_early() -> EngineError:
    return EngineError("the upstream broke off in the middle of the output", code="upstream_broke_off")


def logprobs_of(raw: msgspec.Raw, top: int) -> list[TokenLogprob] | None:
    """Return the log probabilities in the shape of chat or completions, with the ``top`` likeliest of each token."""
    try:
        found: _Logprobs | None = decoded(_LOGPROBS, raw)
    except msgspec.DecodeError:
        return None
    if found is None:
        return None
    if found.content is not None:
        return [
            TokenLogprob(
                one.token,
                0.0 if one.logprob is None else one.logprob,
                [(other.token, other.logprob) for other in (one.top_logprobs or ())[:top]],
                one.id,
            )
            for one in found.content
        ]
    tokens = found.tokens or []
    values = found.token_logprobs or []
    tops = found.top_logprobs or [None] * len(tokens)
    return [
        TokenLogprob(token, value, _likeliest(rivals, top))
        for token, value, rivals in zip(tokens, values, tops, strict=False)
    ]


def _likeliest(rivals: Mapping[str, float | None] | None, top: int) -> list[tuple[str, float]]:
    """Return the likeliest tokens. vLLM lists the token itself first, also if it is none of them."""
    found = [(token, value or 0.0) for token, value in (rivals or {}).items()]
    return sorted(found, key=lambda one: -one[1])[:top]


def parsed_by_server(delta: ServerDelta, begun: set[int]) -> list[DeltaMessage]:
    """Return the parts that the server has parsed itself. ``begun`` holds the calls whose name was already sent."""
    found = []
    reasoning = delta.reasoning or delta.reasoning_content
    if reasoning:
        found.append(DeltaMessage(reasoning=reasoning))
    for position, call in enumerate(delta.tool_calls or ()):
        function = call.function or _Function()
        arguments = function.arguments
        if arguments is not None and not isinstance(arguments, str):
            arguments = msgspec.json.encode(arguments).decode()
        part = DeltaToolCall(index=position if call.index is None else call.index)
        if part.index in begun:
            part.function = DeltaFunctionCall(arguments=arguments or "")
        else:
            begun.add(part.index)
            part.id, part.type = call.id or f"call_{part.index}", "function"
            part.function = DeltaFunctionCall(name=function.name or "", arguments=arguments or "")
        found.append(DeltaMessage(tool_calls=[part]))
    return found
