"""Reading JSON schemas of tool parameters: JSON types, properties and local references.

Schemas come with requests. No function here raises, and each part of a schema is read once, whatever refers to it, so
the work grows with the length of the schema even where parts refer to each other. Invalid parts are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from ..jsontext.coercion import TYPES, Param, canonical_type

__all__ = ["SchemaNode", "SchemaTypes", "extract_types_from_schema", "properties", "resolve"]

_MAX_DEPTH: Final = 100


def extract_types_from_schema(schema: object, *, root: object = None) -> list[str]:
    """Return the JSON types that ``schema`` allows, each once, in the order of their appearance.

    Reads ``type`` (a word or a list), ``enum``, ``const``, ``nullable``, ``anyOf``, ``oneOf``, ``allOf`` and ``$ref``,
    nested. ``root`` is the document that ``$ref`` points into (the schema itself if not given).
    No information (not a schema, an unknown word, a reference that points nowhere or at itself): ``["string"]``.
    """
    return SchemaTypes(schema, schema if root is None else root).listed()


@final
class SchemaTypes:
    """The JSON types that a schema allows, and the strings that it lists.

    Attributes:
        types: the JSON types in the order of their appearance; none: the schema does not limit them.
        strings: members of ``enum`` and ``const`` that are strings.
    """

    root: object
    types: dict[str, None]
    strings: set[str]
    _seen: set[int]

    def __init__(self, schema: object, root: object) -> None:
        self.root = root
        self.types = {}
        self.strings = set()
        self._seen = set()
        self._read(schema, 0)

    def listed(self) -> list[str]:
        """Return the types; a string where nothing is known."""
        return list(self.types) or ["string"]

    def _read(self, schema: object, depth: int) -> bool:
        """Read one schema. True if it limits the type, or has been read before."""
        if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
            return False
        if id(schema) in self._seen:
            return True
        self._seen.add(id(schema))
        known = self._keywords(schema)
        if "$ref" in schema:
            known = self._read(resolve(schema["$ref"], self.root), depth + 1) or known
        for word in ("anyOf", "oneOf", "allOf"):
            parts = schema.get(word)
            for part in parts if isinstance(parts, (list, tuple)) else ():
                if self._read(part, depth + 1):
                    known = True
                elif word != "allOf":
                    # One of the alternatives takes any value, so a string as well.
                    self.types["string"] = None
                    known = True
        if not known:
            known = self._container(schema)
        if known and schema.get("nullable") is True:
            self.types["null"] = None
        return known

    def _keywords(self, schema: Mapping[str, object]) -> bool:
        """Read ``type``, ``enum`` and ``const``."""
        known = False
        words = schema.get("type")
        for word in words if isinstance(words, (list, tuple)) else (words,):
            if isinstance(word, str) and canonical_type(word) in TYPES:
                self.types[canonical_type(word)] = None
                known = True
        values = schema.get("enum")
        for value in values if isinstance(values, (list, tuple)) else ():
            known = self._value(value) or known
        if "const" in schema:
            known = self._value(schema["const"]) or known
        return known

    def _container(self, schema: Mapping[str, object]) -> bool:
        """Infer the type from ``properties`` or ``items``."""
        for keyword, word in (("properties", "object"), ("items", "array")):
            if isinstance(schema.get(keyword), Mapping):
                self.types[word] = None
                return True
        return False

    def _value(self, value: object) -> bool:
        if isinstance(value, str):
            self.strings.add(value)
        word = _type_of(value)
        if word is not None:
            self.types[word] = None
        return word is not None


def _type_of(value: object) -> str | None:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, Mapping):
        return "object"
    if isinstance(value, (list, tuple)):
        return "array"
    return None


def resolve(ref: object, root: object) -> object:
    """Return the part of ``root`` that a local reference (``#/$defs/Point``) points at; ``None`` if nothing."""
    if not isinstance(ref, str) or not ref.startswith("#"):
        return None
    part = root
    for key in ref[1:].split("/")[1:]:
        key = key.replace("~1", "/").replace("~0", "~")
        if isinstance(part, Mapping):
            part = part.get(key)
        elif isinstance(part, (list, tuple)) and key.isdecimal() and len(key) < 10 and int(key) < len(part):
            part = part[int(key)]
        else:
            return None
    return part


def properties(schema: object, root: object) -> dict[str, object]:
    """Return the properties of an object schema in their order.

    Those of its ``$ref``, ``allOf``, ``anyOf`` and ``oneOf`` are included; the first mention of a name counts.
    """
    result: dict[str, object] = {}
    _collect(schema, root, result, set(), 0)
    return result


@final
class SchemaNode:
    """A value's place in a schema: its types, and the places of the values inside it.

    Attributes:
        param: the types of the value; ``None``: the schema does not limit them.
        is_object: the schema allows an object, or does not limit the type.
        is_array: the schema allows an array, or does not limit the type.
    """

    param: Param | None
    is_object: bool
    is_array: bool
    _schema: object
    _root: object
    _known: dict[int, SchemaNode]
    _properties: dict[str, object] | None
    _others: SchemaNode | None
    _items: SchemaNode | None

    def __init__(self, schema: object, root: object, known: dict[int, SchemaNode] | None = None) -> None:
        """``known``: the nodes of this document by the identity of their schema, so that each is read once."""
        self._schema = schema
        self._root = root
        self._known = {} if known is None else known
        self._properties = None
        self._others = None
        self._items = None
        found = SchemaTypes(schema, root)
        self.param = Param(found.listed(), found.strings) if found.types else None
        self.is_object = not found.types or "object" in found.types
        self.is_array = not found.types or "array" in found.types

    def properties(self) -> dict[str, object]:
        """Return name and schema of each property, in order; empty if the schema lists none."""
        if self._properties is None:
            self._properties = properties(self._schema, self._root)
        return self._properties

    def child(self, key: str) -> SchemaNode:
        """Return the place of a property."""
        schema = self.properties().get(key)
        if schema is not None:
            return self._node(schema)
        if self._others is None:
            self._others = self._node(keyword(self._schema, "additionalProperties", self._root, set(), 0))
        return self._others

    def items(self) -> SchemaNode:
        """Return the place of an array's items."""
        if self._items is None:
            self._items = self._node(keyword(self._schema, "items", self._root, set(), 0))
        return self._items

    def _node(self, schema: object) -> SchemaNode:
        node = self._known.get(id(schema))
        if node is None:
            node = self._known[id(schema)] = SchemaNode(schema, self._root, self._known)
        return node


def keyword(schema: object, word: str, root: object, seen: set[int], depth: int) -> object:
    """Return the value of a keyword that is a schema, from the schema or the first of its ``$ref``, ``allOf``,
    ``anyOf`` and ``oneOf`` that has it; ``None`` if none has."""
    if not isinstance(schema, Mapping) or id(schema) in seen or depth > _MAX_DEPTH:
        return None
    seen.add(id(schema))
    found = schema.get(word)
    if isinstance(found, Mapping):
        return found
    parts = [resolve(schema.get("$ref"), root)]
    for group in ("allOf", "anyOf", "oneOf"):
        listed = schema.get(group)
        parts += listed if isinstance(listed, (list, tuple)) else ()
    for part in parts:
        found = keyword(part, word, root, seen, depth + 1)
        if found is not None:
            return found
    return None


def _collect(schema: object, root: object, result: dict[str, object], seen: set[int], depth: int) -> None:
    if not isinstance(schema, Mapping) or id(schema) in seen or depth > _MAX_DEPTH:
        return
    seen.add(id(schema))
    own = schema.get("properties")
    if isinstance(own, Mapping):
        for key, value in own.items():
            if isinstance(key, str):
                result.setdefault(key, value)
    _collect(resolve(schema.get("$ref"), root), root, result, seen, depth + 1)
    for word in ("allOf", "anyOf", "oneOf"):
        parts = schema.get(word)
        for part in parts if isinstance(parts, (list, tuple)) else ():
            _collect(part, root, result, seen, depth + 1)
