"""Hypothesis strategies for messages and for noise, for any Format: outputs that models write, or might write.

Nothing here depends on a family: markers, keys and names come from the Format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from hypothesis import strategies as st

from untemplate.format import (
    ElementArguments,
    Format,
    JsonBody,
    LiteralArguments,
    Marker,
    NamedBody,
    TaggedArguments,
)
from untemplate.formats import entries, named

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "days": {"type": "integer"},
                    "unit": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    "exact": {"type": "boolean"},
                    "options": {"type": "object"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "ratio": {"type": ["number", "null"]},
                },
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "write_file",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
                "required": ["path"],
            },
        },
    },
    {"type": "function", "function": {"name": "ping"}},
    {"type": "function", "function": {"name": "list-all.v2", "parameters": {"type": "object", "properties": {}}}},
]
NAMES = [tool["function"]["name"] for tool in TOOLS]


def formats() -> dict[str, Format]:
    """Return the catalogue's Formats by an id: each name's own, and reasoning alone if tools have the same name. The
    first of those that differ only in their name stands for all.

    Reasoning that a Format leaves in the content is apart here; tests/laws/test_reasoning.py has the law for it.
    """
    found: dict[str, Format] = {}
    for entry in entries():
        found.setdefault(entry.name, named(entry.name))
        if entry.kind == "reasoning" and replace(entry.format, name="x") != replace(found[entry.name], name="x"):
            found[f"{entry.name}-reasoning"] = entry.format
    first: dict[Format, str] = {}
    for name, fmt in found.items():
        first.setdefault(apart(replace(fmt, name="x")), name)
    return {name: apart(found[name]) for name in first.values()}


def apart(fmt: Format) -> Format:
    """Return the Format with its reasoning apart from the content."""
    return fmt if fmt.reasoning is None or not fmt.reasoning.inline else fmt.extend(reasoning__inline=False)


FORMATS = formats()


def markers(part: Any) -> Iterator[Marker]:
    """Yield all markers of a Format, in the order of its fields."""
    if isinstance(part, Marker):
        yield part
    elif isinstance(part, tuple):
        for item in part:
            yield from markers(item)
    elif is_dataclass(part):
        for field in fields(part):
            yield from markers(getattr(part, field.name))


def literals(fmt: Format) -> list[str]:
    """Return every text that a marker of the Format may have, without headers of other families' turns."""
    found: dict[str, None] = {}
    for marker in markers(replace(fmt, turn=type(fmt.turn)())):
        found.update(dict.fromkeys((marker.text, *marker.spellings)))
    for marker in markers(fmt.turn):
        found.update(dict.fromkeys((marker.text, marker.spellings[0])))
    for tools in fmt.tools:
        arguments = getattr(tools.body, "arguments", None)
        if isinstance(arguments, LiteralArguments):
            found.update(dict.fromkeys((arguments.open, arguments.close, arguments.assign, *arguments.quotes)))
        elif isinstance(arguments, ElementArguments):
            found.update(dict.fromkeys((arguments.name_close, arguments.item, f"{arguments.open.text}city")))
    return [text for text in found if text]


# -- Text and values ------------------------------------------------------------------------------------------------

CODE = (
    "def f(x):\n    return x < 1 and x <= 2\n",
    "if (a < b) { c[0] = '}' }",
    '<div class="a">x</div>',
    "</",
    "<",
    "line one\n\n    indented\n\ttabbed\n",
    "\r\nwindows\r\n",
    "C:\\temp\\new",
    'say "hi"',
    "it's",
    "```python\nprint(1)\n```",
    "emoji 😀 and 👩‍👩‍👧",
    "e\u0301 n\u0303",
    "\u00a0nbsp\u00a0",
    "\u202eabc",
    "null",
    "true",
    "None",
    "12",
    "007",
    "{}",
    "[1, 2",
    "&amp; &lt;b&gt;",
    "\\u0041 \\n",
    "100%",
    "",
    " ",
    "\n",
)


