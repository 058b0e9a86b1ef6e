"""vLLM's endpoint for tokens (``/inference/v1/generate``): token ids in, token ids out.

Source: vLLM 0.32, ``entrypoints/scale_out/token_in_token_out/protocol.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from untemplate.messages import DeltaMessage

from ..errors import bad_request, unsupported
from ..generation import Ended, Generation, Logprobs, Meta, TokenLogprob, Usage
from ..notes import Notes
from .base import Dialect
from .encoding import DONE, Writer, encode
from .fields import about, read_as, unknown
from .objects import error_object, logprob_object, reports_of, usage_object
from .parameters import (
    Choices,
    Limit,
    PromptTokens,
    Request,
    SamplingFields,
    StreamOptions,
    StructuredOutputs,
    TopLogprobs,
    common,
    limit_of,
    sampled,
    usage_in_stream,
)

_LONGEST_ID: Final = 256


class SamplingParams(
    SamplingFields,
    ignored="detokenize skip_special_tokens spaces_between_special_tokens output_kind",
    refused="prompt_logprobs",
):
    """vLLM's sampling parameters."""

    n: Annotated[Choices | None, about("Number of choices.")] = None
    max_tokens: Annotated[Limit | None, about("Most tokens of output; the engine's limit by default.")] = None
    logprobs: Annotated[
        TopLogprobs | None,
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

    token_ids: Annotated[PromptTokens, about("The prompt.")]
    sampling_params: Annotated[SamplingParams, about("The sampling parameters.")]
    request_id: Annotated[str | None, about("Id that the response repeats.")] = None
    output_mode: Annotated[
        Literal["tokens", "text"] | None, about("`text` returns the text as well as its tokens (default: `tokens`).")
    ] = None
    return_token_ids: Annotated[bool | None, about("Repeat the ids of the prompt in the response.")] = None
    stream_options: Annotated[StreamOptions | None, about("Options of a streamed response.")] = None


def read_generate(body: dict[str, Any], notes: Notes | None = None) -> Generation:
    """Read a request."""
    asked = read_as(TokensRequest, body, notes=notes)
    params = asked.sampling_params
    tokens = asked.output_mode != "text"
    for field, value in unknown(SamplingParams, body["sampling_params"]).items():
        if value:  # vLLM's neutral values are all false
            raise unsupported(f"sampling_params.{field}")
    if asked.request_id is not None and len(asked.request_id) > _LONGEST_ID:
        raise bad_request("request_id", f"must have at most {_LONGEST_ID} characters")
    return Generation(
        **common(asked, body, notes),
        **sampled(params),
        prompt=asked.token_ids,
        parse=False,
        n=params.n or 1,
        max_tokens=limit_of(params.max_tokens, "sampling_params.max_tokens"),
        logprobs=0 if tokens and params.logprobs is not None else params.logprobs,
        token_ids=True,
        by_token=True,
        include_usage=usage_in_stream(asked.stream_options, asked.stream or False),
        repeated={
            "request_id": asked.request_id,
            "output_mode": "tokens" if tokens else "text",
            "prompt": asked.return_token_ids or False,
        },
    )


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


class GenerateWriter(Writer):
    """Writes events."""

    def __init__(self, request: Generation, meta: Meta) -> None:
        super().__init__(request, meta)
        self._fixed = {"request_id": _id(request, meta), "output_mode": _mode(request)}

    def begin(self, usage: Usage) -> bytes:
        prompt = _prompt(self._request, self._meta)
        return b"" if prompt is None else self._event([], prompt_token_ids=prompt)

    def _event(self, choices: list[dict[str, Any]], **values: Any) -> bytes:
        return b"data: " + encode({**self._fixed, "choices": choices, **values}) + b"\n\n"

    def delta(self, choice: int, delta: DeltaMessage, logprobs: Logprobs = None, ids: Sequence[int] = ()) -> bytes:
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


GENERATE = Dialect(
    name="generate",
    request=TokensRequest,
    read=read_generate,
    respond=respond_generate,
    writer=GenerateWriter,
    error=error_object,
    fields={"prompt": "token_ids", **{name: f"sampling_params.{name}" for name in SamplingParams.__struct_fields__}},
)
