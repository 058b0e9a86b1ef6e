"""Ids of calls.

An id is made of what is known when the call begins: a seed, the tool's name and the call's number. So the same stream
always gives the same ids, however it was cut.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

IdFactory = Callable[[str, int], str]
"""(tool name, number of the call, counted from the first call of the history) → id."""

_ALPHANUMERIC: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


@cache
def _blake2b() -> Callable[..., Any]:
    """Import the hash, which outputs without calls need not pay for."""
    from hashlib import blake2b

    return blake2b


def _digest(seed: bytes, index: int, size: int) -> bytes:
    """Return so many bytes, which depend on the seed and the number of a call."""
    digest: bytes = _blake2b()(b"%d" % index, key=seed[:64], digest_size=size).digest()
    return digest


def _hex_id(seed: bytes, name: str, index: int) -> str:
    """Return ``call_`` and 24 hex digits."""
    return "call_" + _digest(seed, index, 12).hex()


def _alphanumeric_id(seed: bytes, name: str, index: int) -> str:
    """Return nine letters and digits, which Mistral's template requires."""
    return "".join(_ALPHANUMERIC[b % len(_ALPHANUMERIC)] for b in _digest(seed, index, 9))


def pattern_ids(pattern: str) -> IdFactory:
    """Return a factory of ids as the model would write them, such as ``functions.{name}:{index}``."""
    pieces = re.split(r"(\{name\}|\{index\})", pattern)

    def make(name: str, index: int) -> str:
        values = {"{name}": name, "{index}": str(index)}
        return "".join(values.get(piece, piece) for piece in pieces)

    return make


def new_seed() -> bytes:
    """Return a seed for one output: no two have the same ids."""
    return os.urandom(16)


def make_ids(kind: str, seed: bytes) -> IdFactory:
    """Return the factory that a Format's ``ids`` names: ``random``, ``alphanumeric9`` or a pattern."""
    if kind not in ("random", "alphanumeric9"):
        return pattern_ids(kind)
    return partial(_hex_id if kind == "random" else _alphanumeric_id, seed)
