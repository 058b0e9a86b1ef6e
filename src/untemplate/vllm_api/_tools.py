"""vLLM's helper functions for the tools of a request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..tools import find_tool

__all__ = ["find_tool_name", "find_tool_properties"]


def find_tool_properties(tools: Iterable[Any] | None, name: str) -> dict[str, Any]:
    """Return the properties (name → schema) of the parameters of the first tool called ``name``.

    Empty if there is no such tool, or its schema lists no properties. See :mod:`untemplate.tools` for the shapes of
    ``tools``; a tool in another shape is skipped.
    """
    tool = find_tool(tools, name)
    return {} if tool is None else dict(tool.properties())


def find_tool_name(tools: Iterable[Any] | None, name: str) -> bool:
    """True if one of ``tools`` is called ``name``."""
    return find_tool(tools, name) is not None
