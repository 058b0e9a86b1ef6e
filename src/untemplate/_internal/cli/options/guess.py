"""Options of ``untemplate guess``."""

from __future__ import annotations

import argparse
from typing import Final

from ..common import positive
from .common import CODES, COLUMNS, add_tools

__all__ = ["CODES", "DESCRIPTION", "EPILOG", "add"]

DESCRIPTION: Final = """\
Parse an output with every format of the catalogue and rank them: the best one leaves no marker as text, reads the most
calls and has the fewest problems (invalid calls, diagnostics, reasoning without a marker). Formats that read the same
message are ordered by the number of engines that know them.

FILE may have an output in each row (.jsonl, .jsonl.gz, .jsonl.zst, .parquet, .csv, or rows of JSON under any name). The
figures are then sums over the first rows (--rows); formats that read every row alike share a line; and the row in which
another format first differs is shown. A saved answer of an API is read where its content has the markers. The last line
is the --format to use, or the reason why none fits.

columns:
  FORMAT        name for --format, with the reasoning that fits
  CALLS         tool calls that were read
  PROBLEMS      calls that are not ok, and diagnostics but for a close too many
  MARKERS LEFT  markers that were left as text in content or reasoning
  REASONING     yes if a part was read as reasoning; of rows, their number
  ENGINES       engines that have a parser for the format
"""
EPILOG: Final = """\
examples:
  untemplate guess output.txt
  untemplate guess outputs.jsonl --rows 200
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="raw output, or a file of rows (default: -, stdin)"
    )
    add_tools(parser)
    for name in ("output", "tools", "prompt"):
        parser.add_argument(f"--{name}-column", metavar="NAME", help=f"column of rows: {COLUMNS[name]}")
    parser.add_argument(
        "--rows", type=positive, default=1_000, metavar="N", help="number of rows to read (default: 1000)"
    )
    parser.add_argument("--raw", action="store_true", help="take FILE for one raw output, whatever it looks like")
    parser.add_argument("--all", action="store_true", help="print all formats instead of the best ten")
    parser.add_argument("--json", action="store_true", help="print one line of JSON, with the message of one output")
