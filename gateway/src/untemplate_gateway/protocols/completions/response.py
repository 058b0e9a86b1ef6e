"""Responses of Completions, whole and as ``text_completion`` events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from untemplate.messages import DeltaMessage

from ...generation import Ended, Generation, Meta, TokenLogprob, Usage
from ..encoding import ChunkWriter, encode_text
from ..objects import reports_of, usage_object


def respond_completions(request: Generation, ended: Sequence[Ended], usage: Usage, meta: Meta) -> dict[str, Any]:
    """Return a ``text_completion``."""
    choices = []
    for one in ended:
        choice: dict[str, Any] = {
            "index": one.index,
            "text": _echoed(request, one.index) + (one.parsed.content or ""),
            "logprobs": None if one.logprobs is None else logprobs_object(one.logprobs, 0),
            "finish_reason": one.finish_reason,
            **reports_of(request, one),
        }
        if request.token_ids:
            choice |= {"token_ids": one.token_ids, "prompt_token_ids": meta.prompt_ids_of(request, one.index)}
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


class CompletionsWriter(ChunkWriter):
    """Writes ``text_completion`` events."""

    def __init__(self, request: Generation, meta: Meta) -> None:
        fixed = {"id": f"cmpl-{meta.id}", "object": "text_completion", "created": meta.created, "model": meta.model}
        super().__init__(request, fixed, choices=request.choices, field=b"text", nothing=b'""')
        self._meta = meta
        self._sent = [0] * request.choices

    def begin(self, usage: Usage) -> bytes:
        request = self._request
        events = []
        for choice, before in enumerate(self._before):
            text = _echoed(request, choice)
            if request.token_ids:
                prompt = {"prompt_token_ids": self._meta.prompt_ids_of(request, choice), "token_ids": []}
                events.append(before + encode_text(text) + self._after_with(prompt))
            elif text:
                events.append(before + encode_text(text) + self._after)
        return b"".join(events)

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
