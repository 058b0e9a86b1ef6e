"""Types of values and statuses of calls (V1 to V7, U1)."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

import jsonschema_rs
from marks import WS

ORDER = ("null", "integer", "number", "boolean", "object", "array")
NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?\Z")
LOOSE = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z")


def function_of(tools: Any, name: str) -> dict[str, Any] | None:
    """Return the tool of this name, if the tools are known and it is one of them."""
    for tool in tools or ():
        function = tool.get("function", tool)
        if function.get("name") == name:
            return dict(function)
    return None


def schema_of(tools: Any, name: str, key: str) -> Any:
    """Return the schema of an argument, with the whole schema for `$ref` (V1)."""
    parameters = (function_of(tools, name) or {}).get("parameters") or {}
    found = parameters.get("properties", {}).get(key, parameters.get("additionalProperties"))
    return {"of": found, "root": parameters} if isinstance(found, dict) else None


def _parts(schema: Any) -> tuple[set[str], list[Any]]:
    """Return the types that a schema allows, and the members of its `enum` and `const` (V1)."""
    types: set[str] = set()
    members: list[Any] = []

    def walk(one: Any, depth: int) -> None:
        if not isinstance(one, dict) or depth > 32:
            return
        if isinstance(one.get("$ref"), str) and one["$ref"].startswith("#"):
            target = schema["root"]
            for step in one["$ref"][1:].split("/")[1:]:
                target = target.get(step, {}) if isinstance(target, dict) else {}
            walk(target, depth + 1)
        for word in ("anyOf", "oneOf", "allOf"):
            for part in one.get(word, ()):
                walk(part, depth + 1)
        given = one.get("type", ())
        own = {given} if isinstance(given, str) else set(given)
        listed = [*one.get("enum", ()), *([one["const"]] if "const" in one else ())]
        members.extend(listed)
        own |= {_type_of(member) for member in listed}
        if one.get("nullable") is True:
            own.add("null")
        if not own and "properties" in one:
            own.add("object")
        if not own and "items" in one:
            own.add("array")
        types.update(own)

    walk(schema["of"], 0)
    return types, members


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", dict: "object", list: "array"}
    return kinds[type(value)]


def types_of(schema: Any) -> set[str]:
    return _parts(schema)[0] if schema else set()


def only_string(schema: Any) -> bool:
    """True if a value can only be a string (V2)."""
    return types_of(schema) <= {"string"}


def converted(text: str, schema: Any) -> str:
    """Return a value as JSON, by its schema (V2 to V7)."""
    types, members = _parts(schema) if schema else (set(), [])
    if types <= {"string"} or text in [one for one in members if isinstance(one, str)]:
        return json.dumps(text, ensure_ascii=False)
    strict = "string" in types
    given = text if strict else text.strip(WS)
    for kind in ORDER:
        if kind in types and (found := _as(kind, given, types, strict)) is not None:
            return found
    return json.dumps(text, ensure_ascii=False)


def _as(kind: str, text: str, types: set[str], strict: bool) -> str | None:
    """Return the text as JSON of a type, or None if it does not fit (V5 to V7)."""
    if kind == "null":
        return "null" if text in ("null", "Null", "NULL", "None") else None
    if kind == "boolean":
        if text.lower() in ("true", "false") and text in (text.lower(), text.upper(), text.capitalize()):
            return text.lower()
        if not strict and text in ("0", "1") and not types & {"integer", "number"}:
            return "true" if text == "1" else "false"
        return None
    if kind in ("integer", "number"):
        return _number(kind, text, types, strict)
    return container(text.strip(WS), "{" if kind == "object" else "[")


def _number(kind: str, text: str, types: set[str], strict: bool) -> str | None:
    whole = kind == "integer"
    if match := NUMBER.match(text):
        if not whole or not (match[2] or match[3]):
            return text
    elif strict or not LOOSE.match(text):
        return None
    elif not whole or re.fullmatch(r"[+-]?\d+", text):
        return json.dumps(int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text))
    if whole and not strict and "number" not in types and float(text).is_integer() and "e" not in text.lower():
        return str(int(float(text)))
    return None


def container(text: str, brace: str) -> str | None:
    """Return JSON, or a literal of Python as JSON, that begins with a brace (V7)."""
    if not text.startswith(brace):
        return None
    try:
        strict_json(text)
        return text
    except (ValueError, RecursionError):
        pass
    try:
        return json.dumps(_plain(ast.literal_eval(text)), ensure_ascii=False, allow_nan=False)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(one) for one in value]
    return value


def strict_json(text: str) -> Any:
    """Return JSON as a value.

    Raises:
        ValueError: it is no JSON, or it holds `NaN` or `Infinity`.
    """

    def refuse(word: str) -> Any:
        raise ValueError(word)

    return json.loads(text, parse_constant=refuse)


def status_of(name: str, arguments: str, *, tools: Any, incomplete: bool, recovered: bool, broken: bool = False) -> str:
    """Return the first status that applies (U1)."""
    if incomplete:
        return "incomplete"
    try:
        value = strict_json(arguments)
    except (ValueError, RecursionError):
        return "invalid_json"
    if broken or not isinstance(value, dict):
        return "invalid_json"
    if tools is not None:
        function = function_of(tools, name)
        if function is None:
            return "unknown_tool"
        if not _fits(value, function.get("parameters") or {}):
            return "invalid_arguments"
    return "recovered" if recovered else "ok"


def _fits(value: Any, parameters: Any) -> bool:
    try:
        return bool(jsonschema_rs.Draft202012Validator(_with_null(parameters)).is_valid(value))
    except ValueError:
        return True


def _with_null(schema: Any) -> Any:
    """Return a schema in which `nullable: true` is a type."""
    if isinstance(schema, list):
        return [_with_null(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _with_null(one) for key, one in schema.items()}
    return {"anyOf": [made, {"type": "null"}]} if schema.get("nullable") is True else made
