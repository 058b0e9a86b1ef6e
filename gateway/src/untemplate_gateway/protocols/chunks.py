"""The streams of Chat Completions and Completions: chunks of one choice each, made of prebuilt bytes.

Only the text of a delta is encoded anew.
"""

from __future__ import annotations

from typing import Any

from ..errors import ApiError
from ..generation import Ended, Generation, Usage
from .encoding import COMMENT, DONE, EVENT_STREAM, encode
from .objects import error_object, reports_of, usage_object


class ChunkWriter:
    """Writes chunks.

    Args:
        fixed: the members of every chunk.
        choices: number of choices.
        field: the member of a choice that deltas fill.
        nothing: its value in the last chunk of a choice.
    """

    media_type = EVENT_STREAM
    ping = COMMENT

    def __init__(
        self, request: Generation, fixed: dict[str, Any], *, choices: int, field: bytes, nothing: bytes
    ) -> None:
        self._request = request
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

    def error(self, error: ApiError) -> bytes:
        return b"data: " + encode(error_object(error)) + b"\n\n" + DONE
