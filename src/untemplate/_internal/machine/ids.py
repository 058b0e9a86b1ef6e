"""Ids of calls.

An id is made of what is known when the call begins: a seed, the tool's name and the call's number. So the same stream
always gives the same ids, however it was cut.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final

IdFactory = Callable[[str, int], str]
"""(tool name, number of the call, counted from the first call of the history) → id."""

_VARIABLE: Final = re.compile(r"\{name\}|\{index\}")
_ALPHANUMERIC: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


@cache
def _blake2b() -> Callable[..., Any]:
    """Import the hash once; outputs without calls need not pay for it."""
    from hashlib import blake2b

    return blake2b


def _digest(seed: bytes, index: int, size: int) -> bytes:
    """Return so many bytes, which depend on the seed and the number of a call."""
    digest: bytes = _blake2b()(b"%d" % index, key=seed[:64], digest_size=size).digest()
    return digest


def new_seed() -> bytes:
    """Return a seed for one output: no two have the same ids."""
    return os.urandom(16)


def new_id(kind: str, seed: bytes, name: str, index: int) -> str:
    """Return an id of the kind that a Format's ``ids`` names.

    Args:
        kind: ``random``: ``call_`` and 24 hex digits; ``alphanumeric9``: nine letters and digits, which Mistral's
            template requires; or a pattern as the model would write it, such as ``functions.{name}:{index}``.
        seed: the seed of the output.
        name: the name of the tool.
        index: the number of the call.
    """
    if kind == "random":
        return "call_" + _digest(seed, index, 12).hex()
    if kind == "alphanumeric9":
        return "".join(_ALPHANUMERIC[b % len(_ALPHANUMERIC)] for b in _digest(seed, index, 9))
    return _VARIABLE.sub(lambda found: name if found.group() == "{name}" else str(index), kind)
