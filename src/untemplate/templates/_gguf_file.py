"""Reads the metadata and the tensor shapes of a GGUF file.

* Values are read only when they are asked for. The package ``gguf`` makes an object of every token, which takes 14
  seconds for a vocabulary of 150,000; stepping over the strings takes 0.2 seconds.
* A file is untrusted: every problem with it is a `GgufError`, and every length in it is checked.

The layout is described in ggml-org/ggml docs/gguf.md (2026-11-21); versions 2 and 3 can be read.
"""

from __future__ import annotations

import mmap
import os
import struct
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, Final

from ..errors import GgufError

__all__ = ["Gguf", "GgufError", "Tensor", "control_tokens", "read_gguf"]

_SCALARS: Final = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
"""Number of a type, and its code in `struct`."""
_STRING, _ARRAY = 8, 9
_MAX_DIMENSIONS: Final = 8


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor's name, shape and type (the number of a ``ggml_type``)."""

    name: str
    shape: tuple[int, ...]
    type: int

    @property
    def elements(self) -> int:
        """Number of elements."""
        return prod(self.shape)


class Gguf(Mapping[str, Any]):
    """Metadata of a file: maps keys to numbers, texts, booleans or lists of them. Values are read when asked for.

    Raises:
        GgufError: a value that is read is broken.
    """

    def __init__(self, path: Path, data: bytes | mmap.mmap) -> None:
        self.path = path
        self._data = data
        self._order = "<"
        if data[:4] != b"GGUF":
            raise GgufError(f"{path}: not a GGUF file")
        version = self._number(4, "I")
        if version & 0xFFFF == 0:  # a file from a big-endian machine
            self._order = ">"
            version = self._number(4, "I")
        if version not in (2, 3):
            raise GgufError(f"{path}: GGUF version {version} cannot be read (2 and 3 can)")
        self.version = version
        self._tensors = self._number(8, "Q")
        self._fields: dict[str, tuple[int, int]] = {}
        """Type and position of each key's value."""
        at = 24
        for _ in range(self._number(16, "Q")):
            key, at = self._text(at)
            kind = self._number(at, "I")
            self._fields[key] = (kind, at + 4)
            at = self._after(kind, at + 4)
        self._end = at

    def __getitem__(self, key: str) -> Any:
        kind, at = self._fields[key]
        if kind in _SCALARS:
            return self._number(at, _SCALARS[kind])
        if kind == _STRING:
            return self._text(at)[0]
        kind, count, at = self._array(at)
        if kind == _STRING:
            values = []
            for _ in range(count):
                value, at = self._text(at)
                values.append(value)
            return values
        code = _SCALARS[kind]
        items = array("B" if code == "?" else code)
        items.frombytes(self._data[at : at + count * items.itemsize])
        if self._order == ">":
            items.byteswap()
        return [bool(item) for item in items] if code == "?" else items.tolist()

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def count(self, key: str) -> int:
        """Return the number of items in a list; 0 if there is no list with that key."""
        kind, at = self._fields.get(key, (0, 0))
        return self._array(at)[1] if kind == _ARRAY else 0

    def text_size(self, key: str) -> int:
        """Return the number of bytes of a text without reading it; 0 if there is no text with that key."""
        kind, at = self._fields.get(key, (0, 0))
        return int(self._number(at, "Q")) if kind == _STRING else 0

    def item(self, key: str, index: int) -> str | None:
        """Return one text of a list of texts; None if there is no such list or item."""
        kind, at = self._fields.get(key, (0, 0))
        if kind != _ARRAY:
            return None
        kind, count, at = self._array(at)
        if kind != _STRING or not 0 <= index < count:
            return None
        return self._text(self._after_texts(index, at))[0]

    def chosen(self, key: str, indexes: Sequence[int]) -> dict[int, str]:
        """Return the texts at some places of a list of texts, by their places, which ascend."""
        kind, at = self._fields.get(key, (0, 0))
        if kind != _ARRAY:
            return {}
        kind, count, at = self._array(at)
        found: dict[int, str] = {}
        place = 0
        for index in indexes if kind == _STRING else ():
            if index >= count:
                break
            at = self._after_texts(index - place, at)
            found[index], at = self._text(at)
            place = index + 1
        return found

    @property
    def architecture(self) -> str:
        """Architecture in llama.cpp's words (``qwen3``); ``""`` if the file does not name one."""
        return str(self.get("general.architecture", ""))

    def of_architecture(self, name: str, default: Any = None) -> Any:
        """Return a value of the architecture: ``context_length`` is at the key ``qwen3.context_length``."""
        return self.get(f"{self.architecture}.{name}", default)

    @cached_property
    def tensors(self) -> tuple[Tensor, ...]:
        """Names, shapes and types of all tensors."""
        found = []
        at = self._end
        for _ in range(self._tensors):
            name, at = self._text(at)
            dimensions = self._number(at, "I")
            if dimensions > _MAX_DIMENSIONS:
                raise self._broken()
            shape = tuple(self._number(at + 4 + 8 * i, "Q") for i in range(dimensions))
            at += 4 + 8 * dimensions
            found.append(Tensor(name, shape, self._number(at, "I")))
            at += 12
        return tuple(found)

    # -- Bytes ---------------------------------------------------------------------------------------------------

    def _number(self, at: int, code: str) -> Any:
        try:
            return struct.unpack_from(self._order + code, self._data, at)[0]
        except (struct.error, OverflowError):
            raise self._broken() from None

    def _text(self, at: int) -> tuple[str, int]:
        """Return a string and the position after it."""
        start = at + 8
        end = start + self._number(at, "Q")
        if end > len(self._data):
            raise self._broken()
        return self._data[start:end].decode("utf-8", "replace"), end

    def _array(self, at: int) -> tuple[int, int, int]:
        """Return the type of a list's items, their number, and the position of the first."""
        kind, count = self._number(at, "I"), self._number(at + 4, "Q")
        if kind not in _SCALARS and kind != _STRING:
            raise self._broken()
        return kind, count, at + 12

    def _after(self, kind: int, at: int) -> int:
        """Return the position after a value."""
        if kind in _SCALARS:
            return at + struct.calcsize("=" + _SCALARS[kind])
        if kind == _STRING:
            return self._inside(at + 8 + int(self._number(at, "Q")))
        if kind != _ARRAY:
            raise self._broken()
        kind, count, at = self._array(at)
        if kind == _STRING:
            return self._after_texts(count, at)
        return self._inside(at + count * struct.calcsize("=" + _SCALARS[kind]))

    def _after_texts(self, count: int, at: int) -> int:
        """Return the position after ``count`` texts."""
        length = struct.Struct(self._order + "Q").unpack_from
        try:
            for _ in range(count):
                at += 8 + length(self._data, at)[0]
        except (struct.error, OverflowError):
            raise self._broken() from None
        return self._inside(at)

    def _inside(self, end: int) -> int:
        if end > len(self._data):
            raise self._broken()
        return end

    def _broken(self) -> GgufError:
        return GgufError(f"{self.path}: a broken GGUF file (it ends too soon, or a length in it is wrong)")


def read_gguf(path: str | os.PathLike[str]) -> Gguf:
    """Open a GGUF file.

    Raises:
        GgufError: the file is not a GGUF file, or is broken.
        OSError: the file cannot be read.
    """
    path = Path(path)
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size < 24:
            raise GgufError(f"{path}: not a GGUF file")
        return Gguf(path, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


_CONTROL: Final = (3, 4)
"""Types of control tokens, and of those that users have defined."""


def control_tokens(file: Gguf) -> dict[int, str]:
    """Return the control tokens of a vocabulary, and those that were added to it, by id."""
    kinds = file.get("tokenizer.ggml.token_type")
    if not isinstance(kinds, list):
        return {}
    return file.chosen("tokenizer.ggml.tokens", [number for number, kind in enumerate(kinds) if kind in _CONTROL])
