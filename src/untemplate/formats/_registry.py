"""The catalogue: finds formats by name.

* An entry is found by its kind and one of its names; ``granite`` is both a reasoning and a tool format.
* Looking up a name imports only the module of its family. Names, models and headers of all families are in
  ``_index.py``, which ``make docs`` makes from the modules.
* Names are compared without ``-``, ``_``, ``.`` and the case of letters, where no entry has the name as it is given.
* `named` resolves every name that a user gives: a name, two names, or a file.
* Families of other packages are in ``_registered.py``. Their packages are imported when a name is not in the index, or
  when all names are listed.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Final

from ..errors import FormatError, IncompatibleFormatsError, UnknownFormatError
from ..format import Format
from . import _index
from . import _registered as registered
from ._family import Entry, IndexRow, Kind
from ._merging import merge
from ._unlisted import UNLISTED

__all__ = [
    "KINDS",
    "IndexRow",
    "chosen_name",
    "entries",
    "families",
    "finds",
    "half",
    "lookup",
    "markers",
    "model_type_of_architecture",
    "named",
    "names",
    "rows",
    "writers",
]

KINDS: Final[tuple[Kind, ...]] = ("reasoning", "tool")
_SEPARATORS: Final = str.maketrans("", "", "-_.")
_FORMS: Final = "a name, or CALLS+REASONING such as hermes+qwen3"
_FORMS_AND_FILE: Final = "a name, CALLS+REASONING such as hermes+qwen3, or FILE.json"


# -- The index ----------------------------------------------------------------------------------------------------


def rows() -> tuple[IndexRow, ...]:
    """Return the index, sorted by name, reasoning before tools."""
    found = registered.rows()
    return tuple(sorted((*_bundled(), *found), key=_order)) if found else _bundled()


@cache
def _bundled() -> tuple[IndexRow, ...]:
    found = [IndexRow(module, *row) for module, group in _index.ROWS.items() for row in group]
    return tuple(sorted(found, key=_order))


def _order(row: IndexRow) -> tuple[str, Kind]:
    return row.name, row.kind


@cache
def _modules(kind: Kind) -> dict[str, str]:
    """Return the family module of every bundled name and alias of one kind."""
    return {name: row.module for row in _bundled() if row.kind == kind for name in (row.name, *row.aliases)}


@cache
def _respelled(kind: Kind) -> dict[str, str]:
    """Return a name by its letters and digits, where these belong to one entry: ``glm-4.5`` is ``glm45``."""
    found: dict[str, set[str]] = {}
    for row in _bundled():
        for name in (row.name, *row.aliases) if row.kind == kind else ():
            found.setdefault(_letters(name), set()).add(row.name)
    return {letters: names.pop() for letters, names in found.items() if len(names) == 1}


def _letters(name: str) -> str:
    return name.lower().translate(_SEPARATORS)


@cache
def _load(module: str) -> dict[tuple[Kind, str], Entry]:
    """Import a family. Return its entries by kind and name, aliases included."""
    found: tuple[Entry, ...] = import_module(f"._families.{module}", __package__).ENTRIES
    return {(entry.kind, name): entry for entry in found for name in (entry.name, *entry.aliases)}


def _entry(kind: Kind, name: str) -> Entry:
    """Return a bundled entry.

    Raises:
        UnknownFormatError: the index has the name, and its module does not.
    """
    module = _modules(kind)[name]
    found = _load(module).get((kind, name))
    if found is None:
        reason = f"_families/{module}.py does not have it any more; `make docs` renews the index"
        raise UnknownFormatError(name, kind, names(kind), reason=reason)
    return found


def _reason(name: str) -> str | None:
    """Return why there is no format of a name, if that is known: no project has one, or its module is new."""
    if name in _index.ROWS or not name.isidentifier():
        return UNLISTED.get(name)
    is_new = os.path.isfile(os.path.join(os.path.dirname(__file__), "_families", f"{name}.py"))
    return f"_families/{name}.py is not in the index; `make docs` adds it" if is_new else UNLISTED.get(name)


def families() -> list[str]:
    """Return the names of the family modules, sorted."""
    return list(_index.ROWS)


def names(kind: Kind | None = None) -> list[str]:
    """Return all names of one kind (``None``: of both), aliases included, sorted. Imports no bundled family."""
    kinds = KINDS if kind is None else (kind,)
    return sorted({name for row in rows() if row.kind in kinds for name in (row.name, *row.aliases)})


def markers() -> dict[str, str]:
    """Return the markers of the bundled families, each with its meaning in the first formats that have it."""
    return _index.MARKERS


def writers(call_markers: tuple[str, ...]) -> tuple[str, ...]:
    """Return the bundled tool formats whose calls have these markers, those first that most engines know."""
    return _index.CALLS.get(call_markers, ())


def model_type_of_architecture(architecture: str) -> str:
    """Return the ``model_type`` of ``config.json`` for a GGUF architecture; the same word where they do not differ."""
    return _index.MODEL_TYPES.get(architecture, architecture)


def finds(row: IndexRow, name: str) -> bool:
    """True if a name finds the entry of a row."""
    return name in (row.name, *row.aliases) or _respelled(row.kind).get(_letters(name)) == row.name


# -- Lookup -------------------------------------------------------------------------------------------------------


def entries() -> list[Entry]:
    """Return every entry, sorted by name, reasoning before tools. Imports every family."""
    return [lookup(row.kind, row.name) for row in rows()]


def lookup(kind: Kind, name: str) -> Entry:
    """Return the entry of that kind with that name or alias. Imports its family only.

    Raises:
        UnknownFormatError: no entry has that name; the message lists similar names and all valid ones.
        TypeError: the name is not a str.
    """
    _check_name(name)
    found = _find(kind, name)
    if found is None:
        raise UnknownFormatError(name, kind, names(kind), reason=_reason(name))
    return found


def named(name: str, *, reasoning: str | None = None, files: bool = False) -> Format:
    """Return the Format with that name: the tool entry, the reasoning entry, or both merged if both have the name.

    ``calls+reasoning`` (``hermes+qwen3``) is the calls of the first with the reasoning of the second. The other order
    is accepted where the first name has no calls.

    Args:
        name: a tool name, a reasoning name, an alias of either, or two names as above.
        reasoning: a reasoning name to use with the tools instead (``identity``: no reasoning), or what `half` finds.
        files: True: a name may also be a file with a Format as JSON (ends with ``.json``, or has a path separator).
            Leave it False for names that come with a request or with data.

    Raises:
        UnknownFormatError: no entry has one of the names; the message lists similar names and all valid ones.
        IncompatibleFormatsError: the two entries cannot be merged.
        FormatError: the file cannot be read, or describes no Format; ``path`` is the file.
        TypeError: a name is not a str.
    """
    _check_name(name)
    if files and _is_file(name):
        fmt = _read(name)
        return fmt if reasoning in (None, name) else merge(half("reasoning", reasoning, files=True), fmt)
    tool, thinking = _find("tool", name), _find("reasoning", name)
    if tool is None and thinking is None:
        return _pair(name, reasoning, files)
    if reasoning is not None:
        chosen = half("reasoning", reasoning, files=files)
        if tool is not None:
            return merge(chosen, tool.format)
        if thinking is not None and thinking.format == chosen:
            return chosen
        raise IncompatibleFormatsError(reasoning, name, f"{name!r} is a reasoning format as well")
    if tool is None or thinking is None:
        return (tool or thinking).format  # type: ignore[union-attr]
    return replace(merge(thinking.format, tool.format), name=tool.format.name)


def half(kind: Kind, name: str, *, files: bool = False) -> Format:
    """Return the Format of which one half is used: that of an entry, or a whole one by two names or from a file.

    Args:
        kind: the half.
        name: a name or an alias of that kind, ``calls+reasoning``, or a file as for `named`.
        files: True: ``name`` may be a file.

    Raises:
        UnknownFormatError, IncompatibleFormatsError, FormatError, TypeError: as `named`.
    """
    _check_name(name)
    found = _find(kind, name)
    if found is not None:
        return found.format
    if "+" in name or (files and _is_file(name)):
        return named(name, files=files)
    raise UnknownFormatError(name, kind, names(kind), reason=_reason(name))


def chosen_name(fmt: Format) -> str:
    """Return the name by which `named` finds a Format of the catalogue.

    If the name has both and the Format one half: ``gigachat35+identity``, ``passthrough+olmo3``.
    """
    name = fmt.name
    if named(name) == fmt:
        return name
    return f"{name}+identity" if fmt.tools else f"passthrough+{name}"


def _find(kind: Kind, name: str) -> Entry | None:
    """Return the entry of that kind with that name or alias, otherwise ``None``."""
    if name in _modules(kind):
        return _entry(kind, name)
    if "+" in name or any(name in _modules(other) for other in KINDS):
        return None  # no registered name has a plus
    known = registered.find(kind, name)
    respelled = _respelled(kind).get(_letters(name)) if known is None and name not in UNLISTED else None
    return known if respelled is None else _entry(kind, respelled)


def _pair(name: str, reasoning: str | None, files: bool) -> Format:
    """Return the Format of ``calls+reasoning``."""
    calls, plus, thinking = name.partition("+")
    if not plus:
        raise UnknownFormatError(name, None, names(), _FORMS_AND_FILE if files else _FORMS, _reason(name))
    if reasoning not in (None, name):
        raise IncompatibleFormatsError(reasoning, name, f"{name!r} names its reasoning already")
    if _find("tool", calls) is None and _find("tool", thinking) is not None and _find("reasoning", calls) is not None:
        calls, thinking = thinking, calls
    return merge(lookup("reasoning", thinking).format, lookup("tool", calls).format)


def _is_file(name: str) -> bool:
    return name.endswith(".json") or os.sep in name


def _read(file: str) -> Format:
    try:
        with open(file, "rb") as stream:
            return Format.from_json(stream.read())
    except OSError as error:
        raise FormatError(file, error.strerror or str(error)) from None
    except ValueError as error:  # a FormatError, or a NUL in the path
        raise FormatError(file, str(error)) from None


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise TypeError(f"name of a format: expected str, got {type(name).__name__}: {name!r:.200}")
