"""Run any parser over vectors: raw outputs, and the messages that they mean.

* A parser is a function from requests to answers, one for each, in order. `command` makes one of a program that reads
  and writes lines of JSON; `own_parser` is untemplate's.
* Each vector is read whole, and in random pieces that depend on its id only. A stream must give the same message.
* An answer is right, differs in outer white space only, is wrong, or reports that the vector is not supported.
"""

from __future__ import annotations

from .parsers import CommandError, Parser, command, own_parser
from .report import Report, report_of
from .run import Outcome, Result, run, with_tools

__all__ = [
    "CommandError",
    "Outcome",
    "Parser",
    "Report",
    "Result",
    "command",
    "own_parser",
    "report_of",
    "run",
    "with_tools",
]
