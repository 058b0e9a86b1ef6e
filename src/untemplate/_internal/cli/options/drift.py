"""Options of ``untemplate drift``."""

from __future__ import annotations

import argparse
from typing import Final

from .common import STRICT_CODES

DESCRIPTION: Final = """\
Measure how often encoding the text of sampled token ids again gives other ids. For each row with a difference, print
one JSON object: the row, the index of the first different token, and the ids around it. INPUT is as for batch.
"""
EPILOG: Final = """\
example:
  untemplate drift rollouts.jsonl --tokenizer ./my-model
"""
CODES: Final = STRICT_CODES


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("input", nargs="+", metavar="INPUT", help="rows: .jsonl, .jsonl.gz, .jsonl.zst or .parquet")
    parser.add_argument("--tokenizer", required=True, metavar="ID|PATH", help="tokenizer.json, folder or hub id")
    parser.add_argument("--ids-column", default="ids", metavar="NAME", help="token ids of the output (default: ids)")
    parser.add_argument("--strict", action="store_true", help="exit with 3 if a row differs or has an error")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
