"""``untemplate check``: test a live server."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING, Final

from ..installed import install_command
from ..terminal import visible
from .batch import FAILED
from .common import UsageError, policy_of, positive, print_json, print_text, quiet, reason, write_file

if TYPE_CHECKING:
    from ...check import Report
    from ...check._vendor import Sample
    from ..output_parser import OutputParser

_SECONDS: Final = 10
"""Seconds between two lines of progress where stderr is no terminal."""


def add_arguments(check: argparse.ArgumentParser) -> None:
    check.set_defaults(run=run, command="check")
    check.add_argument(
        "--base-url", required=True, metavar="URL", help="base URL of the server, such as http://localhost:8000/v1"
    )
    check.add_argument("--model", metavar="NAME", help="model of the server (needed if it has several)")
    which = check.add_argument_group("Format (default: the one that the server shows, or the model's name suggests)")
    which.add_argument("--format", metavar="NAME|FILE.json", help="name from `untemplate formats`, or a Format as JSON")
    which.add_argument("--reasoning", metavar="NAME", help="format whose reasoning replaces that of the named one")
    which.add_argument("--template", metavar="FILE", help="the model's chat template")
    what = check.add_argument_group("Checks")
    what.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="checks whose names begin so, such as given/ (repeatable)",
    )
    what.add_argument("--cases", type=positive, default=0, metavar="N", help="most texts to force (default: all)")
    what.add_argument(
        "--repeat",
        type=positive,
        default=5,
        metavar="N",
        help="repetitions of checks that depend on the model (default: 5)",
    )
    what.add_argument("--vendor", choices=["kimi"], default="", help="add the checks of a vendor's verifier")
    what.add_argument(
        "--samples",
        metavar="FILE.jsonl",
        help="the verifier's data set, a request a line (default: a few questions of our own)",
    )
    what.add_argument(
        "--reference",
        default="",
        metavar="FILE.jsonl",
        help="the verifier's results for the vendor's own server, which the answers to --samples are compared with",
    )
    what.add_argument("--parallel", type=positive, default=1, metavar="N", help="checks at the same time (default: 1)")
    limits = check.add_argument_group("Limits")
    limits.add_argument("--api-key-env", default="", metavar="NAME", help="environment variable with the API key")
    limits.add_argument(
        "--rate", type=float, default=0, metavar="N", help="most requests per minute (default: no limit)"
    )
    limits.add_argument(
        "--token-budget",
        type=int,
        default=0,
        metavar="N",
        help="most tokens of prompts and outputs (default: no limit)",
    )
    limits.add_argument(
        "--timeout", type=float, default=120, metavar="S", help="seconds for one response (default: 120)"
    )
    limits.add_argument(
        "--resume", default="", metavar="FILE", help="file of the results so far, made if it does not exist"
    )
    shown = check.add_argument_group("Report")
    shown.add_argument("--json", action="store_true", help="print the report as JSON")
    shown.add_argument(
        "-v", "--verbose", action="store_true", help="print every check instead of those that did not pass"
    )
    shown.add_argument("--quiet", action="store_true", help="no progress on stderr")
    shown.add_argument("--junit", metavar="FILE.xml", help="write the report as JUnit XML")
    shown.add_argument("--html", metavar="FILE.html", help="write the report as a page")
    shown.add_argument("--badge", metavar="FILE.svg", help="write a badge")


def run(arguments: argparse.Namespace) -> int:
    try:
        from ...check import Limits, Order, Server, Unusable
        from ...check import run as check
    except ModuleNotFoundError as error:
        raise UsageError(f"checking a server needs {error.name}: {install_command('untemplate', 'check')}") from None

    key = os.environ.get(arguments.api_key_env, "") if arguments.api_key_env else ""
    if arguments.api_key_env and not key:
        raise UsageError(f"--api-key-env {arguments.api_key_env}: this variable is not set, or empty")
    limits = Limits(rate=arguments.rate, tokens=arguments.token_budget, timeout=arguments.timeout)
    order = Order(
        only=tuple(arguments.only),
        repeat=arguments.repeat,
        parallel=arguments.parallel,
        most=arguments.cases,
        vendor=arguments.vendor,
        samples=_samples(arguments),
    )
    progress = Progress()

    async def checked() -> Report:
        server = Server(arguments.base_url, key=key, key_name=arguments.api_key_env, limits=limits)
        try:
            return await check(
                server,
                order,
                lambda *shown: _parser_for(arguments, *shown),
                model=arguments.model or "",
                state=arguments.resume,
                progress=None if arguments.quiet else progress,
            )
        finally:
            await server.close()

    try:
        with quiet():
            report = asyncio.run(checked())
    except (Unusable, ValueError) as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"--resume {arguments.resume}: {reason(error)}") from None
    finally:
        progress.clear()
    return _conclude(arguments, report)


def _samples(arguments: argparse.Namespace) -> tuple[Sample, ...]:
    from ...check._vendor import read_samples

    if arguments.samples is None:
        if arguments.reference:
            raise UsageError("--reference: needs --samples, the requests that it has results for")
        return ()
    if not arguments.vendor:
        raise UsageError("--samples: needs --vendor, the profile that they belong to")
    try:
        return read_samples(arguments.samples, arguments.reference)
    except OSError as error:
        raise UsageError(f"{error.filename}: {reason(error)}") from None
    except ValueError as error:
        raise UsageError(str(error)) from None


def _parser_for(arguments: argparse.Namespace, model: str, named: str, template: str) -> OutputParser:
    """Return the parser for the server's model: as the options name it, as the server shows it, or by the model."""
    from ...formats import UnknownFormatError
    from ...selection import suggested
    from ...templates import ChatTemplate
    from ..output_parser import OutputParser
    from .which_format import parser_of

    if arguments.format is not None or arguments.template is not None:
        which = {name: getattr(arguments, name) for name in ("format", "template", "reasoning", "command")}
        return parser_of(argparse.Namespace(**which, model=None, enforce_parser=None), policy_of([]))
    with contextlib.suppress(UnknownFormatError):  # a gateway may have inferred its Format
        if named:
            return OutputParser.named(named)
    if template:
        return OutputParser.for_model(model, template=ChatTemplate(template))
    found = next(iter(suggested(model, None)), None)
    if found is None:
        raise UsageError(f"the format of {model} is not known: name it with --format or --template")
    return OutputParser.from_format(found[1])


def _conclude(arguments: argparse.Namespace, report: Report) -> int:
    """Write the report in all forms that were asked for, and return the exit code."""
    import msgspec

    from ...check._junit import junit
    from ...check._page import badge, page
    from ...check._text import described

    for option, write in (("junit", junit), ("html", page), ("badge", badge)):
        path = getattr(arguments, option)
        if path is not None:
            write_file(path, write(report), f"--{option} {path}")
    if arguments.json:
        print_json(msgspec.to_builtins(report), indent=2)
    else:
        print_text(described(report, verbose=arguments.verbose))
    return FAILED if report.failed else 0


class Progress:
    """Shows the check that runs on stderr: in a terminal always, elsewhere in a line every ten seconds."""

    def __init__(self) -> None:
        self._due = time.monotonic() + _SECONDS

    def __call__(self, name: str, number: int, total: int) -> None:
        line = f"{number}/{total} {visible(name)[:60]}" if total else name
        if sys.stderr.isatty():
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() >= self._due:
            self._due = time.monotonic() + _SECONDS
            print(line, file=sys.stderr, flush=True)

    def clear(self) -> None:
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
