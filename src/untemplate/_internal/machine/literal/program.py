"""Arguments as literals: their brackets, quotes and stops.

There is no fast table. One was tried that read ``key='value'`` at once: 20 calls took 24 to 40 % less time in one
piece, and 1 to 12 % more token by token, as models write them. There its expression hardly ever finds a whole value.
"""

from __future__ import annotations

import re
from typing import final

from ..call_syntax import NOTHING, CallSyntax
from ..lexer import NO_LITERALS, Literals


@final
class LiteralSyntax:
    """One way to write arguments as literals."""

    def __init__(self, frame: CallSyntax) -> None:
        self.frame: CallSyntax = frame
        """The syntax of the calls."""
        self.open: str = "("
        self.close: str = ")"
        self.assign: str = "="
        self.on_lines: bool = False
        """True if nothing opens and closes the arguments, and each is on a line of its own."""
        self.spaced: bool = False
        """True if white space is written between the name and the arguments."""
        self.quotes: Literals = NO_LITERALS
        self.quoted: str = "strings"
        """The values in quotes. ``all``: the text in them may be a value of any type. ``optional``: a value that is not
        a literal is a string without quotes."""
        self.escaping: tuple[str, ...] = ()
        """Quotes of strings in which a backslash escapes."""
        self.watched: dict[str, tuple[re.Pattern[str], re.Pattern[str]]] = {}
        """For a string between markers: the closing character of its place → the first character of whatever may end
        it, if no declared argument may follow, and if one may."""
        self.escaped: re.Pattern[str] = NOTHING
        """Matches arguments that were copied into a string, with escapes, up to the first escape."""
        self.beginning: re.Pattern[str] = NOTHING
        """Matches a bracket and text that may become that."""
