"""Rules → GBNF (llama.cpp), which xgrammar's EBNF reads as well.

Rules of this module:

* Free text is written as the states of its automaton; JSON by :mod:`~._values`, because the converter in the
  ``xllamacpp`` wheel writes Lark, not GBNF.
* Rule names hold letters, digits and dashes; each rule is on a line of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ._automaton import automaton
from ._rules import EMPTY, Alternatives, Chars, Json, Lit, Node, Ref, Repeat, Rules, Scan, Seq, Token
from ._values import JSON, Values

__all__ = ["write", "write_sub"]

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_CLASS_ESCAPES = {"\\": "\\\\", "]": "\\]", "[": "\\[", "^": "\\^", "-": "\\-", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def write(rules: Rules) -> str:
    """The grammar as GBNF text. Keywords that are not enforced are added to ``rules.notes``."""
    return _Writer(rules).text(rules.root)


def write_sub(node: Node, rules: Rules) -> tuple[str, bool]:
    """One node and what it refers to, as a grammar of its own in xgrammar's EBNF; whether there are tokens in it, which
    that does not know."""
    writer = _Writer(rules)
    return writer.text(node), writer.tokens


class _Writer:
    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.values = Values(JSON, rules)
        self.lines: dict[str, str] = {}
        self.names: dict[Node, str] = {}
        self.wanted: list[str] = []
        self.tokens = False

    def text(self, root: Node) -> str:
        self.lines["root"] = ""
        self.lines["root"] = self.node(root)
        done: set[str] = set()
        while self.wanted:
            name = self.wanted.pop()
            if name not in done:
                done.add(name)
                self.lines[name] = self.node(self.rules.rules[name])
        return "".join(f"{name} ::= {body}\n" for name, body in self.lines.items())

    def node(self, node: Node, inner: bool = False) -> str:
        """``inner``: the text is part of a sequence, and gets parentheses if it needs them."""
        if isinstance(node, Json):
            values = self.values.within(node.excludes)
            node = values.value(node.schema.value, self.rules.document(node.schema, node.tool))
        body = _WRITERS[type(node)](self, node)
        several = isinstance(node, Alternatives) or (isinstance(node, Seq) and len(node.items) > 1)
        return f"({body})" if inner and several else body

    def sequence(self, node: Seq) -> str:
        return " ".join(self.node(n, True) for n in node.items) or '""'

    def alternatives(self, node: Alternatives) -> str:
        return " | ".join(self.node(n) for n in node.items)

    def repeat(self, node: Repeat) -> str:
        item = f"({self.node(node.item)})" if isinstance(node.item, Repeat) else self.node(node.item, True)
        return item + _count(node)

    def reference(self, node: Ref) -> str:
        self.wanted.append(node.name)
        return node.name

    def token(self, node: Token) -> str:
        self.tokens = True
        return f"{literal(node.lead)} <[{node.id}]>" if node.lead else f"<[{node.id}]>"

    def scan(self, scan: Scan) -> str:
        known = self.names.get(scan)
        if known is not None:
            return known
        number = len(self.names)
        name = self.names[scan] = f"text-{number}"
        states, start = automaton(scan)
        tokens = [f"{self.node(stop)} {self.node(then, True)}" for stop, then in scan.stops if isinstance(stop, Token)]
        follow: dict[Node, str] = {}
        for stop, then in scan.stops:
            if not isinstance(stop, Token) and then != EMPTY:
                follow[then] = f"{name}-then-{len(follow)}"
                self.lines[follow[then]] = self.node(then)

        def label(state: int) -> str:
            return name if state == start else f"{name}-{state}"

        for i, state in enumerate(states):
            ways: list[str] = []
            taken: list[str] = list(state.dead)
            if scan.escape is not None:
                ways.append(f'"\\\\" {self.node(scan.escape, True)} {label(0)}')
                taken.append("\\")
            for target, letters in state.moves.items():
                ways.append(f"{letter_class(letters)} {label(target)}")
                taken += letters
            for letter, then in state.stops:
                ways.append(f"{literal(letter)} {follow[then]}" if then in follow else literal(letter))
                taken.append(letter)
            ways.append(f"{letter_class(taken, negated=True)} {label(0)}")
            ways += tokens
            if scan.ends:
                ways.append('""')
            self.lines[label(i)] = " | ".join(ways)
        return name


def _count(node: Repeat) -> str:
    least, most = node.least, node.most
    if most is None:
        return "*" if least == 0 else "+" if least == 1 else f"{{{least},}}"
    if (least, most) == (0, 1):
        return "?"
    return f"{{{least}}}" if least == most else f"{{{least},{most}}}"


_CONTROLS = {c: f"\\x{c:02X}" for c in (*range(32), 127)}
_TABLE = {**_CONTROLS, **{ord(c): e for c, e in _ESCAPES.items()}}


def literal(text: str) -> str:
    return f'"{text.translate(_TABLE)}"'


def _letter(c: str) -> str:
    return _CLASS_ESCAPES.get(c) or (c if c >= " " and c != "\x7f" else f"\\x{ord(c):02X}")


def letter_class(letters: list[str], *, negated: bool = False) -> str:
    if negated and not letters:
        return "[^\\x00]"
    return f"[{'^' if negated else ''}{''.join(map(_letter, sorted(set(letters))))}]"


def characters(node: Chars) -> str:
    body = "".join(_letter(a) if a == b else f"{_letter(a)}-{_letter(b)}" for a, b in node.ranges)
    return f"[{'^' if node.negated else ''}{body}]"


_WRITERS: Final[Mapping[type[Node], Callable[[_Writer, Any], str]]] = {
    Lit: lambda _, node: literal(node.text),
    Chars: lambda _, node: characters(node),
    Token: _Writer.token,
    Ref: _Writer.reference,
    Seq: _Writer.sequence,
    Alternatives: _Writer.alternatives,
    Repeat: _Writer.repeat,
    Scan: _Writer.scan,
}
"""Node → its text. JSON is written as other nodes."""
