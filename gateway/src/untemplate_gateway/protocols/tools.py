"""Tools and tool choices of requests, in the shape of Chat Completions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from ..errors import ApiError, bad_request
from .arguments import arguments_object
from .fields import Open, about

Filled = Annotated[str, Meta(min_length=1)]


class Function(Open):
    """A function that the model may call."""

    name: Annotated[Filled, about("Name of the function.")]
    description: Annotated[str | None, about("Purpose of the function, for the model.")] = None
    parameters: Annotated[dict[str, Any] | None, about("JSON schema of the arguments; without it there are none.")] = (
        None
    )
    strict: Annotated[bool | None, about("Constrain the arguments to the schema while they are generated.")] = None


def function_tool(
    name: str, description: str | None, parameters: dict[str, Any] | None, strict: bool | None
) -> dict[str, Any]:
    """Return a tool in the shape of Chat Completions."""
    function: dict[str, Any] = {"name": name}
    if description is not None:
        function["description"] = description
    function["parameters"] = {"type": "object", "properties": {}} if parameters is None else parameters
    if strict is not None:
        function["strict"] = strict
    return {"type": "function", "function": function}


# -- Custom tools ------------------------------------------------------------------------------------------------

_INPUT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}


def custom_tool(name: str, description: str | None, syntax: str | None, definition: str | None) -> dict[str, Any]:
    """Return a tool that takes free text as a function with one argument, ``input``. The model reads the grammar of the
    text, which does not constrain it."""
    text = description or ""
    if definition:
        text += f"\nThe input must follow this {syntax or ''} grammar:\n{definition}"
    return function_tool(name, text.strip() or None, _INPUT, None)


def custom_input(arguments: str) -> str:
    """Return the text for a custom tool; the whole arguments if they do not have it."""
    text = arguments_object(arguments).get("input")
    return text if isinstance(text, str) else arguments


# -- Tool choice -------------------------------------------------------------------------------------------------


class Named(Open):
    """A function by its name."""

    name: Annotated[Filled, about("Name of the function.")]


class ChosenTool(Open):
    function: Annotated[Named | None, about("The function, as Chat Completions nests it.")] = None
    custom: Annotated[Named | None, about("The custom tool, as Chat Completions nests it.")] = None
    name: Annotated[Filled | None, about("Name of the function, where it is not nested.")] = None

    def chosen(self, path: str, names: set[str]) -> dict[str, Any]:
        """Return the choice of one tool.

        Raises:
            ApiError: there is no name, or no tool of that name.
        """
        nested = self.function or self.custom
        name = self.name if nested is None else nested.name
        if name is None:
            raise bad_request(f"{path}.name", "is required")
        if name not in names:
            raise not_offered(f"{path}.{'function' if self.custom is None else 'custom'}.name", name)
        return {"type": "function", "function": {"name": name}}


class FunctionChoice(ChosenTool, tag_field="type", tag="function"):
    """Requires a call of one function."""


class CustomChoice(ChosenTool, tag_field="type", tag="custom"):
    """Requires a call of one custom tool."""


class Allowed(Open):
    mode: Annotated[Literal["auto", "required"] | None, about("`required` makes the model call one of them.")] = None
    tools: Annotated[list[ChosenTool] | None, about("The tools that may be called.")] = None


class AllowedTools(Allowed, tag_field="type", tag="allowed_tools"):
    """Restricts the tools that may be called."""

    allowed_tools: Annotated[Allowed | None, about("Mode and tools, as Chat Completions nests them.")] = None


ToolChoice = Literal["none", "auto", "required"] | FunctionChoice | CustomChoice | AllowedTools


def not_offered(path: str, name: str) -> ApiError:
    """Return the error for a choice of a tool that the request does not offer."""
    return bad_request(path, f"{name[:64]!r} is not among the tools")


def read_tool_choice(choice: ToolChoice | None, tools: Sequence[dict[str, Any]]) -> Any:
    """Return ``tool_choice`` in the shape of Chat Completions.

    Raises:
        ApiError: a chosen tool is not among ``tools``.
    """
    if choice is None or isinstance(choice, str):
        return choice
    names = {tool["function"]["name"] for tool in tools}
    if isinstance(choice, (FunctionChoice, CustomChoice)):
        return choice.chosen("tool_choice", names)
    nested = choice.allowed_tools
    allowed, path = (choice, "tool_choice") if nested is None else (nested, "tool_choice.allowed_tools")
    if allowed.tools is None:
        raise bad_request(f"{path}.tools", "is required")
    chosen = [one.chosen(f"{path}.tools[{i}]", names) for i, one in enumerate(allowed.tools)]
    return {"type": "allowed_tools", "allowed_tools": {"mode": allowed.mode or "auto", "tools": chosen}}
