"""What mypyc has to be told, and the interpreter need not know.

Rule of this module: nothing is needed where the engine is not compiled.
"""

from __future__ import annotations

from typing import Any

try:
    from mypy_extensions import mypyc_attr
except ImportError:

    def mypyc_attr(**_: Any) -> Any:  # type: ignore[misc]
        return lambda cls: cls


__all__ = ["mypyc_attr"]
