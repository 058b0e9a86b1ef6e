"""The format of rows, guessed from the first of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, tee
from typing import Any, Final

import msgspec

from .._internal.guess import Guess, Sample, guess_many
from .._internal.saved import OUTPUT
from ..formats import named
from ._rows import Columns, RowParser, Settings, lacks_output
from ._sources import first_pieces, rows_of

__all__ = ["GUESSED", "format_of", "format_of_rows", "samples_in", "samples_of"]

GUESSED: Final = 1_000
"""Rows from which a format is guessed."""


def format_of_rows(paths: Sequence[str], columns: Columns, most: int = GUESSED) -> tuple[list[Guess], list[Sample]]:
    """Return formats for the rows of files, the best one first, and the outputs that were read.

    Args:
        paths: files, as for `parse_files`.
        columns: names of the columns.
        most: number of outputs to read, from the first file on.

    Raises:
        ValueError: no row has an output.
        OSError: a file cannot be read.
        ModuleNotFoundError: a package is missing.
    """
    return format_of(_rows_of(paths, most), columns, most, ", ".join(paths))


def format_of(
    rows: Iterable[tuple[int, Any]], columns: Columns, most: int, where: str
) -> tuple[list[Guess], list[Sample]]:
    """Return formats for numbered rows, as `format_of_rows`. ``where``: the name of the rows in errors."""
    first, rows = tee(rows)
    samples = list(islice(samples_in(rows, columns), most))
    if not samples:
        row = next((values for _, values in first), None)
        name = columns.output or OUTPUT
        raise ValueError(f"{where}: no row has an output in column {name!r} ({lacks_output(row, columns.output)})")
    return guess_many(samples), samples


def _rows_of(paths: Sequence[str], most: int) -> Iterator[tuple[int, Any]]:
    return (row for path in paths for piece in first_pieces(path, most) for row in rows_of(piece))


def samples_of(paths: Sequence[str], columns: Columns, most: int) -> Iterator[Sample]:
    """Yield the outputs of files, at least so many where they have them; rows without one are left out."""
    return samples_in(_rows_of(paths, most), columns)


def samples_in(rows: Iterable[tuple[int, Any]], columns: Columns) -> Iterator[Sample]:
    """Yield the outputs of numbered rows; rows without one are left out."""
    plain = msgspec.structs.replace(columns, ids=None, format=None)
    reader = RowParser(Settings(format=named("passthrough"), columns=plain))
    for row, values in rows:
        sample = reader.sample(values, row)
        if sample is not None:
            yield sample
