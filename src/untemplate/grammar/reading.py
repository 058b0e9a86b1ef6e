"""JSON schemas, read: what an object's members are, what references point at, what ``allOf`` comes to.

Rule of this module: what cannot be read is a :class:`~.rules.GrammarError` that names the tool and the keyword.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from .rules import GrammarError, whose

__all__ = ["ANNOTATIONS", "at", "closed", "closed_note", "fits", "members", "merged", "resolve"]

ANNOTATIONS: Final = frozenset(
    ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "$schema",
     "$id", "$defs", "definitions", "strict")
)  # fmt: skip


def closed(schema: Mapping[str, Any]) -> bool:
    """Whether an object is taken to have no properties but those that it lists, though it does not say so."""
    return bool(schema.get("properties")) and "additionalProperties" not in schema


def closed_note(tool: str) -> str:
    return f"{whose(tool)}: 'additionalProperties' is taken to be false where it is not given"


def members(schema: Mapping[str, Any], tool: str, path: str = "") -> tuple[dict[str, Any], frozenset[str], Any]:
    """(properties, required, additionalProperties) of an object schema. With properties and no word on others, there
    are no others."""
    properties = schema.get("properties") or {}
    if not isinstance(properties, Mapping):
        raise GrammarError(f"{whose(tool)}{at(path)}: 'properties' is not an object")
    required = [r for r in schema.get("required") or () if isinstance(r, str)]
    more = not closed(schema) and schema.get("additionalProperties", True)
    found = dict(properties)
    for key in required:
        if key not in found:
            if more is False:
                raise GrammarError(f"{whose(tool)}{at(path)}: 'required' names {key!r}, which is not in 'properties'")
            found[key] = more
    return found, frozenset(required), more


def resolve(ref: Any, root: Any, tool: str, path: str) -> Any:
    """What a local reference points at."""
    part = root
    if isinstance(ref, str) and (ref == "#" or ref.startswith("#/")):
        for key in ref[2:].split("/") if len(ref) > 1 else ():
            key = key.replace("~1", "/").replace("~0", "~")
            if isinstance(part, Mapping) and key in part:
                part = part[key]
            elif isinstance(part, Sequence) and not isinstance(part, str) and key.isdecimal() and int(key) < len(part):
                part = part[int(key)]
            else:
                part = None
                break
        if isinstance(part, Mapping | bool):
            return part
    raise GrammarError(f"{whose(tool)}{at(path)}: '$ref' {ref!r} points at nothing in its schema")


def merged(schema: Mapping[str, Any], root: Any, tool: str, path: str) -> dict[str, Any]:
    """One schema for a schema with ``allOf``."""
    result: dict[str, Any] = {k: v for k, v in schema.items() if k != "allOf"}
    for part in schema.get("allOf") or ():
        seen = 0
        while isinstance(part, Mapping) and "$ref" in part:
            target = resolve(part["$ref"], root, tool, path)
            rest = {k: v for k, v in part.items() if k != "$ref"}
            part = {"allOf": [target], **rest} if rest and isinstance(target, Mapping) else target
            seen += 1
            if seen > 32:
                raise GrammarError(f"{whose(tool)}{at(path)}: '$ref' points at itself")
        if part is True:
            continue
        if not isinstance(part, Mapping):
            raise GrammarError(f"{whose(tool)}{at(path)}: 'allOf' holds something that is not a schema")
        part = merged(part, root, tool, path) if "allOf" in part else part
        for key, value in part.items():
            if key in ANNOTATIONS or key not in result or result[key] == value:
                result.setdefault(key, value)
            elif key == "properties":
                both = dict(result[key])
                for name, inner in value.items():
                    both[name] = {"allOf": [both[name], inner]} if name in both else inner
                result[key] = both
            elif key == "required":
                result[key] = list(dict.fromkeys((*result[key], *value)))
            elif key in ("minLength", "minItems", "minimum", "minProperties"):
                result[key] = max(result[key], value)
            elif key in ("maxLength", "maxItems", "maximum", "maxProperties"):
                result[key] = min(result[key], value)
            elif key == "enum":
                result[key] = [v for v in result[key] if v in value]
            elif key == "type":
                mine, theirs = ([t] if isinstance(t, str) else list(t) for t in (result[key], value))
                both_types = [t for t in mine if t in theirs or (t == "integer" and "number" in theirs)]
                both_types += [t for t in theirs if t == "integer" and "number" in mine and t not in both_types]
                result[key] = both_types
                if not both_types:
                    raise GrammarError(f"{whose(tool)}{at(path)}: 'allOf' allows no type")
            elif key == "additionalProperties" and isinstance(value, bool) and isinstance(result[key], bool):
                result[key] = result[key] and value
            else:
                raise GrammarError(f"{whose(tool)}{at(path)}: 'allOf' says {key!r} twice")
    return result


def fits(value: Any, types: Any) -> bool:
    """Whether an ``enum`` value is of the types beside it."""
    if types is None:
        return True
    listed = (types,) if isinstance(types, str) else tuple(types)
    if value is None:
        return "null" in listed
    if isinstance(value, bool):
        return "boolean" in listed
    if isinstance(value, int):
        return "integer" in listed or "number" in listed
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (float, "number"), (str, "string"), (Mapping, "object"), ((list, tuple), "array")
    )  # fmt: skip
    return any(isinstance(value, kind) and word in listed for kind, word in kinds)


def at(path: str) -> str:
    """Where in a schema, for messages."""
    return f" at {path}" if path else ""
