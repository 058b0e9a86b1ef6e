"""Rules → structural tag (xgrammar), as a JSON value.

Rules of this module:

* JSON is ``json_schema``, free text ``any_text``, ``tag`` or ``dispatch``: xgrammar's own words.
* What structural tags have no word for (recursion, text that may not begin in some way) is a ``grammar``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ..errors import GrammarError
from ._gbnf import write_sub
from ._lark import regex
from ._limits import MAX_CHARACTERS
from ._places import whose
from ._rules import EMPTY, Alternatives, Chars, Json, Lit, Node, Ref, Repeat, Rules, Scan, Seq, Token, walk
from ._schema import enforced

__all__ = ["NeedsText", "write"]


class NeedsText(Exception):
    """A part can only be written as EBNF, which has no tokens by id."""


def write(rules: Rules) -> dict[str, Any]:
    """The grammar as a structural tag. Keywords that are not enforced are added to ``rules.notes``.

    Raises:
        NeedsText: it cannot be written with special tokens by id.
    """
    try:
        tag = {"type": "structural_tag", "format": _Writer(rules).node(rules.root)}
    except RecursionError:
        raise GrammarError(f"{whose(rules.budget.tool)}: nested too deeply for a structural tag") from None
    _check_expanded(tag)
    return tag


def _check_expanded(tag: Any) -> None:
    """Check the size of the tag before it is written as text: rules are shared here, and written out there."""
    waiting = [tag]
    count = 0
    while waiting:
        here = waiting.pop()
        count += len(here) if isinstance(here, str) else 1
        if count > MAX_CHARACTERS:
            raise GrammarError(f"the grammar has more than {MAX_CHARACTERS:,} characters as a structural tag")
        if isinstance(here, dict):
            waiting.extend(here.values())
        elif isinstance(here, list):
            waiting.extend(here)


class _Writer:
    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.schemas: dict[Json, Any] = {}
        self.written: dict[str, dict[str, Any]] = {}
        self.kinds: dict[str, tuple[bool, bool, bool]] = {}
        self.open: set[str] = set()

    def node(self, node: Node) -> dict[str, Any]:
        write = _WRITERS.get(type(node))
        if write is not None:
            return write(self, node)
        pattern = regex(node)
        if pattern is not None:
            return {"type": "regex", "pattern": pattern} if pattern else {"type": "const_string", "value": ""}
        return _WRITERS_OF_PARTS[type(node)](self, node)

    def literal(self, node: Lit) -> dict[str, Any]:
        return {"type": "const_string", "value": node.text}

    def token(self, node: Token) -> dict[str, Any]:
        token = {"type": "token", "token": node.id}
        lead = {"type": "const_string", "value": node.lead}
        return {"type": "sequence", "elements": [lead, token]} if node.lead else token

    def json(self, node: Json) -> dict[str, Any]:
        if node not in self.schemas:
            document = self.rules.document(node.schema, node.tool)
            self.schemas[node] = enforced(document, "structural_tag", self.rules.notes)
        value: dict[str, Any] = {"type": "json_schema", "json_schema": self.schemas[node]}
        if node.excludes:
            value["excludes"] = list(node.excludes)
        return value

    def reference(self, node: Ref) -> dict[str, Any]:
        if node.name not in self.written:
            pure, recursive, plain = self._kind(node.name)
            if not pure and node.name in self.open:
                raise NeedsText
            self.open.add(node.name)
            if pure and (recursive or plain):
                # One grammar for all, not one for each place that leads into the recursion.
                self.written[node.name] = self.ebnf(node)
            else:
                self.written[node.name] = self.node(self.rules.rules[node.name])
            self.open.discard(node.name)
        return self.written[node.name]

    def sequence(self, node: Seq) -> dict[str, Any]:
        return {"type": "sequence", "elements": [self.node(n) for n in node.items]}

    def alternatives(self, node: Alternatives) -> dict[str, Any]:
        return {"type": "or", "elements": [self.node(n) for n in node.items]}

    def repeat(self, node: Repeat) -> dict[str, Any]:
        inner = self.node(node.item)
        if (node.least, node.most) == (0, 1):
            return {"type": "optional", "content": inner}
        if node.most is None and node.least < 2:
            return {"type": "plus" if node.least else "star", "content": inner}
        most = -1 if node.most is None else node.most
        return {"type": "repeat", "min": node.least, "max": most, "content": inner}

    def ebnf(self, node: Node) -> dict[str, Any]:
        """Return a node as a grammar of its own, for which structural tags have no element."""
        text, tokens = write_sub(node, self.rules)
        if tokens:
            raise NeedsText
        return {"type": "grammar", "grammar": text}

    def scan(self, scan: Scan) -> dict[str, Any]:
        if scan.heads:
            # Structural tags have no element for text that may not begin in some way.
            return self.ebnf(scan)
        literals = [(stop, then) for stop, then in scan.stops if isinstance(stop, str)]
        # A dispatch cannot exclude a part of one of its rules.
        dispatches = scan.ends and not any(e in stop and e != stop for e in scan.excludes for stop, _ in literals)
        if dispatches and literals:
            ways = [self._dispatch(scan, literals)]
        else:
            ways = [self._up_to(scan, stop, then) for stop, then in literals]
            if scan.ends:
                ways.append({"type": "any_text", "excludes": list(scan.excludes)})
        for token, then in scan.stops:
            if isinstance(token, Token):
                text = {"type": "any_text", "excludes": list(scan.forbidden)}
                ways.append(self._then({"type": "sequence", "elements": [text, self.node(token)]}, then))
        return ways[0] if len(ways) == 1 else {"type": "or", "elements": ways}

    def _dispatch(self, scan: Scan, literals: list[tuple[str, Node]]) -> dict[str, Any]:
        """Return text that may end at each of the literals, or simply end."""
        rules = [[stop, self.node(then)] for stop, then in literals]
        excludes = [e for e in scan.excludes if e not in dict(literals)]
        return {"type": "dispatch", "rules": rules, "loop": False, "excludes": excludes}

    def _up_to(self, scan: Scan, stop: str, then: Node) -> dict[str, Any]:
        """Return text that ends at one literal, and what follows."""
        text = {"type": "any_text", "excludes": [e for e in scan.excludes if e != stop]}
        return self._then({"type": "tag", "begin": "", "content": text, "end": stop}, then)

    def _then(self, first: dict[str, Any], then: Node) -> dict[str, Any]:
        return first if then == EMPTY else {"type": "sequence", "elements": [first, self.node(then)]}

    def _kind(self, name: str) -> tuple[bool, bool, bool]:
        """Of a rule: whether it needs nothing but EBNF; whether a rule in it leads back to itself; whether it refers to
        rules at all and holds no free text."""
        known = self.kinds.get(name)
        if known is not None:
            return known
        pure, recursive, text = True, False, False
        budget = self.rules.budget
        seen: set[str] = set()
        on_path: set[str] = set()
        waiting = [(name, False)]
        while waiting:
            here, left = waiting.pop()
            if left:
                on_path.discard(here)
                continue
            if here in on_path:
                recursive = True
            if here in seen:
                continue
            seen.add(here)
            on_path.add(here)
            waiting.append((here, True))
            for node in walk(self.rules.rules[here]):
                budget.step(1, budget.tool, "", "properties")
                if isinstance(node, Json | Token):
                    pure = False
                elif isinstance(node, Scan):
                    text = True
                elif isinstance(node, Ref):
                    waiting.append((node.name, False))
        self.kinds[name] = (pure, recursive, len(seen) > 1 and not text)
        return self.kinds[name]


_WRITERS: Final[Mapping[type[Node], Callable[[_Writer, Any], dict[str, Any]]]] = {
    Lit: _Writer.literal,
    Token: _Writer.token,
    Json: _Writer.json,
    Scan: _Writer.scan,
    Ref: _Writer.reference,
}
_WRITERS_OF_PARTS: Final[Mapping[type[Node], Callable[[_Writer, Any], dict[str, Any]]]] = {
    Chars: _Writer.ebnf,
    Seq: _Writer.sequence,
    Alternatives: _Writer.alternatives,
    Repeat: _Writer.repeat,
}
"""For nodes that no regular expression can write."""
