"""JSON and stream frames of responses, and what the writers of several dialects share.

Encoded JSON is a single line for every way in which clients split lines.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from untemplate.messages import DeltaMessage, DeltaToolCall

from ..errors import ApiError
from ..generation import Ended, Generation, Logprobs, Meta, TokenLogprob, Usage
from .objects import error_object, reports_of, usage_object

EVENT_STREAM: Final = "text/event-stream; charset=utf-8"
"""The media type of server-sent events."""
COMMENT: Final = b": ping\n\n"
"""A comment between server-sent events, which clients ignore."""
DONE: Final = b"data: [DONE]\n\n"
"""The last event of OpenAI's streams."""

_encode: Final = msgspec.json.Encoder().encode
_LINE_ENDS: Final = (
    (b"\xc2\x85", rb"\u0085"),
    (b"\xe2\x80\xa8", rb"\u2028"),
    (b"\xe2\x80\xa9", rb"\u2029"),
)
"""Characters that JSON does not escape, although ``str.splitlines`` (httpx's ``iter_lines``) splits lines there."""


def encode(value: Any) -> bytes:
    """Encode a value as JSON in one line. Lone surrogates, which have no UTF-8, are written as escapes."""
    try:
        data = _encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()
    return data if data.isascii() else _one_line(data)


def encode_text(text: str) -> bytes:
    """Encode a string like `encode`, but faster: for deltas."""
    try:
        data = _encode(text)
    except UnicodeEncodeError:
        return json.dumps(text).encode()
    return data if text.isascii() else _one_line(data)


def _one_line(data: bytes) -> bytes:
    for end, escaped in _LINE_ENDS:
        if end in data:
            data = data.replace(end, escaped)
    return data


def event(name: str, data: Any) -> bytes:
    """Encode a server-sent event with a name."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), encode(data))


def timestamp(seconds: int) -> str:
    """Format seconds since the epoch as RFC 3339, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# -- Parts of writers --------------------------------------------------------------------------------------------


class Writer:
    """Writes one streamed response. Each method returns the bytes to send; empty for nothing.

    ``begin`` comes first; then any number of ``delta``, and one ``finish`` for each choice, in any order between
    choices; then ``end``. After ``error`` nothing follows: it closes what is open as far as the dialect can.
    """

    media_type = EVENT_STREAM
    ping = COMMENT
    """Bytes that keep a silent connection alive and mean nothing; empty if the media type allows no ping."""
    _ended: Ended
    """The last choice that has ended."""

    def __init__(self, request: Generation, meta: Meta) -> None:
        self._request = request
        self._meta = meta

    def begin(self, usage: Usage) -> bytes:
        """Begin the response. ``usage`` holds the tokens of the prompt, 0 if they are not known yet."""
        return b""

    def delta(self, choice: int, delta: DeltaMessage, logprobs: Logprobs = None, ids: Sequence[int] = ()) -> bytes:
        """Write one delta, which has either one of the texts or tool calls.

        Args:
            ids: of the tokens since the last delta, if the request asks for them.
        """
        raise NotImplementedError

    def finish(self, ended: Ended) -> bytes:
        self._ended = ended
        return b""

    def end(self, usage: Usage) -> bytes:
        raise NotImplementedError

    def error(self, error: ApiError) -> bytes:
        return b"data: " + encode(error_object(error)) + b"\n\n" + DONE


