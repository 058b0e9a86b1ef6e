"""Responses of vLLM's endpoint for tokens, whole and as events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from untemplate.messages import DeltaMessage

from ...errors import ApiError
from ...generation import Ended, Generation, Meta, TokenLogprob, Usage
from ..encoding import COMMENT, DONE, EVENT_STREAM, encode
from ..objects import error_object, logprob_object, reports_of, usage_object


def respond_generate(request: Generation, ended: Sequence[Ended], usage: Usage, meta: Meta) -> dict[str, Any]:
    """Return the whole response."""
    return {
        "request_id": _id(request, meta),
        "output_mode": _mode(request),
        "created": meta.created,
        "model": meta.model,
        "choices": [
            {**_choice(request, one.index, one.token_ids, one.parsed.content, one.logprobs), **_end(request, one)}
            for one in ended
        ],
        "usage": usage_object(usage),
        "prompt_token_ids": _prompt(request, meta),
    }


def _id(request: Generation, meta: Meta) -> str:
    return f"generate-tokens-{request.repeated.get('request_id') or meta.id}"


def _mode(request: Generation) -> str:
    return str(request.repeated.get("output_mode", "tokens"))


def _prompt(request: Generation, meta: Meta) -> list[int] | None:
    return meta.prompt_ids_of(request, 0) if request.repeated.get("prompt") else None


def _choice(
    request: Generation, index: int, ids: Sequence[int] | None, text: str | None, logprobs: list[TokenLogprob] | None
) -> dict[str, Any]:
    """Return a choice or a part of it."""
    choice: dict[str, Any] = {"index": index, "token_ids": ids, "logprobs": None}
    if _mode(request) == "text":
        choice["text"] = text or ""
        if logprobs is not None:
            choice["logprobs"] = {"content": [logprob_object(token) for token in logprobs]}
    elif logprobs is not None and ids is not None:
        choice["logprobs"] = {
            "content": [
                {"token_id": i, "logprob": token.logprob, "rank": None, "top_logprobs": []}
                for i, token in zip(ids, logprobs, strict=False)
            ]
        }
    return choice


def _end(request: Generation, ended: Ended) -> dict[str, Any]:
    """Return the members that end a choice."""
    return {
        "finish_reason": ended.finish_reason,
        "stop_reason": ended.stop_token if ended.stop is None else ended.stop,
        **reports_of(request, ended),
    }


class GenerateWriter:
    """Writes events."""

    media_type = EVENT_STREAM
    ping = COMMENT

    def __init__(self, request: Generation, meta: Meta) -> None:
        self._request = request
        self._meta = meta
        self._fixed = {"request_id": _id(request, meta), "output_mode": _mode(request)}

    def begin(self, usage: Usage) -> bytes:
        prompt = _prompt(self._request, self._meta)
        return b"" if prompt is None else self._event([], prompt_token_ids=prompt)

    def _event(self, choices: list[dict[str, Any]], **values: Any) -> bytes:
        return b"data: " + encode({**self._fixed, "choices": choices, **values}) + b"\n\n"

    def delta(
        self, choice: int, delta: DeltaMessage, logprobs: list[TokenLogprob] | None = None, ids: Sequence[int] = ()
    ) -> bytes:
        part = _choice(self._request, choice, ids, delta.content, logprobs)
        return self._event([{**part, "finish_reason": None, "stop_reason": None}])

    def finish(self, ended: Ended) -> bytes:
        if ended.finish_reason == "error":
            return b""
        part = _choice(self._request, ended.index, ended.last_ids, None, None)
        return self._event([{**part, **_end(self._request, ended)}])

    def end(self, usage: Usage) -> bytes:
        last = self._event([], usage=usage_object(usage)) if self._request.include_usage else b""
        return last + DONE

    def error(self, error: ApiError) -> bytes:
        return b"data: " + encode(error_object(error)) + b"\n\n" + DONE
