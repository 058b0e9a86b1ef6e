r"""Import of a checkpoint's ``response_template``: what transformers (5.13 and later, version 1) reads from
``tokenizer_config.json`` to turn output into a message.

Rules of this module:

* What has a counterpart in a Format is translated; the first part that has none is an error that names its path. What
  only concerns the resulting dict (``defaults``, ``optional``, ``strip``, the types of ``value_parser``) is checked and
  left out: values get their types from the tools' schemas here.
* A pattern is not run but read: literal text, white space (``\s*``, ``\n?``), optional and alternative groups, and the
  named groups. Anything else (``[^<]*``, lookahead) has no counterpart.
* White space that a pattern allows between two tags, or around a tagged value, is written as one newline: such a
  pattern is made for a model that writes some. A tag that is opened around the name (``<function=``) and that the
  template never closes is written with its close (``</function>``), as XML demands.

Source: https://huggingface.co/docs/transformers/main/chat_response_parsing (2026-11).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from .format import (
    Arguments,
    Channels,
    Content,
    Format,
    FormatError,
    JsonArguments,
    JsonBody,
    LiteralArguments,
    Marker,
    NamedBody,
    Reasoning,
    TaggedArguments,
    Tools,
    Turn,
)
from .format_json import shown

__all__ = ["from_response_template"]

_REASONING: Final = ("thinking", "reasoning_content", "reasoning")
_TOKEN: Final = r"<[^<>]+>|\[[^\[\]]+\]"
_MAX_SPELLINGS: Final = 64
_NO: Final = "has no counterpart"

Json = dict[str, Any]


def from_response_template(template: Json, *, name: str) -> Format:
    """The Format, called ``name``, that says what ``template`` says.

    Raises:
        FormatError: a wrong type, an unknown key, or a part without a counterpart; ``path`` names the first such part
            (``fields.tool_calls.content_args.merge_duplicates``).
    """
    _check_template(template)
    fields: dict[str, Json] = template["fields"]
    reasoning_key = next((key for key in fields if key in _REASONING), "")
    start = _start(template)
    channels = _channels(fields, reasoning_key, start)
    try:
        if channels is not None:
            return Format(name=name, channels=channels, turn=Turn(start=start, end=_channel_end(fields, channels)))
        reasoning: Reasoning | None = None
        content: Content | None = None
        tools: tuple[Tools, ...] = ()
        end: Marker | None = None
        for key, field in fields.items():
            path = f"fields.{key}"
            if key == reasoning_key:
                reasoning = _reasoning(field, path)
            elif key == "tool_calls":
                tools = (_tools(field, path),)
            elif _is_implicit(field):
                _check_plain(field, path)
                end = _close(field, path)
            else:
                content = _content(field, path)
        return Format(name=name, turn=Turn(start=start, end=end), reasoning=reasoning, content=content, tools=tools)
    except FormatError as error:
        # A path that is not the template's own is the Format's: its parts are translated, but do not work together.
        part = error.path.partition(".")[0]
        if part in ("fields", "name"):
            raise
        place = {"reasoning": f"fields.{reasoning_key}", "content": "fields.content", "turn": "fields.content.close"}
        own = place.get(part, "fields.tool_calls" if part.startswith("tools[") else "fields")
        raise FormatError(own, f"does not work in a Format: {error}") from None


# -- What stands in a template ------------------------------------------------------------------------------------


def _text(value: Any, path: str) -> None:
    if not isinstance(value, str):
        raise FormatError(path, f"expected text, got {shown(value)}")


def _flag(value: Any, path: str) -> None:
    if not isinstance(value, bool):
        raise FormatError(path, f"expected true or false, got {shown(value)}")


def _dict(value: Any, path: str) -> None:
    if not isinstance(value, dict):
        raise FormatError(path, f"expected an object, got {shown(value)}")


def _literals(value: Any, path: str) -> None:
    """Text, or several texts of which any will do."""
    texts = value if isinstance(value, list) else [value]
    if not texts:
        raise FormatError(path, "is empty")
    for i, text in enumerate(texts):
        place = f"{path}[{i}]" if isinstance(value, list) else path
        if not isinstance(text, str):
            raise FormatError(place, f"expected text, got {shown(text)}")
        if not text:
            raise FormatError(place, "is empty")


def _pattern(value: Any, path: str) -> None:
    _text(value, path)
    try:
        re.compile(value, re.DOTALL)
    except (re.error, OverflowError, RecursionError) as error:
        raise FormatError(path, f"not a regular expression: {error}") from None


def _pairs(value: Any, path: str) -> None:
    if not isinstance(value, list):
        raise FormatError(path, f"expected an array of pairs, got {shown(value)}")
    for i, pair in enumerate(value):
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(x, str) and x for x in pair):
            raise FormatError(f"{path}[{i}]", f"expected a pair of texts, got {shown(pair)}")


def _shape(value: Any, path: str) -> None:
    """A transform: an object or array whose texts are placeholders as a whole, or not at all."""
    if isinstance(value, dict):
        for key, item in value.items():
            _shape(item, f"{path}.{key}")
    elif isinstance(value, list):
        for i, item in enumerate(value):
            _shape(item, f"{path}[{i}]")
    elif isinstance(value, str) and re.search(r"\{[\w.]+\}", value) and not _placeholder(value):
        raise FormatError(path, f"mixes text and placeholder: {value!r}")


def _transform(value: Any, path: str) -> None:
    if not isinstance(value, (dict, list)):
        raise FormatError(path, f"expected an object or an array, got {shown(value)}")
    _shape(value, path)


def _value_parser(value: Any, path: str) -> None:
    _check(value, path, {"name": _text, "args": _dict})
    if "name" not in value:
        raise FormatError(f"{path}.name", "is missing")
    _check_parser(value["name"], value.get("args", {}), f"{path}.name", f"{path}.args")


Check = Callable[[Any, str], None]

_PARSERS: Final[dict[str, dict[str, Check]]] = {
    "text": {"strip": _flag},
    "int": {},
    "float": {},
    "bool": {},
    "json": {"unquoted_keys": _flag, "string_delims": _pairs, "allow_non_json": _flag},
    "xml-inline": {"tag_pattern": _pattern, "value_parser": _value_parser, "merge_duplicates": _flag},
    "kv-lines": {"line_sep": _text, "kv_sep": _text, "strip": _flag, "value_parser": _value_parser},
}
_FIELD: Final[dict[str, Check]] = {
    "open": _literals,
    "open_pattern": _pattern,
    "close": _literals,
    "close_pattern": _pattern,
    "content": _text,
    "content_args": _dict,
    "repeats": _flag,
    "join": _text,
    "optional": _flag,
    "transform": _transform,
    "transform_each": _flag,
}
_TEMPLATE: Final[dict[str, Check]] = {
    "version": lambda value, path: None,
    "defaults": _dict,
    "fields": _dict,
    "start_anchor": _literals,
    "start_anchor_pattern": _pattern,
}


def _check(value: Any, path: str, checks: dict[str, Check]) -> None:
    """Every key of ``value`` is known and of its type. The template itself is at the path ``""``."""
    _dict(value, path or "response_template")
    for key, item in value.items():
        place = f"{path}.{key}".lstrip(".")
        if key not in checks:
            keys = f"the keys are: {', '.join(checks)}" if checks else "there are none"
            raise FormatError(place, f"is not a key here; {keys}")
        checks[key](item, place)
    for key in ("open", "close", "start_anchor"):
        if key in value and f"{key}_pattern" in value:
            raise FormatError(f"{path}.{key}_pattern".lstrip("."), f"stands beside {key}: only one of them may")


def _check_parser(content: str, arguments: Json, path: str, arguments_path: str) -> None:
    if content not in _PARSERS:
        raise FormatError(path, f"{content!r} is not one of: {', '.join(_PARSERS)}")
    _check(arguments, arguments_path, _PARSERS[content])
    if content == "xml-inline" and "tag_pattern" not in arguments:
        raise FormatError(f"{arguments_path}.tag_pattern", "is missing")


def _check_template(template: Any) -> None:
    _check(template, "", _TEMPLATE)
    version = template.get("version", 1)
    if version != 1 or isinstance(version, bool):
        raise FormatError("version", f"expected 1, got {shown(version)}")
    if "fields" not in template:
        raise FormatError("fields", "is missing")
    implicit = ""
    reasoning = ""
    for key, field in template["fields"].items():
        path = f"fields.{key}"
        if key not in (*_REASONING, "content", "tool_calls"):
            raise FormatError(path, _NO)
        _check(field, path, _FIELD)
        _check_parser(field.get("content", "text"), field.get("content_args", {}), f"{path}.content",
                      f"{path}.content_args")  # fmt: skip
        if "join" in field and not field.get("repeats"):
            raise FormatError(f"{path}.join", "stands without repeats")
        if key in _REASONING:
            if reasoning:
                raise FormatError(path, f"{_NO} beside {reasoning}")
            reasoning = path
        if _is_implicit(field):
            if implicit:
                raise FormatError(f"{path}.open", f"is missing, as it is in {implicit}; only one field may be without")
            implicit = path


def _is_implicit(field: Json) -> bool:
    return "open" not in field and "open_pattern" not in field


# -- Patterns, read -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Space:
    """White space of any length."""

    text: str
    """How it is written."""
    newlines: bool
    """Whether it may hold newlines."""


@dataclass(frozen=True, slots=True)
class _Variable:
    """A named group."""

    name: str


@dataclass(frozen=True, slots=True)
class _Edge:
    """``^`` or ``$``."""

    start: bool


@dataclass(frozen=True, slots=True)
class _Gap:
    """What cannot be said in a Format."""

    source: str


@dataclass(frozen=True, slots=True)
class _Choice:
    options: tuple[tuple[_Piece, ...], ...]


_Flat = str | _Space | _Variable | _Edge | _Gap
_Piece = _Flat | _Choice

_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_QUANTIFIER: Final = re.compile(r"(?:[*+?]|\{[0-9]*,?[0-9]*\})[?+]?")
_CLASS: Final = re.compile(r"\[\^?\]?(?:[^\]\\]|\\.)*\]", re.DOTALL)
_BLANK_CLASS: Final = re.compile(r"\[(?:\\[sntr]|[ \n\t\r])+\]")
_GROUP: Final = re.compile(r"\((?:\?P<(?P<name>\w+)>|\?:|(?!\?))")
_ODD_GROUP: Final = re.compile(r"\(\?(?:P=\w+|#[^)]*|[a-zA-Z-]+)\)|\((?:\?<?[=!]|\?>|\?[^)]*)")


class _Reader:
    """Takes a valid regular expression apart."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def options(self) -> tuple[tuple[_Piece, ...], ...]:
        """The alternatives up to the end of the group."""
        result = [self.sequence()]
        while self.pattern.startswith("|", self.at):
            self.at += 1
            result.append(self.sequence())
        return tuple(result)

    def sequence(self) -> tuple[_Piece, ...]:
        pieces: list[_Piece] = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            start = self.at
            piece = self.atom()
            quantifier = _QUANTIFIER.match(self.pattern, self.at)
            if quantifier is not None and quantifier.group() != "{}":
                self.at = quantifier.end()
                piece = _repeated(piece, quantifier.group()[0], self.pattern[start : self.at])
            pieces.append(piece)
        return tuple(pieces)

    def atom(self) -> _Piece:
        char = self.pattern[self.at]
        if char == "\\":
            return self.escape()
        if char == "[":
            source = self.take(_CLASS)
            return (
                _Space(" ", "\\n" in source or "\\s" in source or "\n" in source)
                if _BLANK_CLASS.fullmatch(source)
                else _Gap(source)
            )
        if char == "(":
            return self.group()
        self.at += 1
        if char in "^$":
            return _Edge(char == "^")
        return _Gap(".") if char == "." else char

    def take(self, expression: re.Pattern[str]) -> str:
        match = expression.match(self.pattern, self.at)
        assert match is not None
        self.at = match.end()
        return match.group()

    def escape(self) -> _Piece:
        char = self.pattern[self.at + 1]
        if char in "xuU":
            digits = {"x": 2, "u": 4, "U": 8}[char]
            code = self.pattern[self.at + 2 : self.at + 2 + digits]
            self.at += 2 + digits
            return chr(int(code, 16))
        self.at += 2
        if char == "s":
            return _Space(" ", True)
        if char in "AZ":
            return _Edge(char == "A")
        if char in _CONTROLS:
            return _CONTROLS[char]
        return _Gap(f"\\{char}") if char.isalnum() else char

    def group(self) -> _Piece:
        start = self.at
        match = _GROUP.match(self.pattern, self.at)
        if match is None:
            # Lookaround, back references, flags.
            if not self.take(_ODD_GROUP).endswith(")"):
                self.options()
                self.at += 1
            return _Gap(self.pattern[start : self.at])
        self.at = match.end()
        options = self.options()
        self.at += 1
        if match["name"] is None:
            return _Choice(options)
        if "(?P<" in self.pattern[match.end() : self.at]:
            return _Gap(self.pattern[start : self.at])
        return _Variable(match["name"])


