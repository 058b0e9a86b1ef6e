"""Translates message headers to the fields of a response template: each kind of message has a header of its own."""

from __future__ import annotations

import re
from typing import Final

from .._parts import Channels, Marker
from .checks import Json
from .marker_patterns import NAME, SPACE, any_of, spaced

__all__ = ["channel_fields"]

_TEXT: Final = {"content": "text", "content_args": {"strip": False}, "repeats": True, "join": ""}
_CALL: Final = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}


def channel_fields(channels: Channels, end: str) -> Json:
    """Return the fields for messages with headers; ``end`` is the pattern for the end of the output."""
    headers = _bare_headers(channels) if channels.channel is None else _headers(channels, channels.channel)
    closes = [marker for marker in (channels.close, channels.call_close) if marker is not None]
    closed = [f"{SPACE}{any_of(*closes)}{SPACE}"] if closes else []
    close = "|".join([*closed, rf"{SPACE}(?={any_of(channels.open)})", end])
    fields: Json = {}
    for key, header in headers.items():
        reads = {"content": "json", "repeats": True, "transform": _CALL} if key == "tool_calls" else _TEXT
        fields[key] = {"open_pattern": header, "close_pattern": close, **reads}
    return fields


def _headers(channels: Channels, channel: Marker) -> dict[str, str]:
    """Return the headers with a marker before the name of the channel."""
    edge = any_of(channels.open, channels.body)
    anything = f"(?:(?!{edge}).)*?"
    parts = [marker for marker in (channel, channels.recipient) if marker is not None]
    head = f"{SPACE}(?:{any_of(channels.open)}{SPACE}{re.escape(channels.role)})?{SPACE}(?={any_of(*parts)})"
    recipient = "" if channels.recipient is None else any_of(channels.recipient)
    not_a_call = f"(?!{anything}{recipient})" if recipient else ""
    body = any_of(channels.body)
    headers = {}
    for key, words in (("reasoning_content", channels.reasoning), ("content", channels.content)):
        if words:
            name = f"(?:{'|'.join(map(re.escape, words))})"
            headers[key] = rf"{head}{not_a_call}{anything}{any_of(channel)}{SPACE}{name}\b{anything}{body}{SPACE}"
    if recipient:
        namespace = f"(?:{re.escape(channels.namespace)})?" if channels.namespace else ""
        headers["tool_calls"] = (
            rf"{head}{anything}{recipient}{namespace}(?P<name>{NAME})(?=\s|{_stops(channels)}){anything}{body}{SPACE}"
        )
    return headers


def _stops(channels: Channels) -> str:
    """Return a pattern for the markers of a header that may follow the name of a tool."""
    markers = (channels.channel, channels.constraint, channels.body)
    return any_of(*(marker for marker in markers if marker is not None))


def _bare_headers(channels: Channels) -> dict[str, str]:
    """Return the headers that are one bare word: the name of a tool, or the recipient that means the user."""
    head = rf"(?:{any_of(channels.open)}|^){SPACE}"
    words = "|".join(map(re.escape, channels.content))
    body = spaced(channels.body) or re.escape(channels.body.text)
    return {
        "content": f"{head}(?:{words}){body}",
        "tool_calls": f"{head}(?!(?:{words}){body})(?P<name>{NAME}){body}{SPACE}",
    }
