"""A fast check: whether a value certainly fits a schema. Most calls do, and the full check is for the others.

A schema is compiled to nested functions, once. What they do not know (other keywords, references that go round, many
alternatives) is left to the full check, which also finds out what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ..jsontext.coercion import canonical_type
from .reading import resolve

__all__ = ["Fits", "fits_of"]

Fits = Callable[[object], bool]
"""Returns True for JSON values that certainly fit a schema."""

_UNKNOWN: Final = frozenset(("const", "allOf", "oneOf", "prefixItems", "patternProperties"))
"""Keywords with a meaning in the full check that are not compiled."""
_OF_OBJECTS: Final = frozenset(("properties", "required", "additionalProperties"))
_CHECKED: Final = _UNKNOWN | _OF_OBJECTS | {"type", "enum", "$ref", "anyOf", "items", "nullable"}
_MAX_DEPTH: Final = 8
"""Of nested schemas; those of real tools are not deeper than 5."""
_MAX_CHECKS: Final = 8
"""Most alternatives that one value can be tried with."""
_MAX_MEMBERS: Final = 1_000
_EXACT: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "object": (dict,),
    "array": (list,),
}


def fits_of(schema: object, root: object = None, depth: int = 0, checks: int = 1) -> Fits | None:
    """Compile a schema; ``None`` if that is not possible. Where the result returns False, the full check decides.

    ``root``: the document that ``$ref`` points into, if another. ``depth``: schemas around this one. ``checks``: with
    how many alternatives a value that gets here may be tried.
    """
    if schema is None or schema is True:
        return _anything
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH or checks > _MAX_CHECKS:
        return None
    root = schema if root is None else root
    words = _CHECKED.intersection(schema)
    if not words.isdisjoint(_UNKNOWN):
        return None
    if "$ref" in words:
        alone = len(words) == 1
        return fits_of(resolve(schema["$ref"], root), root, depth + 1, checks) if alone else None
    if "anyOf" in words:
        return _alternatives(schema["anyOf"], root, depth, checks) if len(words) == 1 else None
    types = _types(schema.get("type"))
    if types is None:
        return None
    if schema.get("nullable") is True and types:
        types |= {type(None)}
    if "enum" in words:
        return _listed(schema["enum"], types) if words <= {"enum", "type"} else None
    members = _object(schema, root, depth, checks) if (not types or dict in types) else _anything
    items = _array(schema, root, depth, checks) if (not types or list in types) else _anything
    if members is None or items is None:
        return None
    return _of_types(types, members, items)


def _types(words: object) -> frozenset[type] | None:
    """Return Python's types for ``type``; none of them if it is not limited, ``None`` if it is not known."""
    if words is None:
        return frozenset()
    found: set[type] = set()
    for word in words if isinstance(words, (list, tuple)) else (words,):
        exact = _EXACT.get(canonical_type(word)) if isinstance(word, str) else None
        if exact is None:
            return None
        found.update(exact)
    return frozenset(found)


def _only_types(schema: object) -> frozenset[type] | None:
    """Return the types of a schema that has nothing else to check, and no value with members or items."""
    if not isinstance(schema, Mapping) or _CHECKED.intersection(schema) != {"type"}:
        return None
    types = _types(schema["type"])
    return types if types and types.isdisjoint((dict, list)) else None


def _anything(value: object) -> bool:
    return True


def _of_types(types: frozenset[type], members: Fits, items: Fits) -> Fits:
    if members is _anything and items is _anything:
        return (lambda value: type(value) in types) if types else _anything

    def fits(value: object) -> bool:
        found = type(value)
        if types and found not in types:
            return False
        return members(value) if found is dict else items(value) if found is list else True

    return fits


def _listed(words: object, types: frozenset[type]) -> Fits | None:
    """Strings and null: for others, equality has rules of its own."""
    if not isinstance(words, (list, tuple)) or not all(word is None or isinstance(word, str) for word in words):
        return None
    known = frozenset(word for word in words if not types or type(word) in types)
    return lambda value: (type(value) is str or value is None) and value in known


def _alternatives(parts: object, root: object, depth: int, checks: int) -> Fits | None:
    if not isinstance(parts, (list, tuple)) or not parts:
        return None
    compiled = [fits_of(part, root, depth + 1, checks * len(parts)) for part in parts]
    known = [check for check in compiled if check is not None]
    if len(known) < len(compiled):
        return None
    return lambda value: any(check(value) for check in known)


def _object(schema: Mapping[str, object], root: object, depth: int, checks: int) -> Fits | None:
    if _OF_OBJECTS.isdisjoint(schema):
        return _anything
    own = schema.get("properties", {})
    required = schema.get("required", ())
    others = schema.get("additionalProperties", True)
    if not isinstance(own, Mapping) or not isinstance(required, (list, tuple)):
        return None
    other = _nothing if others is False else fits_of(others, root, depth + 1, checks)
    if other is None:
        return None
    known: dict[str, Fits] = {}
    for key, part in own.items():
        check = _nothing if part is False else fits_of(part, root, depth + 1, checks)
        if check is None:
            return None
        known[key] = check
    needed = [key for key in required if isinstance(key, str)]

    def fits(value: object) -> bool:
        if not isinstance(value, dict) or len(value) > _MAX_MEMBERS:
            return False
        for key in needed:
            if key not in value:
                return False
        return all(known.get(key, other)(item) for key, item in value.items())

    return fits


def _nothing(value: object) -> bool:
    return False


def _array(schema: Mapping[str, object], root: object, depth: int, checks: int) -> Fits | None:
    item = fits_of(schema.get("items"), root, depth + 1, checks)
    if item is None or item is _anything:
        return item
    types = _only_types(schema["items"])
    if types:
        # Without a call of Python's for each item.
        return lambda value: isinstance(value, list) and types.issuperset(map(type, value))
    return lambda value: isinstance(value, list) and len(value) <= _MAX_MEMBERS and all(map(item, value))
