"""Input files, cut into pieces: JSONL (plain, ``.gz``, ``.zst``), Parquet and CSV; ``-`` is stdin.

* A piece has at most about 1 MB, whatever the size of the file. Pieces can be sent to other processes. A piece of a
  plain JSONL file is a place in it: whoever parses the piece reads it from there.
* A name with ``://`` is opened by fsspec, where that is installed.
* A file that cannot be read any further ends in a piece that has the problem, after all rows that could be read.
"""

from __future__ import annotations

import csv
import errno
import gzip
import json
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import BufferedReader, RawIOBase, TextIOWrapper
from typing import Any, Final

import msgspec

from .._internal.installed import install_command
from ._rows import Record, RowError

__all__ = [
    "Piece",
    "first_pieces",
    "is_parquet",
    "package_pyarrow",
    "pieces",
    "problem_of",
    "rows_of",
    "size_of",
    "version_of",
]

_SIZE: Final = 1 << 20
"""Bytes of a piece of a JSONL file."""
_ROWS: Final = 1024
"""Rows of a piece of a Parquet file."""
LONGEST_ROW: Final = 64 << 20
"""Most bytes of a row of a JSONL file."""
_TOO_LONG: Final = f"a row is longer than {LONGEST_ROW} bytes"


class Piece(msgspec.Struct, frozen=True, gc=False):
    """Successive rows of a file.

    Attributes:
        file: name of the file.
        row: number of the first row, from 1.
        rows: number of rows; of lines, in a JSONL file.
        position: where the piece ends: in bytes of the (decompressed) file, or in rows of a Parquet file.
        size: bytes of a piece of a plain JSONL file, which are read from the file when they are needed.
        data: otherwise: lines, or a table in Arrow's stream format.
        problem: why the file cannot be read any further.
    """

    file: str
    row: int
    rows: int
    position: int
    size: int = 0
    data: bytes = b""
    read: int = 0
    """Bytes of the file that were read so far, as it is on disk."""
    problem: str = ""


def is_parquet(path: str) -> bool:
    return path.endswith((".parquet", ".pq"))


def package_pyarrow(path: str) -> Any:
    """Return the package pyarrow, which Parquet and ``.zst`` need.

    Raises:
        ModuleNotFoundError: it is not installed; the message names the extra.
    """
    try:
        import_module("pyarrow.parquet")
        return import_module("pyarrow")
    except ModuleNotFoundError:
        command = install_command("untemplate", "batch")
        raise ModuleNotFoundError(f"{path}: needs pyarrow: {command}", name="pyarrow") from None


def pieces(path: str, position: int = 0, row: int = 1) -> Iterator[Piece]:
    """Yield the pieces of a file, from a position at the end of an earlier piece, whose next row has this number.

    Raises:
        OSError: the file cannot be opened.
        ModuleNotFoundError: a package is missing.
    """
    if is_parquet(path):
        yield from _tables(path, row)
        return
    with opened(path) as disk, _decompressed(path, disk) as file:
        if _is_csv(path):
            yield from _csv_rows(path, file, row)
            return
        try:
            _skip(file, position)
        except _BROKEN as error:
            yield Piece(path, row, 0, position, problem=_cut(error))
            return
        yield from _lines(path, file, disk, position, row)


def first_pieces(path: str, rows: int) -> Iterator[Piece]:
    """Yield the pieces of a file, of which the first rows are to be looked at: `pieces` yields them again.

    Of stdin, only pieces with about these rows.
    """
    if path != STDIN:
        yield from pieces(path)
        return
    data = _STDIN.head(rows)
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    yield Piece(path, 1, lines, len(data), data=data)


STDIN: Final = "-"


