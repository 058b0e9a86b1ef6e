"""Files of rows: read, parsed on all cores, and written in order.

* The results are written to ``OUTPUT.partial``, next to ``OUTPUT.progress``, which has the place that an interrupted
  run continues from. ``OUTPUT`` itself only appears when it is whole.
* Memory does not grow with the number of rows: a bounded number of pieces is under way.
* Other processes give their results back in temporary files, which are used again: through the pipe of a process pool,
  they would cost the parent 3 % of the whole time.
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from importlib import import_module
from itertools import chain, cycle, islice
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Final

import msgspec

from .._internal.saved import OUTPUT
from ._columns import lacks_output, names_of, with_surrogates
from ._many import count_processes, in_processes, most_under_way
from ._rows import Record, RowParser, Settings, encode_record
from ._sources import Piece, first_pieces, is_parquet, package_pyarrow, pieces, problem_of, rows_of, size_of, version_of
from ._summary import Summary
from .arrow import NESTED, fitted, joint_schema, refused_names, table_of, types_of

__all__ = ["Progress", "parse_files", "read_records"]

_SAVE_EVERY: Final = 1.0
"""Seconds between two notes of the place that a run continues from."""
_SIZE_BYTES: Final = 8
_PEEKED: Final = 100
"""Rows at the beginning of a file, one of which must have each named column. Rows may leave out one that is null."""


class Progress(msgspec.Struct):
    """The state of a run.

    Attributes:
        summary: figures of the rows so far.
        done, total: bytes of the input files, compressed as they are.
        seconds: time since the run began or was continued.
        rate: rows a second since then.
    """

    summary: Summary
    done: int
    total: int
    seconds: float
    rate: float


class _Checkpoint(msgspec.Struct):
    """The place that an interrupted run continues from."""

    job: dict[str, str]
    file: int = 0
    position: int = 0
    row: int = 1
    size: int = 0
    summary: Summary = msgspec.field(default_factory=Summary)


class _Parsed(msgspec.Struct, gc=False):
    """The results of one piece: data, or the size of a temporary file's beginning. The piece comes without its data."""

    file: int
    piece: Piece
    summary: Summary
    data: bytes
    temporary: str
    size: int

    def results(self) -> bytes:
        if not self.temporary:
            return self.data
        with open(self.temporary, "rb", buffering=0) as file:
            return file.read(self.size)


class _Work(msgspec.Struct, frozen=True, gc=False):
    """A piece, and how its results are written.

    ``temporary`` is the file that takes them, if another process writes them.
    """

    file: int
    piece: Piece
    output: str
    several: bool
    temporary: str


def parse_files(
    inputs: Sequence[str],
    output: str,
    settings: Settings,
    *,
    processes: int | None = None,
    resume: bool = False,
    report: Callable[[Progress], None] | None = None,
) -> Summary:
    """Parse the rows of files and write a record for each, in order.

    Args:
        inputs: JSONL files (plain, ``.gz``, ``.zst``), Parquet or CSV files; ``-``: JSONL from stdin. A name with
            ``://`` is opened by fsspec.
        output: the file to write, of one of the same kinds.
        settings: as from `settings_for`.
        processes: default: one for each core. They are spawned and import the main module again, so call this under
            ``if __name__ == "__main__":``.
        resume: continue a run that was interrupted.
        report: called after each piece.

    Returns:
        Figures of all rows, those of the interrupted run included.

    Raises:
        FileExistsError: the output is there, or an unfinished one is there and ``resume`` is not set.
        ValueError: the unfinished run had other inputs or settings, the rows of a file lack a named column or
            any output, or the output is not a local file.
        OSError: a file cannot be opened or written.
        ModuleNotFoundError: a package is missing.
    """
    paths = [os.fspath(path) for path in inputs]
    if output == "-" or "://" in output:
        raise ValueError(
            f"output: {output!r} is no file; results are written to a local file, so that they can be resumed"
        )
    total = sum(map(size_of, paths))
    for path in (*paths, output):
        if is_parquet(path) or path.endswith(".zst"):
            package_pyarrow(path)
    for name in refused_names(settings.keep) if is_parquet(output) else ():
        raise ValueError(f"keep: {name!r} is a column of the results")
    for path in paths:
        _check_columns(path, settings)
    job = _job(paths, output, settings)
    processes = processes or count_processes()
    with _Output(output, job, resume) as out, TemporaryDirectory(prefix="untemplate-") as folder:
        began = time.monotonic()
        before = out.state.summary.rows
        temporary = _temporary_files(folder, most_under_way(processes)) if processes > 1 else [""]
        works = _works(paths, output, out.state, cycle(temporary))
        for parsed in in_processes(_parse_piece, works, settings, processes):
            out.add(parsed)
            if report is not None:
                summary = out.state.summary
                seconds = time.monotonic() - began
                done = sum(map(size_of, paths[: parsed.file])) + parsed.piece.read
                report(Progress(summary, done, total, seconds, (summary.rows - before) / max(seconds, 1e-9)))
        out.finish()
        return out.state.summary