def _repeated(piece: _Piece, quantifier: str, source: str) -> _Piece:
    if isinstance(piece, str) and piece.isspace() and quantifier != "{":
        return _Space("" if quantifier == "*" else piece, piece == "\n")
    if isinstance(piece, _Space) and quantifier != "{":
        return _Space(" " if quantifier == "+" else "", piece.newlines)
    if quantifier == "?" and isinstance(piece, str):
        return _Choice(((), (piece,)))
    if quantifier == "?" and isinstance(piece, _Choice):
        return _Choice(((), *piece.options))
    return _Gap(source)


def _read(pattern: str, path: str) -> list[list[_Flat]]:
    """Every way to write ``pattern``, as runs of literal text and of what is not; optional parts are left out first."""
    try:
        return _ways(_Reader(pattern).options(), path)
    except RecursionError:
        raise FormatError(path, f"{_NO}: nested too deep") from None


def _ways(options: tuple[tuple[_Piece, ...], ...], path: str) -> list[list[_Flat]]:
    result: list[list[_Flat]] = []
    for option in options:
        parts = [_ways(piece.options, path) if isinstance(piece, _Choice) else [[piece]] for piece in option]
        for way in itertools.product(*parts):
            result.append(_joined(itertools.chain.from_iterable(way)))
            if len(result) > _MAX_SPELLINGS:
                raise FormatError(path, f"{_NO}: more than {_MAX_SPELLINGS} spellings")
    return result


