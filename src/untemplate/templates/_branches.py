"""The branches of a template: what each reads, and on what it depends.

A branch is a body of ``if``, ``elif``, ``else``, ``for`` or a macro, or one side of a conditional expression. The
generated code marks each branch that runs (``_codegen.py``), so renderings show what they did not reach.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from jinja2 import nodes

from ._aliases import Aliases, Reading, below

__all__ = ["Branch", "branches_of", "choices_of", "fields_of"]


@dataclass(slots=True)
class Branch:
    """One branch of a template."""

    line: int
    """Its first line, counted from 1."""
    refuses: bool
    """True if it only raises an exception of the template's own."""
    _aliases: Aliases
    _conditions: Reading
    _reads: Reading
    _written_at: set[int] = field(default_factory=set)
    _followed: dict[bool, tuple[set[str], bool]] = field(default_factory=dict)

    @property
    def lines(self) -> range:
        """All lines that it has a part of."""
        return range(self.line, max(self._written_at, default=self.line) + 1)

    @property
    def conditions(self) -> set[str]:
        """Names, attributes and constant strings in the conditions that it depends on, and in those of the values of
        variables there."""
        return self._aliases.conditions(self._conditions)

    def reads(self, names: Collection[str], *, items: bool = True) -> bool:
        """True if it may read one of these names, attributes or constant strings: in its statements, in what its loops
        iterate over, or in the values of variables there.

        Args:
            names: what may be read.
            items: also if a variable is only one item of the value.
        """
        if items not in self._followed:
            self._followed[items] = self._aliases.reads(self._reads, items=items)
        found, complete = self._followed[items]
        return not complete or not found.isdisjoint(names)

    def _note(self, node: nodes.Node) -> None:
        self._reads.add(node)
        self._written_at.add(_last_line(node))


def branches_of(tree: nodes.Template) -> tuple[list[Branch], dict[int, int]]:
    """Return the branches, and the index of each by the identity of its list of statements. The sides of a conditional
    expression follow each other, under the identity of the expression: its sides may be replaced by constants."""
    found: list[Branch] = []
    index: dict[int, int] = {}
    waiting: list[tuple[nodes.Node, tuple[Branch, ...], Reading]] = [(tree, (), Reading())]
    aliases = Aliases()
    while waiting:
        node, around, conditions = waiting.pop()
        aliases.note(node, conditions)
        for branch in around:
            branch._note(node)
        inside: set[int] = set()
        for key, children, tests, iterated in _parts(node):
            depends = conditions.joined(Reading().add_all(tests))
            if isinstance(node, nodes.Macro):  # it depends on the conditions around its calls
                depends.variables.add(node.name)
            line = children[0].lineno if children else node.lineno
            branch = Branch(line, _refuses(children), aliases, depends, Reading().add_all(iterated))
            index.setdefault(key, len(found))
            found.append(branch)
            waiting += [(child, (*around, branch), depends) for child in children]
            inside |= {id(child) for child in children}
        waiting += [(child, around, conditions) for child in below(node) if id(child) not in inside]
    aliases.note_calls()
    return found, index


def choices_of(tree: nodes.Template) -> dict[str, tuple[str, ...]]:
    """Return the constant strings that each variable is compared with (``reasoning_effort == "high"``)."""
    found: dict[str, dict[str, None]] = {}
    for node in tree.find_all(nodes.Compare):
        sides = [node.expr, *(operand.expr for operand in node.ops)]
        words = [one.value for side in sides for one in (side, *_items(side)) if isinstance(one, nodes.Const)]
        for side in sides:
            if isinstance(side, nodes.Name):
                found.setdefault(side.name, {}).update(dict.fromkeys(w for w in words if isinstance(w, str) and w))
    return {name: tuple(words) for name, words in found.items()}


def fields_of(tree: nodes.Template) -> frozenset[str]:
    """Return the attributes and constant keys that are read (``m.content``, ``m['content']``, ``m.get('content')``),
    those of the template's own namespaces aside."""
    found = {node.attr for node in tree.find_all(nodes.Getattr)}
    keys: list[nodes.Expr] = [node.arg for node in tree.find_all(nodes.Getitem)]
    own = {node.attr for node in tree.find_all(nodes.NSRef)}
    for call in tree.find_all(nodes.Call):
        if isinstance(call.node, nodes.Getattr) and call.node.attr == "get":
            keys += call.args[:1]
        elif isinstance(call.node, nodes.Name) and call.node.name == "namespace":
            own.update(given.key for given in call.kwargs)
    found.update(one.value for one in keys if isinstance(one, nodes.Const) and isinstance(one.value, str))
    return frozenset(found - own)


def _items(node: nodes.Node) -> list[nodes.Expr]:
    return node.items if isinstance(node, (nodes.List, nodes.Tuple)) else []


def _parts(node: nodes.Node) -> Iterator[tuple[int, list[nodes.Node], list[nodes.Node], list[nodes.Node]]]:
    """Yield the branches that begin at a node: key, what is inside, the conditions, and what is iterated over."""
    if isinstance(node, nodes.If):
        yield id(node.body), node.body, [node.test], []
        if node.else_:
            yield id(node.else_), node.else_, [node.test, *(other.test for other in node.elif_)], []
    elif isinstance(node, nodes.For):
        yield id(node.body), node.body, [] if node.test is None else [node.test], [node.iter]
        if node.else_:
            yield id(node.else_), node.else_, [], [node.iter]
    elif isinstance(node, nodes.Macro):
        yield id(node.body), node.body, [], []
    elif isinstance(node, nodes.CondExpr):
        for side in (node.expr1, node.expr2):
            if side is not None:
                yield id(node), [side], [node.test], []


def _last_line(node: nodes.Node) -> int:
    """Return the line on which a node ends, apart from what is inside it; 0 for nodes that Jinja makes itself."""
    return (node.lineno or 0) + (node.data.rstrip().count("\n") if isinstance(node, nodes.TemplateData) else 0)


def _refuses(inside: list[nodes.Node]) -> bool:
    """True if these statements raise, and write nothing but white space."""
    parts = [part for one in inside for part in (one.nodes if isinstance(one, nodes.Output) else [one])]
    rest = [part for part in parts if not (isinstance(part, nodes.TemplateData) and not part.data.strip())]
    return bool(rest) and all(
        isinstance(part, nodes.Call) and isinstance(part.node, nodes.Name) and part.node.name == "raise_exception"
        for part in rest
    )
