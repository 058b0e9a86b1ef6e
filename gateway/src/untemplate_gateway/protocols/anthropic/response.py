"""Responses of Anthropic's Messages, whole and as events.

* Thinking blocks have an empty signature.
* ``input`` is an object; see `arguments` for arguments that are not one. In a stream, cut arguments stay the prefix
  that was written, and broken ones are closed where they break: see `guard`.

Sources: Anthropic API reference, "Messages", "Streaming messages", "Errors"; anthropic-python's ``accumulate_event``
for what clients require.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from untemplate.messages import DeltaMessage

from ...errors import ApiError
from ...generation import Ended, Generation, Meta, TokenLogprob, Usage
from ..arguments import arguments_object
from ..encoding import EVENT_STREAM, encode_text, event, timestamp
from ..guard import ArgumentsGuard
from ..objects import merged_items, reports_of


def respond_messages(request: Generation, ended: Sequence[Ended], usage: Usage, meta: Meta) -> dict[str, Any]:
    """Return a ``message``."""
    (one,) = ended
    reason, stop = _stop(one)
    return _message(meta, _blocks(one), usage, reason, stop) | reports_of(request, one)


def models(data: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return OpenAI's model objects as Anthropic's list of models."""
    shown = [
        {
            "type": "model",
            "id": model["id"],
            "display_name": model["id"],
            "created_at": timestamp(model.get("created", 0)),
        }
        for model in data
    ]
    ends = {"first_id": shown[0]["id"], "last_id": shown[-1]["id"]} if shown else {"first_id": None, "last_id": None}
    return {"data": shown, "has_more": False, **ends}


def _message(
    meta: Meta, blocks: list[dict[str, Any]], usage: Usage, reason: str | None, stop: str | None
) -> dict[str, Any]:
    return {
        "id": f"msg_{meta.id}",
        "type": "message",
        "role": "assistant",
        "model": meta.model,
        "content": blocks,
        "stop_reason": reason,
        "stop_sequence": stop,
        "usage": _usage(usage),
    }


def _usage(usage: Usage) -> dict[str, Any]:
    """Return ``usage``. ``input_tokens`` are the tokens that were not in the cache."""
    return {
        "input_tokens": max(usage.prompt_tokens - usage.cached_tokens, 0),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
    }


_REASONS: Final = {"length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


def _stop(ended: Ended) -> tuple[str, str | None]:
    """Return ``stop_reason`` and ``stop_sequence``. After tool calls a stop string is not the reason."""
    if ended.stop is not None and ended.finish_reason != "tool_calls":
        return "stop_sequence", ended.stop
    return _REASONS.get(ended.finish_reason, "end_turn"), None


def _blocks(ended: Ended) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for item in merged_items(ended.parsed):
        call = item.call
        if call is not None:
            arguments = arguments_object(call.function.arguments, cut=call.status == "incomplete")
            blocks.append({"type": "tool_use", "id": call.id, "name": call.function.name, "input": arguments})
        elif item.type == "reasoning":
            blocks.append({"type": "thinking", "thinking": item.text or "", "signature": ""})
        else:
            blocks.append({"type": "text", "text": item.text or ""})
    return blocks


_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""Status → type of an error. Source: Anthropic, "Errors"."""


def error_object(error: ApiError) -> dict[str, Any]:
    """Return the body of an error."""
    kind = _TYPES.get(error.status, "invalid_request_error" if error.status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": error.message}}


# -- The stream --------------------------------------------------------------------------------------------------

_PING: Final = event("ping", {"type": "ping"})
_DELTAS: Final = {
    "content": ("text_delta", "text"),
    "reasoning": ("thinking_delta", "thinking"),
    "tool_call": ("input_json_delta", "partial_json"),
}
"""Kind of a block → the type of its deltas, and the field of their text."""


class MessagesWriter:
    """Writes the events of a streamed message."""

    media_type = EVENT_STREAM
    ping = _PING

    def __init__(self, request: Generation, meta: Meta) -> None:
        self._request = request
        self._meta = meta
        self._index = -1
        """Index of the open block, or of the last one."""
        self._kind = ""
        """Kind of the open block: ``content``, ``reasoning``, ``tool_call``; ``""`` if none is open."""
        self._head = b""
        """Bytes before the text of a delta of the open block."""
        self._guard = ArgumentsGuard()
        """Filters the arguments of the open call."""
        self._ended: Ended | None = None

    def begin(self, usage: Usage) -> bytes:
        message = _message(self._meta, [], usage, None, None)
        return event("message_start", {"type": "message_start", "message": message}) + _PING

    def delta(
        self, choice: int, delta: DeltaMessage, logprobs: list[TokenLogprob] | None = None, ids: Sequence[int] = ()
    ) -> bytes:
        text = delta.content
        if text is not None and self._kind == "content":
            return self._head + encode_text(text) + b"}}\n\n"
        out = b""
        if delta.reasoning:
            if self._kind != "reasoning":
                out += self._open("reasoning", {"type": "thinking", "thinking": "", "signature": ""})
            out += self._append(delta.reasoning)
        if text:
            if self._kind != "content":
                out += self._open("content", {"type": "text", "text": ""})
            out += self._append(text)
        for call in delta.tool_calls or ():
            function = call.function
            if call.id is not None:
                name = (function.name if function is not None else None) or ""
                out += self._open("tool_call", {"type": "tool_use", "id": call.id, "name": name, "input": {}})
                self._guard = ArgumentsGuard()
            if function is not None and function.arguments:
                through = self._guard.feed(function.arguments)
                if through:
                    out += self._append(through)
        return out

    def _append(self, text: str) -> bytes:
        return self._head + encode_text(text) + b"}}\n\n"

    def _open(self, kind: str, block: dict[str, Any]) -> bytes:
        out = self._close()
        self._index += 1
        self._kind = kind
        delta, field = _DELTAS[kind]
        self._head = (
            b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"%b","%b":'
            % (self._index, delta.encode(), field.encode())
        )
        return out + event(
            "content_block_start", {"type": "content_block_start", "index": self._index, "content_block": block}
        )

    def _close(self) -> bytes:
        if not self._kind:
            return b""
        index = self._index
        out = b""
        if self._kind == "reasoning":  # clients wait for the signature of a thinking block
            delta = {"type": "signature_delta", "signature": ""}
            out = event("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta})
        elif self._kind == "tool_call" and (rest := self._guard.finish()):
            out = self._append(rest)
        self._kind = ""
        return out + event("content_block_stop", {"type": "content_block_stop", "index": index})

    def finish(self, ended: Ended) -> bytes:
        self._ended = ended
        return self._close()

    def end(self, usage: Usage) -> bytes:
        ended = self._ended
        assert ended is not None  # finish() comes first
        reason, stop = _stop(ended)
        closing = {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": stop},
            "usage": _usage(usage),
            **reports_of(self._request, ended),
        }
        return event("message_delta", closing) + event("message_stop", {"type": "message_stop"})

    def error(self, error: ApiError) -> bytes:
        return self._close() + event("error", error_object(error))
