"""``untemplate batch`` and ``untemplate stats``: many outputs, from files to files."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final

from ..terminal import visible
from .common import UsageError, note, policy_of, print_json, print_text, quiet, reason, write_file

if TYPE_CHECKING:
    import argparse

    from ...batch import Columns, Progress, Settings, Summary
    from ...format import Format
    from ...policy import Policy

FAILED: Final = 3
"""Exit code if no row was parsed, and of ``--strict``."""
_TTY_EVERY: Final = 0.2
_LOG_EVERY: Final = 10.0


def run(arguments: argparse.Namespace) -> int:
    from ...batch import parse_files

    settings = settings_of(arguments)
    bar = None if arguments.quiet else _Bar()
    if arguments.spans and arguments.tokenizer is not None and arguments.ids_column is None:
        note("--spans: rows of text have regions in characters; those in tokens need the ids (--ids-column)")
    # A killed run leaves semaphores, which Python's own process for that removes, with a warning of its own.
    sys.warnoptions.append("ignore::UserWarning:multiprocessing.resource_tracker")
    try:
        summary = parse_files(
            arguments.input,
            arguments.output,
            settings,
            processes=arguments.processes,
            resume=arguments.resume,
            report=None if bar is None else bar.show,
        )
    except FileExistsError as error:
        raise UsageError(f"{error.filename}: {error.strerror}") from None
    except OSError as error:
        raise UsageError(f"{error.filename or arguments.output}: {reason(error)}") from None
    except (ValueError, ModuleNotFoundError) as error:
        raise UsageError(str(error)) from None
    except RuntimeError as error:  # BrokenProcessPool
        raise UsageError(f"a process ended early, perhaps for lack of memory; --resume continues: {error}") from None
    except KeyboardInterrupt:
        if bar is not None:
            bar.end()
        note(f"interrupted; the same command with --resume goes on from the last rows in {arguments.output}.partial")
        raise
    finally:
        if bar is not None:
            bar.end()
    _conclude(arguments, summary, f"untemplate batch: {', '.join(arguments.input)}")
    if summary.rows and summary.errors == summary.rows:
        reasons = ", ".join(f"{name} ({count})" for name, count in summary.problems.items())
        note(f"no row was parsed: {reasons}; the records have the reasons, under error")
        return FAILED
    return FAILED if arguments.strict and summary.failed else 0


def run_stats(arguments: argparse.Namespace) -> None:
    from ...batch import Summary, read_records

    summary = Summary()
    try:
        for path in arguments.input:
            for record in read_records(path):
                summary.add(record)
    except OSError as error:
        raise UsageError(f"{error.filename or path}: {reason(error)}") from None
    except (ValueError, ModuleNotFoundError) as error:
        raise UsageError(str(error)) from None
    _conclude(arguments, summary, f"untemplate stats: {', '.join(arguments.input)}")


def _conclude(arguments: argparse.Namespace, summary: Summary, title: str) -> None:
    if arguments.report is not None:
        from ...batch._report import report

        write_file(arguments.report, report(summary, title), f"--report {arguments.report}")
    silent = getattr(arguments, "quiet", False)
    if arguments.json:
        print_json(summary.tables(), indent=None)
    elif not silent:
        print_text(described(summary))
    for doubt in () if silent else summary.doubts():
        note(doubt)


def described(summary: Summary) -> str:
    """Return the figures as text."""
    lines = []
    for head, table in summary.tables().items():
        lines.append(head if head != "rows" else _rows_head(summary))
        shown = list(table.items())[:20]
        lines += [f"  {count:>12,}  {visible(name)}" for name, count in shown]
        if len(table) > len(shown):
            lines.append(f"  {'…':>12}  and {len(table) - len(shown):,} more")
    return "\n".join(lines)


def _rows_head(summary: Summary) -> str:
    unclean = summary.rows - summary.clean
    share = f" ({100 * unclean / summary.rows:.2f} %)" if unclean else ""
    return f"rows: {summary.rows:,}, of which {unclean:,}{share} are not clean"


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Return the settings that the arguments name."""
    from ...batch import Columns, settings_for

    policy = policy_of(arguments.policy)
    given = {name: getattr(arguments, f"{name}_column") for name in Columns.__struct_fields__}
    columns = Columns(**given)
    try:
        return settings_for(
            _format_of(arguments, policy, columns),
            policy=policy,
            tokenizer=arguments.tokenizer,
            columns=columns,
            keep=arguments.keep,
            spans=arguments.spans,
        )
    except OSError as error:
        raise UsageError(f"{error.filename or arguments.input[0]}: {reason(error)}") from None
    except (ValueError, ModuleNotFoundError) as error:
        raise UsageError(str(error)) from None


def _format_of(arguments: argparse.Namespace, policy: Policy, columns: Columns) -> Format | None:
    from .which_format import names_format, parser_of

    named = names_format(arguments)
    if arguments.format_column is not None:
        if named:
            raise UsageError("--format-column excludes --format, --template, --model and --enforce-parser")
        return None
    return parser_of(arguments, policy).format if named else _guessed(arguments, columns)


def _guessed(arguments: argparse.Namespace, columns: Columns) -> Format:
    """Return the format that reads the first rows best, and report it."""
    from ...batch._guessing import format_of_rows
    from ...formats import named

    if columns.ids is not None:
        raise UsageError("--ids-column needs one of: --format, --template, --model, --enforce-parser")
    with quiet():
        found = format_of_rows(arguments.input, columns)
    ranked, samples, _ = found
    best = ranked[0]
    unread = best.unread
    if unread or not best.is_evident:
        first = f"the first {len(samples):,} rows"
        why = (
            f"no format reads {unread!r} in {first}"
            if unread
            else f"no output of {first} has a marker or call of a format"
        )
        raise UsageError(f"{why}: name it by --format, --template or --model")
    if not arguments.quiet:
        note(f"--format {best.format}, guessed from the first {len(samples):,} rows (untemplate guess shows others)")
        if found.mixed:
            note(found.mixed)
    return named(best.format)


class _Bar:
    """Shows the progress on stderr: one line that changes on a terminal, otherwise a line now and then."""

    def __init__(self) -> None:
        self._tty = sys.stderr.isatty()
        self._shown = time.monotonic() if not self._tty else 0.0

    def show(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._shown < (_TTY_EVERY if self._tty else _LOG_EVERY):
            return
        self._shown = now
        if self._tty:
            print(f"\r\x1b[K{line_of(progress)}", end="", file=sys.stderr, flush=True)
        else:
            note(line_of(progress))

    def end(self) -> None:
        if self._tty:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def line_of(progress: Progress) -> str:
    """Return the progress as one line."""
    summary = progress.summary
    share = progress.done / progress.total if progress.total else 1.0
    filled = round(20 * min(share, 1.0))
    left = f", {_clock(progress.seconds / share - progress.seconds)} left" if 0 < share < 1 else ""
    outcomes = f"{summary.clean:,} clean, {summary.flawed:,} flawed, {summary.errors:,} errors"
    bar = "█" * filled + "░" * (20 - filled)
    return f"{bar} {100 * share:3.0f} %  {summary.rows:,} rows ({outcomes})  {progress.rate:,.0f} rows/s{left}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
