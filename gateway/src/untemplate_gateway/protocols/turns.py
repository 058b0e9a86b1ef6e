"""Messages of Chat Completions, from the turns and parts of other APIs."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ..errors import bad_request, unsupported
from ..notes import Notes

_TEXTS: Final = re.compile(r"text/.+|application/(?:.+\+)?(?:json|xml|yaml|x-yaml|x-sh|javascript|x-javascript|sql)")
"""Media types of files that are text."""


def text_part(text: str) -> dict[str, Any]:
    """Return text as a part of a message."""
    return {"type": "text", "text": text}


def image_part(url: str, **more: Any) -> dict[str, Any]:
    """Return an image as a part of a message."""
    return {"type": "image_url", "image_url": {"url": url, **more}}


def document_part(text: str, title: str | None) -> dict[str, Any]:
    """Return a document that is text as a part of a message, after its title."""
    return text_part(f"{title}\n{text}" if title else text)


def is_text(media_type: str) -> bool:
    """True if a file of this media type is text."""
    return _TEXTS.fullmatch(media_type.partition(";")[0].strip().lower()) is not None


def file_part(media_type: str, data: str, title: str | None, path: str) -> dict[str, Any]:
    """Return a file in base64 as a part of a message.

    Raises:
        ApiError: the file is not text.
    """
    if not is_text(media_type):
        raise unsupported(path, f"only files that are text are supported, got {media_type[:64]!r}")
    try:
        return document_part(base64.b64decode(data, validate=True).decode(), title)
    except ValueError:
        raise bad_request(path, "must be text in UTF-8, as base64") from None


def data_url(url: str) -> tuple[str, str]:
    """Return the media type of a data URL, and its data in base64; empty ones if it is not such a URL."""
    head, _, data = url.partition(",")
    if not head.startswith("data:") or not head.endswith(";base64"):
        return "", ""
    return head.removeprefix("data:").removesuffix(";base64"), data


def called(id: str, name: str, arguments: Any) -> dict[str, Any]:
    """Return an earlier call of a function."""
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant(texts: Sequence[str], thoughts: Sequence[str], calls: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return a message of the assistant."""
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) if texts or not calls else None}
    if thoughts:
        message["reasoning_content"] = "".join(thoughts)
    if calls:
        message["tool_calls"] = list(calls)
    return message


def tool_result(id: str, content: Any) -> dict[str, Any]:
    """Return the result of a call as a message."""
    return {"role": "tool", "tool_call_id": id, "content": content}


def grouped(role: str, pieces: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join parts that follow each other to messages of a role; whole messages among them stay."""
    found: list[dict[str, Any]] = []
    for piece in pieces:
        if "role" in piece:
            found.append(piece)
            continue
        if not found or found[-1]["role"] != role:
            found.append({"role": role, "content": []})
        found[-1]["content"].append(piece)
    for one in found:
        one["content"] = plain(one["content"])
    return found


def plain(content: Any) -> Any:
    """Return a single text part as text, other content unchanged."""
    if isinstance(content, list) and len(content) == 1 and content[0]["type"] == "text":
        return content[0]["text"]
    return content


def is_prefill(messages: Sequence[dict[str, Any]], field: str) -> bool:
    """True if the model is to continue the last message.

    Raises:
        ApiError: it calls tools.
    """
    last = messages[-1]
    if last["role"] == "assistant" and last.get("tool_calls"):
        raise bad_request(field, "the last message calls tools: their results must follow it")
    return bool(last["role"] == "assistant")


def schema_format(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the response format of a JSON schema."""
    return {"type": "json_schema", "json_schema": {"name": "response", "schema": schema, "strict": True, **more}}


# -- Things of a provider's own servers --------------------------------------------------------------------------


def is_kind(value: Any, *names: str) -> bool:
    """True if the ``type`` of an object is one of some names, or a version of one (``bash_20250124``)."""
    kind = value.get("type") if isinstance(value, dict) else None
    return isinstance(kind, str) and any(kind == name or kind.startswith(f"{name}_") for name in names)


def without(things: Any, names: Sequence[str], path: str, why: str, notes: Notes) -> Any:
    """Return a list without the things of some kinds, each with a note; another value unchanged."""
    if not isinstance(things, list):
        return things
    kept = []
    for i, one in enumerate(things):
        if is_kind(one, *names):
            notes.add(f"{path}[{i}]: {why.format(one['type'][:64])}; left out")
        else:
            kept.append(one)
    return kept


# -- Tool choices ------------------------------------------------------------------------------------------------


def names_of(tools: Sequence[dict[str, Any]]) -> set[str]:
    """Return the names of tools."""
    return {tool["function"]["name"] for tool in tools}


def choice_of(name: str, names: set[str], path: str) -> dict[str, Any]:
    """Return the choice of one tool.

    Raises:
        ApiError: it is not among the ``names`` that the request offers.
    """
    if name not in names:
        raise bad_request(path, f"{name[:64]!r} is not among the tools")
    return {"type": "function", "function": {"name": name}}


def choice_among(mode: str, chosen: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the choice of some tools."""
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": chosen}}
