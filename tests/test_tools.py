"""Reading the tools of a request: every shape, errors that name the field, and the types of parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from untemplate.tools import _SHARED, ToolSet, find_tool
from untemplate.vllm_api import find_tool_name, find_tool_properties

BIG = "123456789012345678901234567890"

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
DEEP: dict[str, Any] = {}
for _ in range(5000):
    DEEP = {"allOf": [DEEP]}
CHAT = {"type": "function", "function": {"name": "draw", "parameters": PARAMETERS}}
FLAT = {"type": "function", "name": "draw", "parameters": PARAMETERS}


class Function(msgspec.Struct):
    name: str
    parameters: dict[str, Any] | None = None


class Tool(msgspec.Struct):
    function: Function
    type: str = "function"


class Dumped:
    """A class that dumps like a pydantic model: ollama's client has one for the parameters."""

    def model_dump(self, *, by_alias: bool, exclude_none: bool) -> dict[str, Any]:
        assert by_alias
        assert exclude_none
        return PARAMETERS


class Struct(msgspec.Struct, rename={"defs": "$defs"}):
    """A schema as a struct."""

    type: str
    properties: dict[str, Any]
    defs: dict[str, Any]


SCHEMA = Struct("object", PARAMETERS["properties"], PARAMETERS["$defs"])
STYLES = [
    CHAT,
    FLAT,
    Tool(Function("draw", PARAMETERS)),
    SimpleNamespace(name="draw", parameters=PARAMETERS),
    {"function": SimpleNamespace(name="draw", parameters=Dumped())},
    {"name": "draw", "input_schema": PARAMETERS},
    {"type": "custom", "name": "draw", "input_schema": PARAMETERS},
    {"name": "draw", "inputSchema": PARAMETERS},
    SimpleNamespace(name="draw", inputSchema=PARAMETERS),
    SimpleNamespace(name="draw", parameters=None, input_schema=SCHEMA),
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
        ([CHAT, FLAT, {"type": "function", "function": {"description": "x"}}], "tools[2].function.name: is required"),
        ([CHAT, {"function": {"name": 3}}], "tools[1].function.name: expected a string, got int"),
        ([{"function": {"name": ""}}], "tools[0].function.name: is empty"),
        ([{"type": "function", "function": "draw"}], "tools[0].function: expected an object, got str"),
        ([{"type": "function", "function": None}], "tools[0].name: is required"),
        ([{}], "tools[0].name: is required"),
        ([{"type": "function", "name": ""}], "tools[0].name: is empty"),
        ([{"type": "function", "name": 3}], "tools[0].name: expected a string, got int"),
        ([None], "tools[0]: expected an object, got NoneType"),
        (["draw"], "tools[0]: expected an object, got str"),
        ([CHAT, [FLAT]], "tools[1]: expected an object, got list"),
        (
            [CHAT, {"type": "function", "function": {"name": "x", "parameters": [1]}}],
            "tools[1].function.parameters: expected an object (a JSON schema), got list",
        ),
        ([{"name": "x", "parameters": "{}"}], "tools[0].parameters: expected an object (a JSON schema), got str"),
        ([{"name": "x", "input_schema": 1}], "tools[0].input_schema: expected an object (a JSON schema), got int"),
        ([{"name": "x", "inputSchema": []}], "tools[0].inputSchema: expected an object (a JSON schema), got list"),
        (CHAT, "tools: expected a list, got dict"),
        ("draw", "tools: expected a list, got str"),
        (3, "tools: expected a list, got int"),
    ],
)
def test_an_unknown_shape_names_the_field(tools: Any, problem: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole text is compared
        ToolSet(tools)
    assert str(error.value) == problem


def test_helpers_skip_unknown_shapes() -> None:
    tools = [None, 3, {"function": "f"}, {"name": "x", "parameters": [1]}, CHAT]
    assert find_tool_name(tools, "draw")
    assert find_tool_name(tools, "x")
    assert find_tool_properties(tools, "x") == {}
    assert find_tool(tools, "y") is None


def test_strict_is_true_or_not_set() -> None:
    tools = [{"name": f"t{i}", "strict": value} for i, value in enumerate((True, False, None, "yes"))]
    assert [tool.strict for tool in ToolSet(tools)] == [True, False, False, False]
    assert ToolSet([{"function": {"name": "f", "strict": True}}]).get("f").strict  # type: ignore[union-attr]


def test_a_set_of_a_set() -> None:
    first = ToolSet([CHAT, {"name": "other", "input_schema": {}}])
    second = ToolSet(first)
    assert (second.known, second.names, list(second)) == (True, first.names, list(first))
    assert [tool.path for tool in second] == ["tools[0].function.parameters", "tools[1].input_schema"]
    assert len(second) == 2
    assert not ToolSet(ToolSet(None)).known
    assert find_tool(first, "draw") is first.get("draw")
    assert repr(first.get("draw")) == "Tool('draw')"


class Counting(Mapping[str, Any]):
    """A schema that counts its look-ups."""

    def __init__(self, inner: dict[str, Any]) -> None:
        self.inner = inner
        self.looks = 0

    def __getitem__(self, key: str) -> Any:
        self.looks += 1
        return self.inner[key]

    def __iter__(self) -> Iterator[str]:
        self.looks += 1
        return iter(self.inner)

    def __len__(self) -> int:
        return len(self.inner)


def test_schemas_are_read_when_a_value_needs_a_type_and_once() -> None:
    schemas = [Counting({"properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "null"}})] * 64
    found = ToolSet([{"name": f"t{i}", "parameters": schema} for i, schema in enumerate(schemas)])
    assert schemas[0].looks == 0
    assert found.param("t3", "a") is found.param("t3", "a")
    looks = schemas[0].looks
    other = found.param("t3", "made up")
    assert other is not None
    assert other.types == ("null",)
    for i in range(100):
        assert found.param("t3", f"made up {i}") is other
    assert schemas[0].looks <= looks + 2


def test_parts_that_refer_to_each_other_are_read_once() -> None:
    definitions: dict[str, Any] = {"d0": {"type": "integer"}}
    for i in range(1, 41):
        part = Counting({"allOf": [{"$ref": f"#/$defs/d{i - 1}"}, {"$ref": f"#/$defs/d{i - 1}"}]})
        definitions[f"d{i}"] = part
    schema = {"properties": {"x": {"$ref": "#/$defs/d40"}}, "$ref": "#/$defs/d40", "$defs": definitions}
    param = ToolSet([{"name": "f", "parameters": schema}]).param("f", "x")
    assert param is not None
    assert param.types == ("integer",)
    assert max(part.looks for name, part in definitions.items() if name != "d0") < 40


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
    ],
)
def test_when_a_parameter_may_stream(key: str, types: tuple[str, ...], streams: bool, nullable: bool) -> None:
    param = ToolSet([CHAT]).param("draw", key)
    assert param is not None
    assert (param.types, param.streams, param.nullable) == (types, streams, nullable)
    assert ToolSet([CHAT]).param("draw", "wrong") is None
    assert ToolSet([CHAT]).param("draw", "free") is None


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


# -- Equal lists are read once ---------------------------------------------------------------------------------------


def test_equal_lists_are_read_once() -> None:
    first, second = (ToolSet([{"type": "function", "function": {"name": "once"}}]) for _ in range(2))
    assert first.get("once") is second.get("once")


def test_a_list_that_changes_later_changes_no_other_request() -> None:
    tool: dict[str, Any] = {"name": "later", "parameters": {"properties": {"a": {"type": "integer"}}}}
    before = ToolSet([tool])
    tool["parameters"]["properties"]["a"]["type"] = "string"
    after = ToolSet([tool])
    kinds = [tools.param("later", "a") for tools in (before, after)]
    assert [kind is not None and kind.types for kind in kinds] == [("integer",), ("string",)]


def test_what_is_kept_is_bounded() -> None:
    for i in range(200):
        ToolSet([{"name": f"tool{i}", "description": "x" * i * 1_000}])
    assert len(_SHARED) <= 64
    assert max(map(len, _SHARED)) <= 64 * 1024
