"""Calls with literals as arguments, after their name."""

from __future__ import annotations

import re
from typing import Final, final

from ..arguments.base import CallBeginning
from ..call_syntax import Body
from ..ledger import MARKUP
from ..lexer import Cursor, Literals
from ..names import MAX_NAME
from ..signals import AGAIN, DONE, MORE, NO_MATCH
from ..tags import KEY_OPEN
from .program import LiteralSyntax
from .reader import LiteralReader

_ARGUMENT_START: Final = re.compile(r"[ \t\r\n]*(?:\)|[^\W\d]\w*[ \t\r\n]*=(?=[^=]))")
_KNOWN_ARGUMENT: Final = re.compile(
    r"""[ \t\r\n]*(?:\)|[^\W\d][\w.\- \t]*[ \t\r\n]*=(?=[^=])|["'\d\[{(+\-.<]|(?:[Tt]rue|[Ff]alse|None|null)\b)"""
)
_KNOWN_PREFIX: Final = re.compile(r"[ \t\r\n]*(?:[^\W\d][\w.\- \t]*[ \t\r\n]*=?)?\Z")
_ARGUMENT_PREFIX: Final = re.compile(r"[ \t\r\n]*(?:[^\W\d]\w*[ \t\r\n]*=?)?\Z")
_LINE: Final = re.compile(r"[^\W\d][\w.\-]*+[ \t]*+(?::|=(?=[^=]))")
"""The beginning of a line with an argument."""
_LINE_PREFIX: Final = re.compile(r"(?:[^\W\d][\w.\-]*+[ \t]*+=?)?\Z")
_LINK: Final = re.compile(r"[ \t\r\n]*\)[ \t\r\n]*\]\(")
_LINK_PREFIX: Final = re.compile(r"[ \t\r\n]*(?:\)[ \t\r\n]*\]?)?\Z")
"""``[name()](…)`` after its first bracket, and the beginning of that."""


@final
class LiteralBody(Body):
    """Literals in brackets."""

    kind = "a name, then Python-style arguments"

    def __init__(self, syntax: LiteralSyntax) -> None:
        self.syntax: LiteralSyntax = syntax

    def begin(self, cur: Cursor, call: CallBeginning) -> int:
        syntax = self.syntax
        if syntax.spaced:
            cur.pos = cur.spaces()
        call.mark(MARKUP, cur.pos)
        if cur.pos >= len(cur.text):
            return MORE
        if syntax.on_lines:
            return self._begin_lines(cur, call)
        c = cur.text[cur.pos]
        if c != syntax.open and c not in "({":
            return NO_MATCH
        bare = call.bare
        most = cur.pos + MAX_NAME
        if syntax.escaped.match(cur.text, cur.pos + 1, most) is not None:
            return NO_MATCH
        waits = not cur.final and len(cur.text) < most
        undecided = waits and syntax.beginning.match(cur.text, cur.pos) is not None
        if bare and call.in_list:
            if _LINK.match(cur.text, cur.pos + 1, most) is not None:
                return NO_MATCH
            undecided = undecided or (waits and _LINK_PREFIX.match(cur.text, cur.pos + 1) is not None)
        if undecided:
            cur.goes_on = None if bare else syntax.beginning.match
            return MORE
        # ``[see](x)`` is a link: if the tools are not known, only ``name=`` or no arguments at all make it a call.
        # If they are, ``[f(x) for x in xs]`` is still not a call: ``x`` is a variable.
        if bare:
            known = call.tools.known
            start = _KNOWN_ARGUMENT if known else _ARGUMENT_START
            if start.match(cur.text, cur.pos + 1, most) is None:
                return call.more_if(_KNOWN_PREFIX if known else _ARGUMENT_PREFIX, cur.pos + 1)
        call.commit()
        outer = "]" if call.in_list else ""
        return call.read_with(LiteralReader(syntax, call.tools, call.name, outer, call.max_held))

    def opening(self, name_ends: Literals) -> str:
        opens = self.syntax.open if name_ends.tags.get(self.syntax.open) == KEY_OPEN else ""
        return f"(?={re.escape(opens)}){self.syntax.beginning.pattern}" if opens else ""

    def _begin_lines(self, cur: Cursor, call: CallBeginning) -> int:
        """Begin arguments on lines: the first one, or what ends a call without any."""
        answer = call.at_close(cur, self.syntax.frame.stops)
        if answer == AGAIN:
            if _LINE.match(cur.text, cur.pos, cur.pos + MAX_NAME) is None:
                return call.more_if(_LINE_PREFIX, cur.pos)
            call.commit_once()
            answer = DONE
        if answer == DONE:
            return call.read_with(LiteralReader(self.syntax, call.tools, call.name, "", call.max_held))
        return answer
