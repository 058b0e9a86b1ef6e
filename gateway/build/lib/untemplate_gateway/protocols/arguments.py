"""Arguments of tool calls in APIs that send them as objects instead of JSON text.

Arguments that are not a JSON object (the output was cut, or is not JSON) are sent as ``{"INVALID_JSON": "…"}``, with
their text unchanged. Anthropic recommends this wrapping ("Fine-grained tool streaming"). A prefix is never completed:
half of a path is another path.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

from ..errors import bad_request

INVALID_JSON: Final = "INVALID_JSON"
"""Name of the member that holds arguments which are not an object."""


def arguments_object(arguments: str, *, cut: bool = False) -> dict[str, Any]:
    """Return arguments as an object, wrapped if they are not one. No text stands for no arguments, unless the call was
    ``cut``: then the arguments are not known."""
    if not arguments.strip() and not cut:
        return {}
    try:
        value = json.loads(arguments, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError):
        return {INVALID_JSON: arguments}
    return value if isinstance(value, dict) else {INVALID_JSON: arguments}


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):  # written as null otherwise
        raise ValueError(f"{number} is too large")
    return value


def arguments_text(value: dict[str, Any], path: str) -> str:
    """Return an object as JSON text, without the wrapping of `arguments_object`.

    Raises:
        ApiError: the object is nested too deeply.
    """
    if len(value) == 1 and isinstance(raw := value.get(INVALID_JSON), str):
        return raw
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):
        raise bad_request(path, "is nested too deeply") from None
