"""Each row of the tables holds, or is in the docs' list of differences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

from .table import Row, Table

TABLES = ("handlers", "parsers", "engine", "templates", "selection")
DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("vllm.md", "migration.md", "from-llamacpp.md", "from-vllm-rs.md")


@cache
def tables() -> list[Table]:
    return [import_module(f".{name}", __package__).TABLE for name in TABLES]


@cache
def differences() -> str:
    """Return the pages that list what differs, each run of white space as one space."""
    return re.sub(r"\s+", " ", "".join((DOCS / page).read_text("utf-8") for page in PAGES))


def rows() -> Iterator[tuple[str, Row]]:
    for table in tables():
        for number, row in enumerate(table.rows):
            yield f"{table.name}-{number}", row


@pytest.mark.parametrize("row", [pytest.param(row, id=name) for name, row in rows()])
def test_row(row: Row) -> None:
    module, _, name = row.code.partition(":")
    attrgetter(name)(import_module(module))  # It exists.
    found, expected = row.check()
    assert found == expected, row.statement
    assert not row.differs or row.differs in differences(), f"not in the list of differences: {row.statement}"


def test_statements_are_rows_of_their_own() -> None:
    said = [(table.name, row.statement) for table in tables() for row in table.rows]
    assert len(set(said)) == len(said), sorted(one for one in said if said.count(one) > 1)
