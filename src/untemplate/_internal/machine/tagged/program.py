"""Arguments in tags: their literals, grouped by the place where they are searched."""

from __future__ import annotations

import re
from typing import final

from .. import tags
from ..call_syntax import NOTHING, CallSyntax, NameSyntax, Pattern
from ..lexer import NO_LITERALS, GoesOn, Literals


@final
class FastTags:
    """The fast table: expressions that match what is written as the renderer writes it (``fast.py``)."""

    def __init__(self) -> None:
        self.key: re.Pattern[str] = NOTHING
        """Matches white space, a key's opener (opener), and what ``name`` matches if that is whole."""
        self.name: re.Pattern[str] = NOTHING
        """Matches a key (key), its attributes (string, type), all markers up to the value (before_value), and the
        newlines before it."""
        self.ends: dict[int, re.Pattern[str]] = {}
        """For each kind of close that ends the calls: matches a value's close (close) and what follows it. This is a
        key as above, the closes around the value (chain), or the end of the text, which may cut one of these (rest).
        The group ``markers`` ends after the key's opener, or after the others."""
        self.key_goes_on: GoesOn | None = None
        """The test for text that does not complete a key."""


@final
class TaggedSyntax:
    """One way to write arguments in tags."""

    def __init__(self, frame: CallSyntax, name: NameSyntax, key: str) -> None:
        self.frame: CallSyntax = frame
        """The syntax of the calls."""
        self.name: NameSyntax = name
        self.key: Pattern = Pattern(key)
        self.tags: Literals = NO_LITERALS
        """Between arguments."""
        self.key_ends: Literals = NO_LITERALS
        self.value_opens: Literals = NO_LITERALS
        self.doubled_opens: Literals = NO_LITERALS
        """The literal before a value, which a value does not begin with."""
        self.unopened: Literals = NO_LITERALS
        """Literals after text in the place of a value's opener: the opener, a tag, or the value's close."""
        self.value_ends: Literals = NO_LITERALS
        self.value_stops: Literals = NO_LITERALS
        """Literals in a value at which it may end, or at which a quoted call begins."""
        self.value_successors: Literals = NO_LITERALS
        """After a value's close: what may follow it, and a second close. Openers are for `Chains.at_call`."""
        self.separators: Literals = NO_LITERALS
        """Between two calls of a section or list."""
        self.close_head: str = ""
        """The text before the name of the argument in a close that is named after it; empty: there is no such close."""
        self.type_ends: Literals = NO_LITERALS
        """After the type of a value: its close, and what may follow if that is missing. Empty: values have no type."""
        self.trim: int = 0
        self.trim_after: int = 0
        self.holds_after: int = 0
        """Most newlines at the end of a value that are held back. If the close is missing, they are not the value's."""
        self.escape: str = "none"
        """How values are escaped, as in the Format."""
        self.escape_of_keys: str = "none"
        self.cdata: TaggedSyntax | None = None
        """The same syntax, if the value is inside ``<![CDATA[`` and ``]]>``; ``None``: values are never inside it."""
        self.fast: FastTags = FastTags()
        """Expressions for text that the renderer wrote."""

    @property
    def has_value_open(self) -> bool:
        """True if values have an opener of their own."""
        return tags.VALUE_OPEN in self.value_opens.tags.values()
