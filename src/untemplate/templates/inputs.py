"""What a template gets to see: copies, made of JSON's types.

The rule: nothing that a template is given leads back to the caller. Dicts, lists and strings are copied; models dump
themselves; what is none of these is refused, because a template could call its methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum
from typing import Any

import msgspec

__all__ = ["Inputs"]


class Inputs:
    """Copies values, and keeps count."""

    __slots__ = ("characters", "ids", "kept")

    def __init__(self) -> None:
        self.ids: set[int] = set()
        """The lists among the copies."""
        self.kept: list[Any] = []
        self.characters = 0

    def copy(self, value: Any) -> Any:
        """A copy that shares nothing mutable with ``value``.

        Raises:
            TypeError: a template must not get this.
            RecursionError: the value is nested too deeply, or holds itself.
        """
        kind = type(value)
        if kind is str:
            self.characters += len(value)
            return value
        if value is None or kind is bool or kind is int or kind is float:
            self.characters += 4
            return value
        if kind is dict:
            return self._dict(value)
        if kind is list or kind is tuple:
            self.characters += 8 * len(value)
            copied = [self.copy(item) for item in value]
            self.ids.add(id(copied))
            self.kept.append(copied)
            return copied
        return self._other(value)

    def _dict(self, value: Mapping[Any, Any]) -> dict[Any, Any]:
        copied = {}
        for key, item in value.items():
            if type(key) is str:
                self.characters += len(key) + 8
            elif not isinstance(key, (str, int, float, bool, type(None))):
                raise TypeError(f"a template cannot be given a dict with {type(key).__name__} keys")
            copied[key] = self.copy(item)
        return copied

    def _other(self, value: Any) -> Any:
        if isinstance(value, Enum):
            return self.copy(value.value)
        if isinstance(value, str):
            return self.copy(str.__str__(value))
        if isinstance(value, (int, float, date)):
            return value
        if isinstance(value, Mapping):
            return self._dict(value)
        if isinstance(value, (list, tuple, set, frozenset)):
            return self.copy(list(value))
        dump = getattr(value, "model_dump", None)
        if callable(dump) and not isinstance(value, type):
            return self.copy(dump(exclude_none=True))
        if isinstance(value, msgspec.Struct):
            return self.copy(msgspec.to_builtins(value))
        if is_dataclass(value) and not isinstance(value, type):
            return self.copy({field.name: getattr(value, field.name) for field in fields(value)})
        raise TypeError(f"a template cannot be given a {type(value).__name__}: only what JSON can say")
