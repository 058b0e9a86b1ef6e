"""Arrow tables: results as columns. Nested values are JSON text, so that all rows have one type."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import msgspec

from .rows import Record, RowParser

__all__ = ["NESTED", "parse_table", "schema", "table_of"]

NESTED: Final = ("tool_calls", "diagnostics", "spans", "tokens", "straddling", "error", "kept")
"""Columns of results that hold JSON text."""


def schema() -> Any:
    """Return the Arrow schema of results."""
    arrow = import_module("pyarrow")
    text, number = arrow.string(), arrow.int64()
    return arrow.schema(
        [("row", number), ("file", text), ("format", text), ("content", text), ("reasoning", text),
         ("finish_reason", text), ("statuses", arrow.list_(text)), *((name, text) for name in NESTED)]
    )  # fmt: skip


def table_of(records: Sequence[Record]) -> Any:
    """Return records as an Arrow table."""
    return import_module("pyarrow").Table.from_pylist([_flat(record) for record in records], schema=schema())


def parse_table(parser: RowParser, table: Any) -> Any:
    """Return an Arrow table with the results of its rows as additional columns, in place of columns of these names.

    The columns are ``content``, ``reasoning``, ``tool_calls``, ``finish_reason``, ``statuses``, ``diagnostics`` and
    ``error``; with ``spans`` also ``spans``, ``tokens`` and ``straddling``.

    Args:
        parser: made once for many tables.
        table: a row for each output.
    """
    records = [parser.record(values, row) for row, values in enumerate(table.to_pylist(), 1)]
    for record in records:
        if record.error is not None:  # its row is in the table already
            record.error = msgspec.structs.replace(record.error, input=None)
    results = table_of(records)
    names = [name for name in results.column_names if name not in _PLACE and (parser.spans or name not in _SPANS)]
    for name in names:
        if name in table.column_names:
            table = table.drop_columns([name])
        table = table.append_column(results.schema.field(name), results.column(name))
    return table


_PLACE: Final = ("row", "file", "format", "kept")
_SPANS: Final = ("spans", "tokens", "straddling")


def _flat(record: Record) -> dict[str, Any]:
    message = record.message or {}
    nested = {name: message.get(name) if name == "tool_calls" else getattr(record, name) for name in NESTED}
    encoded = {name: msgspec.json.encode(value, enc_hook=repr).decode() for name, value in nested.items() if value}
    return {
        "row": record.row,
        "file": record.file or None,
        "format": record.format or None,
        "content": message.get("content"),
        "reasoning": message.get("reasoning", message.get("reasoning_content")),
        "finish_reason": record.finish_reason or None,
        "statuses": record.statuses,
        **encoded,
    }
