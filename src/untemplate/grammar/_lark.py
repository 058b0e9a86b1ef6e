"""Rules → Lark, as llguidance reads it.

Rules of this module:

* JSON is ``%json``: llguidance's own schema engine.
* llguidance reads text with a lexer, and a lexeme takes all it can: free text that ends at a literal is a lazy lexeme
  with that literal inside, free text that just ends is a greedy one.
* Whatever is regular (literals, characters, repetitions) becomes one terminal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from ._rules import EMPTY, Alternatives, Chars, Json, Lit, Node, Ref, Repeat, Rules, Scan, Seq, Token
from ._schema import enforced, holds_text
from ._values import JSON, Values

__all__ = ["write"]

_ANY = "/(?s:.*)/"


def write(rules: Rules) -> str:
    """The grammar as Lark text. Keywords that are not enforced are added to ``rules.notes``."""
    return _Writer(rules).text()


class _Writer:
    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.values = Values(JSON, rules)
        self.lines: dict[str, str] = {}
        self.shared: dict[Node | str, str] = {}
        self.wanted: list[str] = []

    def text(self) -> str:
        self.lines["start"] = self.node(self.rules.root)
        done: set[str] = set()
        while self.wanted:
            name = self.wanted.pop()
            if name not in done:
                done.add(name)
                self.lines[_name(name)] = self.node(self.rules.rules[name])
        return "%llguidance {}\n" + "".join(f"{name}: {body}\n" for name, body in self.lines.items())

    def node(self, node: Node, inner: bool = False) -> str:
        write = _WRITERS.get(type(node))
        if write is not None:
            return write(self, node)
        pattern = regex(node)
        if pattern is not None:
            return self.terminal(pattern)
        if isinstance(node, Repeat):
            return f"({self.node(node.item)}){_count(node)}"
        if isinstance(node, Seq):
            parts = [self.node(n, True) for n in _joined(node)]
            return f"({' '.join(parts)})" if inner and len(parts) > 1 else " ".join(parts)
        assert isinstance(node, Alternatives)
        body = " | ".join(self.node(n) for n in node.items)
        return f"({body})" if inner else body

    def reference(self, node: Ref) -> str:
        self.wanted.append(node.name)
        return _name(node.name)

    def terminal(self, pattern: str) -> str:
        if pattern == "":
            return '""'
        name = self.shared.get(pattern)
        if name is None:
            name = self.shared[pattern] = f"T{len(self.shared)}"
            self.lines[name] = _slashed(pattern)
        return name

    def json(self, node: Json) -> str:
        name = self.shared.get(node)
        spelled = any(closing in node.schema.key for closing in node.excludes)
        if name is None and node.excludes and (spelled or holds_text(node.schema.value)):
            # %json has no way to exclude text from strings.
            values = self.values.within(node.excludes)
            name = self.shared[node] = f"tagged_{len(self.shared)}"
            self.lines[name] = self.node(values.value(node.schema.value, self.rules.document(node.schema, node.tool)))
        elif name is None:
            name = self.shared[node] = f"json_{len(self.shared)}"
            schema = enforced(self.rules.document(node.schema, node.tool), "lark", self.rules.notes)
            self.lines[name] = "%json " + json.dumps(schema, ensure_ascii=False)
        return name

    def scan(self, scan: Scan) -> str:
        known = self.shared.get(scan)
        if known is not None:
            return known
        name = self.shared[scan] = f"text_{len(self.shared)}"
        ways: list[str] = []
        for i, (stop, then) in enumerate(scan.stops):
            follows = "" if then == EMPTY else " " + self.node(then, True)
            if isinstance(stop, Token):
                ways.append(f"{self.plain(scan, stop.lead)} <[{stop.id}]>{follows}")
                continue
            if scan.escape is not None:
                ways.append(self.escaped(scan, stop) + follows)
                continue
            # The other stops cannot occur before the first stop either.
            others = [s for s, _ in scan.stops if isinstance(s, str) and s != stop]
            head = f"{name}_to_{i}"
            body = _without((*scan.excludes, *others), scan.heads, stop)
            self.lines[f"{name.upper()}_TO_{i}"] = f"{body} {literal(stop)}"
            self.lines[f"{head}[lazy]"] = f"{name.upper()}_TO_{i}"
            ways.append(head + follows)
        if scan.ends:
            ways.append(self.plain(scan))
        self.lines[name] = " | ".join(ways)
        return name

    def plain(self, scan: Scan, lead: str = "") -> str:
        """Return the terminal for text without a stop, followed by ``lead``."""
        stops = [s for s, _ in scan.stops if isinstance(s, str)]
        body = _without(tuple(dict.fromkeys((*scan.excludes, *stops))), scan.heads, "")
        body += f" {literal(lead)}" if lead else ""
        name = self.shared.get(body)
        if name is None:
            name = self.shared[body] = f"TEXT_{len(self.shared)}"
            self.lines[name] = body
        return name

    def escaped(self, scan: Scan, stop: str) -> str:
        """Text with escapes, up to a stop of one character."""
        assert scan.escape is not None
        single = [e for e in scan.excludes if len(e) == 1]
        whole = [e for e in scan.excludes if len(e) > 1]
        free = f"[^{_in_class(''.join(dict.fromkeys((stop, chr(92), *single))))}]"
        body = "/" + f"({free}|\\\\({regex(scan.escape)}))*".replace("/", "\\/") + "/"
        if whole:
            body = f"({body} & ~{_slashed(f'(?s:.*)({chr(124).join(map(_escaped, whole))})(?s:.*)')})"
        body = f"{body} {literal(stop)}"
        name = self.shared.get(body)
        if name is None:
            name = self.shared[body] = f"TEXT_{len(self.shared)}"
            self.lines[name] = body
        return name


def _without(excludes: tuple[str, ...], heads: tuple[str, ...], stop: str) -> str:
    """Text that holds none of the literals. One that the stop itself ends with is in no text before the stop."""
    parts = [_ANY]
    if excludes:
        held = "|".join(_escaped(e) for e in excludes if e != stop or not stop)
        if held:
            parts.append("~" + _slashed(f"(?s:.*)({held})(?s:.*)"))
    if heads:
        first = r"[ \t\r\n]*(" + "|".join(map(_escaped, heads)) + ")(?s:.*)"
        parts.append("~" + _slashed(first))
    return parts[0] if len(parts) == 1 else "(" + " & ".join(parts) + ")"


def _joined(node: Seq) -> list[Node]:
    """The parts of a sequence, regular neighbours as one: optional white space and the marker after it must
    be one lexeme, or free text that could begin there as well would swallow the white space alone."""
    parts: list[Node] = []
    run: list[Node] = []
    for item in (*node.items, EMPTY):
        if item != EMPTY and regex(item) is not None:
            run.append(item)
            continue
        if len(run) > 1:
            parts.append(Seq(tuple(run)))
        else:
            parts += run
        run = []
        if item != EMPTY:
            parts.append(item)
    return parts


def regex(node: Node) -> str | None:
    """A regular node as a regular expression; ``None`` if it is not regular."""
    if isinstance(node, Lit):
        return _escaped(node.text)
    if isinstance(node, Chars):
        body = "".join(_in_class(a) if a == b else f"{_in_class(a)}-{_in_class(b)}" for a, b in node.ranges)
        return f"[{'^' if node.negated else ''}{body}]"
    if isinstance(node, Repeat):
        inner = regex(node.item)
        return None if inner is None else f"({inner}){_count(node)}"
    if isinstance(node, Seq):
        return _regexes(node.items, "")
    if isinstance(node, Alternatives):
        ways = _regexes(node.items, "|")
        return None if ways is None else f"({ways})"
    return None


def _regexes(nodes: Iterable[Node], between: str) -> str | None:
    """Regular nodes, joined; ``None`` if one of them is not regular."""
    parts: list[str] = []
    for node in nodes:
        part = regex(node)
        if part is None:
            return None
        parts.append(part)
    return between.join(parts)


def _count(node: Repeat) -> str:
    least, most = node.least, node.most
    if most is None:
        return "*" if least == 0 else "+" if least == 1 else f"{{{least},}}"
    return "?" if (least, most) == (0, 1) else f"{{{least},{most}}}"


# Only what means something in a regular expression: Rust's engine refuses escapes of anything else.
_ESCAPES = str.maketrans({c: "\\" + c for c in "\\.+*?()|[]{}^$#&-~"} | {"\n": "\\n", "\r": "\\r", "\t": "\\t"})


@lru_cache(4096)
def _escaped(text: str) -> str:
    return text.translate(_ESCAPES)


def _in_class(text: str) -> str:
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    result = ""
    for c in text:
        if c in "\\]^-[&~":
            result += "\\" + c
        elif c < " " or c == "\x7f":
            result += named.get(c) or f"\\x{ord(c):02x}"
        else:
            result += c
    return result


def _slashed(pattern: str) -> str:
    return f"/{pattern}/" if "/" not in pattern else "/" + re.sub(r"(?<!\\)((?:\\\\)*)/", r"\1\\/", pattern) + "/"


def literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _name(name: str) -> str:
    return name.replace("-", "_")


_WRITERS: Final[Mapping[type[Node], Callable[[_Writer, Any], str]]] = {
    Lit: lambda _, node: literal(node.text),
    Token: lambda _, node: f"{literal(node.lead)} <[{node.id}]>" if node.lead else f"<[{node.id}]>",
    Ref: _Writer.reference,
    Json: _Writer.json,
    Scan: _Writer.scan,
}
"""Node → its text, where that is no regular expression. Texts and characters inside others are parts of terminals."""
