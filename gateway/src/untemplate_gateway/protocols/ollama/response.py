"""Responses of Ollama's API, whole and as lines of JSON.

Tool calls are sent whole, when they close, with ``arguments`` as an object; see `arguments` for arguments that are not
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from untemplate.messages import DeltaMessage

from ...errors import ApiError
from ...generation import Ended, Generation, Logprobs, Meta, Usage
from ..arguments import arguments_object
from ..encoding import HeldCall, HeldCalls, Writer, encode, encode_text, is_cut, timestamp
from ..objects import logprob_object, reports_of
from .context import to_numbers
from .request import Load


def error_object(error: ApiError) -> dict[str, Any]:
    """Return the body of an error."""
    return {"error": error.message}


def loaded(load: Load, meta: Meta) -> dict[str, Any]:
    """Return the response to a request to load or unload a model. It is one object, streamed or not."""
    output = {"message": {"role": "assistant", "content": ""}} if load.chat else {"response": ""}
    reason = "unload" if load.unload else "load"
    return {"model": meta.model, "created_at": timestamp(meta.created), **output, "done": True, "done_reason": reason}


def respond_chat(request: Generation, ended: Sequence[Ended], usage: Usage, meta: Meta) -> dict[str, Any]:
    """Return a chat response."""
    (one,) = ended
    parsed = one.parsed
    message: dict[str, Any] = {"role": "assistant", "content": parsed.content or ""}
    if parsed.reasoning_content:
        message["thinking"] = parsed.reasoning_content
    if parsed.tool_calls:
        message["tool_calls"] = [
            _call(
                HeldCall(index, call.id, call.function.name, call.function.arguments), cut=call.status == "incomplete"
            )
            for index, call in enumerate(parsed.tool_calls)
        ]
    return _whole(request, one, usage, meta, {"message": message})


def respond_generate(request: Generation, ended: Sequence[Ended], usage: Usage, meta: Meta) -> dict[str, Any]:
    """Return a generate response."""
    (one,) = ended
    output: dict[str, Any] = {"response": one.parsed.content or ""}
    if one.parsed.reasoning_content:
        output["thinking"] = one.parsed.reasoning_content
    return _whole(request, one, usage, meta, {**output, **_context(request, one)})


def _context(request: Generation, ended: Ended) -> dict[str, Any]:
    """Return the field ``context``, which continues the conversation; no field after a raw prompt."""
    turns = request.repeated.get("context")
    if turns is None:
        return {}
    return {"context": to_numbers([*turns, {"role": "assistant", "content": ended.parsed.content or ""}])}


def _call(call: HeldCall, *, cut: bool) -> dict[str, Any]:
    arguments = arguments_object(call.arguments, cut=cut)
    return {"id": call.id, "function": {"index": call.index, "name": call.name, "arguments": arguments}}


def _whole(request: Generation, ended: Ended, usage: Usage, meta: Meta, output: dict[str, Any]) -> dict[str, Any]:
    response = {"model": meta.model, "created_at": timestamp(meta.created), **output, **_done(request, ended, usage)}
    if ended.logprobs is not None:
        response["logprobs"] = [logprob_object(token) for token in ended.logprobs]
    return response


def _done(request: Generation, ended: Ended, usage: Usage) -> dict[str, Any]:
    """Return the closing fields of a response. Unknown times are left out, as Ollama leaves out fields that are 0."""
    closing: dict[str, Any] = {
        "done": True,
        "done_reason": "length" if ended.finish_reason == "length" else "stop",
        "prompt_eval_count": usage.prompt_tokens,
        "eval_count": usage.completion_tokens,
    }
    if usage.prompt_ns:
        closing["total_duration"] = usage.prompt_ns + usage.completion_ns
        closing["prompt_eval_duration"] = usage.prompt_ns
        closing["eval_duration"] = usage.completion_ns
    return closing | reports_of(request, ended)


# -- The stream --------------------------------------------------------------------------------------------------


class _Writer(Writer):
    """Writes lines of JSON."""

    media_type = "application/x-ndjson"
    ping = b""

    def __init__(self, request: Generation, meta: Meta, content: bytes, thinking: bytes, close: bytes) -> None:
        super().__init__(request, meta)
        self._fixed = {"model": meta.model, "created_at": timestamp(meta.created)}
        start = encode(self._fixed)[:-1]
        self._content = start + content
        self._thinking = start + thinking
        self._tail = close + b',"done":false}\n'
        self._close = close

    def _text(self, head: bytes, text: str, logprobs: Logprobs) -> bytes:
        if logprobs is None:
            return head + encode_text(text) + self._tail
        found = encode([logprob_object(token) for token in logprobs])
        return head + encode_text(text) + self._close + b',"logprobs":' + found + b',"done":false}\n'

    def _last(self, usage: Usage, output: dict[str, Any]) -> bytes:
        return encode({**self._fixed, **output, **_done(self._request, self._ended, usage)}) + b"\n"

    def error(self, error: ApiError) -> bytes:
        return encode(error_object(error)) + b"\n"


class ChatWriter(_Writer):
    """Writes the lines of a streamed chat response."""

    def __init__(self, request: Generation, meta: Meta) -> None:
        super().__init__(
            request,
            meta,
            b',"message":{"role":"assistant","content":',
            b',"message":{"role":"assistant","content":"","thinking":',
            b"}",
        )
        self._calls = HeldCalls()

    def delta(self, choice: int, delta: DeltaMessage, logprobs: Logprobs = None, ids: Sequence[int] = ()) -> bytes:
        if delta.tool_calls is None and choice not in self._calls.open:
            if delta.content is not None:
                return self._text(self._content, delta.content, logprobs)
            return self._text(self._thinking, delta.reasoning, None) if delta.reasoning else b""
        out = b""
        if delta.reasoning or delta.content:
            out = self._whole(self._calls.end(choice))
        if delta.reasoning:
            out += self._text(self._thinking, delta.reasoning, None)
        if delta.content:
            out += self._text(self._content, delta.content, logprobs)
        for call in delta.tool_calls or ():
            out += self._whole(self._calls.add(choice, call))
        return out

    def _whole(self, calls: Sequence[HeldCall], *, cut: bool = False) -> bytes:
        """Write whole calls. ``cut``: the output ended inside them."""
        out = b""
        for call in calls:
            message = {"role": "assistant", "content": "", "tool_calls": [_call(call, cut=cut)]}
            out += encode({**self._fixed, "message": message, "done": False}) + b"\n"
        return out

    def finish(self, ended: Ended) -> bytes:
        return super().finish(ended) + self._whole(self._calls.end(ended.index), cut=is_cut(ended))

    def end(self, usage: Usage) -> bytes:
        return self._last(usage, {"message": {"role": "assistant", "content": ""}})

    def error(self, error: ApiError) -> bytes:
        return self._whole(self._calls.end(0), cut=True) + super().error(error)


class GenerateWriter(_Writer):
    """Writes the lines of a streamed generate response."""

    def __init__(self, request: Generation, meta: Meta) -> None:
        super().__init__(request, meta, b',"response":', b',"response":"","thinking":', b"")

    def delta(self, choice: int, delta: DeltaMessage, logprobs: Logprobs = None, ids: Sequence[int] = ()) -> bytes:
        out = self._text(self._thinking, delta.reasoning, None) if delta.reasoning else b""
        return out + self._text(self._content, delta.content, logprobs) if delta.content else out

    def end(self, usage: Usage) -> bytes:
        return self._last(usage, {"response": "", **_context(self._request, self._ended)})
