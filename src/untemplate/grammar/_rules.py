"""Rules: what an output may be, before any dialect writes it down.

Rules of this module:

* A node is a value: frozen, comparable, without a dialect. ``build`` makes nodes from a Format, the writers (``gbnf``,
  ``lark``, ``structural_tag``) only write them.
* Free text is always a :class:`Scan`: text, what it may not hold, and what it ends at. A writer never has to guess
  where text ends.
* JSON is a node of its own (:class:`Json`): dialects with a JSON-schema engine use it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ._limits import Budget
from ._reading import SchemaDocument

__all__ = [
    "EMPTY",
    "WS",
    "Alternatives",
    "Chars",
    "Json",
    "Lit",
    "Node",
    "Ref",
    "Repeat",
    "Rules",
    "Scan",
    "Seq",
    "Token",
    "choice",
    "maybe",
    "seq",
    "star",
    "walk",
]

WS: Final = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Lit:
    """This text."""

    text: str


@dataclass(frozen=True, slots=True)
class Token:
    """One special token. ``text`` is how it is spelled, ``lead`` is text before it."""

    text: str
    id: int
    lead: str = ""


@dataclass(frozen=True, slots=True)
class Chars:
    """One character inside ``ranges`` (inclusive), or outside them if ``negated``."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Seq:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    item: Node
    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Ref:
    """A named rule of :attr:`Rules.rules`; it may refer to itself."""

    name: str


@dataclass(frozen=True, slots=True)
class Json:
    """A JSON value that ``schema`` allows."""

    schema: JsonSchema
    tool: str = ""
    """The name of its tool; empty for the request's ``response_format``."""
    excludes: tuple[str, ...] = ()
    """Literals that its strings may not hold, where the dialect can exclude text: those that close the value."""


@dataclass(frozen=True, slots=True)
class Scan:
    """Text that holds none of ``excludes``, up to the first of the ``stops``, which is consumed; what follows is the
    node next to it. Each stop is a literal or a special token. With ``ends`` the text may also simply end."""

    excludes: tuple[str, ...] = ()
    stops: tuple[tuple[str | Token, Node], ...] = ()
    ends: bool = False
    begins_not: str = ""
    """Characters that the text may not begin with, white space aside."""
    begins_not_with: tuple[str, ...] = ()
    """Literals that the text may not begin with, white space aside."""
    escape: Node | None = None
    """Text that may follow a backslash; ``None``: a backslash is like any other character."""

    @property
    def heads(self) -> tuple[str, ...]:
        """All that the text may not begin with, white space aside."""
        return (*self.begins_not, *self.begins_not_with)

    @property
    def forbidden(self) -> tuple[str, ...]:
        """``excludes``, and the text of the tokens that end the text: where tokens are text as well, free text would
        take them and go on. Nothing that holds another of them."""
        kept: list[str] = []
        texts = [stop.text for stop, _ in self.stops if isinstance(stop, Token)]
        for literal in sorted(dict.fromkeys((*self.excludes, *texts)), key=len):
            if not any(other in literal for other in kept):
                kept.append(literal)
        return tuple(kept)


Node = Lit | Token | Chars | Seq | Alternatives | Repeat | Ref | Json | Scan

EMPTY: Final = Seq(())


class JsonSchema:
    """A schema as a value: equal where its JSON is, hashable."""

    __slots__ = ("key", "value")

    def __init__(self, value: Mapping[str, Any] | bool, key: str) -> None:
        self.value: Mapping[str, Any] | bool = value
        self.key: str = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JsonSchema) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"JsonSchema({self.key})"


@dataclass(slots=True)
class Rules:
    """A whole grammar: where it begins, the named rules, and what was weakened on the way."""

    root: Node
    rules: dict[str, Node] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    budget: Budget = field(default_factory=Budget)
    _documents: dict[tuple[str, JsonSchema], SchemaDocument] = field(default_factory=dict)

    def document(self, schema: JsonSchema, tool: str) -> SchemaDocument:
        """Return the document that references in ``schema`` point into; one for equal schemas of a tool."""
        found = self._documents.get((tool, schema))
        if found is None:
            found = self._documents[tool, schema] = SchemaDocument(schema.value, tool, self.budget)
        return found


def seq(*items: Node | str | None) -> Node:
    """A sequence, flat, neighbouring literals joined. ``None`` and empty parts fall away."""
    flat: list[Node] = []
    for item in items:
        if item is None or item == "":
            continue
        node: Node = Lit(item) if isinstance(item, str) else item
        for part in node.items if isinstance(node, Seq) else (node,):
            if isinstance(part, Lit) and flat and isinstance(flat[-1], Lit):
                flat[-1] = Lit(flat[-1].text + part.text)
            else:
                flat.append(part)
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def choice(*items: Node) -> Node:
    """An alternative, flat, each way once."""
    flat: dict[Node, None] = {}
    for item in items:
        for part in item.items if isinstance(item, Alternatives) else (item,):
            flat[part] = None
    ways = tuple(flat)
    return ways[0] if len(ways) == 1 else Alternatives(ways)


def maybe(*items: Node | str | None) -> Node:
    """A sequence that may be left out."""
    node = seq(*items)
    return node if node == EMPTY else Repeat(node, 0, 1)


def star(*items: Node | str | None) -> Node:
    """A sequence, any number of times."""
    return Repeat(seq(*items))


def walk(node: Node) -> Iterator[Node]:
    """The node and all that it holds; references are not followed."""
    waiting = [node]
    while waiting:
        here = waiting.pop()
        yield here
        if isinstance(here, Seq | Alternatives):
            waiting.extend(here.items)
        elif isinstance(here, Repeat):
            waiting.append(here.item)
        elif isinstance(here, Scan):
            waiting += [part for way in here.stops for part in way if not isinstance(part, str)]
