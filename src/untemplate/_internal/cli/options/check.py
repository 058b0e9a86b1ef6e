"""Options of ``untemplate check``."""

from __future__ import annotations

import argparse
from typing import Final

DESCRIPTION: Final = """\
Test a live server with OpenAI's API. Its own model is made to write known texts, by the means that the server has
(grammars, prefixes); the messages that come back, whole and streamed, are compared with the expected ones. Other checks
need no such means: streams, tool choice, cut outputs, stop strings, usage, errors, and the APIs Responses and Messages.
Verdicts: pass, soft (white space, or a reading on which servers differ), fail, and cannot be tested here.
"""
EPILOG: Final = """\
examples:
  untemplate check --base-url http://localhost:8000/v1
  untemplate check --base-url http://localhost:8000/v1 --format hermes+qwen3 --html report.html --junit junit.xml
  untemplate check --base-url https://host/v1 --model NAME --api-key-env HOST_KEY --rate 30 --token-budget 200000
  untemplate check --base-url http://localhost:8000/v1 --only given/ --resume results.jsonl
  untemplate check --base-url https://host/v1 --model kimi-k2 --vendor kimi --samples samples.jsonl --only vendor/

"""
CODES: Final = """\
exit codes: 0 nothing failed; 1 the result could not be written; 2 a wrong option, or a server that cannot be checked;
3 a check failed; 130 interrupted (--resume FILE goes on from there).
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    from ..check import add_arguments

    add_arguments(parser)
