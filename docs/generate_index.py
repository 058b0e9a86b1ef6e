"""Write ``src/untemplate/formats/_index.py``: the names, models and headers of the catalogue, read from its modules.

``make docs`` runs this first. Every module of ``untemplate.formats._families`` is a family.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from traceback import extract_tb

from untemplate import formats
from untemplate._internal.backends.recognition import call_markers, markers_of
from untemplate.errors import FormatError
from untemplate.formats import Entry
from untemplate.formats._registered import problem_of

HEAD = '''\
"""The index of the catalogue. Made by `make docs` from the modules in `_families/`; do not edit."""

# ruff: noqa: E501
# fmt: off

from __future__ import annotations

from typing import Final, Literal

'''

COLUMNS = "kind, name, aliases, models, model_types, verified"


def families() -> dict[str, tuple[Entry, ...]]:
    """The entries of every family module, by the module's name, sorted."""
    folder = Path(next(iter(formats.__path__))) / "_families"
    found = {path.stem: entries(path) for path in sorted(folder.glob("*.py")) if path.stem != "__init__"}
    check(found)
    return found


def entries(path: Path) -> tuple[Entry, ...]:
    """The ``ENTRIES`` of a family module.

    Raises:
        FormatError: it has none, or one of its parts is wrong; ``path`` names the file and the line.
    """
    try:
        module = import_module(f"untemplate.formats._families.{path.stem}")
    except (FormatError, TypeError) as error:
        lines = [frame.lineno for frame in extract_tb(error.__traceback__) if Path(frame.filename) == path]
        problem = _MISSING.sub(r"\1.\2: is missing", str(error))
        raise FormatError(f"{path.name}, line {lines[-1]}" if lines else path.name, problem) from error
    if not hasattr(module, "ENTRIES"):
        raise FormatError(f"{path.stem}: ENTRIES", "is missing: a family has a tuple of Entry")
    found: tuple[Entry, ...] = module.ENTRIES
    return found


_MISSING = re.compile(r"(\w+)\.__init__\(\) missing a required argument: '(\w+)'")


def check(found: dict[str, tuple[Entry, ...]]) -> None:
    """Check the entries of all modules together.

    Raises:
        FormatError: ``ENTRIES`` is not a tuple of entries, one has no evidence, or a name is not one or is taken.
    """
    owners: dict[tuple[str, str], tuple[str, str]] = {}
    types: dict[tuple[str, str], tuple[str, str]] = {}
    for module, group in found.items():
        if not isinstance(group, tuple) or not all(isinstance(entry, Entry) for entry in group):
            raise FormatError(
                f"{module}: ENTRIES", f"expected a tuple of Entry, such as (Entry(…),), got {group!r:.200}"
            )
        for entry in group:
            where = f"{module}: Entry {entry.name!r}"
            if entry.verified and not entry.evidence:
                raise FormatError(f"{where}: evidence", "expected at least one source, or verified=False")
            for field, names in (("name", (entry.name,)), ("aliases", entry.aliases)):
                for name in names:
                    _check_name(f"{where}: {field}", name, (entry.kind, f"Entry {entry.name!r} of {module}"), owners)
            for model_type in entry.model_types:
                family, owner = types.setdefault((entry.kind, model_type), (module, entry.name))
                if family != module:
                    problem = f"{model_type!r} is a model type of Entry {owner!r} of {family}"
                    raise FormatError(f"{where}: model_types", problem)


def _check_name(where: str, name: str, owner: tuple[str, str], owners: dict[tuple[str, str], tuple[str, str]]) -> None:
    """Check that no entry has a name, and no other entry has it in other capitals."""
    kind, entry = owner
    if problem := problem_of(name):
        raise FormatError(where, f"{name!r}: {problem}")
    other, taken = owners.setdefault((kind, name.lower()), (entry, ""))
    if taken == name or other != entry:
        raise FormatError(where, f"{other} has the {kind} name {taken!r} as well")
    owners[kind, name.lower()] = entry, name


def index_module(found: dict[str, tuple[Entry, ...]]) -> str:
    """The source of ``_index.py`` for these families."""
    entries = [entry for group in found.values() for entry in group]
    headers = dict.fromkeys(header for entry in entries for header in entry.headers)
    architectures = dict(pair for entry in entries for pair in entry.architectures)
    return HEAD + "\n".join(
        [
            "ROWS: Final[",
            "    dict[str, tuple[tuple[Literal['reasoning', 'tool'], str, tuple[str, ...], tuple[str, ...], "
            "tuple[str, ...], bool], ...]]",
            "] = {",
            f"    # module: (({COLUMNS}), ...)",
            *_rows(found),
            "}",
            "",
            "HEADERS: Final[tuple[str, ...]] = (",
            *(f"    {header!r}," for header in headers),
            ")",
            '"""Texts after which an assistant\'s output begins, of all families."""',
            "",
            "MODEL_TYPES: Final[dict[str, str]] = {",
            *(f"    {name!r}: {model_type!r}," for name, model_type in sorted(architectures.items())),
            "}",
            '"""GGUF architecture to model type, where the two differ."""',
            "",
            "MARKERS: Final[dict[str, str]] = {",
            *(f"    {marker!r}: {meaning!r}," for marker, meaning in _markers(entries)),
            "}",
            '"""Marker of calls or reasoning to its meaning, of all families: those in brackets with a name."""',
            "",
            "CALLS: Final[dict[tuple[str, ...], tuple[str, ...]]] = {",
            *(f"    {markers!r}: {tuple(names)!r}," for markers, names in sorted(_calls(entries).items())),
            "}",
            '"""Markers of a call to the tool formats that write them; those that most engines know come first."""',
            "",
        ]
    )


def _rows(found: dict[str, tuple[Entry, ...]]) -> Iterator[str]:
    for module, group in found.items():
        yield f"    {module!r}: ("
        for entry in group:
            row = (entry.kind, entry.name, entry.aliases, entry.models, entry.model_types, entry.verified)
            yield f"        {row!r},"
        yield "    ),"


_NAMED = re.compile(r"[<\[]\W*\w{4}.*", re.DOTALL)
_SHOWN = 3


def _markers(entries: list[Entry]) -> Iterator[tuple[str, str]]:
    """Yield each marker and its meaning, with the formats that have it; those that most engines know come first."""
    known: dict[str, tuple[str, dict[str, None]]] = {}
    for entry in sorted(entries, key=lambda entry: (-len(entry.engines), entry.name)):
        for marker, meaning in markers_of(entry.format).items():
            if _NAMED.fullmatch(marker):
                known.setdefault(marker, (meaning, {}))[1][entry.name] = None
    for marker, (meaning, names) in sorted(known.items()):
        shown = ", ".join(list(names)[:_SHOWN])
        yield marker, f"{meaning} in {shown}" + (" and others" if len(names) > _SHOWN else "")


def _calls(entries: list[Entry]) -> dict[tuple[str, ...], list[str]]:
    found: dict[tuple[str, ...], list[str]] = {}
    for entry in sorted(entries, key=lambda entry: (-len(entry.engines), entry.name)):
        markers = call_markers(entry.format) if entry.kind == "tool" and entry.verified else ()
        if markers and entry.format.channels is None:
            found.setdefault(markers, []).append(entry.name)
    return found


def main() -> int:
    path = Path(next(iter(formats.__path__))) / "_index.py"
    try:
        found = families()
    except FormatError as error:
        sys.exit(f"error: {error}")
    path.write_text(index_module(found), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
