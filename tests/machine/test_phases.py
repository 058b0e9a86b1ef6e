"""Each reader keeps its place in one phase, and its module lists the phases (they are on the page of the machine)."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import untemplate

MACHINE = Path(untemplate.__file__).parent / "_internal/machine"
ATTRIBUTES = {"_phase", "phase", "holds"}


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


def readers_with_phases() -> dict[str, tuple[str, ...]]:
    """Return what each reader reads in each phase, as its module lists it."""
    found = {}
    for path in sorted(MACHINE.rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and ATTRIBUTES & {
                name.attr for name in ast.walk(node) if isinstance(name, ast.Attribute)
            }:
                name = ".".join(path.relative_to(MACHINE).with_suffix("").parts)
                module = import_module(f"untemplate._internal.machine.{name}")
                if hasattr(module, "PHASES"):
                    found[node.name] = module.PHASES
    return found


def test_each_reader_sets_the_phases_that_its_module_lists() -> None:
    listed = readers_with_phases()
    seen = set()
    for path in sorted(MACHINE.rglob("*.py")):
        module = ast.parse(path.read_text("utf-8"))
        known = constants(module)
        for node in module.body:
            if isinstance(node, ast.ClassDef) and {"_phase", "phase"} & {
                name.attr for name in ast.walk(node) if isinstance(name, ast.Attribute)
            }:
                seen.add(node.name)
                assert phases_set(node, known) == set(range(len(listed[node.name]))), node.name
    assert seen | {"ElementReader"} == set(listed)
