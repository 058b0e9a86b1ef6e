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
            choice |= {"token_ids": one.token_ids, "prompt_token_ids": one.prompt_token_ids}
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
        texts = [_echoed(self._request, choice) for choice in range(self._request.choices)]
        echoed = zip(self._before, texts, strict=True)
        return b"".join([before + encode_text(text) + self._after for before, text in echoed if text])

    def delta(self, choice: int, delta: DeltaMessage, logprobs: list[TokenLogprob] | None = None) -> bytes:
        text = delta.content or ""
        after = self._after
        if logprobs is not None:
            shown = logprobs_object(logprobs, self._sent[choice])
            after = b',"logprobs":' + encode(shown) + b',"finish_reason":null}' + self._tail
        self._sent[choice] += len(text)
        return self._before[choice] + encode_text(text) + after

    def finish(self, ended: Ended) -> bytes:
        if ended.finish_reason == "error":
            return b""
        data = self._before[ended.index] + b'"","logprobs":null,"finish_reason":' + encode(ended.finish_reason)
        reports = reports_of(self._request, ended)
        if reports is not None:
            data += b',"untemplate":' + encode(reports)
        if self._request.token_ids:
            data += b',"token_ids":' + encode(ended.token_ids)
            data += b',"prompt_token_ids":' + encode(ended.prompt_token_ids)
        return data + b"}" + self._tail

    def end(self, usage: Usage) -> bytes:
        if not self._request.include_usage:
            return b"data: [DONE]\n\n"
        return self._head + b'],"usage":' + encode(usage_object(usage)) + b"}\n\ndata: [DONE]\n\n"

    def error(self, error: ApiError) -> bytes:
        return b"data: " + encode(error_object(error)) + b"\n\ndata: [DONE]\n\n"
