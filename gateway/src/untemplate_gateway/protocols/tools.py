"""Tools, tool choices and calls, in the shape of Chat Completions.

A custom tool takes free text: for the model it is a function with one argument, ``input``. Its calls have their whole
text at once, because the text is known only when its JSON string has ended.

Source: OpenAI API reference, "Chat Completions".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from ..errors import bad_request
from .arguments import arguments_object
from .fields import Open, about, unknown
from .turns import called, choice_among, choice_of, names_of

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


# -- Tools of Chat Completions ----------------------------------------------------------------------------------


class FunctionTool(Open, tag_field="type", tag="function"):
    """A function. Its further fields go to the chat template."""

    function: Annotated[Function, about("The function.")]


class Grammar(Open):
    """A grammar of a custom tool's text."""

    definition: Annotated[str, about("The grammar.")]
    syntax: Annotated[str | None, about("Language of the grammar.")] = None


class TextFormat(Open):
    """The format of a custom tool's text."""

    type: Annotated[Literal["text", "grammar"], about("`grammar` is shown to the model; it does not constrain it.")]
    grammar: Annotated[Grammar | None, about("The grammar.")] = None


class Custom(Open):
    """A tool that takes free text."""

    name: Annotated[Filled, about("Name of the tool.")]
    description: Annotated[str | None, about("Purpose of the tool, for the model.")] = None
    format: Annotated[TextFormat | None, about("Format of the text.")] = None


class CustomTool(Open, tag_field="type", tag="custom"):
    """A tool that takes free text."""

    custom: Annotated[Custom, about("The tool.")]


ChatTool = FunctionTool | CustomTool


def read_tools(tools: Sequence[ChatTool], raw: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], frozenset[str]]:
    """Return the tools as functions, and the names of those that are custom tools.

    Args:
        raw: the same tools as they came, with fields that are not declared.

    Raises:
        ApiError: a custom tool has the name of another tool.
    """
    found = [_function(tool, one) for tool, one in zip(tools, raw, strict=True)]
    names = [tool["function"]["name"] for tool in found]
    custom = {name for tool, name in zip(tools, names, strict=True) if isinstance(tool, CustomTool)}
    for i, name in enumerate(names):
        if name in custom and names.index(name) != i:
            raise bad_request(
                f"tools[{i}].{tools[i].__struct_config__.tag}.name", f"{name[:64]!r} is the name of another tool, too"
            )
    return found, frozenset(custom)


def _function(tool: ChatTool, raw: dict[str, Any]) -> dict[str, Any]:
    """Return a tool with the unknown fields of its function (``response``, ``examples``), for the template."""
    if isinstance(tool, CustomTool):
        custom = tool.custom
        grammar = None if custom.format is None else custom.format.grammar
        syntax, definition = (None, None) if grammar is None else (grammar.syntax, grammar.definition)
        return custom_tool(custom.name, custom.description, syntax, definition)
    function = tool.function
    found = function_tool(function.name, function.description, function.parameters, function.strict)
    extra = unknown(type(function), raw["function"])
    return {"type": "function", "function": {**extra, **found["function"]}} if extra else found


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
        return choice_of(name, names, f"{path}.{'function' if self.custom is None else 'custom'}.name")


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


def read_tool_choice(choice: ToolChoice | None, tools: Sequence[dict[str, Any]]) -> Any:
    """Return ``tool_choice`` in the shape of Chat Completions.

    Raises:
        ApiError: a chosen tool is not among ``tools``.
    """
    if choice is None or isinstance(choice, str):
        return choice
    names = names_of(tools)
    if isinstance(choice, (FunctionChoice, CustomChoice)):
        return choice.chosen("tool_choice", names)
    nested = choice.allowed_tools
    allowed, path = (choice, "tool_choice") if nested is None else (nested, "tool_choice.allowed_tools")
    if allowed.tools is None:
        raise bad_request(f"{path}.tools", "is required")
    chosen = [one.chosen(f"{path}.tools[{i}]", names) for i, one in enumerate(allowed.tools)]
    return choice_among(allowed.mode or "auto", chosen)


# -- Calls --------------------------------------------------------------------------------------------------------


class CalledFunction(Open):
    """The function of an earlier tool call."""

    name: Annotated[Filled, about("Name of the function.")]
    arguments: Annotated[str | dict[str, Any] | None, about("The arguments.", expected="JSON text or an object")] = None


class CalledCustom(Open):
    """The custom tool of an earlier tool call."""

    name: Annotated[Filled, about("Name of the tool.")]
    input: Annotated[str, about("Its text.")]


class ChatCall(Open):
    """An earlier tool call."""

    function: Annotated[CalledFunction | None, about("The function that was called.")] = None
    custom: Annotated[CalledCustom | None, about("The custom tool that was called.")] = None
    id: Annotated[str | None, about("Id of the call, repeated by its result.")] = None
    type: Annotated[
        Literal["function", "custom", ""] | None,
        about("Kind of call.", refused="must be one of function, custom, got {got}"),
    ] = None


def read_call(call: ChatCall, path: str) -> dict[str, Any]:
    """Return an earlier call as one of a function.

    Raises:
        ApiError: it names neither a function nor a custom tool.
    """
    if call.type == "custom":
        if call.custom is None:
            raise bad_request(f"{path}.custom", "is required")
        return called(call.id or "", call.custom.name, json.dumps({"input": call.custom.input}, ensure_ascii=False))
    if call.function is None:
        raise bad_request(f"{path}.function", "is required")
    given = call.function.arguments
    return called(call.id or "", call.function.name, "{}" if given is None else given)


def custom_call(id: str, name: str, arguments: str) -> dict[str, Any]:
    """Return a call of a custom tool for the client."""
    return {"id": id, "type": "custom", "custom": {"name": name, "input": custom_input(arguments)}}