def _joined(pieces: itertools.chain[_Flat]) -> list[_Flat]:
    result: list[_Flat] = []
    for piece in pieces:
        if isinstance(piece, str) and result and isinstance(result[-1], str):
            result[-1] += piece
        else:
            result.append(piece)
    return result


def _written(pieces: list[_Flat], path: str) -> str:
    """The text of pieces that are literal or white space."""
    return "".join(_only_text(piece, path) for piece in pieces)


def _only_text(piece: _Flat, path: str) -> str:
    if isinstance(piece, str):
        return piece
    if isinstance(piece, _Space):
        return piece.text
    if isinstance(piece, _Variable):
        raise FormatError(path, f"{_NO}: the group {piece.name!r}")
    if isinstance(piece, _Edge):
        raise FormatError(path, f"{_NO}: {'^' if piece.start else '$'}")
    raise FormatError(path, f"{_NO}: {piece.source}")


def _chunks(pieces: list[_Flat], path: str) -> list[str]:
    """The literals between white space, each with the white space behind it."""
    result: list[str] = []
    for i, piece in enumerate(pieces):
        text = _only_text(piece, path)
        if isinstance(piece, str):
            result.append(text)
        elif result and i < len(pieces) - 1:
            following = _only_text(pieces[i + 1], path)
            result[-1] += text or ("" if following[:1].isspace() else "\n")
    return result


