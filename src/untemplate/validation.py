"""Arguments held against a tool's JSON schema: what is missing, of another type, or none of the listed values.

Rules of this module:

* Nothing that a model writes raises; it becomes problems. What the caller gives (tools, schemas) may raise, at
  construction.
* The built-in check knows ``type``, ``required``, ``enum``, ``const``, ``properties``, ``additionalProperties``,
  ``items``, ``anyOf``, ``oneOf``, ``allOf``, ``nullable`` and local ``$ref``. What it does not know it lets pass, and
  :func:`needs_full` names it. A schema that is no schema is no information.
* The full check is jsonschema-rs, the extra ``[validate]``. It fetches nothing, and its patterns stop backtracking at a
  limit.
* Work is bounded: a value beyond the bounds is a problem of its own, not a success.
"""

from __future__ import annotations

import importlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, final

from .jsontext.coercion import canonical_type
from .jsontext.lexical import json_escape
from .jsontext.well_formed import is_deep, is_json
from .schema import resolve
from .tools import ToolSet

__all__ = ["Problem", "Validator", "check_strict", "needs_full", "validate"]

Path = tuple[str | int, ...]

_BUDGET: Final = 100_000  # pairs of a value and a schema: alternatives that refer to each other could go on for ever
_MAX_DEPTH: Final = 100
_MAX_PROBLEMS: Final = 64
_SHOWN: Final = 40  # characters of a value in a message
_MAX_DIGITS: Final = 4_300  # of the integers that Python reads
_BACKTRACKING: Final = 100_000

_FULL: Final = frozenset(
    ("pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
     "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains", "prefixItems", "additionalItems",
     "unevaluatedItems", "minProperties", "maxProperties", "patternProperties", "propertyNames", "dependencies",
     "dependentRequired", "dependentSchemas", "unevaluatedProperties", "if", "not", "$dynamicRef", "$recursiveRef")
)  # fmt: skip
# Of OpenAPI's formats (int32, float, password, …) the full check knows nothing either.
_FORMATS: Final = frozenset(
    ("date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6", "uri",
     "uri-reference", "iri", "iri-reference", "uri-template", "uuid", "json-pointer", "relative-json-pointer", "regex")
)  # fmt: skip

_KINDS: Final[tuple[tuple[type | tuple[type, ...], str], ...]] = (
    (bool, "boolean"),  # before the numbers: Python's booleans are integers
    (str, "string"),
    (int, "integer"),
    ((float, Decimal), "number"),
    (dict, "object"),
    (list, "array"),
)
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SURROGATE: Final = re.compile(f"[{chr(0xD800)}-{chr(0xDFFF)}]")


