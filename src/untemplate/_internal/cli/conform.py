"""``untemplate conform``: run a parser over the vectors."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Final

from ..conform import CommandError, Report, command, own_parser, report_of, run, with_tools
from ..installed import install_command
from ..terminal import visible
from .common import UsageError, note, print_json, print_text, table, write_file

FAILED: Final = 3
"""Exit code if a vector fails that is not known to."""


def run_conform(arguments: argparse.Namespace) -> int:
    vectors, formats, known = _data(arguments.vectors)
    chosen = [vector for vector in vectors if _is_chosen(vector, arguments)]
    if not chosen:
        raise UsageError("no vector is of these formats, levels and rules")
    own = not arguments.command_line
    parser = own_parser(formats) if own else command(arguments.command_line, formats)
    try:
        report = report_of(run(chosen, parser, splits=arguments.splits), known if own else ())
    except CommandError as error:
        raise UsageError(str(error)) from None
    title = "untemplate" if own else " ".join(arguments.command_line)
    for path, text in (
        (arguments.junit, report.junit),
        (arguments.badge, report.badge),
        (arguments.html, lambda: report.html(title)),
    ):
        if path is not None:
            write_file(path, text(), path)
    if arguments.json:
        print_json(report.to_dict(), indent=None)
    else:
        print_text(described(report, arguments.show, arguments.by))
    return FAILED if report.new else 0


def _data(folder: str | None) -> tuple[list[dict[str, Any]], dict[str, Any], set[str]]:
    """Return the vectors, the formats, and the ids that untemplate is known to get wrong."""
    if folder is None:
        try:
            from untemplate_vectors import FOLDER
        except ModuleNotFoundError:
            command = install_command("untemplate-vectors")
            raise UsageError(f"conform needs --vectors FOLDER, or untemplate-vectors: {command}") from None
        folder = str(FOLDER)
    try:
        with (Path(folder) / "vectors.jsonl").open(encoding="utf-8") as lines:
            # What is disputed counts for nobody.
            vectors = [one for line in lines if "policy" not in (one := json.loads(line))]
        tools = json.loads((Path(folder) / "tools.json").read_text("utf-8"))
        formats = json.loads((Path(folder) / "formats.json").read_text("utf-8"))
        manifest = json.loads((Path(folder) / "manifest.json").read_text("utf-8"))
        return with_tools(vectors, tools), formats, set(manifest["known"])
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{folder}: not the data of untemplate-vectors: {error}") from None


def _is_chosen(vector: dict[str, Any], arguments: argparse.Namespace) -> bool:
    return (
        (not arguments.format or vector["format"] in arguments.format)
        and (not arguments.level or vector["level"] in arguments.level)
        and (not arguments.rule or not set(arguments.rule).isdisjoint(vector.get("rules", ())))
    )


def described(report: Report, most: int, by: str = "level") -> str:
    """Return the report as text. ``by``: what a row of the table is: level, rule or format."""
    heads = (by.upper(), "RIGHT", "SPACE", "WRONG", "UNSUPPORTED")
    table_of = {"level": report.levels, "rule": report.rules, "format": report.formats}[by]
    rows = [(key, *(str(count) for count in counts.values())) for key, counts in table_of.items()]
    lines = [table(heads, rows), "", f"{report.share:.1f} % of the vectors that the parser supports are right"]
    if report.reports:
        right = sum(one["right"] for one in report.reports.values())
        given = right + sum(one["wrong"] for one in report.reports.values())
        lines.append(f"diagnostics: right in {right} of {given}")
    for result in report.new[:most]:
        rules = f"; {', '.join(result.rules)}" if result.rules else ""
        lines += ["", f"{result.id} ({result.outcome}{rules})", f"  {visible(result.problem)}"]
        lines.append(f"  pieces: {visible(json.dumps(result.pieces, ensure_ascii=False))}")
    if len(report.new) > most:
        lines += ["", f"and {len(report.new) - most} more (--show N)"]
    if report.mended:
        note(f"{len(report.mended)} vectors are right now that are listed as known failures")
    return "\n".join(lines)