class _Stdin(RawIOBase):
    """stdin, whose beginning can be looked at before it is read."""

    def __init__(self) -> None:
        self._head = b""
        self._ended = False

    def head(self, rows: int) -> bytes:
        """Return the first rows, or more."""
        while not self._ended and self._head.count(b"\n") < rows and len(self._head) < LONGEST_ROW:
            data = self._more(_SIZE)
            self._head += data
            self._ended = not data
        return self._head

    def _more(self, size: int) -> bytes:
        if sys.stdin is None:
            raise OSError(errno.EBADF, "stdin is closed", STDIN)
        data: bytes = sys.stdin.buffer.read1(size)  # type: ignore[union-attr]
        return data

    def readable(self) -> bool:
        return True

    def readinto(self, block: Any) -> int:
        size = len(block)
        if self._head:
            data, self._head = self._head[:size], self._head[size:]
        else:
            data = b"" if self._ended else self._more(size)
            self._ended = False  # the next reader of the program asks again
        block[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Stay open: stdin belongs to the program."""


_STDIN: Final = _Stdin()


@contextmanager
def opened(path: str) -> Iterator[Any]:
    """Open a file to read bytes: of this machine, stdin, or by fsspec."""
    if path == STDIN:
        yield _Through(_STDIN)
    elif "://" in path:
        with _fsspec(path).open(path, "rb") as file:
            yield _Through(file)
    else:
        with open(path, "rb") as file:
            yield file


class _Through(RawIOBase):
    """A file that is only read from its beginning to its end, and knows its place."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._place = 0

    def readable(self) -> bool:
        return True

    def readinto(self, block: Any) -> int:
        data = self._file.read(len(block))
        block[: len(data)] = data
        self._place += len(data)
        return len(data)

    def read1(self, size: int) -> bytes:
        """Read once. Pieces of such a file hold their data, as those of compressed files."""
        return self.read(size) or b""

    def tell(self) -> int:
        return self._place

    def close(self) -> None:
        """Stay open: the file belongs to the caller."""


def _fsspec(path: str) -> Any:
    try:
        return import_module("fsspec")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(f"{path}: needs fsspec: pip install fsspec", name="fsspec") from None


def _remote(path: str) -> tuple[Any, str]:
    """Return the file system of fsspec and the name in it.

    Raises:
        FileNotFoundError: it is not there.
        ModuleNotFoundError: fsspec, or its package for the protocol, is missing.
    """
    fsspec = _fsspec(path)
    try:
        system, name = fsspec.core.url_to_fs(path)
    except ImportError as error:
        raise ModuleNotFoundError(f"{path}: {error}", name=error.name) from None
    except ValueError as error:  # an unknown protocol
        raise ValueError(f"{path}: {error}") from None
    if not system.exists(name):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return system, name


def size_of(path: str) -> int:
    """Return the bytes of a file; 0 for stdin, whose size is not known."""
    if path == STDIN:
        return 0
    if "://" in path:
        system, name = _remote(path)
        return int(system.size(name) or 0)
    return os.stat(path).st_size


def version_of(path: str) -> tuple[str, int, str]:
    """Return the name and size of a file, and what changes when it is written again."""
    if path == STDIN:
        return path, 0, ""
    if "://" in path:
        system, name = _remote(path)
        return path, size_of(path), str(system.ukey(name))
    return path, os.stat(path).st_size, str(os.stat(path).st_mtime_ns)


# -- CSV ----------------------------------------------------------------------------------------------------------


def _is_csv(path: str) -> bool:
    return path.removesuffix(".gz").removesuffix(".zst").endswith(".csv")


def _csv_rows(path: str, file: Any, first: int) -> Iterator[Piece]:
    """Yield the rows of a CSV file, whose first line names the columns, as lines of JSON. All values are text."""
    csv.field_size_limit(LONGEST_ROW)
    text = TextIOWrapper(BufferedReader(file), "utf-8-sig", errors="surrogateescape", newline="")
    reader = csv.reader(text)
    names = next(reader, [])
    start, lines, size = first, [], 0
    row = 0
    problem = ""
    try:
        for values in reader:
            row += 1
            if row < first:
                continue
            fits = len(values) == len(names)
            line = json.dumps(dict(zip(names, values, strict=True)) if fits else values).encode() + b"\n"
            lines.append(line)
            size += len(line)
            if size > _SIZE:
                yield Piece(path, start, len(lines), row, data=b"".join(lines))
                start, lines, size = row + 1, [], 0
    except (*_BROKEN, csv.Error) as error:
        problem = _cut(error)
    finally:
        text.detach().detach()
    if lines or problem:
        yield Piece(path, start, len(lines), start + len(lines) - 1, data=b"".join(lines), problem=problem)


_BROKEN: Final = (OSError, EOFError, zlib.error)
"""Errors of reading a damaged file."""


def _cut(error: Exception) -> str:
    return f"cannot be read any further: {error}"


def _decompressed(path: str, disk: Any) -> Any:
    if path.endswith(".gz"):
        return gzip.GzipFile(fileobj=disk)
    if path.endswith(".zst"):
        return package_pyarrow(path).CompressedInputStream(disk, "zstd")
    return disk


def _skip(file: Any, size: int) -> None:
    if isinstance(file, BufferedReader):
        file.seek(size)
        return
    while size > 0:
        data = file.read(min(size, _SIZE))
        if not data:
            return
        size -= len(data)


def _fill(file: Any, block: bytearray) -> tuple[int, str]:
    """Read until the block is full, or the file ends or cannot be read further. Return the size and the problem."""
    size = 0
    try:
        if isinstance(file, BufferedReader):
            return file.readinto(block), ""
        while size < len(block) and (data := file.read1(len(block) - size)):
            block[size : size + len(data)] = data
            size += len(data)
    except _BROKEN as error:
        return size, _cut(error)
    return size, ""


def _lines(path: str, file: Any, disk: Any, position: int, row: int) -> Iterator[Piece]:
    """Yield pieces that end with a line."""
    block = bytearray(_SIZE)
    parts: list[bytes] = []  # of a compressed file: read since the last piece
    size = 0  # bytes that were read since the last piece
    problem = ""
    while True:
        got, problem = (0, problem) if problem else _fill(file, block)
        end = block.rfind(b"\n", 0, got) + 1
        if size + got > LONGEST_ROW and not end:
            yield Piece(path, row, 0, position, problem=f"{_TOO_LONG}; the file is not read any further")
            return
        if not isinstance(file, BufferedReader):
            parts.append(bytes(block[: end or got]))
        if end or (not got and (size or problem)):
            size += end
            lines = block.count(b"\n", 0, end) if end else min(size, 1)
            position += size
            data = b"".join(parts)
            yield Piece(path, row, lines, position, 0 if data else size, data, disk.tell(), "" if got else problem)
            row += lines
            size = got - end
            parts = [bytes(block[end:got])] if parts else []
        else:
            size += got
        if not got:
            return


def _tables(path: str, first: int) -> Iterator[Piece]:
    pyarrow = package_pyarrow(path)
    parquet = import_module("pyarrow.parquet")
    row = 1
    size = size_of(path)
    try:
        with _table_file(path) as source, parquet.ParquetFile(source) as file:
            for batch in file.iter_batches(batch_size=_ROWS):
                rows = batch.num_rows
                if row + rows > first:
                    batch = batch.slice(max(first - row, 0))
                    sink = pyarrow.BufferOutputStream()
                    with pyarrow.ipc.new_stream(sink, batch.schema) as writer:
                        writer.write_batch(batch)
                    start = max(row, first)
                    end = row + rows - 1
                    read = size * end // file.metadata.num_rows
                    yield Piece(path, start, batch.num_rows, end, data=sink.getvalue().to_pybytes(), read=read)
                row += rows
    except (OSError, ValueError) as error:  # pyarrow's errors are either
        yield Piece(path, max(row, first), 0, row - 1, problem=_cut(error))


@contextmanager
def _table_file(path: str) -> Iterator[Any]:
    """Open a Parquet file, which is not read from its beginning."""
    if "://" in path:
        with _fsspec(path).open(path, "rb") as file:
            yield file
    else:
        with open(path, "rb"):
            pass
        yield path


def rows_of(piece: Piece) -> Iterator[tuple[int, Any]]:
    """Yield number and contents of each row: a line of JSON (bytes), or a mapping. Blank lines are not rows."""
    if not is_parquet(piece.file):
        for row, line in enumerate(_text_of(piece).split(b"\n"), piece.row):
            if line and not line.isspace():
                yield row, line
    elif piece.rows:
        table = import_module("pyarrow").ipc.open_stream(piece.data).read_all()
        with_objects = [field.name for field in table.schema if "struct<" in str(field.type)]
        for row, values in enumerate(table.to_pylist(), piece.row):
            for name in with_objects:
                values[name] = _without_nulls(values[name])
            yield row, values


def _without_nulls(value: Any) -> Any:
    """Return a value without members that are null: all objects of a column have the members of each."""
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value


def _text_of(piece: Piece) -> bytes:
    if not piece.size:
        return piece.data
    with open(piece.file, "rb", buffering=0) as file:
        file.seek(piece.position - piece.size)
        data = file.read(piece.size)
    if len(data) != piece.size:
        raise OSError(f"{piece.file}: the file became shorter while it was read")
    return data


def problem_of(piece: Piece, file: str) -> Record:
    """Return the record of a piece's problem."""
    error = RowError("file", f"{piece.file}: {piece.problem}")
    return Record(row=piece.row + piece.rows, file=file, error=error)
