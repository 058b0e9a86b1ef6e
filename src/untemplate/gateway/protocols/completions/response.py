"""Responses of Completions, whole and as ``text_completion`` events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....messages import DeltaMessage
from ...errors import ApiError
from ...generation import Ended, Generation, Meta, TokenLogprob, Usage
from ..encoding import COMMENT, EVENT_STREAM, encode, encode_text
from ..objects import error_object, reports_of, usage_object

__all__ = ["CompletionsWriter", "respond_completions"]


def respond_completions(request: Generation, ended: Sequence[Ended], usage: Usage, meta: Meta) -> dict[str, Any]:
    """Return a ``text_completion``."""
    choices = []
    for one in ended:
        choice: dict[str, Any] = {
            "index": one.index,
            "text": _echoed(request, one.index) + (one.parsed.content or ""),
            "logprobs": None if one.logprobs is None else logprobs_object(one.logprobs, 0),
            "finish_reason": one.finish_reason,
        }
        reports = reports_of(request, one)
        if reports is not None:
            choice["untemplate"] = reports
        if request.token_ids:
            choice |= {"token_ids": one.token_ids, "prompt_token_ids": request.prompt_ids_of(one.index)}
        choices.append(choice)
    return {
        "id": f"cmpl-{meta.id}",
        "object": "text_completion",
        "created": meta.created,
        "model": meta.model,
        "choices": choices,
        "usage": usage_object(usage),
    }


def _echoed(request: Generation, choice: int) -> str:
    """Return the prompt that the gateway repeats. With log probabilities the engine has repeated it."""
    prompt = request.raw_prompt(choice) if request.echo and request.logprobs is None else None
    return prompt if isinstance(prompt, str) else ""


def logprobs_object(tokens: Sequence[TokenLogprob], offset: int) -> dict[str, Any]:
    """Return the API's ``logprobs``.

    Args:
        offset: characters of text before the first token.
    """
    offsets = []
    for token in tokens:
        offsets.append(offset)
        offset += len(token.token)
    return {
        "tokens": [token.token for token in tokens],
        "token_logprobs": [token.logprob for token in tokens],
        "top_logprobs": [None if token.logprob is None else dict(token.top) for token in tokens],
        "text_offset": offsets,
    }


class CompletionsWriter:
    """Writes ``text_completion`` events."""

    media_type = EVENT_STREAM
    ping = COMMENT

    def __init__(self, request: Generation, meta: Meta) -> None:
        self._request = request
        fixed = {"id": f"cmpl-{meta.id}", "object": "text_completion", "created": meta.created, "model": meta.model}
        self._head = b"data: " + encode(fixed)[:-1] + b',"choices":['
        self._before = [self._head + b'{"index":%d,"text":' % i for i in range(request.choices)]
        self._tail = b'],"usage":null}\n\n' if request.include_usage else b"]}\n\n"
        self._after = b',"logprobs":null,"finish_reason":null}' + self._tail
        self._sent = [0] * request.choices

    def begin(self, usage: Usage) -> bytes:
        request = self._request
        events = []
        for choice, before in enumerate(self._before):
            text = _echoed(request, choice)
            if request.token_ids:
                prompt = {"prompt_token_ids": request.prompt_ids_of(choice), "token_ids": []}
                events.append(before + encode_text(text) + self._after_with(prompt))
            elif text:
                events.append(before + encode_text(text) + self._after)
        return b"".join(events)

    def _after_with(self, values: dict[str, Any]) -> bytes:
        """Return the end of an event with further members of its choice."""
        return b"," + encode({"logprobs": None, "finish_reason": None, **values})[1:] + self._tail

    def delta(
        self, choice: int, delta: DeltaMessage, logprobs: list[TokenLogprob] | None = None, ids: Sequence[int] = ()
    ) -> bytes:
        text = delta.content or ""
        after = self._after
        if logprobs is not None or ids:
            shown = {} if logprobs is None else {"logprobs": logprobs_object(logprobs, self._sent[choice])}
            after = self._after_with(shown | ({"token_ids": ids} if ids else {}))
        self._sent[choice] += len(text)
        return self._before[choice] + encode_text(text) + after

    def finish(self, ended: Ended) -> bytes:
        if ended.finish_reason == "error":
            return b""
        values: dict[str, Any] = {"finish_reason": ended.finish_reason}
        reports = reports_of(self._request, ended)
        if reports is not None:
            values["untemplate"] = reports
        if self._request.token_ids:
            values["token_ids"] = None if ended.token_ids is None else ended.last_ids
        return self._before[ended.index] + b'""' + self._after_with(values)

    def end(self, usage: Usage) -> bytes:
        if not self._request.include_usage:
            return b"data: [DONE]\n\n"
        return self._head + b'],"usage":' + encode(usage_object(usage)) + b"}\n\ndata: [DONE]\n\n"

    def error(self, error: ApiError) -> bytes:
        return b"data: " + encode(error_object(error)) + b"\n\ndata: [DONE]\n\n"