# -- Markers ------------------------------------------------------------------------------------------------------


def _spellings(field: Json, key: str, path: str) -> tuple[list[str], bool]:
    """The spellings of ``open`` or ``close`` (or their patterns), and whether the edge of the output will do too."""
    if f"{key}_pattern" in field:
        place = f"{path}.{key}_pattern"
        ways = _read(field[f"{key}_pattern"], place)
        edge: _Flat = _Edge(key == "open")
        texts = [_written(way, place) for way in ways if way != [edge]]
        if "" in texts:
            raise FormatError(place, f"{_NO}: it matches nothing at all")
        return texts, [edge] in ways
    value = field.get(key, [])
    texts = [value] if isinstance(value, str) else list(value)
    ends = key == "close" and "eos" in texts
    return [text for text in texts if not (ends and text == "eos")], ends


def _marker(texts: list[str]) -> Marker | None:
    distinct = tuple(dict.fromkeys(texts))
    return Marker(distinct[0], distinct[1:]) if distinct else None


def _open(field: Json, path: str) -> tuple[Marker, bool]:
    texts, edge = _spellings(field, "open", path)
    marker = _marker(texts)
    if marker is None:
        raise FormatError(f"{path}.open", "is missing" if _is_implicit(field) else _NO)
    return marker, edge


