"""Cases: raw outputs with the messages that they mean, from untemplate-vectors and written by the renderer.

A case is `clean` if its raw text is what the renderer writes for its message: then there is one right reading. Every
other output is unusual, and servers may read it in other ways without being wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import msgspec

from .._internal.output_parser import OutputParser
from ..messages import ParsedOutput
from ._model import Call, Message, json_of


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A vector that was written by hand.

    Attributes:
        format: name of how calls are written.
        whole: name of the format, reasoning included.
    """

    id: str
    format: str
    whole: str
    raw: str
    expect: dict[str, Any]
    why: str
    tools: list[dict[str, Any]] | None
    prompt: str | None
    finish_reason: str


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A raw output to force, and its message."""

    id: str
    raw: str
    expect: Message
    tools: list[dict[str, Any]]
    clean: bool
    why: str = ""
    prompt: str | None = None
    """Prompt of a record that begins in another state than usual."""
    finish_reason: str = "stop"
    """The engine's; ``length`` for an output that is cut."""
    joined: Message | None = None
    """The message together with its beginning in the prompt: some servers return that."""


@cache
def corpus() -> tuple[Record, ...]:
    """Return the vectors that were written by hand, sorted by id. Without untemplate-vectors the list is empty."""
    try:
        from untemplate_vectors import vectors
    except ImportError:
        return ()
    return tuple(
        Record(
            id=vector["id"].partition("/corpus.")[2],
            format=vector["format"].partition("+")[0],
            whole=vector["format"],
            raw=vector["output"],
            expect=vector["expect"],
            why=vector["why"],
            tools=vector["tools"],
            prompt=vector["prompt"],
            finish_reason=vector["finish_reason"],
        )
        for vector in vectors()
        if "/corpus." in vector["id"]
    )


def message_of(parsed: ParsedOutput) -> Message:
    """Return what a client gets for a parsed output."""
    return Message(
        reasoning=parsed.reasoning or "",
        content=parsed.content or "",
        calls=tuple(Call(call.function.name, call.function.arguments) for call in parsed.tool_calls),
        finish_reason=parsed.finish_reason,
    )


def cases_for(parser: OutputParser) -> list[Case]:
    """Return the cases for a server whose model writes the parser's Format.

    A vector is one if the parser reads its raw text as the message that the vector expects.
    """
    found: dict[tuple[str, str | None, str], Case] = {}
    for case in (*_written(parser), *_continued(parser), *_recorded(parser)):
        found.setdefault((case.raw, case.prompt, case.finish_reason), case)
    return list(found.values())


def _recorded(parser: OutputParser) -> Iterator[Case]:
    names = parser.format.name.split("+")
    end = _end(parser)
    for record in corpus():
        if record.format not in names:
            continue
        raw = record.raw.removesuffix(end) if end else record.raw
        if not raw or (end and end in raw):
            continue
        calls = tuple(Call(call["name"], call["arguments"]) for call in record.expect["tool_calls"])
        expect = Message(
            reasoning=record.expect["reasoning"],
            content=record.expect["content"],
            calls=calls,
            finish_reason=record.finish_reason,
        )
        if record.finish_reason == "stop" and calls and record.expect["tool_calls"][-1]["status"] != "incomplete":
            expect = msgspec.structs.replace(expect, finish_reason="tool_calls")
        tools = list(TOOLS[:1]) + _tools_for(calls) if record.tools is None else record.tools
        prompt, reason = record.prompt, record.finish_reason
        if message_of(parser.parse(raw, tools=tools, prompt=prompt, finish_reason=reason)) == expect:
            yield Case(
                id=f"{record.format}/{record.id}",
                raw=raw,
                expect=expect,
                tools=tools,
                clean=prompt is None and reason == "stop" and is_clean(parser, raw, expect, tools),
                why=record.why,
                prompt=prompt,
                finish_reason=reason,
            )


def _end(parser: OutputParser) -> str:
    turn = parser.format.turn
    return turn.end.text if turn is not None and turn.end is not None else ""


