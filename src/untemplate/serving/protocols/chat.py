"""OpenAI's Chat Completions (``/v1/chat/completions``).

Rules of this module:

* What vLLM, SGLang and llama.cpp add to the API is understood under their names: ``top_k``, ``min_p``,
  ``repetition_penalty``, ``chat_template_kwargs``, ``include_reasoning``, ``continue_final_message``,
  ``thinking_budget``, ``reasoning`` and ``reasoning_content`` in messages.
* A delta is written from prebuilt bytes: only its own text is encoded anew.

Source: OpenAI API reference, "Chat Completions".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ...protocol import DeltaMessage, name_reasoning
from ..errors import ApiError, bad_request, unsupported
from ..generation import Ended, Generation, Meta, Sampling, Thinking, TokenLogprob, Usage
from .common import Fields, encode, untemplate_of

__all__ = ["CHAT", "Chat", "ChatWriter", "logprob_object", "usage_object"]

HARMLESS: Final = frozenset(
    (
        *("user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "verbosity"),
        *("prompt_cache_retention", "prediction", "add_generation_prompt", "skip_special_tokens"),
        *("spaces_between_special_tokens", "stream_options", "separate_reasoning", "return_token_ids"),
    )
)
"""Fields that change nothing here, and harm nobody."""


class Chat:
    """The dialect."""

    name = "chat"

    def read(self, body: dict[str, Any]) -> Generation:
        raise NotImplementedError

    def respond(self, request: Generation, ended: Sequence[Ended], usage: Usage, meta: Meta) -> dict[str, Any]:
        """A ``chat.completion``."""
        response: dict[str, Any] = {
            "id": f"chatcmpl-{meta.id}",
            "object": "chat.completion",
            "created": meta.created,
            "model": meta.model,
            "choices": [
                {
                    "index": one.index,
                    "message": {
                        **one.parsed.message(reasoning_field=request.reasoning_field),
                        "refusal": None,
                        "annotations": [],
                    },
                    "logprobs": None if one.logprobs is None else logprobs_object(one.logprobs),
                    "finish_reason": one.finish_reason,
                }
                for one in ended
            ],
            "usage": usage_object(usage),
        }
        inside = [untemplate_of(request, one) for one in ended]
        for choice, found in zip(response["choices"], inside, strict=True):
            if found is not None:
                choice["untemplate"] = found
        return response

    def writer(self, request: Generation, meta: Meta) -> ChatWriter:
        return ChatWriter(request, meta)

    def error(self, error: ApiError) -> dict[str, Any]:
        return error_object(error)


def error_object(error: ApiError) -> dict[str, Any]:
    """OpenAI's error."""
    return {"error": {"message": error.message, "type": error.type, "param": error.param, "code": error.code}}


def usage_object(usage: Usage) -> dict[str, Any]:
    """OpenAI's ``usage``."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def logprobs_object(tokens: Sequence[TokenLogprob]) -> dict[str, Any]:
    """OpenAI's ``logprobs`` of a choice: of the tokens of its content."""
    return {"content": [logprob_object(token) for token in tokens], "refusal": None}


def logprob_object(token: TokenLogprob) -> dict[str, Any]:
    return {
        "token": token.token,
        "logprob": token.logprob,
        "bytes": list(token.token.encode("utf-8", "surrogateescape")),
        "top_logprobs": [
            {"token": text, "logprob": value, "bytes": list(text.encode("utf-8", "surrogateescape"))}
            for text, value in token.top
        ],
    }


_END: Final = b"data: [DONE]\n\n"
_delta_encoder: Final = msgspec.json.Encoder()


class ChatWriter:
    """``chat.completion.chunk`` events."""

    media_type = "text/event-stream; charset=utf-8"

    def __init__(self, request: Generation, meta: Meta) -> None:
        self._request = request
        fixed = {
            "id": f"chatcmpl-{meta.id}",
            "object": "chat.completion.chunk",
            "created": meta.created,
            "model": meta.model,
        }
        self._head = b"data: " + encode(fixed)[:-1] + b',"choices":['
        self._before = [self._head + b'{"index":%d,"delta":' % i for i in range(request.n)]
        # With include_usage every chunk but the last says that it has none.
        self._tail = b'],"usage":null}\n\n' if request.include_usage else b"]}\n\n"
        self._after = b',"logprobs":null,"finish_reason":null}' + self._tail
        self._renamed = request.reasoning_field not in ("reasoning", "inline")

    def begin(self, usage: Usage) -> bytes:
        return b"".join(
            [before + b'{"role":"assistant","content":"","refusal":null}' + self._after for before in self._before]
        )

    def delta(self, choice: int, delta: DeltaMessage, logprobs: list[TokenLogprob] | None = None) -> bytes:
        if logprobs is None and not (self._renamed and delta.reasoning is not None):
            try:
                return self._before[choice] + _delta_encoder.encode(delta) + self._after
            except UnicodeEncodeError:
                pass
        shown = name_reasoning(delta.model_dump(exclude_none=True), self._request.reasoning_field)
        after = self._after if logprobs is None else self._with(logprobs_object(logprobs), None)
        return self._before[choice] + encode(shown) + after

    def _with(self, logprobs: Any, finish_reason: str | None) -> bytes:
        return b',"logprobs":' + encode(logprobs) + b',"finish_reason":' + encode(finish_reason) + b"}" + self._tail

    def finish(self, ended: Ended) -> bytes:
        if ended.finish_reason == "error":  # OpenAI's chunks know no such reason; the error itself follows
            return b""
        before = self._before[ended.index] + b'{},"logprobs":null,"finish_reason":' + encode(ended.finish_reason)
        inside = untemplate_of(self._request, ended)
        if inside is not None:
            before += b',"untemplate":' + encode(inside)
        return before + b"}" + self._tail

    def end(self, usage: Usage) -> bytes:
        if not self._request.include_usage:
            return _END
        return self._head + b'],"usage":' + encode(usage_object(usage)) + b"}\n\n" + _END

    def error(self, error: ApiError) -> bytes:
        return b"data: " + encode(error_object(error)) + b"\n\n" + _END


CHAT: Final = Chat()
