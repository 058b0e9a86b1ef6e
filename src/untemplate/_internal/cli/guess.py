"""``untemplate guess``: rank the formats for outputs whose format is not known."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, Final

from ..guess import Guess, Sample, guess, meaning
from .common import UsageError, note, print_json, print_text, quiet, read, read_tools, reason, table, text_of

_SHOWN: Final = 10
_ROWS: Final = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet", ".pq", ".csv")
"""Endings of files that have an output in each row."""
_PLAIN: Final = "no marker or call of any format, so every format reads it as content"
_WIDTH: Final = 60


def run(arguments: argparse.Namespace) -> None:
    if arguments.file.endswith(_ROWS):
        _run_rows(arguments)
        return
    text = text_of(read(arguments.file, "FILE"))
    tools = None if arguments.tools is None else read_tools(arguments.tools)
    try:
        with quiet():
            ranked = guess(text, tools)
    except ValueError as error:
        raise UsageError(f"--tools {arguments.tools}: {error}") from None
    shown = ranked if arguments.all else ranked[:_SHOWN]
    if arguments.json:
        print_json([{**_plain(one), "message": one.parsed.message()} for one in shown], indent=None)
        return
    heads = ("FORMAT", "CALLS", "PROBLEMS", "MARKERS LEFT", "REASONING", "ENGINES")
    print_text(table(heads, [_row(one) for one in shown]))
    if not ranked[0].is_evident:
        note(f"the output has {_PLAIN}")


def _plain(one: Guess) -> dict[str, Any]:
    return {
        "format": one.format,
        "reasoning": one.reasoning,
        "calls": one.calls,
        "problems": one.problems,
        "markers_left": one.left_over,
        "markup": one.markup,
        "engines": one.engines,
    }


def _row(one: Guess) -> tuple[str, ...]:
    thinks = "yes" if one.parsed.reasoning else "no"
    return one.format, str(one.calls), str(one.problems), str(one.left_over), thinks, str(one.engines)


# -- Files of rows ------------------------------------------------------------------------------------------------


def _run_rows(arguments: argparse.Namespace) -> None:
    from ...batch import Columns
    from ...batch._guessing import format_of_rows

    if arguments.tools is not None:
        raise UsageError("--tools is for one output; rows have a column of tools")
    columns = Columns(output=arguments.output_column, tools=arguments.tools_column, prompt=arguments.prompt_column)
    try:
        with quiet():
            ranked, samples = format_of_rows([arguments.file], columns, arguments.rows)
    except OSError as error:
        raise UsageError(f"FILE {arguments.file}: {reason(error)}") from None
    except (ValueError, ModuleNotFoundError) as error:
        raise UsageError(str(error)) from None
    groups = grouped(ranked)
    shown = groups if arguments.all else groups[:_SHOWN]
    if arguments.json:
        print_json([_plain_group(group, groups[0][0], samples) for group in shown], indent=None)
        return
    heads = ("FORMAT", "CALLS", "PROBLEMS", "MARKERS LEFT", "REASONING", "DIFFERS IN ROW", "SAME READING")
    print_text(table(heads, [_group_row(group, groups[0][0], samples) for group in shown]))
    for line in _differences(groups, samples):
        print_text(line)
    if not ranked[0].is_evident:
        note(f"no output of {len(samples):,} has a marker or call of a format; every format reads them as content")
        return
    print_text(f"\n--format {ranked[0].format}")
    if len(samples) == arguments.rows:
        note(f"read the first {len(samples):,} rows (--rows)")


def grouped(ranked: Sequence[Guess]) -> list[list[Guess]]:
    """Return the formats in groups that read every output alike, the best group first."""
    groups: dict[tuple[Any, ...], list[Guess]] = {}
    for one in ranked:
        groups.setdefault(tuple(map(meaning, one.readings)), []).append(one)
    return list(groups.values())


def _group_row(group: list[Guess], best: Guess, samples: Sequence[Sample]) -> tuple[str, ...]:
    one = group[0]
    reasoning = sum(bool(parsed.reasoning) for parsed in one.readings)
    at = best.difference(one)
    row = "-" if at is None else str(samples[at].row)
    same = ", ".join(other.format for other in group[1:])
    return one.format, str(one.calls), str(one.problems), str(one.left_over), str(reasoning), row, same


def _plain_group(group: list[Guess], best: Guess, samples: Sequence[Sample]) -> dict[str, Any]:
    at = best.difference(group[0])
    return {
        **_plain(group[0]),
        "same_reading": [other.format for other in group[1:]],
        "differs_in_row": None if at is None else samples[at].row,
    }


def _differences(groups: list[list[Guess]], samples: Sequence[Sample]) -> list[str]:
    """Return lines that show the first row that the second group of formats reads differently."""
    if len(groups) < 2:
        return []
    best, second = groups[0][0], groups[1][0]
    at = best.difference(second)
    if at is None:
        return []
    lines = ["", f"row {samples[at].row}, as {best.format} and {second.format} read it:"]
    for one in (best, second):
        thinking, content, calls = meaning(one.readings[at])
        parts = [f"reasoning {_short(thinking)}"] if thinking else []
        parts += [f"content {_short(content)}"] if content else []
        parts += [f"call {name}({_short(arguments)})" for name, arguments in calls]
        lines.append(f"  {one.format}: {', '.join(parts) or 'nothing'}")
    return lines


def _short(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= _WIDTH else shown[: _WIDTH - 4] + "...'"
