"""Translates the field ``tool_calls``: where its transform takes name and arguments from, and the body with them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from .._parts import (
    Arguments,
    FormatError,
    JsonArguments,
    JsonBody,
    LiteralArguments,
    Marker,
    NamedBody,
    TaggedArguments,
    Tools,
)
from .checks import NO_COUNTERPART, Json, placeholder
from .markers import close_of, one_marker, open_of
from .patterns import FlatPart, Space, Variable, chunks, read, written

__all__ = ["TOKEN", "call_places", "groups_of", "tools_of"]

TOKEN: Final = r"<[^<>]+>|\[[^\[\]]+\]"


def tools_of(field: Json, path: str) -> Tools:
    """Return the field as one way to write calls."""
    if field.get("content", "text") not in ("json", "xml-inline"):
        raise FormatError(f"{path}.content", f"{NO_COUNTERPART}: {field.get('content', 'text')!r}")
    if "join" in field:
        raise FormatError(f"{path}.join", NO_COUNTERPART)
    call = call_places(field, path)
    if groups_of(field):
        return _named(field, call, path)
    if field["content"] == "xml-inline":
        raise FormatError(f"{path}.open_pattern", f"{NO_COUNTERPART}: no group captures the name")
    arguments = field.get("content_args", {})
    for key in ("unquoted_keys", "string_delims"):
        if arguments.get(key):
            raise FormatError(f"{path}.content_args.{key}", f"{NO_COUNTERPART} if the JSON holds the name")
    marker, edge = open_of(field, path)
    if edge:
        raise FormatError(f"{path}.open_pattern", f"{NO_COUNTERPART}: ^")
    body = _json_body(call, path)
    close = close_of(field, path)
    if field.get("transform_each"):
        return Tools(
            body=body,
            section_open=marker,
            section_close=close,
            list_open=Marker("["),
            list_close=Marker("]"),
            separator=Marker(", "),
        )
    return Tools(body=body, call_open=marker, call_close=close)


def groups_of(field: Json) -> list[str]:
    """Return the names of the groups in the opening pattern."""
    return list(re.compile(field.get("open_pattern", "")).groupindex)


@dataclass(frozen=True, slots=True)
class CallPlaces:
    """Places from which a transform takes the parts of a call.

    A place is the list of keys that lead to a part of the content (``["content", "name"]``), or a named group.
    """

    name: list[str]
    arguments: list[str]
    id: list[str] | None


def call_places(field: Json, path: str) -> CallPlaces:
    """Return the places from which the field's transform takes the parts of a call."""
    path = f"{path}.transform"
    if "transform" not in field:
        raise FormatError(path, "is missing: the place of the name is unknown")
    outer = field["transform"]
    if not isinstance(outer, dict):
        raise FormatError(path, f"{NO_COUNTERPART}: an array")
    if "function" not in outer:
        _check_keys(outer, ("type", "id", "name", "arguments"), path)
        inner, inner_path = outer, path
    else:
        _check_keys(outer, ("type", "id", "function"), path)
        inner, inner_path = outer["function"], f"{path}.function"
    call_id = _place(outer["id"], field, f"{path}.id") if "id" in outer else None
    if isinstance(inner, str):
        at = _place(inner, field, inner_path)
        return CallPlaces([*at, "name"], [*at, "arguments"], call_id)
    if not isinstance(inner, dict):
        raise FormatError(inner_path, NO_COUNTERPART)
    if inner is not outer:
        _check_keys(inner, ("name", "arguments"), inner_path)
    for key in ("name", "arguments"):
        if key not in inner:
            raise FormatError(f"{inner_path}.{key}", "is missing")
    name, arguments = (_place(inner[key], field, f"{inner_path}.{key}") for key in ("name", "arguments"))
    return CallPlaces(name, arguments, call_id)


def _check_keys(value: Json, known: tuple[str, ...], path: str) -> None:
    for key in value:
        if key not in known:
            raise FormatError(f"{path}.{key}", NO_COUNTERPART)