def _check_columns(path: str, settings: Settings) -> None:
    """Check that the first rows of a file have the columns that the settings name, and that one has an output.

    Raises:
        ValueError: none of them has it; the message lists those that they have.
    """
    first = list(_first_rows(path))
    found = dict.fromkeys(name for values in first for name in names_of(values))
    columns = settings.columns
    named = [*msgspec.structs.astuple(columns), *settings.keep]
    lacking = [name for name in named if name not in (None, "*") and name not in found]
    if found and lacking:
        raise ValueError(f"{path}: the first rows have no column {lacking[0]!r}; columns: {', '.join(found)}")
    if columns.output is columns.ids is None:
        _check_outputs(path, first)


def _first_rows(path: str) -> Iterator[Any]:
    """Yield those of the first rows that are JSON objects."""
    for piece in islice(first_pieces(path, _PEEKED), 1):
        for _, values in islice(rows_of(piece), _PEEKED):
            if names_of(values):
                yield values


def _check_outputs(path: str, rows: Sequence[Any]) -> None:
    """Check that one of these rows has the column of outputs, or is an answer with an output."""
    problems = [OUTPUT not in names_of(values) and lacks_output(values, None) for values in rows]
    if problems and all(problems):
        raise ValueError(f"{path}: none of the first rows has an output in column {OUTPUT!r} ({problems[0]})")


def _job(paths: Sequence[str], output: str, settings: Settings) -> dict[str, str]:
    """Return names for the inputs and for each setting, which change if these do."""
    files = [version_of(path) for path in paths]
    policy = None if settings.policy is None else asdict(settings.policy)
    format = None if settings.format is None else settings.format.to_json()
    told = {
        "inputs": files,
        "output": output,
        "policy": policy,
        "format": format,
        "tokenizer": str(settings.tokenizer),
        "columns": repr(settings.columns),
        "keep": settings.keep,
        "spans": settings.spans,
    }
    return {name: sha256(json.dumps(value).encode()).hexdigest()[:16] for name, value in told.items()}


def _temporary_files(folder: str, count: int) -> list[str]:
    names = [os.path.join(folder, str(i)) for i in range(count)]
    for name in names:
        open(name, "xb").close()
    return names


def _works(paths: Sequence[str], output: str, state: _Checkpoint, temporary: Iterator[str]) -> Iterator[_Work]:
    for i in range(state.file, len(paths)):
        position, row = (state.position, state.row) if i == state.file else (0, 1)
        for piece in pieces(paths[i], position, row):
            yield _Work(i, piece, output, len(paths) > 1, next(temporary))


# -- In the processes ---------------------------------------------------------------------------------------------


def _parse_piece(parser: RowParser, work: _Work) -> _Parsed:
    piece = work.piece
    summary = Summary()
    untyped = parser.untyped
    file = piece.file if work.several else ""
    records: Iterator[Record] = (parser.record(values, row, file) for row, values in rows_of(piece))
    if piece.problem:
        records = chain(records, [problem_of(piece, file)])
    lines = []
    tables: list[Record] = []
    parquet = is_parquet(work.output)
    for record in records:
        summary.add(record)
        if parquet:
            tables.append(record)
        else:
            lines.append(encode_record(record))
    summary.untyped = parser.untyped - untyped
    data = _compressed(
        work.output, _table(tables, types_of(piece)) if parquet else b"".join(line + b"\n" for line in lines)
    )
    size = len(data)
    if work.temporary:
        with open(work.temporary, "r+b") as temporary:  # not cut first: its pages in memory are used again
            temporary.write(data)
        data = b""
    return _Parsed(work.file, msgspec.structs.replace(piece, data=b""), summary, data, work.temporary, size)


def _compressed(output: str, data: bytes) -> bytes:
    """Return data as the output file takes it; pieces that are compressed on their own can follow each other."""
    if output.endswith(".gz"):
        return gzip.compress(data, 4, mtime=0)
    if output.endswith(".zst"):
        return bytes(import_module("pyarrow").compress(data, codec="zstd", asbytes=True))
    return data


# -- Parquet ------------------------------------------------------------------------------------------------------


def _table(records: Sequence[Record], types: Mapping[str, Any]) -> bytes:
    """Return records as a table in Arrow's stream format, after its size."""
    arrow = import_module("pyarrow")
    table = table_of(records, types)
    sink = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return len(data).to_bytes(_SIZE_BYTES, "little") + data


def _write_parquet(partial: str, output: str) -> None:
    """Write the tables of a whole run as a Parquet file."""
    parquet = import_module("pyarrow.parquet")
    whole = joint_schema(stream.schema for stream in _streams(partial))
    with parquet.ParquetWriter(output, whole) as writer:
        for stream in _streams(partial):
            writer.write_table(fitted(stream.read_all(), whole))


def _streams(partial: str) -> Iterator[Any]:
    """Yield the tables of a run, opened."""
    pyarrow = import_module("pyarrow")
    with open(partial, "rb") as file:
        while size := int.from_bytes(file.read(_SIZE_BYTES), "little"):
            yield pyarrow.ipc.open_stream(file.read(size))


