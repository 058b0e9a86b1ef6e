"""Checks whether one call can be written in a Format: its name, its id and its arguments.

The rules are those of :mod:`.expressible`. JSON strings cannot be ended by accident, so the checks concern names
between markers, and arguments in tags, elements and literals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ...format import (
    Channels,
    ElementArguments,
    Format,
    JsonBody,
    LiteralArguments,
    NamedBody,
    TaggedArguments,
    Tools,
)
from ...format._markers import spellings_of
from ...format._spelling import escape, json_text, text_in_quotes
from ...tools import ToolSet
from ..jsontext.coercion import Param
from .elements import ElementRules, elements_problem
from .message import MessageCall
from .reasons import Inexpressible
from .shared import ILLEGAL, MAX_NAME, becomes, literals_of, name_ends
from .tagged import tagged_problem

__all__ = ["call_problem"]

_IDENTIFIER: Final = re.compile(r"[^\W\d]\w*")
_LETTER: Final = re.compile(r"\w")
"""A letter, digit or underscore, which every name outside JSON has."""
_WORD: Final = re.compile(r"[^\s=:,()\[\]{}\"'<]+")


def call_problem(fmt: Format, call: MessageCall, offered: ToolSet) -> Inexpressible | None:
    """Return the reason why this call, by itself, cannot be written; ``None`` if it can."""
    try:
        members = call.object()
        json_text(members)
    except (TypeError, ValueError, RecursionError):
        return Inexpressible.NOT_AN_OBJECT
    if not call.name or (fmt.channels is not None and not _channel_name(fmt.channels, call.name)):
        return Inexpressible.NAME_CHARACTERS
    if not fmt.tools:
        return None
    tools = fmt.tools[0]
    body = tools.body
    unknown = offered.known and call.name not in offered.names
    if unknown and fmt.channels is None and tools.bare:
        return Inexpressible.UNKNOWN_TOOL
    if isinstance(body, JsonBody):
        return None
    if unknown and not members and _is_word(body):
        return Inexpressible.UNKNOWN_TOOL
    return _name_problem(tools, body, call, unknown) or _arguments_problem(fmt, tools, body, call, members, offered)


def _arguments_problem(
    fmt: Format, tools: Tools, body: NamedBody, call: MessageCall, members: Mapping[str, Any], offered: ToolSet
) -> Inexpressible | None:
    arguments = body.arguments
    if isinstance(arguments, TaggedArguments):
        return tagged_problem(fmt, call.name, members, offered)
    if isinstance(arguments, ElementArguments):
        around = (body.arguments_close, tools.call_close, tools.section_close, tools.call_open, tools.section_open)
        rules = ElementRules(arguments, spellings_of(*around, body.name_open, fmt.turn.end))
        return elements_problem(rules, members, offered.node(call.name))
    if isinstance(arguments, LiteralArguments):
        return _literal_problem(tools, arguments, call.name, members, offered)
    return None


def _illegal(name: str) -> bool:
    """True if a name has a character that no name has, or none that every name has. Any Unicode white space ends a
    name."""
    return bool(ILLEGAL & set(name)) or any(map(str.isspace, name)) or _LETTER.search(name) is None


def _is_word(body: NamedBody) -> bool:
    """True if a call without arguments is only a name between the markers of calls, as in prose."""
    tags = isinstance(body.arguments, TaggedArguments | ElementArguments)
    return tags and not body.name_in_tag and body.arguments_close is None


def _channel_name(channels: Channels, name: str) -> bool:
    """True if a header can hold the name."""
    if len(name) > MAX_NAME - 128 or _illegal(name):
        return False
    by_name = channels.channel is None and channels.call_body is None
    if by_name and name in (*channels.content, *channels.reasoning):
        return False
    return not any(text in name for text in spellings_of(channels.channel, channels.recipient, channels.constraint))


def _name_problem(tools: Tools, body: NamedBody, call: MessageCall, unknown: bool) -> Inexpressible | None:
    name = escape(call.name, body.escape)
    literals = literals_of(body.name)
    if _illegal(name) or len(name) + len("".join(literals)) + 20 > MAX_NAME:
        return Inexpressible.NAME_CHARACTERS
    # The pattern is read with the shortest name that fits.
    if any(text in name for text in (*literals, *name_ends(tools, body))):
        return Inexpressible.NAME_CHARACTERS
    if literals and unknown:
        # The parser may read an unknown name as an offered one with a broken pattern.
        return Inexpressible.UNKNOWN_TOOL
    return None if body.id_open is None or _id_fits(call.id, body) else Inexpressible.ID_CHARACTERS


def _id_fits(call_id: str, body: NamedBody) -> bool:
    """True if an id, if there is one, is read back whole."""
    closes = spellings_of(body.name_close)
    return not call_id or (bool(closes) and len(call_id) <= MAX_NAME and not any(text in call_id for text in closes))


# -- Literals -------------------------------------------------------------------------------------------------------


def _literal_problem(
    tools: Tools, arguments: LiteralArguments, name: str, members: Mapping[str, Any], offered: ToolSet
) -> Inexpressible | None:
    # Where a key can begin, these end the call first.
    stops = spellings_of(tools.call_open, tools.call_close, tools.section_open, tools.section_close)
    word = _IDENTIFIER if arguments.assign.strip() == "=" else _WORD
    for key, value in members.items():
        if not word.fullmatch(key) or (key + arguments.assign).startswith(stops):
            return Inexpressible.KEY_CHARACTERS
        param = offered.param(name, key)
        if arguments.quoted == "all":
            problem = _quoted_problem(value, arguments, param)
        elif _is_number(value) and param is not None and param.streams:
            problem = Inexpressible.VALUE_TYPE
        else:
            problem = _literal_value(value, arguments, stops)
        if problem is not None:
            return problem
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _quoted_problem(value: Any, arguments: LiteralArguments, param: Param | None) -> Inexpressible | None:
    """Return the reason why a value is not read back from its text in quotes."""
    text = value if isinstance(value, str) else text_in_quotes(value, arguments)
    if not _quotable(text, arguments):
        return Inexpressible.MARKER_IN_VALUE
    return None if becomes(value, text, param) else Inexpressible.VALUE_TYPE


def _literal_value(value: Any, arguments: LiteralArguments, stops: tuple[str, ...]) -> Inexpressible | None:
    if isinstance(value, str):
        return None if _quotable(value, arguments) else Inexpressible.MARKER_IN_VALUE
    members: Iterable[tuple[str | None, Any]] = ()
    if isinstance(value, Mapping):
        members = value.items()
    elif isinstance(value, (list, tuple)):
        members = ((None, item) for item in value)
    for key, item in members:
        if key is not None and not _key_fits(key, arguments, stops):
            return Inexpressible.KEY_CHARACTERS
        problem = _literal_value(item, arguments, stops)
        if problem is not None:
            return problem
    return None


def _key_fits(key: str, arguments: LiteralArguments, stops: tuple[str, ...]) -> bool:
    if arguments.quoted_keys:
        return _quotable(key, arguments)
    return bool(_WORD.fullmatch(key)) and not (key + ":").startswith(stops)


def _quotable(text: str, arguments: LiteralArguments) -> bool:
    """True if text between the canonical quotes ends at the closing quote."""
    quote = arguments.quotes[0]
    if len(quote) > 1:
        return (text + quote).find(quote) == len(text)
    return arguments.escapes or quote not in text
