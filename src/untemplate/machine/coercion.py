"""Schema-aware types: what the text of a tagged argument means, given the tool's JSON schema.

Rules of this module:

* A value is text until its schema says otherwise. No tool, no schema, no usable information in it: a string.
* Text that does not fit its type stays text, unchanged. Nothing is guessed, nothing raises, nothing is evaluated.
* What is valid JSON of a wanted type is passed on as written, to the byte; only what is not JSON is written anew.
* Where the schema allows a string besides other types, only exact spellings become something else: ``7`` is a number
  there, ``007`` and ``" 7"`` are text. Where it does not, white space and sloppy numbers (``+7``, ``.5``) are accepted.
* A schema that is not a schema, that points nowhere or refers to itself is no information, not an error. Only a tool
  that cannot be called is one (:class:`ToolSet`).

Types and their order (null, integer, number, boolean, object, array, string) are those of vLLM's
``vllm/tool_parsers/utils.py``.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from json.encoder import encode_basestring
from typing import Any, Final, final

from .json_text import is_deep, is_json

__all__ = [
    "Param",
    "ToolSet",
    "coerce_to_schema_type",
    "extract_types_from_schema",
    "find_tool_name",
    "find_tool_properties",
    "json_escape",
]

_WHITE_SPACE: Final = " \t\r\n"

# Spellings of what is not JSON's own come from templates that print Python values, and that models imitate.
_NULLS: Final = frozenset({"null", "Null", "NULL", "None"})
_BOOLEANS: Final[dict[str, str]] = {
    "true": "true",
    "True": "true",
    "TRUE": "true",
    "false": "false",
    "False": "false",
    "FALSE": "false",
}
_BITS: Final[dict[str, str]] = {"1": "true", "0": "false"}

_TYPES: Final = frozenset({"null", "integer", "number", "boolean", "object", "array", "string"})
# Words that people write into schemas for JSON Schema's own.
_ALIASES: Final[dict[str, str]] = {
    "none": "null",
    "nonetype": "null",
    "int": "integer",
    "int32": "integer",
    "int64": "integer",
    "uint": "integer",
    "long": "integer",
    "float": "number",
    "float32": "number",
    "float64": "number",
    "double": "number",
    "decimal": "number",
    "bool": "boolean",
    "dict": "object",
    "map": "object",
    "list": "array",
    "tuple": "array",
    "sequence": "array",
    "str": "string",
    "text": "string",
    "enum": "string",
}

_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_SLOPPY_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_SLOPPY_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

_MAX_LITERAL: Final = 65_536
"""Characters. A Python-style object longer than this stays text."""
_MAX_LITERAL_DEPTH: Final = 32
"""Levels of a Python-style object. Python reads them recursively, so this is far from any caller's limit."""
# Only escapes that Python knows: others make its parser warn on stderr.
_LITERAL_ESCAPES: Final = re.compile(r"""[^\\]*(?:\\[\\'"abfnrtvxuUN0\n][^\\]*)*""")
_MAX_INTEGER_BITS: Final = 8_192
"""Python refuses to print integers of more than 4300 digits."""

_MAX_DEPTH: Final = 100
"""Levels of a schema. What lies deeper is no information."""

_SURROGATE: Final = re.compile(f"[{chr(0xD800)}-{chr(0xDFFF)}]")


# -- Text → value -------------------------------------------------------------------------------------------------


def json_escape(text: str) -> str:
    """The inside of a JSON string, without its quotes. Non-ASCII is kept; lone surrogates become ``\\ud800``, so that
    the result can be encoded as UTF-8."""
    return _without_surrogates(encode_basestring(text)[1:-1])


def coerce_to_schema_type(value: str, types: str | Iterable[str]) -> object:
    """The value that ``value`` spells, as the first of ``types`` that it fits, in the order null, integer, number,
    boolean, object, array, string; the same string object if it fits none.

    null: ``null`` ``Null`` ``NULL`` ``None``. boolean: ``true`` ``True`` ``TRUE``, and ``1`` ``0`` where no string is
    allowed. integer: also ``3.0``, where neither number nor string is allowed. object, array: JSON of up to 256 levels,
    else a Python literal of up to 32 levels and 65536 characters (read, never evaluated). NaN and Infinity are text:
    JSON cannot say them.
    """
    words = [types] if isinstance(types, str) else types
    text = _to_json(value, frozenset(_canonical(t) for t in words))
    try:
        return value if text is None else json.loads(text)
    except RecursionError:  # the caller has left next to no stack
        return value


