"""The name of the reasoning in messages: policy ``reasoning_field``."""

from __future__ import annotations

from typing import Any

__all__ = ["name_reasoning"]

_REASONING_FIELDS = ("reasoning", "reasoning_content", "both", "inline")


def name_reasoning(dump: dict[str, Any], field: str) -> dict[str, Any]:
    """Rename the dump's ``reasoning`` as policy ``reasoning_field`` says: ``reasoning``, ``reasoning_content`` or
    ``both``. Changes the dump, and returns it.

    Raises:
        ValueError: another field.
    """
    if field not in _REASONING_FIELDS:
        raise ValueError(f"reasoning_field: {field!r} is not one of: {', '.join(map(repr, _REASONING_FIELDS))}")
    if field in ("reasoning_content", "both") and "reasoning" in dump:
        dump["reasoning_content"] = dump["reasoning"] if field == "both" else dump.pop("reasoning")
    return dump
