"""Each reader keeps its place in one phase, and its module lists the phases (they are on the page of the machine)."""

from __future__ import annotations

import ast
from pathlib import Path

import untemplate
from untemplate._internal.machine.phases import READERS

MACHINE = Path(untemplate.__file__).parent / "_internal/machine"
ATTRIBUTES = {"_phase", "holds"}


def constants(module: ast.Module) -> dict[str, int]:
    """Return the whole numbers that a module names."""
    return {
        node.target.id: node.value.value
        for node in module.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, int)
    }


def phases_set(reader: ast.ClassDef, known: dict[str, int]) -> set[int]:
    """Return the phases that a class sets, wherever it names one in a statement about its phase."""
    found = set()
    for node in ast.walk(reader):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.Compare | ast.Call):
            named = {name.id for name in ast.walk(node) if isinstance(name, ast.Name) and name.id in known}
            touched = {name.attr for name in ast.walk(node) if isinstance(name, ast.Attribute)}
            touched |= {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
            if touched & {*ATTRIBUTES, "phase", "Element", "_begin"}:
                found |= {known[name] for name in named}
    return found


def test_each_reader_with_a_phase_is_listed_with_all_of_them() -> None:
    seen = set()
    for path in sorted(MACHINE.rglob("*.py")):
        module = ast.parse(path.read_text("utf-8"))
        known = constants(module)
        for node in module.body:
            if isinstance(node, ast.ClassDef) and "_phase" in {
                name.attr for name in ast.walk(node) if isinstance(name, ast.Attribute)
            }:
                seen.add(node.name)
                phases = READERS[node.name]
                assert phases_set(node, known) == set(range(len(phases))), node.name
    assert seen | {"ElementReader"} == set(READERS)