@final
@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a call.

    ``path`` is where (``$.days[0]``). ``slug`` is stable: ``not_json``, ``not_an_object``, ``unknown_tool``,
    ``missing``, ``type``, ``enum`` or ``schema`` (anything else that is forbidden). ``message`` is for people.
    """

    path: str
    slug: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


@final
@dataclass(frozen=True, slots=True)
class Failure:
    """(for repair) A problem, and the part of the schema that does not fit: for ``missing`` and ``extra`` (a key that
    ``additionalProperties`` forbids) that of the object."""

    path: Path
    slug: str
    message: str
    schema: Mapping[str, Any]


# -- The checks ---------------------------------------------------------------------------------------------------


def validate(arguments: str, tool_schema: Any, *, full: bool = False) -> list[Problem]:
    """What is wrong with ``arguments`` (JSON text), at most 64 problems; empty: nothing.

    ``tool_schema`` holds the tool's parameters; None: any object is right. ``full`` checks the keywords of
    :func:`needs_full` as well, where the others hold, and raises as :func:`check_strict`.
    """
    return _check(arguments, tool_schema, _compile(tool_schema, "tool_schema") if full else None)


def check_strict(tools: Any) -> None:
    """Raises ValueError where strict validation cannot be had: a schema needs the extra ``[validate]`` that is not
    there, or is not a schema. The message begins with ``tools[i].parameters``."""
    Validator(tools, strict=True)


@final
class Validator:
    """The tools of one request, ready to check calls. Safe to share between threads.

    ``tools`` as for :class:`~untemplate.tools.ToolSet`, which also says what is refused; None: any name is a
    tool's. ``strict`` adds the full check where a schema needs it, and raises as :func:`check_strict`.
    """

    def __init__(self, tools: Any = None, *, strict: bool = False) -> None:
        self._tools = ToolSet(tools)
        self._compiled = {tool.name: _compile(tool.schema, tool.path) for tool in self._tools} if strict else {}

    def check(self, name: str, arguments: str) -> list[Problem]:
        """What is wrong with the call, as :func:`validate` says it."""
        tool = self._tools.get(name)
        if tool is not None:
            return _check(arguments, tool.schema, self._compiled.get(name))
        if self._tools.known:
            return [Problem("$", "unknown_tool", f"{_shown(name)} is not one of the tools")]
        return _check(arguments, None, None)


def _check(arguments: str, schema: Any, compiled: Any) -> list[Problem]:
    if is_deep(arguments) and is_json(arguments, finite=True):
        return [Problem("$", "schema", "too large or too deep to be checked")]
    try:
        value = read_json(arguments)
    except ValueError as error:
        return [Problem("$", "not_json", f"not JSON: {error}")]
    if not isinstance(value, dict):
        return [Problem("$", "not_an_object", f"expected an object, got {_described(value)}")]
    problems = [
        Problem(_written(f.path), "schema" if f.slug == "extra" else f.slug, f.message)
        for f in failures(value, schema)[:_MAX_PROBLEMS]
    ]
    if problems or compiled is None:
        return problems
    return list(_full_problems(compiled, value))


def read_json(text: str) -> Any:
    """The value of JSON text, taken strictly: NaN and Infinity are not JSON. Integers too long for Python are decimals.

    Raises:
        ValueError: it is not JSON, or nested too deeply to read.
    """
    if is_deep(text):
        raise ValueError("nested too deeply to read")
    try:
        try:
            return json.loads(text, parse_constant=_refuse)
        except json.JSONDecodeError as error:
            raise ValueError(f"{error.msg} at character {error.pos}") from None
        except ValueError:  # an integer that Python does not read
            return json.loads(text, parse_constant=_refuse, parse_int=_integer)
    except RecursionError:
        raise ValueError("nested too deeply to read") from None


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON value")


def _integer(digits: str) -> int | Decimal:
    return int(digits) if len(digits) <= _MAX_DIGITS else Decimal(digits)


# -- Built in -----------------------------------------------------------------------------------------------------


def failures(value: Any, schema: Any, root: Any = None) -> list[Failure]:
    """How ``value`` does not fit ``schema``. ``root``: the document that ``$ref`` points into, if another."""
    check = _Check(schema if root is None else root)
    try:
        check.value(value, schema, (), ())
    except (_Beyond, RecursionError):
        return [Failure((), "schema", "too large or too deep to be checked", {})]
    return check.found


class _Beyond(Exception):
    """The check has met its bounds."""


@final
class _Check:
    """One pass over a value."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.found: list[Failure] = []
        self._visits = 0

    def value(self, value: Any, schema: Any, path: Path, seen: tuple[int, ...]) -> None:
        """``seen``: the schemas that have led here without going into the value; one of them again says no more."""
        self._visits += 1
        if self._visits > _BUDGET or len(path) > _MAX_DEPTH or len(seen) > _MAX_DEPTH:
            raise _Beyond
        if schema is False:
            self.found.append(Failure(path, "schema", "nothing is allowed here", {}))
        if not isinstance(schema, Mapping) or id(schema) in seen:
            return
        if value is None and schema.get("nullable") is True:
            return
        seen = (*seen, id(schema))
        words = _types(schema)
        if words and not any(_is(value, word) for word in words):
            self._fail(path, "type", f"expected {' or '.join(words)}, got {_described(value)}", schema)
            return
        for word in ("enum", "const"):
            if word in schema:
                allowed = schema[word] if word == "enum" else [schema[word]]
                allowed = allowed if isinstance(allowed, (list, tuple)) else [value]
                self._visits += len(allowed)
                if not any(_equal(value, option) for option in allowed):
                    options = ", ".join(map(_shown, allowed[:8])) + (", …" if len(allowed) > 8 else "")
                    self._fail(path, "enum", f"{_described(value)} is not one of: {options}", schema)
                    return
        if "$ref" in schema:
            self.value(value, resolve(schema["$ref"], self.root), path, seen)
        if isinstance(schema.get("allOf"), (list, tuple)):
            for part in schema["allOf"]:
                self.value(value, part, path, seen)
        for word in ("anyOf", "oneOf"):
            if isinstance(schema.get(word), (list, tuple)) and schema[word]:
                self._choice(value, schema, word, path, seen)
        if isinstance(value, dict):
            self._object(value, schema, path)
        elif isinstance(value, list):
            self._array(value, schema, path)

    def _object(self, value: dict[str, Any], schema: Mapping[str, Any], path: Path) -> None:
        properties = schema.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        required = schema.get("required")
        required = required if isinstance(required, (list, tuple)) else ()
        self._visits += len(required)
        for key in required:
            if isinstance(key, str) and key not in value:
                self._fail((*path, key), "missing", "is required", schema)
        others = True if "patternProperties" in schema else schema.get("additionalProperties", True)
        for key, item in value.items():
            if key in properties:
                self.value(item, properties[key], (*path, key), ())
            elif others is False:
                self._fail((*path, key), "extra", "is not one of the properties", schema)
            elif others is not True:
                self.value(item, others, (*path, key), ())

    def _array(self, value: list[Any], schema: Mapping[str, Any], path: Path) -> None:
        items = schema.get("items", True)
        first = schema.get("prefixItems")
        if items is not True:
            for i in range(len(first) if isinstance(first, (list, tuple)) else 0, len(value)):
                self.value(value[i], items, (*path, i), ())

    def _choice(self, value: Any, schema: Mapping[str, Any], word: str, path: Path, seen: tuple[int, ...]) -> None:
        outer = self.found
        tried: list[list[Failure]] = []
        for part in schema[word]:
            self.found = []
            self.value(value, part, path, seen)
            tried.append(self.found)
            if word == "anyOf" and not self.found:
                break
        self.found = outer
        fit = sum(not found for found in tried)
        if fit == 1 or (fit and word == "anyOf"):
            return
        if fit:
            self._fail(path, "schema", f"fits {fit} of {len(tried)} alternatives, one is allowed", schema)
            return
        # The alternative that the value was meant for is the only one whose type it has.
        meant = [found for found in tried if not any(f.path == path and f.slug == "type" for f in found)]
        if len(meant) == 1:
            self.found.extend(meant[0])
        elif meant:
            self._fail(path, "schema", f"fits none of {len(tried)} alternatives", schema)
        else:
            words = dict.fromkeys(w for found in tried for f in found if f.path == path for w in _types(f.schema))
            self._fail(path, "type", f"expected {' or '.join(words)}, got {_described(value)}", schema)

    def _fail(self, path: Path, slug: str, message: str, schema: Mapping[str, Any]) -> None:
        self.found.append(Failure(path, slug, message, schema))


