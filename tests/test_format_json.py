"""Converts Formats to JSON and back, and checks the errors of documents and Formats that are wrong."""

import ast
import inspect
import itertools
import json
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from untemplate.format import (
    Channels,
    Content,
    ElementArguments,
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
from untemplate.format import _calls as calls
from untemplate.format import _markers as markers
from untemplate.format import _parts as parts

FULL = Format(
    name="full",
    turn=Turn(start=Marker("<|im_start|>assistant\n"), end=Marker("<|im_end|>", ("<|endoftext|>",))),
    reasoning=Reasoning(open=Marker("<think>\n"), close=Marker("</think>"), start="open", repeats=True),
    content=Content(open=Marker("<response>"), close=Marker("</response>"), written="with_reasoning"),
    tools=(
        Tools(
            section_open=Marker("<tool_calls>"),
            section_close=Marker("</tool_calls>"),
            call_open=Marker("<tool_call>"),
            call_close=Marker("</tool_call>"),
            optional=("section", "call"),
            body=NamedBody(
                name_open=Marker("<function="),
                name_close=Marker(">"),
                arguments=TaggedArguments(
                    key_open=Marker("<parameter="),
                    key='{key}" string="{string}',
                    key_close=Marker(">"),
                    value_close=Marker("</parameter>"),
                    trim=1,
                ),
                arguments_close=Marker("</function>"),
            ),
        ),
        Tools(body=JsonBody(constants=(("type", "function"), ("a", "b"))), call_open=Marker("<tool_call>")),
        Tools(body=NamedBody(arguments=LiteralArguments(words=("yes", "no", "nil"))), call_open=Marker("<｜call｜>")),
    ),
    ids="functions.{name}:{index}",
    special_tokens=("<think>", "</think>"),
)

FULL_JSON = {
    "version": 1,
    "name": "full",
    "turn": {"start": "<|im_start|>assistant\n", "end": {"text": "<|im_end|>", "accepted": ["<|endoftext|>"]}},
    "reasoning": {"open": "<think>\n", "close": "</think>", "start": "open", "repeats": True},
    "content": {"open": "<response>", "close": "</response>", "written": "with_reasoning"},
    "tools": [
        {
            "body": {
                "kind": "named",
                "name_open": "<function=",
                "name_close": ">",
                "arguments": {
                    "kind": "tagged",
                    "key_open": "<parameter=",
                    "key": '{key}" string="{string}',
                    "key_close": ">",
                    "value_close": "</parameter>",
                    "trim": 1,
                },
                "arguments_close": "</function>",
            },
            "section_open": "<tool_calls>",
            "section_close": "</tool_calls>",
            "call_open": "<tool_call>",
            "call_close": "</tool_call>",
            "optional": ["section", "call"],
        },
        {
            "body": {"kind": "json", "constants": [["type", "function"], ["a", "b"]]},
            "call_open": "<tool_call>",
        },
        {
            "body": {"kind": "named", "arguments": {"kind": "literal", "words": ["yes", "no", "nil"]}},
            "call_open": "<｜call｜>",
        },
    ],
    "ids": "functions.{name}:{index}",
    "special_tokens": ["<think>", "</think>"],
}


def test_the_json_form() -> None:
    text = FULL.to_json()
    assert json.loads(text) == FULL_JSON
    assert list(json.loads(text))[:2] == ["version", "name"]
    assert "<｜call｜>" in text
    assert Format.from_json(text) == FULL
    assert Format.from_json(text.encode()) == FULL


def test_a_format_of_defaults() -> None:
    assert Format(name="plain").to_json(indent=None) == '{"version": 1, "name": "plain"}'
    assert Format(name="plain").to_json() == '{\n  "version": 1,\n  "name": "plain"\n}'
    assert Format.from_json('{"name": "plain"}') == Format(name="plain")


def test_null_is_not_a_marker() -> None:
    text = '{"version": 1, "name": "x", "reasoning": {"open": null, "close": "</think>"}, "content": null}'
    assert Format.from_json(text) == Format(name="x", reasoning=Reasoning(close=Marker("</think>")))


# -- Round trip of every Format -----------------------------------------------------------------------------------

texts = st.text(min_size=1)
words = st.text(st.characters(exclude_categories=("Zs", "Cc", "Cs")), min_size=1, max_size=8)
plain = st.builds(Marker, words) | st.builds(Marker, words, st.lists(words, max_size=2).map(tuple))


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


arguments = (
    st.just(JsonArguments())
    | st.builds(
        TaggedArguments,
        key_open=plain,
        key=words.map(lambda w: w + "{key}"),
        key_close=plain,
        value_open=maybe(plain),
        value_close=plain,
        trim=st.integers(0, 3),
        escape=st.sampled_from(["none", "xml"]),
    )
    | st.builds(
        ElementArguments,
        open=plain.map(lambda m: Marker("<" + m.text)),
        close=plain.map(lambda m: Marker("/" + m.text)),
        name_close=words,
        item=st.sampled_from(["item", "x"]),
    )
    | st.builds(
        LiteralArguments,
        separator=texts,
        quotes=st.lists(texts, min_size=1).map(tuple),
        words=st.tuples(texts, texts, texts),
        escapes=st.booleans(),
        quoted_keys=st.booleans(),
    )
)
bodies = st.builds(
    JsonBody,
    name_key=st.just("name") | texts.map(lambda t: "n" + t),
    arguments_key=st.just("arguments") | texts.map(lambda t: "a" + t),
    accepted_name_keys=st.lists(texts).map(tuple),
    accepted_arguments_keys=st.lists(texts).map(tuple),
    id_key=maybe(texts),
    nested_key=maybe(texts),
    name_is_key=st.booleans(),
    constants=st.lists(st.tuples(texts, texts)).map(tuple),
) | st.builds(
    NamedBody,
    name_open=maybe(plain),
    name=words.map(lambda w: "{name}" + w),
    name_close=plain,
    id_open=maybe(plain),
    arguments=arguments,
    arguments_close=plain,
    escape=st.sampled_from(["none", "xml"]),
    index_base=st.integers(-1, 10**30),
)
lists = st.just({}) | st.builds(lambda a, b: {"list_open": a, "list_close": b}, plain, plain)
tools = st.builds(
    lambda pair, **rest: Tools(**pair, **rest),
    lists,
    body=bodies,
    section_open=maybe(plain),
    section_close=maybe(plain),
    list_optional=st.booleans(),
    call_open=maybe(plain),
    call_close=maybe(plain),
    separator=maybe(plain),
    optional=st.lists(st.sampled_from(["section", "call"])).map(tuple),
)
channels = st.builds(
    Channels,
    open=plain,
    role=st.text(),
    channel=maybe(plain),
    recipient=maybe(plain),
    constraint=maybe(plain),
    body=plain,
    close=maybe(plain),
    call_close=maybe(plain),
    namespace=st.text(),
    reasoning=st.sampled_from([(), ("analysis",)]),
    content=st.sampled_from([("final",), ("final", "commentary")]),
    preamble=maybe(texts),
    call_channel=maybe(texts),
    call_constraint=maybe(texts),
)
PARTS: dict[str, st.SearchStrategy[Any]] = {
    "name": texts,
    "turn": st.builds(Turn, start=maybe(plain), end=maybe(plain)),
    "reasoning": maybe(
        st.builds(
            Reasoning,
            open=maybe(plain),
            close=plain,
            start=st.sampled_from(["closed", "open"]),
            repeats=st.booleans(),
        )
    ),
    "content": maybe(
        st.builds(Content, open=plain, close=plain, written=st.sampled_from(["always", "with_reasoning"]))
    ),
    "ids": st.sampled_from(["random", "alphanumeric9", "functions.{name}:{index}"]),
    "special_tokens": st.lists(texts).map(tuple),
}


@st.composite
def formats(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Format:
    values = {key: draw(strategy) for key, strategy in PARTS.items()}
    if draw(st.booleans()):
        values["tools"] = tuple(draw(st.lists(tools, max_size=2)))
    else:
        values["channels"] = draw(channels)
    try:
        return Format(**values)
    except FormatError:  # markers that collide
        return Format(name=values["name"], tools=values.get("tools", ())[:0], special_tokens=values["special_tokens"])


@given(formats(), st.none() | st.integers(0, 4))
@settings(max_examples=300)
def test_every_format_round_trips(fmt: Format, indent: int | None) -> None:
    assert Format.from_json(fmt.to_json(indent=indent)) == fmt


# -- Documents that cannot be read --------------------------------------------------------------------------------

TAGGED = {"kind": "tagged", "key_open": "<k>", "key_close": "</k>", "value_close": "</v>"}


def document(**changes: Any) -> dict[str, Any]:
    return {"version": 1, "name": "x"} | changes


def body(**changes: Any) -> dict[str, Any]:
    return document(tools=[{"call_open": "<t>", "body": {"kind": "named", "name_close": ">"} | changes}])


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (3, "Format: expected an object, got 3"),
        ([], "Format: expected an object, got an array"),
        ({"version": 1}, "name: is missing"),
        (document(name=3), "name: expected text, got 3"),
        (document(name=""), "name: is empty"),
        (document(version="1"), "version: expected an integer, got '1'"),
        (document(version=True), "version: expected an integer, got true"),
        (document(version=0), "version: 0 is not known here; the only version is 1"),
        (document(version=2, prefill=True), "version: 2 is not known here; the only version is 1"),
        (document(turn=None), "turn: expected an object, got null"),
        (document(turn="<|im_end|>"), "turn: expected an object, got '<|im_end|>'"),
        (document(trun={}), "trun: is not a key here; the keys are: version, name, turn, reasoning, content, tools, "
         "channels, ids, special_tokens, spelled_markers"),
        (document(unknown=[]), "unknown: is not a key here; the keys are: version, name, turn, reasoning, content, "
         "tools, channels, ids, special_tokens, spelled_markers"),
        (document(turn={"a b": 1}), 'turn["a b"]: is not a key here; the keys are: start, end, in_output'),
        (document(reasoning={}), "reasoning.close: is missing"),
        (document(reasoning={"close": 3}),
         "reasoning.close: expected a marker (text, or an object with 'text'), got 3"),
        (document(reasoning={"close": None}),
         "reasoning.close: expected a marker (text, or an object with 'text'), got null"),
        (document(reasoning={"close": {"accepted": []}}), "reasoning.close.text: is missing"),
        (document(reasoning={"close": {"text": 1}}), "reasoning.close.text: expected text, got 1"),
        (document(reasoning={"close": {"text": "x", "accepted": "y"}}),
         "reasoning.close.accepted: expected an array, got 'y'"),
        (document(reasoning={"close": {"text": "x", "accepted": ["y", 2]}}),
         "reasoning.close.accepted[1]: expected text, got 2"),
        (document(reasoning={"close": {"txt": "x"}}),
         "reasoning.close.txt: is not a key here; the keys are: text, accepted"),
        (document(reasoning={"close": ""}), "reasoning.close: is an empty marker"),
        (document(reasoning={"close": "x", "start": "open2"}), "reasoning.start: 'open2' is not one of: closed, open"),
        (document(reasoning={"close": "x", "start": None}), "reasoning.start: null is not one of: closed, open"),
        (document(reasoning={"close": "x", "repeats": 1}), "reasoning.repeats: expected true or false, got 1"),
        (document(reasoning={"open": "x", "close": "x"}), "reasoning.close: 'x' is already reasoning.open"),
        (document(tools={}), "tools: expected an array, got an object"),
        (document(tools=[3]), "tools[0]: expected an object, got 3"),
        (document(tools=[{}, {"body": {}}]), "tools[1].body.kind: is missing; it is one of: json, named"),
        (document(tools=[{"body": "json"}]), "tools[0].body: expected an object, got 'json'"),
        (document(tools=[{"body": None}]), "tools[0].body: expected an object, got null"),
        (document(tools=[{"body": {"kind": "jason"}}]), "tools[0].body.kind: 'jason' is not one of: json, named"),
        (document(tools=[{"body": {"kind": ["json"]}}]), "tools[0].body.kind: an array is not one of: json, named"),
        (document(tools=[{"body": {"kind": "json", "name": "x"}}]),
         "tools[0].body.name: is not a key here; the keys are: kind, name_key, arguments_key, accepted_name_keys, "
         "accepted_arguments_keys, id_key, nested_key, name_is_key, constants"),
        (document(tools=[{"body": {"kind": "json", "constants": [["a"]]}}]),
         "tools[0].body.constants[0]: expected 2 items, got 1"),
        (document(tools=[{"body": {"kind": "json", "constants": [["a", 1]]}}]),
         "tools[0].body.constants[0][1]: expected text, got 1"),
        (document(tools=[{"optional": ["section", "list"]}]),
         "tools[0].optional[1]: 'list' is not one of: section, call"),
        (body(arguments=TAGGED | {"key_open": 3}), "tools[0].body.arguments.key_open: expected a marker (text, or an "
         "object with 'text'), got 3"),
        (body(arguments=TAGGED | {"trim": 1.0}), "tools[0].body.arguments.trim: expected an integer, got 1.0"),
        (body(arguments=TAGGED),
         "tools[0].body.arguments_close: is missing: nothing ends a call with tagged arguments"),
        (body(arguments={"kind": "tagged"}), "tools[0].body.arguments.key_open: is missing"),
        (body(arguments={"kind": "xml"}),
         "tools[0].body.arguments.kind: 'xml' is not one of: json, tagged, element, literal"),
        (body(arguments={"kind": "literal", "words": ["a", "b"]}),
         "tools[0].body.arguments.words: expected 3 items, got 2"),
        (body(name="{name}{name}"), "tools[0].body.name: '{name}{name}' holds {name} more than once"),
        (body(name="{name}{x}"), "tools[0].body.name: '{name}{x}' holds {x}; the variables are: {name}, {index}, {id}"),
        (body(name="{index}"), "tools[0].body.name: '{index}' does not hold {name}"),
        (body(arguments=TAGGED | {"key": "{key}:{key}"}),
         "tools[0].body.arguments.key: '{key}:{key}' holds {key} more than once"),
        (document(ids="{index}{index}"), "ids: '{index}{index}' holds {index} more than once"),
        (document(ids="{id}"), "ids: '{id}' holds {id}; the variables are: {name}, {index}"),
        (document(ids="uuid"), "ids: 'uuid' is not 'random', 'alphanumeric9' or a pattern with {name} or {index}"),
    ],
)  # fmt: skip
def test_an_invalid_document_names_its_path(value: Any, problem: str) -> None:
    with pytest.raises(FormatError) as error:
        Format.from_json(json.dumps(value))
    assert str(error.value) == problem
    assert error.value.path == problem.partition(":")[0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "Format: not JSON: Expecting value: line 1 column 1 (char 0)"),
        ('{"name": }', "Format: not JSON: Expecting value: line 1 column 10 (char 9)"),
        ('{"name": "x", "name": "x"}', "name: is given twice"),
        (
            '{"name": "x", "reasoning": {"open": "<a>", "open": "<b>", "close": "<c>"}}',
            "reasoning.open: is given twice",
        ),
        (
            '{"name": "x", "tools": [{"body": {"kind": "json", "kind": "named"}}]}',
            "tools[0].body.kind: is given twice",
        ),
        ('{"name": "x", "version": NaN}', "Format: not JSON: NaN"),
        (b"\xff", "Format: not JSON: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
    ],
)
def test_text_that_is_not_json(text: str | bytes, problem: str) -> None:
    with pytest.raises(FormatError) as error:
        Format.from_json(text)
    assert str(error.value) == problem


