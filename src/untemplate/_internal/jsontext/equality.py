"""Equality of JSON: 1 is 1.0, but true is not 1, as it is in Python."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["equal_texts", "equal_values"]


def equal_values(a: Any, b: Any) -> bool:
    """True if two JSON values are equal. Lists may be tuples."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(equal_values, a, b))
    if isinstance(a, dict):
        return isinstance(b, Mapping) and a.keys() == b.keys() and all(equal_values(a[key], b[key]) for key in a)
    return bool(a == b)


def equal_texts(a: str, b: str) -> bool:
    """True if two texts are the same, or have the same JSON value."""
    if a == b:
        return True
    try:
        return equal_values(json.loads(a), json.loads(b))
    except (ValueError, RecursionError):
        return False
