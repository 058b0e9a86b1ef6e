"""Check that each keyword of a JSON schema has a value of the right kind.

A schema is checked once, as a whole, before a grammar is written from it, so that the writers can rely on it. Its
meaning, and the keywords that a dialect can express, are decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from .._internal.jsontext.well_formed import is_deep
from ..errors import GrammarError
from ._limits import MAX_DEPTH
from ._places import at, whose
from ._rules import JsonSchema

__all__ = ["check_shape"]

_MAX_BRACKETS: Final = 2 * MAX_DEPTH  # a schema inside ``properties`` or ``anyOf`` opens two
_TEXTS: Final = frozenset(("$ref", "pattern", "format"))
_COUNTS: Final = frozenset(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"))
_NUMBERS: Final = frozenset(("minimum", "maximum", "multipleOf"))
_LIMITS: Final = frozenset(("exclusiveMinimum", "exclusiveMaximum"))
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
    """Return the problem of a keyword's value; empty if the value is right."""
    fits, problem = _RULES.get(word, (None, ""))
    return "" if fits is None or fits(value) else problem


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


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_filled(value: Any) -> bool:
    return _is_list(value) and bool(value)


def _is_texts(value: Any) -> bool:
    return _is_list(value) and all(isinstance(text, str) for text in value)


def _is_type(value: Any) -> bool:
    return isinstance(value, str) or _is_texts(value)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and bool(value == int(value))


def _is_limit(value: Any) -> bool:
    """True for a number; in old drafts it is a flag next to ``minimum`` or ``maximum``."""
    return isinstance(value, bool) or _is_number(value)


_RULES: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "type": (_is_type, "is neither a JSON type nor a list of them"),
    "required": (_is_texts, "is not a list of names"),
    "enum": (_is_filled, "is not a list of values"),
    **dict.fromkeys(_LISTS, (_is_filled, "is not a list of schemas")),
    **dict.fromkeys(_MAPS, (_is_object, "is not an object")),
    **dict.fromkeys(_TEXTS, (_is_text, "is not a string")),
    **dict.fromkeys(_COUNTS, (_is_count, "is not a count")),
    **dict.fromkeys(_NUMBERS, (_is_number, "is not a number")),
    **dict.fromkeys(_LIMITS, (_is_limit, "is not a number")),
}
"""Keyword → the test of its value, and the problem of a value that fails it."""
