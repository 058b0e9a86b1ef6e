"""The format of rows, guessed from the first of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from .._internal.guess import Guess, Sample, guess_many, of_another_kind
from .._internal.saved import OUTPUT
from ..formats import named
from ._columns import Refused, lacks_output
from ._rows import Columns, RowParser, Settings
from ._sources import first_pieces, rows_of

__all__ = ["GUESSED", "Ranking", "format_of", "format_of_rows"]

GUESSED: Final = 1_000
"""Rows from which a format is guessed."""


class Ranking(NamedTuple):
    """Formats for rows, the best one first, and what they are for."""

    formats: list[Guess]
    samples: list[Sample]
    """The outputs that were read."""
    skipped: str
    """A line about rows between them that cannot be read; empty without any."""

    @property
    def mixed(self) -> str:
        """A line about rows that another format reads better than the first; empty without any."""
        found = of_another_kind(self.formats)
        if found is None:
            return ""
        other, rows = found
        return (
            f"{len(rows):,} of {len(self.samples):,} rows, the first is row {self.samples[rows[0]].row}, seem to be of "
            f"another model: {other.format} reads them; with --format-column NAME each row names its format, and if "
            "one model writes both, a Format can read both"
        )


def format_of_rows(paths: Sequence[str], columns: Columns, most: int = GUESSED) -> Ranking:
    """Return formats for the rows of files.

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


def format_of(rows: Iterable[tuple[int, Any]], columns: Columns, most: int, where: str) -> Ranking:
    """Return formats for numbered rows, as `format_of_rows`. ``where``: the name of the rows in errors."""
    plain = msgspec.structs.replace(columns, ids=None, format=None)
    reader = RowParser(Settings(format=named("passthrough"), columns=plain))
    samples: list[Sample] = []
    first: Any = None
    skipped, problem = 0, ""
    for row, values in rows:
        first = first or values
        try:
            samples.append(reader.sample(values, row))
        except Refused as refused:
            skipped += 1
            problem = problem or _said_of(row, refused)
        if len(samples) == most:
            break
    if not samples:
        reason = lacks_output(first, columns.output)
        if not reason:
            raise ValueError(f"{where}: no row can be read; {problem}")
        raise ValueError(f"{where}: no row has an output in column {(columns.output or OUTPUT)!r} ({reason})")
    return Ranking(guess_many(samples), samples, f"{skipped:,} unreadable rows left out; {problem}" if skipped else "")


def _said_of(row: int, refused: Refused) -> str:
    column = "" if refused.problem.startswith(refused.column) else f"{refused.column}: "
    return f"row {row}: {column}{refused.problem}"


def _rows_of(paths: Sequence[str], most: int) -> Iterator[tuple[int, Any]]:
    return (row for path in paths for piece in first_pieces(path, most) for row in rows_of(piece))
