"""Converts a Format to JSON and back.

* The JSON form follows the dataclasses of :mod:`untemplate.format`: field names are keys, type hints decide which
  values are valid. One function writes, one reads, and no field is listed twice.
* Fields at their default are left out, except ``version`` and ``name``. A marker without further spellings is a plain
  string. If a field can hold one of several classes, ``kind`` names the class.
* An unknown version or key, a wrong type, a missing key and an invalid value are errors that name their path.
"""

from __future__ import annotations

import json
import re
import types
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Final, Literal, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from ._parts import (
    FORMAT_VERSION,
    ElementArguments,
    FormatError,
    FormatFields,
    JsonArguments,
    JsonBody,
    LiteralArguments,
    Marker,
    NamedBody,
    TaggedArguments,
)

__all__ = ["from_json", "json_schema", "shown", "to_json"]

_F = TypeVar("_F", bound=FormatFields)

_KINDS: Final[dict[type, str]] = {
    JsonBody: "json",
    NamedBody: "named",
    JsonArguments: "json",
    TaggedArguments: "tagged",
    ElementArguments: "element",
    LiteralArguments: "literal",
}
_JSON_TYPES: Final[dict[Any, str]] = {str: "string", bool: "boolean", int: "integer", types.NoneType: "null"}
_ALWAYS: Final = ("version", "name")
"""Fields of a Format that are written even at their default."""
_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def to_json(fmt: FormatFields, *, indent: int | None) -> str:
    """Return ``fmt`` as JSON text, on one line if ``indent`` is ``None``."""
    return json.dumps(_written(fmt), ensure_ascii=False, indent=indent)


