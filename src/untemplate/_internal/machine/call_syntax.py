"""How calls are written around their arguments: the frame that all kinds of bodies share.

* A CallSyntax is one way to write calls. Literals are grouped by the place where they are searched.
* Its ``body`` is one way to write arguments. Each kind of body has a folder: ``json``, ``tagged``, ``elements`` and
  ``literal``, with its program (``program.py``), the compilation of a Format to it (``compiler.py``), its reader
  (``reader.py``) and, where that gains something, its fast table (``fast.py``).
"""

from __future__ import annotations

import re
from typing import Final, final

from .arguments.base import ArgumentReader, CallBeginning
from .lexer import NO_LITERALS, SPACES, SPACES_GO_ON, Cursor, GoesOn, Literals
from .signals import MORE, NO_MATCH
from .tags import CALL_CLOSE

# Where a call syntax is entered: what the literal that opens the calls was.
ENTRY_SECTION: Final = 0
"""The opener of a section: calls follow."""
ENTRY_CALL: Final = 1
"""The opener of a call: its body follows."""
ENTRY_NAME: Final = 2
"""The opener of a name: the name follows."""
ENTRY_BARE: Final = 3
"""No opener: the call, or the list of calls, begins at the literal."""

# What calls have begun with.
NO_MARKER: Final = 0
A_WORD: Final = 1
"""An opener that prose may hold, too."""
A_MARKER: Final = 2
"""One that prose does not hold."""

# Whether a list around calls, or the opener of a call, is written.
UNWRITTEN: Final = 0
OPTIONAL: Final = 1
WRITTEN: Final = 2

_MOST_SPACES: Final = 512
"""Most characters of white space between two markers before a call. No output seen has more; beyond them it is text."""
NAME_START: Final = re.compile(r"[^\x00-\x20<>{}()\[\]\"'`,;=]")
SHORT_WORD: Final = r"\w{1,64}+"
"""Pattern of a name or a key that the fast tables read at once. Longer ones are read step by step, with the same
result."""
NOTHING: Final = re.compile("(?!)")
"""Matches nowhere."""


@final
class Pattern:
    """A pattern such as ``functions.{name}:{index}``, which splits text into variables."""

    def __init__(self, pattern: str) -> None:
        pieces = re.split(r"\{(\w+)\}", pattern)
        self.pattern: str = pattern
        self.variables: list[str] = pieces[1::2]
        self.literals: list[str] = pieces[0::2]
        self.legal: frozenset[str] = frozenset("".join(self.literals))
        """Characters of the pattern outside its variables."""
        # An index is a number: names may hold what comes before it.
        variables = [f"(?P<{name}>{'[0-9]*' if name == 'index' else '.*?'})" for name in self.variables]
        body = "".join(re.escape(literal) + part for literal, part in zip(self.literals, [*variables, ""], strict=True))
        self.expression: re.Pattern[str] = re.compile(body, re.DOTALL)

    @property
    def plain(self) -> bool:
        """True if all of the text is the one variable."""
        return len(self.variables) == 1 and not any(self.literals)

    def fits(self, text: str) -> bool:
        return self.plain or self.expression.fullmatch(text) is not None

    def place(self, text: str, variable: str) -> int:
        """Return where a variable begins in ``text``; 0 if the text does not fit the pattern."""
        found = None if self.plain else self.expression.fullmatch(text)
        return 0 if found is None else found.start(variable)

    def split(self, text: str) -> dict[str, str]:
        """Return the variables in ``text``. If it does not fit the pattern, all of it is the first variable, or the
        part before the first quote if the pattern has attributes."""
        if self.plain:
            return {self.variables[0]: text}
        found = self.expression.fullmatch(text)
        if found is not None:
            return {k: v for k, v in found.groupdict().items() if v is not None}
        first = self.literals[0]
        if first and text.startswith(first):
            text = text[len(first) :]
        if '"' in self.legal:
            text = text.partition('"')[0]
        return {self.variables[0]: text}


class Body:
    """One way to write the arguments of a call, or the whole call. The kinds of bodies are its subclasses."""

    kind: str = ""
    """The kind of body, in words."""

    def begin(self, cur: Cursor, call: CallBeginning) -> int:
        """Decide by the text after a complete name if this is a call. Return AGAIN after a reader was set, DONE if the
        arguments have ended, NO_MATCH if this is not a call, or MORE."""
        return NO_MATCH

    def begin_object(self, cur: Cursor, call: CallBeginning) -> int:
        """The same at the first character of an object that holds the name as well."""
        return NO_MATCH

    def opening(self, name_ends: Literals) -> str:
        """Return the pattern of the text after a name, from what ends it on, that does not decide how the arguments
        begin; empty if the next character decides."""
        return ""

    def at_key(self, call: CallBeginning) -> ArgumentReader | None:
        """Return a reader that begins inside the opener of a key; None if there are no keys with openers."""
        return None


