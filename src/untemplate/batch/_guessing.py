"""The format of rows, guessed from the first of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import msgspec

from .._internal.guess import Guess, Sample, guess_many
from ..formats import named
from ._rows import Columns, RowParser, Settings
from ._sources import first_pieces, rows_of

__all__ = ["GUESSED", "format_of_rows", "samples_of"]

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
    samples = list(islice(samples_of(paths, columns, most), most))
    if not samples:
        raise ValueError(f"{', '.join(paths)}: no row has an output in column {columns.output or 'output'!r}")
    return guess_many(samples), samples


def samples_of(paths: Sequence[str], columns: Columns, most: int) -> Iterator[Sample]:
    """Yield the outputs of files, at least so many where they have them; rows without one are left out."""
    plain = msgspec.structs.replace(columns, ids=None, format=None)
    reader = RowParser(Settings(format=named("passthrough"), columns=plain))
    for path in paths:
        for piece in first_pieces(path, most):
            for row, values in rows_of(piece):
                sample = reader.sample(values, row)
                if sample is not None:
                    yield sample
