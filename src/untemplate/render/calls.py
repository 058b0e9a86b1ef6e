"""Checks whether one call can be written in a Format: its name, its id and its arguments.

The rules are those of :mod:`.expressible`. JSON strings cannot be ended by accident, so the checks concern names
between markers, tagged values and literals.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from ..format import (
    Channels,
    ElementArguments,
    Format,
    JsonArguments,
    JsonBody,
    LiteralArguments,
    Marker,
    NamedBody,
    TaggedArguments,
    Tools,
)
from ..format.spelling import escape, json_text, text_in_quotes
from ..jsontext.coercion import Param
from ..tools import ToolSet
from .arguments import key_text, value_text
from .elements import ElementRules, elements_problem
from .message import MessageCall
from .reasons import Inexpressible

__all__ = ["ILLEGAL", "MAX_NAME", "WS", "call_problem", "name_ends", "spellings"]

WS: Final = " \t\r\n"
ILLEGAL: Final = frozenset("".join(map(chr, range(33))) + "<>{}()[]\"'`,;=\\")
"""Characters that no tool's name has outside JSON."""
MAX_NAME: Final = 512
_MAX_KEY: Final = 1024
_MAX_LOOKAHEAD: Final = 256
"""Most white space after a close tag; with more, the tag does not close."""
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
    if not call.name:
        return Inexpressible.NAME_CHARACTERS
    if fmt.channels is not None and not _channel_name(fmt.channels, call.name):
        return Inexpressible.NAME_CHARACTERS
    if not fmt.tools:
        return None
    tools = fmt.tools[0]
    if fmt.channels is None and tools.bare and offered.known and call.name not in offered.names:
        return Inexpressible.UNKNOWN_TOOL
    body = tools.body
    if isinstance(body, JsonBody):
        return None
    if not members and offered.known and call.name not in offered.names and _is_word(body):
        return Inexpressible.UNKNOWN_TOOL
    return _name_problem(tools, body, call, offered) or _arguments_problem(fmt, tools, body, call, members, offered)


def _arguments_problem(
    fmt: Format, tools: Tools, body: NamedBody, call: MessageCall, members: Mapping[str, Any], offered: ToolSet
) -> Inexpressible | None:
    arguments = body.arguments
    if isinstance(arguments, TaggedArguments):
        return _tagged_problem(fmt, tools, body, arguments, call.name, members, offered)
    if isinstance(arguments, ElementArguments):
        around = (body.arguments_close, tools.call_close, tools.section_close, tools.call_open, tools.section_open)
        ends = (*around, body.name_open, fmt.turn.end)
        rules = ElementRules(arguments, tuple(text for marker in ends for text in spellings(marker)))
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
    parts = (channels.channel, channels.recipient, channels.constraint)
    return not any(text in name for part in parts for text in spellings(part))


def name_ends(tools: Tools, body: NamedBody) -> tuple[str, ...]:
    """Return all texts that end a name."""
    arguments = body.arguments
    if isinstance(arguments, TaggedArguments):
        opens = arguments.key_open.spellings
    elif isinstance(arguments, ElementArguments):
        opens = arguments.open.spellings
    else:
        opens = ("{",) if isinstance(arguments, JsonArguments) else (arguments.open, "(", "{")
    markers = (body.name_close, body.id_open, body.arguments_close, tools.call_close)
    return (*(text for marker in markers for text in spellings(marker)), *opens)


def _name_problem(tools: Tools, body: NamedBody, call: MessageCall, offered: ToolSet) -> Inexpressible | None:
    name = escape(call.name, body.escape)
    literals = [text for text in re.split(r"\{\w+\}", body.name) if text]
    if _illegal(name) or len(name) + len("".join(literals)) + 20 > MAX_NAME:
        return Inexpressible.NAME_CHARACTERS
    # The pattern is read with the shortest name that fits.
    if any(text in name for text in (*literals, *name_ends(tools, body))):
        return Inexpressible.NAME_CHARACTERS
    if literals and offered.known and call.name not in offered.names:
        # The parser may read an unknown name as an offered one with a broken pattern.
        return Inexpressible.UNKNOWN_TOOL
    if body.id_open is not None and call.id:
        closes = spellings(body.name_close)
        if len(call.id) > MAX_NAME or not closes or any(text in call.id for text in closes):
            return Inexpressible.ID_CHARACTERS
    return None


