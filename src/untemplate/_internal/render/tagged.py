"""Checks whether the arguments of a call can be written in tags and are read back as they were.

The rules are those of :mod:`.expressible`: in doubt the answer is no.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from ...format import Format, NamedBody, TaggedArguments
from ...format._markers import spellings_of
from ...format._spelling import escape
from ...tools import ToolSet
from ..jsontext.coercion import Param
from .arguments import key_text, value_text
from .reasons import Inexpressible
from .shared import MAX_KEY, MAX_NAME, WS, becomes, name_ends

__all__ = ["tagged_problem"]

_MAX_LOOKAHEAD: Final = 256
"""Most white space after a close tag; with more, the tag does not close."""


@dataclass(frozen=True, slots=True)
class _Rules:
    """The literals and expressions at which keys and values end in one Format."""

    arguments: TaggedArguments
    ends_of_keys: tuple[str, ...]
    closes_of_messages: tuple[str, ...]
    """Spellings that end a message, and the value in it."""
    end: str
    """The close of a value, and a text that may follow it."""
    closes: re.Pattern[str]
    """The close of a value, before a text that may follow it."""
    closes_section: re.Pattern[str]
    """The same for a CDATA section."""
    opens_key: re.Pattern[str]
    damaged_key: re.Pattern[str]
    """A key with a damaged opener, which is read after a close."""
    quoted_call: re.Pattern[str]
    """The beginning of a call, which takes the next close."""

    def ends_within(self, text: str, in_section: bool) -> bool:
        """True if a value ends before the end of ``text``, or does not end there."""
        whole = f"{text}]]>{self.end}" if in_section else text + self.end
        ends = self.closes_section if in_section else self.closes
        within = (self.damaged_key.search(text), self.quoted_call.search(text))
        found = (ends.search(whole), self.opens_key.search(whole), *within)
        return any(place is not None and place.start() < len(text) for place in found)


@lru_cache(64)
def _rules(fmt: Format) -> _Rules:
    tools = fmt.tools[0]
    body = tools.body
    assert isinstance(body, NamedBody)
    arguments = body.arguments
    assert isinstance(arguments, TaggedArguments)
    successors = spellings_of(
        arguments.key_open, body.arguments_close, tools.call_close, tools.section_close, fmt.turn.end
    )
    opener = body.name_open or tools.call_open or tools.section_open
    # The close of a key in place of the value's is read as the value's, if a value has an opener of its own.
    wrong_closes = arguments.key_close.spellings if arguments.value_open is not None else ()
    close = _alternation((*arguments.value_close.spellings, *wrong_closes))
    space = f"[{WS}]{{0,{_MAX_LOOKAHEAD}}}"
    follows = _alternation(successors)
    key_ends = _alternation(spellings_of(arguments.key_close, arguments.value_open, arguments.type_open))
    channels = fmt.channels
    return _Rules(
        arguments=arguments,
        ends_of_keys=(
            *arguments.key_close.spellings,
            *successors,
            *spellings_of(tools.call_open, tools.section_open, arguments.value_open, arguments.type_open),
        ),
        closes_of_messages=() if channels is None else spellings_of(channels.close, channels.call_close),
        end=f"{arguments.value_close.text}{successors[0]}",
        # A close that comes twice is read as one.
        closes=re.compile(f"(?={close}{space}(?:{close}{space})*{follows})"),
        closes_section=re.compile(f"(?=]]>\n?{close}{space}{follows})"),
        opens_key=re.compile(f"{_alternation(arguments.key_open.spellings)}[^\\n<]*?{key_ends}"),
        damaged_key=re.compile(f"{close}{space}[^\\n]{{0,{_MAX_LOOKAHEAD}}}?{key_ends}"),
        quoted_call=re.compile(
            f"{_alternation(spellings_of(opener))}\\s*[^\\s<>]{{1,{MAX_NAME}}}?\\s*"
            f"{_alternation(name_ends(tools, body))}"
        ),
    )


def _alternation(texts: Iterable[str]) -> str:
    found = sorted(texts, key=len, reverse=True)
    return "(?:" + "|".join(map(re.escape, found)) + ")" if found else "(?!)"


def tagged_problem(fmt: Format, name: str, members: Mapping[str, Any], offered: ToolSet) -> Inexpressible | None:
    """Return the reason why arguments cannot be written; ``None`` if they can. ``name``: of the tool."""
    rules = _rules(fmt)
    problems = (_problem(rules, key, value, offered.param(name, key)) for key, value in members.items())
    return next((problem for problem in problems if problem is not None), None)


def _problem(rules: _Rules, key: str, value: Any, param: Param | None) -> Inexpressible | None:
    arguments = rules.arguments
    if not _key_fits(rules, key, key_text(key, value, arguments)):
        return Inexpressible.KEY_CHARACTERS
    text = value_text(value, arguments)
    if any(mark in text for mark in rules.closes_of_messages):
        return Inexpressible.MARKER_IN_VALUE
    section = arguments.escape == "cdata" and text != value and isinstance(value, str)
    text = value if section else text
    if rules.ends_within(text, section):
        return Inexpressible.MARKER_IN_VALUE
    if not section and not _newlines_fit(text, arguments):
        return Inexpressible.VALUE_NEWLINES
    return None if _type_fits(value, text, arguments, param) else Inexpressible.VALUE_TYPE


def _key_fits(rules: _Rules, key: str, written: str) -> bool:
    """True if a key is read back whole: it is on one line, and no tag in it ends it before its close."""
    arguments = rules.arguments
    if key != key.strip(WS) or "\n" in key or len(written) > MAX_KEY:
        return False
    whole = written + arguments.key_close.text
    if any(0 <= whole.find(text) < len(written) for text in rules.ends_of_keys):
        return False
    inner = [text for text in re.split(r"\{\w+\}", arguments.key)[1:-1] if text]
    return not any(text in escape(key, arguments.escape_of_keys) for text in inner)


def _newlines_fit(text: str, arguments: TaggedArguments) -> bool:
    """True if trimming removes the newlines of the markup and none of the value."""
    before, after = arguments.newlines
    ahead, behind = arguments.trims
    if before < ahead and text.startswith(("\n", "\r\n")):
        return False
    # A carriage return before the newline of the markup is removed with it.
    return not behind or (not text.endswith("\r") and (after >= behind or not text.endswith("\n")))


def _type_fits(value: Any, text: str, arguments: TaggedArguments, param: Param | None) -> bool:
    # A string that the schema does not allow is read by the schema.
    if arguments.writes_types and (not isinstance(value, str) or param is None or param.may_be_string):
        return True
    return becomes(value, value if isinstance(value, str) else text, param)
