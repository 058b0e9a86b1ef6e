"""Options of ``untemplate stats``."""

from __future__ import annotations

import argparse
from typing import Final

from .common import CODES, add_summary

__all__ = ["CODES", "DESCRIPTION", "EPILOG", "add"]

DESCRIPTION: Final = "Count what the results of `untemplate batch` hold, with its summary."
EPILOG: Final = """\
example:
  untemplate stats messages.jsonl --report report.html
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("input", nargs="+", metavar="RESULTS", help="results of `untemplate batch`")
    add_summary(parser)
