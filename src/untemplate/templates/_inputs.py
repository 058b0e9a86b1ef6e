"""Copies the values that a template sees into JSON's types.

A template never receives an object of the caller, because it could call its methods. Dicts, lists and strings are
copied, and models are dumped. A value without a JSON form, such as an image, becomes a placeholder (``<Image>``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final

import msgspec

__all__ = ["REASONING_FIELDS", "Inputs"]

REASONING_FIELDS: Final = ("reasoning_content", "thinking", "reasoning")
"""Names of the field that holds a message's reasoning, the usual one first."""


class Inputs:
    """Copies values and counts their characters."""

    __slots__ = ("characters", "ids", "kept")

    def __init__(self) -> None:
        self.ids: set[int] = set()
        """The ids of the lists among the copies."""
        self.kept: list[Any] = []
        """The copied lists, so that their ids stay valid."""
        self.characters: int = 0

    def messages(self, messages: Sequence[Any]) -> list[Any]:
        """Return copies of messages. Reasoning is copied to the two names that templates read, as in transformers."""
        copied = []
        for message in self.dicts("messages", messages):
            reasoning = next((message[key] for key in REASONING_FIELDS if message.get(key) is not None), None)
            if reasoning is not None:
                message = {"thinking": reasoning, **message, "reasoning_content": reasoning}
            copied.append(message)
        return self._own(copied)

    def dicts(self, what: str, values: Sequence[Any]) -> list[Any]:
        """Return copies of dicts, or of models as dicts. ``what`` names the argument in errors.

        Raises:
            TypeError: an item is neither a dict nor a model.
        """
        copied = [self.copy(value) for value in values]
        for value, one in zip(values, copied, strict=True):
            if not isinstance(one, dict):
                raise TypeError(f"{what}: expected a dict or a model, got {type(value).__name__}")
        return self._own(copied)

    def copy(self, value: Any) -> Any:
        """Return a copy that shares nothing mutable with ``value``.

        Raises:
            RecursionError: the value is nested too deeply, or contains itself.
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
        if kind is list:
            self.characters += 8 * len(value)
            return self._own([self.copy(item) for item in value])
        return self._other(value)

    def _own(self, copied: list[Any]) -> list[Any]:
        self.ids.add(id(copied))
        self.kept.append(copied)
        return copied

    def _dict(self, value: Mapping[Any, Any]) -> dict[Any, Any]:
        copied = {}
        for key, item in value.items():
            if type(key) is str:
                self.characters += len(key) + 8
                copied[key] = self.copy(item)
            else:
                copied[self.copy(key)] = self.copy(item)
        return copied

    def _other(self, value: Any) -> Any:
        for kind in (str, int, float):
            if isinstance(value, kind):
                return self.copy(getattr(kind, f"__{kind.__name__}__")(value))
        if isinstance(value, Mapping):
            return self._dict(value)
        if isinstance(value, tuple):
            return tuple(self.copy(item) for item in value)
        if isinstance(value, (list, set, frozenset)):
            return self.copy(list(value))
        dumped = _dumped(value)
        return f"<{type(value).__name__}>" if dumped is None else self._dict(dumped)


def _dumped(value: Any) -> dict[Any, Any] | None:
    """Return a model as a dict, without fields that are None (except ``content``), as in the JSON that clients send."""
    if isinstance(value, type):
        return None
    dumped: Any = None
    if callable(dump := getattr(value, "model_dump", None)):
        dumped = dump(exclude_none=True)
        if isinstance(dumped, dict) and getattr(value, "content", dumped) is None:
            dumped["content"] = None
    elif isinstance(value, msgspec.Struct):
        dumped = msgspec.to_builtins(value)
    elif is_dataclass(value):
        dumped = {field.name: getattr(value, field.name) for field in fields(value)}
    return dumped if isinstance(dumped, dict) else None
