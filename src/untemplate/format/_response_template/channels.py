"""Translates fields that are channels: reasoning, content and calls open with a word between the same two tokens."""

from __future__ import annotations

import re

from .._markers import spellings_of
from .._parts import Channels, FormatError, Marker
from .calls import TOKEN, call_places, groups_of
from .checks import NO_COUNTERPART, Json, is_implicit
from .markers import check_plain, close_of, needed_close_of, one_marker, spellings
from .patterns import Space, Untranslatable, Variable, only_text, read

__all__ = ["channels_end", "channels_of"]


def channels_of(fields: dict[str, Json], reasoning_key: str, start: Marker | None) -> Channels | None:
    """Return the channels if reasoning and content open with a word between the same two tokens, else None.

    Example: ``<|channel|>analysis<|message|>``.
    """
    if not reasoning_key or "content" not in fields or is_implicit(fields["content"]):
        return None
    words: dict[str, list[str]] = {}
    frames: set[tuple[str, str]] = set()
    for key in (reasoning_key, "content"):
        field = fields[key]
        if is_implicit(field):
            return None
        for text in spellings(field, "open", f"fields.{key}")[0]:
            frame = re.fullmatch(rf"({TOKEN})(\w+)({TOKEN})", text)
            if frame is None:
                return None
            frames.add((frame[1], frame[3]))
            words.setdefault(key, []).append(frame[2])
    if len(frames) != 1:
        return None
    channel, body = frames.pop()
    for key in (reasoning_key, "content"):
        check_plain(fields[key], f"fields.{key}")
    head = re.fullmatch(rf"({TOKEN})(\w*)\s*", start.text) if start is not None else None
    if head is None:
        raise FormatError("start_anchor", f"{NO_COUNTERPART}: with channels it must be a token and a role")
    call = _channel_call(fields["tool_calls"], head, channel, body) if "tool_calls" in fields else {}
    return Channels(
        open=Marker(head[1]),
        role=head[2],
        channel=Marker(channel),
        body=Marker(body),
        close=needed_close_of(fields[reasoning_key], f"fields.{reasoning_key}"),
        reasoning=tuple(words[reasoning_key]),
        content=tuple(words["content"]),
        **call,
    )


def channels_end(fields: dict[str, Json], channels: Channels) -> Marker | None:
    """Return the end of the turn: the marker that closes content and no other message."""
    closes = spellings_of(channels.close)
    return one_marker(
        [t for t in spellings(fields["content"], "close", "fields.content")[0] if t.strip() not in closes]
    )


def _channel_call(field: Json, head: re.Match[str], channel: str, body: str) -> Json:
    """Return the fields of `Channels` that describe the header of a call: recipient, namespace, channel, constraint."""
    path = "fields.tool_calls"
    if field.get("content", "text") != "json":
        raise FormatError(f"{path}.content", f"{NO_COUNTERPART} in channels: {field.get('content', 'text')!r}")
    for key in ("unquoted_keys", "string_delims"):
        if field.get("content_args", {}).get(key):
            raise FormatError(f"{path}.content_args.{key}", f"{NO_COUNTERPART} in channels")
    call = call_places(field, path)
    groups = groups_of(field)
    place = f"{path}.open_pattern"
    if not groups:
        raise FormatError(place, f"{NO_COUNTERPART}: no group captures the name")
    if call.name != groups or call.arguments != ["content"] or call.id is not None:
        raise FormatError(f"{path}.transform", f"{NO_COUNTERPART}: it must be {{{groups[0]}}} and {{content}}")
    alternatives = read(field["open_pattern"], place)
    # "\\0" marks the name. Text that cannot be translated, after it, is whatever else a header may hold.
    text = "".join(
        "\0" if isinstance(piece, Variable)
        else " " if isinstance(piece, Space) or (isinstance(piece, Untranslatable) and piece.source in (".*?", ".*"))
        else only_text(piece, place)
        for piece in alternatives[0]
    )  # fmt: skip
    header = text.removeprefix(head[0].rstrip())
    if len(alternatives) > 1 or not header.endswith(body):
        raise FormatError(place, f"{NO_COUNTERPART}: not a header that ends in {body}")
    header = header.removesuffix(body)
    recipient = re.search(r"\s*(\w+=)([^\s\0]*)\0", header)
    if recipient is None:
        raise FormatError(place, f"{NO_COUNTERPART}: no recipient such as to=")
    header = header[: recipient.start()] + header[recipient.end() :]
    chosen = re.search(rf"{re.escape(channel)}(\w+)", header)
    if chosen is not None:
        header = header[: chosen.start()] + header[chosen.end() :]
    constraint = re.fullmatch(rf"({TOKEN})?(\w*)", header.strip())
    if constraint is None:
        raise FormatError(place, f"{NO_COUNTERPART}: {header.strip()}")
    close = close_of(field, path)
    return {
        "recipient": Marker(f" {recipient[1]}"),
        "namespace": recipient[2],
        "call_channel": None if chosen is None else chosen[1],
        "constraint": None if constraint[1] is None else Marker(f" {constraint[1]}"),
        "call_constraint": constraint[2] or None,
        "call_close": close,
    }
