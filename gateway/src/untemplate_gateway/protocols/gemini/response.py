"""Responses of Google's Gemini API, whole, as events and as a growing JSON array.

* A call is one part: it is sent when its arguments are complete. ``args`` is an object; see `arguments` for arguments
  that are not one.
* The last chunk of a stream has the finish reasons and the usage.

Source: Gemini API reference, "GenerateContentResponse"; Google's API design guide, "Errors".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from untemplate.messages import DeltaMessage

from ...errors import ApiError
from ...generation import Ended, Generation, Logprobs, Meta, Usage
from ..arguments import arguments_object
from ..encoding import HeldCall, HeldCalls, Writer, encode, is_cut
from ..objects import merged_items, reports_of

_REASONS: Final = {"length": "MAX_TOKENS", "content_filter": "SAFETY", "error": "OTHER"}
_STATUSES: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
"""HTTP status → Google's name of it."""


def error_object(error: ApiError) -> dict[str, Any]:
    """Return the body of an error."""
    status = _STATUSES.get(error.status, "INVALID_ARGUMENT" if error.status < 500 else "INTERNAL")
    return {"error": {"code": error.status, "message": error.message, "status": status}}


def model_object(name: str, context: int | None) -> dict[str, Any]:
    """Return the description of a model."""
    shown: dict[str, Any] = {"name": f"models/{name}", "displayName": name, "version": "001"}
    if context:
        shown |= {"inputTokenLimit": context, "outputTokenLimit": context}
    return {**shown, "supportedGenerationMethods": ["generateContent", "countTokens", "embedContent"]}


def respond_generate_content(request: Generation, ended: Sequence[Ended], usage: Usage, meta: Meta) -> dict[str, Any]:
    """Return a ``GenerateContentResponse``."""
    candidates = [
        {**_candidate(one.index, _parts(one)), "finishReason": _reason(one), **reports_of(request, one)}
        for one in ended
    ]
    return {"candidates": candidates, "usageMetadata": _usage(usage), **_names(meta)}


def _names(meta: Meta) -> dict[str, Any]:
    return {"modelVersion": meta.model, "responseId": meta.id}


def _candidate(index: int, parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"content": {"parts": parts, "role": "model"}, "index": index}


def _reason(ended: Ended) -> str:
    return _REASONS.get(ended.finish_reason, "STOP")


def _usage(usage: Usage) -> dict[str, Any]:
    shown = {
        "promptTokenCount": usage.prompt_tokens,
        "candidatesTokenCount": usage.completion_tokens - usage.reasoning_tokens,
        "totalTokenCount": usage.total_tokens,
    }
    if usage.reasoning_tokens:
        shown["thoughtsTokenCount"] = usage.reasoning_tokens
    if usage.cached_tokens:
        shown["cachedContentTokenCount"] = usage.cached_tokens
    return shown


def _parts(ended: Ended) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for item in merged_items(ended.parsed):
        call = item.call
        if call is not None:
            held = HeldCall(0, call.id, call.function.name, call.function.arguments)
            parts.append(_call(held, cut=call.status == "incomplete"))
        elif item.text:
            parts.append(_text(item.text, thought=item.type == "reasoning"))
    return parts


def _text(text: str, *, thought: bool) -> dict[str, Any]:
    return {"text": text, "thought": True} if thought else {"text": text}


def _call(call: HeldCall, *, cut: bool = False) -> dict[str, Any]:
    return {"functionCall": {"id": call.id, "name": call.name, "args": arguments_object(call.arguments, cut=cut)}}


class EventWriter(Writer):
    """Writes a stream as server-sent events (``alt=sse``)."""

    def __init__(self, request: Generation, meta: Meta) -> None:
        super().__init__(request, meta)
        self._calls = HeldCalls()
        self._all_ended: list[tuple[Ended, list[dict[str, Any]]]] = []
        """The choices that have ended, each with its last parts."""

    def _frame(self, value: dict[str, Any]) -> bytes:
        return b"data: " + encode(value) + b"\r\n\r\n"

    def delta(self, choice: int, delta: DeltaMessage, logprobs: Logprobs = None, ids: Sequence[int] = ()) -> bytes:
        parts: list[dict[str, Any]] = []
        if choice in self._calls.open and (delta.reasoning or delta.content):  # the call is whole
            parts += map(_call, self._calls.end(choice))
        if delta.reasoning:
            parts.append(_text(delta.reasoning, thought=True))
        if delta.content:
            parts.append(_text(delta.content, thought=False))
        for call in delta.tool_calls or ():
            parts += map(_call, self._calls.add(choice, call))
        if not parts:
            return b""
        return self._frame({"candidates": [_candidate(choice, parts)], **_names(self._meta)})

    def finish(self, ended: Ended) -> bytes:
        self._all_ended.append((ended, [_call(call, cut=is_cut(ended)) for call in self._calls.end(ended.index)]))
        return b""

    def end(self, usage: Usage) -> bytes:
        candidates = [
            {**_candidate(one.index, parts), "finishReason": _reason(one), **reports_of(self._request, one)}
            for one, parts in self._all_ended
        ]
        return self._frame({"candidates": candidates, "usageMetadata": _usage(usage), **_names(self._meta)})

    def error(self, error: ApiError) -> bytes:
        return self._frame(error_object(error))


class ArrayWriter(EventWriter):
    """Writes a stream as a JSON array."""

    media_type = "application/json"
    ping = b""
    _begun = False

    def _frame(self, value: dict[str, Any]) -> bytes:
        before, self._begun = (b",\r\n" if self._begun else b"["), True
        return before + encode(value)

    def end(self, usage: Usage) -> bytes:
        return super().end(usage) + b"]"

    def error(self, error: ApiError) -> bytes:
        return super().error(error) + b"]"