def texts(fmt: Format, *, plain: bool = False) -> st.SearchStrategy[str]:
    """Return strings that are hard to transport: code, quotes, white space, and (unless ``plain``) the Format's own
    markers."""
    pieces = [st.sampled_from(CODE), st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)]
    if not plain:
        pieces.append(st.sampled_from(literals(fmt) or ["x"]))
    return st.lists(st.one_of(pieces), max_size=4).map("".join)


def values(fmt: Format) -> st.SearchStrategy[Any]:
    """Return JSON values."""
    scalars = st.one_of(
        texts(fmt),
        st.integers(-(10**12), 10**12),
        st.floats(allow_nan=False, allow_infinity=False, width=32).map(lambda x: round(x, 3)),
        st.booleans(),
        st.none(),
    )
    return st.recursive(
        scalars,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys(), inner, max_size=3)),
        max_leaves=6,
    )


def keys() -> st.SearchStrategy[str]:
    return st.sampled_from(["city", "a", "key_2", "with space", "ключ", "x-y", "name", "arguments"])


def calls(fmt: Format) -> st.SearchStrategy[dict[str, Any]]:
    """Return calls of the tools above, with arguments that fit their schema."""

    def weather() -> st.SearchStrategy[dict[str, Any]]:
        return st.fixed_dictionaries(
            {},
            optional={
                "city": texts(fmt),
                "days": st.integers(-(10**6), 10**6),
                "unit": st.one_of(st.none(), texts(fmt).filter(lambda t: t not in ("null", "None", "Null", "NULL"))),
                "exact": st.booleans(),
                "options": st.dictionaries(keys(), values(fmt), max_size=3),
                "tags": st.lists(texts(fmt), max_size=3),
                "ratio": st.one_of(st.none(), st.integers(0, 9)),
            },
        )

    return st.one_of(
        st.tuples(st.just("get_weather"), weather()),
        st.tuples(st.just("write_file"), st.fixed_dictionaries({"path": texts(fmt)}, optional={"content": texts(fmt)})),
        st.tuples(st.just("ping"), st.just({})),
        st.tuples(st.just("list-all.v2"), st.just({})),
    ).map(lambda c: {"name": c[0], "arguments": c[1]})


def messages(fmt: Format, *, most_calls: int = 4) -> st.SearchStrategy[dict[str, Any]]:
    """Return assistant messages: reasoning, content and calls, each of which may be missing."""

    def message(parts: tuple[str, str, list[dict[str, Any]]]) -> dict[str, Any]:
        reasoning, content, some = parts
        built: dict[str, Any] = {"role": "assistant", "content": content or None}
        if reasoning:
            built["reasoning"] = reasoning
        if some:
            built["tool_calls"] = [
                {
                    "id": f"call{i}",
                    "type": "function",
                    "function": {"name": c["name"], "arguments": json.dumps(c["arguments"], ensure_ascii=bool(i % 2))},
                }
                for i, c in enumerate(some)
            ]
        return built

    prose = st.one_of(st.just(""), texts(fmt), texts(fmt, plain=True).map(str.strip))
    reasoning = prose if fmt.reasoning is not None or fmt.channels is not None else st.just("")
    can_call = bool(fmt.tools) or fmt.channels is not None
    some = st.lists(calls(fmt), max_size=most_calls) if can_call else st.just([])
    return st.tuples(reasoning, prose, some).map(message)


# -- Noise ----------------------------------------------------------------------------------------------------------

FRAGMENTS = (
    "{",
    "}",
    "[",
    "]",
    "{}",
    ":",
    ",",
    '"',
    "'",
    "`",
    "\n```\n",
    "\\",
    '\\"',
    "(",
    ")",
    "=",
    ";",
    '{"name": "get_weather", "arguments": {"city": "Paris"}}',
    '{"name": "ping", "parameters": {}}',
    '{"name": "ping"',
    '"name": "ping", ',
    '"arguments": ',
    '"city": "Pa\\u0072is',
    '{"city": "Paris", "days": 3}',
    '{"a": [1, {"b": "</x>"}]}',
    '"{\\"a\\": 1}"',
    "ping()",
    "get_weather(city='Paris', days=3)",
    "[ping()]",
    "city",
    "days",
    "tags",
    "unit",
    "null",
    "None",
    "True",
    "-12.5e3",
    "functions.ping:0",
    "json",
    "final",
    "assistant",
    "Hello, world",
    "x",
    ".",
    "<",
    "</",
    "<|",
    "|>",
    "\u00e9",
    "😀",
    "\u00a0",
    "\x00",
    "\ud800",
    "\udc00",
    " ",
    "\n",
    "\n\n",
    "\t",
    "\r\n",
    "  \n",
)


