"""Arrow tables: results as columns. Nested values are JSON text, so that all rows have one type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

import msgspec

from ._columns import with_surrogates
from ._rows import Record, RowParser
from ._sources import Piece, is_parquet

__all__ = [
    "NESTED",
    "fitted",
    "joint_schema",
    "parse_table",
    "refused_names",
    "schema",
    "table_of",
    "types_of",
]

NESTED: Final = ("tool_calls", "reasons", "diagnostics", "spans", "tokens", "straddling", "error")
"""Columns of results that hold JSON text."""


def schema() -> Any:
    """Return the Arrow schema of results."""
    arrow = import_module("pyarrow")
    text, number = arrow.string(), arrow.int64()
    return arrow.schema(
        [("row", number), ("file", text), ("format", text), ("content", text), ("reasoning", text),
         ("finish_reason", text), ("statuses", arrow.list_(text)), *((name, text) for name in NESTED)]
    )  # fmt: skip


def table_of(records: Sequence[Record], types: Mapping[str, Any] | None = None) -> Any:
    """Return records as an Arrow table. Columns that were kept have their type; values of several types are JSON.

    Args:
        records: results.
        types: types of the input's columns, where it has them.
    """
    table = import_module("pyarrow").Table.from_pylist([_flat(record) for record in records], schema=schema())
    names = dict.fromkeys(name for record in records for name in record.kept if name not in table.column_names)
    for name in names:
        values = [_plain(record.kept.get(name)) for record in records]
        column, field = _column(name, values, (types or {}).get(name))
        table = table.append_column(field, column)
    return table


_JSON: Final = {"untemplate": "json"}
"""Marks a column of JSON text whose values have several types."""


def _column(name: str, values: list[Any], type: Any) -> tuple[Any, Any]:
    arrow = import_module("pyarrow")
    try:
        column = arrow.array(values, type=type)
        return column, arrow.field(name, column.type)
    except (arrow.ArrowException, TypeError, ValueError, OverflowError):
        column = arrow.array(list(map(_json, values)), type=arrow.string())
        return column, arrow.field(name, column.type, metadata=_JSON)


def _plain(value: Any) -> Any:
    """Return a value that was kept, decoded."""
    if not isinstance(value, msgspec.Raw):
        return value
    found = with_surrogates(bytes(value))
    return msgspec.json.decode(value) if found is None else found


def _json(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value, enc_hook=repr).decode()


def types_of(piece: Piece) -> dict[str, Any]:
    """Return the types of a Parquet file's columns; nothing for other files."""
    if not is_parquet(piece.file) or not piece.data:
        return {}
    return {field.name: field.type for field in import_module("pyarrow").ipc.open_stream(piece.data).schema}


def refused_names(keep: Sequence[str]) -> list[str]:
    """Return the columns to keep that a table of results has itself."""
    return [name for name in keep if name in schema().names]


def joint_schema(schemas: Iterable[Any]) -> Any:
    """Return a schema that takes the tables of all pieces. A column with several types is JSON text."""
    arrow = import_module("pyarrow")
    joint: dict[str, Any] = {field.name: field for field in schema()}
    for one in schemas:
        for field in one:
            before = joint.setdefault(field.name, field)
            if before.equals(field) or _is_json(before):
                continue
            try:
                if _is_json(field):
                    raise arrow.ArrowInvalid("another type")
                both = [arrow.schema([before]), arrow.schema([field])]
                joint[field.name] = arrow.unify_schemas(both, promote_options="permissive").field(0)
            except (arrow.ArrowInvalid, arrow.ArrowTypeError):
                joint[field.name] = arrow.field(field.name, arrow.string(), metadata=_JSON)
    nulls = [field for field in joint.values() if arrow.types.is_null(field.type)]
    joint |= {field.name: arrow.field(field.name, arrow.string()) for field in nulls}
    return arrow.schema(list(joint.values()))


def _is_json(field: Any) -> bool:
    return (field.metadata or {}).get(b"untemplate") == b"json"


def fitted(table: Any, whole: Any) -> Any:
    """Return a table with the columns of a schema."""
    arrow = import_module("pyarrow")
    columns = []
    for field in whole:
        if field.name not in table.column_names:
            columns.append(arrow.nulls(table.num_rows, field.type))
            continue
        column = table.column(field.name)
        if _is_json(field) and not _is_json(table.schema.field(field.name)):
            column = arrow.array(list(map(_json, column.to_pylist())), type=arrow.string())
        columns.append(column.cast(field.type))
    return arrow.table(columns, schema=whole)


def parse_table(parser: RowParser, table: Any) -> Any:
    """Return an Arrow table with the results of its rows as additional columns, in place of columns of these names.

    The columns are ``content``, ``reasoning``, ``tool_calls``, ``finish_reason``, ``statuses``, ``reasons``,
    ``diagnostics`` and ``error``; with ``spans`` also ``spans``, ``tokens`` and ``straddling``.

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


_PLACE: Final = ("row", "file", "format")
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
