"""Rules that the syntaxes of calls have in common: characters of names, spellings of markers, values without a type."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from ...format import ElementArguments, JsonArguments, NamedBody, TaggedArguments, Tools
from ...format._markers import spellings_of
from ...format._spelling import json_text
from ..jsontext.coercion import Param
from ..machine.names import MAX_KEY, MAX_NAME

__all__ = ["ILLEGAL", "MAX_KEY", "MAX_NAME", "WS", "becomes", "literals_of", "name_ends"]

WS: Final = " \t\r\n"
ILLEGAL: Final = frozenset("".join(map(chr, range(33))) + "<>{}()[]\"'`,;=\\")
"""Characters that no tool's name has outside JSON."""


def literals_of(pattern: str) -> list[str]:
    """Return the texts around and between the variables of a pattern such as ``functions.{name}:{index}``."""
    return [text for text in re.split(r"\{\w+\}", pattern) if text]


def name_ends(tools: Tools, body: NamedBody) -> tuple[str, ...]:
    """Return all texts that end a name."""
    arguments = body.arguments
    if isinstance(arguments, TaggedArguments):
        opens = arguments.key_open.spellings
    elif isinstance(arguments, ElementArguments):
        opens = arguments.open.spellings
    else:
        opens = ("{",) if isinstance(arguments, JsonArguments) else (arguments.open or "{", "(", "{")
    return (*spellings_of(body.name_close, body.id_open, body.arguments_close, tools.call_close), *opens)


def becomes(value: Any, text: str, param: Param | None) -> bool:
    """True if the types of its schema turn the text into the value."""
    if param is None or param.streams:
        return isinstance(value, str)
    return json_text(json.loads(param.encode(text))) == json_text(value)
