"""Reads messages of any type into one shape.

* A message is a dict, a struct, a pydantic model or any object with the same attributes. A call may hold its name and
  arguments itself or in a ``function``.
* Arguments given as text stay text, so that a format that writes JSON passes them through.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from ..backends.requests import get

__all__ = ["AssistantMessage", "MessageCall", "read_message"]


_FIELDS: Final = ("role", "content", "reasoning", "reasoning_content", "tool_calls")


@dataclass(frozen=True, slots=True)
class MessageCall:
    """One call of a message. ``arguments`` is JSON text or a mapping; ``id`` is empty if none was given."""

    name: str
    arguments: str | Mapping[str, Any]
    id: str = ""

    def object(self) -> dict[str, Any]:
        """Return the arguments as a dict.

        Raises:
            ValueError: they are not a JSON object.
        """
        value = self.arguments
        if isinstance(value, str):
            value = json.loads(value, parse_constant=_refuse) if value.strip() else {}
        if not isinstance(value, Mapping):
            raise ValueError(f"{type(value).__name__} is not an object")
        return dict(value)


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """An assistant message. Missing text is empty."""

    reasoning: str
    content: str
    calls: tuple[MessageCall, ...]


def read_message(message: Any) -> AssistantMessage:
    """Return ``message`` in one shape.

    Raises:
        TypeError: this is not a message, or a text, a name or arguments have an unexpected type.
        ValueError: the message of another role.
    """
    if isinstance(message, AssistantMessage):
        return message
    if not isinstance(message, Mapping) and not any(hasattr(message, name) for name in _FIELDS):
        raise TypeError(
            f"message: expected an assistant message (a dict, or an object with {', '.join(_FIELDS)}), "
            f"got {type(message).__name__}: {message!r:.80}"
        )
    role = get(message, "role")
    if role not in (None, "assistant"):
        raise ValueError(f"message: expected the role 'assistant', got {role!r:.80}")
    reasoning = get(message, "reasoning")
    if reasoning is None:
        reasoning = get(message, "reasoning_content")
    calls = tuple(_call(call, i) for i, call in enumerate(get(message, "tool_calls") or ()))
    return AssistantMessage(_text(reasoning, "reasoning"), _text(get(message, "content"), "content"), calls)


def _call(call: Any, i: int) -> MessageCall:
    function = get(call, "function")
    if function is None:
        function = call
    name = get(function, "name")
    if not isinstance(name, str):
        raise TypeError(f"tool_calls[{i}].function.name: expected text, got {type(name).__name__}")
    arguments = get(function, "arguments")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, (str, Mapping)):
        raise TypeError(
            f"tool_calls[{i}].function.arguments: expected JSON text or a mapping, got {type(arguments).__name__}"
        )
    call_id = get(call, "id")
    return MessageCall(name, arguments, call_id if isinstance(call_id, str) else "")


def _text(value: Any, where: str) -> str:
    """Return text, or the joined texts of a list of parts (OpenAI's ``[{"type": "text", "text": …}]``)."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return "".join(_text(part if isinstance(part, str) else get(part, "text"), where) for part in value)
    raise TypeError(f"{where}: expected text, got {type(value).__name__}")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
