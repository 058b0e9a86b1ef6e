"""Arguments in elements: their literals.

There is no fast table: elements nest, which no expression matches, and one family of models writes them.
"""

from __future__ import annotations

from typing import final

from ..call_syntax import CallSyntax, NameSyntax
from ..lexer import NO_LITERALS, Literals


@final
class ElementsSyntax:
    """One way to write arguments in elements."""

    def __init__(self, frame: CallSyntax, name: NameSyntax) -> None:
        self.frame: CallSyntax = frame
        """The syntax of the calls."""
        self.name: NameSyntax = name
        self.tags: Literals = NO_LITERALS
        """Literals that begin and end elements, and those that end the arguments."""
        self.closes: tuple[str, ...] = ()
        """The spellings before the name of an element that ends."""
        self.close_of: dict[str, str] = {}
        """For each spelling before the name of an element, the same spelling before the name of one that ends."""
        self.tag_end: str = ">"
        self.tag_ends: Literals = NO_LITERALS
        self.item: str = "item"
        """The name of the elements of an array."""
