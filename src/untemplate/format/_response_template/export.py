r"""Translates a Format to a ``response_template``, the inverse of `from_response_template`.

transformers (5.13 and later, version 1) reads such a template from ``tokenizer_config.json`` and applies its patterns
with the ``regex`` package. A template has one field per part of the message:

* ``content`` is the text outside the other fields, or the text between its own markers.
* ``tool_calls`` opens with all markers before the arguments of one call and closes with all markers after them. White
  space around markers belongs to the patterns, so that it does not remain in the content.
* A marker that ends a turn counts only at the end of the output (``\Z``).

A `FormatError` is raised if the template cannot describe how calls are written. `Exported.left_out` lists what it
cannot read in unusual outputs.

Source: huggingface/transformers docs/source/en/chat_response_parsing.md (2026-11-22).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from .._parts import (
    FormatError,
    FormatFields,
    JsonArguments,
    JsonBody,
    LiteralArguments,
    Marker,
    NamedBody,
    Reasoning,
    TaggedArguments,
    Tools,
)
from .checks import Json
from .export_channels import channel_fields
from .marker_patterns import NAME, SPACE, any_of, maybe, spaced, then_maybe, visible

__all__ = ["READERS", "Exported", "export"]

READERS: Final = ("transformers", "engine")
"""Readers of response templates. For vLLM and SGLang, the engines, other rules hold for fields."""
_NO_ID: Final = "{}: ids are not read, since a template fails where one is missing"
_TEXT: Final = {"content": "text", "content_args": {"strip": False}, "repeats": True, "join": ""}


@dataclass(slots=True)
class Exported:
    """A response template, and the paths of the parts of the Format that it does not hold, each with the reason."""

    template: Json
    left_out: list[str] = field(default_factory=list)


def export(fmt: FormatFields, reader: str = "transformers") -> Exported:
    """Return ``fmt`` as a response template.

    Raises:
        FormatError: the template cannot describe how calls are written; ``path`` names the part.
        ValueError: ``reader`` is not one of `READERS`.
    """
    if reader not in READERS:
        raise ValueError(f"reader: {reader!r} is not one of: {', '.join(map(repr, READERS))}")
    if fmt.turn.start is None:
        raise FormatError("turn.start", "is missing: a response template needs the header of the assistant's turn")
    start = any_of(fmt.turn.start) + SPACE + _no_reasoning(fmt)
    result = Exported({"version": 1, "defaults": {"role": "assistant"}, "start_anchor_pattern": start})
    end = _End(fmt)
    if fmt.channels is not None:
        if fmt.tools:
            raise FormatError("tools", "a response template cannot describe a call that names its tool twice")
        if fmt.channels.channel is None and fmt.channels.recipient is not None:
            raise FormatError("channels.channel", "is missing: a response template needs the names of channels")
        fields = channel_fields(fmt.channels, end.marked)
    else:
        fields = _text_fields(fmt, end, result.left_out)
        if fmt.tools:
            fields["tool_calls"] = _calls(fmt, end, result.left_out)
    result.template["fields"] = _for_engine(fields) if reader == "engine" else fields
    return result


def _for_engine(fields: Json) -> Json:
    """Return the fields with the engines' name for reasoning. They stream texts, so texts may not be joined."""
    named = {"thinking" if key == "reasoning_content" else key: field for key, field in fields.items()}
    return {key: {name: value for name, value in field.items() if name != "join"} for key, field in named.items()}


def _no_reasoning(fmt: FormatFields) -> str:
    """Return a pattern for what a prompt holds where reasoning is switched off: an empty block, or its close alone."""
    reasoning = fmt.reasoning
    return "" if reasoning is None else f"(?:{maybe(reasoning.open)}{any_of(reasoning.close)}{SPACE})?"


class _End:
    """Patterns for the end of the output: white space and end-of-turn markers, of which ``marked`` needs one."""

    def __init__(self, fmt: FormatFields) -> None:
        markers = "" if fmt.turn.end is None else f"(?:{any_of(fmt.turn.end)}{SPACE})"
        self.marked = rf"{SPACE}{markers}+\Z" if markers else r"\Z"
        self.optional = rf"(?:{SPACE}{markers}*\Z)?" if markers else rf"(?:{SPACE}\Z)?"


