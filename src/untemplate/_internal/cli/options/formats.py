"""Options of ``untemplate formats``."""

from __future__ import annotations

import argparse
from typing import Final

from ..which_format import completed_by, names_and_files
from .common import CODES

__all__ = ["CODES", "DESCRIPTION", "EPILOG", "add"]

DESCRIPTION: Final = """\
List the catalogue of formats, or show one of them: its evidence, its markers, and a turn as its models write it. With
--json, NAME prints the Format itself, which `untemplate parse --format FILE.json` reads; --schema prints the JSON
Schema of such a file. For a folder or a GGUF file the format that it would be parsed with is shown, and why.
"""
EPILOG: Final = """\
examples:
  untemplate formats --kind tool
  untemplate formats hermes --json > hermes.json
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    name = parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME|MODEL",
        help="format, or hub id, folder or type of a model (default: list all)",
    )
    completed_by(names_and_files, name)
    parser.add_argument("--kind", choices=["reasoning", "tool"], help="kind of formats to list")
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of a Format as JSON")
    parser.add_argument("--json", action="store_true", help="print the list, or the Format of NAME, as JSON")
