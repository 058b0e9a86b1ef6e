"""Input files, cut into pieces: JSONL (plain, ``.gz``, ``.zst``) and Parquet.

* A piece has at most about 1 MB, whatever the size of the file. Pieces can be sent to other processes. A piece of a
  plain JSONL file is a place in it: whoever parses the piece reads it from there.
* A file that cannot be read any further ends in a piece that has the problem, after all rows that could be read.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from importlib import import_module
from io import BufferedIOBase, BufferedReader
from typing import Any, Final

import msgspec

from ..installed import install_command
from .rows import Record, RowError

__all__ = ["Piece", "is_parquet", "package_pyarrow", "pieces", "problem_of", "rows_of"]

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
    with open(path, "rb") as disk, _decompressed(path, disk) as file:
        try:
            _skip(file, position)
        except _BROKEN as error:
            yield Piece(path, row, 0, position, problem=_cut(error))
            return
        yield from _lines(path, file, disk, position, row)


_BROKEN: Final = (OSError, EOFError, zlib.error)
"""Errors of reading a damaged file."""


def _cut(error: Exception) -> str:
    return f"cannot be read any further: {error}"


def _decompressed(path: str, disk: BufferedIOBase) -> BufferedIOBase:
    if path.endswith(".gz"):
        return gzip.GzipFile(fileobj=disk)
    if path.endswith(".zst"):
        return package_pyarrow(path).CompressedInputStream(disk, "zstd")  # type: ignore[no-any-return]
    return disk


def _skip(file: BufferedIOBase, size: int) -> None:
    if isinstance(file, BufferedReader):
        file.seek(size)
        return
    while size > 0:
        data = file.read(min(size, _SIZE))
        if not data:
            return
        size -= len(data)


def _fill(file: BufferedIOBase, block: bytearray) -> tuple[int, str]:
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


def _lines(path: str, file: BufferedIOBase, disk: BufferedIOBase, position: int, row: int) -> Iterator[Piece]:
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
        if file is not disk:
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
    with open(path, "rb"):
        pass
    row = 1
    size = os.stat(path).st_size
    try:
        with parquet.ParquetFile(path) as file:
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


def rows_of(piece: Piece) -> Iterator[tuple[int, Any]]:
    """Yield number and contents of each row: a line of JSON (bytes), or a mapping. Blank lines are not rows."""
    if not is_parquet(piece.file):
        for row, line in enumerate(_text_of(piece).split(b"\n"), piece.row):
            if line and not line.isspace():
                yield row, line
    elif piece.rows:
        yield from enumerate(import_module("pyarrow").ipc.open_stream(piece.data).read_all().to_pylist(), piece.row)


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
