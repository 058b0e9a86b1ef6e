"""What is tested: every Format of the catalogue, some tools, and what holds of one sample.

Rule of this module: a sample is sound if it parses whole, without a diagnostic, into calls for offered tools whose
arguments their schemas allow.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from untemplate import OutputParser
from untemplate.format import Format
from untemplate.formats import named
from untemplate.formats.registry import entries

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Weather",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "where"},
                    "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                    "days": {"type": "integer"},
                },
                "required": ["city"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "get_weather_map",
            "parameters": {
                "type": "object",
                "properties": {
                    "area": {
                        "type": "object",
                        "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}},
                        "required": ["lat", "lon"],
                    },
                    "layers": {"type": "array", "items": {"type": "string"}},
                    "dark": {"type": "boolean"},
                    "note": {"type": ["string", "null"]},
                    "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                },
                "required": ["area", "dark"],
                "additionalProperties": False,
            },
        },
    },
    {"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}}},
    {"type": "function", "function": {"name": "now"}},
]


@cache
def formats() -> dict[str, Format]:
    """Every way of the catalogue to write calls, with the reasoning of the same name; equal ones once."""
    found: dict[str, Format] = {}
    seen: dict[Any, str] = {}
    for entry in entries():
        if entry.kind != "tool":
            continue
        fmt = named(entry.name)
        if not fmt.tools and fmt.channels is None:
            continue
        key = fmt.extend(name="x")
        if key not in seen:
            seen[key] = entry.name
            found[entry.name] = fmt
    return found


@cache
def validators() -> dict[str, Any]:
    import jsonschema_rs

    return {
        t["function"]["name"]: jsonschema_rs.validator_for(t["function"].get("parameters", {"type": "object"}))
        for t in TOOLS
    }


def problem(parser: OutputParser, text: str, ids: list[int] | tuple[()], *, strict: bool, calls: bool,
            prompt: str | None = None, tools: Any = TOOLS, tool_choice: Any = None) -> str | None:
    """Why a sample is not sound; ``None`` if it is."""
    parsed = parser.parse(text, tools=tools, token_ids=ids, prompt=prompt, tool_choice=tool_choice)
    if parsed.diagnostics:
        return f"diagnostics {[d.code for d in parsed.diagnostics]}"
    if calls and not parsed.tool_calls:
        return "no calls"
    for call in parsed.tool_calls:
        check = validators().get(call.function.name)
        if check is None:
            return f"unknown tool {call.function.name!r}"
        try:
            arguments = json.loads(call.function.arguments)
        except ValueError:
            return f"arguments are not JSON: {call.function.arguments!r}"
        if not isinstance(arguments, dict):
            return f"arguments are no object: {call.function.arguments!r}"
        if strict and not check.is_valid(arguments):
            error = next(iter(check.iter_errors(arguments)))
            return f"arguments do not validate: {call.function.arguments!r}: {error.message}"
    return None


HUGE = __import__("re").compile(r"[eE][+-]?\d{3,}")
"""A number that no float holds: JSON to an engine, none to Python. Such samples do not count."""
