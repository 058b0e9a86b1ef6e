"""Ends of values: the parts that all bodies with delimited values share.

* A value ends at its own close, in front of a literal that cannot be a part of it, or at a misspelled close.
* Only the text around a literal is looked at, and not far.
"""

from __future__ import annotations

import re
from typing import Final

from .. import tags
from ..call_syntax import CallSyntax, NameSyntax
from ..lexer import SPACES, WS, Cursor, Literals, shared_start
from ..names import MAX_NAME
from ..signals import MORE, NO_MATCH

MAX_LOOKAHEAD: Final = 256
"""Most characters of white space after a close, of a key, and of stray text before a key. No output seen has more;
beyond them a close is text, and a key is none."""
MAX_STRAY: Final = 64
"""Most characters of stray text between two closes. No output seen has more; beyond them it is content."""
STRAY_TEXT: Final = re.compile(r"[^\n\"'`<>]+")
"""Text that a model writes between two closes, and not a quotation of the first one."""
_MAX_OPENERS: Final = 6
"""Most literals that one opener of a call is made of: those of the section, the call and the name, each doubled."""
_SHORTEST_DAMAGED: Final = 5
"""Fewest characters of a marker that is recognised although it is damaged."""
_MOST_WRONG: Final = 8
"""Most characters by which the name of a close tag is too long. No output seen has more; beyond them it is another
tag."""
_MISSPELLED: Final = re.compile(rf"[^<>\n]{{0,{_MOST_WRONG}}}>")

# The place of a literal in its line.
QUOTED: Final = 0
"""After a quotation mark, a backtick or a comment sign."""
PLAIN: Final = 1
LINE_START: Final = 2
MOST_OF_LINE: Final = 256
"""Most characters of a line before a literal that are looked at: quotation marks before them are not seen."""
QUOTE_SIGNS: Final = "\"'`"
QUOTES: Final = re.compile(r"[\"`]|(?<!\w)'|(?<!\S)#|(?<!:)//|--|/\*|<!--")
"""Signs after which the rest of a line is quoted, or a comment. An apostrophe is not one."""

# How a value goes on at a literal.
ENDS: Final = 0
"""The value ends, and the literal is its close tag."""
ENDS_BEFORE: Final = 1
"""The value ends in front of the literal: its close tag is missing."""
ENDS_MISSPELLED: Final = 2
"""The value ends at a misspelled close tag."""
ENDS_AS_VARIANT: Final = 3
"""The value ends at its close tag, which is spelled in another way than its opener."""
TAKEN: Final = 4
"""The value goes on: the close belongs to the call that it quotes."""


def whole_opener(
    syntax: CallSyntax, name: NameSyntax, value_ends: Literals, successors: Literals, cur: Cursor, start: int
) -> int:
    """Return where the call opener at ``start`` ends, name included; NO_MATCH or MORE.

    Args:
        syntax: the syntax of the calls.
        name: that of their names.
        value_ends: the closes of values, which no name holds.
        successors: the literals that may follow a name.
    """
    text = cur.text
    pos = start
    tag = tags.SECTION_OPEN
    openers = 0
    while tag == tags.SECTION_OPEN or (tag == tags.CALL_OPEN and syntax.name_opens):
        openers += 1
        if openers > _MAX_OPENERS:
            return NO_MATCH
        if pos >= len(text):
            return NO_MATCH if cur.final else MORE
        end = syntax.starts.at(text, pos, cur.final)
        if end < 0:
            return end
        tag = syntax.starts.tags[text[pos:end]]
        pos = after_spaces(text, end)
        if pos < 0:
            return NO_MATCH
    found = name.ends.first(text, pos, pos + MAX_NAME, cur.final)
    stop = name.ends.end_before(found, text, pos, cur.final)
    word = text[pos:stop].strip(WS)
    if len(word) > MAX_NAME or "\n" in word or name.illegal.search(word) is not None:
        return NO_MATCH
    if value_ends.pattern.search(word, 0) is not None:
        # A value that holds the opener alone, and closes.
        return NO_MATCH
    if found is None:
        return NO_MATCH if cur.final else MORE
    if not word:
        return NO_MATCH
    if found.group().strip(WS):
        return found.end()
    # A name that only white space ends: a key or a close must follow.
    pos = after_spaces(text, found.end())
    if pos < 0:
        return NO_MATCH
    if pos >= len(text):
        return NO_MATCH if cur.final else MORE
    end = successors.at(text, pos, cur.final)
    return pos if end >= 0 else end


def after_spaces(text: str, pos: int) -> int:
    """Return where the white space at ``pos`` ends; NO_MATCH if there is too much of it."""
    found = SPACES.match(text, pos)
    end = pos if found is None else found.end()
    return NO_MATCH if end - pos > MAX_LOOKAHEAD else end


def begins_line(text: str, pos: int) -> bool:
    """True if only white space comes between ``pos`` and the start of its line."""
    line = text.rfind("\n", max(pos - MAX_LOOKAHEAD, 0), pos)
    return line >= 0 and not text[line:pos].strip(WS)


def misspelled_tag(cur: Cursor, start: int, name: str) -> int:
    """Return where a tag ends whose name is at ``start`` and that may be a misspelled one of this ``name``: with up to
    ``_MOST_WRONG`` characters more, or without its end. NO_MATCH or MORE."""
    text = cur.text
    stem = start + len(name)
    if not text.startswith(name, start):
        return MORE if not cur.final and name.startswith(text[start:]) else NO_MATCH
    rest = _MISSPELLED.match(text, stem)
    if rest is None and not cur.final and len(text) - stem <= _MOST_WRONG and not set("<\n").intersection(text[stem:]):
        return MORE
    return stem if rest is None else rest.end()


def is_nearly(text: str, marker: str) -> bool:
    """True if ``text`` is a marker without its beginning, in other letters (``<TOOL>``), with one character lost, added
    or replaced, or with two neighbours in the wrong order."""
    if marker.endswith(text) or marker.lower() == text.lower():
        return True
    size, other = len(text), len(marker)
    if abs(size - other) > 1:
        return False
    first = shared_start(text, marker)
    last = min(shared_start(text[::-1], marker[::-1]), min(size, other) - first)
    differ = max(size, other) - first - last
    return differ <= 1 or (differ == 2 and text[first : first + 2] == marker[first : first + 2][::-1])


def damaged_literal(literals: Literals, cur: Cursor, start: int) -> int:
    """Return where the longest literal of this set ends that begins at ``start`` with one character lost, added or
    replaced; NO_MATCH or MORE. Short literals are not looked for."""
    text = cur.text
    end = NO_MATCH
    for literal in literals.tags:
        size = len(literal)
        if size < _SHORTEST_DAMAGED:
            continue
        same = shared_start(text[start : start + size], literal)
        rest, missing = text[start + same : start + size + 1], literal[same:]
        if not cur.final and len(text) - start <= size and _may_be_damaged(rest, missing, same > 0):
            return MORE
        if rest.startswith(missing[1:]):
            end = max(end, start + size - 1)
        elif same and rest[1:].startswith(missing[1:]):
            end = max(end, start + size)
        elif same and rest[1:].startswith(missing):
            end = max(end, start + size + 1)
    return end


def _may_be_damaged(rest: str, missing: str, begun: bool) -> bool:
    """True if ``rest`` may become what is left of a literal, where ``missing`` should be; the text ends too early to
    decide. ``begun``: characters of the literal come before it."""
    if missing[1:].startswith(rest):
        return True
    return begun and (missing[1:].startswith(rest[1:]) or missing.startswith(rest[1:]))
