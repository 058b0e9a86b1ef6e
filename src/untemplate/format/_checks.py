"""Checks of a Format when it is constructed: contradicting markers, patterns, values of the wrong kind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from ..errors import FormatError
from ._markers import spellings_of
from ._parts import (
    FORMAT_VERSION,
    Arguments,
    Channels,
    ElementArguments,
    FormatFields,
    JsonBody,
    LiteralArguments,
    Marker,
    NamedBody,
    TaggedArguments,
    Tools,
)

__all__ = ["check"]

_VARIABLE = re.compile(r"\{(\w+)\}")


def check(fmt: FormatFields) -> None:
    """Raise FormatError if the Format cannot work.

    Examples: an empty marker, one literal with two meanings in one state, a pattern without its variable.
    """
    if not fmt.name:
        raise FormatError("name", "is empty")
    if fmt.version != FORMAT_VERSION:
        raise FormatError("version", f"{fmt.version!r} is not known here; the only version is {FORMAT_VERSION}")
    _check_values(fmt, "")
    seen: dict[str, str] = {}
    for path, marker in _text_markers(fmt):
        _distinct(seen, marker, path)
    if fmt.channels is not None:
        _check_channels(fmt, fmt.channels, seen)
    for i, tools in enumerate(fmt.tools):
        _check_tools(tools, f"tools[{i}]", seen)
    if fmt.ids not in ("random", "alphanumeric9"):
        if "{" not in fmt.ids:
            raise FormatError(
                "ids", f"{fmt.ids!r} is not 'random', 'alphanumeric9' or a pattern with {{name}} or {{index}}"
            )
        _check_pattern(fmt.ids, "ids", ("name", "index"))


def _text_markers(fmt: FormatFields) -> Iterator[tuple[str, Marker | None]]:
    """Yield the markers that are found in reasoning and content, each with its path."""
    if fmt.reasoning is not None:
        yield "reasoning.open", fmt.reasoning.open
        yield "reasoning.close", fmt.reasoning.close
    if fmt.content is not None:
        yield "content.open", fmt.content.open
        yield "content.close", fmt.content.close
    yield "turn.end", fmt.turn.end


def _check_channels(fmt: FormatFields, channels: Channels, seen: dict[str, str]) -> None:
    _distinct(seen, channels.open, "channels.open")
    _distinct(seen, channels.close, "channels.close")
    if channels.call_close != channels.close:
        _distinct(seen, channels.call_close, "channels.call_close")
    _distinct(seen, channels.reasoning_body, "channels.reasoning_body")
    _distinct(seen, channels.call_body, "channels.call_body")
    if not channels.content and channels.call_body is None:
        raise FormatError("channels.content", "is empty: at least one channel must hold content")
    for word in channels.reasoning:
        if word in channels.content:
            raise FormatError("channels.content", f"{word!r} is in channels.reasoning as well")
    if not channels.call_name and channels.call_body is None:
        raise FormatError("channels.call_name", "is false, but nothing else marks calls: channels.call_body is missing")
    if channels.call_body is not None and not fmt.tools:
        raise FormatError("tools", "is empty: a message after channels.call_body holds a whole call")


def _check_tools(tools: Tools, path: str, seen: dict[str, str]) -> None:
    """Check one way to write calls. Several ways may share an opener: the text after it decides between them."""
    for name in ("section_open", "call_open"):
        marker: Marker | None = getattr(tools, name)
        for text in spellings_of(marker):
            if text in seen:
                raise FormatError(f"{path}.{name}", f"{text!r} is already {seen[text]}")
    if (tools.list_open is None) != (tools.list_close is None):
        raise FormatError(f"{path}.list_close", "list_open and list_close go together")
    if not all(text.strip() for text in tools.stray_closes):
        raise FormatError(f"{path}.stray_closes", "holds an empty text")
    body = tools.body
    if isinstance(body, JsonBody):
        if not body.name_is_key and body.name_key == body.arguments_key:
            raise FormatError(f"{path}.body.arguments_key", f"{body.arguments_key!r} is the name_key as well")
        return
    _check_pattern(body.name, f"{path}.body.name", ("name", "index", "id"), needed="name")
    _check_arguments(tools, body, path)


def _check_arguments(tools: Tools, body: NamedBody, path: str) -> None:
    arguments = body.arguments
    if isinstance(arguments, TaggedArguments):
        _check_tagged(arguments, f"{path}.body.arguments")
    elif isinstance(arguments, ElementArguments):
        _check_elements(arguments, f"{path}.body.arguments")
    elif isinstance(arguments, LiteralArguments):
        _check_literal(arguments, f"{path}.body.arguments")
        if arguments.on_lines and body.name_close is None:
            raise FormatError(f"{path}.body.name_close", "is missing: nothing ends a name before lines of arguments")
    kind = _ended_by_call(arguments)
    if kind and not any((body.arguments_close, tools.call_close, tools.section_close)):
        raise FormatError(f"{path}.body.arguments_close", f"is missing: nothing ends a call with {kind} arguments")


def _ended_by_call(arguments: Arguments) -> str:
    """Return words for arguments that only the close of their call ends; empty for others."""
    if isinstance(arguments, LiteralArguments):
        return "lines of" if arguments.on_lines else ""
    return "tagged" if isinstance(arguments, TaggedArguments | ElementArguments) else ""


def _check_tagged(arguments: TaggedArguments, path: str) -> None:
    _check_pattern(arguments.key, f"{path}.key", ("key", "string", "type"), needed="key")
    if set(arguments.value_close.spellings) & set(arguments.key_open.spellings):
        raise FormatError(f"{path}.value_close", "is key_open as well")
    for name, number in zip(("trim", "trim_after"), arguments.trims, strict=True):
        if number < 0:
            raise FormatError(f"{path}.{name}", f"{number} is negative")
    if (arguments.type_open is None) != (arguments.type_close is None):
        raise FormatError(f"{path}.type_close", "type_open and type_close go together")
    if arguments.type_open is not None and arguments.value_open is None:
        raise FormatError(f"{path}.value_open", "is missing: nothing begins a value after its type")


def _check_elements(arguments: ElementArguments, path: str) -> None:
    if set(arguments.close.spellings) & set(arguments.open.spellings):
        raise FormatError(f"{path}.close", "is open as well")
    if not arguments.name_close.strip():
        raise FormatError(f"{path}.name_close", "holds nothing but white space")
    if arguments.separator.strip():
        raise FormatError(f"{path}.separator", f"{arguments.separator!r} holds more than white space")
    if not arguments.item or arguments.name_close in arguments.item:
        raise FormatError(f"{path}.item", f"{arguments.item!r} cannot be the name of an element")


def _check_literal(arguments: LiteralArguments, path: str) -> None:
    if arguments.on_lines:
        _check_lines(arguments, path)
    for name in () if arguments.on_lines else ("open", "close"):
        if len(getattr(arguments, name)) != 1:
            raise FormatError(f"{path}.{name}", "must be one character")
    if len(arguments.assign.strip()) != 1:
        raise FormatError(f"{path}.assign", "must be one character")
    if not arguments.quotes:
        raise FormatError(f"{path}.quotes", "is empty")


def _check_lines(arguments: LiteralArguments, path: str) -> None:
    if arguments.close:
        raise FormatError(f"{path}.close", "must be empty, as open is")
    if arguments.separator.strip() or arguments.separator[:1] != "\n":
        raise FormatError(f"{path}.separator", "must be a new line: each argument is on a line of its own")


def _check_pattern(pattern: str, path: str, valid: tuple[str, ...], needed: str = "") -> None:
    """Check that a pattern contains the needed variable, only valid ones, and none twice."""
    variables = _VARIABLE.findall(pattern)
    if needed and needed not in variables:
        raise FormatError(path, f"{pattern!r} does not hold {{{needed}}}")
    for name in variables:
        if name not in valid:
            raise FormatError(path, f"{pattern!r} holds {{{name}}}; the variables are: {{{'}, {'.join(valid)}}}")
        if variables.count(name) > 1:
            raise FormatError(path, f"{pattern!r} holds {{{name}}} more than once")


def _distinct(seen: dict[str, str], marker: Marker | None, path: str) -> None:
    """Record the spellings of a marker. None of them may have another meaning."""
    for text in spellings_of(marker):
        if text in seen:
            raise FormatError(path, f"{text!r} is already {seen[text]}")
        seen[text] = path


def _check_values(part: Any, path: str) -> None:
    """Check all fields below ``part``: no marker and no item is empty, a choice is one of its values, and no str
    stands for a marker."""
    if isinstance(part, Marker):
        if not part.text or "" in part.accepted:
            raise FormatError(path, "is an empty marker")
    elif isinstance(part, tuple):
        for i, item in enumerate(part):
            if item == "":
                raise FormatError(f"{path}[{i}]", "is empty")
            _check_values(item, f"{path}[{i}]")
    elif is_dataclass(part):
        cls: Any = type(part)
        for name, choices, marker in _fields(cls):
            value = getattr(part, name)
            place = f"{path}.{name}" if path else name
            if marker and isinstance(value, str):
                raise FormatError(place, f"{value!r} is a str; write Marker({value!r})")
            for item in value if choices and isinstance(value, tuple) else (value,):
                if choices and item not in choices:
                    raise FormatError(place, f"{item!r} is not one of: {', '.join(choices)}")
            _check_values(value, place)


@cache
def _fields(cls: Any) -> tuple[tuple[str, tuple[str, ...], bool], ...]:
    """Return the fields of a class, each with its valid values and whether it holds a marker; no values if it is not a
    choice."""
    found = []
    for name, hint in get_type_hints(cls).items():
        item = get_args(hint)[0] if get_origin(hint) is tuple else hint
        choices = get_args(item) if get_origin(item) is Literal else ()
        found.append((name, choices, hint is Marker or Marker in get_args(hint)))
    return tuple(found)