def _to_json(value: str, types: frozenset[str]) -> str | None:
    """JSON text of ``value`` as the first fitting type; ``None``: it is a string."""
    text = value.strip(_WHITE_SPACE)
    exact = "string" in types
    # Where a string is possible white space counts: a parser that streams cannot take it back.
    scalar = value if exact else text
    if "null" in types and scalar in _NULLS:
        return "null"
    number = "number" in types
    if number or "integer" in types:
        result = _number(scalar, exact, number)
        if result is not None:
            return result
    if "boolean" in types:
        word = _BOOLEANS.get(scalar)
        if word is None and not exact:
            word = _BITS.get(scalar)
        if word is not None:
            return word
    if ("object" in types and text.startswith("{")) or ("array" in types and text.startswith("[")):
        return _container(text)
    return None


def _number(text: str, exact: bool, number: bool) -> str | None:
    """``text`` as a JSON number: as written where it is one, else its value, else ``None``."""
    try:
        if _INTEGER.fullmatch(text):
            int(text)  # more digits than Python reads are text
            return text
        if not exact and _SLOPPY_INTEGER.fullmatch(text):
            return str(int(text))
        if number:
            if _NUMBER.fullmatch(text):
                return text if math.isfinite(float(text)) else None
            if not exact and _SLOPPY_NUMBER.fullmatch(text):
                value = float(text)
                return repr(value) if math.isfinite(value) else None
        elif not exact and _SLOPPY_NUMBER.fullmatch(text):
            value = float(text)
            # Beyond 2**53 a float no longer says which integer was meant.
            if value.is_integer() and abs(value) <= 9007199254740992.0:
                return str(int(value))
    except ValueError:
        pass
    return None


def _container(text: str) -> str | None:
    """``text``, which begins with a brace or a bracket, as JSON: as written where it is JSON, else a Python literal
    written anew, else ``None``."""
    if is_deep(text):
        return None
    if is_json(text, strict=True):
        return _without_surrogates(text)
    if len(text) > _MAX_LITERAL or is_deep(text, _MAX_LITERAL_DEPTH) or not _LITERAL_ESCAPES.fullmatch(text):
        return None
    try:
        literal = ast.literal_eval(text)
        if not isinstance(literal, dict if text.startswith("{") else list):
            return None
        return _without_surrogates(json.dumps(_plain(literal), ensure_ascii=False))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _plain(value: object) -> object:
    """A literal as JSON knows it: tuples become lists. ValueError for what JSON cannot say (bytes, sets, …)."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        if value.bit_length() > _MAX_INTEGER_BITS:
            raise ValueError("an integer too long to print")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("not finite")
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        result: dict[str, object] = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError("a key that is not a string")
            result[key] = _plain(item)
        return result
    raise ValueError("not JSON")


def _without_surrogates(text: str) -> str:
    # isascii() is a flag, not a scan: most deltas end here.
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return _SURROGATE.sub(_escape_surrogate, text)


def _escape_surrogate(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"


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
            if isinstance(word, str) and _canonical(word) in _TYPES:
                self.types[_canonical(word)] = None
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


def _canonical(word: str) -> str:
    word = word.strip().lower()
    return _ALIASES.get(word, word)


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
class Param:
    """One parameter of a tool: what its text can become.

    Attributes:
        types: the JSON types that its schema allows, in the order of their appearance.
        streams: its text can only become a string, so it may be sent as it comes.
        nullable: string or null, nothing else: it may be sent once its first character is not ``n`` or ``N``.
    """

    types: tuple[str, ...]
    streams: bool
    nullable: bool
    _set: frozenset[str]
    _strings: frozenset[str]

    def __init__(self, types: Sequence[str], strings: Iterable[str] = ()) -> None:
        """``strings`` are those that the schema lists (``enum``, ``const``): text that is one of them stays one."""
        self.types = tuple(types)
        self._set = frozenset(self.types)
        self._strings = frozenset(strings)
        self.streams = self._set == {"string"}
        self.nullable = self._set == {"string", "null"}

    def encode(self, text: str) -> str:
        """``text`` as a JSON value, coerced as :func:`coerce_to_schema_type` does; what is JSON already stays as
        written, without the white space around it."""
        result = None if self.streams or text in self._strings else _to_json(text, self._set)
        return f'"{json_escape(text)}"' if result is None else result


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
