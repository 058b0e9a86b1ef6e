"""Conversion of tagged argument text by the schema of the tool (mlx-lm#1236 reports one that raises)."""

import builtins
import json
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from untemplate.jsontext.coercion import Param, coerce_to_schema_type
from untemplate.jsontext.lexical import json_escape
from untemplate.machine.coercion import ToolSet, extract_types_from_schema, find_tool_name, find_tool_properties

TYPES = ["null", "integer", "number", "boolean", "object", "array", "string"]
BIG = "123456789012345678901234567890"


@pytest.mark.parametrize(
    ("text", "types", "value"),
    [
        ("5", "integer", 5),
        (" 5\n", "integer", 5),
        ("-7", "integer", -7),
        ("+7", "integer", 7),
        ("007", "integer", 7),
        ("3.0", "integer", 3),
        ("3e2", "integer", 300),
        (BIG, "integer", int(BIG)),
        (BIG, "number", int(BIG)),
        ("3", "number", 3),
        ("3.5", "number", 3.5),
        ("1e-3", "number", 0.001),
        (".5", "number", 0.5),
        ("true", "boolean", True),
        ("True", "boolean", True),
        ("False", "boolean", False),
        ("1", "boolean", True),
        ("0", "boolean", False),
        ("null", "null", None),
        ("None", "null", None),
        ("NULL", ["integer", "null"], None),
        (" null ", ["integer", "null"], None),
        ("null", ["string", "null"], None),
        ("None", ["string", "null"], None),
        ("5", ["string", "integer"], 5),
        ("1", ["boolean", "integer"], 1),
        ('{"a": [1, true, null]}', "object", {"a": [1, True, None]}),
        (' [{"a": 1}]\n', "array", [{"a": 1}]),
        ("{'a': True, 'b': None, 'c': (1, 2)}", "object", {"a": True, "b": None, "c": [1, 2]}),
        ("['x', 1.5]", "array", ["x", 1.5]),
        ("[1]", ["object", "array", "string"], [1]),
        ("5", "int", 5),
        ("[]", "list", []),
    ],
)
def test_text_becomes_the_first_type_it_fits(text: str, types: str | list[str], value: object) -> None:
    got = coerce_to_schema_type(text, types)
    assert (got, type(got)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("2026-01-15", "integer"),  # mlx-lm#1236
        ("2026-01-15", "number"),
        ("2026-01-15T10:00:00Z", ["integer", "null"]),
        ("2026-01-15", ["string", "null"]),
        ("", "integer"),
        ("", ["string", "null"]),
        ("3.5", "integer"),
        ("1e99", "integer"),
        ("1_000", "integer"),
        ("٣", "integer"),
        ("0x10", "integer"),
        ("1" * 5000, "integer"),
        ("NaN", "number"),
        ("Infinity", "number"),
        ("-inf", "number"),
        ("1e999", "number"),
        ("1e999", "integer"),
        ("yes", "boolean"),
        ("2", "boolean"),
        ("nil", "null"),
        ("none", ["string", "null"]),
        (" null", ["string", "null"]),
        ("007", ["string", "integer"]),
        (" 7", ["string", "integer"]),
        ("3.0", ["string", "integer"]),
        ("1", ["string", "boolean"]),
        ("[1, 2]", "object"),
        ('{"a": 1}', "array"),
        ('{"a": 1', "object"),
        ('{"a": NaN}', "object"),
        ('{"a": 1e999}', "object"),
        ("{'a': 1e999}", "object"),
        ("{1: 2}", "object"),
        ("{1, 2}", "object"),
        ("[b'x']", "array"),
        ("[1j]", "array"),
        (f"[0x{'f' * 5000}]", "array"),
        (r"['\d']", "array"),  # Python would warn
        ("[" * 100_000, "array"),
        ("['" + "x" * 70_000 + "']", "array"),
        ("{" + "-" * 50_000 + "1}", "object"),
        ("[1] + [2]", "array"),
        ("[1], [2]", "array"),
        ("{'a': 1}, {'b': 2}", ["array", "object"]),
        ("[x for x in y]", "array"),
        ("5", "string"),
        ("5", []),
        ("5", "date"),
    ],
)
def test_text_that_fits_nothing_is_returned_itself(text: str, types: str | list[str]) -> None:
    assert coerce_to_schema_type(text, types) is text


