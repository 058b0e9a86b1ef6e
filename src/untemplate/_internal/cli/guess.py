"""``untemplate guess``: rank the formats for outputs whose format is not known."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, Final

from ...errors import FormatError
from ..backends.recognition import markers_in
from ..guess import Guess, Sample, guess_many, meaning
from ..saved import Output, answer_in, columns_in, rows_in
from .common import (
    UsageError,
    name_of,
    note,
    output_of,
    print_json,
    print_text,
    quiet,
    read,
    read_tools,
    reason,
    table,
    text_of,
)

_SHOWN: Final = 10
_ROWS: Final = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet", ".pq", ".csv")
"""Endings of files that have an output in each row. Other files are looked at."""
_PLAIN: Final = "no marker or call of any format, so every format reads it as content"
_WIDTH: Final = 60
_ALIKE: Final = 4
"""Formats that read all outputs alike and are listed (--json: all)."""


def run(arguments: argparse.Namespace) -> None:
    if arguments.file.endswith(_ROWS) and not arguments.raw:
        _print_rows(arguments, None)
        return
    text = text_of(read(arguments.file, "FILE"))
    answer = None if arguments.raw else answer_in(text)
    if answer is not None:
        _print_one(arguments, output_of(answer, arguments.file))
        return
    rows = None if arguments.raw else rows_in(text, arguments.output_column)
    if rows is None:
        _print_one(arguments, Output(text))
        return
    note(f"{name_of(arguments.file)} has rows as JSON; each is read as an output")
    _print_rows(arguments, rows)


def _print_one(arguments: argparse.Namespace, output: Output) -> None:
    tools = None if arguments.tools is None else read_tools(arguments.tools)
    try:
        with quiet():
            ranked = guess_many([Sample(output.text, tools, finish_reason=output.finish_reason or "stop")])
    except FormatError:  # of another package
        raise
    except ValueError as error:
        raise UsageError(f"--tools {arguments.tools}: {error}") from None
    shown = ranked if arguments.all else ranked[:_SHOWN]
    if arguments.json:
        print_json([{**_plain(one), "message": one.parsed.message()} for one in shown], indent=None)
        return
    heads = ("FORMAT", "CALLS", "PROBLEMS", "MARKERS LEFT", "REASONING", "ENGINES")
    print_text(table(heads, [_row(one) for one in shown]))
    _conclude(ranked[0], f"the output has {_PLAIN}", "" if arguments.raw else output.text)


def _conclude(best: Guess, plain: str, text: str = "") -> None:
    """Print the option to use, or the reason why no format is better than the others."""
    columns = [] if best.calls else columns_in(text)
    if columns:
        note(f"it is JSON; if one of {', '.join(columns)} is the output, name it with --output-column")
    elif best.unread:
        note(
            f"no format reads {_short(best.unread)}; if that is a call, use the model's template (--template), or "
            "describe a Format (--format FILE.json)"
        )
    elif best.is_evident and (best.calls or not best.left_over):
        print_text(f"\n--format {best.format}")
    else:
        _explain(best, plain)


def _explain(best: Guess, plain: str) -> None:
    texts = [text or "" for parsed in best.readings for text in (parsed.content, parsed.reasoning)]
    left = dict.fromkeys(marker for text in texts for marker, _ in markers_in(text))
    note(f"no format reads the markers in it: {' '.join(left)}" if left else plain)


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


def _print_rows(arguments: argparse.Namespace, rows: Sequence[tuple[int, Any]] | None) -> None:
    """Rank the formats for rows: these, or those of the file."""
    from ...batch import Columns
    from ...batch._guessing import format_of, format_of_rows

    if arguments.tools is not None:
        raise UsageError("--tools is for one output; rows have a column of tools")
    file, most = arguments.file, arguments.rows
    columns = Columns(output=arguments.output_column, tools=arguments.tools_column, prompt=arguments.prompt_column)
    try:
        with quiet():
            if rows is None:
                found = format_of_rows([file], columns, most)
            else:
                found = format_of(rows, columns, most, name_of(file))
    except OSError as error:
        raise UsageError(f"FILE {arguments.file}: {reason(error)}") from None
    except (ValueError, ModuleNotFoundError) as error:
        raise UsageError(str(error)) from None
    ranked, samples, skipped = found
    groups = grouped(ranked)
    shown = groups if arguments.all else groups[:_SHOWN]
    if arguments.json:
        print_json([_plain_group(group, groups[0][0], samples) for group in shown], indent=None)
        return
    heads = ("FORMAT", "CALLS", "PROBLEMS", "MARKERS LEFT", "REASONING", "DIFFERS IN ROW", "SAME READING")
    print_text(table(heads, [_group_row(group, groups[0][0], samples) for group in shown]))
    for line in _differences(groups, samples):
        print_text(line)
    plain = f"no output of {len(samples):,} has a marker or call of a format; every format reads them as content"
    _conclude(ranked[0], plain)
    for remark in filter(None, (found.mixed, skipped)):
        note(remark)
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
    same = [other.format for other in group[1:]]
    if len(same) > _ALIKE:
        same[_ALIKE:] = [f"{len(same) - _ALIKE} more"]
    return one.format, str(one.calls), str(one.problems), str(one.left_over), str(reasoning), row, ", ".join(same)


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
