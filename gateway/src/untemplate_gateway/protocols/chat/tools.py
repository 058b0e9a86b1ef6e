"""Tools of Chat Completions, and calls in a conversation and in responses.

A custom tool takes free text: for the model it is a function with one argument, ``input``. Its calls have their whole
text at once, because the text is known only when its JSON string has ended.

Source: OpenAI API reference, "Chat Completions".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from ...errors import bad_request
from ..fields import Open, about, unknown
from ..tools import Filled, Function, custom_input, custom_tool, function_tool


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
        name, arguments = call.custom.name, json.dumps({"input": call.custom.input}, ensure_ascii=False)
        return {"id": call.id or "", "type": "function", "function": {"name": name, "arguments": arguments}}
    if call.function is None:
        raise bad_request(f"{path}.function", "is required")
    given = call.function.arguments
    function = {"name": call.function.name, "arguments": "{}" if given is None else given}
    return {"id": call.id or "", "type": "function", "function": function}


def custom_call(id: str, name: str, arguments: str) -> dict[str, Any]:
    """Return a call of a custom tool for the client."""
    return {"id": id, "type": "custom", "custom": {"name": name, "input": custom_input(arguments)}}