def noise(fmt: Format, *, longest: int = 14) -> st.SearchStrategy[str]:
    """Return random outputs: the Format's own markers, whole and in part, JSON fragments, names, white space, and
    unusual characters.
    """
    own = literals(fmt) or ["x"]
    sampled = st.sampled_from(own)
    part = st.tuples(sampled, st.integers(0, 30)).map(lambda x: x[0][: x[1]])
    piece = st.one_of(
        sampled, sampled, part, st.sampled_from(FRAGMENTS), st.sampled_from(FRAGMENTS), st.sampled_from(NAMES)
    )
    return st.lists(piece, max_size=longest).map("".join)


def sketches(fmt: Format) -> st.SearchStrategy[str]:
    """Return nearly right outputs: calls as the Format writes them, with parts missing, doubled or replaced."""
    ways = [_pieces(fmt, i) for i in range(len(fmt.tools))] if fmt.channels is None else []
    ways = ways or [_channel_pieces(fmt)]
    own = literals(fmt) or ["x"]

    @st.composite
    def sketch(draw: st.DrawFn) -> str:
        made: list[str] = []
        for way in draw(st.lists(st.sampled_from(ways), min_size=1, max_size=2)):
            made += [draw(piece) if isinstance(piece, st.SearchStrategy) else piece for piece in way]
        for _ in range(draw(st.integers(0, 2))):
            if not made:
                break
            at = draw(st.integers(0, len(made) - 1))
            what = draw(st.integers(0, 4))
            if what == 0:
                del made[at]
            elif what == 1:
                made.insert(at, made[at])
            elif what == 2:
                made.insert(at, draw(st.sampled_from(own)))
            elif what == 3:
                made.insert(at, draw(st.sampled_from(FRAGMENTS)))
            else:
                made = made[: at + 1]
                made[-1] = made[-1][: draw(st.integers(0, max(len(made[-1]), 1)))]
        return "".join(made)

    return sketch()


Piece = str | st.SearchStrategy[str]


def _text(marker: Marker | None) -> str:
    return "" if marker is None else marker.text


def _reasoning_pieces(fmt: Format) -> list[Piece]:
    if fmt.reasoning is None:
        return []
    full = [_text(fmt.reasoning.open), "I think.", _text(fmt.reasoning.close)]
    return [st.sampled_from(["", "".join(full), "".join(full[:2]), "".join(full[1:])])]


def _pieces(fmt: Format, index: int) -> list[Piece]:
    tools = fmt.tools[index]
    made: list[Piece] = [*_reasoning_pieces(fmt), st.sampled_from(["", "Sure.", "Sure.\n"])]
    made += [_text(tools.section_open), _text(tools.list_open)]
    for i in range(2):
        if i:
            made.append(_text(tools.separator))
        made += [_text(tools.call_open), *_body(tools.body), _text(tools.call_close)]
    made += [_text(tools.list_close), _text(tools.section_close)]
    made += [st.sampled_from(["", "\n", " Done.", _text(fmt.turn.end)])]
    return [piece for piece in made if piece != ""]


_OBJECT = st.sampled_from(
    [
        '{"city": "Paris"}',
        "{}",
        '{"days": 3, "tags": ["a", "b"]}',
        '{"options": {"x": [1, {"y": "z}"}]}}',
        '{"city": "Pa',
    ]
)
_NAME = st.sampled_from(["get_weather", "get_weather", "ping", "unknown", "list-all.v2"])


