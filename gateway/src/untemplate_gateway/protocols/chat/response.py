"""Responses of Chat Completions, whole and as ``chat.completion.chunk`` events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from untemplate.messages import DeltaMessage, name_reasoning

from ...generation import Ended, Generation, Meta, TokenLogprob, Usage
from ..encoding import ChunkWriter, encode, encode_text
from ..objects import logprob_object, reports_of, usage_object


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
                **reports_of(request, one),
                **({"token_ids": one.token_ids} if request.token_ids else {}),
            }
            for one in ended
        ],
        "usage": usage_object(usage),
    }
    if request.token_ids:
        response["prompt_token_ids"] = request.prompt_ids_of(0)
    return response


def logprobs_object(tokens: Sequence[TokenLogprob]) -> dict[str, Any]:
    """Return ``logprobs`` of a choice: the tokens of its content."""
    return {"content": [logprob_object(token) for token in tokens], "refusal": None}


_REASONING: Final = {"reasoning": b'{"reasoning":', "reasoning_content": b'{"reasoning_content":'}


class ChatWriter(ChunkWriter):
    """Writes ``chat.completion.chunk`` events."""

    def __init__(self, request: Generation, meta: Meta) -> None:
        fixed = {
            "id": f"chatcmpl-{meta.id}",
            "object": "chat.completion.chunk",
            "created": meta.created,
            "model": meta.model,
        }
        super().__init__(request, fixed, choices=request.n, field=b"delta", nothing=b"{}")
        self._content = [before + b'{"content":' for before in self._before]
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
            return self._before[choice] + encode(shown) + self._after_with({"logprobs": found, "token_ids": ids})
        if delta.content is not None:
            head = self._content[choice] + encode_text(delta.content)
            if logprobs is None:
                return head + self._text_after
            return head + b"}" + self._after_with({"logprobs": logprobs_object(logprobs)})
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
