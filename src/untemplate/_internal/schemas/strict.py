"""Strict validation: all keywords of JSON Schema, checked by jsonschema-rs.

The library is imported when a schema first needs it, and never fetches a schema from elsewhere. It does not limit its
work, and it holds Python's global lock meanwhile. Schemas come with requests: one of 2 KB, in which 30 definitions each
refer to the one before twice, would stop the process for a minute. So the work is counted here first.
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from ..installed import install_command
from .reading import resolve

__all__ = ["compiled", "needs_full", "takes_too_long", "violations"]

_MAX_WORK: Final = 200_000  # pairs of a value and a schema; 1,000 characters of a pattern and its text count as one
_MAX_MESSAGE: Final = 200
_BACKTRACKING: Final = 10_000

_FULL: Final = frozenset(
    ("pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
     "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains", "prefixItems", "additionalItems",
     "unevaluatedItems", "minProperties", "maxProperties", "patternProperties", "propertyNames", "dependencies",
     "dependentRequired", "dependentSchemas", "unevaluatedProperties", "if", "not", "$dynamicRef", "$recursiveRef")
)  # fmt: skip
# The library ignores OpenAPI's formats (int32, float, password, …) as well.
_FORMATS: Final = frozenset(
    ("date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6", "uri",
     "uri-reference", "iri", "iri-reference", "uri-template", "uuid", "json-pointer", "relative-json-pointer", "regex")
)  # fmt: skip
_SURROGATE: Final = re.compile(f"[{chr(0xD800)}-{chr(0xDFFF)}]")
_SLUGS: Final = {"type": "type", "required": "missing", "enum": "enum", "const": "enum"}

_HERE: Final = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")
"""Keywords whose schemas apply to the value itself."""
_HERE_BY_NAME: Final = ("dependentSchemas", "dependencies")
_BELOW: Final = (
    "items", "additionalItems", "unevaluatedItems", "contains", "prefixItems", "additionalProperties",
    "unevaluatedProperties", "patternProperties",
)  # fmt: skip
"""Keywords whose schemas may apply to any item or member of the value."""


def needs_full(schema: Any) -> list[str]:
    """Return the keywords of ``schema`` that the built-in check does not know, each once.

    Formats that JSON Schema does not define do not count, nor do definitions that no reference points at.
    """
    words: dict[str, None] = {}
    seen: set[int] = set()
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if not isinstance(part, Mapping) or id(part) in seen:
            continue
        seen.add(id(part))
        words.update((word, None) for word, value in part.items() if _is_full(word, value, schema))
        properties = part.get("properties")
        parts = list(properties.values()) if isinstance(properties, Mapping) else []
        parts += [part.get("items"), part.get("additionalProperties"), resolve(part.get("$ref"), schema)]
        for word in ("anyOf", "oneOf", "allOf"):
            parts.extend(part[word] if isinstance(part.get(word), (list, tuple)) else ())
        waiting.extend(reversed(parts))
    return list(words)


def _is_full(word: str, value: Any, root: Any) -> bool:
    if word == "format":
        return isinstance(value, str) and value in _FORMATS
    if word == "$ref":
        return not (isinstance(value, str) and value.startswith("#") and resolve(value, root) is not None)
    return word in _FULL or (word == "items" and isinstance(value, (list, tuple)))


def compiled(schema: Any, where: str) -> Any:
    """Return the library's validator; ``None`` if the built-in check knows all keywords of ``schema``.

    Patterns run in linear time; one with lookaround or a backreference is given up after 10,000 steps of backtracking,
    which is a problem of the value.

    Raises:
        ValueError: it is not a valid schema. The message begins with ``where``.
        ModuleNotFoundError: the library is not installed. The message names the keywords and the extra.
    """
    words = needs_full(schema)
    if not words:
        return None
    try:
        library = importlib.import_module("jsonschema_rs")
    except ModuleNotFoundError:
        command = install_command("untemplate", "validate")
        problem = f"{where}: checking {', '.join(words)} needs jsonschema-rs: {command}"
        raise ModuleNotFoundError(problem, name="jsonschema_rs") from None
    linear = library.RegexOptions()
    backtracking = library.FancyRegexOptions(backtrack_limit=_BACKTRACKING)
    problem = ""
    for engine in (linear, backtracking):
        try:
            return library.validator_for(
                schema, validate_formats=True, retriever=_fetch_nothing, pattern_options=engine
            )
        except (ValueError, TypeError, RecursionError) as error:
            problem = str(getattr(error, "message", None) or error)
    raise ValueError(f"{where}: {problem}")


def _fetch_nothing(uri: str) -> Any:
    # Schemas come with requests: their references could point into the operator's network.
    raise ValueError("references to other documents are not followed")


def takes_too_long(value: Any, schema: Any) -> bool:
    """True if checking ``value`` could take more than ``_MAX_WORK`` steps.

    The count is an upper bound: it follows every schema that could apply, even where an earlier keyword decides.
    """
    work = 0
    waiting = [(value, schema)]
    while waiting:
        here, part = waiting.pop()
        work += 1
        if work > _MAX_WORK:
            return True
        if not isinstance(part, Mapping):
            continue
        work += _own_work(here, part)
        for reference in ("$ref", "$dynamicRef", "$recursiveRef"):
            if reference in part:
                waiting.append((here, resolve(part[reference], schema)))
        waiting += [(here, inner) for word in _HERE for inner in _schemas(part.get(word))]
        waiting += [(here, inner) for word in _HERE_BY_NAME for inner in _named(part.get(word))]
        if isinstance(here, (dict, list)) and len(waiting) <= _MAX_WORK:
            work += len(here)
            waiting += _below(here, part)
    return work > _MAX_WORK


def _own_work(value: Any, schema: Mapping[str, Any]) -> int:
    """Return the steps for keywords that hold no schema."""
    lists = [schema[word] for word in ("enum", "required") if isinstance(schema.get(word), (list, tuple))]
    work = sum(map(len, lists))
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and isinstance(value, str):
        work += len(pattern) * len(value) // 1_000
    return work


def _below(value: dict[str, Any] | list[Any], schema: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the items or members of a value, each with the schemas that may apply to it."""
    properties = schema.get("properties")
    if isinstance(value, dict):
        if isinstance(properties, Mapping):
            yield from ((value[key], properties[key]) for key in value if key in properties)
        yield from ((key, inner) for inner in _schemas(schema.get("propertyNames")) for key in value)
    inside = list(value.values()) if isinstance(value, dict) else value
    for word in _BELOW:
        inner = schema.get(word)
        if word in ("prefixItems", "items") and isinstance(inner, (list, tuple)):
            yield from zip(inside, inner, strict=False)
        else:
            schemas = _named(inner) if word == "patternProperties" else _schemas(inner)
            yield from ((item, one) for one in schemas for item in inside)


def _schemas(value: Any) -> list[Any]:
    """Return the schemas in a keyword's value: one, or a list."""
    return list(value) if isinstance(value, (list, tuple)) else [value] if isinstance(value, Mapping) else []


def _named(value: Any) -> list[Any]:
    """Return the schemas in a keyword's value that maps names to schemas."""
    return list(value.values()) if isinstance(value, Mapping) else []


def violations(validator: Any, value: Any) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    """Yield (path, slug, message) of each problem that the library finds."""
    try:
        for error in validator.iter_errors(_encodable(value)):
            path, message = tuple(error.instance_path), error.message
            slug = _SLUGS.get(error.kind.name, "schema")
            if slug == "missing":
                path, message = (*path, error.kind.property), "is required"
            yield path, slug, message if len(message) <= _MAX_MESSAGE else message[:_MAX_MESSAGE] + "…"
    except (ValueError, RecursionError) as error:
        yield (), "schema", f"could not be checked: {error}"


def _encodable(value: Any) -> Any:
    """Return ``value`` as the library can take it: U+FFFD for lone surrogates, a large number for infinity."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, float) and math.isinf(value):
        return Decimal("1e999") if value > 0 else Decimal("-1e999")
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return value
