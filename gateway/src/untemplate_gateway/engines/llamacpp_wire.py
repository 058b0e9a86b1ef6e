"""Requests to llama.cpp's server and its answers: `/completion`, and errors.

Pure functions, used where llama.cpp runs in a process of the gateway and where it is an upstream.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ..errors import ApiError
from ..generation import TokenLogprob, Usage
from .base import EngineChunk, EngineError, Job
from .chunks import counted, decoded
from .servers import SERVERS, constrained


def completion(job: Job, bos: str = "") -> dict[str, Any]:
    """Return a job as the body of ``/completion``. ``bos`` is the text that llama.cpp adds before a prompt."""
    prompt = job.prompt
    if isinstance(prompt, str) and bos:
        prompt = prompt.removeprefix(bos)
    images = [base64.b64encode(image).decode() for image in job.images]
    return {
        "prompt": {"prompt_string": prompt, "multimodal_data": images} if images else prompt,
        "n_predict": -1 if job.max_tokens is None else job.max_tokens,
        "stream": True,
        "return_tokens": True,
        "cache_prompt": True,
        **_sampling(job),
        **({} if job.logprobs is None else {"n_probs": max(1, job.logprobs)}),
        **({} if job.grammar is None else job.grammar.request("llama.cpp")),
        **constrained(job.constraint, SERVERS["llama.cpp"]),
    }


def _sampling(job: Job) -> dict[str, Any]:
    """Return the sampling parameters by llama.cpp's names. The gateway itself ends outputs at tokens of a request."""
    fields = job.sampling.given()
    fields.pop("stop_token_ids", None)
    if "repetition_penalty" in fields:
        fields["repeat_penalty"] = fields.pop("repetition_penalty")
    if "logit_bias" in fields:
        fields["logit_bias"] = [[int(token), bias] for token, bias in fields["logit_bias"].items()]
    return fields


def image_marker(properties: Mapping[str, Any]) -> str | None:
    """Return the text that stands for an image in prompts, from ``/props``; ``None`` if the model sees no images."""
    modalities, marker = properties.get("modalities"), properties.get("media_marker")
    sees = isinstance(modalities, dict) and modalities.get("vision") is True
    return marker if sees and isinstance(marker, str) and marker else None


# -- Responses ---------------------------------------------------------------------------------------------------


class _Likely(msgspec.Struct, gc=False):
    id: int
    token: str
    logprob: float
    top_logprobs: list[_Likely] = []


class _Timings(msgspec.Struct, gc=False):
    cache_n: Any = 0
    prompt_ms: float = 0.0
    predicted_ms: float = 0.0


class _Error(msgspec.Struct, gc=False):
    code: int = 500
    message: str = ""
    type: str = ""


class _Answer(msgspec.Struct, gc=False):
    content: str = ""
    tokens: list[int] = []
    stop: bool = False
    stop_type: str = ""
    tokens_predicted: Any = 0
    tokens_evaluated: Any = 0
    timings: _Timings | None = None
    completion_probabilities: list[_Likely] | None = None
    error: _Error | None = None


_ANSWER: Final = msgspec.json.Decoder(_Answer)


def piece_of(event: bytes, logprobs: int | None) -> EngineChunk:
    """Return the chunk of an event of ``/completion``.

    Raises:
        ApiError: the event is an error.
    """
    try:
        answer = decoded(_ANSWER, event)
    except msgspec.DecodeError:
        raise EngineError("llama.cpp sent an invalid event") from None
    if answer.error is not None:
        raise refused(answer.error.code, answer.error.message)
    likely = None
    if logprobs is not None and answer.completion_probabilities is not None:
        likely = [
            TokenLogprob(
                one.token,
                one.logprob,
                [(other.token, other.logprob) for other in one.top_logprobs[:logprobs]],
                one.id,
            )
            for one in answer.completion_probabilities
        ]
    if not answer.stop:
        return EngineChunk(answer.content, answer.tokens, None, likely)
    usage = Usage(counted(answer.tokens_evaluated), counted(answer.tokens_predicted))
    if (timings := answer.timings) is not None:
        usage.cached_tokens = counted(timings.cache_n)
        usage.prompt_ns = max(0, int(timings.prompt_ms * 1e6))
        usage.completion_ns = max(0, int(timings.predicted_ms * 1e6))
    reason = "length" if answer.stop_type == "limit" else "stop"
    return EngineChunk(answer.content, answer.tokens, reason, likely, usage)


def refused(status: int, message: str) -> ApiError:
    """Return the error for a request that llama.cpp refuses."""
    if status == 501 or "is not OAI compatible" in message:
        return ApiError(501, f"llama.cpp: {message}", code="not_supported")
    too_long = ("context" in message and "exceed" in message) or "is too large to process" in message
    if too_long or (400 <= status < 500 and status != 404):
        code = "context_length_exceeded" if too_long else "invalid_request"
        return ApiError(400, f"llama.cpp: {message}", param="messages" if too_long else None, code=code)
    problem = "llama.cpp is not ready" if status == 503 else "llama.cpp failed"
    return EngineError(problem, status=503 if status == 503 else 502, detail=message)