def _place(value: Any, field: Json, path: str) -> list[str]:
    """Return the keys of a placeholder; ``content`` comes first if they lead into the content."""
    keys = placeholder(value)
    if keys is None:
        raise FormatError(path, f"{NO_COUNTERPART}: not a placeholder")
    if keys[0] != "content" and keys[0] not in groups_of(field):
        if not field.get("transform_each"):
            raise FormatError(path, f"there is no group {keys[0]!r}")
        return ["content", *keys]  # the keys of a list's element are in scope
    return keys


def _json_body(call: CallPlaces, path: str) -> JsonBody:
    path = f"{path}.transform"
    holder = call.name[1:-1]
    if len(call.name) < 2 or len(holder) > 1 or call.arguments[1:-1] != holder or len(call.arguments) < 2:
        raise FormatError(path, f"{NO_COUNTERPART}: name and arguments must be two members of one object")
    if call.id is not None and len(call.id) != 2:
        raise FormatError(f"{path}.id", NO_COUNTERPART)
    return JsonBody(
        name_key=call.name[-1],
        arguments_key=call.arguments[-1],
        id_key=None if call.id is None else call.id[-1],
        nested_key=holder[0] if holder else None,
    )


def _named(field: Json, call: CallPlaces, path: str) -> Tools:
    """Translate a call whose opening holds the name, outside the arguments."""
    groups = groups_of(field)
    place = f"{path}.open_pattern"
    if len(groups) > 1:
        raise FormatError(place, f"{NO_COUNTERPART}: the group {next(g for g in groups if [g] != call.name)!r}")
    if call.name != groups:
        raise FormatError(f"{path}.transform", f"{NO_COUNTERPART}: the name must be {{{groups[0]}}}")
    if call.arguments != ["content"]:
        raise FormatError(f"{path}.transform", f"{NO_COUNTERPART}: the arguments must be {{content}}")
    if call.id is not None:
        raise FormatError(f"{path}.transform.id", NO_COUNTERPART)
    if field.get("transform_each"):
        raise FormatError(f"{path}.transform_each", f"{NO_COUNTERPART} if the opening holds the name")
    headers = [_header(parts, place) for parts in read(field["open_pattern"], place)]
    opens = [header[0] for header in headers if header[0]]
    _, name_open, name_close = headers[0]
    if any(header[1:] != headers[0][1:] for header in headers) or len(opens) not in (0, len(headers)):
        raise FormatError(place, f"{NO_COUNTERPART}: alternatives that differ next to the name")
    close = close_of(field, path)
    arguments: Arguments
    if field["content"] == "xml-inline":
        arguments = _tagged(field["content_args"], f"{path}.content_args")
        if not name_close:
            raise FormatError(place, f"{NO_COUNTERPART}: nothing ends the name")
    else:
        arguments = _json_arguments(field.get("content_args", {}), f"{path}.content_args", ended=bool(name_close))
    tag = re.fullmatch(r"\s*<([\w:.-]+)[^<>]*", name_open)
    inner = Marker(f"</{tag[1]}>") if tag is not None and opens else None
    return Tools(
        call_open=one_marker(opens),
        call_close=close if opens else None,
        body=NamedBody(
            name_open=Marker(name_open) if name_open else None,
            name_close=Marker(name_close) if name_close else None,
            arguments=arguments,
            arguments_close=inner if opens else close,
        ),
    )


def _header(parts: list[FlatPart], path: str) -> tuple[str, str, str]:
    """Return the opening of the call, the opening of the name, and its close."""
    i = next(i for i, piece in enumerate(parts) if isinstance(piece, Variable))
    before = chunks(parts[:i], path)
    after = chunks(parts[i + 1 :], path)
    if not before:
        raise FormatError(path, f"{NO_COUNTERPART}: there is no text before the name")
    if len(before) > 2 or len(after) > 1:
        raise FormatError(path, f"{NO_COUNTERPART}: white space between more than two literals")
    if not after:
        after = [written(parts[i + 1 :], path)]
    if len(before) == 2:
        return before[0], before[1], after[0]
    text = before[0]
    tokens = re.match(rf"((?:{TOKEN})+)(?=[<\[]|$)", text)
    if tokens is not None:
        return tokens[1], text[tokens.end() :], after[0]
    # <|tool_call>call: opens the whole call; <function= opens the name.
    return (text, "", after[0]) if re.match(TOKEN, text) else ("", text, after[0])


