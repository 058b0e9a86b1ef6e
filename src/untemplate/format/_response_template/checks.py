"""Checks a response template: its keys, their types, and which keys exclude each other.

Every error names the path of the first part that is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from .._parts import FormatError
from .._serialization import shown

__all__ = ["NO_COUNTERPART", "REASONING_KEYS", "Json", "check_template", "is_implicit", "placeholder"]

NO_COUNTERPART: Final = "has no counterpart in a Format"
REASONING_KEYS: Final = ("thinking", "reasoning_content", "reasoning")

Json = dict[str, Any]


def _text(value: Any, path: str) -> None:
    if not isinstance(value, str):
        raise FormatError(path, f"expected text, got {shown(value)}")


def _flag(value: Any, path: str) -> None:
    if not isinstance(value, bool):
        raise FormatError(path, f"expected true or false, got {shown(value)}")


def _dict(value: Any, path: str) -> None:
    if not isinstance(value, dict):
        raise FormatError(path, f"expected an object, got {shown(value)}")


def _literals(value: Any, path: str) -> None:
    """Check for a text, or a list of alternative texts."""
    texts = value if isinstance(value, list) else [value]
    if not texts:
        raise FormatError(path, "is empty")
    for i, text in enumerate(texts):
        place = f"{path}[{i}]" if isinstance(value, list) else path
        if not isinstance(text, str):
            raise FormatError(place, f"expected text, got {shown(text)}")
        if not text:
            raise FormatError(place, "is empty")


def _pattern(value: Any, path: str) -> None:
    _text(value, path)
    try:
        re.compile(value, re.DOTALL)
    except (re.error, OverflowError, RecursionError) as error:
        raise FormatError(path, f"not a regular expression: {error}") from None


def _pairs(value: Any, path: str) -> None:
    if not isinstance(value, list):
        raise FormatError(path, f"expected an array of pairs, got {shown(value)}")
    for i, pair in enumerate(value):
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(x, str) and x for x in pair):
            raise FormatError(f"{path}[{i}]", f"expected a pair of texts, got {shown(pair)}")


_DEEPEST: Final = 16
"""Levels of a transform; a call needs two."""


def _shape(value: Any, path: str, depth: int = 0) -> None:
    """Check that every text in a transform either is a placeholder or contains none."""
    if depth > _DEEPEST:
        raise FormatError(path, f"is nested deeper than {_DEEPEST} levels")
    if isinstance(value, dict):
        for key, item in value.items():
            _shape(item, f"{path}.{key}", depth + 1)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            _shape(item, f"{path}[{i}]", depth + 1)
    elif isinstance(value, str) and re.search(r"\{[\w.]+\}", value) and not placeholder(value):
        raise FormatError(path, f"mixes text and placeholder: {value!r}")


def _transform(value: Any, path: str) -> None:
    if not isinstance(value, (dict, list)):
        raise FormatError(path, f"expected an object or an array, got {shown(value)}")
    _shape(value, path)


def _value_parser(value: Any, path: str) -> None:
    _check(value, path, {"name": _text, "args": _dict})
    if "name" not in value:
        raise FormatError(f"{path}.name", "is missing")
    _check_parser(value["name"], value.get("args", {}), f"{path}.name", f"{path}.args")


Check = Callable[[Any, str], None]

_PARSERS: Final[dict[str, dict[str, Check]]] = {
    "text": {"strip": _flag},
    "int": {},
    "float": {},
    "bool": {},
    "json": {"unquoted_keys": _flag, "string_delims": _pairs, "allow_non_json": _flag},
    "xml-inline": {"tag_pattern": _pattern, "value_parser": _value_parser, "merge_duplicates": _flag},
    "kv-lines": {"line_sep": _text, "kv_sep": _text, "strip": _flag, "value_parser": _value_parser},
}
_FIELD: Final[dict[str, Check]] = {
    "open": _literals,
    "open_pattern": _pattern,
    "close": _literals,
    "close_pattern": _pattern,
    "content": _text,
    "content_args": _dict,
    "repeats": _flag,
    "join": _text,
    "optional": _flag,
    "transform": _transform,
    "transform_each": _flag,
}
_TEMPLATE: Final[dict[str, Check]] = {
    "version": lambda value, path: None,
    "defaults": _dict,
    "fields": _dict,
    "start_anchor": _literals,
    "start_anchor_pattern": _pattern,
}


def _check(value: Any, path: str, checks: dict[str, Check]) -> None:
    """Check that every key of ``value`` is known and has its type. The path of the template itself is ``""``."""
    _dict(value, path or "response_template")
    for key, item in value.items():
        place = f"{path}.{key}".lstrip(".")
        if key not in checks:
            keys = f"the keys are: {', '.join(checks)}" if checks else "there are none"
            raise FormatError(place, f"is not a key here; {keys}")
        checks[key](item, place)
    for key in ("open", "close", "start_anchor"):
        if key in value and f"{key}_pattern" in value:
            raise FormatError(f"{path}.{key}_pattern".lstrip("."), f"cannot be combined with {key}")


def _check_parser(content: str, arguments: Json, path: str, arguments_path: str) -> None:
    if content not in _PARSERS:
        raise FormatError(path, f"{content!r} is not one of: {', '.join(_PARSERS)}")
    _check(arguments, arguments_path, _PARSERS[content])
    if content == "xml-inline" and "tag_pattern" not in arguments:
        raise FormatError(f"{arguments_path}.tag_pattern", "is missing")


def check_template(template: Any) -> None:
    """Check a whole template.

    Raises:
        FormatError: it is not a valid response template of version 1.
    """
    _check(template, "", _TEMPLATE)
    version = template.get("version", 1)
    if version != 1 or isinstance(version, bool):
        raise FormatError("version", f"expected 1, got {shown(version)}")
    if "fields" not in template:
        raise FormatError("fields", "is missing")
    implicit = ""
    reasoning = ""
    for key, field in template["fields"].items():
        path = f"fields.{key}"
        if key not in (*REASONING_KEYS, "content", "tool_calls"):
            raise FormatError(path, NO_COUNTERPART)
        _check(field, path, _FIELD)
        _check_parser(field.get("content", "text"), field.get("content_args", {}), f"{path}.content",
                      f"{path}.content_args")  # fmt: skip
        if "join" in field and not field.get("repeats"):
            raise FormatError(f"{path}.join", "needs repeats")
        if key in REASONING_KEYS:
            if reasoning:
                raise FormatError(path, f"{NO_COUNTERPART} next to {reasoning}")
            reasoning = path
        if is_implicit(field):
            if implicit:
                raise FormatError(f"{path}.open", f"is missing, and in {implicit} too; one field at most has none")
            implicit = path


def is_implicit(field: Json) -> bool:
    """True if the field has no opening: it holds the text outside all other fields."""
    return "open" not in field and "open_pattern" not in field


def placeholder(value: Any) -> list[str] | None:
    """Return the keys of a placeholder such as ``{content.name}``; None for anything else."""
    match = re.fullmatch(r"\{(\w+(?:\.\w+)*)\}", value) if isinstance(value, str) else None
    return None if match is None else match[1].split(".")
