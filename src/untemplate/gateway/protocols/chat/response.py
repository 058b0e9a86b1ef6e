"""Responses of Chat Completions, whole and as ``chat.completion.chunk`` events.

Chunks are made of prebuilt bytes: only the text of a delta is encoded anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ....messages import DeltaMessage, name_reasoning
from ...errors import ApiError
from ...generation import Ended, Generation, Meta, TokenLogprob, Usage
from ..encoding import COMMENT, EVENT_STREAM, encode, encode_text
from ..objects import error_object, logprob_object, reports_of, usage_object

__all__ = ["ChatWriter", "respond_chat"]


def respond_chat(request: Generation, ended: Sequence[Ended], usage: Usage, meta: Meta) -> dict[str, Any]:
    """Return a ``chat.completion``."""
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
    for choice, one in zip(response["choices"], ended, strict=True):
        reports = reports_of(request, one)
        if reports is not None:
            choice["untemplate"] = reports
        if request.token_ids:
            choice["token_ids"] = one.token_ids
    if request.token_ids:
        response["prompt_token_ids"] = request.prompt_ids_of(0)
    return response


def logprobs_object(tokens: Sequence[TokenLogprob]) -> dict[str, Any]:
    """Return ``logprobs`` of a choice: the tokens of its content."""
    return {"content": [logprob_object(token) for token in tokens], "refusal": None}


_REASONING: Final = {"reasoning": b'{"reasoning":', "reasoning_content": b'{"reasoning_content":'}
_END: Final = b"data: [DONE]\n\n"


class ChatWriter:
    """Writes ``chat.completion.chunk`` events."""

    media_type = EVENT_STREAM
    ping = COMMENT

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
        self._content = [before + b'{"content":' for before in self._before]
        # With include_usage, "usage" is null in every chunk but the last.
        self._tail = b'],"usage":null}\n\n' if request.include_usage else b"]}\n\n"
        self._after = b',"logprobs":null,"finish_reason":null}' + self._tail
        self._text_after = b"}" + self._after
        self._arguments_after = b"}}]}" + self._after
        self._reasoning_field = request.reasoning_field
        field = _REASONING.get(request.reasoning_field)
        self._reasoning = None if field is None else [before + field for before in self._before]
        """``None`` if reasoning does not go to a single field of its own."""
        self._arguments = [(-1, b"")] * request.n
        """For each choice, the index of its last call and the bytes that come before a delta of its arguments."""

    def begin(self, usage: Usage) -> bytes:
        after = self._after
        if self._request.token_ids:
            after = after.replace(b"}]", b'}],"prompt_token_ids":' + encode(self._request.prompt_ids_of(0)), 1)
        role = b'{"role":"assistant","content":"","refusal":null}'
        first, *further = self._before
        return b"".join([first + role + after, *[before + role + self._after for before in further]])

    def delta(
        self, choice: int, delta: DeltaMessage, logprobs: list[TokenLogprob] | None = None, ids: Sequence[int] = ()
    ) -> bytes:
        if ids:
            shown = name_reasoning(delta.model_dump(exclude_none=True), self._reasoning_field)
            found = None if logprobs is None else logprobs_object(logprobs)
            return self._before[choice] + encode(shown) + self._with(found, None, token_ids=ids)
        if delta.content is not None:
            head = self._content[choice] + encode_text(delta.content)
            if logprobs is None:
                return head + self._text_after
            return head + b"}" + self._with(logprobs_object(logprobs), None)
        if delta.reasoning is not None and self._reasoning is not None:
            return self._reasoning[choice] + encode_text(delta.reasoning) + self._text_after
        calls = delta.tool_calls
        if calls is not None and len(calls) == 1 and calls[0].id is None and calls[0].function is not None:
            index, head = self._arguments[choice]
            if index != calls[0].index:
                index = calls[0].index
                head = self._before[choice] + b'{"tool_calls":[{"index":%d,"function":{"arguments":' % index
                self._arguments[choice] = (index, head)
            return head + encode_text(calls[0].function.arguments or "") + self._arguments_after
        shown = name_reasoning(delta.model_dump(exclude_none=True), self._reasoning_field)
        return self._before[choice] + encode(shown) + self._after

    def _with(self, logprobs: Any, finish_reason: str | None, **values: Any) -> bytes:
        """Return the end of an event, with further members of its choice."""
        return b"," + encode({"logprobs": logprobs, "finish_reason": finish_reason, **values})[1:] + self._tail

    def finish(self, ended: Ended) -> bytes:
        if ended.finish_reason == "error":  # not a finish reason of OpenAI; the error itself follows
            return b""
        values: dict[str, Any] = {}
        reports = reports_of(self._request, ended)
        if reports is not None:
            values["untemplate"] = reports
        if self._request.token_ids:
            values["token_ids"] = None if ended.token_ids is None else ended.last_ids
        return self._before[ended.index] + b"{}" + self._with(None, ended.finish_reason, **values)

    def end(self, usage: Usage) -> bytes:
        if not self._request.include_usage:
            return _END
        return self._head + b'],"usage":' + encode(usage_object(usage)) + b"}\n\n" + _END

    def error(self, error: ApiError) -> bytes:
        return b"data: " + encode(error_object(error)) + b"\n\n" + _END
