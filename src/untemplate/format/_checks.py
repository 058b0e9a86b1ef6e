"""Checks of a Format when it is constructed: contradicting markers, patterns, values of the wrong kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache, partial
from types import NoneType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

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
    wrong = _problem(fmt)
    if wrong is not None:
        raise FormatError(*wrong)
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
    before = body.name_open or tools.call_open
    ends = body.name_close is not None or isinstance(body.arguments, LiteralArguments)  # at their bracket
    if not ends and before is not None and _is_open(before.text + body.name):
        raise FormatError(f"{path}.body.name_close", f"is missing: nothing ends a name after {before.text!r}")
    _check_arguments(tools, body, path)


def _is_open(text: str) -> bool:
    """True if a tag or a quotation is open at the end of a text."""
    return any(text.rfind(first) > text.rfind(last) for first, last in ("<>", "[]")) or text.count('"') % 2 == 1


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
    if "}{" in arguments.key:
        raise FormatError(f"{path}.key", f"{arguments.key!r} has no text between its variables")
    if "{string}" in arguments.key and "{type}" in arguments.key:
        raise FormatError(f"{path}.key", f"{arguments.key!r} holds {{string}} and {{type}}; only one may be there")
    if set(arguments.value_close.spellings) & set(arguments.key_open.spellings):
        raise FormatError(f"{path}.value_close", "is key_open as well")
    for name, number in zip(("trim", "trim_after"), arguments.trims, strict=True):
        if number < 0:
            raise FormatError(f"{path}.{name}", f"{number} is negative")
    _check_newlines(arguments, path)
    if (arguments.type_open is None) != (arguments.type_close is None):
        raise FormatError(f"{path}.type_close", "type_open and type_close go together")
    if arguments.type_open is not None and arguments.value_open is None:
        raise FormatError(f"{path}.value_open", "is missing: nothing begins a value after its type")


def _check_newlines(arguments: TaggedArguments, path: str) -> None:
    """Check that the newlines of the markers next to a value are removed from the value."""
    markers = ("key_close" if arguments.value_open is None else "value_open", "value_close")
    sides = zip(("trim", "trim_after"), markers, arguments.newlines, arguments.trims, strict=True)
    for name, marker, written, number in sides:
        if written > number:
            raise FormatError(
                f"{path}.{name}", f"{number} is less than the newlines of {marker} next to a value: {written}"
            )


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
    if not arguments.on_lines and arguments.separator.strip() != ",":
        raise FormatError(f"{path}.separator", f"{arguments.separator!r} is not a comma, with or without white space")
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


# -- Every value against the type of its field --------------------------------------------------------------------


_Problem = tuple[str, str] | None
"""Where below a value something is wrong with it, and what; None if nothing is."""
_Test = Callable[[Any], _Problem]


def _problem(part: Any) -> _Problem:
    """Return the first value below ``part`` that has not the type of its field, or is an empty marker."""
    if isinstance(part, Marker) and isinstance(part.accepted, tuple) and "" in (part.text, *part.accepted):
        return "", "is an empty marker"
    cls: Any = type(part)
    for name, test in _tests(cls):
        found = test(getattr(part, name))
        if found is not None:
            path, what = found
            return (f"{name}{path}" if path[:1] in ("", "[") else f"{name}.{path}"), what
    return None


@cache
def _tests(cls: Any) -> tuple[tuple[str, _Test], ...]:
    """Return the fields of a class, each with the test of its values."""
    hints = get_type_hints(cls)
    return tuple((field.name, _test(hints[field.name])) for field in fields(cls))


def _test(hint: Any) -> _Test:
    """Return the test of values of a type."""
    arguments = get_args(hint)
    if get_origin(hint) is Literal:
        return lambda value: (
            None if value in arguments else ("", f"{value!r} is not one of: {', '.join(get_args(hint))}")
        )
    if get_origin(hint) is tuple:
        return partial(
            _problem_in_items, hint, None if arguments[-1] is Ellipsis else len(arguments), _test(arguments[0])
        )
    plain = frozenset(arguments or (hint,)).intersection(_WORDS)
    return lambda value: None if type(value) in plain else _problem_of_part(hint, value)


def _problem_of_part(hint: Any, value: Any) -> _Problem:
    """Return what is wrong with a value that is not a plain one."""
    if _is_one_of(value, hint):
        return _problem(value) if is_dataclass(value) else None
    if isinstance(value, str) and Marker in (hint, *get_args(hint)):
        return "", f"{value!r} is a str; write Marker({value!r})"
    return "", f"expected {_expected(hint)}, got {_shown(value)}"


def _problem_in_items(hint: Any, size: int | None, of_item: _Test, value: Any) -> _Problem:
    """Return what is wrong with a tuple: its size, if the type has one, or an item that is empty or wrong."""
    if not isinstance(value, tuple) or size not in (None, len(value)):
        return "", f"expected {_expected(hint)}, such as {_example(hint, value)}, got {_shown(value)}"
    for i, one in enumerate(value):
        found = ("", "is empty") if one == "" else of_item(one)
        if found is not None:
            path, what = found
            return (f"[{i}]{path}" if path[:1] in ("", "[") else f"[{i}].{path}"), what
    return None


def _is_one_of(value: Any, hint: Any) -> bool:
    """True if a value has the type, or one of the types, of ``hint``. A bool is no integer."""
    classes = get_args(hint) or (hint,)
    return isinstance(value, classes) and (bool in classes or not isinstance(value, bool))


_WORDS: Final = {str: "text", int: "an integer", bool: "True or False", NoneType: "None"}


def _expected(hint: Any) -> str:
    """Return words for a type."""
    if get_origin(hint) is tuple:
        item, last = get_args(hint)[0], get_args(hint)[-1]
        size = "" if last is Ellipsis else f"{len(get_args(hint))} "
        return f"a tuple of {size}{_several(item)}"
    return " or ".join(_WORDS.get(cls) or cls.__name__ for cls in get_args(hint) or (hint,))


def _several(hint: Any) -> str:
    """Return words for several values of a type."""
    if get_origin(hint) is Literal:
        return f"these: {', '.join(get_args(hint))}"
    return "tuples" if get_origin(hint) is tuple else "texts" if hint is str else hint.__name__


def _example(hint: Any, value: Any) -> str:
    """Return a tuple of a type, with ``value`` in it if that could be its only item."""
    items = get_args(hint)
    if items[-1] is not Ellipsis:
        return "(" + ", ".join(['"…"'] * len(items)) + ")"
    return f"({_one(items[0], value)},)"


def _one(hint: Any, value: Any) -> str:
    """Return an item of a type: ``value`` if it is one."""
    if get_origin(hint) is tuple:
        return _example(hint, value)
    if get_origin(hint) is Literal:
        return repr(value if value in get_args(hint) else get_args(hint)[0])
    if hint is str:
        return repr(value) if value and isinstance(value, str) else '"…"'
    return f"{hint.__name__}(…)"


def _shown(value: Any) -> str:
    return f"{type(value).__name__}(…)" if is_dataclass(value) else f"{value!r:.200}"