def _json_arguments(arguments: Json, path: str, *, ended: bool) -> Arguments:
    """Return JSON arguments; literals if they are not quite JSON, or if only their brace ends the name."""
    bare_keys = arguments.get("unquoted_keys", False)
    quotes: list[str] = []
    for i, (left, right) in enumerate(arguments.get("string_delims", [])):
        if left != right:
            raise FormatError(f"{path}.string_delims[{i}]", f"{NO_COUNTERPART}: the two differ")
        quotes.append(left)
    if ended and not bare_keys and not quotes:
        return JsonArguments()
    return LiteralArguments(
        open="{",
        close="}",
        assign=":",
        separator=",",
        quotes=tuple(dict.fromkeys([*quotes, '"'])),
        escapes=not quotes,
        words=("true", "false", "null"),
        quoted_keys=not bare_keys,
    )


def _tagged(arguments: Json, path: str) -> TaggedArguments:
    if arguments.get("merge_duplicates"):
        raise FormatError(f"{path}.merge_duplicates", NO_COUNTERPART)
    parser = arguments.get("value_parser", {"name": "text"})
    if parser["name"] not in ("text", "json"):
        raise FormatError(f"{path}.value_parser.name", f"{NO_COUNTERPART}: {parser['name']!r}")
    for key in ("unquoted_keys", "string_delims"):
        if parser.get("args", {}).get(key):
            raise FormatError(f"{path}.value_parser.args.{key}", NO_COUNTERPART)
    path = f"{path}.tag_pattern"
    parts = _tag_parts(arguments["tag_pattern"], path)
    k, v = (i for i, piece in enumerate(parts) if isinstance(piece, Variable))
    trim = 1 if _touches_newline(parts[v - 1], -1, path) | _touches_newline((*parts, "")[v + 1], 0, path) else 0
    before, between, after = (chunks(part, path) for part in (parts[:k], parts[k + 1 : v], parts[v + 1 :]))
    if len(before) != 1 or not 1 <= len(between) <= 2 or len(after) != 1:
        raise FormatError(path, f"{NO_COUNTERPART}: not key_open, key, key_close, value, value_close")
    if len(between) == 1:
        tokens = re.fullmatch(r"([^<>]*>)(\s*<[^<>]*>)", between[0].rstrip("\n"))
        between = [tokens[1], tokens[2]] if tokens is not None else between
    newline = "\n" * trim
    key_close, value_open = between[0], between[1] if len(between) == 2 else ""
    return TaggedArguments(
        key_open=Marker(before[0]),
        key_close=Marker(key_close if value_open else key_close.rstrip("\n") + newline),
        value_open=Marker(value_open.rstrip("\n") + newline) if value_open else None,
        value_close=Marker(newline + after[0].lstrip("\n")),
        trim=trim,
    )


def _tag_parts(pattern: str, path: str) -> list[FlatPart]:
    """Return the parts of a pattern that has the groups key and value, in this order, and no alternatives."""
    alternatives = read(pattern, path)
    if len(alternatives) > 1:
        raise FormatError(path, f"{NO_COUNTERPART}: alternatives")
    groups = [piece.name for piece in alternatives[0] if isinstance(piece, Variable)]
    for group in ("key", "value"):
        if group not in groups:
            raise FormatError(path, f"has no group {group!r}")
    if groups != ["key", "value"]:
        raise FormatError(path, f"{NO_COUNTERPART}: the groups {', '.join(groups)}")
    return alternatives[0]


def _touches_newline(piece: FlatPart, end: int, path: str) -> bool:
    """True if a value loses newlines to the piece next to it."""
    if isinstance(piece, Space):
        if not piece.newlines:
            raise FormatError(path, f"{NO_COUNTERPART}: spaces next to the value")
        return True
    return isinstance(piece, str) and piece != "" and piece[end] == "\n"
