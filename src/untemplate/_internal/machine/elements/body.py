"""Calls with arguments in elements, after their name."""

from __future__ import annotations

from typing import final

from ..arguments.base import CallBeginning
from ..call_syntax import Body
from ..lexer import Cursor
from ..signals import AGAIN, DONE, NO_MATCH
from .program import ElementsSyntax
from .reader import ElementReader


@final
class ElementsBody(Body):
    """Arguments in elements that are named after them."""

    kind = "a name and arguments in elements named after them"

    def __init__(self, syntax: ElementsSyntax) -> None:
        self.syntax: ElementsSyntax = syntax

    def begin(self, cur: Cursor, call: CallBeginning) -> int:
        answer = call.at_close(cur, self.syntax.tags)
        if answer == DONE:
            return call.read_with(ElementReader(self.syntax, call.tools.node(call.name), call.max_held))
        return NO_MATCH if answer == AGAIN else answer
