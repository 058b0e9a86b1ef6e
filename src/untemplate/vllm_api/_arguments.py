"""The text of converted arguments: the part that cannot change any more, and its values coerced to their schema.

* Only the part of an ``arg_converter``'s result that it cannot change later may be sent: everything before the value
  that is still open, and the text of that value if it must be a string.
* Values are coerced in place; all other text of the arguments stays as the converter wrote it. So what was sent stays
  valid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from .._internal.jsontext.coercion import Param, coerce_to_schema_type
from .._internal.machine.lexer import WS
from .._internal.schemas.reading import extract_types_from_schema, properties

__all__ = ["coerce_members", "coerce_value", "coerced", "safe_prefix", "within"]


# -- Text of a JSON object ----------------------------------------------------------------------------------------

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\(?:.|\Z))*"?|[{}\[\]:,]', re.DOTALL)


class _Member(NamedTuple):
    key: str
    start: int
    """Offset at which its value begins."""
    end: int
    closed: bool
    """True if a comma or the object's end follows."""


def _members(text: str) -> Iterator[_Member]:
    """Yield the members of the object that ``text`` begins with; it may end anywhere."""
    depth = 0
    last = key = ""
    start = -1
    for found in _TOKEN.finditer(text):
        c = text[found.start()]
        if c == '"':
            last = found.group()
        elif c in "{[":
            depth += 1
        elif c in "}]":
            depth -= 1
            if depth == 0:
                if start >= 0:
                    yield _Member(key, start, _trimmed(text, start, found.start()), True)
                return
        elif depth == 1 and c == ":":
            key, start = _key(last), found.end()
            while start < len(text) and text[start] in WS:
                start += 1
        elif depth == 1 and c == "," and start >= 0:
            yield _Member(key, start, _trimmed(text, start, found.start()), True)
            start = -1
    if start >= 0:
        yield _Member(key, start, len(text), False)


def _trimmed(text: str, start: int, end: int) -> int:
    return max(start, len(text[:end].rstrip(WS)))


def _key(raw: str) -> str:
    try:
        return str(json.loads(raw, strict=False))
    except ValueError:
        return raw.strip('"')


def safe_prefix(text: str, string_keys: set[str] | None = None) -> str:
    """Return the part of a JSON object's text that does not change while its last value may still change.

    That is everything before this value. If it is a string under one of ``string_keys`` (``None``: under any key), its
    text is included, without the closing quote.
    """
    members = list(_members(text))
    if not members:
        return ""
    last = members[-1]
    if text[last.start : last.start + 1] != '"' or (string_keys is not None and last.key not in string_keys):
        return text[: last.start]
    found = _TOKEN.match(text, last.start)
    assert found is not None
    end = found.end()
    ended = end - found.start() > 1 and text[end - 1] == '"' and not _escaped(text, found.start() + 1, end - 1)
    return text[: end - 1] if ended else text[:end]


def _escaped(text: str, start: int, at: int) -> bool:
    """True if the character at ``at`` follows an odd number of backslashes."""
    body = text[start:at]
    return (len(body) - len(body.rstrip("\\"))) % 2 == 1


def coerced(text: str, properties: Mapping[str, Any], coerce: Callable[[Any, Any], tuple[object, bool]]) -> str:
    """Return an object's text with each complete value coerced to its schema; everything else stays the same to the
    byte.
    """
    parts: list[str] = []
    done = 0
    for member in _members(text):
        schema = properties.get(member.key)
        if not member.closed or not isinstance(schema, Mapping):
            continue
        try:
            value = json.loads(text[member.start : member.end])
            if isinstance(value, str):
                # The text of a string is passed on as written.
                made = Param(extract_types_from_schema(schema), filter(_is_text, _listed(schema))).encode(value)
                changed = not made.startswith('"')
            else:
                value, changed = coerce(value, schema)
                made = json.dumps(value, ensure_ascii=False) if changed else ""
        except (ValueError, RecursionError):
            continue
        if changed:
            parts += (text[done : member.start], made)
            done = member.end
    return "".join(parts) + text[done:] if parts else text


def coerce_value(value: Any, schema: Mapping[str, Any]) -> tuple[object, bool]:
    """Return (the value coerced to its schema, True if that changed it); containers are changed in place."""
    if isinstance(value, dict):
        changed = coerce_members(value, _properties(schema))[1]
        return value, changed
    if isinstance(value, list):
        items = schema.get("items")
        changed = False
        if isinstance(items, Mapping):
            for i, item in enumerate(value):
                value[i], one = coerce_value(item, within(items, schema))
                changed = changed or one
        return value, changed
    if value is None:
        return value, False
    types = extract_types_from_schema(schema)
    if isinstance(value, str):
        if value in _listed(schema):
            return value, False
        made = coerce_to_schema_type(value, types)
        return made, made is not value
    text = json.dumps(value, ensure_ascii=False)
    made = coerce_to_schema_type(text, types)
    if isinstance(made, str) and "string" not in types:
        return value, False
    return made, type(made) is not type(value) or made != value


def coerce_members(arguments: dict[str, Any], properties: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Do the same for each member of ``arguments`` that has a schema."""
    changed = False
    for key, value in arguments.items():
        schema = properties.get(key)
        if isinstance(schema, Mapping):
            arguments[key], one = coerce_value(value, schema)
            changed = changed or one
    return arguments, changed


def _listed(schema: Mapping[str, Any]) -> list[Any]:
    """Return the values that a schema lists."""
    values = schema.get("enum")
    return [schema.get("const"), *(values if isinstance(values, (list, tuple)) else ())]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _properties(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: within(part, schema) for key, part in properties(schema, schema).items()}


def within(schema: Any, root: Any) -> Any:
    """Return a part of a schema together with the definitions that it references."""
    if not isinstance(schema, Mapping) or not isinstance(root, Mapping):
        return schema
    shared = {key: root[key] for key in ("$defs", "definitions") if key in root and key not in schema}
    return {**schema, **shared} if shared else schema
