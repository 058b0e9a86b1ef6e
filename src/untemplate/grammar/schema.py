"""Schemas on their way to the engines: what each dialect enforces, what it does not, and what must be said about it.

Rules of this module:

* An engine never sees a keyword that it would ignore in silence or refuse: the keyword is taken out, which allows more
  and nothing else, and a note says so. Under ``not`` and ``if`` that would allow less, so these go as a whole.
* An object that lists its properties and says nothing of others has no others, in every dialect alike.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from .rules import GrammarError, JsonSchema
from .values import members, resolve

__all__ = ["enforced", "frozen"]

_MAPS: Final = ("properties", "patternProperties", "$defs", "definitions")
_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_INNER: Final = ("items", "additionalProperties", "additionalItems")
_SILENT: Final = frozenset(
    ("title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment",
     "$schema", "$id", "strict", "nullable")
)  # fmt: skip
_COMMON: Final = frozenset(
    ("type", "properties", "required", "additionalProperties", "items", "prefixItems", "minItems", "maxItems", "enum",
     "const", "anyOf", "allOf", "$ref", "$defs", "definitions", "minLength", "maxLength", "pattern", "minimum",
     "maximum", "exclusiveMinimum", "exclusiveMaximum")
)  # fmt: skip
_FORMATS: Final = frozenset(("date-time", "time", "date", "email", "hostname", "ipv4", "ipv6", "uuid"))
_ENFORCED: Final[dict[str, frozenset[str]]] = {
    "lark": _COMMON | {"format"},
    "structural_tag": _COMMON,
}


def frozen(schema: Mapping[str, Any] | bool, tool: str) -> JsonSchema:
    """A schema as a value.

    Raises:
        GrammarError: it is not JSON.
    """
    try:
        return JsonSchema(schema, json.dumps(schema, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise GrammarError(f"tool {tool!r}: its schema is not JSON: {error}") from None


def enforced(schema: JsonSchema, tool: str, dialect: str, notes: list[str]) -> Mapping[str, Any] | bool:
    """The schema as an engine gets it.

    Raises:
        GrammarError: names the tool and the keyword.
    """
    known = _ENFORCED[dialect]
    said: dict[str, None] = {}

    def weaker(word: str, why: str = "") -> None:
        said[f"tool {tool!r}: '{word}' is not enforced{f' ({why})' if why else ''}"] = None

    def walk(part: Any, path: str) -> Any:
        if isinstance(part, bool):
            if not part and path and not path.endswith(("additionalProperties", "items")):
                raise GrammarError(f"tool {tool!r} at {path}: the schema 'false' allows nothing")
            return part
        if not isinstance(part, Mapping):
            raise GrammarError(f"tool {tool!r}{f' at {path}' if path else ''}: {type(part).__name__} is not a schema")
        result: dict[str, Any] = {}
        for word, value in part.items():
            if word == "oneOf":
                if len(value) > 1:
                    weaker("oneOf", "more than one of its schemas may fit")
                if "anyOf" in part:
                    weaker("oneOf", "beside 'anyOf'")
                else:
                    result["anyOf"] = [walk(s, f"{path}/oneOf/{i}") for i, s in enumerate(value)]
            elif word == "$ref":
                resolve(value, schema.value, tool, path)
                result[word] = value
            elif word == "format" and word in known and value not in _FORMATS:
                weaker(f"format: {value}")
            elif word in _SILENT:
                continue
            elif word not in known:
                weaker(word)
            elif word in _MAPS:
                result[word] = {k: walk(s, f"{path}/{k}") for k, s in value.items()}
            elif word in _LISTS:
                result[word] = [walk(s, f"{path}/{word}/{i}") for i, s in enumerate(value)]
            elif word in _INNER:
                result[word] = walk(value, f"{path}/{word}")
            else:
                result[word] = value
        if part.get("nullable") is True and isinstance(part.get("type"), str):
            result["type"] = [part["type"], "null"]
        types = part.get("type")
        if isinstance(types, Sequence) and not types:
            raise GrammarError(f"tool {tool!r}{f' at {path}' if path else ''}: 'type' is empty")
        if part.get("properties") and "additionalProperties" not in part:
            composed = any(word in part for word in ("anyOf", "oneOf", "allOf", "$ref"))
            if not composed and "/allOf/" not in path:
                result["additionalProperties"] = False
        if "properties" in result or "required" in result:
            members(part, tool, path)
            if "type" not in result and not any(w in result for w in ("anyOf", "allOf", "$ref", "enum", "const")):
                result["type"] = "object"
        if isinstance(result.get("items"), list):
            result["prefixItems"] = result.pop("items")
        return result

    result: Mapping[str, Any] | bool = walk(schema.value, "")
    notes.extend(said)
    return result
