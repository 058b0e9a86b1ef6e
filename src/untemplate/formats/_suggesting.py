"""The entries of the catalogue that a model's id and type suggest."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Final

from ..errors import FormatError, IncompatibleFormatsError
from ..format import Format
from ._family import Kind
from ._registry import IndexRow, lookup, named, rows

__all__ = ["BY_TYPE", "ranked", "suggested"]

_SEPARATORS: Final = re.compile(r"[^a-z0-9]+")
_ID_RANK: Final = 100
"""Added to the rank of a matching id. An id counts more than a type: Qwen3-Coder is of type ``qwen3_moe`` as well."""
BY_TYPE: Final = "model type"
"""Begins the reason of a suggestion that rests on nothing but the type."""
_MAX_TOOLS: Final = 2
"""Most tool entries that are suggested for one model."""


def suggested(model: str | os.PathLike[str] | None, model_type: str | None) -> Iterator[tuple[str, Format, str]]:
    """Yield (name, Format, reason) of the catalogue entries that a model's id and type suggest, most specific first."""
    tools: list[tuple[IndexRow | None, str]] = [*ranked("tool", model, model_type)[:_MAX_TOOLS]]
    reasoning, why_reasoning = next(iter(ranked("reasoning", model, model_type)), (None, ""))
    given: set[str] = set()
    for tool, why in tools or [(None, "")]:
        found = _combined(tool, reasoning)
        if found is not None and found[0] not in given:
            given.add(found[0])
            yield *found, why or why_reasoning


def _combined(tool: IndexRow | None, reasoning: IndexRow | None) -> tuple[str, Format] | None:
    """Return the name and the Format of both entries together; of the tool entry alone if they do not fit."""
    if tool is None:
        return None if reasoning is None else (reasoning.name, lookup("reasoning", reasoning.name).format)
    if reasoning is None:
        return tool.name, lookup("tool", tool.name).format
    try:
        fmt = named(tool.name, reasoning=reasoning.name)
    except (IncompatibleFormatsError, FormatError):
        return tool.name, lookup("tool", tool.name).format
    return fmt.name, fmt


def ranked(kind: Kind, model: str | os.PathLike[str] | None, model_type: str | None) -> list[tuple[IndexRow, str]]:
    """Return the entries that id or type suggest, the most specific first, each with the reason. Imports no family."""
    identifier = "" if model is None else os.fspath(model)
    found = [(*_fit(row, identifier, model_type), row) for row in rows() if row.kind == kind and row.verified]
    found.sort(key=lambda item: -item[0])
    return [(row, why) for rank, why, row in found if rank]


def _fit(row: IndexRow, identifier: str, model_type: str | None) -> tuple[int, str]:
    """Return the rank of an entry for an id and a type, and the reason; 0 if neither suggests it."""
    length, pattern = max(((_matched(identifier, pattern), pattern) for pattern in row.models), default=(0, ""))
    if length:
        return length + _ID_RANK, f"{identifier} matches {pattern}"
    if model_type and (model_type in row.model_types or _same_word(model_type, (row.name, *row.aliases))):
        return 1, f"{BY_TYPE} {model_type}"
    return 0, ""


def _matched(identifier: str, pattern: str) -> int:
    """Return the number of literal characters in a pattern that an id, or its last part, matches; 0 if it does not."""
    if not identifier:
        return 0
    name = identifier.rstrip("/").rpartition("/")[2]
    for text, wanted in ((identifier, pattern), (name, pattern.rpartition("/")[2])):
        if wanted.strip("*") and fnmatchcase(text.lower(), wanted.lower()):
            return len(pattern.replace("*", ""))
    return 0


def _same_word(model_type: str, names: tuple[str, ...]) -> bool:
    """True if one of the names is this model type, case and punctuation aside."""
    word = _SEPARATORS.sub("", model_type.lower())
    return any(_SEPARATORS.sub("", name.lower()) == word for name in names)
