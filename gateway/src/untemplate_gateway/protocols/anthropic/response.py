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

from ...errors import ApiError
from ...generation import Ended, Generation, Meta, Usage
from ..arguments import arguments_object
from ..encoding import ItemWriter, encode_text, event, timestamp
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
            blocks.append(_tool_use(call.id, call.function.name, arguments))
        else:
            blocks.append(_text(item.type, item.text or ""))
    return blocks


def _text(kind: str, text: str) -> dict[str, Any]:
    return (
        {"type": "thinking", "thinking": text, "signature": ""}
        if kind == "reasoning"
        else {"type": "text", "text": text}
    )


def _tool_use(id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


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


class MessagesWriter(ItemWriter):
    """Writes the events of a streamed message."""

    ping = _PING

    def __init__(self, request: Generation, meta: Meta) -> None:
        super().__init__(request, meta)
        self._index = -1
        """Index of the open block, or of the last one."""
        self._guard = ArgumentsGuard()
        """Filters the arguments of the open call."""

    def begin(self, usage: Usage) -> bytes:
        message = _message(self._meta, [], usage, None, None)
        return event("message_start", {"type": "message_start", "message": message}) + _PING

    def _append(self, text: str) -> bytes:
        return self._head + encode_text(text) + b"}}\n\n"

    def _append_arguments(self, text: str) -> bytes:
        through = self._guard.feed(text)
        return self._append(through) if through else b""

    def _open(self, kind: str, id: str = "", name: str = "") -> bytes:
        out = self._close()
        self._index += 1
        self._kind = kind
        self._guard = ArgumentsGuard()
        delta, field = _DELTAS[kind]
        self._head = (
            b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"%b","%b":'
            % (self._index, delta.encode(), field.encode())
        )
        block = _tool_use(id, name, {}) if kind == "tool_call" else _text(kind, "")
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
        reason, stop = _stop(self._ended)
        closing = {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": stop},
            "usage": _usage(usage),
            **reports_of(self._request, self._ended),
        }
        return event("message_delta", closing) + event("message_stop", {"type": "message_stop"})

    def error(self, error: ApiError) -> bytes:
        return self._close() + event("error", error_object(error))
