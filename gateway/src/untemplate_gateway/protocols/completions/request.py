"""Requests of OpenAI's older Completions: a raw prompt.

Source: OpenAI API reference, "Completions (legacy)".
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from ...errors import unsupported
from ...generation import Generation
from ...notes import Notes
from ..fields import about, read_as, unknown
from ..parameters import (
    Limit,
    SampledRequest,
    StreamOptions,
    TokenId,
    TopLogprobs,
    constraint_of,
    limit_of,
    prompts_of,
    reports_of,
    sampling_of,
    stop_strings,
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
    n: Annotated[Annotated[int, Meta(ge=1, le=128)] | None, about("Number of choices for each prompt.")] = None
    best_of: Annotated[Annotated[int, Meta(ge=1, le=128)] | None, about("Must be equal to `n`.")] = None
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
    """Read a request.

    Raises:
        ApiError: a field is wrong or not supported.
    """
    asked = read_as(CompletionsRequest, body, notes=notes)
    n = asked.n or 1
    if (asked.best_of or n) != n:
        raise unsupported("best_of", "must be equal to n")
    stream = asked.stream or False
    prompt, *further = prompts_of(asked.prompt, "prompt")
    most: int | None = _DEFAULT_MAX_TOKENS
    if asked.max_tokens is not None:
        scores = asked.max_tokens == 0 and asked.echo and asked.logprobs is not None
        most = 0 if scores else limit_of(asked.max_tokens, "max_tokens")
    if asked.echo:
        _check_echo(asked, [prompt, *further])
    return Generation(
        model=asked.model or "",
        prompt=prompt,
        further_prompts=further,
        parse=False,
        n=n,
        stop=stop_strings(asked.stop),
        max_tokens=most,
        sampling=sampling_of(asked),
        logprobs=asked.logprobs,
        echo=asked.echo or False,
        stream=stream,
        include_usage=usage_in_stream(asked.stream_options, stream),
        extra=unknown(CompletionsRequest, body),
        **constraint_of(asked),
        token_ids=asked.return_token_ids or False,
        **reports_of(asked),
    )


def _check_echo(asked: CompletionsRequest, prompts: list[str | list[int]]) -> None:
    """Refuse to repeat what only an engine could repeat.

    Raises:
        ApiError: names the field.
    """
    if asked.logprobs is None and not all(isinstance(prompt, str) for prompt in prompts):
        raise unsupported("echo", "needs a prompt that is text, or logprobs")
    if asked.logprobs is not None and asked.stop:
        raise unsupported("echo", "with logprobs excludes stop")
