"""Options of ``untemplate parse``."""

from __future__ import annotations

import argparse
from typing import Final

from .. import which_format
from ..common import positive
from .common import CODES, add_policy, add_tools

__all__ = ["CODES", "DESCRIPTION", "EPILOG", "add"]

DESCRIPTION: Final = """\
Parse one raw model output and print the assistant message as JSON. The output is read byte by byte, special tokens
included; bytes that are not UTF-8 are kept and printed as \\udcXX. The ids of calls are the same in every run. The
format is named (--format, --enforce-parser), inferred from a chat template (--template), or selected for a model by
measuring formats against its own template, as `untemplate explain` shows (--model). Without any of these it is guessed
from the output, if only one reading fits; not with --stream. FILE may be a saved answer of an
API (Chat Completions, Completions, Messages, Responses, Ollama) whose content has the markers.
"""
EPILOG: Final = """\
examples:
  untemplate parse --format hermes --reasoning qwen3 output.txt
  untemplate parse --format qwen3_coder --tools tools.json --prompt prompt.txt output.txt
  untemplate parse --template chat_template.jinja --split 1 --stream output.txt
  untemplate parse --model ./my-model --policy unknown_tools=drop --policy repair=syntax output.txt
  untemplate parse --format kimi_k2 --json output.txt | jq .diagnostics
  untemplate parse --format hermes --explain --html output.txt > output.html
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="raw output (default: -, stdin)")
    parser.add_argument("--raw", action="store_true", help="take FILE for the raw output, even if it is JSON of an API")
    which_format.add_arguments(parser)
    what = parser.add_argument_group("Prompt and request")
    add_tools(what)
    what.add_argument(
        "--prompt", metavar="FILE", help="rendered prompt; its end decides whether the output begins in reasoning"
    )
    what.add_argument(
        "--finish-reason",
        metavar="R",
        help="finish reason of the engine: stop, length, ... (default: that of a saved answer, or stop)",
    )
    how = parser.add_argument_group("Policies and output")
    add_policy(how)
    shown = how.add_mutually_exclusive_group()
    shown.add_argument("--stream", action="store_true", help="print deltas as they come, one JSON object per line")
    shown.add_argument(
        "--explain", action="store_true", help="print the raw text with its regions marked, and the diagnostics"
    )
    how.add_argument(
        "--html", action="store_true", help="with --explain: print the view of the inspector as one file, for a browser"
    )
    how.add_argument(
        "--split",
        type=positive,
        metavar="N",
        help="feed the output in pieces of N characters (the message is the same)",
    )
    how.add_argument(
        "--json",
        action="store_true",
        help="print one line: message, finish_reason, statuses, reasons and repairs of calls, diagnostics; with "
        "--explain spans",
    )
