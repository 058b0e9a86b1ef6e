"""OpenAI's older Completions (``/v1/completions``): a raw prompt in, the raw output out.

Source: OpenAI API reference, "Completions (legacy)".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from untemplate.messages import DeltaMessage

from ..errors import unsupported
from ..generation import Ended, Generation, Logprobs, Meta, TokenLogprob, Usage
from ..notes import Notes
from .base import Dialect
from .encoding import ChunkWriter, encode_text
from .fields import about, read_as
from .objects import error_object, reports_of, usage_object
from .parameters import (
    Choices,
    Limit,
    SampledRequest,
    StreamOptions,
    TokenId,
    TopLogprobs,
    common,
    limit_of,
    prompts_of,
    sampled,
    usage_in_stream,
)

_DEFAULT_MAX_TOKENS = 16
"""The API's own default."""


class CompletionsRequest(
    SampledRequest,
    kw_only=True,
    refused="suffix",
    ignored="user metadata skip_special_tokens spaces_between_special_tokens add_special_tokens",
):
    """A Completions request. The output is returned unparsed, markers and reasoning included."""

    prompt: Annotated[
        str | list[TokenId | str | list[TokenId]],
        about(
            "The prompt: text or token ids. No template is applied. A list of prompts gets choices for each, in order.",
            expected="a string, a list of token ids, or a list of these",
        ),
    ]
    n: Annotated[Choices | None, about("Number of choices for each prompt.")] = None
    best_of: Annotated[Choices | None, about("Must be equal to `n`.")] = None
    max_tokens: Annotated[
        Limit | None,
        about(
            f"Most tokens of output; {_DEFAULT_MAX_TOKENS} by default. 0 with `echo` and `logprobs` scores the prompt."
        ),
    ] = None
    logprobs: Annotated[TopLogprobs | None, about("Report log probabilities, with this many likely tokens.")] = None
    echo: Annotated[
        bool | None, about("Repeat the prompt before the output; with `logprobs`, report those of its tokens.")
    ] = None
    stream_options: Annotated[StreamOptions | None, about("Options of a streamed response.")] = None
    return_token_ids: Annotated[bool | None, about("Return the token ids of the prompt and of the output.")] = None


def read_completions(body: dict[str, Any], notes: Notes | None = None) -> Generation:
    """Read a request."""
    asked = read_as(CompletionsRequest, body, notes=notes)
    n = asked.n or 1
    if (asked.best_of or n) != n:
        raise unsupported("best_of", "must be equal to n")
    prompt, *further = prompts_of(asked.prompt, "prompt")
    most: int | None = _DEFAULT_MAX_TOKENS
    if asked.max_tokens is not None:
        scores = asked.max_tokens == 0 and asked.echo and asked.logprobs is not None
        most = 0 if scores else limit_of(asked.max_tokens, "max_tokens")
    if asked.echo:
        _check_echo(asked, [prompt, *further])
    return Generation(
        **common(asked, body, notes),
        **sampled(asked),
        prompt=prompt,
        further_prompts=further,
        parse=False,
        n=n,
        max_tokens=most,
        logprobs=asked.logprobs,
        echo=asked.echo or False,
        include_usage=usage_in_stream(asked.stream_options, asked.stream or False),
        token_ids=asked.return_token_ids or False,
    )


def _check_echo(asked: CompletionsRequest, prompts: list[str | list[int]]) -> None:
    """Refuse to repeat what only an engine could repeat."""
    if asked.logprobs is None and not all(isinstance(prompt, str) for prompt in prompts):
        raise unsupported("echo", "needs a prompt that is text, or logprobs")
    if asked.logprobs is not None and asked.stop:
        raise unsupported("echo", "with logprobs excludes stop")


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
        super().__init__(request, meta, fixed, choices=request.choices, field=b"text", nothing=b'""')
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

    def delta(self, choice: int, delta: DeltaMessage, logprobs: Logprobs = None, ids: Sequence[int] = ()) -> bytes:
        text = delta.content or ""
        after = self._after
        if logprobs is not None or ids:
            shown = {} if logprobs is None else {"logprobs": logprobs_object(logprobs, self._sent[choice])}
            after = self._after_with(shown | ({"token_ids": ids} if ids else {}))
        self._sent[choice] += len(text)
        return self._before[choice] + encode_text(text) + after


COMPLETIONS = Dialect(
    name="completions",
    request=CompletionsRequest,
    read=read_completions,
    respond=respond_completions,
    writer=CompletionsWriter,
    error=error_object,
)
