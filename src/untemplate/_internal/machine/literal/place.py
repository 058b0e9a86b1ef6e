"""The place in the arguments of one call, which the readers of its structure, its strings and its words share."""

from __future__ import annotations

import re
from typing import Final, final

from ....tools import ToolSet
from ...jsontext.coercion import Param
from ...jsontext.lexical import json_escape
from ..arguments.base import ArgumentWriter
from ..lexer import Literals
from .program import LiteralSyntax

# How arguments get their keys.
KEYED: Final = 0
"""Each argument has a key."""
BY_PLACE: Final = 1
"""An argument may lack a key, and none so far has had one."""
NAMED: Final = 2
"""An argument may lack a key, and an earlier one has had one."""

LINE_END: Final = re.compile(r"\n")
UNDECIDED: Final = ""
"""The JSON closer of a brace that opens an object or a set: its first item decides."""


@final
class LiteralPlace:
    """What is open, the keys so far, and what to put before the next value."""

    # Defaults in the class cost nothing per call.
    style: int = KEYED
    """KEYED, BY_PLACE or NAMED."""
    before: str = "{"
    """What to put before the next value: a brace before the first one, a comma, or nothing after a key."""
    _keys: int = 0
    _key: str = ""

    def __init__(self, syntax: LiteralSyntax, tools: ToolSet, name: str, outer: str, max_held: int) -> None:
        self.syntax: LiteralSyntax = syntax
        self.stops: Literals = syntax.frame.stops
        """Literals that end the call."""
        self.outer: str = outer
        """The closing character of the list around the call; empty without one."""
        self.max_held: int = max_held
        self.closers: list[str] = []
        """The closing characters of what is open, outermost first, without the list around the call."""
        self.json: list[str] = []
        """The JSON closer of each: ``}`` if its items have keys."""
        self.seen: set[str] = set()
        """Keys of the arguments so far."""
        self._tools: ToolSet = tools
        self._name: str = name

    def on_line(self) -> bool:
        """True in or after an argument that is on a line of its own, and not inside its value."""
        return self.syntax.on_lines and len(self.closers) == 1

    def begin_value(self, out: ArgumentWriter) -> None:
        """Put what comes before a value or a key."""
        if self.before:
            out.put(self.before)
            self.before = ""

    def begin_member(self, key: str, out: ArgumentWriter) -> None:
        """Put ``{"key": `` or ``, "key": ``, before the value of this key."""
        self.begin_value(out)
        if len(self.closers) == 1:
            self._key = key
            self._keys += 1
            self.seen.add(key)
        out.put(f'"{json_escape(key)}": ')

    def next_name(self) -> str:
        """Return a name for a value without a key: the schema's next parameter, or else the value's number."""
        name = self._tools.positional(self._name, self._keys)
        return name if name is not None else str(self._keys)

    def takes_values(self) -> bool:
        """True if a value without a key may follow."""
        return self.style != KEYED and len(self.closers) == 1

    def param(self) -> Param | None:
        """Return the declared parameter whose value is being read; None inside of one."""
        return self._tools.param(self._name, self._key) if len(self.closers) == 1 else None

    def wants_string(self) -> bool:
        """True if the schema allows only a string here."""
        param = self.param()
        return param is not None and param.streams

    def declares(self, key: str) -> bool:
        """True if the tool declares an argument of this name, and it has not come."""
        tool = self._tools.get(self._name)
        return tool is not None and key in tool.properties() and key not in self.seen

    def may_follow(self, key: str) -> bool:
        """True if an argument of this name may follow: it is declared, or nothing is known of the tool."""
        return self.declares(key) if self._tools.get(self._name) is not None else key not in self.seen

    def awaits_key(self) -> bool:
        """True if a declared argument that has not come may follow."""
        tool = self._tools.get(self._name) if len(self.closers) == 1 else None
        return tool is not None and not tool.properties().keys() <= self.seen
