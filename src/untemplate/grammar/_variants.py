"""A schema as the list of plain schemas it allows, for values whose spelling depends on their type.

``anyOf``, ``oneOf``, type lists, references and ``nullable`` are taken apart. Each result has one ``type``, or ``enum``
or ``const``, or is ``True`` (any value).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ._reading import SchemaDocument, types_of
from ._rules import JsonSchema
from ._schema import frozen

__all__ = ["BRACKETS", "constants", "variants", "with_definitions"]

BRACKETS: Final = {"object": "{", "array": "["}
"""Type → the character that its values begin with."""
_MAX_DEPTH: Final = 32
_IGNORED: Final = frozenset(("description", "title", "default", "$defs"))


def variants(schema: Any, document: SchemaDocument, depth: int = 0) -> list[Any]:
    """Return the plain schemas that ``schema``, a part of ``document``, allows.

    Raises:
        GrammarError: names the tool and the keyword.
    """
    if isinstance(schema, bool):
        return [schema]
    if not isinstance(schema, Mapping):
        raise document.error("", f"{type(schema).__name__} is not a schema")
    if depth > _MAX_DEPTH:
        raise document.error("", "'$ref' points at itself")
    if "$ref" in schema:
        return variants(_referred(schema, document), document, depth + 1)
    if "allOf" in schema:
        return variants(document.merge(schema, ""), document, depth + 1)
    for word in ("anyOf", "oneOf"):
        parts = schema.get(word)
        if isinstance(parts, Sequence) and parts:
            return _alternatives(schema, word, parts, document, depth)
    for word in ("const", "enum"):
        if word in schema:
            document.allow("", word, schema[word])
            return [{word: schema[word]}]
    listed = types_of(schema)
    if listed is None:
        return [True]
    document.step("", "type", len(listed) * len(schema))
    return [{**schema, "type": kind} for kind in listed]


def constants(part: Mapping[str, Any]) -> Sequence[Any] | None:
    """Return the values that a plain schema lists; ``None`` if it lists none."""
    return [part["const"]] if "const" in part else part.get("enum")


def _referred(schema: Mapping[str, Any], document: SchemaDocument) -> Any:
    """Return the schema that ``$ref`` refers to, with the keywords next to it."""
    target = document.resolve(schema["$ref"], "")
    plain = _plain(schema)
    if isinstance(target, Mapping) and len(plain) > 1:
        return document.merge(document.narrowed(plain, "$ref", target, ""), "")
    return target


def _alternatives(
    schema: Mapping[str, Any], word: str, parts: Sequence[Any], document: SchemaDocument, depth: int
) -> list[Any]:
    """Return the variants of each schema of ``anyOf`` or ``oneOf``, with the keywords next to it."""
    plain = _plain(schema)
    document.offer("", word, len(parts))
    found: list[Any] = []
    for part in parts:
        whole = document.merge(document.narrowed(plain, word, part, ""), "") if len(plain) > 1 else part
        found += variants(whole, document, depth + 1)
    return found


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in schema.items() if k not in _IGNORED}


def with_definitions(part: Mapping[str, Any], document: SchemaDocument) -> JsonSchema:
    """Return a part of a document as a document, with the definitions that its references need."""
    document.measure(part, "", next(iter(part), "type"))
    schema = frozen(part, document.tool)
    root = document.root
    if isinstance(root, Mapping) and '"$ref"' in schema.key:
        kept = {word: root[word] for word in ("$defs", "definitions") if word in root}
        document.measure(kept, "", "$ref")
        return frozen({**part, **kept}, document.tool)
    return schema
