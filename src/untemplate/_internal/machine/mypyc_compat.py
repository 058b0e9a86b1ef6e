"""Mypyc's decorator for classes, or a stand-in for it where mypy_extensions is not installed."""

from __future__ import annotations

from typing import Any

try:
    from mypy_extensions import mypyc_attr
except ImportError:

    def mypyc_attr(**_: Any) -> Any:  # type: ignore[misc]
        return lambda cls: cls


__all__ = ["mypyc_attr"]