# -- Reasoning and content ----------------------------------------------------------------------------------------


def _text_fields(fmt: FormatFields, end: _End, left_out: list[str]) -> Json:
    fields: Json = {}
    if fmt.reasoning is not None:
        fields["reasoning_content"] = _reasoning(fmt, fmt.reasoning, end)
        if not fmt.reasoning.repeats:
            left_out.append("reasoning.repeats: a template reads reasoning wherever its markers are")
    content: Json = {"close_pattern": end.marked, **_TEXT}
    if fmt.content is not None:
        content["close_pattern"] = f"{spaced(fmt.content.close)}{SPACE}|{end.marked}"
        if fmt.content.written == "always":
            content["open_pattern"] = f"{spaced(fmt.content.open)}{SPACE}"
            left_out.append("content: text outside its markers is dropped")
        else:
            left_out.append("content.open: it is read only after reasoning")
    fields["content"] = content
    return fields


def _reasoning(fmt: FormatFields, reasoning: Reasoning, end: _End) -> Json:
    content = fmt.content
    content_open = content.open if content is not None and content.written == "with_reasoning" else None
    return {
        "open_pattern": f"{spaced(reasoning.open)}{SPACE}" if reasoning.open is not None else "^",
        "close_pattern": f"{spaced(reasoning.close)}{then_maybe(content_open)}{SPACE}|{end.marked}",
        **_TEXT,
    }


# -- Calls --------------------------------------------------------------------------------------------------------


def _calls(fmt: FormatFields, end: _End, left_out: list[str]) -> Json:
    tools = fmt.tools[0]
    left_out += [f"tools[{i}]: a template has one way to write calls" for i in range(1, len(fmt.tools))]
    if tools.bare:
        raise FormatError("tools[0]", "has no marker before a call, and a response template needs one")
    if isinstance(tools.body, JsonBody):
        return _json_calls(tools, tools.body, end, left_out)
    return _named_calls(fmt, tools, tools.body, end, left_out)


def _json_calls(tools: Tools, body: JsonBody, end: _End, left_out: list[str]) -> Json:
    if body.name_is_key:
        raise FormatError("tools[0].body.name_is_key", "a response template cannot take a name from a key")
    for name in ("accepted_name_keys", "accepted_arguments_keys"):
        if getattr(body, name):
            left_out.append(f"tools[0].body.{name}: a template has one key for each part of a call")
    listed = tools.list_open is not None
    if listed and tools.list_optional:
        left_out.append("tools[0].list_optional: a call without its list is not read")
    root = "" if listed else "content."
    inner = f"{root}{body.nested_key}." if body.nested_key else root
    function = {"name": f"{{{inner}{body.name_key}}}", "arguments": f"{{{inner}{body.arguments_key}}}"}
    call = {"type": "function", "function": function}
    if body.id_key is not None:
        left_out.append(_NO_ID.format("tools[0].body.id_key"))
    repeated = {"transform_each": True} if listed else {"repeats": True}
    if not listed and tools.call_open is None:
        raise FormatError("tools[0].call_open", "is missing: a response template needs a marker before each call")
    return {**_edges(tools, "", None, end), "content": "json", **repeated, "transform": call}


def _named_calls(fmt: FormatFields, tools: Tools, body: NamedBody, end: _End, left_out: list[str]) -> Json:
    path = "tools[0].body"
    for part in (body, body.arguments):
        if "xml" in (getattr(part, "escape", ""), getattr(part, "key_escape", "")):
            left_out.append(f"{path}.escape: escaped characters stay as they are written")
    name, has_id = _name(fmt, body, left_out)
    call: Json = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
    if has_id:
        call = {"id": "{id}", **call}
    arguments, first = _arguments(body)
    closes = visible((body.arguments_close, tools.call_close, tools.section_close))
    ahead = f"(?={SPACE}(?:{'|'.join([first, *map(any_of, closes)])}))"
    header = f"{spaced(body.name_open)}{SPACE}{name}{spaced(body.name_close)}{ahead}{SPACE}"
    edges = _edges(tools, header, body.arguments_close, end)
    return {**edges, **arguments, "repeats": True, "transform": call}


