"""Validation of a call's arguments against the schema of its tool.

* Model output never raises; it becomes problems. Tools and schemas come from the caller and may raise, at construction.
* The built-in check knows ``type``, ``required``, ``enum``, ``const``, ``properties``, ``additionalProperties``,
  ``items``, ``anyOf``, ``oneOf``, ``allOf``, ``nullable`` and local ``$ref``. It ignores other keywords, and invalid
  parts of a schema.
* Strict validation then checks all keywords (:mod:`untemplate._internal.schemas.strict`).
* Work is bounded: a value beyond the bounds is a problem of its own, not a success.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any, Final, final

import msgspec

from ...tools import Tool, ToolSet
from ..jsontext.coercion import canonical_type
from ..jsontext.equality import equal_values
from ..jsontext.lexical import json_escape
from ..jsontext.well_formed import is_deep, is_deep_value, is_json
from .reading import resolve
from .strict import compiled, needs_full, takes_too_long, violations

__all__ = ["Problem", "Validator", "check_strict", "needs_full", "validate"]

Path = tuple[str | int, ...]

_BUDGET: Final = 100_000  # pairs of a value and a schema: alternatives that refer to each other could go on for ever
_MAX_DEPTH: Final = 100
_MAX_PROBLEMS: Final = 64
_SHOWN: Final = 40  # characters of a value in a message
_MAX_DIGITS: Final = 4_300  # of the integers that Python reads

_KINDS: Final[tuple[tuple[type | tuple[type, ...], str], ...]] = (
    (bool, "boolean"),  # before the numbers: Python's booleans are integers
    (str, "string"),
    (int, "integer"),
    ((float, Decimal), "number"),
    (dict, "object"),
    (list, "array"),
)
_NOT_STRICT: Final[Mapping[str, Any]] = {}
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@final
@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a call.

    Attributes:
        path: the place in the arguments (``$.days[0]``).
        slug: a stable name: ``not_json``, ``not_an_object``, ``unknown_tool``, ``missing``, ``type``, ``enum`` or
            ``schema`` (anything else that is forbidden).
        message: the problem in words.
    """

    path: str
    slug: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


@final
@dataclass(frozen=True, slots=True)
class Failure:
    """A problem and the part of the schema that the value does not fit, for repair.

    For ``missing`` and ``extra`` (a key that ``additionalProperties`` forbids) it is the schema of the object.
    """

    path: Path
    slug: str
    message: str
    schema: Mapping[str, Any]


_TOO_DEEP: Final = "nested too deeply to read"
_TOO_LARGE: Final = "too large or too deep to be checked"


def validate(arguments: str, tool_schema: Any, *, full: bool = False, objects: bool = True) -> list[Problem]:
    """Return the problems of ``arguments`` (JSON text), at most 64; empty if they are valid.

    ``tool_schema`` holds the tool's parameters; ``None``: any object is valid. ``full`` checks all keywords, where
    those of the built-in check hold. With ``objects=False`` values other than objects are allowed, too.

    Raises:
        ValueError: ``full``, and an invalid schema.
    """
    return _check(arguments, tool_schema, compiled(tool_schema, "tool_schema") if full else None, objects=objects)


def check_strict(tools: Any) -> None:
    """Check that the schemas of all tools are valid, as strict validation needs them.

    Raises:
        ValueError: one is not; the message begins with its field (``tools[0].function.parameters``).
    """
    Validator(tools, strict=True)


@final
class Validator:
    """Checks calls of the tools of one request. Safe to share between threads.

    ``tools`` are as for :class:`~untemplate.tools.ToolSet`, which also raises; ``None``: any name is a tool's.
    ``strict`` checks all keywords, and raises as :func:`check_strict`.
    """

    def __init__(self, tools: Any = None, *, strict: bool = False) -> None:
        self._tools = ToolSet(tools)
        self._compiled = {tool.name: compiled(tool.schema, tool.path) for tool in self._tools} if strict else {}

    def check(self, name: str, arguments: str) -> list[Problem]:
        """Return the problems of a call, as :func:`validate` does."""
        return check_call(name, arguments, self._tools, self._compiled)


def check_call(name: str, arguments: str, tools: ToolSet, strict: Mapping[str, Any] = _NOT_STRICT) -> list[Problem]:
    """Return the problems of a call of one of these tools. ``strict``: the validators of those that are strict."""
    tool = tools.get(name)
    if tool is not None:
        return _check(arguments, tool.schema, strict.get(name), tool)
    if tools.known:
        return [Problem("$", "unknown_tool", f"{_shown(name)} is not one of the tools")]
    return _check(arguments, None, None)