# -- The output ---------------------------------------------------------------------------------------------------


def _checkpoint_in(path: str) -> _Checkpoint:
    with open(path, "rb") as file:
        notes = file.read()
    try:
        return msgspec.json.decode(notes, type=_Checkpoint)
    except msgspec.DecodeError:
        problem = "cannot be read, perhaps another version wrote it; remove it and the .partial file"
        raise ValueError(f"{path}: {problem}, and begin again without --resume") from None


class _Output:
    """The unfinished output, and the place that the run continues from."""

    def __init__(self, path: str, job: dict[str, str], resume: bool) -> None:
        self._path, self._partial, self._notes = path, f"{path}.partial", f"{path}.progress"
        if os.path.exists(path):
            done = "the run that wrote it is finished" if resume else "the file exists"
            raise FileExistsError(errno.EEXIST, f"{done}; remove it, or name another output", path)
        if os.path.exists(self._partial) and not resume:
            reason = "an unfinished run is there; resume it (--resume), or remove the file"
            raise FileExistsError(errno.EEXIST, reason, self._partial)
        self.state = _Checkpoint(job)
        if resume and os.path.exists(self._notes):
            self.state = _checkpoint_in(self._notes)
            other = [name for name, value in job.items() if self.state.job.get(name) != value]
            if other:
                raise ValueError(f"{self._partial}: the unfinished run had other values of: {', '.join(other)}")
        self._saved = time.monotonic()
        self._file: BinaryIO = open(self._partial, "ab")  # noqa: SIM115 - closed by `__exit__`
        self._file.truncate(self.state.size)

    def __enter__(self) -> _Output:
        return self

    def add(self, parsed: _Parsed) -> None:
        self._file.write(parsed.results())
        state, piece = self.state, parsed.piece
        state.size += parsed.size
        state.summary.merge(parsed.summary)
        state.file, state.position, state.row = parsed.file, piece.position, piece.row + piece.rows
        if piece.problem:  # nothing more comes from this file
            state.file, state.position, state.row = parsed.file + 1, 0, 1
        if time.monotonic() - self._saved > _SAVE_EVERY:
            self._save()

    def _save(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        with open(f"{self._notes}.new", "wb") as file:
            file.write(msgspec.json.encode(self.state))
        os.replace(f"{self._notes}.new", self._notes)
        self._saved = time.monotonic()

    def finish(self) -> None:
        """Give the whole output its name."""
        self._save()
        self._file.close()
        if is_parquet(self._path):
            _write_parquet(self._partial, f"{self._path}.new")
            os.replace(f"{self._path}.new", self._path)
            os.remove(self._partial)
        else:
            os.replace(self._partial, self._path)
        os.remove(self._notes)

    def __exit__(self, *_: object) -> None:
        if not self._file.closed:
            self._save()
            self._file.close()


# -- Results, read again ------------------------------------------------------------------------------------------


def read_records(path: str) -> Iterator[Record]:
    """Yield the records of a file of results, of any of the kinds that are written.

    Raises:
        ValueError: it is not a file of results; the message has the row.
        OSError: it cannot be opened.
        ModuleNotFoundError: a package is missing.
    """
    for piece in pieces(path):
        for row, values in rows_of(piece):
            try:
                yield _of_line(values) if isinstance(values, bytes) else _DECODER.decode(_nested(values))
            except msgspec.DecodeError as error:
                raise ValueError(f"{path}, row {row}: not a result: {error}") from None
        if piece.problem:
            raise ValueError(f"{path}: {piece.problem}")


_DECODER: Final = msgspec.json.Decoder(Record)
_RESULTS: Final = frozenset((*Record.__struct_fields__, "content", "reasoning", "tool_calls"))


def _of_line(line: bytes) -> Record:
    """Return a line of JSON as a record. Columns that were kept are beside the record's own."""
    try:
        record = _DECODER.decode(line)
        values = {} if line.startswith(b'{"row":') else msgspec.json.decode(line)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:  # half a character in it
        values = with_surrogates(line)
        if values is None:
            raise
        record = msgspec.convert(values, Record)
    record.kept |= {name: value for name, value in values.items() if name not in Record.__struct_fields__}
    return record


def _nested(row: dict[str, Any]) -> bytes:
    """Return a row of a Parquet file of results as a record in JSON."""
    values = {name: value for name, value in row.items() if value is not None}
    nested = {name: msgspec.Raw(values[name].encode()) for name in NESTED if name in values}
    message: dict[str, Any] = {name: values[name] for name in ("content", "reasoning") if name in values}
    message |= {"tool_calls": nested.pop("tool_calls")} if "tool_calls" in nested else {}
    kept = {name: values.pop(name) for name in row if name in values and name not in _RESULTS}
    values |= {"kept": kept} if kept else {}
    return msgspec.json.encode({**values, **nested, "message": None if "error" in nested else message})
