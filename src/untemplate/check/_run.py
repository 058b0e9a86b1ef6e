"""Runs all checks against a server, and keeps what is done so that a run can be resumed."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import os
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Final

import msgspec

from .. import __version__
from .._internal.output_parser import OutputParser
from . import _apis as apis
from . import _behaviour as behaviour
from . import _vendor as vendor
from ._cases import cases_for
from ._causes import causes_of
from ._client import NoAnswer, OutOfBudget, Server, Unusable
from ._given import check_case
from ._known import issue_for
from ._model import Report, Result
from ._probe import look, probe
from ._session import ServerCheck, Session
from ._vendor import Sample

_GONE: Final = 3
"""Checks in a row without any answer, after which the server counts as gone."""

ParserFor = Callable[[str, str, str], OutputParser]
Progress = Callable[[str, int, int], None]
"""Called with the name of a check, its number and the number of all checks; before the first one with 0 and 0."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """The checks to run."""

    only: tuple[str, ...] = ()
    """Beginnings of the names of checks; empty for all."""
    repeat: int = 5
    """Repetitions of checks that depend on the model."""
    most: int = 0
    """Most cases with given texts; 0 for all."""
    parallel: int = 1
    """Number of checks at the same time. With some servers, parallel requests change what the model writes."""
    vendor: str = ""
    """A vendor's profile, or empty."""
    samples: tuple[Sample, ...] = ()
    """Requests of the vendor's data set; without them a few questions are asked."""


async def run(
    server: Server,
    order: Order,
    parser_for: ParserFor,
    *,
    model: str = "",
    state: str = "",
    progress: Progress | None = None,
) -> Report:
    """Probe a server and run the checks.

    Args:
        parser_for: returns the parser for the name of a model, the name of a Format and a chat template; the server may
            show the last two.
        model: name of the model; needed if the server has several.
        state: file of the results so far; it is made if it does not exist.

    Raises:
        Unusable: the server cannot be checked; the message is one line.
        ValueError: the file of results belongs to another run.
    """
    began = time.monotonic()
    if progress is not None:
        progress("looking at what the server offers", 0, 0)
    try:
        found, format, template = await look(server, model)
        session = await probe(server, parser_for(found.model, format, template), found)
    except (NoAnswer, OutOfBudget) as error:
        raise Unusable(f"{error}: before the first check") from None
    report = Report(
        untemplate=__version__,
        url=server.url,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        capabilities=found,
        results=[],
    )
    checks = [check for check in _checks(session, order) if not order.only or check[0].startswith(order.only)]
    run = f"{server.url} {found.model} {found.format} {__version__}"
    if order.samples:
        run += f" {zlib.crc32(msgspec.json.encode(order.samples)):08x}"
    with _State(state, run) as done:
        doing = _Run(checks, done, report, progress)
        await asyncio.gather(*(doing.work(copy.copy(session)) for _ in range(order.parallel)))
    report.results += [result for results in doing.results for result in results]
    if any(name.startswith("vendor/") for name, _ in checks):
        report.results += vendor.totals(found.model, report.results)
    report.causes = causes_of(report.results)
    report.requests, report.tokens = server.requests, server.tokens
    report.seconds = round(time.monotonic() - began, 1)
    return report


def _checks(session: Session, order: Order) -> Iterator[ServerCheck]:
    cases = cases_for(session.parser)
    for case in cases[: order.most or None]:
        yield f"given/{case.id}", partial(check_case, case=case)
    yield from behaviour.checks(order.repeat)
    yield from apis.checks()
    yield from vendor.checks(order.vendor, order.repeat, order.samples)


class _Run:
    """The checks of a run, done by several sessions at once."""

    def __init__(self, checks: Sequence[ServerCheck], state: _State, report: Report, progress: Progress | None) -> None:
        self.checks = checks
        self.state = state
        self.report = report
        self.progress = progress
        self.results: list[list[Result]] = [[] for _ in checks]
        self.waiting = iter(enumerate(checks))
        self.silent = 0
        """Number of checks in a row without any answer."""

    async def work(self, session: Session) -> None:
        """Do checks until none is left."""
        for number, (name, _) in self.waiting:
            if self.progress is not None:
                self.progress(name, number, len(self.checks))
            found = self.state.done.get(name)
            self.results[number] = await self._done(session, number) if found is None else found

    async def _done(self, session: Session, number: int) -> list[Result]:
        name, check = self.checks[number]
        if not self.report.stopped:
            session.sent = session.answered = 0
            try:
                results = await check(session)
            except OutOfBudget as error:
                self.report.stopped = str(error)
            else:
                self._keep(session, name, results)
                return results
        return [Result(id=name, verdict="cannot", reason=self.report.stopped)]

    def _keep(self, session: Session, name: str, results: list[Result]) -> None:
        for result in results:
            if result.verdict in ("fail", "soft"):
                result.issue = issue_for(session.found.server, result)
        if session.answered or not session.sent:
            self.silent = 0
            self.state.keep(name, results)
            return
        self.silent += 1
        if self.silent == _GONE:
            self.report.stopped = f"{session.server.url} has not answered the last {_GONE} checks"


class _State:
    """A file of JSON lines: the run that it belongs to, then a line for each finished check."""

    def __init__(self, path: str, run: str) -> None:
        self.done: dict[str, list[Result]] = {}
        self._path = path
        self._run = run
        self._open = contextlib.ExitStack()
        self._out: IO[bytes] | None = None

    def __enter__(self) -> _State:
        if not self._path:
            return self
        lines = Path(self._path).read_bytes().splitlines() if os.path.exists(self._path) else []
        if lines and lines[0] != _line(self._run):
            raise ValueError(f"{self._path}: holds the results of another run: {lines[0].decode('utf-8', 'replace')}")
        for line in lines[1:]:
            with contextlib.suppress(ValueError):  # the last line of a run that was killed
                name, results = msgspec.convert(json.loads(line), tuple[str, list[Result]])
                self.done[name] = results
        file = self._out = self._open.enter_context(open(self._path, "ab"))
        file.write(b"\n" if lines else _line(self._run) + b"\n")
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def keep(self, name: str, results: list[Result]) -> None:
        if self._out is not None:
            self._out.write(_line((name, results)) + b"\n")
            self._out.flush()


def _line(value: object) -> bytes:
    """Return JSON in ASCII: servers may send lone surrogates, which UTF-8 cannot write."""
    return json.dumps(msgspec.to_builtins(value)).encode()