def _types(schema: Mapping[str, Any]) -> list[str]:
    """The words of ``type``; none if it says nothing that JSON Schema knows."""
    words = schema.get("type")
    found = [canonical_type(w) for w in (words if isinstance(words, (list, tuple)) else (words,)) if isinstance(w, str)]
    return found if all(w == "null" or any(w == name for _, name in _KINDS) for w in found) else []


def _kind(value: Any) -> str:
    for kind, name in _KINDS:
        if isinstance(value, kind):
            return name
    return "null"


def _is(value: Any, word: str) -> bool:
    kind = _kind(value)
    if word == "number":
        return kind in ("integer", "number")
    if word == "integer" and kind == "number":
        # JSON Schema: 3.0 is an integer. A decimal stands for an integer too long for Python.
        return isinstance(value, Decimal) or value.is_integer()
    return kind == word


def _equal(a: Any, b: Any) -> bool:
    """As JSON values: 1 is 1.0, but true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, dict):
        return isinstance(b, Mapping) and a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    return bool(a == b)


def _described(value: Any) -> str:
    """What kind of value, and which."""
    kind = _kind(value)
    if kind in ("null", "boolean"):
        return _shown(value)
    if kind in ("object", "array"):
        return f"an {kind}"
    return f"{'number' if kind == 'integer' else kind} {_shown(value)}"


def _shown(value: Any) -> str:
    """A value as JSON, cut; text that can be encoded, whatever the model wrote."""
    if isinstance(value, str):
        return f'"{json_escape(value[:_SHOWN])}{"…" if len(value) > _SHOWN else ""}"'
    try:
        text = str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=True)
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _written(path: Path) -> str:
    text = "$"
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            text += f".{key}" if len(key) <= _SHOWN and _PLAIN_KEY.fullmatch(key) else f"[{_shown(key)}]"
    return text


# -- Full ---------------------------------------------------------------------------------------------------------


def needs_full(schema: Any) -> list[str]:
    """The keywords of ``schema`` that the built-in check does not cover, each once. Formats that are not JSON Schema's
    own do not count, nor does what no reference leads to."""
    words: dict[str, None] = {}
    seen: set[int] = set()
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if not isinstance(part, Mapping) or id(part) in seen:
            continue
        seen.add(id(part))
        for word, value in part.items():
            local = isinstance(value, str) and value.startswith("#") and resolve(value, schema) is not None
            if (
                word in _FULL
                or (word == "format" and isinstance(value, str) and value in _FORMATS)
                or (word == "$ref" and not local)
                or (word == "items" and isinstance(value, (list, tuple)))
            ):
                words[word] = None
        properties = part.get("properties")
        parts = list(properties.values()) if isinstance(properties, Mapping) else []
        parts += [part.get("items"), part.get("additionalProperties"), resolve(part.get("$ref"), schema)]
        for word in ("anyOf", "oneOf", "allOf"):
            parts.extend(part[word] if isinstance(part.get(word), (list, tuple)) else ())
        waiting.extend(reversed(parts))
    return list(words)


def _compile(schema: Any, where: str) -> Any:
    """A jsonschema-rs validator; None where the built-in check says all."""
    words = needs_full(schema)
    if not words:
        return None
    try:
        library = importlib.import_module("jsonschema_rs")
    except ImportError:
        verb = "needs" if len(words) == 1 else "need"
        named = ", ".join(f"'{word}'" for word in words)
        raise ValueError(f"{where}: {named} {verb} the extra untemplate[validate]") from None
    try:
        return library.validator_for(
            schema,
            validate_formats=True,
            retriever=_fetch_nothing,
            pattern_options=library.FancyRegexOptions(backtrack_limit=_BACKTRACKING),
        )
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{where}: {getattr(error, 'message', None) or error}") from None


def _fetch_nothing(uri: str) -> Any:
    # Schemas come with requests: what they point at could be inside the operator's network.
    raise ValueError("references to other documents are not followed")


def _full_problems(compiled: Any, value: Any) -> Iterator[Problem]:
    slugs = {"type": "type", "required": "missing", "enum": "enum", "const": "enum"}
    try:
        for i, error in enumerate(compiled.iter_errors(_encodable(value))):
            if i == _MAX_PROBLEMS:
                return
            path, message = tuple(error.instance_path), error.message
            slug = slugs.get(error.kind.name, "schema")
            if slug == "missing":
                path, message = (*path, error.kind.property), "is required"
            yield Problem(_written(path), slug, message if len(message) <= 200 else message[:200] + "…")
    except (ValueError, RecursionError) as error:
        yield Problem("$", "schema", f"could not be checked: {error}")


def _encodable(value: Any) -> Any:
    """``value`` without what the library cannot take: lone surrogates are U+FFFD, infinity is a large number."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, float) and math.isinf(value):
        return Decimal("1e999") if value > 0 else Decimal("-1e999")
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return value
