"""Schemas as the JSON-schema engines of the dialects get them.

Rules of this module:

* An engine never sees a keyword that it would ignore in silence or refuse: the keyword is taken out, which allows more
  and nothing else, and a note names it. Under ``not`` and ``if`` that would allow less, so these go as a whole.
* An object that lists its properties and does not mention others has no others, in every dialect.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, final

from ..errors import GrammarError
from ._limits import MAX_DEPTH
from ._places import whose
from ._reading import SchemaDocument, closed, closed_note
from ._rules import JsonSchema

__all__ = ["enforced", "frozen", "holds_text"]

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


def frozen(schema: Mapping[str, Any] | bool, tool: str) -> JsonSchema:
    """Return a schema as a value.

    Raises:
        GrammarError: it is not JSON.
    """
    try:
        return JsonSchema(schema, json.dumps(schema, ensure_ascii=False))
    except RecursionError:
        raise GrammarError(f"{whose(tool)}: nested deeper than {MAX_DEPTH} schemas") from None
    except (TypeError, ValueError) as error:
        raise GrammarError(f"{whose(tool)}: its schema is not JSON: {error}") from None


def enforced(document: SchemaDocument, dialect: str, notes: list[str]) -> Mapping[str, Any] | bool:
    """Return the schema to send to the engine, and add to ``notes`` what the engine does not enforce.

    Raises:
        GrammarError: names the tool and the keyword.
    """
    root = document.root
    if isinstance(root, Mapping) and len(root) == 1 and root.get("type") == "object":
        return root
    rewriter = _Rewriter(document, dialect)
    result: Mapping[str, Any] | bool = rewriter.schema(root, "", 0)
    notes.extend(rewriter.notes)
    return result


@final
class _Rewriter:
    """Rewrites one schema for the JSON-schema engine of a dialect."""

    def __init__(self, document: SchemaDocument, dialect: str) -> None:
        self.document = document
        self.dialect = dialect
        self.known = _ENFORCED[dialect]
        self.notes: dict[str, None] = {}

    def _weaker(self, word: str, why: str = "") -> None:
        self.notes[f"{whose(self.document.tool)}: '{word}' is not enforced{f' ({why})' if why else ''}"] = None

    def schema(self, part: Any, path: str, depth: int) -> Any:
        document = self.document
        document.descend(path, depth)
        if isinstance(part, bool):
            if not part and path and not path.endswith(("additionalProperties", "items")):
                raise document.error(path, "the schema 'false' allows nothing")
            return part
        if not isinstance(part, Mapping):
            raise document.error(path, f"{type(part).__name__} is not a schema")
        document.step(path, next(iter(part), "type"), 1 + len(part))
        definitions = {
            word: {k: self.schema(s, f"{path}/{word}/{k}", depth + 1) for k, s in part[word].items()}
            for word in ("$defs", "definitions")
            if word in part
        }
        plain = {k: v for k, v in part.items() if k not in _SILENT and k not in definitions}
        if part.get("nullable") is True and isinstance(part.get("type"), str):
            plain["type"] = [part["type"], "null"]
        return {**definitions, **self._simplified(plain, path, depth)}

    def _simplified(self, part: dict[str, Any], path: str, depth: int) -> Any:
        """Rewrite ``allOf``, and ``$ref``, ``anyOf`` and ``oneOf`` with keywords next to them: engines read these
        badly."""
        document = self.document
        if "allOf" in part:
            return self.schema(document.merge(part, path), path, depth + 1)
        if "$ref" in part and len(part) > 1:
            target = document.resolve(part["$ref"], path)
            whole = document.merge(document.narrowed(part, "$ref", target, path), path)
            return self.schema(whole, path, depth + 1)
        for word in ("anyOf", "oneOf"):
            if word in part and len(part) > 1:
                ways = [document.merge(document.narrowed(part, word, way, path), path) for way in part[word]]
                return self.schema({word: ways}, path, depth + 1)
        return self._keywords(part, path, depth)

    def _keywords(self, part: dict[str, Any], path: str, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for word, value in part.items():
            self._keyword(word, value, result, path, depth + 1)
        if part.get("type") == []:
            raise self.document.error(path, "'type' is empty")
        pattern = result.get("pattern", "^$") if self.dialect == "structural_tag" else "^$"
        if not pattern.startswith("^") or not pattern.endswith("$"):
            self.notes[f"{whose(self.document.tool)}: 'pattern' {pattern!r} is matched from end to end"] = None
        if closed(part):
            self.notes[closed_note(self.document.tool)] = None
            result["additionalProperties"] = False
        if "properties" in result or "required" in result:
            self.document.members(part, path)
            result.setdefault("type", "object")
        return result

    def _keyword(self, word: str, value: Any, result: dict[str, Any], path: str, depth: int) -> None:
        """Add one keyword to ``result``, if the engine enforces it."""
        if word in ("anyOf", "oneOf"):
            if word == "oneOf" and len(value) > 1:
                self._weaker(word, "more than one of its schemas may fit")
            self.document.offer(path, word, len(value))
            result["anyOf"] = self._listed(value, f"{path}/{word}", depth)
        elif word == "$ref":
            self.document.resolve(value, path)
            result[word] = value
        elif self._is_enforced(word, value):
            if word == "prefixItems" or (word == "items" and isinstance(value, list)):
                result["prefixItems"] = self._listed(value, f"{path}/{word}", depth)
            else:
                result[word] = self._rewritten(word, value, path, depth)

    def _is_enforced(self, word: str, value: Any) -> bool:
        """True if the engine enforces a keyword; if not, there is a note."""
        if word == "format" and word in self.known and value not in _FORMATS:
            self._weaker(f"format: {value}")
        elif word == "pattern" and _HARD.search(value):
            self._weaker(word, value)
        elif word not in self.known:
            self._weaker(word)
        else:
            return True
        return False

    def _rewritten(self, word: str, value: Any, path: str, depth: int) -> Any:
        """Return the value of a keyword for the engine."""
        document = self.document
        if word in ("items", "additionalProperties"):
            return self.schema(value, f"{path}/{word}", depth)
        if word == "properties":
            document.offer(path, word, len(value))
            return {k: self.schema(s, f"{path}/{k}", depth) for k, s in value.items()}
        if word == "type":
            unknown = [kind for kind in ((value,) if isinstance(value, str) else value) if kind not in _TYPES]
            if unknown:
                raise document.error(path, f"'type' {unknown[0]!r} is not a JSON type")
        elif word in ("enum", "const"):
            document.allow(path, word, value)
        else:
            document.measure(value, path, word)
        return value

    def _listed(self, schemas: Sequence[Any], path: str, depth: int) -> list[Any]:
        return [self.schema(schema, f"{path}/{i}", depth) for i, schema in enumerate(schemas)]


def holds_text(schema: Any) -> bool:
    """True if a value that this schema allows may hold a string, names of its properties aside."""
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