def _close(field: Json, path: str) -> Marker | None:
    return _marker(_spellings(field, "close", path)[0])


def _needed_close(field: Json, path: str) -> Marker:
    marker = _close(field, path)
    if marker is None:
        raise FormatError(f"{path}.close", f"{_NO}: it must be a marker")
    return marker


def _start(template: Json) -> Marker | None:
    if "start_anchor_pattern" in template:
        path = "start_anchor_pattern"
        texts = [_written(way, path) for way in _read(template[path], path)]
        if "" in texts:
            raise FormatError(path, f"{_NO}: it matches nothing at all")
        return _marker(texts)
    value = template.get("start_anchor", [])
    return _marker([value] if isinstance(value, str) else value)


# -- Reasoning and content ----------------------------------------------------------------------------------------


def _check_plain(field: Json, path: str) -> None:
    """The field is text, as it stands; several pieces of it are one text."""
    if field.get("content", "text") != "text":
        raise FormatError(f"{path}.content", f"{_NO}: {field['content']!r}")
    for key in ("transform", "transform_each"):
        if field.get(key):
            raise FormatError(f"{path}.{key}", _NO)
    if field.get("repeats") and "join" not in field:
        raise FormatError(f"{path}.repeats", f"{_NO}: without join the message would hold a list")
    if field.get("join"):
        raise FormatError(f"{path}.join", f"{_NO}: only '' has one")


def _reasoning(field: Json, path: str) -> Reasoning:
    _check_plain(field, path)
    marker, edge = _open(field, path)
    close = _needed_close(field, path)
    return Reasoning(open=marker, close=close, start="open" if edge else "closed", repeats=field.get("repeats", False))


def _content(field: Json, path: str) -> Content:
    _check_plain(field, path)
    marker, edge = _open(field, path)
    if edge:
        raise FormatError(f"{path}.open_pattern", f"{_NO}: ^")
    return Content(open=marker, close=_needed_close(field, path))


# -- Tool calls ---------------------------------------------------------------------------------------------------


def _tools(field: Json, path: str) -> Tools:
    if field.get("content", "text") not in ("json", "xml-inline"):
        raise FormatError(f"{path}.content", f"{_NO}: {field.get('content', 'text')!r}")
    if "join" in field:
        raise FormatError(f"{path}.join", _NO)
    call = _call(field, path)
    if _groups(field):
        return _named(field, call, path)
    if field["content"] == "xml-inline":
        raise FormatError(f"{path}.open_pattern", f"{_NO}: no group captures the name")
    arguments = field.get("content_args", {})
    for key in ("unquoted_keys", "string_delims"):
        if arguments.get(key):
            raise FormatError(f"{path}.content_args.{key}", f"{_NO} where the name stands in the JSON")
    marker, edge = _open(field, path)
    if edge:
        raise FormatError(f"{path}.open_pattern", f"{_NO}: ^")
    body = _json_body(call, path)
    close = _close(field, path)
    if field.get("transform_each"):
        return Tools(
            body=body,
            section_open=marker,
            section_close=close,
            list_open=Marker("["),
            list_close=Marker("]"),
            separator=Marker(", "),
        )
    return Tools(body=body, call_open=marker, call_close=close)


def _groups(field: Json) -> list[str]:
    return list(re.compile(field.get("open_pattern", "")).groupindex)


@dataclass(frozen=True, slots=True)
class _Call:
    """Where a transform takes a call's parts from: the keys that lead to them from the content, or the group."""

    name: list[str]
    arguments: list[str]
    id: list[str] | None


def _placeholder(value: Any) -> list[str] | None:
    match = re.fullmatch(r"\{(\w+(?:\.\w+)*)\}", value) if isinstance(value, str) else None
    return None if match is None else match[1].split(".")


