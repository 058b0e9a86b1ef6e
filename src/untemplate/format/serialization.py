"""Format ↔ JSON: how a Format travels next to a model.

Rules of this module:

* The form follows the dataclasses of :mod:`untemplate.format`: their field names are the keys, their type hints say
  what may stand there. One walker writes, one reads; nothing is listed twice.
* Fields at their default are left out (``version`` and ``name`` never are). A marker without accepted spellings is a
  plain string. Where a field can be one of several classes, ``kind`` says which.
* Nothing passes silently: a wrong type, a missing key, an unknown choice and, in a document of a version that is known
  here, an unknown key are errors that name their path. In a document of a newer version unknown keys are kept in
  ``Format.unknown`` and written back at their place.
"""

from __future__ import annotations

import json
import re
import types
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from . import (
    FORMAT_VERSION,
    Format,
    FormatError,
    JsonArguments,
    JsonBody,
    LiteralArguments,
    Marker,
    NamedBody,
    TaggedArguments,
)

__all__ = ["from_json", "to_json"]

_KINDS: Final[dict[type, str]] = {
    JsonBody: "json",
    NamedBody: "named",
    JsonArguments: "json",
    TaggedArguments: "tagged",
    LiteralArguments: "literal",
}
_ALWAYS: Final = ((Format, "version"), (Format, "name"))
_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def to_json(fmt: Format, *, indent: int | None) -> str:
    """``fmt`` as JSON text, on one line where ``indent`` is ``None``. Keys that were kept from a newer version stand
    where they stood, unless ``fmt.version`` is no longer newer or what held them is gone."""
    unknown = dict(fmt.unknown) if fmt.version > FORMAT_VERSION else {}
    return json.dumps(_written(fmt, "", unknown), ensure_ascii=False, indent=indent)


