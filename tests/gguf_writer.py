"""Write GGUF files for tests: metadata, and tensors of zeros."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_CODES = {8: None, 7: "?", 4: "I", 5: "i", 6: "f", 10: "Q", 12: "d"}


def write_gguf(
    path: Path,
    fields: Mapping[str, Any] = {},
    tensors: Mapping[str, tuple[int, ...]] = {},
    *,
    order: str = "<",
    version: int = 3,
) -> Path:
    """Write a file with these fields, and tensors of these shapes (float16, GGML's number 1, all zeros)."""
    out = b"GGUF" + struct.pack(order + "IQQ", version, len(tensors), len(fields))
    for key, value in fields.items():
        kind, data = _value(value, order)
        out += _text(key, order) + struct.pack(order + "I", kind) + data
    offset = 0
    for name, shape in tensors.items():
        out += _text(name, order) + struct.pack(order + "I", len(shape))
        out += struct.pack(order + f"{len(shape)}QIQ", *shape, 1, offset)
        offset += -(-_size(shape) // 32) * 32
    out += bytes(-len(out) % 32) + bytes(offset)
    path.write_bytes(out)
    return path


def _size(shape: tuple[int, ...]) -> int:
    count = 2
    for n in shape:
        count *= n
    return count


def _text(text: str, order: str) -> bytes:
    data = text.encode()
    return struct.pack(order + "Q", len(data)) + data


def _value(value: Any, order: str) -> tuple[int, bytes]:
    """Return GGUF's type of a value, and its bytes."""
    if isinstance(value, str):
        return 8, _text(value, order)
    if isinstance(value, list):
        kinds = [_value(item, order)[0] for item in value] or [4]
        data = b"".join(_value(item, order)[1] for item in value)
        return 9, struct.pack(order + "IQ", kinds[0], len(value)) + data
    kind = 7 if isinstance(value, bool) else 6 if isinstance(value, float) else 5 if value < 0 else 4
    return kind, struct.pack(order + str(_CODES[kind]), value)