def _call(field: Json, path: str) -> _Call:
    path = f"{path}.transform"
    if "transform" not in field:
        raise FormatError(path, "is missing: nothing says where the name stands")
    outer = field["transform"]
    if not isinstance(outer, dict):
        raise FormatError(path, f"{_NO}: an array")
    inner, inner_path = (outer["function"], f"{path}.function") if "function" in outer else (outer, path)
    for key in outer:
        if key not in (("type", "id", "function") if inner is not outer else ("type", "id", "name", "arguments")):
            raise FormatError(f"{path}.{key}", _NO)
    number = _place(outer["id"], field, f"{path}.id") if "id" in outer else None
    if isinstance(inner, str):
        at = _place(inner, field, inner_path)
        return _Call([*at, "name"], [*at, "arguments"], number)
    if not isinstance(inner, dict):
        raise FormatError(inner_path, _NO)
    if inner is not outer:
        for key in inner:
            if key not in ("name", "arguments"):
                raise FormatError(f"{inner_path}.{key}", _NO)
    for key in ("name", "arguments"):
        if key not in inner:
            raise FormatError(f"{inner_path}.{key}", "is missing")
    name, arguments = (_place(inner[key], field, f"{inner_path}.{key}") for key in ("name", "arguments"))
    return _Call(name, arguments, number)


def _place(value: Any, field: Json, path: str) -> list[str]:
    """The keys of a placeholder, ``content`` first where it leads into the content."""
    keys = _placeholder(value)
    if keys is None:
        raise FormatError(path, f"{_NO}: not a placeholder")
    if keys[0] != "content" and keys[0] not in _groups(field):
        if not field.get("transform_each"):
            raise FormatError(path, f"nothing is called {keys[0]!r}")
        return ["content", *keys]  # an element's keys are in scope
    return keys


def _json_body(call: _Call, path: str) -> JsonBody:
    path = f"{path}.transform"
    holder = call.name[1:-1]
    if len(call.name) < 2 or len(holder) > 1 or call.arguments[1:-1] != holder or len(call.arguments) < 2:
        raise FormatError(path, f"{_NO}: name and arguments must be two members of one object")
    if call.id is not None and len(call.id) != 2:
        raise FormatError(f"{path}.id", _NO)
    return JsonBody(
        name_key=call.name[-1],
        arguments_key=call.arguments[-1],
        id_key=None if call.id is None else call.id[-1],
        nested_key=holder[0] if holder else None,
    )


def _named(field: Json, call: _Call, path: str) -> Tools:
    """The name stands in the opening, outside the arguments."""
    groups = _groups(field)
    place = f"{path}.open_pattern"
    if len(groups) > 1:
        raise FormatError(place, f"{_NO}: the group {next(g for g in groups if [g] != call.name)!r}")
    if call.name != groups:
        raise FormatError(f"{path}.transform", f"{_NO}: the name must be {{{groups[0]}}}")
    if call.arguments != ["content"]:
        raise FormatError(f"{path}.transform", f"{_NO}: the arguments must be {{content}}")
    if call.id is not None:
        raise FormatError(f"{path}.transform.id", _NO)
    if field.get("transform_each"):
        raise FormatError(f"{path}.transform_each", f"{_NO} where the name stands in the opening")
    headers = [_header(way, place) for way in _read(field["open_pattern"], place)]
    opens = [header[0] for header in headers if header[0]]
    _, name_open, name_close = headers[0]
    if any(header[1:] != headers[0][1:] for header in headers) or len(opens) not in (0, len(headers)):
        raise FormatError(place, f"{_NO}: alternatives that differ next to the name")
    close = _close(field, path)
    arguments: Arguments
    if field["content"] == "xml-inline":
        arguments = _tagged(field["content_args"], f"{path}.content_args")
        if not name_close:
            raise FormatError(place, f"{_NO}: nothing ends the name")
    else:
        arguments = _json_arguments(field.get("content_args", {}), f"{path}.content_args", ended=bool(name_close))
    tag = re.fullmatch(r"\s*<([\w:.-]+)[^<>]*", name_open)
    inner = Marker(f"</{tag[1]}>") if tag is not None and opens else None
    return Tools(
        call_open=_marker(opens),
        call_close=close if opens else None,
        body=NamedBody(
            name_open=Marker(name_open) if name_open else None,
            name_close=Marker(name_close) if name_close else None,
            arguments=arguments,
            arguments_close=inner if opens else close,
        ),
    )


