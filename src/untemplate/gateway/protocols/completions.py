"""OpenAI's older Completions (``/v1/completions``): a raw prompt, and the raw output.

The rule: nothing is parsed, rendered or taken away. Stop strings count wherever they stand; the text is what the model
wrote, markers and reasoning included.

Source: OpenAI API reference, "Completions (legacy)".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...messages import DeltaMessage
from ..errors import ApiError
from ..generation import Ended, Generation, Meta, TokenLogprob, Usage
from .chat import error_object, include_usage, sampling, stop_strings, usage_object
from .common import EVENT_STREAM, Fields, encode, encode_text, untemplate_asked, untemplate_of

__all__ = ["COMPLETIONS", "Completions", "CompletionsWriter"]

_HARMLESS: Final = (
    *("user", "metadata", "skip_special_tokens", "spaces_between_special_tokens", "add_special_tokens"),
    "return_token_ids",
)


class Completions:
    """The dialect."""

    name = "completions"

    def read(self, body: dict[str, Any]) -> Generation:
        fields = Fields(body)
        asked = untemplate_asked(fields)
        stream = fields.flag("stream") or False
        n = fields.integer("n", 1, 128) or 1
        if (fields.integer("best_of", 1, 128) or n) != n:
            raise fields.refused("best_of", "only as many as n")
        if fields.text("suffix"):
            raise fields.refused("suffix")
        fields.skip(_HARMLESS)
        tokens = fields.integer("max_tokens", 0)
        if tokens == 0:
            raise fields.refused("max_tokens", "must be at least 1")
        request = Generation(
            model=fields.text("model") or "",
            prompt=_prompt(fields),
            parse=False,
            n=n,
            stop=stop_strings(fields, "stop"),
            max_tokens=16 if tokens is None else tokens,  # the API's own default
            sampling=sampling(fields),
            logprobs=fields.integer("logprobs", 0, 20),
            echo=fields.flag("echo") or False,
            stream=stream,
            include_usage=include_usage(fields, stream),
            **asked,
        )
        if request.echo and (request.logprobs is not None or not isinstance(request.prompt, str)):
            raise fields.refused("echo", "only of a prompt that is text, and without logprobs")
        request.extra = fields.rest()
        return request

    def respond(self, request: Generation, ended: Sequence[Ended], usage: Usage, meta: Meta) -> dict[str, Any]:
        """A ``text_completion``."""
        choices = []
        for one in ended:
            choice: dict[str, Any] = {
                "index": one.index,
                "text": _echoed(request) + (one.parsed.content or ""),
                "logprobs": None if one.logprobs is None else logprobs_object(one.logprobs, 0),
                "finish_reason": one.finish_reason,
            }
            inside = untemplate_of(request, one)
            if inside is not None:
                choice["untemplate"] = inside
            choices.append(choice)
        return {
            "id": f"cmpl-{meta.id}",
            "object": "text_completion",
            "created": meta.created,
            "model": meta.model,
            "choices": choices,
            "usage": usage_object(usage),
        }

    def writer(self, request: Generation, meta: Meta) -> CompletionsWriter:
        return CompletionsWriter(request, meta)

    def error(self, error: ApiError) -> dict[str, Any]:
        return error_object(error)


COMPLETIONS: Final = Completions()


def _prompt(fields: Fields) -> str | list[int]:
    """Text or token ids; of several prompts only one at a time is answered."""
    value = fields.take("prompt", required=True)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], (str, list)):
        value = value[0]
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        raise fields.wrong("prompt", "must be a string or a list of token ids")
    if isinstance(value[0], (str, list)):
        raise fields.refused("prompt", "only one prompt a request")
    for token in value:
        if isinstance(token, bool) or not isinstance(token, int) or not 0 <= token < 1 << 31:
            raise fields.wrong("prompt", "must be a string or a list of token ids")
    return value


def _echoed(request: Generation) -> str:
    return request.prompt if request.echo and isinstance(request.prompt, str) else ""


def logprobs_object(tokens: Sequence[TokenLogprob], offset: int) -> dict[str, Any]:
    """The API's ``logprobs``. ``offset``: characters of text before the first token."""
    offsets = []
    for token in tokens:
        offsets.append(offset)
        offset += len(token.token)
    return {
        "tokens": [token.token for token in tokens],
        "token_logprobs": [token.logprob for token in tokens],
        "top_logprobs": [dict(token.top) for token in tokens],
        "text_offset": offsets,
    }


class CompletionsWriter:
    """``text_completion`` events."""

    media_type = EVENT_STREAM

    def __init__(self, request: Generation, meta: Meta) -> None:
        self._request = request
        fixed = {"id": f"cmpl-{meta.id}", "object": "text_completion", "created": meta.created, "model": meta.model}
        self._head = b"data: " + encode(fixed)[:-1] + b',"choices":['
        self._before = [self._head + b'{"index":%d,"text":' % i for i in range(request.n)]
        self._tail = b'],"usage":null}\n\n' if request.include_usage else b"]}\n\n"
        self._after = b',"logprobs":null,"finish_reason":null}' + self._tail
        self._said = [0] * request.n

    def begin(self, usage: Usage) -> bytes:
        echoed = _echoed(self._request)
        if not echoed:
            return b""
        return b"".join([before + encode_text(echoed) + self._after for before in self._before])

    def delta(self, choice: int, delta: DeltaMessage, logprobs: list[TokenLogprob] | None = None) -> bytes:
        text = delta.content or ""
        after = self._after
        if logprobs is not None:
            shown = logprobs_object(logprobs, self._said[choice])
            after = b',"logprobs":' + encode(shown) + b',"finish_reason":null}' + self._tail
        self._said[choice] += len(text)
        return self._before[choice] + encode_text(text) + after

    def finish(self, ended: Ended) -> bytes:
        if ended.finish_reason == "error":
            return b""
        data = self._before[ended.index] + b'"","logprobs":null,"finish_reason":' + encode(ended.finish_reason)
        inside = untemplate_of(self._request, ended)
        if inside is not None:
            data += b',"untemplate":' + encode(inside)
        return data + b"}" + self._tail

    def end(self, usage: Usage) -> bytes:
        if not self._request.include_usage:
            return b"data: [DONE]\n\n"
        return self._head + b'],"usage":' + encode(usage_object(usage)) + b"}\n\ndata: [DONE]\n\n"

    def error(self, error: ApiError) -> bytes:
        return b"data: " + encode(error_object(error)) + b"\n\ndata: [DONE]\n\n"