def _check(
    arguments: str, schema: Any, validator: Any, tool: Tool | None = None, *, objects: bool = True
) -> list[Problem]:
    if tool is not None and validator is None and _fits_at_first_sight(arguments, tool):
        return []
    try:
        value = read_json(arguments)
    except ValueError as error:
        if is_deep(arguments) and is_json(arguments, finite=True):
            return [Problem("$", "schema", _TOO_LARGE)]
        return [Problem("$", "not_json", f"not JSON: {error}")]
    if objects and not isinstance(value, dict):
        return [Problem("$", "not_an_object", f"expected an object, got {_described(value)}")]
    found = _findings(value, schema, validator)
    return [Problem(_written(path), slug, message) for slug, path, message in found[:_MAX_PROBLEMS]]


def _findings(value: Any, schema: Any, validator: Any) -> list[tuple[str, Path, str]]:
    """Return slug, place and message of each problem that the built-in check finds, or else strict validation."""
    found = [("schema" if f.slug == "extra" else f.slug, f.path, f.message) for f in failures(value, schema)]
    if found or validator is None:
        return found
    if takes_too_long(value, schema):
        return [("schema", (), _TOO_LARGE)]
    return [(slug, path, message) for path, slug, message in islice(violations(validator, value), _MAX_PROBLEMS)]


def _fits_at_first_sight(arguments: str, tool: Tool) -> bool:
    try:
        value = msgspec.json.decode(arguments)  # it refuses more than `read_json` does, in a third of the time
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False
    return isinstance(value, dict) and tool.fits(value) and not is_deep_value(value, arguments)


def read_json(text: str) -> Any:
    """Return the value of JSON text. NaN and Infinity are not JSON. Integers too long for Python become decimals.

    Raises:
        ValueError: it is not JSON, or nested too deeply to read.
    """
    try:
        try:
            value = _DECODER.decode(text)
        except json.JSONDecodeError as error:
            reason = _TOO_DEEP if is_deep(text) else f"{error.msg} at character {error.pos}"
            raise ValueError(reason) from None
        except ValueError:  # an integer that Python does not read
            value = json.loads(text, parse_constant=_refuse, parse_int=_integer)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if is_deep_value(value, text):
        raise ValueError(_TOO_DEEP)
    return value


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON value")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)


def _integer(digits: str) -> int | Decimal:
    return int(digits) if len(digits) <= _MAX_DIGITS else Decimal(digits)


# -- The built-in check --------------------------------------------------------------------------------------------


def failures(value: Any, schema: Any, root: Any = None) -> list[Failure]:
    """Return where ``value`` does not fit ``schema``. ``root``: the document that ``$ref`` points into, if another."""
    check = _Check(schema if root is None else root)
    try:
        check.value(value, schema, (), ())
    except (_Beyond, RecursionError):
        return [Failure((), "schema", _TOO_LARGE, {})]
    return check.found


class _Beyond(Exception):
    """The check has reached its bounds."""


@final
class _Check:
    """One pass over a value."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.found: list[Failure] = []
        self._visits = 0

    def value(self, value: Any, schema: Any, path: Path, seen: tuple[int, ...]) -> None:
        """``seen``: the schemas already applied to this same value; applying one again would change nothing."""
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
        if "enum" in schema and not self._is_one_of(value, schema["enum"], schema, path):
            return
        if "const" in schema and not self._is_one_of(value, [schema["const"]], schema, path):
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

    def _is_one_of(self, value: Any, options: Any, schema: Mapping[str, Any], path: Path) -> bool:
        if not isinstance(options, (list, tuple)):
            return True
        self._visits += len(options)
        if any(equal_values(value, option) for option in options):
            return True
        shown = ", ".join(map(_shown, options[:8])) + (", …" if len(options) > 8 else "")
        self._fail(path, "enum", f"{_described(value)} is not one of: {shown}", schema)
        return False

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
        else:
            self._none_fits(value, schema, path, tried)

    def _none_fits(self, value: Any, schema: Mapping[str, Any], path: Path, tried: list[list[Failure]]) -> None:
        """Record what is wrong with a value that fits none of the alternatives."""
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
    """Return the words of ``type``; none if JSON Schema does not know one of them."""
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


def _described(value: Any) -> str:
    """Return the kind of a value, and the value if it is short."""
    kind = _kind(value)
    if kind in ("null", "boolean"):
        return _shown(value)
    if kind in ("object", "array"):
        return f"an {kind}"
    return f"{'number' if kind == 'integer' else kind} {_shown(value)}"


def _shown(value: Any) -> str:
    """Return the beginning of a value as JSON, without lone surrogates."""
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
