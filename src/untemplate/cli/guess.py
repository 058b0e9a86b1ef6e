"""``untemplate guess``: rank the formats for an output whose format is not known."""

from __future__ import annotations

import argparse
from typing import Any, Final

from ..guess import Guess, guess
from .common import UsageError, note, print_json, print_text, quiet, read, read_tools, table, text_of

_SHOWN: Final = 10


def run(arguments: argparse.Namespace) -> None:
    text = text_of(read(arguments.file, "FILE"))
    tools = None if arguments.tools is None else read_tools(arguments.tools)
    try:
        with quiet():
            ranked = guess(text, tools)
    except ValueError as error:
        raise UsageError(f"--tools {arguments.tools}: {error}") from None
    shown = ranked if arguments.all else ranked[:_SHOWN]
    if arguments.json:
        print_json([_plain(one) for one in shown], indent=None)
        return
    heads = ("FORMAT", "CALLS", "PROBLEMS", "MARKERS LEFT", "REASONING", "ENGINES")
    print_text(table(heads, [_row(one) for one in shown]))
    if not ranked[0].is_evident:
        note("the output has no marker or call of any format, so every format reads it as content")


def _plain(one: Guess) -> dict[str, Any]:
    return {
        "format": one.format,
        "reasoning": one.reasoning,
        "calls": one.calls,
        "problems": one.problems,
        "markers_left": one.left_over,
        "markup": one.markup,
        "engines": one.engines,
        "message": one.parsed.message(),
    }


def _row(one: Guess) -> tuple[str, ...]:
    thinks = "yes" if one.parsed.reasoning else "no"
    return one.format, str(one.calls), str(one.problems), str(one.left_over), thinks, str(one.engines)