def test_never_evaluates(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """vllm#23266, GHSA-79j6-g2m3-jgfw: eval() on a parameter ran what the model wrote."""
    proof = tmp_path / "proof"
    text = f"[__import__('pathlib').Path({str(proof)!r}).touch()]"
    monkeypatch.setattr(builtins, "eval", lambda *a: pytest.fail("eval"))
    assert coerce_to_schema_type(text, TYPES) is text
    assert not proof.exists()


@given(st.text() | st.from_regex(r"[\[{('\"\\a-z0-9:, .eE+-]*"), st.lists(st.sampled_from(TYPES)))
def test_any_text_encodes_to_valid_json_that_means_the_coerced_value(text: str, types: list[str]) -> None:
    encoded = Param(types).encode(text)
    encoded.encode()
    assert json.loads(encoded) == coerce_to_schema_type(text, types)


# -- Schemas ------------------------------------------------------------------------------------------------------

ROOT = {
    "$defs": {
        "Point": {"type": "object"},
        "Loop": {"$ref": "#/$defs/Loop"},
        "A": {"anyOf": [{"$ref": "#/$defs/B"}, {"type": "integer"}]},
        "B": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]},
        "a/b~c": {"type": "number"},
        "List": {"oneOf": [{"type": "null"}, {"type": "array"}]},
    },
    "definitions": {"Old": {"type": "boolean"}},
}
SELF: dict[str, Any] = {"type": "array"}
SELF["anyOf"] = [SELF, {"oneOf": [SELF, {"type": "null"}]}]
DEEP: dict[str, Any] = {"type": "integer"}
for _ in range(5000):
    DEEP = {"allOf": [DEEP]}


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"type": "integer"}, ["integer"]),
        ({"type": ["string", "null"]}, ["string", "null"]),
        ({"type": ["null", "string", "null"]}, ["null", "string"]),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, ["integer", "null"]),
        ({"oneOf": [{"anyOf": [{"type": "array"}]}, {"type": ["object", "array"]}]}, ["array", "object"]),
        ({"allOf": [{"description": "x"}, {"type": "number"}]}, ["number"]),
        ({"anyOf": [{"type": "integer"}, {}]}, ["integer", "string"]),
        ({"anyOf": [{"type": "integer"}, True]}, ["integer", "string"]),
        ({"enum": [1, 2]}, ["integer"]),
        ({"enum": ["a", None, True, 1.5, [], {}]}, ["string", "null", "boolean", "number", "array", "object"]),
        ({"type": "string", "enum": ["1", "2"]}, ["string"]),
        ({"const": 3}, ["integer"]),
        ({"const": None}, ["null"]),
        ({"type": "string", "nullable": True}, ["string", "null"]),
        ({"properties": {}}, ["object"]),
        ({"items": {}}, ["array"]),
        ({"type": "int"}, ["integer"]),
        ({"$ref": "#/$defs/Point"}, ["object"]),
        ({"$ref": "#/definitions/Old"}, ["boolean"]),
        ({"$ref": "#/$defs/a~1b~0c"}, ["number"]),
        ({"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}]}, ["object", "null"]),
        ({"$ref": "#/$defs/A"}, ["null", "integer"]),
        ({"$ref": "#/$defs/List/oneOf/1"}, ["array"]),
        ({"$ref": "#/$defs/List/oneOf/2"}, ["string"]),
        ({"$ref": "#/$defs/List/oneOf/1/type/x"}, ["string"]),
        ({"$ref": "#"}, ["string"]),
        ({"$ref": "#/$defs/Loop"}, ["string"]),
        ({"$ref": "#/$defs/Missing"}, ["string"]),
        ({"$ref": "https://example.com/schema"}, ["string"]),
        ({"$ref": 3}, ["string"]),
        (SELF, ["array", "null"]),
        (DEEP, ["string"]),
        ({}, ["string"]),
        ({"description": "no type"}, ["string"]),
        ({"type": "date"}, ["string"]),
        ({"type": 3, "enum": "x", "anyOf": {}, "const": object()}, ["string"]),
        (None, ["string"]),
        (True, ["string"]),
        ([1], ["string"]),
        ("integer", ["string"]),
    ],
)
def test_types_of_a_schema(schema: object, types: list[str]) -> None:
    assert extract_types_from_schema(schema, root=ROOT) == types