# -- Tagged values --------------------------------------------------------------------------------------------------


def _tagged_problem(
    fmt: Format,
    tools: Tools,
    body: NamedBody,
    arguments: TaggedArguments,
    name: str,
    members: Mapping[str, Any],
    offered: ToolSet,
) -> Inexpressible | None:
    closers = (body.arguments_close, tools.call_close, tools.section_close, fmt.turn.end)
    successors = [text for marker in (arguments.key_open, *closers) for text in spellings(marker)]
    openers = (tools.call_open, tools.section_open, arguments.value_open, arguments.type_open)
    # A call that a value quotes takes the next close.
    opener = body.name_open or tools.call_open or tools.section_open
    quoted = re.compile(
        f"{_alternation(spellings(opener))}\\s*[^\\s<>]{{1,{MAX_NAME}}}?\\s*{_alternation(name_ends(tools, body))}"
    )
    tags = (*successors, *(text for marker in openers for text in spellings(marker)))
    # The close of a key in place of the value's is read as the value's, if a value has an opener of its own.
    wrong_closes = arguments.key_close.spellings if arguments.value_open is not None else ()
    close = _alternation((*arguments.value_close.spellings, *wrong_closes))
    space = f"[{WS}]{{0,{_MAX_LOOKAHEAD}}}"
    # A close that comes twice is read as one.
    closes = re.compile(f"(?={close}{space}(?:{close}{space})*{_alternation(successors)})")
    end = f"{arguments.value_close.text}{successors[0]}"
    closes_section = re.compile(f"(?=]]>\n?{close}{space}{_alternation(successors)})")
    key_ends = (*arguments.key_close.spellings, *spellings(arguments.value_open), *spellings(arguments.type_open))
    inner_key = re.compile(f"{_alternation(arguments.key_open.spellings)}[^\\n<]*?{_alternation(key_ends)}")
    # After a close, a declared key is read even if its opener is damaged.
    damaged_key = re.compile(f"{close}{space}[^\\n]{{0,{_MAX_LOOKAHEAD}}}?{_alternation(key_ends)}")
    for key, value in members.items():
        if not _key_fits(key, key_text(key, value, arguments), arguments, tags):
            return Inexpressible.KEY_CHARACTERS
        text = value_text(value, arguments)
        if fmt.channels is not None and any(
            mark in text for m in (fmt.channels.close, fmt.channels.call_close) for mark in spellings(m)
        ):
            return Inexpressible.MARKER_IN_VALUE
        section = arguments.escape == "cdata" and text != value and isinstance(value, str)
        text = value if section else text
        whole = f"{text}]]>{end}" if section else text + end
        ends = closes_section if section else closes
        found = (ends.search(whole), inner_key.search(whole), damaged_key.search(text), quoted.search(text))
        if any(place is not None and place.start() < len(text) for place in found):
            return Inexpressible.MARKER_IN_VALUE
        if not section and not _newlines_fit(text, arguments):
            return Inexpressible.VALUE_NEWLINES
        if not _type_fits(value, text, arguments, offered, name, key):
            return Inexpressible.VALUE_TYPE
    return None


def _key_fits(key: str, written: str, arguments: TaggedArguments, tags: tuple[str, ...]) -> bool:
    """True if a key is read back whole: it is on one line, and no tag in it ends it before its close."""
    if key != key.strip(WS) or "\n" in key or len(written) > _MAX_KEY:
        return False
    whole = written + arguments.key_close.text
    ends = [whole.find(text) for text in (*arguments.key_close.spellings, *tags)]
    if any(0 <= at < len(written) for at in ends):
        return False
    inner = [text for text in re.split(r"\{\w+\}", arguments.key)[1:-1] if text]
    return not any(text in escape(key, arguments.escape_of_keys) for text in inner)


