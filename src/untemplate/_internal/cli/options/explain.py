"""Options of ``untemplate explain``."""

from __future__ import annotations

import argparse
from typing import Final

from ..which_format import completed_by, names_and_files
from .common import CODES, add_policy, add_tools

__all__ = ["CODES", "DESCRIPTION", "EPILOG", "add"]

DESCRIPTION: Final = """\
Show what a model writes, and the evidence: what its chat template shows, which messages parsed back after rendering,
which format was selected and which came second, an example turn with its regions marked, and the policies in force.
MODEL is a name of `untemplate formats`, a folder, a GGUF file or a hub id; TEMPLATE is a
template, a tokenizer_config.json or a chat_template.json (-: stdin).
"""
EPILOG: Final = """\
examples:
  untemplate explain chat_template.jinja
  untemplate explain ./my-model -v                    each comparison of the analysis
  untemplate explain Qwen/Qwen3-8B --json | jq .selection.chosen
  untemplate explain hermes --parser                  the compiled program
  untemplate explain hermes --grammar lark --tools tools.json --tool-choice required --strict
  untemplate explain hermes --grammar --json | jq '.requests["llama.cpp"]'
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    source = parser.add_argument("source", metavar="MODEL|TEMPLATE", help="model or template to explain")
    parser.add_argument("-v", "--verbose", action="store_true", help="print each comparison of the analysis as well")
    enforced = parser.add_argument("--enforce-parser", metavar="NAME|FILE.json", help="format to measure instead")
    completed_by(names_and_files, source, enforced)
    add_policy(parser)
    add_tools(parser, "tools for --grammar: a JSON list, or a request that contains one (default: samples)")
    parser.add_argument(
        "--parser", action="store_true", help="print the compiled program: states, rules, call syntaxes"
    )
    parser.add_argument(
        "--grammar",
        nargs="?",
        const="gbnf",
        type=_dialect,
        metavar="DIALECT",
        help="print the grammar for constrained decoding: gbnf (default), lark, structural_tag",
    )
    parser.add_argument(
        "--json", action="store_true", help="print everything, or with --grammar only the grammar, as one JSON object"
    )
    parser.add_argument(
        "--tool-choice",
        metavar="CHOICE",
        help="tool choice for --grammar: auto (default), required, none, or the name of the tool to call",
    )
    parser.add_argument("--strict", action="store_true", help="make arguments follow their schemas, for --grammar")


def _dialect(text: str) -> str:
    if text not in ("gbnf", "lark", "structural_tag"):
        raise argparse.ArgumentTypeError(f"{text!r} is not one of: gbnf, lark, structural_tag")
    return text