def _header(way: list[_Flat], path: str) -> tuple[str, str, str]:
    """What opens the call, what opens the name, what closes it."""
    i = next(i for i, piece in enumerate(way) if isinstance(piece, _Variable))
    before = _chunks(way[:i], path)
    after = _chunks(way[i + 1 :], path)
    if not before:
        raise FormatError(path, f"{_NO}: nothing stands before the name")
    if len(before) > 2 or len(after) > 1:
        raise FormatError(path, f"{_NO}: white space between more than two literals")
    if not after:
        after = [_written(way[i + 1 :], path)]
    if len(before) == 2:
        return before[0], before[1], after[0]
    text = before[0]
    tokens = re.match(rf"((?:{_TOKEN})+)(?=[<\[]|$)", text)
    if tokens is not None:
        return tokens[1], text[tokens.end() :], after[0]
    # <|tool_call>call: opens the call as a whole; <function= opens the name.
    return (text, "", after[0]) if re.match(_TOKEN, text) else ("", text, after[0])


def _json_arguments(arguments: Json, path: str, *, ended: bool) -> Arguments:
    """JSON; as literals where it is not quite JSON, or where only its brace ends the name."""
    bare_keys = arguments.get("unquoted_keys", False)
    quotes: list[str] = []
    for i, (left, right) in enumerate(arguments.get("string_delims", [])):
        if left != right:
            raise FormatError(f"{path}.string_delims[{i}]", f"{_NO}: the two differ")
        quotes.append(left)
    if ended and not bare_keys and not quotes:
        return JsonArguments()
    return LiteralArguments(
        open="{",
        close="}",
        assign=":",
        separator=",",
        quotes=tuple(dict.fromkeys([*quotes, '"'])),
        escapes=not quotes,
        words=("true", "false", "null"),
        quoted_keys=not bare_keys,
    )


def _tagged(arguments: Json, path: str) -> TaggedArguments:
    if arguments.get("merge_duplicates"):
        raise FormatError(f"{path}.merge_duplicates", _NO)
    parser = arguments.get("value_parser", {"name": "text"})
    if parser["name"] not in ("text", "json"):
        raise FormatError(f"{path}.value_parser.name", f"{_NO}: {parser['name']!r}")
    for key in ("unquoted_keys", "string_delims"):
        if parser.get("args", {}).get(key):
            raise FormatError(f"{path}.value_parser.args.{key}", _NO)
    path = f"{path}.tag_pattern"
    ways = _read(arguments["tag_pattern"], path)
    if len(ways) > 1:
        raise FormatError(path, f"{_NO}: alternatives")
    way = ways[0]
    groups = [piece.name for piece in way if isinstance(piece, _Variable)]
    for group in ("key", "value"):
        if group not in groups:
            raise FormatError(path, f"has no group {group!r}")
    if groups != ["key", "value"]:
        raise FormatError(path, f"{_NO}: the groups {', '.join(groups)}")
    k, v = (i for i, piece in enumerate(way) if isinstance(piece, _Variable))
    trim = 1 if _touches_newline(way[v - 1], -1, path) | _touches_newline((*way, "")[v + 1], 0, path) else 0
    before, between, after = (_chunks(part, path) for part in (way[:k], way[k + 1 : v], way[v + 1 :]))
    if len(before) != 1 or not 1 <= len(between) <= 2 or len(after) != 1:
        raise FormatError(path, f"{_NO}: not key_open, key, key_close, value, value_close")
    if len(between) == 1:
        tokens = re.fullmatch(r"([^<>]*>)(\s*<[^<>]*>)", between[0].rstrip("\n"))
        between = [tokens[1], tokens[2]] if tokens is not None else between
    newline = "\n" * trim
    key_close, value_open = between[0], between[1] if len(between) == 2 else ""
    return TaggedArguments(
        key_open=Marker(before[0]),
        key_close=Marker(key_close if value_open else key_close.rstrip("\n") + newline),
        value_open=Marker(value_open.rstrip("\n") + newline) if value_open else None,
        value_close=Marker(newline + after[0].lstrip("\n")),
        trim=trim,
    )


def _touches_newline(piece: _Flat, end: int, path: str) -> bool:
    """Whether a value loses newlines to the piece beside it."""
    if isinstance(piece, _Space):
        if not piece.newlines:
            raise FormatError(path, f"{_NO}: spaces beside the value")
        return True
    return isinstance(piece, str) and piece != "" and piece[end] == "\n"


# -- Channels -----------------------------------------------------------------------------------------------------