def _wire(message: Message) -> dict[str, Any]:
    calls = [
        {"id": f"callid{i:03}", "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for i, call in enumerate(message.calls)
    ]
    fields = {"reasoning_content": message.reasoning, "content": message.content, "tool_calls": calls}
    return {"role": "assistant", **{key: value for key, value in fields.items() if value}}


def is_clean(parser: OutputParser, raw: str, message: Message, tools: Sequence[Any]) -> bool:
    """True if the raw text is what the renderer writes for its message."""
    wire = _wire(message)
    if len(wire) == 1 or parser.expressible(wire) is not None:
        return False
    parsed = parser.parse(raw, tools=tools)
    right = not parsed.diagnostics and all(call.status == "ok" for call in parsed.tool_calls)
    return right and parser.render(wire).strip() == raw.strip()


def _tools_for(calls: Sequence[Call]) -> list[dict[str, Any]]:
    """Return tools whose schemas fit the arguments of the calls."""
    schemas: dict[str, dict[str, Any]] = {}
    for call in calls:
        properties = schemas.setdefault(call.name, {})
        arguments = json_of(call.arguments)
        if isinstance(arguments, dict):
            properties |= {key: _schema(value) for key, value in arguments.items()}
    return [_tool(name, properties) for name, properties in schemas.items() if name != "get_weather"]


_TYPES: Final = ((bool, "boolean"), (str, "string"), (int, "integer"), (float, "number"), (list, "array"))


def _schema(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return {"type": "object", "properties": {key: _schema(inner) for key, inner in value.items()}}
    return next(({"type": name} for kind, name in _TYPES if isinstance(value, kind)), {})


def _tool(name: str, properties: Mapping[str, Any], required: Sequence[str] = ()) -> dict[str, Any]:
    parameters: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    if required:
        parameters["required"] = list(required)
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


# -- Messages for the renderer ------------------------------------------------------------------------------------

TOOLS: Final = (
    _tool("get_weather", {"city": {"type": "string"}, "days": {"type": "integer"}}, ["city"]),
    _tool("get_time", {}),
    _tool("write_file", {"path": {"type": "string"}, "text": {"type": "string"}}, ["path", "text"]),
    _tool(
        "book",
        {
            "who": {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}},
            "stops": {"type": "array", "items": {"type": "string"}},
            "price": {"type": "number"},
            "window": {"type": "boolean"},
            "note": {"type": ["string", "null"]},
        },
    ),
)
"""The tools that are offered with the messages of the renderer, and to models that may choose."""
_ROME: Final = ("get_weather", {"city": "Rome"})
_BOOKED: Final = {
    "who": {"name": "Ada", "age": 36},
    "stops": ["Ulm", "Bad Ems"],
    "price": 12.5,
    "window": True,
    "note": None,
}
_CODE: Final = 'def f(x):\n    """Say <b>hi</b> & go."""\n\treturn {"a": [1, 2], "b": "\\n"}\n'
_MESSAGES: Final[dict[str, dict[str, Any]]] = {
    "plain": {"content": "Plain words, nothing else."},
    "markdown": {"content": "# Title\n\n* one `code`\n* two **bold**\n\n```python\nprint({'a': [1]})\n```\nDone."},
    "unicode": {"content": "Grüße, 東京 – 🚀 é \u00a0x"},
    "json as content": {"content": '{"city": "Rome", "days": [1, 2]}'},
    "reasoning": {"reasoning": "Two and two make four.", "content": "Four."},
    "reasoning in paragraphs": {"reasoning": "First this.\n\nThen that.", "content": "It is so.\n\nReally."},
    "one call": {"calls": [_ROME]},
    "content and a call": {"content": "Let me look.", "calls": [_ROME]},
    "reasoning and a call": {"reasoning": "I need the weather.", "calls": [_ROME]},
    "reasoning, content and a call": {"reasoning": "The weather.", "content": "One moment.", "calls": [_ROME]},
    "a call without arguments": {"calls": [("get_time", {})]},
    "two calls": {"calls": [_ROME, ("get_weather", {"city": "Oslo", "days": 3})]},
    "two tools": {"calls": [_ROME, ("get_time", {})]},
    "values of all types": {"calls": [("book", _BOOKED)]},
    "code in an argument": {"calls": [("write_file", {"path": "a.py", "text": _CODE})]},
    "unicode in an argument": {"calls": [("get_weather", {"city": "São Paulo 東京 🚀"})]},
    "numbers as text": {"calls": [("write_file", {"path": "123", "text": "true"})]},
    "white space in an argument": {"calls": [("write_file", {"path": " a b ", "text": "  two\n\n  lines  "})]},
    "an empty argument": {"calls": [("write_file", {"path": "x", "text": ""})]},
    "a long argument": {"calls": [("write_file", {"path": "long", "text": "All work and no play. " * 30})]},
}


def _written(parser: OutputParser) -> Iterator[Case]:
    tools = list(TOOLS)
    for name, parts in (_MESSAGES | _quoting(parser)).items():
        calls = tuple(Call(tool, json.dumps(given, ensure_ascii=False)) for tool, given in parts.get("calls", ()))
        message = Message(reasoning=parts.get("reasoning", ""), content=parts.get("content", ""), calls=calls)
        wire = _wire(message)
        if parser.expressible(wire) is not None:
            continue
        raw = parser.render(wire)
        expect = message_of(parser.parse(raw, tools=tools))
        offered = tools if calls or not parser.has_tools else tools[:1]
        yield Case(id=f"rendered/{name}", raw=raw, expect=expect, tools=offered, clean=True)


_PREFIXES: Final = {
    "plain": "Plain words,",
    "content and a call": "Let me",
    "reasoning": "Two and two",
    "reasoning and a call": "I need",
}
"""Message → the end of the part that is in the prompt already."""


def _continued(parser: OutputParser) -> Iterator[Case]:
    """Yield messages whose beginning is in the prompt, so that the model continues them."""
    turn = parser.format.turn
    if turn is None or turn.start is None:
        return
    written = {case.id.removeprefix("rendered/"): case for case in _written(parser)}
    for name, ends in _PREFIXES.items():
        case = written.get(name)
        if case is None:
            continue
        prefix, middle, raw = case.raw.partition(ends)
        prompt = turn.start.text + prefix + middle
        yield msgspec.structs.replace(
            case,
            id=f"continued/{name}",
            raw=raw,
            prompt=prompt,
            expect=message_of(parser.parse(raw, tools=case.tools, prompt=prompt)),
            joined=case.expect,
        )


def _quoting(parser: OutputParser) -> dict[str, dict[str, Any]]:
    """Return a message whose argument quotes a whole call of the Format."""
    call = _wire(Message(calls=(Call("get_time", "{}"),)))
    if parser.expressible(call) is not None:
        return {}
    text = f"It writes {parser.render(call)} there."
    return {"an argument that quotes a call": {"calls": [("write_file", {"path": "quote", "text": text})]}}
