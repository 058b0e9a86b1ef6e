"""Check that each keyword of a JSON schema has a value of the right kind.

A schema is checked once, as a whole, before a grammar is written from it, so that the writers can rely on it. What
a keyword means, and whether a dialect can say it, is not decided here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..errors import GrammarError
from ..jsontext.well_formed import is_deep
from .limits import MAX_DEPTH
from .places import at, whose
from .rules import JsonSchema

__all__ = ["check_shape"]

_MAX_BRACKETS: Final = 2 * MAX_DEPTH  # a schema inside ``properties`` or ``anyOf`` opens two
_TEXTS: Final = frozenset(("$ref", "pattern", "format"))
_COUNTS: Final = frozenset(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"))
_NUMBERS: Final = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
_LISTS: Final = frozenset(("anyOf", "oneOf", "allOf", "prefixItems"))
_MAPS: Final = frozenset(("properties", "patternProperties", "$defs", "definitions"))
_ONES: Final = frozenset(("items", "additionalProperties", "additionalItems", "not", "contains", "propertyNames"))


def check_shape(schema: JsonSchema, tool: str) -> None:
    """Check a schema and all schemas in it.

    Args:
        schema: of a tool's parameters, or of ``response_format``.
        tool: whose, for messages; empty: the request's ``response_format``.

    Raises:
        GrammarError: names the tool, the place and the keyword.
    """
    if is_deep(schema.key, _MAX_BRACKETS):
        raise GrammarError(f"{whose(tool)}: nested deeper than {MAX_DEPTH} schemas")
    waiting: list[tuple[Any, str]] = [(schema.value, "")]
    while waiting:
        part, path = waiting.pop()
        if isinstance(part, bool):
            continue
        if not isinstance(part, Mapping):
            raise GrammarError(f"{whose(tool)}{at(path)}: {type(part).__name__} is not a schema")
        for word, value in part.items():
            problem = _problem(word, value)
            if problem:
                raise GrammarError(f"{whose(tool)}{at(path)}: {word!r} {problem}")
        waiting += _inner(part, path)


def _problem(word: str, value: Any) -> str:
    """Return the problem of a keyword's value; empty if there is none."""
    if word == "type":
        kinds = [value] if isinstance(value, str) else value
        if not _is_list(kinds) or not all(isinstance(kind, str) for kind in kinds):
            return "is neither a JSON type nor a list of them"
    elif word == "required":
        if not _is_list(value) or not all(isinstance(name, str) for name in value):
            return "is not a list of names"
    elif word == "enum":
        return "" if _is_list(value) and value else "is not a list of values"
    elif word in _LISTS:
        return "" if _is_list(value) and value else "is not a list of schemas"
    elif word in _MAPS:
        return "" if isinstance(value, Mapping) else "is not an object"
    elif word in _TEXTS:
        return "" if isinstance(value, str) else "is not a string"
    elif word in _COUNTS:
        return "" if _is_number(value) and value >= 0 and value == int(value) else "is not a count"
    elif word in _NUMBERS:
        # In old drafts these two are flags next to minimum and maximum.
        old = word.startswith("exclusive") and isinstance(value, bool)
        return "" if old or _is_number(value) else "is not a number"
    return ""


def _inner(part: Mapping[str, Any], path: str) -> Iterator[tuple[Any, str]]:
    """Yield the schemas inside a schema, and their places."""
    for word, value in part.items():
        if word in _MAPS:
            named = "" if word == "properties" else f"/{word}"
            yield from ((inner, f"{path}{named}/{name}") for name, inner in value.items())
        elif word in _LISTS or (word == "items" and _is_list(value)):
            yield from ((inner, f"{path}/{word}/{i}") for i, inner in enumerate(value))
        elif word in _ONES:
            yield value, f"{path}/*" if word == "additionalProperties" else f"{path}/{word}"


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")
