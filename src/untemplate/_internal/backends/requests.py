"""Reading and changing requests of any type: dicts, pydantic models, msgspec structs, dataclasses, plain objects.

* Fields are read by name; the type of a request does not matter.
* A request is never changed in place: :func:`adjusted` returns a copy of the same type.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

__all__ = ["adjusted", "count_calls", "get", "keep_special_tokens", "takes_calls"]

_R = TypeVar("_R")


def get(part: Any, name: str) -> Any:
    """Return a field of an object or a mapping; ``None`` where it is missing."""
    return part.get(name) if isinstance(part, Mapping) else getattr(part, name, None)


def takes_calls(request: Any) -> bool:
    """True unless the request rules out calls: ``tool_choice="none"`` or an empty list of tools."""
    if request is None:
        return True
    tools = get(request, "tools")
    return get(request, "tool_choice") != "none" and (tools is None or len(tools) > 0)


def count_calls(messages: Iterable[Any] | None) -> int:
    """Count the calls in the history; Kimi K2 continues its numbering from there.

    Raises:
        TypeError: a message is a text or a number.
    """
    count = 0
    for i, message in enumerate(messages or ()):
        if isinstance(message, (str, bytes, int, float)):
            raise TypeError(f"messages[{i}]: expected a message, got {type(message).__name__}: {message!r:.200}")
        count += len(get(message, "tool_calls") or ())
    return count


def adjusted(request: _R, **changes: Any) -> _R:
    """Return a copy of the request, of the same type, with the changes. Fields that do not change are shared.

    Raises:
        TypeError: the request has no field of that name that can be set.
    """
    if request is None:
        return request
    if isinstance(request, Mapping):
        if not hasattr(request, "__setitem__"):
            return type(request)({**request, **changes})  # type: ignore[call-arg]
        result: Any = copy.copy(request)
        for name, value in changes.items():
            result[name] = value
        return result  # type: ignore[no-any-return]
    if isinstance(request, tuple) and hasattr(request, "_replace"):
        return request._replace(**changes)  # type: ignore[no-any-return]
    model_copy = getattr(request, "model_copy", None)
    if callable(model_copy):
        # pydantic: this also works for frozen models and for models that validate on assignment.
        return model_copy(update=changes)  # type: ignore[no-any-return]
    result = copy.copy(request)
    for name, value in changes.items():
        try:
            setattr(result, name, value)
        except AttributeError as error:
            _set_frozen(result, name, value, error)
    return result  # type: ignore[no-any-return]


def keep_special_tokens(request: _R) -> _R:
    """Keep special tokens, which markers may be, in the text: set it in the request itself, and return that. A request
    that cannot be changed is copied.

    Raises:
        TypeError: the request has no field ``skip_special_tokens`` that can be set.
    """
    try:
        request.skip_special_tokens = False  # type: ignore[attr-defined]
    except (AttributeError, TypeError, ValueError):
        return adjusted(request, skip_special_tokens=False)
    return request


def _set_frozen(part: Any, name: str, value: Any, error: AttributeError) -> None:
    """Set a field of a copy whose type is frozen."""
    if hasattr(part, name):
        set_field = msgspec.structs.force_setattr if isinstance(part, msgspec.Struct) else object.__setattr__
        try:
            set_field(part, name, value)
            return
        except (AttributeError, TypeError):
            pass
    raise TypeError(f"{type(part).__name__} has no field {name!r} that can be set") from error
