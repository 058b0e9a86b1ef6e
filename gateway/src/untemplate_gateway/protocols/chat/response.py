"""Responses of Chat Completions, whole and as ``chat.completion.chunk`` events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from untemplate._internal.reasoning_field import name_reasoning
from untemplate.messages import DeltaMessage, ParsedOutput

from ...generation import Ended, Generation, Logprobs, Meta, TokenLogprob, Usage
from ..encoding import ChunkWriter, HeldCall, HeldCalls, encode, encode_text
from ..objects import logprob_object, reports_of, usage_object
from ..tools import custom_call


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
                "message": _message(request, one.parsed),
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
        response["prompt_token_ids"] = meta.prompt_ids_of(request, 0)
    return response


def _message(request: Generation, parsed: ParsedOutput) -> dict[str, Any]:
    message = parsed.message(reasoning_field=request.reasoning_field)
    for i, call in enumerate(parsed.tool_calls):
        if call.function.name in _custom_tools(request):
            message["tool_calls"][i] = custom_call(call.id, call.function.name, call.function.arguments)
    return {**message, "refusal": None, "annotations": []}


def _custom_tools(request: Generation) -> frozenset[str]:
    """Return the names of the request's custom tools."""
    found: frozenset[str] = request.repeated.get("custom", frozenset())
    return found


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
        super().__init__(request, meta, fixed, choices=request.n, field=b"delta", nothing=b"{}")
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
            after = after.replace(
                b"}]", b'}],"prompt_token_ids":' + encode(self._meta.prompt_ids_of(self._request, 0)), 1
            )
        role = b'{"role":"assistant","content":"","refusal":null}'
        first, *further = self._before
        return b"".join([first + role + after, *[before + role + self._after for before in further]])

    def delta(self, choice: int, delta: DeltaMessage, logprobs: Logprobs = None, ids: Sequence[int] = ()) -> bytes:
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


class CustomCallWriter(ChatWriter):
    """Writes events of a request with custom tools. A call of one is held until the next call begins, or the end."""

    def __init__(self, request: Generation, meta: Meta) -> None:
        super().__init__(request, meta)
        self._names = _custom_tools(request)
        self._calls = HeldCalls()

    def delta(self, choice: int, delta: DeltaMessage, logprobs: Logprobs = None, ids: Sequence[int] = ()) -> bytes:
        if not delta.tool_calls:
            return super().delta(choice, delta, logprobs, ids)
        ended: list[HeldCall] = []
        others = []
        for call in delta.tool_calls:
            custom = call.function is not None and call.function.name in self._names
            if custom or (call.id is None and choice in self._calls.open):
                ended += self._calls.add(choice, call)
            else:
                ended += self._calls.end(choice)
                others.append(call)
        written = self._custom(choice, ended)
        if others or ids:
            written += super().delta(choice, DeltaMessage(tool_calls=others or None), logprobs, ids)
        return written

    def finish(self, ended: Ended) -> bytes:
        return self._custom(ended.index, self._calls.end(ended.index)) + super().finish(ended)

    def _custom(self, choice: int, calls: Sequence[HeldCall]) -> bytes:
        """Write calls of custom tools."""
        shown = [{"index": call.index, **custom_call(call.id, call.name, call.arguments)} for call in calls]
        return b"".join(self._before[choice] + encode({"tool_calls": [one]}) + self._after for one in shown)


def chat_writer(request: Generation, meta: Meta) -> ChatWriter:
    """Return the writer of a stream."""
    return (CustomCallWriter if _custom_tools(request) else ChatWriter)(request, meta)
