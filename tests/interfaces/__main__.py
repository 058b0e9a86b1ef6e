"""``python -m tests.interfaces``: print the table, with the verdict of each row."""

from __future__ import annotations

from .test_rows import tables

for table in tables():
    print(f"\n{table.name}: {len(table.rows)} statements")
    for row in table.rows:
        print(f"  {row.verdict:8} {row.statement}  [{row.code}]")