@final
class NameSyntax:
    """How the name of a call is written before its arguments."""

    def __init__(self, pattern: str) -> None:
        self.pattern: Pattern = Pattern(pattern)
        self.ends: Literals = NO_LITERALS
        self.damaged_ends: tuple[int, ...] = ()
        """Kinds of literals that end a name whose close is missing."""
        self.in_tag: bool = False
        """True if the name has a visible opener or close, so it cannot be a word of prose between the markers."""
        self.is_id: bool = False
        """True if the name in its pattern is the id of the call."""
        self.escape: str = "none"
        """How its characters are escaped, as in the Format: ``xml`` or ``none``."""
        self.illegal: re.Pattern[str] = NOTHING
        """Matches what no name holds."""
        self.simple: re.Pattern[str] = NOTHING
        """Matches the name of a tool (``name``), of letters, digits and underscores, in its pattern, and what ends it
        (``end``)."""
        self.open: re.Pattern[str] = NOTHING
        """Matches a short text in which no name ends or breaks."""
        self.opening: re.Pattern[str] = NOTHING
        """Matches that, and a name with its close, as the renderer writes them, and the beginning of an argument."""
        self.id_ends: Literals = NO_LITERALS


@final
class CallSyntax:
    """One way to write calls."""

    def __init__(self, path: str, body: Body) -> None:
        self.path: str = path
        """Its place in the Format, such as ``tools[0]``."""
        self.body: Body = body
        self.name: NameSyntax | None = None
        """How the name is written before the body; None: the body is an object that holds it."""
        self.bare: bool = False
        """True if calls may begin where content begins, without a marker."""
        self.lists: int = UNWRITTEN
        """UNWRITTEN, OPTIONAL or WRITTEN: if calls are in a list."""
        self.opens: int = UNWRITTEN
        """The same of the opener of a call."""
        self.separators: tuple[str, ...] = ()
        """Between calls that follow one another outside a list or section; empty if they do not."""
        self.between: Literals = NO_LITERALS
        """Before, between and after calls of a section or list."""
        self.section_end: Literals = NO_LITERALS
        """The closes of a section."""
        self.after: Literals = NO_LITERALS
        """After the arguments: what closes the call."""
        self.innermost: int = 0
        """The first of the closes around the arguments (``tags.ARGUMENTS_CLOSE`` or ``tags.CALL_CLOSE``)."""
        self.plain_close: re.Pattern[str] = NOTHING
        """Matches white space and what closes the arguments and the call (1), as the renderer writes it."""
        self.before_body: Literals = NO_LITERALS
        """After the call's opener: the name's opener."""
        self.after_section: list[list[Literals]] = []
        """Text that may follow the section's opener and white space: sequences of literal sets. An empty set means the
        first character of a name."""
        self.after_call: list[list[Literals]] = []
        """The same after the call's opener."""
        self.bare_start: list[list[Literals]] = []
        """The same for calls with no opener."""
        self.opening: GoesOn = SPACES_GO_ON
        """The test for text after the call's opener that does not decide how its arguments begin."""
        self.starts: Literals = NO_LITERALS
        """The literals with which a call begins, in order: of the section, of the call, of the name."""
        self.message_opens: Literals = NO_LITERALS
        """After the message that holds the call: what begins another."""
        self.stops: Literals = NO_LITERALS
        """Literals at which reading resumes after text that breaks the call."""
        self.variants: frozenset[str] = frozenset()
        """Markers and keys that are accepted, but that the renderer does not write."""

    @property
    def section_closes(self) -> bool:
        """True if calls are in a section that has a close."""
        return bool(self.section_end.tags)

    @property
    def closes(self) -> bool:
        """True if a call has a close."""
        return CALL_CLOSE in self.after.tags.values()

    @property
    def name_opens(self) -> bool:
        """True if the name has an opener."""
        return bool(self.before_body.tags)


def begins_one(cur: Cursor, sequences: list[list[Literals]]) -> int:
    """Return 0 if the text at the cursor begins with one of the sequences, NO_MATCH or MORE."""
    answers = {_begins(cur, sequence) for sequence in sequences}
    return 0 if 0 in answers else MORE if MORE in answers else NO_MATCH


def _begins(cur: Cursor, sequence: list[Literals]) -> int:
    """Return 0 if the text at the cursor begins with these literals, in order, NO_MATCH or MORE."""
    text = cur.text
    end = cur.pos
    for literals in sequence:
        spaces = SPACES.match(text, end)
        pos = end if spaces is None else spaces.end()
        if pos - end > _MOST_SPACES:
            return NO_MATCH
        if pos >= len(text):
            return MORE
        if not literals.tags:
            return 0 if NAME_START.match(text, pos) is not None else NO_MATCH
        end = literals.at(text, pos, cur.final)
        if end < 0:
            return end
    return 0
