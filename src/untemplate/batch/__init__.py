"""Parsing many outputs: rows of a program, files of rows, and data sets of Ray.

>>> from untemplate.batch import parse_many
>>> rows = [{"output": '<tool_call>{"name": "f", "arguments": {}}</tool_call>'}, {"output": 7}]
>>> for record in parse_many(rows, format="hermes"):
...     print(record.row, record.statuses, record.error and record.error.problem)
1 ['ok'] None
2 [] expected text, got a number

* Every row becomes one `Record`, in order. A row that cannot be parsed becomes a record with an error.
* `parse_files` reads and writes files, with all cores;
  ``untemplate.batch.ray.parse_dataset`` uses a cluster.
"""

from ._files import Progress, parse_files, read_records
from ._many import parse_many, settings_for
from ._rows import Columns, Record, RowError, RowParser, Settings, encode_record
from ._summary import Summary

__all__ = [
    "Columns",
    "Progress",
    "Record",
    "RowError",
    "RowParser",
    "Settings",
    "Summary",
    "encode_record",
    "parse_files",
    "parse_many",
    "read_records",
    "settings_for",
]