def _newlines_fit(text: str, arguments: TaggedArguments) -> bool:
    """True if trimming removes the newlines of the markup and none of the value."""
    opener = arguments.key_close if arguments.value_open is None else arguments.value_open
    before = len(opener.text) - len(opener.text.rstrip("\n"))
    close = arguments.value_close.text
    after = len(close) - len(close.lstrip("\n"))
    ahead, behind = arguments.trims
    if before < ahead and text.startswith(("\n", "\r\n")):
        return False
    # A carriage return before the newline of the markup is removed with it.
    return not behind or (not text.endswith("\r") and (after >= behind or not text.endswith("\n")))


def _type_fits(value: Any, text: str, arguments: TaggedArguments, offered: ToolSet, name: str, key: str) -> bool:
    param = offered.param(name, key)
    # A string that the schema does not allow is read by the schema.
    if arguments.writes_types and (not isinstance(value, str) or param is None or param.may_be_string):
        return True
    return _becomes(value, value if isinstance(value, str) else text, param)


def _becomes(value: Any, text: str, param: Param | None) -> bool:
    """True if the types of its schema turn the text into the value."""
    if param is None or param.streams:
        return isinstance(value, str)
    return json_text(json.loads(param.encode(text))) == json_text(value)


def _alternation(texts: tuple[str, ...] | list[str]) -> str:
    return "(?:" + "|".join(map(re.escape, sorted(texts, key=len, reverse=True))) + ")" if texts else "(?!)"


# -- Literals -------------------------------------------------------------------------------------------------------


def _literal_problem(
    tools: Tools, arguments: LiteralArguments, name: str, members: Mapping[str, Any], offered: ToolSet
) -> Inexpressible | None:
    # Where a key can begin, these end the call first.
    stops = [
        text
        for marker in (tools.call_open, tools.call_close, tools.section_open, tools.section_close)
        for text in spellings(marker)
    ]
    word = _IDENTIFIER if arguments.assign == "=" else _WORD
    for key, value in members.items():
        if not word.fullmatch(key) or (key + arguments.assign).startswith(tuple(stops)):
            return Inexpressible.KEY_CHARACTERS
        param = offered.param(name, key)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if arguments.quoted == "all":
            problem = _quoted_problem(value, arguments, param)
        elif number and param is not None and param.streams:
            problem = Inexpressible.VALUE_TYPE
        else:
            problem = _literal_value(value, arguments, stops)
        if problem is not None:
            return problem
    return None


def _quoted_problem(value: Any, arguments: LiteralArguments, param: Param | None) -> Inexpressible | None:
    """Return the reason why a value is not read back from its text in quotes."""
    text = value if isinstance(value, str) else text_in_quotes(value, arguments)
    if not _quotable(text, arguments):
        return Inexpressible.MARKER_IN_VALUE
    return None if _becomes(value, text, param) else Inexpressible.VALUE_TYPE


def _literal_value(value: Any, arguments: LiteralArguments, stops: list[str]) -> Inexpressible | None:
    if isinstance(value, str):
        return None if _quotable(value, arguments) else Inexpressible.MARKER_IN_VALUE
    if isinstance(value, Mapping):
        for key, item in value.items():
            if arguments.quoted_keys:
                fits = _quotable(key, arguments)
            else:
                fits = bool(_WORD.fullmatch(key)) and not (key + ":").startswith(tuple(stops))
            if not fits:
                return Inexpressible.KEY_CHARACTERS
            problem = _literal_value(item, arguments, stops)
            if problem is not None:
                return problem
    elif isinstance(value, (list, tuple)):
        for item in value:
            problem = _literal_value(item, arguments, stops)
            if problem is not None:
                return problem
    return None


def _quotable(text: str, arguments: LiteralArguments) -> bool:
    """True if text between the canonical quotes ends at the closing quote."""
    quote = arguments.quotes[0]
    if len(quote) > 1:
        return (text + quote).find(quote) == len(text)
    return arguments.escapes or quote not in text


def spellings(marker: Marker | None) -> tuple[str, ...]:
    """Return the spellings of a marker; none if there is no marker."""
    return () if marker is None else marker.spellings
