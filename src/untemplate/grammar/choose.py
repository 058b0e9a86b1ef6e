"""Which tools may be called, and whether one must be: ``tools`` and ``tool_choice`` of a request, read once.

Rule of this module: a choice that names a tool which is not there is an error that lists those that are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import GrammarError
from .rules import JsonSchema
from .schema import frozen

__all__ = ["Tool", "ToolSelection", "read_choice", "read_tools"]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of the request."""

    name: str
    schema: JsonSchema
    strict: bool


@dataclass(frozen=True, slots=True)
class ToolSelection:
    """What ``tool_choice`` comes to."""

    mode: Literal["none", "auto", "required"]
    tools: tuple[Tool, ...]


def read_tools(tools: Iterable[Any] | None, strict: bool) -> tuple[Tool, ...]:
    """The functions among ``tools`` (Chat Completions or Responses style, dicts or objects). ``strict``: all of them
    are; else those that say so.

    Raises:
        GrammarError: a tool without a name, or with parameters that are no schema.
    """
    if isinstance(tools, str | bytes | Mapping) or not isinstance(tools, Iterable | None):
        raise GrammarError(f"tools: expected a list, got {type(tools).__name__}")
    found: dict[str, Tool] = {}
    for i, tool in enumerate(tools or ()):
        function = _get(tool, "function")
        function = tool if function is None else function
        name = _get(function, "name")
        if not isinstance(name, str) or not name:
            kind = _get(tool, "type")
            if name is None and isinstance(kind, str) and kind != "function":
                continue
            raise GrammarError(f"tools[{i}]: has no name")
        schema = _get(function, "parameters")
        if schema is not None and not isinstance(schema, Mapping):
            dump = getattr(schema, "model_dump", None)
            if dump is None:
                raise GrammarError(
                    f"tool {name!r}: 'parameters' is {type(schema).__name__}, not an object (a JSON schema)"
                )
            schema = dump(by_alias=True, exclude_none=True)
        schema = dict(schema or {})
        if not any(word in schema for word in ("type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const")):
            schema = {"type": "object", **schema}
        wants = strict or _get(function, "strict") is True
        found.setdefault(name, Tool(name, frozen(schema, name), wants))
    return tuple(found.values())


def read_choice(tool_choice: Any, tools: Sequence[Tool]) -> ToolSelection:
    """``auto`` · ``required`` (or ``any``) · ``none`` · a named function · ``allowed_tools``, in any API's style.

    Raises:
        GrammarError: a choice that does not exist, or names a tool that is not offered.
    """
    if tool_choice is None or tool_choice == "auto":
        return ToolSelection("auto" if tools else "none", tuple(tools))
    if tool_choice == "none":
        return ToolSelection("none", ())
    if tool_choice in ("required", "any"):
        if not tools:
            raise GrammarError(f"tool_choice {tool_choice!r} with no tools to call")
        return ToolSelection("required", tuple(tools))
    if not isinstance(tool_choice, str):
        kind = _get(tool_choice, "type")
        if kind == "allowed_tools":
            inner = _get(tool_choice, "allowed_tools")
            inner = tool_choice if inner is None else inner
            listed = _get(inner, "tools")
            names = [_name(entry) for entry in listed or ()]
            allowed = tuple(t for t in (_named(name, tools) for name in names))
            mode = _get(inner, "mode") or "auto"
            if mode not in ("auto", "required"):
                raise GrammarError(f"tool_choice allowed_tools: mode {mode!r} is not 'auto' or 'required'")
            return ToolSelection("none" if not allowed else "auto" if mode == "auto" else "required", allowed)
        name = _name(tool_choice)
        if name is not None and kind in (None, "function", "tool", "custom"):
            return ToolSelection("required", (_named(name, tools),))
        if kind in ("auto", "any", "required", "none"):
            return read_choice(kind, tools)
    raise GrammarError(
        f"tool_choice {tool_choice!r} is not 'auto', 'required', 'none', a named function or allowed_tools"
    )


def _named(name: Any, tools: Sequence[Tool]) -> Tool:
    for tool in tools:
        if tool.name == name:
            return tool
    raise GrammarError(f"tool_choice names {name!r}; the tools are: {', '.join(repr(t.name) for t in tools) or 'none'}")


def _name(entry: Any) -> Any:
    if isinstance(entry, str):
        return entry
    function = _get(entry, "function")
    return _get(entry if function is None else function, "name")


def _get(part: Any, key: str) -> Any:
    return part.get(key) if isinstance(part, Mapping) else getattr(part, key, None)
