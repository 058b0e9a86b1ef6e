"""Requests of OpenAI's older Completions: a raw prompt.

Source: OpenAI API reference, "Completions (legacy)".
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from ...errors import bad_request, unsupported
from ...generation import Generation
from ...notes import Notes
from ..fields import Ignored, about, read_as, unknown
from ..parameters import (
    Limit,
    SampledRequest,
    StreamOptions,
    TokenId,
    TopLogprobs,
    limit_of,
    sampling_of,
    stop_strings,
    usage_in_stream,
)

__all__ = ["CompletionsRequest", "read_completions"]

_DEFAULT_MAX_TOKENS = 16
"""The API's own default."""


class CompletionsRequest(SampledRequest, kw_only=True):
    """A Completions request. The output is returned unparsed, markers and reasoning included."""

    prompt: Annotated[
        str | list[TokenId | str | list[TokenId]],
        about("The prompt: text or token ids. No template is applied.", expected="a string or a list of token ids"),
    ]
    n: Annotated[Annotated[int, Meta(ge=1, le=128)] | None, about("Number of choices.")] = None
    best_of: Annotated[Annotated[int, Meta(ge=1, le=128)] | None, about("Must be equal to `n`.")] = None
    max_tokens: Annotated[Limit | None, about(f"Most tokens of output; {_DEFAULT_MAX_TOKENS} by default.")] = None
    logprobs: Annotated[TopLogprobs | None, about("Report log probabilities, with this many likely tokens.")] = None
    echo: Annotated[bool | None, about("Repeat the prompt before the output.")] = None
    stream_options: Annotated[StreamOptions | None, about("Options of a streamed response.")] = None
    suffix: Annotated[Literal[""] | None, about("Not supported.", refused="is not supported")] = None
    user: Ignored = None
    metadata: Ignored = None
    skip_special_tokens: Ignored = None
    spaces_between_special_tokens: Ignored = None
    add_special_tokens: Ignored = None
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
    prompt = _prompt(asked.prompt)
    if asked.echo and (asked.logprobs is not None or not isinstance(prompt, str)):
        raise unsupported("echo", "needs a prompt that is text, and no logprobs")
    return Generation(
        model=asked.model or "",
        prompt=prompt,
        parse=False,
        n=n,
        stop=stop_strings(asked.stop),
        max_tokens=_DEFAULT_MAX_TOKENS if asked.max_tokens is None else limit_of(asked.max_tokens, "max_tokens"),
        sampling=sampling_of(asked),
        logprobs=asked.logprobs,
        echo=asked.echo or False,
        stream=stream,
        include_usage=usage_in_stream(asked.stream_options, stream),
        extra=unknown(CompletionsRequest, body),
        **asked.constrained(),
        token_ids=asked.return_token_ids or False,
        **asked.reports(),
    )


def _prompt(value: str | list[int | str | list[int]]) -> str | list[int]:
    """Return text or token ids. A list of prompts may hold only one."""
    prompts = value if isinstance(value, list) and value and not isinstance(value[0], int) else [value]
    if len(prompts) > 1:
        raise unsupported("prompt", "only one prompt in a request is supported")
    (prompt,) = prompts
    if isinstance(prompt, str):
        return prompt
    tokens = [token for token in prompt if isinstance(token, int)] if isinstance(prompt, list) else []
    if not tokens or tokens != prompt:
        raise bad_request("prompt", "must be a string or a list of token ids")
    return tokens