def from_json(text: str | bytes) -> Format:
    """The Format that ``text`` (UTF-8 where bytes) describes.

    Raises:
        FormatError: not JSON, a wrong type, a missing key, an unknown choice, an unknown key in a document that is not
            of a newer version, or a Format that cannot work; ``path`` names the place.
    """
    try:
        document = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise FormatError("Format", f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise FormatError("Format", f"expected an object, got {shown(document)}")
    version = _int(document.get("version", FORMAT_VERSION), "version")
    if version < 1:
        raise FormatError("version", f"expected 1 or more, got {version}")
    unknown: list[tuple[str, Any]] | None = [] if version > FORMAT_VERSION else None
    values = _object(Format, document, "", unknown)
    return Format(**values, unknown=tuple(unknown or ()))


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


# -- Writing ------------------------------------------------------------------------------------------------------


def _written(value: Any, path: str, unknown: dict[str, Any]) -> Any:
    if isinstance(value, tuple):
        return [_written(item, f"{path}[{i}]", unknown) for i, item in enumerate(value)]
    if not is_dataclass(value):
        return value
    cls: Any = type(value)
    kept = {key: x for place, x in unknown.items() for parent, key in [_split(place)] if parent == path}
    if isinstance(value, Marker) and not value.accepted and not kept:
        return value.text
    result: dict[str, Any] = {}
    if cls in _KINDS:
        result["kind"] = _KINDS[cls]
    for f in _fields(cls):
        place = _join(path, f.name)
        item = getattr(value, f.name)
        # Something from a newer version may stand inside what is at its default here.
        holds = is_dataclass(item) and any(p.startswith((f"{place}.", f"{place}[")) for p in unknown)
        if holds or (cls, f.name) in _ALWAYS or item != _default(f):
            result[f.name] = _written(item, place, unknown)
    return result | {key: x for key, x in kept.items() if key not in result}


def _default(f: Field[Any]) -> Any:
    return f.default if f.default_factory is MISSING else f.default_factory()


def _join(path: str, key: str) -> str:
    """``path`` with ``key`` in it: ``tools[0].body``; a key that is not a word is quoted: ``tools[0]["a.b"]``."""
    if not _KEY.fullmatch(key):
        return f"{path}[{json.dumps(key)}]"
    return f"{path}.{key}" if path else key


_LAST: Final = re.compile(r"""(?:^|\.)([A-Za-z_][A-Za-z0-9_]*)$ | \[("(?:[^"\\]|\\.)*")\]$""", re.VERBOSE)


def _split(place: str) -> tuple[str, str]:
    """What ``_join`` joined; a place that it did not make is nowhere."""
    match = _LAST.search(place)
    if match is None:
        return "?", ""
    key: str = match[1] or json.loads(match[2])
    return place[: match.start()], key


# -- Reading ------------------------------------------------------------------------------------------------------


def _read(hint: Any, value: Any, path: str, unknown: list[tuple[str, Any]] | None) -> Any:
    """``value`` as what the type ``hint`` says. ``unknown`` collects unknown keys; ``None`` makes them errors."""
    if hint is Marker and isinstance(value, str):
        return Marker(value)
    if isinstance(hint, type) and is_dataclass(hint):
        if not isinstance(value, dict):
            wanted = "a marker (text, or an object with 'text')" if hint is Marker else "an object"
            raise FormatError(path, f"expected {wanted}, got {shown(value)}")
        return hint(**_object(hint, value, path, unknown))
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _one_of(arguments, value, path, unknown)
    if origin is tuple:
        return tuple(_items(arguments, value, path, unknown))
    if origin is Literal:
        if value not in arguments:
            raise FormatError(path, f"{shown(value)} is not one of: {', '.join(arguments)}")
        return value
    if hint is bool and not isinstance(value, bool):
        raise FormatError(path, f"expected true or false, got {shown(value)}")
    if hint is str and not isinstance(value, str):
        raise FormatError(path, f"expected text, got {shown(value)}")
    return _int(value, path) if hint is int else value


def _object(cls: type, value: dict[str, Any], path: str, unknown: list[tuple[str, Any]] | None) -> dict[str, Any]:
    """The fields of ``cls`` that ``value`` has."""
    hints = _hints(cls)
    known = _fields(cls)
    keys = [f.name for f in known]
    if cls in _KINDS:
        keys.insert(0, "kind")
    for key in value:
        if key not in keys:
            if unknown is None:
                raise FormatError(_join(path, key), f"is not a key here; the keys are: {', '.join(keys)}")
            unknown.append((_join(path, key), value[key]))
    result: dict[str, Any] = {}
    for f in known:
        if f.name in value:
            result[f.name] = _read(hints[f.name], value[f.name], _join(path, f.name), unknown)
        elif _default(f) is MISSING:
            raise FormatError(_join(path, f.name), "is missing")
    return result


def _one_of(hints: tuple[Any, ...], value: Any, path: str, unknown: list[tuple[str, Any]] | None) -> Any:
    if value is None and types.NoneType in hints:
        return None
    classes = [hint for hint in hints if hint is not types.NoneType]
    if len(classes) == 1:
        return _read(classes[0], value, path, unknown)
    if not isinstance(value, dict):
        raise FormatError(path, f"expected an object, got {shown(value)}")
    kinds = {_KINDS[cls]: cls for cls in classes}
    if "kind" not in value:
        raise FormatError(f"{path}.kind", "is missing")
    kind = value["kind"]
    if not isinstance(kind, str) or kind not in kinds:
        raise FormatError(f"{path}.kind", f"{shown(kind)} is not one of: {', '.join(kinds)}")
    return _read(kinds[kind], value, path, unknown)


def _items(hints: tuple[Any, ...], value: Any, path: str, unknown: list[tuple[str, Any]] | None) -> Iterator[Any]:
    if not isinstance(value, list):
        raise FormatError(path, f"expected an array, got {shown(value)}")
    if hints[-1] is not Ellipsis and len(value) != len(hints):
        raise FormatError(path, f"expected {len(hints)} items, got {len(value)}")
    for i, item in enumerate(value):
        yield _read(hints[0] if hints[-1] is Ellipsis else hints[i], item, f"{path}[{i}]", unknown)


def _int(value: Any, path: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise FormatError(path, f"expected an integer, got {shown(value)}")
    return value


def shown(value: Any) -> str:
    """A JSON value, as an error message shows it."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    return repr(value) if isinstance(value, str) else json.dumps(value)


# -- The dataclasses ----------------------------------------------------------------------------------------------


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


@cache
def _fields(cls: Any) -> tuple[Field[Any], ...]:
    """What the JSON form knows of a class, ``version`` first."""
    known = [f for f in fields(cls) if cls is not Format or f.name != "unknown"]
    return tuple(sorted(known, key=lambda f: cls is Format and f.name != "version"))