def _channels(fields: dict[str, Json], reasoning_key: str, start: Marker | None) -> Channels | None:
    """The channels, where reasoning and content open with a word between the same two tokens
    (``<|channel|>analysis<|message|>``)."""
    if not reasoning_key or "content" not in fields or _is_implicit(fields["content"]):
        return None
    words: dict[str, list[str]] = {}
    frames: set[tuple[str, str]] = set()
    for key in (reasoning_key, "content"):
        field = fields[key]
        if _is_implicit(field):
            return None
        for text in _spellings(field, "open", f"fields.{key}")[0]:
            frame = re.fullmatch(rf"({_TOKEN})(\w+)({_TOKEN})", text)
            if frame is None:
                return None
            frames.add((frame[1], frame[3]))
            words.setdefault(key, []).append(frame[2])
    if len(frames) != 1:
        return None
    channel, body = frames.pop()
    for key in (reasoning_key, "content"):
        _check_plain(fields[key], f"fields.{key}")
    head = re.fullmatch(rf"({_TOKEN})(\w*)\s*", start.text) if start is not None else None
    if head is None:
        raise FormatError("start_anchor", f"{_NO}: with channels it must be a token and a role")
    call = _channel_call(fields["tool_calls"], head, channel, body) if "tool_calls" in fields else {}
    return Channels(
        open=Marker(head[1]),
        role=head[2],
        channel=Marker(channel),
        body=Marker(body),
        close=_needed_close(fields[reasoning_key], f"fields.{reasoning_key}"),
        reasoning=tuple(words[reasoning_key]),
        content=tuple(words["content"]),
        **call,
    )


def _channel_end(fields: dict[str, Json], channels: Channels) -> Marker | None:
    """What closes content and no other message ends the turn."""
    closes = () if channels.close is None else channels.close.spellings
    return _marker([t for t in _spellings(fields["content"], "close", "fields.content")[0] if t.strip() not in closes])


def _channel_call(field: Json, head: re.Match[str], channel: str, body: str) -> Json:
    """What ``tool_calls`` says of the header of a call: recipient, namespace, channel, constraint."""
    path = "fields.tool_calls"
    if field.get("content", "text") != "json":
        raise FormatError(f"{path}.content", f"{_NO} in channels: {field.get('content', 'text')!r}")
    for key in ("unquoted_keys", "string_delims"):
        if field.get("content_args", {}).get(key):
            raise FormatError(f"{path}.content_args.{key}", f"{_NO} in channels")
    call = _call(field, path)
    groups = _groups(field)
    place = f"{path}.open_pattern"
    if not groups:
        raise FormatError(place, f"{_NO}: no group captures the name")
    if call.name != groups or call.arguments != ["content"] or call.id is not None:
        raise FormatError(f"{path}.transform", f"{_NO}: it must be {{{groups[0]}}} and {{content}}")
    ways = _read(field["open_pattern"], place)
    # "_" stands for the name; a gap behind it is what else a header may hold.
    text = "".join(
        "\0" if isinstance(piece, _Variable)
        else " " if isinstance(piece, _Space) or (isinstance(piece, _Gap) and piece.source in (".*?", ".*"))
        else _only_text(piece, place)
        for piece in ways[0]
    )  # fmt: skip
    header = text.removeprefix(head[0].rstrip())
    if len(ways) > 1 or not header.endswith(body):
        raise FormatError(place, f"{_NO}: not a header that ends in {body}")
    header = header.removesuffix(body)
    recipient = re.search(r"\s*(\w+=)([^\s\0]*)\0", header)
    if recipient is None:
        raise FormatError(place, f"{_NO}: no recipient such as to=")
    header = header[: recipient.start()] + header[recipient.end() :]
    chosen = re.search(rf"{re.escape(channel)}(\w+)", header)
    if chosen is not None:
        header = header[: chosen.start()] + header[chosen.end() :]
    constraint = re.fullmatch(rf"({_TOKEN})?(\w*)", header.strip())
    if constraint is None:
        raise FormatError(place, f"{_NO}: {header.strip()}")
    close = _close(field, path)
    return {
        "recipient": Marker(f" {recipient[1]}"),
        "namespace": recipient[2],
        "call_channel": None if chosen is None else chosen[1],
        "constraint": None if constraint[1] is None else Marker(f" {constraint[1]}"),
        "call_constraint": constraint[2] or None,
        "call_close": close,
    }
