"""Rows in memory, parsed in this process or in several."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from itertools import islice
from multiprocessing.connection import wait
from typing import Any, Final, TypedDict, TypeVar, Unpack

from .._internal.options import check_names, spelled_out
from ..format import Format
from ..formats import named
from ..policy import Policy
from ._rows import Columns, Record, RowParser, Settings

__all__ = ["BatchOptions", "count_processes", "in_processes", "most_under_way", "parse_many", "settings_for"]

_ROWS: Final = 256
"""Rows that are sent to another process at once."""
_AHEAD: Final = 3
"""Pieces of work for each process that are under way or wait to be written: more would take memory, not time."""

Work = TypeVar("Work")
Result = TypeVar("Result")


class BatchOptions(TypedDict, total=False):
    """How the rows of a batch are parsed; `settings_for` explains them."""

    reasoning: str | None
    policy: Policy | None
    tokenizer: Any
    columns: Columns | None
    spans: bool


@spelled_out(BatchOptions)
def settings_for(
    format: str | Format | None = None, *, keep: Sequence[str] = (), **options: Unpack[BatchOptions]
) -> Settings:
    """Return the settings that rows are parsed with.

    Args:
        format: a name, as for `OutputParser.named`, or a Format (such as ``OutputParser.for_model(…).format``).
            ``None``: each row names its own, in ``columns.format``.
        reasoning: name of another format, whose reasoning markers are used.
        policy: how malformed output is treated.
        tokenizer: a tokenizer, or the file, folder or hub id that it is loaded from; needed for token ids.
        columns, keep, spans: as for `Settings`.

    Raises:
        ValueError: an unknown name, or settings that do not fit together.
        TypeError: ``columns`` or ``keep`` has another type.
    """
    check_names("settings_for", options, BatchOptions)
    columns = options.get("columns") or Columns()
    if not isinstance(columns, Columns):
        raise TypeError(f"columns: expected Columns, such as Columns(output='text'), got {columns!r:.80}")
    if isinstance(keep, str):
        raise TypeError(f"keep: expected a list of columns, such as [{keep!r:.80}], got text")
    found = named(format, reasoning=options.get("reasoning"), files=True) if isinstance(format, str) else format
    return Settings(
        format=found,
        policy=options.get("policy"),
        tokenizer=options.get("tokenizer"),
        columns=columns,
        keep=tuple(keep),
        spans=options.get("spans", False),
    ).check()


@spelled_out(BatchOptions)
def parse_many(
    rows: Iterable[Any],
    format: str | Format | None = None,
    *,
    keep: Sequence[str] = (),
    processes: int = 1,
    **options: Unpack[BatchOptions],
) -> Iterator[Record]:
    """Yield a record for each row, in order. Rows are mappings of columns to values, and are read as they are needed.

    Args:
        rows: mappings.
        format, reasoning, policy, tokenizer, columns, keep, spans: as for `settings_for`.
        processes: number of processes; 1: this one. Others are spawned and import the main module again, so call this
            under ``if __name__ == "__main__":``.

    Raises:
        ValueError: as `settings_for`.
        TokenizerError: the tokenizer cannot be loaded.
    """
    check_names("parse_many", options, BatchOptions)
    settings = settings_for(format, keep=keep, **options)
    numbered = enumerate(rows, 1)
    pieces = iter(lambda: list(islice(numbered, _ROWS)), [])
    return (record for records in in_processes(_parse_rows, pieces, settings, processes) for record in records)


def _parse_rows(parser: RowParser, rows: list[tuple[int, Any]]) -> list[Record]:
    return [parser.record(values, row) for row, values in rows]


def count_processes() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def most_under_way(processes: int) -> int:
    """Return the number of pieces after which the result of the first is given back and the caller is done with it."""
    return _AHEAD * processes


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C for this process, and keep it from processes that are started meanwhile: their parent ends them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def in_processes(
    work: Callable[[RowParser, Work], Result], pieces: Iterable[Work], settings: Settings, processes: int
) -> Iterator[Result]:
    """Yield the result of each piece of work, in order. `most_under_way` pieces are under way.

    Args:
        work: a function of a module, called in another process if there are several.
        settings: of the `RowParser` that each process makes once.

    Raises:
        BrokenProcessPool: a process was killed.
    """
    if processes <= 1:
        parser = RowParser(settings)
        for piece in pieces:
            yield work(parser, piece)
        return
    RowParser(settings)  # errors come from here, not from a process that dies
    context = multiprocessing.get_context("spawn")
    waiting: deque[Future[Result]] = deque()
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_start, initargs=(settings,)) as pool:
        try:
            for piece in pieces:
                with _interrupts_held():  # submit() starts the processes
                    waiting.append(pool.submit(_run, work, piece))
                if len(waiting) >= most_under_way(processes):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


_PARSER: list[RowParser] = []


def _start(settings: Settings) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its processes itself
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _PARSER[:] = [RowParser(settings)]


def _end_with_parent() -> None:
    """End this process when the parent is gone, however it ended: a killed one cannot end its processes."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _run(work: Callable[[RowParser, Work], Result], piece: Work) -> Result:
    return work(_PARSER[0], piece)
