"""Values of the variables of a template: the expressions that the template itself gives them.

* ``set``, ``with`` and loops give a value to a variable, and a call gives values to the parameters of a macro. The name
  of a macro stands for its body.
* An attribute of a namespace is a variable of its own. The namespace stands for all of them where it is used as a
  whole.
* The order of the statements and the scope of a name have no influence: a variable stands for every value that it is
  given anywhere.
* Which value is given depends on the conditions around the statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from jinja2 import nodes

__all__ = ["Aliases", "Reading", "below"]

_MOST: Final = 1000
"""Most names that are followed from one branch. The branches of known templates need at most 200."""


@dataclass(slots=True)
class Reading:
    """The names that nodes of a template read."""

    names: set[str] = field(default_factory=set)
    """Variables, attributes and constant strings."""
    variables: set[str] = field(default_factory=set)
    """The variables among them; one of which an attribute is read comes with it (``ns.x``)."""

    def add(self, node: nodes.Node) -> None:
        """Add the name, attribute or constant string that a node is; `below` returns the nodes that are left to add."""
        if isinstance(node, nodes.Name):
            self.names.add(node.name)
            if node.ctx == "load":
                self.variables.add(node.name)
        elif isinstance(node, nodes.Getattr):
            self.names.add(node.attr)
            if isinstance(node.node, nodes.Name):
                self.names.add(node.node.name)
                self.variables.add(f"{node.node.name}.{node.attr}")
        elif isinstance(node, nodes.Const) and isinstance(node.value, str):
            self.names.add(node.value)

    def add_all(self, found: Iterable[nodes.Node]) -> Reading:
        """Add what these nodes and those below them read."""
        waiting = list(found)
        while waiting:
            node = waiting.pop()
            self.add(node)
            waiting += below(node)
        return self

    def joined(self, other: Reading) -> Reading:
        """Return what one of the two reads."""
        return Reading(self.names | other.names, self.variables | other.variables)


def below(node: nodes.Node) -> Iterable[nodes.Node]:
    """Return the nodes below a node, without the variable of an attribute: the two are read as one."""
    return () if isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name) else node.iter_child_nodes()


class Aliases:
    """The values of the variables of a template."""

    def __init__(self) -> None:
        self._values: dict[str, Reading] = {}
        self._items: dict[str, Reading] = {}
        """Values of which a variable is one item (``calls[0]``, or in a loop)."""
        self._conditions: dict[str, Reading] = {}
        self._bodies: frozenset[str] = frozenset()
        """Names of macros."""
        self._macros: dict[str, nodes.Macro] = {}
        self._calls: list[tuple[str, nodes.Call, Reading]] = []

    def note(self, node: nodes.Node, conditions: Reading) -> None:
        """Note the values that a node gives to variables, and the conditions around it."""
        if isinstance(node, nodes.Macro):
            self._macros[node.name] = node
        elif isinstance(node, nodes.Call) and isinstance(node.node, nodes.Name):
            self._calls.append((node.node.name, node, conditions))
        for variable, value in _given(node):
            picked = isinstance(node, nodes.For) or (isinstance(node, nodes.Assign) and _is_item(node.node))
            self._give(self._items if picked else self._values, variable, value, conditions)

    def note_calls(self) -> None:
        """Note the values that calls give to the parameters of macros, once all nodes are noted."""
        for name, call, conditions in self._calls:
            if name in self._macros:
                self._give(self._values, name, (), conditions)
                for target, value in zip(self._macros[name].args, call.args, strict=False):
                    self._give(self._values, target.name, [value], conditions)
                for given in call.kwargs:
                    self._give(self._values, given.key, [given.value], conditions)
        self._calls.clear()
        self._bodies = frozenset(self._macros)
        self._macros.clear()

    def _give(self, table: dict[str, Reading], variable: str, value: Iterable[nodes.Node], conditions: Reading) -> None:
        table.setdefault(variable, Reading()).add_all(value)
        if conditions.names:
            known = self._conditions.get(variable)
            self._conditions[variable] = conditions if known is None else known.joined(conditions)

    def conditions(self, reading: Reading) -> set[str]:
        """Return the names that are read, those of all values included, and those that decide which value is given. Of
        too many only a part: they are variables to try, and what a branch reads is doubted then."""
        return self._follow(reading, (self._values, self._items, self._conditions))[0]

    def reads(self, reading: Reading, *, items: bool) -> tuple[set[str], bool]:
        """Return the names that are read, those of all values included, and false if there are too many.

        The body of a macro that is called is not read here: it is a branch of its own.

        Args:
            items: also if one item of the value is read.
        """
        apart = Reading(reading.names, reading.variables - self._bodies)
        return self._follow(apart, (self._values, self._items) if items else (self._values,))

    def _follow(self, reading: Reading, tables: tuple[dict[str, Reading], ...]) -> tuple[set[str], bool]:
        names, seen = set(reading.names), set(reading.variables)
        waiting = list(seen)
        while waiting:
            variable = waiting.pop()
            whole, dot, _ = variable.partition(".")
            if dot and not any(variable in table for table in tables) and whole not in seen:
                waiting.append(whole)
                seen.add(whole)
            for given in [table[variable] for table in tables if variable in table]:
                if len(names) + len(given.names) > _MOST:
                    return names, False
                names |= given.names
                waiting += given.variables - seen
                seen |= given.variables
        return names, True


def _given(node: nodes.Node) -> Iterator[tuple[str, Sequence[nodes.Node]]]:
    """Yield each variable to which a statement gives a value, and the value."""
    targets: list[tuple[nodes.Node, Sequence[nodes.Node]]] = []
    if isinstance(node, nodes.Assign):
        call = node.node
        if isinstance(node.target, nodes.Name) and isinstance(call, nodes.Call) and _is_namespace(call.node):
            targets = [(node.target, [*call.args, *(given.value for given in call.kwargs)])]
            yield from ((f"{node.target.name}.{given.key}", [given.value]) for given in call.kwargs)
        else:
            targets = [(node.target, [call])]
    elif isinstance(node, nodes.AssignBlock):
        targets = [(node.target, node.body)]
    elif isinstance(node, nodes.For):
        targets = [(node.target, [node.iter])]
    elif isinstance(node, nodes.With):
        targets = [(t, [v]) for t, v in zip(node.targets, node.values, strict=True)]
    elif isinstance(node, nodes.Macro):
        yield node.name, node.body
        optional = node.args[len(node.args) - len(node.defaults) :]
        targets = [(target, [value]) for target, value in zip(optional, node.defaults, strict=True)]
    for target, value in targets:
        for name in target.items if isinstance(target, nodes.Tuple) else (target,):
            if isinstance(name, nodes.Name):
                yield name.name, value
            elif isinstance(name, nodes.NSRef):
                yield name.name, value
                yield f"{name.name}.{name.attr}", value


def _is_item(node: nodes.Node) -> bool:
    """True if a value is one item of a list, or a part of it (``calls[0].function``)."""
    while isinstance(node, (nodes.Getattr, nodes.Getitem)):
        if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, int):
            return True
        node = node.node
    return False


def _is_namespace(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Name) and node.name == "namespace"
