"""The tools of a request, and the types that their schemas allow for each parameter.

Rules of this module:

* No tool, no schema, no usable information in it: a value is a string.
* A schema that is not a schema, that points nowhere or refers to itself is no information, not an error. Only a tool
  that cannot be called is one (:class:`ToolSet`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, final

from ..jsontext.coercion import TYPES, Param, canonical_type

_MAX_DEPTH: Final = 100
"""Levels of a schema. What lies deeper is no information."""


# -- Schema → types -----------------------------------------------------------------------------------------------


def extract_types_from_schema(schema: object, *, root: object = None) -> list[str]:
    """The JSON types that ``schema`` allows, each once, in the order of their appearance.

    Reads ``type`` (a word or a list), ``enum``, ``const``, ``nullable``, ``anyOf``, ``oneOf``, ``allOf`` and ``$ref``,
    nested. ``root`` is the document that ``$ref`` points into (the schema itself if not given).
    No information (not a schema, an unknown word, a reference that points nowhere or at itself): ``["string"]``.
    """
    reading = _Reading(schema if root is None else root)
    reading.read(schema)
    return list(reading.types) or ["string"]


@final
class _Reading:
    """One pass over a schema. Each part is read once, whichever way it is reached: this ends cycles."""

    def __init__(self, root: object) -> None:
        self.root = root
        self.types: dict[str, None] = {}
        self.strings: set[str] = set()
        """String members of ``enum`` and ``const``."""
        self._seen: set[int] = set()

    def read(self, schema: object, depth: int = 0) -> bool:
        """Whether ``schema`` says anything about the type (or has been read already)."""
        if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
            return False
        if id(schema) in self._seen:
            return True
        self._seen.add(id(schema))
        known = False
        words = schema.get("type")
        for word in words if isinstance(words, (list, tuple)) else (words,):
            if isinstance(word, str) and canonical_type(word) in TYPES:
                self.types[canonical_type(word)] = None
                known = True
        values = schema.get("enum")
        if isinstance(values, (list, tuple)):
            for value in values:
                known = self._value(value) or known
        if "const" in schema:
            known = self._value(schema["const"]) or known
        if "$ref" in schema:
            known = self.read(_resolve(schema["$ref"], self.root), depth + 1) or known
        for choice in ("anyOf", "oneOf", "allOf"):
            parts = schema.get(choice)
            if not isinstance(parts, (list, tuple)):
                continue
            for part in parts:
                if self.read(part, depth + 1):
                    known = True
                elif choice != "allOf":
                    # One of the alternatives takes anything, so a string as well.
                    self.types["string"] = None
                    known = True
        if not known:
            if isinstance(schema.get("properties"), Mapping):
                self.types["object"] = None
                known = True
            elif isinstance(schema.get("items"), Mapping):
                self.types["array"] = None
                known = True
        if known and schema.get("nullable") is True:
            self.types["null"] = None
        return known

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


def _resolve(ref: object, root: object) -> object:
    """What a local reference (``#/$defs/Point``) points at; ``None`` if nothing."""
    if not isinstance(ref, str) or not ref.startswith("#"):
        return None
    part = root
    for key in ref[1:].split("/")[1:]:
        key = key.replace("~1", "/").replace("~0", "~")
        if isinstance(part, Mapping):
            part = part.get(key)
        elif isinstance(part, (list, tuple)) and key.isdecimal() and int(key) < len(part):
            part = part[int(key)]
        else:
            return None
    return part


def _properties(schema: object, root: object, seen: set[int], depth: int = 0) -> dict[str, object]:
    """The properties of an object schema in their order, those of its ``$ref``, ``allOf``, ``anyOf`` and ``oneOf``
    included; the first mention of a name counts."""
    if not isinstance(schema, Mapping) or id(schema) in seen or depth > _MAX_DEPTH:
        return {}
    seen.add(id(schema))
    result: dict[str, object] = {}
    own = schema.get("properties")
    if isinstance(own, Mapping):
        for key, value in own.items():
            if isinstance(key, str):
                result[key] = value
    parts: list[object] = [_resolve(schema.get("$ref"), root)]
    for choice in ("allOf", "anyOf", "oneOf"):
        some = schema.get(choice)
        if isinstance(some, (list, tuple)):
            parts.extend(some)
    for part in parts:
        for key, value in _properties(part, root, seen, depth + 1).items():
            result.setdefault(key, value)
    return result


# -- Tools --------------------------------------------------------------------------------------------------------


def find_tool_properties(tools: Iterable[Any] | None, name: str) -> dict[str, Any]:
    """The properties (name → schema) of the parameters of the first tool called ``name``; empty if there is none.

    A tool is ``{"type": "function", "function": {"name", "parameters"}}`` (Chat Completions), ``{"type": "function",
    "name", "parameters"}`` (Responses), or any object with those attributes.
    """
    for tool in tools or ():
        function = _function(tool)
        if _get(function, "name") == name:
            schema = _schema(function)
            return _properties(schema, schema, set())
    return {}


def tool_schemas(tools: Iterable[Any] | None) -> dict[str, Any]:
    """Each tool's parameters schema, by name; the first tool of a name stands."""
    schemas: dict[str, Any] = {}
    for tool in tools or ():
        function = _function(tool)
        name = _get(function, "name")
        if isinstance(name, str):
            schemas.setdefault(name, _schema(function))
    return schemas


def find_tool_name(tools: Iterable[Any] | None, name: str) -> bool:
    """Whether one of ``tools`` (as in :func:`find_tool_properties`) is called ``name``."""
    return any(_get(_function(tool), "name") == name for tool in tools or ())


def _get(part: object, key: str) -> Any:
    if isinstance(part, dict):  # the most common case; asking the ABC costs more than all the rest
        return part.get(key)
    return part.get(key) if isinstance(part, Mapping) else getattr(part, key, None)


def _function(tool: object) -> object:
    """Where a tool keeps its name: under ``function``, else in itself."""
    function = _get(tool, "function")
    return tool if function is None else function


def _schema(function: object) -> Any:
    """The parameters of a function; a pydantic model (ollama's client has one) as a dict."""
    schema = _get(function, "parameters")
    if schema is None or isinstance(schema, dict):
        return schema
    dump = None if isinstance(schema, Mapping) else getattr(schema, "model_dump", None)
    return schema if dump is None else dump(by_alias=True, exclude_none=True)


@final
class _Tool:
    """What a ToolSet keeps of one tool."""

    def __init__(self, schema: object) -> None:
        self.schema = schema
        self.params: dict[str, Param | None] = {}
        self._properties: dict[str, object] | None = None

    def properties(self) -> dict[str, object]:
        """Read when the tool is first called: most tools of a request never are."""
        if self._properties is None:
            self._properties = _properties(self.schema, self.schema, set())
        return self._properties

    def param(self, key: str) -> Param | None:
        schema = self.properties().get(key)
        if schema is None and isinstance(self.schema, Mapping):
            schema = self.schema.get("additionalProperties")
        if not isinstance(schema, Mapping):
            return None
        reading = _Reading(self.schema)
        reading.read(schema)
        return Param(list(reading.types) or ["string"], reading.strings)


@final
class ToolSet:
    """The tools of one request, checked once, asked often. Safe to share between threads.

    Attributes:
        known: whether tools were given at all; if not, any name is a tool's.
        names: the tools' names.

    Raises:
        ValueError: a tool without a name, or parameters that are not a schema; the message begins with ``tools[i]``.
            A tool of another type than ``function`` that has no name (Responses' ``web_search``) is left out.
    """

    known: bool
    names: frozenset[str]
    _tools: dict[str, _Tool]

    def __init__(self, tools: Any = None) -> None:
        """``tools``: a list of tools as in :func:`find_tool_properties`; ``None``: not known."""
        self.known = tools is not None
        self._tools = {}
        if tools is not None and (isinstance(tools, (str, bytes, Mapping)) or not isinstance(tools, Iterable)):
            raise ValueError(f"tools: expected a list, got {type(tools).__name__}")
        for i, tool in enumerate(tools or ()):
            function = _function(tool)
            name = _get(function, "name")
            if not isinstance(name, str) or not name:
                kind = _get(tool, "type")
                if name is None and isinstance(kind, str) and kind != "function":
                    continue
                raise ValueError(f"tools[{i}]: has no name")
            schema = _schema(function)
            if schema is not None and not isinstance(schema, (dict, Mapping)):
                raise ValueError(
                    f"tools[{i}].parameters: expected an object (a JSON schema), got {type(schema).__name__}"
                )
            if name not in self._tools:
                self._tools[name] = _Tool(schema)
        self.names = frozenset(self._tools)

    def param(self, name: str, key: str) -> Param | None:
        """The parameter ``key`` of the tool ``name``; ``None`` where there is no schema for it (its text is a string).
        Keys outside ``properties`` have the schema in ``additionalProperties``, if there is one."""
        tool = self._tools.get(name)
        if tool is None:
            return None
        if key in tool.params:
            return tool.params[key]
        param = tool.param(key)
        if key in tool.properties():  # keys that the model makes up are not kept
            tool.params[key] = param
        return param

    def has(self, name: str, key: str) -> bool:
        """Whether the tool ``name`` is offered and lists the parameter ``key``."""
        tool = self._tools.get(name)
        return tool is not None and key in tool.properties()

    def positional(self, name: str, i: int) -> str | None:
        """The name of the tool's parameter at index ``i``, in the order of its properties."""
        tool = self._tools.get(name)
        keys = [] if tool is None else list(tool.properties())
        return keys[i] if 0 <= i < len(keys) else None
