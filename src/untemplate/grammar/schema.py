"""Schemas on their way to the engines: what each dialect enforces, what it does not, and what must be said about it.

Rules of this module:

* An engine never sees a keyword that it would ignore in silence or refuse: the keyword is taken out, which allows more
  and nothing else, and a note says so. Under ``not`` and ``if`` that would allow less, so these go as a whole.
* An object that lists its properties and says nothing of others has no others, in every dialect alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from .reading import at, closed, closed_note, members, merged, resolve
from .rules import GrammarError, JsonSchema, whose

__all__ = ["enforced", "frozen", "holds_text"]

_MAX_DEPTH: Final = 96
_HARD: Final = re.compile(r"\(\?[=!<]|\\[1-9bBpPkAzZ]")
"""Lookaround, references back, word boundaries and classes by property: regular engines refuse them."""
_SILENT: Final = frozenset(
    ("title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment",
     "$schema", "$id", "strict", "nullable")
)  # fmt: skip
_COMMON: Final = frozenset(
    ("type", "properties", "required", "additionalProperties", "items", "prefixItems", "minItems", "maxItems", "enum",
     "const", "minLength", "maxLength", "pattern", "minimum",
     "maximum", "exclusiveMinimum", "exclusiveMaximum")
)  # fmt: skip
_TYPES: Final = frozenset(("string", "number", "integer", "boolean", "object", "array", "null"))
_FORMATS: Final = frozenset(("date-time", "time", "date", "email", "hostname", "ipv4", "ipv6", "uuid"))
_ENFORCED: Final[dict[str, frozenset[str]]] = {
    "lark": _COMMON | {"format"},
    # A string of bounded length may hold raw control characters in xgrammar 0.2.8, which is no JSON.
    "structural_tag": _COMMON - {"minLength", "maxLength"},
}


def _but(part: Mapping[str, Any], word: str) -> dict[str, Any]:
    return {k: v for k, v in part.items() if k != word}


def frozen(schema: Mapping[str, Any] | bool, tool: str) -> JsonSchema:
    """A schema as a value.

    Raises:
        GrammarError: it is not JSON.
    """
    try:
        return JsonSchema(schema, json.dumps(schema, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise GrammarError(f"{whose(tool)}: its schema is not JSON: {error}") from None


def enforced(schema: JsonSchema, tool: str, dialect: str, notes: list[str]) -> Mapping[str, Any] | bool:
    """The schema as an engine gets it.

    Raises:
        GrammarError: names the tool and the keyword.
    """
    if isinstance(schema.value, Mapping) and len(schema.value) == 1 and schema.value.get("type") == "object":
        return schema.value
    known = _ENFORCED[dialect]
    said: dict[str, None] = {}

    def weaker(word: str, why: str = "") -> None:
        said[f"{whose(tool)}: '{word}' is not enforced{f' ({why})' if why else ''}"] = None

    def walk(part: Any, path: str, depth: int = 0) -> Any:
        where = at(path)
        if depth > _MAX_DEPTH:
            raise GrammarError(f"{whose(tool)}{where}: '$ref' with keywords beside it leads back to itself")
        if isinstance(part, bool):
            if not part and path and not path.endswith(("additionalProperties", "items")):
                raise GrammarError(f"{whose(tool)}{where}: the schema 'false' allows nothing")
            return part
        if not isinstance(part, Mapping):
            raise GrammarError(f"{whose(tool)}{where}: {type(part).__name__} is not a schema")
        definitions = {
            word: {k: walk(s, f"{path}/{word}/{k}", depth + 1) for k, s in part[word].items()}
            for word in ("$defs", "definitions")
            if word in part
        }
        plain = {k: v for k, v in part.items() if k not in _SILENT and k not in definitions}
        if part.get("nullable") is True and isinstance(part.get("type"), str):
            plain["type"] = [part["type"], "null"]
        return {**definitions, **apart(plain, path, depth)}

    def apart(part: dict[str, Any], path: str, depth: int) -> Any:
        """``part``, which engines read badly where it says one thing in several places, said in one."""
        whole: Any = None
        if "allOf" in part:
            whole = merged(part, schema.value, tool, path)
        elif "$ref" in part and len(part) > 1:
            target = resolve(part["$ref"], schema.value, tool, path)
            whole = merged({**_but(part, "$ref"), "allOf": [target]}, schema.value, tool, path)
        if whole is not None:
            return walk(whole, path, depth + 1)
        for word in ("anyOf", "oneOf"):
            if word in part and len(part) > 1:
                base = _but(part, word)
                ways = [merged({**base, "allOf": [p]}, schema.value, tool, path) for p in part[word]]
                return walk({word: ways}, path, depth + 1)
        return keywords(part, path, depth)

    def keywords(part: dict[str, Any], path: str, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for word, value in part.items():
            if word in ("anyOf", "oneOf"):
                if word == "oneOf" and len(value) > 1:
                    weaker(word, "more than one of its schemas may fit")
                result["anyOf"] = [walk(s, f"{path}/{word}/{i}", depth + 1) for i, s in enumerate(value)]
            elif word == "$ref":
                resolve(value, schema.value, tool, path)
                result[word] = value
            elif word == "format" and word in known and value not in _FORMATS:
                weaker(f"format: {value}")
            elif word == "pattern" and _HARD.search(value):
                weaker(word, value)
            elif word not in known:
                weaker(word)
            elif word == "type":
                for kind in (value,) if isinstance(value, str) else value:
                    if kind not in _TYPES:
                        raise GrammarError(f"{whose(tool)}{at(path)}: 'type' {kind!r} is not a JSON type")
                result[word] = value
            elif word == "properties":
                result[word] = {k: walk(s, f"{path}/{k}", depth + 1) for k, s in value.items()}
            elif word == "prefixItems" or (word == "items" and isinstance(value, list)):
                result["prefixItems"] = [walk(s, f"{path}/{word}/{i}", depth + 1) for i, s in enumerate(value)]
            elif word in ("items", "additionalProperties"):
                result[word] = walk(value, f"{path}/{word}", depth + 1)
            else:
                result[word] = value
        if part.get("type") == []:
            raise GrammarError(f"{whose(tool)}{at(path)}: 'type' is empty")
        pattern = result.get("pattern", "^$") if dialect == "structural_tag" else "^$"
        if not pattern.startswith("^") or not pattern.endswith("$"):
            said[f"{whose(tool)}: 'pattern' {pattern!r} is matched from end to end"] = None
        if closed(part):
            said[closed_note(tool)] = None
            result["additionalProperties"] = False
        if "properties" in result or "required" in result:
            members(part, tool, path)
            result.setdefault("type", "object")
        return result

    result: Mapping[str, Any] | bool = walk(schema.value, "")
    notes.extend(said)
    return result


def holds_text(schema: Any) -> bool:
    """Whether a value that this schema allows may hold a string, names of its properties aside."""
    if not isinstance(schema, Mapping):
        return schema is not False
    if any(word in schema for word in ("enum", "const", "$ref", "allOf")):
        return True
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return any(map(holds_text, schema[word]))
    types = schema.get("type")
    listed = (types,) if isinstance(types, str) else tuple(types or ())
    if not listed or "string" in listed:
        return True
    items = schema.get("items", True)
    if "array" in listed and ("prefixItems" in schema or isinstance(items, list) or holds_text(items)):
        return True
    if "object" not in listed:
        return False
    properties = schema.get("properties") or {}
    more = not closed(schema) and schema.get("additionalProperties", True)
    return more is not False or any(map(holds_text, properties.values()))