def test_text_that_is_nested_too_deeply() -> None:
    with pytest.raises(FormatError, match=r"^Format: not JSON: "):
        Format.from_json("[" * 100_000)


# -- Documentation ------------------------------------------------------------------------------------------------


def test_every_field_is_documented_with_its_default_and_an_example() -> None:
    sources = [inspect.getsource(module) for module in (markers, calls, parts)]
    classes = [node for source in sources for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    assert {node.name for node in classes} >= {"Marker", "Turn", "Reasoning", "Channels", "Tools", "FormatFields"}
    for node in classes:
        for statement, below in itertools.pairwise(node.body):
            if isinstance(statement, ast.AnnAssign):
                text = " ".join(ast.unparse(below).split())
                assert isinstance(below, ast.Expr)
                assert "Default" in text or "Required" in text, ast.unparse(statement)
                assert "Example:" in text or "bool" in ast.unparse(statement) or "``1``" in text, text


# -- Construction in Python ---------------------------------------------------------------------------------------

CALL = Tools(call_open=Marker("<call>"), body=NamedBody(name_close=Marker(">"), arguments=LiteralArguments()))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"version": 2}, "version: 2 is not known here; the only version is 1"),
        ({"reasoning__start": "opened"}, "reasoning.start: 'opened' is not one of: closed, open"),
        ({"content__written": None}, "content.written: None is not one of: always, with_reasoning"),
        ({"tools__0__optional": ("list",)}, "tools[0].optional[0]: 'list' is not one of: section, call"),
        ({"tools__0__body__escape": "html"}, "tools[0].body.escape: 'html' is not one of: none, xml"),
        ({"tools__0__body__arguments__open": "(("}, "tools[0].body.arguments.open: must be one character"),
        ({"tools__0__body__arguments__quotes": ()}, "tools[0].body.arguments.quotes: is empty"),
        ({"special_tokens": ("",)}, "special_tokens[0]: is empty"),
        ({"special_tokens": "<a>"}, "special_tokens: expected a tuple of texts, such as ('<a>',), got '<a>'"),
        ({"special_tokens": ["<a>"]}, "special_tokens: expected a tuple of texts, such as (\"…\",), got ['<a>']"),
        ({"special_tokens": ("a", 3)}, "special_tokens[1]: expected text, got 3"),
        ({"tools": CALL}, "tools: expected a tuple of Tools, such as (Tools(…),), got Tools(…)"),
        ({"tools": ("json",)}, "tools[0]: expected Tools, got 'json'"),
        (
            {"tools__0__optional": "call"},
            "tools[0].optional: expected a tuple of these: section, call, such as ('call',), got 'call'",
        ),
        ({"tools__0__body": "json"}, "tools[0].body: expected JsonBody or NamedBody, got 'json'"),
        (
            {"tools__0__body": JsonBody(constants=("a", "b"))},  # type: ignore[arg-type]
            'tools[0].body.constants[0]: expected a tuple of 2 texts, such as ("…", "…"), got \'a\'',
        ),
        (
            {"tools__0__body": JsonBody(constants="a")},  # type: ignore[arg-type]
            'tools[0].body.constants: expected a tuple of tuples, such as (("…", "…"),), got \'a\'',
        ),
        ({"tools__0__body__index_base": True}, "tools[0].body.index_base: expected an integer, got True"),
        ({"tools__0__body__arguments__escapes": 1}, "tools[0].body.arguments.escapes: expected True or False, got 1"),
        (
            {"reasoning__close": Marker("</think>", ("</t>"))},  # type: ignore[arg-type]
            "reasoning.close.accepted: expected a tuple of texts, such as ('</t>',), got '</t>'",
        ),
        ({"reasoning": "<think>"}, "reasoning: expected Reasoning or None, got '<think>'"),
        ({"turn": None}, "turn: expected Turn, got None"),
        ({"ids": 3}, "ids: expected text, got 3"),
    ],
)
def test_a_field_that_cannot_work_is_named(changes: dict[str, Any], problem: str) -> None:
    fmt = Format(
        name="x",
        reasoning=Reasoning(close=Marker("</think>")),
        content=Content(open=Marker("<a>"), close=Marker("</a>")),
        tools=(CALL,),
    )
    with pytest.raises(FormatError) as error:
        fmt.extend(**changes)
    assert str(error.value) == problem


def test_the_json_schema_fits_every_format_and_no_other_keys() -> None:
    from untemplate.format._serialization import json_schema
    from untemplate.formats import entries

    validator = jsonschema_rs.validator_for(json_schema())
    for fmt in (FULL, *(entry.format for entry in entries())):
        assert [error.message for error in validator.iter_errors(json.loads(fmt.to_json()))] == []
    for wrong in (
        {"name": 1},
        {"version": 1},
        {"name": "x", "turns": {}},
        {"name": "x", "tools": [{"body": {"kind": "other"}}]},
        {"name": "x", "reasoning": {"close": "a", "start": "half"}},
        {"name": "x", "turn": {"end": {"accepted": ["x"]}}},
    ):
        assert not validator.is_valid(wrong)
        with pytest.raises(FormatError):
            Format.from_json(json.dumps(wrong))
