"""Formats of other packages: registered by a call, or through entry points.

* The entry points of the group ``untemplate.formats`` name functions without arguments, which call `register`. They run
  once, when a name is not in the catalogue or all names are listed. If one fails, a warning names its package, whose
  names are unknown then.
* A name is registered once, and never one of the catalogue. The error names the package that has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from threading import RLock
from typing import TYPE_CHECKING, Final

from ..errors import FormatError
from ..format import Format
from . import _index
from ._family import Entry, Evidence, IndexRow, Kind

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["GROUP", "find", "problem_of", "register", "rows"]

GROUP: Final = "untemplate.formats"
"""The group of entry points."""

_lock: Final = RLock()
_entries: Final[dict[tuple[Kind, str], Entry]] = {}
"""The registered entries by kind and name, aliases included."""
_owners: Final[dict[str, str]] = {}
"""The package of every registered name and alias."""
_called: Final[set[EntryPoint]] = set()
_callers: Final = ["a call of register()"]
"""The packages whose entry points are running, the innermost last."""


def register(
    fmt: Format,
    *,
    aliases: Iterable[str] = (),
    models: Iterable[str] = (),
    model_types: Iterable[str] = (),
    evidence: Iterable[Evidence] = (),
) -> None:
    """Add a Format to the catalogue of this process. Its calls and its reasoning can then be named alone as well.

    Args:
        fmt: the Format; its name is the entry's.
        aliases: other names.
        models: patterns of hub ids whose models write it (``("acme/Acme-*",)``).
        model_types: values of ``model_type`` in ``config.json`` that suggest it.
        evidence: public sources that it rests on.

    Raises:
        FormatError: a name is empty or has a character that a name must not have, or is taken; the message names
            the package that has it.
        TypeError: ``fmt`` is not a Format, or a text is given where several are expected.
    """
    if not isinstance(fmt, Format):
        raise TypeError(f"register() fmt: expected Format, got {type(fmt).__name__}: {fmt!r:.200}")
    for field, given in (("aliases", aliases), ("models", models), ("model_types", model_types)):
        if isinstance(given, str):
            raise TypeError(
                f"register() {field}: expected several texts, such as ({given!r},), got one: {given!r:.200}"
            )
    names = (fmt.name, *aliases)
    entry = Entry(
        name=fmt.name,
        kind="tool",
        format=fmt,
        aliases=names[1:],
        models=tuple(models),
        model_types=tuple(model_types),
        evidence=tuple(evidence),
    )
    with _lock:
        for position, name in enumerate(names):
            _check(name, names[:position])
        for name in names:
            _owners[name] = _callers[-1]
            _entries.update({(half.kind, name): half for half in _halves(entry)})


def problem_of(name: str) -> str:
    """Return why a text is not a name; empty if it is one."""
    if not name or name.endswith(".json") or any(c in "+/\\" or c.isspace() for c in name):
        return "a name must not be empty, contain '+', '/', '\\' or space, or end with .json"
    return ""


def _check(name: str, before: tuple[str, ...]) -> None:
    where = f"register({name!r})"
    if problem := problem_of(name):
        raise FormatError(where, problem)
    if name in before:
        raise FormatError(where, "the name is given twice")
    for owner, taken in _taken():
        if taken.lower() == name.lower():
            raise FormatError(where, f"the name is taken by {owner}" + (f": {taken!r}" if taken != name else ""))


def _taken() -> Iterator[tuple[str, str]]:
    """Yield all names with their owners. None of them may be given again, not in other capitals either."""
    for taken, package in _owners.items():
        yield package, taken
    for module, group in _index.ROWS.items():
        for row in group:
            for taken in (row[1], *row[2]):
                yield f"untemplate.formats._families.{module}", taken


def _halves(entry: Entry) -> Iterator[Entry]:
    """Yield the entry of each kind. With channels both have the whole Format, as in the catalogue."""
    fmt = entry.format
    if fmt.channels is not None:
        yield entry
        yield replace(entry, kind="reasoning")
        return
    if fmt.reasoning is not None:
        yield replace(entry, kind="reasoning", format=fmt.extend(tools=()))
    if fmt.tools or fmt.reasoning is None:
        yield replace(entry, format=fmt.extend(reasoning=None))


def find(kind: Kind, name: str) -> Entry | None:
    """Return the registered entry of that kind with that name or alias; otherwise ``None``."""
    _call_entry_points()
    return _entries.get((kind, name))


def rows() -> tuple[IndexRow, ...]:
    """Return the index of the registered entries."""
    _call_entry_points()
    with _lock:
        found = [(name, entry) for (_, name), entry in _entries.items() if name == entry.name]
    return tuple(
        IndexRow(_owners[name], e.kind, name, e.aliases, e.models, e.model_types, e.verified) for name, e in found
    )


# -- Entry points -------------------------------------------------------------------------------------------------


def _call_entry_points() -> None:
    """Call the functions of the entry points that were not called yet."""
    with _lock:
        for point in _entry_points():
            if point not in _called:
                _called.add(point)
                _call(point)


@cache
def _entry_points() -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points  # takes longer than the rest of this module

    return tuple(entry_points(group=GROUP))


def _call(point: EntryPoint) -> None:
    """Call the function of an entry point. If it fails, nothing of it remains but a warning."""
    package = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
    entries, owners = dict(_entries), dict(_owners)
    _callers.append(package)
    try:
        point.load()()
    except Exception as error:  # what packages raise is not known
        from .._internal.log import logger

        _restore(entries, owners)
        problem = str(error) if isinstance(error, FormatError) else f"{type(error).__name__}: {error}"
        logger().warning("entry point %r of %s adds no formats: %s", point.name, package, problem)
    finally:
        _callers.pop()


def _restore(entries: dict[tuple[Kind, str], Entry], owners: dict[str, str]) -> None:
    _entries.clear()
    _entries.update(entries)
    _owners.clear()
    _owners.update(owners)
