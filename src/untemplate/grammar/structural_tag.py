"""Rules → structural tag (xgrammar), as a JSON value.

Rules of this module:

* JSON is ``json_schema``, free text ``any_text``, ``tag`` or ``dispatch``: xgrammar's own words.
* What structural tags have no word for (recursion, text that may not begin in some way) is a ``grammar``.
"""

from __future__ import annotations

from typing import Any

from ..errors import GrammarError
from .gbnf import write_sub
from .lark import regex
from .limits import MAX_CHARACTERS
from .places import whose
from .rules import EMPTY, Alternatives, Chars, Json, Lit, Node, Ref, Repeat, Rules, Scan, Seq, Token, walk
from .schema import enforced

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
        if isinstance(node, Lit):
            return {"type": "const_string", "value": node.text}
        if isinstance(node, Token):
            token = {"type": "token", "token": node.id}
            lead = {"type": "const_string", "value": node.lead}
            return {"type": "sequence", "elements": [lead, token]} if node.lead else token
        if isinstance(node, Json):
            if node not in self.schemas:
                document = self.rules.document(node.schema, node.tool)
                self.schemas[node] = enforced(document, "structural_tag", self.rules.notes)
            value: dict[str, Any] = {"type": "json_schema", "json_schema": self.schemas[node]}
            if node.excludes:
                value["excludes"] = list(node.excludes)
            return value
        if isinstance(node, Scan):
            return self.scan(node)
        if isinstance(node, Ref):
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
        pattern = regex(node)
        if pattern is not None:
            return {"type": "regex", "pattern": pattern} if pattern else {"type": "const_string", "value": ""}
        if isinstance(node, Chars):
            return self.ebnf(node)
        if isinstance(node, Seq):
            return {"type": "sequence", "elements": [self.node(n) for n in node.items]}
        if isinstance(node, Alternatives):
            return {"type": "or", "elements": [self.node(n) for n in node.items]}
        assert isinstance(node, Repeat)
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
            # The words of structural tags cannot say how text may not begin.
            return self.ebnf(scan)
        literals = [(stop, then) for stop, then in scan.stops if isinstance(stop, str)]
        tokens = [(stop, then) for stop, then in scan.stops if isinstance(stop, Token)]
        ways: list[dict[str, Any]] = []
        # A dispatch cannot exclude a part of one of its rules.
        parts = [e for e in scan.excludes if any(e in stop and e != stop for stop, _ in literals)]
        if literals and scan.ends and not parts:
            rules = [[stop, self.node(then)] for stop, then in literals]
            excludes = [e for e in scan.excludes if e not in dict(literals)]
            ways.append({"type": "dispatch", "rules": rules, "loop": False, "excludes": excludes})
        else:
            for stop, then in literals:
                excludes = [e for e in scan.excludes if e != stop]
                text = {"type": "any_text", "excludes": excludes}
                tag: dict[str, Any] = {"type": "tag", "begin": "", "content": text, "end": stop}
                ways.append(self._then(tag, then))
        if scan.ends and (parts or not literals):
            ways.append({"type": "any_text", "excludes": list(scan.excludes)})
        for token, then in tokens:
            text = {"type": "any_text", "excludes": list(scan.forbidden)}
            ways.append(self._then({"type": "sequence", "elements": [text, self.node(token)]}, then))
        return ways[0] if len(ways) == 1 else {"type": "or", "elements": ways}

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
