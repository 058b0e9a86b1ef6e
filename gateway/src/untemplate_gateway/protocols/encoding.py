"""JSON and stream frames of responses.

Encoded JSON is a single line for every way in which clients split lines.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

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
