"""The catalogue: finds formats by name.

* An entry is found by its kind and one of its names; ``granite`` is both a reasoning and a tool format.
* Looking up a name imports only the module of its family. Names, models and headers of all families are in
  ``_index.py``, which ``make docs`` makes from the modules.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Final, NamedTuple

from ..errors import IncompatibleFormatsError, UnknownFormatError
from ..format import Format
from . import _index
from .family import Entry, Kind
from .merging import merge

__all__ = [
    "KINDS",
    "IndexRow",
    "entries",
    "families",
    "lookup",
    "model_type_of_architecture",
    "named",
    "names",
    "rows",
]

KINDS: Final[tuple[Kind, ...]] = ("reasoning", "tool")


# -- The index ----------------------------------------------------------------------------------------------------


class IndexRow(NamedTuple):
    """The part of an `Entry` that is known without importing its family."""

    module: str
    kind: Kind
    name: str
    aliases: tuple[str, ...]
    models: tuple[str, ...]
    model_types: tuple[str, ...]
    verified: bool


@cache
def rows() -> tuple[IndexRow, ...]:
    """Return the index, sorted by name, reasoning before tools."""
    found = [IndexRow(module, *row) for module, group in _index.ROWS.items() for row in group]
    return tuple(sorted(found, key=lambda row: (row.name, row.kind)))


@cache
def _modules(kind: Kind) -> dict[str, str]:
    """Return the family module of every name and alias of one kind."""
    return {name: row.module for row in rows() if row.kind == kind for name in (row.name, *row.aliases)}


@cache
def _load(module: str) -> dict[tuple[Kind, str], Entry]:
    """Import a family. Return its entries by kind and name, aliases included."""
    found: tuple[Entry, ...] = import_module(f".{module}", __package__).ENTRIES
    return {(entry.kind, name): entry for entry in found for name in (entry.name, *entry.aliases)}


def families() -> list[str]:
    """Return the names of the family modules, sorted."""
    return list(_index.ROWS)


def names(kind: Kind | None = None) -> list[str]:
    """Return all names of one kind (``None``: of both), aliases included, sorted. Imports no family."""
    kinds = KINDS if kind is None else (kind,)
    return sorted({name for k in kinds for name in _modules(k)})


def model_type_of_architecture(architecture: str) -> str:
    """Return the ``model_type`` of ``config.json`` for a GGUF architecture; the same word where they do not differ."""
    return _index.MODEL_TYPES.get(architecture, architecture)


# -- Lookup -------------------------------------------------------------------------------------------------------


def entries() -> list[Entry]:
    """Return every entry, sorted by name, reasoning before tools. Imports every family."""
    return [_load(row.module)[row.kind, row.name] for row in rows()]


def lookup(kind: Kind, name: str) -> Entry:
    """Return the entry of that kind with that name or alias. Imports its family only.

    Raises:
        UnknownFormatError: no entry has that name; the message lists similar names and all valid ones.
        TypeError: the name is not a str.
    """
    _check_name(name)
    module = _modules(kind).get(name)
    if module is None:
        raise UnknownFormatError(name, kind, names(kind))
    return _load(module)[kind, name]


def named(name: str, *, reasoning: str | None = None) -> Format:
    """Return the Format with that name: the tool entry, the reasoning entry, or both merged if both have the name.

    Args:
        name: a tool name, a reasoning name, or an alias of either.
        reasoning: a reasoning name to use with the tools instead (``identity``: no reasoning).

    Raises:
        UnknownFormatError: no entry has one of the names; the message lists similar names and all valid ones.
        IncompatibleFormatsError: the two entries cannot be merged.
        TypeError: a name is not a str.
    """
    _check_name(name)
    has_tool, has_reasoning = name in _modules("tool"), name in _modules("reasoning")
    if not has_tool and not has_reasoning:
        raise UnknownFormatError(name, None, names())
    if reasoning is not None:
        chosen = lookup("reasoning", reasoning).format
        if has_tool:
            return merge(chosen, lookup("tool", name).format)
        if lookup("reasoning", name).format == chosen:
            return chosen
        raise IncompatibleFormatsError(reasoning, name, f"{name!r} is a reasoning format as well")
    if not has_tool:
        return lookup("reasoning", name).format
    tools = lookup("tool", name).format
    if not has_reasoning:
        return tools
    return replace(merge(lookup("reasoning", name).format, tools), name=tools.name)


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise TypeError(f"name of a format: expected str, got {type(name).__name__}: {name!r:.200}")
