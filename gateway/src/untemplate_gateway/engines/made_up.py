"""Messages that the replay engine makes up, where no recording fits a request."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from untemplate.format import Format
from untemplate.render import expressible, render

_PLAIN: Final = (
    "This is the replay engine: no model is at work, and the words are always the same. They are written token by "
    "token as models of the format {format} write, and parsed on their way to you. Offer tools, and one is called."
)
_RESULT: Final = "The tool returned: {result}"
_THOUGHTS: Final = {
    "plain": "No tool has to be called, so a few words will do.",
    "call": "The tool {name} can answer this. One call will do.",
    "result": "The tool has returned; now I can answer.",
}
_VALUES: Final = {
    "city": "Lisbon",
    "location": "Lisbon",
    "country": "Portugal",
    "date": "2026-01-31",
    "unit": "celsius",
}
"""Example values by the name of the argument, for schemas that do not give one."""
_SAID: Final = 400
"""Most characters of the conversation that are repeated."""
_REPEATED: Final = 1000
"""Most characters of a list that repeats an item."""
TEXTS: Final = (_PLAIN, _RESULT, *_THOUGHTS.values(), json.dumps(_VALUES))
"""All texts that messages are made of, for a vocabulary."""


def made_up(format: Format, messages: Sequence[dict[str, Any]], offered: dict[str, dict[str, Any]], said: str) -> str:
    """Return a message that fits a request, as this Format's models write it.

    Args:
        messages: the conversation.
        offered: the functions that may be called, by name.
        said: the text of the last message.
    """
    if offered and (format.tools or format.channels is not None):
        name = _fitting_tool(offered, " ".join(map(text_of, messages)))
        arguments = _example(offered[name].get("parameters"), said[:_SAID])
        call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        message: dict[str, Any] = {
            "reasoning_content": _THOUGHTS["call"].format(name=name),
            "content": "One moment.",
            "tool_calls": [call],
        }
    elif messages and messages[-1].get("role") == "tool":
        message = {"reasoning_content": _THOUGHTS["result"], "content": _RESULT.format(result=said[:_SAID])}
    else:
        message = {"reasoning_content": _THOUGHTS["plain"], "content": _PLAIN.format(format=format.name)}
    tools = [{"type": "function", "function": function} for function in offered.values()]
    return _written(format, message, tools)


def _written(format: Format, message: dict[str, Any], tools: Sequence[Any]) -> str:
    """Return the message without the parts that the Format cannot express."""
    ways = [message]
    if "tool_calls" in message:
        ways += [_without(message, "content"), _without(message, "content", "reasoning_content")]
    ways += [_without(message, "reasoning_content"), _without(message, "tool_calls", "reasoning_content")]
    for way in ways:
        if expressible(format, way, tools or None) is None:
            return render(format, way)
    return str(message["content"])


def _without(message: dict[str, Any], *fields: str) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key not in fields}


def text_of(message: dict[str, Any]) -> str:
    """Return the text of a message."""
    content = message.get("content")
    if isinstance(content, list):
        return " ".join(part.get("text") or "" for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _fitting_tool(offered: dict[str, dict[str, Any]], said: str) -> str:
    """Return the first tool whose name and description share the most words with the user's text."""
    words = set(re.findall(r"\w{3,}", said.lower()))

    def shared(name: str) -> int:
        about = f"{name} {offered[name].get('description') or ''}".lower().replace("_", " ")
        return len(words.intersection(re.findall(r"\w{3,}", about)))

    return max(offered, key=shared)


def _example(schema: Any, said: str, name: str = "", depth: int = 0) -> Any:
    """Return a value that the schema allows, as far as one is easy to find. Its length is bounded by the schema's."""
    if not isinstance(schema, dict) or depth > 8:
        return _VALUES.get(name, "example") if name else {}
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    for key in ("enum", "examples"):
        if found := _list(schema.get(key)):
            return found[0]
    for key in ("anyOf", "oneOf", "allOf"):
        if found := _list(schema.get(key)):
            return _example(found[0], said, name, depth + 1)
    return _typed(schema, said, name, depth)


def _typed(schema: dict[str, Any], said: str, name: str, depth: int) -> Any:
    """Return a value of the schema's type."""
    kind = schema.get("type", "object" if "properties" in schema or not name else "string")
    if isinstance(kind, list):
        kind = next(iter(kind), "string")
    if kind == "object":
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        wanted = [key for key in _list(schema.get("required")) if isinstance(key, str)] or list(properties)
        return {key: _example(properties.get(key), said, key, depth + 1) for key in wanted}
    if kind == "array":
        item = _example(schema.get("items"), said, name, depth + 1)
        least = schema.get("minItems")
        return [item] * max(1, min(least if isinstance(least, int) else 1, _REPEATED // len(json.dumps(item))))
    simple = {"integer": schema.get("minimum", 1), "number": schema.get("minimum", 1), "boolean": True, "null": None}
    if isinstance(kind, str) and kind in simple:
        return simple[kind]
    return _VALUES.get(name) or (said if name in ("query", "text", "question", "q", "input") and said else "example")


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