def test_a_schema_is_its_own_root() -> None:
    assert extract_types_from_schema({"$ref": "#/$defs/N", "$defs": {"N": {"type": "number"}}}) == ["number"]


# -- Tools --------------------------------------------------------------------------------------------------------

PARAMETERS = {
    "type": "object",
    "properties": {
        "count": {"type": "integer"},
        "when": {"type": "string"},
        "note": {"type": ["string", "null"]},
        "shape": {"$ref": "#/$defs/Shape"},
        "size": {"enum": [1, 2, 3]},
        "code": {"enum": ["1", "2", 3]},
        "free": {},
        "wrong": 3,
    },
    "$defs": {"Shape": {"anyOf": [{"type": "object"}, {"type": "array"}]}},
}
CHAT = {"type": "function", "function": {"name": "draw", "parameters": PARAMETERS}}
FLAT = {"type": "function", "name": "draw", "parameters": PARAMETERS}


class Function(msgspec.Struct):
    name: str
    parameters: dict[str, Any] | None = None


class Tool(msgspec.Struct):
    function: Function
    type: str = "function"


class Dumped:
    """As a pydantic model: ollama's client has one for the parameters."""

    def model_dump(self, *, by_alias: bool, exclude_none: bool) -> dict[str, Any]:
        assert by_alias
        assert exclude_none
        return PARAMETERS


STYLES = [
    CHAT,
    FLAT,
    Tool(Function("draw", PARAMETERS)),
    SimpleNamespace(name="draw", parameters=PARAMETERS),
    {"function": SimpleNamespace(name="draw", parameters=Dumped())},
]


@pytest.mark.parametrize("tool", STYLES)
def test_every_style_of_tool(tool: object) -> None:
    other = {"type": "function", "function": {"name": "other"}}
    tools = [other, tool]
    assert find_tool_name(tools, "draw")
    assert find_tool_properties(tools, "draw") == PARAMETERS["properties"]
    found = ToolSet(tools)
    assert (found.known, found.names) == (True, frozenset({"other", "draw"}))
    shape = found.param("draw", "shape")
    assert shape is not None
    assert shape.types == ("object", "array")
    assert found.param("draw", "shape") is shape
    assert found.param("other", "shape") is None
    assert [found.positional("draw", i) for i in (0, 1, 8, -1)] == ["count", "when", None, None]
    assert found.positional("other", 0) is None
    assert found.positional("unknown", 0) is None


@pytest.mark.parametrize("tools", [None, [], [CHAT]])
def test_what_is_not_there(tools: list[Any] | None) -> None:
    assert not find_tool_name(tools, "fly")
    assert find_tool_properties(tools, "fly") == {}
    found = ToolSet(tools)
    assert found.known is (tools is not None)
    assert found.param("fly", "count") is None
    assert found.param("draw", "unheard-of") is None