def _body(body: JsonBody | NamedBody) -> list[Piece]:
    if isinstance(body, JsonBody):
        if body.name_is_key:
            return ["{", _NAME.map(json.dumps), ": ", _OBJECT, "}"]
        inner: list[Piece] = [f"{{{json.dumps(body.name_key)}: ", _NAME.map(json.dumps)]
        inner += [f", {json.dumps(body.arguments_key)}: ", _OBJECT, "}"]
        if body.nested_key:
            inner = [f"{{{json.dumps(body.nested_key)}: ", *inner, "}"]
        return inner
    made: list[Piece] = [_text(body.name_open)]
    made.append(_NAME.map(lambda n: body.name.replace("{name}", n).replace("{index}", "0").replace("{id}", "i1")))
    if body.id_open is not None:
        made.append(st.sampled_from(["", f"{body.id_open.text}abcdefgh1"]))
    made.append(_text(body.name_close))
    arguments = body.arguments
    if isinstance(arguments, TaggedArguments):
        for key, value in (
            ("city", st.sampled_from(["Paris", "a\nb", "", "x < y"])),
            ("days", st.sampled_from(["3", "x"])),
        ):
            attributes = arguments.key.replace("{key}", key).replace("{string}", "true").replace("{type}", "string")
            made += [arguments.key_open.text, attributes, arguments.key_close.text]
            if arguments.type_open is not None:
                made += [st.sampled_from(["", *(f"{arguments.type_open.text}{word}" for word in _TYPE_WORDS)])]
                made += [_text(arguments.type_close)]
            if arguments.escape == "cdata":
                value = st.one_of(value, value.map(lambda text: f"<![CDATA[{text}]]>"))
            made += [_text(arguments.value_open), value, arguments.value_close.text]
    elif isinstance(arguments, ElementArguments):
        made += _elements(arguments)
    elif isinstance(arguments, LiteralArguments):
        quote = arguments.quotes[0]
        made += [arguments.open, "city", arguments.assign, quote, st.sampled_from(["Paris", "a\\nb", ""]), quote]
        values = ["3", "[1, 2]", "{'a': 1}", "tru"]
        if arguments.quoted == "all":
            values += [f"{quote}{value}{quote}" for value in values]
        made += [arguments.separator, "days", arguments.assign, st.sampled_from(values)]
        made += [arguments.close]
    else:
        made.append(_OBJECT)
    made.append(_text(body.arguments_close))
    return made


_TYPE_WORDS = ("integer", "string", "any", "a b", "")


def _elements(arguments: ElementArguments) -> list[Piece]:
    def tags(name: str, *inner: Piece) -> list[Piece]:
        end = arguments.name_close
        return [f"{arguments.open.text}{name}{end}", *inner, f"{arguments.close.text}{name}{end}"]

    text = st.sampled_from(["Paris", "a\nb", "", "x < y", "3", "{}"])
    item = tags(arguments.item, text)
    return [*tags("city", text), *tags("tags", *item, *item), *tags("options", *tags("x", *tags("y", text)), *item)]


def _channel_pieces(fmt: Format) -> list[Piece]:
    channels = fmt.channels
    if channels is None:
        end = _text(fmt.turn.end)
        return [*_reasoning_pieces(fmt), "Sure.", *([end] if end else [])]
    made: list[Piece] = []
    kinds = {"reasoning": channels.reasoning_body, "call": channels.call_body}
    for kind in (*(channels.reasoning[:1] or ["reasoning"]), *channels.content[:1], "call"):
        body = kinds.get(kind) or channels.body
        made += [channels.open.text, channels.role]
        if kind == "call":
            made += [_text(channels.channel), channels.call_channel or "", _text(channels.recipient)]
            made += [channels.namespace, _NAME, _text(channels.constraint), channels.call_constraint or ""]
            made += [body.text, *_message_call(fmt), _text(channels.call_close or channels.close)]
        else:
            name = kind if kind in (*channels.reasoning, *channels.content) else ""
            made += [_text(channels.channel or channels.recipient) if name else "", name]
            made += [body.text, "Some text.", _text(channels.close)]
    return [piece for piece in made if piece != ""]


def _message_call(fmt: Format) -> list[Piece]:
    """Return the text of a message to a tool."""
    if not fmt.tools:
        return [_OBJECT]
    tools = fmt.tools[0]
    inner = [_text(tools.call_open), *_body(tools.body), _text(tools.call_close)]
    return [_text(tools.section_open), *inner, _text(tools.section_close)]
