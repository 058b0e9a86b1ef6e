"""Rows: a statement, the code that decides it, and a check."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Row", "Table", "parameters"]

Check = Callable[[], tuple[Any, Any]]


@dataclass(frozen=True)
class Row:
    """One statement.

    Attributes:
        statement: in our own words.
        code: ``module:name`` of what decides it.
        check: returns (what is found, what is expected).
        differs: empty if the statement holds. Otherwise a part of the sentence in the docs that says what holds
            instead; ``check`` then checks that.
    """

    statement: str
    code: str
    check: Check
    differs: str = ""

    @property
    def verdict(self) -> str:
        return "differs" if self.differs else "holds"


class Table:
    """The rows of one interface.

    Args:
        name: the interface.
        module: the module of code that is given without one.
    """

    def __init__(self, name: str, module: str) -> None:
        self.name = name
        self.rows: list[Row] = []
        self._module = module

    def add(self, code: str, statement: str, check: Check, *, differs: str = "") -> None:
        """Add a row."""
        code = code if ":" in code else f"{self._module}:{code}"
        self.rows.append(Row(statement, code, check, differs))

    def row(self, code: str, statement: str, *, differs: str = "") -> Callable[[Check], Check]:
        """Add a row whose check is the decorated function."""

        def decorate(check: Check) -> Check:
            self.add(code, statement, check, differs=differs)
            return check

        return decorate


def parameters(function: Any) -> dict[str, Any]:
    """Return the parameters of a function: name → default (``...`` if it needs a value), without ``self``."""
    found = inspect.signature(function).parameters.values()
    return {
        ("*" if one.kind is one.KEYWORD_ONLY else "") + one.name: ... if one.default is one.empty else one.default
        for one in found
        if one.name not in ("self", "cls") and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    }