class ChunkWriter(Writer):
    """Writes the streams of Chat Completions and Completions: chunks of one choice each, made of prebuilt bytes.

    Only the text of a delta is encoded anew.

    Args:
        fixed: the members of every chunk.
        choices: number of choices.
        field: the member of a choice that deltas fill.
        nothing: its value in the last chunk of a choice.
    """

    def __init__(
        self, request: Generation, meta: Meta, fixed: dict[str, Any], *, choices: int, field: bytes, nothing: bytes
    ) -> None:
        super().__init__(request, meta)
        self._head = b"data: " + encode(fixed)[:-1] + b',"choices":['
        self._before = [self._head + b'{"index":%d,"%b":' % (i, field) for i in range(choices)]
        self._nothing = nothing
        # With include_usage, "usage" is null in every chunk but the last.
        self._tail = b'],"usage":null}\n\n' if request.include_usage else b"]}\n\n"
        self._after = b',"logprobs":null,"finish_reason":null}' + self._tail

    def _after_with(self, values: dict[str, Any]) -> bytes:
        """Return the end of a chunk, with further members of its choice."""
        return b"," + encode({"logprobs": None, "finish_reason": None, **values})[1:] + self._tail

    def finish(self, ended: Ended) -> bytes:
        if ended.finish_reason == "error":  # not a finish reason of OpenAI; the error itself follows
            return b""
        values = {"finish_reason": ended.finish_reason, **reports_of(self._request, ended)}
        if self._request.token_ids:
            values["token_ids"] = None if ended.token_ids is None else ended.last_ids
        return self._before[ended.index] + self._nothing + self._after_with(values)

    def end(self, usage: Usage) -> bytes:
        if not self._request.include_usage:
            return DONE
        return self._head + b'],"usage":' + encode(usage_object(usage)) + b"}\n\n" + DONE


class ItemWriter(Writer):
    """Writes streams of items (text, reasoning, calls) of which one is open at a time."""

    _kind = ""
    """Kind of the open item: ``content``, ``reasoning``, ``tool_call``; ``""`` if none is open."""
    _head = b""
    """Bytes before the text of a delta of the open item."""

    def delta(self, choice: int, delta: DeltaMessage, logprobs: Logprobs = None, ids: Sequence[int] = ()) -> bytes:
        text, kind = delta.content, self._kind
        if text is not None and logprobs is None and kind == "content":
            return self._append(text)
        if text is None and delta.reasoning is not None and kind == "reasoning":
            return self._append(delta.reasoning)
        out = b""
        if delta.reasoning:
            out += self._within("reasoning") + self._append(delta.reasoning)
        if text:
            out += self._within("content")
            out += self._append(text) if logprobs is None else self._append_with(text, logprobs)
        for call in delta.tool_calls or ():
            function = call.function
            if call.id is not None:
                out += self._open("tool_call", call.id, (function.name if function is not None else None) or "")
            if function is not None and function.arguments:
                out += self._append_arguments(function.arguments)
        return out

    def _within(self, kind: str) -> bytes:
        return b"" if self._kind == kind else self._open(kind)

    def _open(self, kind: str, id: str = "", name: str = "") -> bytes:
        """Close the open item and open another one; ``id`` and ``name`` are a call's."""
        raise NotImplementedError

    def _append(self, text: str) -> bytes:
        """Add text to the open item."""
        raise NotImplementedError

    def _append_with(self, text: str, logprobs: list[TokenLogprob]) -> bytes:
        return self._append(text)

    def _append_arguments(self, text: str) -> bytes:
        return self._append(text)


@dataclass(frozen=True, slots=True)
class HeldCall:
    """A whole call."""

    index: int
    id: str
    name: str
    arguments: str


class HeldCalls:
    """Of each choice the call whose arguments are still coming: it is sent whole."""

    def __init__(self) -> None:
        self.open: dict[int, tuple[int, str, str, list[str]]] = {}

    def add(self, choice: int, call: DeltaToolCall) -> list[HeldCall]:
        """Add a part of a call. Return the call before it, if another one begins."""
        ended, function = [], call.function
        if call.id is not None:
            ended = self.end(choice)
            self.open[choice] = (call.index, call.id, (function.name if function is not None else None) or "", [])
        if function is not None and function.arguments and choice in self.open:
            self.open[choice][3].append(function.arguments)
        return ended

    def end(self, choice: int) -> list[HeldCall]:
        """Return the call that is held, which gets no further arguments."""
        if choice not in self.open:
            return []
        index, id, name, arguments = self.open.pop(choice)
        return [HeldCall(index, id, name, "".join(arguments))]


def is_cut(ended: Ended) -> bool:
    """True if the output ended in a call."""
    calls = ended.parsed.tool_calls
    return bool(calls) and calls[-1].status == "incomplete"