@pytest.mark.parametrize(
    ("tools", "problem"),
    [
        ([CHAT, FLAT, {"type": "function", "function": {"description": "x"}}], "tools[2]: has no name"),
        ([{}], "tools[0]: has no name"),
        ([{"type": "function", "name": ""}], "tools[0]: has no name"),
        ([{"type": "function", "name": 3}], "tools[0]: has no name"),
        ([None], "tools[0]: has no name"),
        (
            [CHAT, {"type": "function", "function": {"name": "x", "parameters": [1]}}],
            "tools[1].parameters: expected an object (a JSON schema), got list",
        ),
        ([{"name": "x", "parameters": "{}"}], "tools[0].parameters: expected an object (a JSON schema), got str"),
        (CHAT, "tools: expected a list, got dict"),
        (3, "tools: expected a list, got int"),
    ],
)
def test_a_tool_that_cannot_be_called(tools: Any, problem: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole text is compared
        ToolSet(tools)
    assert str(error.value) == problem


def test_hosted_tools_have_no_name() -> None:
    assert ToolSet([{"type": "web_search"}, FLAT]).names == frozenset({"draw"})


def test_the_first_of_two_tools_with_one_name_counts() -> None:
    tools = [FLAT, {"type": "function", "name": "draw", "parameters": {"properties": {"count": {"type": "string"}}}}]
    assert find_tool_properties(tools, "draw") == PARAMETERS["properties"]
    param = ToolSet(tools).param("draw", "count")
    assert param is not None
    assert param.types == ("integer",)


def test_properties_behind_references() -> None:
    schema = {
        "allOf": [{"$ref": "#/$defs/Base"}, {"properties": {"b": {"type": "integer"}}}],
        "properties": {"a": {"type": "null"}},
        "$defs": {"Base": {"properties": {"a": {"type": "array"}, "c": {"$ref": "#"}}, "allOf": [{"$ref": "#"}]}},
    }
    tools = [{"name": "f", "parameters": schema}]
    assert find_tool_properties(tools, "f") == {"a": {"type": "null"}, "c": {"$ref": "#"}, "b": {"type": "integer"}}
    for broken in (None, {}, {"properties": [1]}, {"properties": {3: {}}}, {"$ref": "#"}, DEEP):
        assert find_tool_properties([{"name": "f", "parameters": broken}], "f") == {}


def test_additional_properties_have_their_schema() -> None:
    found = ToolSet([{"name": "f", "parameters": {"additionalProperties": {"type": "integer"}}}])
    param = found.param("f", "anything")
    assert param is not None
    assert param.encode("3") == "3"


@pytest.mark.parametrize(
    ("key", "types", "streams", "nullable"),
    [
        ("count", ("integer",), False, False),
        ("when", ("string",), True, False),
        ("note", ("string", "null"), False, True),
        ("shape", ("object", "array"), False, False),
        ("code", ("string", "integer"), False, False),
        ("free", ("string",), True, False),
    ],
)
def test_when_a_parameter_may_stream(key: str, types: tuple[str, ...], streams: bool, nullable: bool) -> None:
    param = ToolSet([CHAT]).param("draw", key)
    assert param is not None
    assert (param.types, param.streams, param.nullable) == (types, streams, nullable)
    assert ToolSet([CHAT]).param("draw", "wrong") is None


@pytest.mark.parametrize(
    ("key", "text", "encoded"),
    [
        ("count", "3", "3"),
        ("count", "3.0", "3"),
        ("count", BIG, BIG),
        ("count", "2026-01-15", '"2026-01-15"'),
        ("count", "True", '"True"'),
        ("when", "2026-01-15", '"2026-01-15"'),
        ("when", "12", '"12"'),
        ("when", "null", '"null"'),
        ("when", ' {"a": 1}\n', '" {\\"a\\": 1}\\n"'),
        ("note", "null", "null"),
        ("note", "nothing", '"nothing"'),
        ("note", "", '""'),
        ("shape", '{"a": 1.0}', '{"a": 1.0}'),
        ("shape", '\n[{"a":true},\n {"a" : null}]\n', '[{"a":true},\n {"a" : null}]'),
        ("shape", "[{'a': True}, {'a': None}]", '[{"a": true}, {"a": null}]'),
        ("shape", "3", '"3"'),
        ("shape", '["\ud800é"]', '["\\ud800é"]'),
        ("shape", r"['\ud800é']", '["\\ud800é"]'),
        ("size", "2", "2"),
        ("size", "9", "9"),
        ("code", "1", '"1"'),
        ("code", "3", "3"),
    ],
)
def test_encode(key: str, text: str, encoded: str) -> None:
    param = ToolSet([CHAT]).param("draw", key)
    assert param is not None
    assert param.encode(text) == encoded


def test_numbers_stay_as_written() -> None:
    for text in ("1.0", "1E5", "-0.0", "0.1000000000000000055511151231257827", "1e-400"):
        assert Param(["number"]).encode(text) == text
    assert Param(["number"]).encode("+1.50") == "1.5"


def test_json_escape() -> None:
    assert json_escape('a"\\\n\x00é😀') == 'a\\"\\\\\\n\\u0000é😀'
    assert json_escape("\ud83d") + json_escape("\ude00") == "\\ud83d\\ude00"


@given(st.text(st.characters(exclude_categories=())), st.integers(0))
def test_escaping_a_text_in_two_parts_is_escaping_it(text: str, cut: int) -> None:
    cut %= len(text) + 1
    escaped = json_escape(text)
    escaped.encode()
    assert escaped == json_escape(text[:cut]) + json_escape(text[cut:])
    assert json.loads(f'"{escaped}"').encode("utf-16", "surrogatepass") == text.encode("utf-16", "surrogatepass")