def from_json(text: str | bytes, cls: type[_F]) -> _F:
    """Return the Format (of class ``cls``) that ``text`` describes; bytes are UTF-8.

    Raises:
        FormatError: ``text`` is not JSON, has an unknown version, a wrong type, a missing or unknown key or an invalid
            value, or describes a Format that cannot work. ``path`` names the field.
    """
    try:
        document = json.loads(text, parse_constant=_refuse, object_pairs_hook=_members)
    except (ValueError, RecursionError) as error:
        raise FormatError("Format", f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise FormatError("Format", f"expected an object, got {shown(document)}")
    version = _int(document.get("version", FORMAT_VERSION), "version")
    if version != FORMAT_VERSION:
        raise FormatError("version", f"{version} is not known here; the only version is {FORMAT_VERSION}")
    return cls(**_object(cls, document, ""))


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


class _Repeated(dict[str, Any]):
    """An object of JSON that has a key twice, the first of which is ``key``."""

    key: str


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        found = _Repeated(found)
        found.key = next(name for name in names if names.count(name) > 1)
    return found


# -- Writing ------------------------------------------------------------------------------------------------------


def _written(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_written(item) for item in value]
    if not is_dataclass(value):
        return value
    if isinstance(value, Marker) and not value.accepted:
        return value.text
    cls: Any = type(value)
    result: dict[str, Any] = {"kind": _KINDS[cls]} if cls in _KINDS else {}
    for f in _fields(cls):
        item = getattr(value, f.name)
        if (f.name in _ALWAYS and issubclass(cls, FormatFields)) or item != _default(f):
            result[f.name] = _written(item)
    return result


def _default(f: Field[Any]) -> Any:
    return f.default if f.default_factory is MISSING else f.default_factory()


# -- Reading ------------------------------------------------------------------------------------------------------


def _read(hint: Any, value: Any, path: str) -> Any:
    """Return ``value`` as the type that ``hint`` asks for."""
    if hint is Marker and isinstance(value, str):
        return Marker(value)
    if isinstance(hint, type) and is_dataclass(hint):
        if not isinstance(value, dict):
            wanted = "a marker (text, or an object with 'text')" if hint is Marker else "an object"
            raise FormatError(path, f"expected {wanted}, got {shown(value)}")
        return hint(**_object(hint, value, path))
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _one_of(arguments, value, path)
    if origin is tuple:
        return tuple(_items(arguments, value, path))
    if origin is Literal:
        if value not in arguments:
            raise FormatError(path, f"{shown(value)} is not one of: {', '.join(arguments)}")
        return value
    return _plain(hint, value, path)


def _plain(hint: Any, value: Any, path: str) -> Any:
    if hint is bool and not isinstance(value, bool):
        raise FormatError(path, f"expected true or false, got {shown(value)}")
    if hint is str and not isinstance(value, str):
        raise FormatError(path, f"expected text, got {shown(value)}")
    return _int(value, path) if hint is int else value


def _object(cls: type, value: dict[str, Any], path: str) -> dict[str, Any]:
    """Return the fields of ``cls`` that ``value`` has."""
    if isinstance(value, _Repeated):
        raise FormatError(_join(path, value.key), "is given twice")
    hints = _hints(cls)
    known = _fields(cls)
    keys = [f.name for f in known]
    if cls in _KINDS:
        keys.insert(0, "kind")
    for key in value:
        if key not in keys:
            raise FormatError(_join(path, key), f"is not a key here; the keys are: {', '.join(keys)}")
    result: dict[str, Any] = {}
    for f in known:
        if f.name in value:
            result[f.name] = _read(hints[f.name], value[f.name], _join(path, f.name))
        elif _default(f) is MISSING:
            raise FormatError(_join(path, f.name), "is missing")
    return result


def _one_of(hints: tuple[Any, ...], value: Any, path: str) -> Any:
    """Return ``value`` as the one of several types that its ``kind`` names."""
    if value is None and types.NoneType in hints:
        return None
    classes = [hint for hint in hints if hint is not types.NoneType]
    if len(classes) == 1:
        return _read(classes[0], value, path)
    if not isinstance(value, dict):
        raise FormatError(path, f"expected an object, got {shown(value)}")
    kinds = {_KINDS[cls]: cls for cls in classes}
    if "kind" not in value:
        raise FormatError(f"{path}.kind", f"is missing; it is one of: {', '.join(kinds)}")
    kind = value["kind"]
    if not isinstance(kind, str) or kind not in kinds:
        raise FormatError(f"{path}.kind", f"{shown(kind)} is not one of: {', '.join(kinds)}")
    return _read(kinds[kind], value, path)


def _items(hints: tuple[Any, ...], value: Any, path: str) -> Iterator[Any]:
    if not isinstance(value, list):
        raise FormatError(path, f"expected an array, got {shown(value)}")
    if hints[-1] is not Ellipsis and len(value) != len(hints):
        raise FormatError(path, f"expected {len(hints)} items, got {len(value)}")
    for i, item in enumerate(value):
        yield _read(hints[0] if hints[-1] is Ellipsis else hints[i], item, f"{path}[{i}]")


def _int(value: Any, path: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise FormatError(path, f"expected an integer, got {shown(value)}")
    return value


def _join(path: str, key: str) -> str:
    """Return the path of ``key``: ``tools[0].body``; a key that is not a word is quoted: ``tools[0]["a.b"]``."""
    if not _KEY.fullmatch(key):
        return f"{path}[{json.dumps(key)}]"
    return f"{path}.{key}" if path else key


def shown(value: Any) -> str:
    """Return a JSON value as error messages show it."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    return repr(value) if isinstance(value, str) else json.dumps(value)


# -- The schema ---------------------------------------------------------------------------------------------------


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a Format as JSON. It describes keys and types, not which markers may meet."""
    definitions: dict[str, Any] = {}
    root = _class_schema(FormatFields, definitions)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Format", **root, "$defs": definitions}


def _class_schema(cls: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a class, and put those of the classes in its fields into ``definitions``."""
    hints = _hints(cls)
    found: dict[str, Any] = {"kind": {"const": _KINDS[cls]}} if cls in _KINDS else {}
    required = list(found)
    for f in _fields(cls):
        found[f.name] = _schema(hints[f.name], definitions)
        if _default(f) is MISSING:
            required.append(f.name)
    schema: dict[str, Any] = {"type": "object", "properties": found, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def _schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a type hint."""
    origin, arguments = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}
            definitions[hint.__name__] = _class_schema(hint, definitions)
        reference = {"$ref": f"#/$defs/{hint.__name__}"}
        return {"anyOf": [{"type": "string"}, reference]} if hint is Marker else reference
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(part, definitions) for part in arguments]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is tuple and arguments[-1] is Ellipsis:
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    if origin is tuple:
        items = [_schema(part, definitions) for part in arguments]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    return {"type": _JSON_TYPES[hint]}


# -- The dataclasses ----------------------------------------------------------------------------------------------


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


@cache
def _fields(cls: Any) -> tuple[Field[Any], ...]:
    """Return the fields of a class, ``version`` first."""
    return tuple(sorted(fields(cls), key=lambda f: issubclass(cls, FormatFields) and f.name != "version"))
