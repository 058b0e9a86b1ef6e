"""Options of ``untemplate conform``."""

from __future__ import annotations

import argparse
from typing import Final

DESCRIPTION: Final = """\
Run a parser over the vectors of untemplate-vectors: raw outputs of models with the messages that they mean, whole and
in random pieces. The parser is a program that reads requests and writes answers as lines of JSON (docs/conform.md).
"""
EPILOG: Final = """\
examples:
  untemplate conform                                  untemplate's own parser
  untemplate conform -- node parser.js                a program
  untemplate conform --level clean --format hermes --junit results.xml -- ./my-parser
"""
CODES: Final = """\
exit codes: 0 no new failure; 1 the result could not be written; 2 a wrong option, or a program that does not keep to
the protocol; 3 vectors failed that are not known to; 130 interrupted.
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "command_line", nargs="*", metavar="COMMAND", help="program to run, after -- (default: untemplate's own parser)"
    )
    parser.add_argument(
        "--vectors", metavar="FOLDER", help="folder with vectors.jsonl and formats.json (default: the package)"
    )
    parser.add_argument("--format", action="append", default=[], metavar="NAME", help="only this format (repeatable)")
    parser.add_argument(
        "--level",
        action="append",
        default=[],
        choices=("clean", "cut", "slipped", "quoted", "hostile", "ids"),
        help="only this level (repeatable)",
    )
    parser.add_argument(
        "--rule", action="append", default=[], metavar="RULE", help="only this rule, such as M3 (repeatable)"
    )
    parser.add_argument(
        "--by", choices=("level", "rule", "format"), default="level", help="rows of the table (default: level)"
    )
    parser.add_argument("--splits", type=int, default=10, metavar="N", help="random cuts of each output (default: 10)")
    parser.add_argument(
        "--show", type=int, default=5, metavar="N", help="failures to print, the shortest first (default: 5)"
    )
    parser.add_argument("--junit", metavar="FILE", help="write the results as JUnit XML")
    parser.add_argument("--html", metavar="FILE", help="write the report as a web page")
    parser.add_argument("--badge", metavar="FILE", help="write a badge, as JSON for shields.io")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
