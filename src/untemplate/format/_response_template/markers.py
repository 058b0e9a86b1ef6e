"""Translates the markers of a field, and the fields that are plain text between markers: reasoning and content."""

from __future__ import annotations

from .._parts import Content, FormatError, Marker, Reasoning
from .checks import NO_COUNTERPART, Json, is_implicit
from .patterns import Anchor, FlatPart, read, written

__all__ = [
    "check_plain",
    "close_of",
    "content_of",
    "needed_close_of",
    "one_marker",
    "open_of",
    "reasoning_of",
    "spellings",
    "start_of",
]


def spellings(field: Json, key: str, path: str) -> tuple[list[str], bool]:
    """Return the spellings of ``open`` or ``close``, and True if the edge of the output counts as one as well."""
    if f"{key}_pattern" in field:
        place = f"{path}.{key}_pattern"
        alternatives = read(field[f"{key}_pattern"], place)
        edge: FlatPart = Anchor(key == "open")
        texts = [written(parts, place) for parts in alternatives if parts != [edge]]
        if "" in texts:
            raise FormatError(place, f"{NO_COUNTERPART}: it matches the empty text")
        return texts, [edge] in alternatives
    value = field.get(key, [])
    texts = [value] if isinstance(value, str) else list(value)
    ends = key == "close" and "eos" in texts
    return [text for text in texts if not (ends and text == "eos")], ends


def one_marker(texts: list[str]) -> Marker | None:
    """Return a marker with these spellings; None without any."""
    distinct = tuple(dict.fromkeys(texts))
    return Marker(distinct[0], distinct[1:]) if distinct else None


def open_of(field: Json, path: str) -> tuple[Marker, bool]:
    """Return the opening of a field, and True if the start of the output opens it as well."""
    texts, edge = spellings(field, "open", path)
    marker = one_marker(texts)
    if marker is None:
        raise FormatError(f"{path}.open", "is missing" if is_implicit(field) else NO_COUNTERPART)
    return marker, edge


def close_of(field: Json, path: str) -> Marker | None:
    """Return the close of a field; None if only the end of the output closes it."""
    return one_marker(spellings(field, "close", path)[0])


def needed_close_of(field: Json, path: str) -> Marker:
    """Return the close of a field that cannot do without one."""
    marker = close_of(field, path)
    if marker is None:
        raise FormatError(f"{path}.close", f"{NO_COUNTERPART}: it must be a marker")
    return marker


def start_of(template: Json) -> Marker | None:
    """Return the header after which the turn starts."""
    if "start_anchor_pattern" in template:
        path = "start_anchor_pattern"
        texts = [written(parts, path) for parts in read(template[path], path)]
        if "" in texts:
            raise FormatError(path, f"{NO_COUNTERPART}: it matches the empty text")
        return one_marker(texts)
    value = template.get("start_anchor", [])
    return one_marker([value] if isinstance(value, str) else value)


def check_plain(field: Json, path: str) -> None:
    """Check that the field is unchanged text, and that several pieces of it are joined to one text."""
    if field.get("content", "text") != "text":
        raise FormatError(f"{path}.content", f"{NO_COUNTERPART}: {field['content']!r}")
    for key in ("transform", "transform_each"):
        if field.get(key):
            raise FormatError(f"{path}.{key}", NO_COUNTERPART)
    if field.get("repeats") and "join" not in field:
        raise FormatError(f"{path}.repeats", f"{NO_COUNTERPART}: without join the message would hold a list")
    if field.get("join"):
        raise FormatError(f"{path}.join", f"{NO_COUNTERPART} unless it is ''")


def reasoning_of(field: Json, path: str) -> Reasoning:
    """Return the field of reasoning as a part of a Format."""
    check_plain(field, path)
    marker, edge = open_of(field, path)
    close = needed_close_of(field, path)
    return Reasoning(open=marker, close=close, start="open" if edge else "closed", repeats=field.get("repeats", False))


def content_of(field: Json, path: str) -> Content:
    """Return the field of content as a part of a Format."""
    check_plain(field, path)
    marker, edge = open_of(field, path)
    if edge:
        raise FormatError(f"{path}.open_pattern", f"{NO_COUNTERPART}: ^")
    return Content(open=marker, close=needed_close_of(field, path))
