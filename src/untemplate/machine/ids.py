"""Ids of calls.

Rule of this module: an id is made of what is known when the call begins (a seed, the name, the call's number), so the
same stream always gives the same ids, however it was cut.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from typing import Final

IdFactory = Callable[[str, int], str]
"""(tool name, number of the call counted on from the history) → id."""

_ALPHANUMERIC: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def random_ids(seed: bytes) -> IdFactory:
    """``call_`` and 24 hex digits; the same seed gives the same ids."""

    def make(name: str, index: int) -> str:
        return "call_" + hashlib.blake2b(b"%d" % index, key=seed[:64], digest_size=12).hexdigest()

    return make


def alphanumeric_ids(seed: bytes) -> IdFactory:
    """Nine letters and digits, as Mistral's template demands."""

    def make(name: str, index: int) -> str:
        digest = hashlib.blake2b(b"%d" % index, key=seed[:64], digest_size=9).digest()
        return "".join(_ALPHANUMERIC[b % len(_ALPHANUMERIC)] for b in digest)

    return make


def pattern_ids(pattern: str) -> IdFactory:
    """``functions.{name}:{index}``: what the model itself would write."""
    pieces = re.split(r"(\{name\}|\{index\})", pattern)

    def make(name: str, index: int) -> str:
        values = {"{name}": name, "{index}": str(index)}
        return "".join(values.get(piece, piece) for piece in pieces)

    return make


def make_ids(kind: str, seed: bytes | None = None) -> IdFactory:
    """The factory that a Format's ``ids`` names: ``random``, ``alphanumeric9`` or a pattern. Without a seed no two
    streams have the same ids."""
    if kind not in ("random", "alphanumeric9"):
        return pattern_ids(kind)
    key = os.urandom(16) if seed is None else seed
    return random_ids(key) if kind == "random" else alphanumeric_ids(key)
