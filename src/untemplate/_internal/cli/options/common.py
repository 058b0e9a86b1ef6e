"""Parts that several commands share: exit codes for the help, and options."""

from __future__ import annotations

import argparse
from typing import Final

__all__ = ["CODES", "COLUMNS", "STRICT_CODES", "add_policy", "add_summary", "add_tools"]

CODES: Final = """\
exit codes: 0 success, even for malformed model output; 1 the result could not be written; 2 a wrong name, file or
option; 130 interrupted.
"""
STRICT_CODES: Final = """\
exit codes: 0 success, even for malformed model output; 1 the result could not be written; 2 a wrong name, file, column
or option; 3 no row was parsed, or with --strict a row failed or differs; 130 interrupted.
"""
COLUMNS: Final = {
    "output": "raw output",
    "ids": "token ids of the output, instead of its text",
    "tools": "tools of the request: a list, or JSON text; empty: not known",
    "prompt": "prompt, as text or token ids",
    "finish_reason": "finish reason of the engine",
}
_TOOLS: Final = "tools that were offered: a JSON list, or a request that contains one (default: any name is a tool)"


def add_tools(group: argparse._ActionsContainer, text: str = _TOOLS) -> None:
    group.add_argument("--tools", metavar="FILE", help=text)


def add_policy(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="policy, such as unknown_tools=drop (repeatable; `untemplate explain` lists them)",
    )


def add_summary(group: argparse._ActionsContainer) -> None:
    group.add_argument("--report", metavar="FILE.html", help="write the summary as a page with charts")
    group.add_argument("--json", action="store_true", help="print the summary as JSON")