def _name(fmt: FormatFields, body: NamedBody, left_out: list[str]) -> tuple[str, bool]:
    """Return a pattern for the name and what is written around it, and True if it captures the id of the call."""
    if body.id_open is not None:
        left_out.append(_NO_ID.format("tools[0].body.id_open"))
    patterns = {"name": f"(?P<name>{NAME})", "index": r"\d+", "id": f"(?P<id>{NAME})"}
    parts = re.split(r"\{(\w+)\}", body.name)
    pattern = "".join(patterns[part] if i % 2 else re.escape(part) for i, part in enumerate(parts))
    is_id = fmt.ids == body.name
    if is_id:
        pattern = f"(?P<id>{pattern})"
    if body.id_open is not None:
        pattern += f"(?:{spaced(body.id_open)}{SPACE}{NAME})?"
    return pattern, is_id or "{id}" in body.name


def _arguments(body: NamedBody) -> tuple[Json, str]:
    """Return how a template reads the arguments, and a pattern for how they begin."""
    arguments = body.arguments
    path = "tools[0].body.arguments"
    if isinstance(arguments, JsonArguments):
        return {"content": "json"}, r"\{"
    if isinstance(arguments, LiteralArguments):
        parts = (arguments.open, arguments.assign, arguments.words, arguments.quoted)
        if parts != ("{", ":", ("true", "false", "null"), "strings"):
            raise FormatError(path, "a response template can read JSON with other quotes, and no other literals")
        quotes = [[quote, quote] for quote in arguments.quotes if quote != '"']
        return {"content": "json", "content_args": {"unquoted_keys": True, "string_delims": quotes}}, r"\{"
    if type(arguments) is not TaggedArguments:
        raise FormatError(path, f"a response template cannot read {type(arguments).__name__}")
    if arguments.escape == "cdata" or arguments.type_open is not None:
        raise FormatError(path, "a response template cannot read CDATA sections or types of values")
    ahead, behind = arguments.trims
    value = f"(?P<value>.*?){_newlines(behind)}"
    tag = (
        f"{any_of(arguments.key_open)}{_key(arguments.key)}{spaced(arguments.key_close)}"
        f"{spaced(arguments.value_open)}{_newlines(ahead)}{value}{any_of(arguments.value_close)}"
    )
    parser = {"name": "text", "args": {"strip": False}}
    return {"content": "xml-inline", "content_args": {"tag_pattern": tag, "value_parser": parser}}, any_of(
        arguments.key_open
    )


def _key(pattern: str) -> str:
    parts = re.split(r"\{(\w+)\}", pattern)
    patterns = {"key": "(?P<key>.*?)", "string": "(?:true|false)", "type": r"\w+"}
    return "".join(patterns[part] if i % 2 else re.escape(part) for i, part in enumerate(parts))


def _newlines(count: int) -> str:
    return rf"\n{{0,{count}}}" if count else ""


def _edges(tools: Tools, header: str, arguments_close: Marker | None, end: _End) -> Json:
    """Return the opening and the close of one call, or of a list of calls: ``header`` follows the markers around it."""
    outer = (tools.section_open, tools.separator)
    if tools.call_open is None and not header:
        opened = spaced(tools.section_open)
    elif tools.call_open is None or ("call" in tools.optional and header):
        opened = SPACE + maybe(*outer, tools.call_open)
    else:
        opened = SPACE + maybe(*outer) + any_of(tools.call_open)
    closed = spaced(arguments_close, tools.call_close)
    section = spaced(tools.section_close)
    if closed:
        closed += then_maybe(tools.section_close)
    elif section and not header:
        closed = section
    else:
        # Nothing closes one call: the next one or the end of the output does.
        unnamed = re.sub(r"\?P<\w+>", "?:", header)
        closes = [section + end.optional] if section else []
        closed = "|".join([*closes, end.marked, f"(?={opened}{SPACE}{unnamed})"])
        return {"open_pattern": f"{opened}{SPACE}{header}", "close_pattern": closed}
    return {"open_pattern": f"{opened}{SPACE}{header}", "close_pattern": closed + end.optional}
