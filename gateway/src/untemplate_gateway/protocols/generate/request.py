"""Requests of vLLM's endpoint for tokens.

Source: vLLM 0.32, ``entrypoints/scale_out/token_in_token_out/protocol.py``.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from ...errors import bad_request, unsupported
from ...generation import Generation
from ...notes import Notes
from ..fields import about, read_as, unknown
from ..parameters import (
    Limit,
    Request,
    SamplingFields,
    StreamOptions,
    StructuredOutputs,
    TokenId,
    constraint_of,
    limit_of,
    reports_of,
    sampling_of,
    stop_strings,
    usage_in_stream,
)


class SamplingParams(
    SamplingFields,
    ignored="detokenize skip_special_tokens spaces_between_special_tokens output_kind",
    refused="prompt_logprobs",
):
    """vLLM's sampling parameters."""

    n: Annotated[Annotated[int, Meta(ge=1, le=128)] | None, about("Number of choices.")] = None
    max_tokens: Annotated[Limit | None, about("Most tokens of output; the engine's limit by default.")] = None
    logprobs: Annotated[
        Annotated[int, Meta(ge=0, le=20)] | None,
        about("Report log probabilities of the tokens, in mode `text` with this many likely ones."),
    ] = None
    structured_outputs: Annotated[StructuredOutputs | None, about("Constrain the output.")] = None


class TokensRequest(
    Request,
    kw_only=True,
    ignored="token_offsets reasoning_ended reasoning_parser_kwargs parse_context cache_salt priority",
    refused="features content_parts",
):
    """Tokens to continue. No template is applied and the output is not parsed."""

    token_ids: Annotated[
        Annotated[list[TokenId], Meta(min_length=1, extra={"expected": "a list of token ids"})],
        about("The prompt."),
    ]
    sampling_params: Annotated[SamplingParams, about("The sampling parameters.")]
    request_id: Annotated[str | None, about("Id that the response repeats.")] = None
    output_mode: Annotated[
        Literal["tokens", "text"] | None, about("`text` returns the text as well as its tokens (default: `tokens`).")
    ] = None
    return_token_ids: Annotated[bool | None, about("Repeat the ids of the prompt in the response.")] = None
    stream_options: Annotated[StreamOptions | None, about("Options of a streamed response.")] = None


FIELDS: Final = {
    "prompt": "token_ids",
    **{name: f"sampling_params.{name}" for name in SamplingParams.__struct_fields__},
}
"""Field of a `Generation` → the client's name of it."""


def read_generate(body: dict[str, Any], notes: Notes | None = None) -> Generation:
    """Read a request.

    Raises:
        ApiError: a field is wrong or not supported.
    """
    asked = read_as(TokensRequest, body, notes=notes)
    params = asked.sampling_params
    stream = asked.stream or False
    tokens = asked.output_mode != "text"
    refused = {
        f"sampling_params.{name}": value for name, value in unknown(SamplingParams, body["sampling_params"]).items()
    }
    for field, value in refused.items():
        if value:  # vLLM's neutral values are all false
            raise unsupported(field, "is not supported")
    if asked.request_id is not None and len(asked.request_id) > _LONGEST_ID:
        raise bad_request("request_id", f"must have at most {_LONGEST_ID} characters")
    return Generation(
        model=asked.model or "",
        prompt=asked.token_ids,
        parse=False,
        n=params.n or 1,
        stop=stop_strings(params.stop),
        max_tokens=limit_of(params.max_tokens, "sampling_params.max_tokens"),
        sampling=sampling_of(params),
        logprobs=0 if tokens and params.logprobs is not None else params.logprobs,
        token_ids=True,
        by_token=True,
        stream=stream,
        include_usage=usage_in_stream(asked.stream_options, stream),
        extra=unknown(TokensRequest, body),
        repeated={
            "request_id": asked.request_id,
            "output_mode": "tokens" if tokens else "text",
            "prompt": asked.return_token_ids or False,
        },
        **constraint_of(params),
        **reports_of(asked),
    )


_LONGEST_ID: Final = 256
