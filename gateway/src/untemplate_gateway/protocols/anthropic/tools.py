"""Anthropic's own tools: those that the client runs become functions; those of its servers are left out with a note.

Source: Anthropic API reference, "Bash tool", "Text editor tool", "Memory tool".
"""

from __future__ import annotations

from typing import Any, Final

from ...notes import Notes
from ..turns import is_kind, text_part, without


def _schema(required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required.split()}


_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer"}
_EDITING: Final = {"path": _TEXT, "file_text": _TEXT, "old_str": _TEXT, "new_str": _TEXT, "insert_line": _NUMBER}
_EDITS: Final = {"enum": ["view", "create", "str_replace", "insert"]}
_CLIENT_TOOLS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "bash": (
        "Run a command in a bash session on the user's machine. `restart` begins a new session.",
        _schema("", command=_TEXT, restart={"type": "boolean"}),
    ),
    "text_editor": (
        "View and edit text files on the user's machine.",
        _schema(
            "command path",
            command=_EDITS,
            insert_text=_TEXT,
            view_range={"type": "array", "items": _NUMBER},
            **_EDITING,
        ),
    ),
    "memory": (
        "View and edit the files under /memories, which outlive the conversation.",
        _schema(
            "command",
            command={"enum": [*_EDITS["enum"], "delete", "rename"]},
            insert_text=_TEXT,
            old_path=_TEXT,
            new_path=_TEXT,
            **_EDITING,
        ),
    ),
}
"""Kind of a tool → its description and its schema. Versions have a date at the end (``bash_20250124``)."""
_SERVER_TOOLS: Final = (
    *("web_search", "web_fetch", "code_execution", "tool_search_tool", "computer", "mcp_toolset", "advisor"),
)
_SKIPPED: Final = (
    *("server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result"),
    *("bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "mcp_tool_use", "mcp_tool_result"),
    *("tool_search_tool_result", "container_upload", "compaction", "advisor_tool_result", "tool_reference"),
)
"""Blocks of tools that Anthropic's servers run."""


def prepared(body: dict[str, Any], notes: Notes) -> dict[str, Any]:
    """Return a request in which Anthropic's own tools and their blocks are replaced or left out."""
    if not isinstance(body, dict):
        return body
    changed = dict(body)
    tools = without(body.get("tools"), _SERVER_TOOLS, "tools", "tools of type {} are not available here", notes)
    if isinstance(tools, list):
        changed["tools"] = [_tool(tool) for tool in tools]
    if isinstance(body.get("messages"), list):
        changed["messages"] = [_message(message, i, notes) for i, message in enumerate(body["messages"])]
    return changed


def _tool(tool: Any) -> Any:
    """Return a tool of the client as a function."""
    for name, (description, schema) in _CLIENT_TOOLS.items():
        if is_kind(tool, name):
            return {"name": tool.get("name") or name, "description": description, "input_schema": schema}
    return tool


def _message(message: Any, i: int, notes: Notes) -> Any:
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list):
        return message
    kept = without(content, _SKIPPED, f"messages[{i}].content", "blocks of type {} are not known to the model", notes)
    if content and not kept:
        kept = [text_part("")]
    return {**message, "content": [_as_text(block) if is_kind(block, "search_result") else block for block in kept]}


def _as_text(block: dict[str, Any]) -> dict[str, Any]:
    """Return a search result as text."""
    parts = block.get("content")
    texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    lines = [block.get("title"), block.get("source"), *texts]
    return text_part("\n".join(line for line in lines if isinstance(line, str)))
