"""Functions stay simple: none has more decisions than a ceiling, and few have many.

A decision is an ``if``, a loop, an ``except``, a ``case``, a conditional expression, a comprehension and each of its
conditions, and each further operand of ``and`` and ``or``. Code of a function inside another counts for the inner one.
The figures below only go down.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = {"untemplate": ROOT / "src/untemplate", "gateway": ROOT / "gateway/src/untemplate_gateway"}

CEILING = 24
"""Most decisions of a function."""
MANY = 10
"""A function with more decisions counts for the share of its package."""

EXCEPTIONS = {
    # It reads each character of JSON that arrives in parts: a call for each would cost more than all that it decides.
    "untemplate._internal.jsontext.scanner.JsonScanner.scan": 40,
}
"""Function -> its decisions, if they are more than the ceiling. No function may be added without a reason."""

SHARES = {
    "untemplate.analysis": 12,
    "untemplate._internal.backends": 8,
    "untemplate.batch": 5,
    "untemplate.check": 11,
    "untemplate._internal.cli": 8,
    "untemplate._internal.conform": 9,
    "untemplate.format": 10,
    "untemplate.formats": 3,
    "untemplate.grammar": 10,
    "untemplate._internal.inspector": 2,
    "untemplate.integrations": 2,
    "untemplate._internal.jsontext": 12,
    "untemplate._internal.machine": 9,
    "untemplate._internal.render": 10,
    "untemplate._internal.schemas": 12.5,
    "untemplate.templates": 9,
    "untemplate.testing": 12,
    "untemplate._internal.tokens": 1,
    "untemplate.vllm_api": 7,
    "untemplate": 10,
    "gateway": 8.5,
}
"""Package -> percentage of its functions that may have more than ``MANY`` decisions. ``untemplate``: its modules that
are in no package."""

_DECISIONS = (
    ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.IfExp, ast.comprehension, ast.match_case,
)  # fmt: skip
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def decisions(function: ast.AST) -> int:
    """Count the decisions of a function, and one for the function itself."""
    count, waiting = 1, list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            continue
        count += isinstance(node, _DECISIONS)
        if isinstance(node, ast.comprehension):
            count += len(node.ifs)
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        waiting += ast.iter_child_nodes(node)
    return count


@cache
def counted() -> dict[str, list[tuple[str, int]]]:
    """Return the functions of each package with their decisions."""
    found: dict[str, list[tuple[str, int]]] = {}
    for name, root in SOURCES.items():
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            tree = ast.parse(path.read_text("utf-8"))
            package = ".".join(parts[: 2 if parts[0] == "_internal" else 1])
            package = f"{name}.{package}" if name == "untemplate" and package != ".".join(parts) else name
            found.setdefault(package, []).extend(_functions(tree, ".".join((name, *parts))))
    return found


def _functions(node: ast.AST, name: str) -> Iterator[tuple[str, int]]:
    for child in ast.iter_child_nodes(node):
        named = isinstance(child, (*_FUNCTIONS, ast.ClassDef))
        inner = f"{name}.{child.name}" if named else name
        if isinstance(child, _FUNCTIONS):
            yield inner, decisions(child)
        yield from _functions(child, inner)


def test_each_kind_of_decision_counts():
    source = """
async def f(a, b):
    if a and b or not a:
        return [x for x in a if x if b] if a else {x: y for x in a for y in b}
    try:
        while a:
            async for x in b:
                pass
    except (ValueError, TypeError):
        pass
    match a:
        case 1:
            pass
        case _:
            pass
    def g():
        return a or b
"""
    outer, inner = (node for node in ast.walk(ast.parse(source)) if isinstance(node, _FUNCTIONS))
    # if, and, or; comprehension with two conditions, conditional expression, two more; while, for, except; two cases
    assert decisions(outer) == 1 + 3 + (3 + 1 + 2) + 3 + 2
    assert decisions(inner) == 2


def test_no_function_has_more_decisions_than_the_ceiling():
    found = {name: count for functions in counted().values() for name, count in functions if count > CEILING}
    higher = {name: count for name, count in found.items() if count > EXCEPTIONS.get(name, CEILING)}
    assert higher == {}
    assert sorted(found) == sorted(EXCEPTIONS), "an exception is not needed any more"


def test_other_packages_have_no_such_function():
    crowded = {package for package, functions in counted().items() if any(count > MANY for _, count in functions)}
    assert sorted(crowded - set(SHARES)) == []


@pytest.mark.parametrize("package", sorted(SHARES))
def test_the_share_of_functions_with_many_decisions_does_not_grow(package: str):
    functions = counted()[package]
    many = [f"{count} {name}" for name, count in functions if count > MANY]
    share = 100 * len(many) / max(1, len(functions))
    assert share <= SHARES[package], f"{share:.1f} %:\n" + "\n".join(sorted(many, reverse=True))
