"""Writes arguments as text, one function for each syntax of a Format.

JSON given as text is passed through unchanged; everything else is written in its canonical form. :mod:`.expressible`
decides whether the text parses back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from ...format import Arguments, ElementArguments, JsonArguments, LiteralArguments, TaggedArguments
from ...format._markers import text_of
from ...format._spelling import argument_text, escape, hidden, in_section, json_text
from .message import MessageCall

__all__ = [
    "arguments_text",
    "element_text",
    "json_arguments",
    "key_text",
    "value_text",
]


def arguments_text(call: MessageCall, arguments: Arguments) -> str:
    """Return the arguments of a call with their own markup; ``NamedBody.arguments_close`` is not part of it.

    Raises:
        ValueError: the call's arguments are not a JSON object.
    """
    if isinstance(arguments, JsonArguments):
        return json_arguments(call)
    members = call.object()
    if isinstance(arguments, LiteralArguments):
        pairs = (f"{key}{arguments.assign}{argument_text(value, arguments)}" for key, value in members.items())
        return arguments.open + arguments.separator.join(pairs) + arguments.close
    if isinstance(arguments, ElementArguments):
        return "".join(element_text(key, value, arguments) for key, value in members.items())
    value_open = text_of(arguments.value_open)
    return "".join(
        f"{arguments.key_open.text}{key_text(key, value, arguments)}{arguments.key_close.text}"
        f"{_type_text(value, arguments)}{value_open}{value_text(value, arguments)}{arguments.value_close.text}"
        for key, value in members.items()
    )


def json_arguments(call: MessageCall) -> str:
    """Return the arguments as a JSON object: text as given, a mapping on one line."""
    members = call.object()
    text = call.arguments.strip() if isinstance(call.arguments, str) else json_text(members)
    return text or "{}"


def element_text(name: str, value: Any, arguments: ElementArguments) -> str:
    """Return a value as an element: a string as it is, an object or an array as elements, anything else as JSON."""
    if isinstance(value, Mapping):
        inner = "".join(element_text(key, item, arguments) for key, item in value.items())
    elif isinstance(value, (list, tuple)):
        inner = "".join(element_text(arguments.item, item, arguments) for item in value)
    else:
        inner = value if isinstance(value, str) else json_text(value)
    end = arguments.name_close
    return f"{arguments.open.text}{name}{end}{inner}{arguments.close.text}{name}{end}{arguments.separator}"


# -- Tags ---------------------------------------------------------------------------------------------------------

_TYPES: Final = ((bool, "boolean"), (str, "string"), (int, "number"), (float, "number"), (Mapping, "object"))


def key_text(key: str, value: Any, arguments: TaggedArguments) -> str:
    """Return the text between ``key_open`` and ``key_close``: the key, and attributes that describe the value."""
    variables = {
        "key": escape(key, arguments.escape_of_keys),
        "string": "true" if isinstance(value, str) else "false",
        "type": _type_name(value),
    }
    return re.sub(r"\{(\w+)\}", lambda found: variables.get(found.group(1), found.group()), arguments.key)


def _type_text(value: Any, arguments: TaggedArguments) -> str:
    if arguments.type_open is None or arguments.type_close is None or not arguments.type_written:
        return ""
    return f"{arguments.type_open.text}{_type_name(value)}{arguments.type_close.text}"


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    return next((name for kind, name in _TYPES if isinstance(value, kind)), "array")


def value_text(value: Any, arguments: TaggedArguments) -> str:
    """Return a value between its tags: a string as it is, anything else as JSON."""
    if not isinstance(value, str):
        return hidden(json_text(value), "&<>") if arguments.escape == "xml" else json_text(value)
    if arguments.escape == "cdata":
        return in_section(value)
    return escape(value, arguments.escape)
