"""The subjects of the grammar tests: every Format of the catalogue and of the public templates, some tools, and the
check of one sample.

* A sample is sound if the whole of it parses without a diagnostic into calls for offered tools with valid arguments;
  content must be what ``response_format`` asks for.
* Templates are read from a folder next to the checkout; without them, their cells are left out.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from tests.public import TEMPLATES
from untemplate import OutputParser
from untemplate.format import Format, LiteralArguments, Marker, NamedBody, TaggedArguments, Tools, Turn
from untemplate.formats import named
from untemplate.formats._registry import entries

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
    """Return every way of the catalogue to write calls, with the reasoning of the same name; equal ones once."""
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
def templates() -> dict[str, Format]:
    """Return the Format that analysis infers from every template with calls, by the name of its file."""
    found: dict[str, Format] = {}
    for path in TEMPLATES:
        fmt = OutputParser.from_template(path.read_text(encoding="utf-8")).format
        if fmt.tools or fmt.channels is not None:
            found[path.name] = fmt
    return found


def subjects() -> dict[str, Format]:
    """Return all Formats that have cells."""
    return {**formats(), **templates()}


ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}, "why": {"type": "string"}},
    "required": ["answer"],
}
"""A ``response_format``."""


@cache
def validators() -> dict[str, Any]:
    import jsonschema_rs

    return {
        t["function"]["name"]: jsonschema_rs.validator_for(t["function"].get("parameters", {"type": "object"}))
        for t in TOOLS
    }


HINTS = frozenset(
    ("foreign_marker", "call_like_text", "markup_in_value", "fenced_call", "quoted_call", "unread_marker")
)
"""Diagnostics that only hint at text: markers in content or in a value, or an opened fence or quotation before a call,
which a grammar of free text may draw."""


def problem(
    parser: OutputParser,
    text: str,
    ids: list[int] | tuple[()],
    *,
    strict: bool,
    calls: bool,
    prompt: str | None = None,
    tools: Any = TOOLS,
    tool_choice: Any = None,
    response: bool = False,
    allowed: frozenset[str] = frozenset(),
) -> str | None:
    """Return the reason why a sample is not sound; ``None`` if it is. Codes of diagnostics may be allowed."""
    parsed = parser.parse(text, tools=tools, token_ids=ids, prompt=prompt, tool_choice=tool_choice)
    if codes := [d.code for d in parsed.diagnostics if d.code not in HINTS | allowed]:
        return f"diagnostics {codes}"
    if calls and not parsed.tool_calls:
        return "no calls"
    if response and not parsed.tool_calls:
        import jsonschema_rs

        try:
            content = json.loads(parsed.content or "")
        except ValueError:
            return f"content is not JSON: {parsed.content!r}"
        if not jsonschema_rs.is_valid(ANSWER, content):
            return f"content does not validate: {parsed.content!r}"
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


HUGE = re.compile(r"[eE][+-]?\d{3,}")
"""A number too large for a float: valid JSON for an engine, but not for Python. Such samples do not count."""


def _made(tools: Tools) -> Format:
    special = ("<|end|>", "<call>", "</call>", "<q>")
    return Format(name="made", turn=Turn(end=Marker("<|end|>")), tools=(tools,), special_tokens=special)


def _lines() -> Tools:
    arguments = LiteralArguments(open="", close="", assign=": ", separator="\n", quotes=('"',))
    body = NamedBody(name_close=Marker(">\n"), arguments=arguments)
    return Tools(call_open=Marker("<do tool="), call_close=Marker("\n</do>"), body=body)


def _literals(quote: str) -> Tools:
    arguments = LiteralArguments(quotes=(quote,), quoted="all", escapes=False)
    return Tools(call_open=Marker("<call>"), call_close=Marker("</call>"), body=NamedBody(arguments=arguments))


def _tags(**changes: Any) -> Tools:
    parts: dict[str, Any] = {
        "key_open": Marker("<key>"),
        "key_close": Marker("</key>"),
        "value_open": Marker("<value>"),
        "value_close": Marker("</value>"),
    }
    arguments = TaggedArguments(**{**parts, **changes})
    body = NamedBody(name_open=Marker("<name="), name_close=Marker(">"), arguments=arguments)
    return Tools(call_open=Marker("<call>"), call_close=Marker("</call>"), body=body)


MADE = {
    "types": _made(_tags(type_open=Marker("<type>"), type_close=Marker("</type>"))),
    "sections": _made(_tags(escape="cdata")),
    "entities": _made(_tags(escape="xml")),
    "a newline after": _made(_tags(value_close=Marker("\n</value>"), trim_after=1)),
    "values on lines": _made(_lines()),
    "values in double quotes": _made(_literals('"')),
    "values in single quotes": _made(_literals("'")),
    "values in long quotes": _made(_literals("<q>")),
}
"""Formats with features that no family has."""


def opened(fmt: Format) -> str:
    """Return a prompt that leaves reasoning open."""
    start = "" if fmt.turn.start is None else fmt.turn.start.text
    channels = fmt.channels
    if channels is not None:
        word = "" if channels.channel is None else channels.channel.text
        return f"{start}{word}{channels.reasoning[0]}{channels.body.text}"
    assert fmt.reasoning is not None
    return start + ("" if fmt.reasoning.open is None else fmt.reasoning.open.text)


def _call(name: str, arguments: dict[str, Any], call_id: str = "") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


PARIS = {"city": "Paris"}
AWKWARD = "Ünï \"q\" \\ 's' <b>&amp;</b> {x: [1]} 日本 🙂\nline two\n\n  indented\ttab"
MESSAGES: list[dict[str, Any]] = [
    {"content": "Hello, how can I help?"},
    {"reasoning": "The user greets.", "content": "Hello!"},
    {"tool_calls": [_call("get_weather", PARIS)]},
    {"tool_calls": [_call("get_weather", {"city": "Paris", "unit": "celsius", "days": 3}, "a1B2c3D4e")]},
    {"tool_calls": [_call("get_weather", {"city": AWKWARD})]},
    {"tool_calls": [_call("get_weather", {"city": ""})]},
    {"tool_calls": [_call("get_weather", {"city": "x" * 600})]},
    {"tool_calls": [_call("get_weather_map", {"area": {"lat": 1.5, "lon": -2}, "dark": True})]},
    {
        "tool_calls": [
            _call(
                "get_weather_map",
                {"area": {"lat": 0, "lon": 1e-05}, "layers": ["a", "b c"], "dark": False, "note": "n", "limit": 7},
            )
        ]
    },
    {
        "tool_calls": [
            _call("get_weather_map", {"area": {"lat": 1, "lon": 2}, "layers": [], "dark": False, "note": None})
        ]
    },
    {"tool_calls": [_call("get_weather_map", {"area": {"lat": 1, "lon": 2}, "dark": False, "limit": None})]},
    {"tool_calls": [_call("ping", {})]},
    {"tool_calls": [_call("now", {})]},
    {"tool_calls": [_call("get_weather", PARIS), _call("ping", {}), _call("get_weather", {"city": "Oslo"})]},
    {"content": "Let me look.", "tool_calls": [_call("get_weather", PARIS)]},
    {"reasoning": "I should look.", "tool_calls": [_call("get_weather", PARIS)]},
    {
        "reasoning": "I should look.",
        "content": "One moment.",
        "tool_calls": [_call("get_weather", PARIS), _call("ping", {})],
    },
]
"""Arguments in the order of their schema: no engine accepts them in another."""
