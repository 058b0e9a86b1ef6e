"""Options of ``untemplate batch``."""

from __future__ import annotations

import argparse
from typing import Final

from .. import which_format
from ..common import positive
from .common import COLUMNS, STRICT_CODES, add_policy, add_summary

DESCRIPTION: Final = """\
Parse many raw outputs, one a row, on all cores. Without a format it is guessed from the first 1,000 rows. INPUT and
OUTPUT are JSONL (plain, .gz, .zst) or Parquet files, INPUT also CSV files, stdin (-) and names that fsspec opens; .zst
and Parquet need pyarrow. Every row becomes a record with its
row number, in order: the message, finish reason, statuses of calls and diagnostics. A row that cannot be parsed becomes
a record with an error. Results are written to OUTPUT.partial first, so that an interrupted run can be resumed.
"""
EPILOG: Final = """\
examples:
  untemplate batch outputs.jsonl.gz -o messages.jsonl.gz --format hermes --reasoning qwen3
  untemplate batch rows.parquet -o messages.parquet --model ./my-model --output-column completion --keep id
  untemplate batch rows.jsonl -o messages.jsonl --format-column family --strict --report report.html
  untemplate batch rollouts.jsonl -o parsed.jsonl --format hermes --tokenizer ./my-model --ids-column ids --spans
"""
CODES: Final = STRICT_CODES


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "input",
        nargs="+",
        metavar="INPUT",
        help="rows: .jsonl, .jsonl.gz, .jsonl.zst, .parquet, .csv; -: JSONL from stdin; s3://…, hf://… (fsspec)",
    )
    parser.add_argument("-o", "--output", required=True, metavar="OUTPUT", help="results; the name decides their kind")
    which_format.add_arguments(parser)
    parser.add_argument("--format-column", metavar="NAME", help="column with the name of each row's format")
    columns = parser.add_argument_group("Columns (default: those of these names, where a row has them)")
    for name, what in COLUMNS.items():
        columns.add_argument(f"--{name.replace('_', '-')}-column", metavar="NAME", help=what)
    columns.add_argument(
        "--keep", action="append", default=[], metavar="NAME", help="column to copy to the results (repeatable; *: all)"
    )
    how = parser.add_argument_group("Policies and output")
    add_policy(how)
    how.add_argument("--tokenizer", metavar="ID|PATH", help="tokenizer.json, folder or hub id, for token ids")
    how.add_argument("--spans", action="store_true", help="add the regions of each output, in characters and tokens")
    how.add_argument("--processes", type=positive, metavar="N", help="number of processes (default: one for each core)")
    how.add_argument("--resume", action="store_true", help="continue an interrupted run")
    how.add_argument("--strict", action="store_true", help="exit with 3 if a row has an error or a call is not ok")
    how.add_argument("--quiet", action="store_true", help="print nothing but errors, and the summary with --json")
    add_summary(how)
