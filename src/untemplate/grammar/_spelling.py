"""How the text of markers is written: as literals, or as special tokens by id."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from ._rules import WS, Node, Token, maybe, seq

__all__ = ["LETTERS", "VARIABLE", "Spelling", "spaces"]

LETTERS: Final = (("0", "9"), ("A", "Z"), ("a", "z"))
VARIABLE: Final = re.compile(r"\{(\w+)\}")
"""A variable in the pattern of a name or a key."""


def spaces(text: str) -> Node:
    """Return the rules for white space of a marker: as written, or left out."""
    return maybe(text)


@dataclass(slots=True)
class Spelling:
    """How text is written: literals, and special tokens by id where the vocabulary is known."""

    tokens: Mapping[str, int]
    spelled: bool = False
    """True to write the special tokens as text, although their ids are known."""
    _pattern: re.Pattern[str] = field(init=False)
    _nodes: dict[str, Node] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        longest = () if self.spelled else sorted(self.tokens, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest)) or "(?!)")

    def pieces(self, text: str) -> list[str | Token]:
        """Literals and tokens in their order."""
        result: list[str | Token] = []
        at = 0
        for found in self._pattern.finditer(text):
            if found.start() > at:
                result.append(text[at : found.start()])
            result.append(Token(found.group(), self.tokens[found.group()]))
            at = found.end()
        if at < len(text):
            result.append(text[at:])
        return result

    def node(self, text: str) -> Node:
        known = self._nodes.get(text)
        if known is None:
            known = self._nodes[text] = seq(*self.pieces(text))
        return known

    def stop(self, marker_text: str, then: Node | None = None, *, keep_lead: bool = False) -> tuple[str | Token, Node]:
        """A marker that ends free text: what is looked for, and what follows it. White space before the marker is the
        text's, unless it must be there (``keep_lead``)."""
        core = marker_text.strip(WS) or marker_text
        lead = marker_text[: marker_text.index(core)]
        tail = marker_text[marker_text.index(core) + len(core) :]
        lead = lead if keep_lead else ""
        first, *rest = self.pieces(core)
        if isinstance(first, Token):
            first = replace(first, lead=lead)
        elif rest and isinstance(token := rest[0], Token):
            first, rest = replace(token, lead=lead + first), rest[1:]
        else:
            first = lead + first
        return first, seq(*rest, tail, then)
