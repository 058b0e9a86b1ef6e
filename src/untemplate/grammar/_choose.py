"""``tools`` and ``tool_choice`` of a request: which tools may be called, and if one must be.

A choice that names an unknown tool is an error that lists the known ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from .._internal.backends.requests import get
from ..errors import GrammarError
from ..tools import ToolSet
from ._rules import JsonSchema
from ._schema import frozen

_DECIDES_TYPE: Final = ("type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const")

__all__ = ["Tool", "ToolSelection", "read_choice", "read_tools"]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of the request."""

    name: str
    schema: JsonSchema
    strict: bool


@dataclass(frozen=True, slots=True)
class ToolSelection:
    """The tools that may be called, and if one must be."""

    mode: Literal["none", "auto", "required"]
    tools: tuple[Tool, ...]


def read_tools(tools: Any, strict: bool) -> tuple[Tool, ...]:
    """Return the tools of a request, their schemas as values. ``strict``: all tools are strict; otherwise those that
    set it.

    Raises:
        GrammarError: a tool in an unknown shape, or a schema that is not JSON.
    """
    try:
        offered = ToolSet(tools)
    except ValueError as error:
        raise GrammarError(str(error)) from None
    return tuple(Tool(tool.name, _schema(tool.schema, tool.name), strict or tool.strict) for tool in offered)


def _schema(schema: Mapping[str, Any] | None, tool: str) -> JsonSchema:
    """Return the schema of a tool's arguments. Arguments are an object, where the schema does not set a type."""
    schema = dict(schema or {})
    if not any(word in schema for word in _DECIDES_TYPE):
        schema = {"type": "object", **schema}
    return frozen(schema, tool)


def read_choice(tool_choice: Any, tools: Sequence[Tool]) -> ToolSelection:
    """``auto`` · ``required`` (or ``any``) · ``none`` · a named function · ``allowed_tools``, in any API's style.

    Raises:
        GrammarError: a choice that does not exist, or names a tool that is not offered.
    """
    if tool_choice in (None, "auto"):
        return ToolSelection("auto" if tools else "none", tuple(tools))
    if tool_choice == "none":
        return ToolSelection("none", ())
    if tool_choice in ("required", "any"):
        if not tools:
            raise GrammarError(f"tool_choice {tool_choice!r} with no tools to call")
        return ToolSelection("required", tuple(tools))
    chosen = None if isinstance(tool_choice, str) else _chosen(tool_choice, tools)
    if chosen is None:
        raise GrammarError(
            f"tool_choice {tool_choice!r} is not 'auto', 'required', 'none', a named function or allowed_tools"
        )
    return chosen


def _chosen(tool_choice: Any, tools: Sequence[Tool]) -> ToolSelection | None:
    """Return the selection of a choice that is an object; ``None`` if it is not one."""
    kind, name = get(tool_choice, "type"), _name(tool_choice)
    if kind == "allowed_tools":
        return _allowed(tool_choice, tools)
    if name is not None and kind in (None, "function", "tool", "custom"):
        return ToolSelection("required", (_named(name, tools),))
    return read_choice(kind, tools) if kind in ("auto", "any", "required", "none") else None


def _allowed(tool_choice: Any, tools: Sequence[Tool]) -> ToolSelection:
    """Return the selection of ``allowed_tools``, which some APIs nest under that name."""
    inner = get(tool_choice, "allowed_tools")
    inner = tool_choice if inner is None else inner
    allowed = tuple(_named(_name(entry), tools) for entry in get(inner, "tools") or ())
    mode = get(inner, "mode") or "auto"
    if mode not in ("auto", "required"):
        raise GrammarError(f"tool_choice allowed_tools: mode {mode!r} is not 'auto' or 'required'")
    return ToolSelection("none" if not allowed else "auto" if mode == "auto" else "required", allowed)


def _named(name: Any, tools: Sequence[Tool]) -> Tool:
    for tool in tools:
        if tool.name == name:
            return tool
    raise GrammarError(f"tool_choice names {name!r}; the tools are: {', '.join(repr(t.name) for t in tools) or 'none'}")


def _name(entry: Any) -> Any:
    if isinstance(entry, str):
        return entry
    function = get(entry, "function")
    return get(entry if function is None else function, "name")
