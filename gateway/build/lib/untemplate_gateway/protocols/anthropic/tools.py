"""Anthropic's own tools: those that the client runs become functions; those of its servers are left out with a note.

Source: Anthropic API reference, "Bash tool", "Text editor tool", "Memory tool".
"""

from __future__ import annotations

from typing import Any, Final

from ...notes import Notes


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
    tools, messages = body.get("tools"), body.get("messages")
    if isinstance(tools, list):
        found = [_tool(tool, i, notes) for i, tool in enumerate(tools)]
        changed["tools"] = [tool for tool in found if tool is not None]
    if isinstance(messages, list):
        changed["messages"] = [_message(message, i, notes) for i, message in enumerate(messages)]
    return changed


def _tool(tool: Any, i: int, notes: Notes) -> Any:
    """Return a tool as a function; ``None`` to leave it out."""
    kind = tool.get("type") if isinstance(tool, dict) else None
    if not isinstance(kind, str) or kind == "custom":
        return tool
    for name, (description, schema) in _CLIENT_TOOLS.items():
        if kind == name or kind.startswith(f"{name}_20"):
            return {"name": tool.get("name") or name, "description": description, "input_schema": schema}
    if any(kind.startswith(name) for name in _SERVER_TOOLS):
        notes.add(f"tools[{i}]: tools of type {kind[:64]} are not available here; left out")
        return None
    return tool


def _message(message: Any, i: int, notes: Notes) -> Any:
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list):
        return message
    kept = []
    for k, block in enumerate(content):
        kind = block.get("type") if isinstance(block, dict) else None
        if kind in _SKIPPED:
            notes.add(f"messages[{i}].content[{k}]: blocks of type {kind} are not known to the model; left out")
        else:
            kept.append(_as_text(block) if kind == "search_result" else block)
    if len(kept) < len(content) and not kept:
        kept = [{"type": "text", "text": ""}]
    return {**message, "content": kept}


def _as_text(block: dict[str, Any]) -> dict[str, Any]:
    """Return a search result as text."""
    parts = block.get("content")
    texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    lines = [block.get("title"), block.get("source"), *texts]
    return {"type": "text", "text": "\n".join(line for line in lines if isinstance(line, str))}
