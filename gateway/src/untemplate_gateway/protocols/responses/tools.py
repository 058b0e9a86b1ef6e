"""Tools of Responses as functions, and their calls as the items that the client expects.

* A custom tool takes free text: it becomes a function with one argument, ``input``.
* The local shell becomes the function ``local_shell``.
* The functions of a namespace get its name as a prefix; their calls are sent with the namespace as a field.
* Tools that OpenAI's servers run are left out, with a note.

Source: OpenAI API reference, "Responses"; codex-rs/protocol for what Codex sends and expects.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

import msgspec

from ...errors import bad_request
from ..fields import Closed, Open, about
from ..tools import Filled, Function, custom_tool, function_tool

SERVER_TOOLS: Final = (
    *("web_search", "web_search_preview", "file_search", "code_interpreter", "image_generation", "mcp"),
    *("computer", "computer_use_preview", "tool_search", "shell", "apply_patch"),
)
"""Tools that OpenAI's servers run, or that only its own models know. Versions have a date at the end."""


class FunctionTool(
    Function,
    tag_field="type",
    tag="function",
    forbid_unknown_fields=True,
    ignored="allowed_callers defer_loading output_schema",
):
    """A function."""


class ToolFormat(Open):
    """The format of a custom tool's text."""

    type: Annotated[Literal["text", "grammar"], about("`grammar` is shown to the model; it does not constrain it.")]
    syntax: Annotated[str | None, about("Language of the grammar.")] = None
    definition: Annotated[str | None, about("The grammar.")] = None


class CustomTool(Closed, tag_field="type", tag="custom", ignored="defer_loading"):
    """A tool that takes free text."""

    name: Annotated[Filled, about("Name of the tool.")]
    description: Annotated[str | None, about("Purpose of the tool, for the model.")] = None
    format: Annotated[ToolFormat | None, about("Format of the text.")] = None


class LocalShell(Closed, tag_field="type", tag="local_shell"):
    """A shell that the client runs."""


class Namespace(Closed, tag_field="type", tag="namespace"):
    """Functions under a common name."""

    name: Annotated[Filled, about("Name of the namespace.")]
    tools: Annotated[list[FunctionTool | CustomTool], about("Its tools.")]
    description: Annotated[str | None, about("Purpose of the namespace.")] = None


ResponsesTool = FunctionTool | CustomTool | LocalShell | Namespace


class Given(msgspec.Struct, frozen=True):
    """How the client knows a function that the model is offered."""

    kind: Literal["function", "custom", "local_shell"]
    name: str
    namespace: str | None = None


_SHELL: Final = "local_shell"
_SHELL_PARAMETERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "command": {"type": "array", "items": {"type": "string"}, "description": "Program and arguments."},
        "working_directory": {"type": "string"},
        "timeout_ms": {"type": "integer"},
    },
    "required": ["command"],
}


def read_tools(tools: Sequence[ResponsesTool]) -> tuple[list[dict[str, Any]], dict[str, Given]]:
    """Return the tools in the shape of Chat Completions, and those that the client knows in another way, by name.

    Raises:
        ApiError: two tools have the same name.
    """
    found: list[dict[str, Any]] = []
    given: dict[str, Given] = {}
    for i, tool in enumerate(tools):
        members = tool.tools if isinstance(tool, Namespace) else [tool]
        for member in members:
            one, how = _function(member, tool.name if isinstance(tool, Namespace) else None)
            name = one["function"]["name"]
            if how is not None:
                if name in given:
                    raise bad_request(f"tools[{i}].name", f"{name[:64]!r} is the name of another tool, too")
                given[name] = how
            found.append(one)
    return found, given


def _function(
    tool: FunctionTool | CustomTool | LocalShell, namespace: str | None
) -> tuple[dict[str, Any], Given | None]:
    if isinstance(tool, LocalShell):
        shell = function_tool(_SHELL, "Run a command on the user's machine.", _SHELL_PARAMETERS, None)
        return shell, Given("local_shell", _SHELL)
    name = flat_name(tool.name, namespace)
    if isinstance(tool, CustomTool):
        form = tool.format or ToolFormat("text")
        custom = custom_tool(name, tool.description, form.syntax, form.definition)
        return custom, Given("custom", tool.name, namespace)
    function = function_tool(name, tool.description, tool.parameters, tool.strict)
    return function, None if namespace is None else Given("function", tool.name, namespace)


def flat_name(name: str, namespace: str | None) -> str:
    """Return the name of a namespace's function, as the model sees it."""
    if not namespace:
        return name
    return f"{namespace}{name}" if namespace.endswith("_") else f"{namespace}__{name}"


def shell_arguments(action: dict[str, Any]) -> str:
    """Return the action of an earlier ``local_shell_call`` as arguments of the function."""
    names = _SHELL_PARAMETERS["properties"]
    return json.dumps({name: action[name] for name in names if action.get(name) is not None}, ensure_ascii=False)
