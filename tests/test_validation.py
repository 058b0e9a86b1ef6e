"""Validation: the reported problems, their wording, and that no model output raises."""

import json
import sys
from types import SimpleNamespace
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from untemplate._internal.installed import install_command
from untemplate._internal.schemas import strict
from untemplate._internal.schemas.fits import fits_of
from untemplate._internal.schemas.strict import needs_full, takes_too_long
from untemplate._internal.schemas.validation import Problem, Validator, check_strict, failures, validate

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "limit": {"type": ["integer", "null"]},
    },
    "required": ["city"],
}


def tool(name: str, parameters: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def said(arguments: str, schema: Any, **options: Any) -> list[str]:
    """Return the problems as ``slug path: message``."""
    return [f"{p.slug} {p}" for p in validate(arguments, schema, **options)]


def of(schema: Any, value: str, **options: Any) -> list[str]:
    """Return the problems of one property."""
    return said(f'{{"v": {value}}}', {"properties": {"v": schema}, "$defs": DEFS}, **options)


DEFS: dict[str, Any] = {
    "Text": {"type": "string"},
    "Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "v": {"type": "integer"}}},
    "Loop": {"$ref": "#/$defs/Loop"},
    "Tree": {"anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "array", "items": {"$ref": "#/$defs/Tree"}}]},
}


class TestBuiltIn:
    def test_a_problem_is_a_value(self) -> None:
        assert validate('{"days": "3"}', WEATHER) == [
            Problem("$.city", "missing", "is required"),
            Problem("$.days", "type", 'expected integer, got string "3"'),
        ]

    @pytest.mark.parametrize(
        "arguments", ['{"city": "Paris"}', '{"city": "Paris", "days": 3, "unit": "celsius", "limit": null, "other": 1}']
    )
    def test_right(self, arguments: str) -> None:
        assert validate(arguments, WEATHER) == []

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            ("", "not_json $: not JSON: Expecting value at character 0"),
            ("ls -R\n", "not_json $: not JSON: Expecting value at character 0"),  # continue#10221
            ('{"a": 1}]', "not_json $: not JSON: Extra data at character 8"),  # ollama#17638
            ('{"a": NaN}', "not_json $: not JSON: NaN is no JSON value"),
            ('{"a": -Infinity}', "not_json $: not JSON: -Infinity is no JSON value"),
            ('{"a":' * 100_000, "not_json $: not JSON: nested too deeply to read"),
            ("[]", "not_an_object $: expected an object, got an array"),
            ('"{}"', 'not_an_object $: expected an object, got string "{}"'),  # vllm#54964
            ("null", "not_an_object $: expected an object, got null"),
            ("7", "not_an_object $: expected an object, got number 7"),
        ],
    )
    def test_no_object(self, arguments: str, problem: str) -> None:
        assert said(arguments, WEATHER) == [problem]
        assert said(arguments, None) == [problem]

    @pytest.mark.parametrize(
        ("schema", "value", "problem"),
        [
            ({"type": "integer"}, '"2026-01-15"', 'expected integer, got string "2026-01-15"'),  # mlx-lm#1236
            ({"type": "integer"}, "1.5", "expected integer, got number 1.5"),
            ({"type": "integer"}, "true", "expected integer, got true"),
            ({"type": "number"}, "false", "expected number, got false"),
            ({"type": "boolean"}, "1", "expected boolean, got number 1"),
            ({"type": "string"}, "[1]", "expected string, got an array"),
            ({"type": "array"}, "{}", "expected array, got an object"),
            ({"type": "null"}, "0", "expected null, got number 0"),
            ({"type": ["string", "null"]}, "1", "expected string or null, got number 1"),
            ({"type": "int"}, "null", "expected integer, got null"),
            ({"type": "string"}, "1" * 5000, "expected string, got number " + "1" * 40 + "…"),
            ({"type": "integer"}, json.dumps("x" * 99), 'expected integer, got string "' + "x" * 40 + '…"'),
            ({"type": "integer"}, r'"\ud800"', 'expected integer, got string "\\ud800"'),
            ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "1", "expected string or null, got number 1"),
            ({"$ref": "#/$defs/Text"}, "1", "expected string, got number 1"),  # vllm#46924
            ({"allOf": [{"$ref": "#/$defs/Text"}]}, "1", "expected string, got number 1"),
        ],
    )
    def test_type(self, schema: Any, value: str, problem: str) -> None:
        assert of(schema, value) == [f"type $.v: {problem}"]

    @pytest.mark.parametrize(
        ("schema", "value"),
        [
            ({"type": "integer"}, "3.0"),
            ({"type": "integer"}, "9" * 5000),
            ({"type": "number"}, "9" * 5000),
            ({"type": "number"}, "1e999"),
            ({"type": "number"}, "3"),
            ({"type": "string", "nullable": True}, "null"),
            ({"type": "whatever"}, "3"),
            ({"type": 7, "enum": "abc", "properties": [], "required": "v", "anyOf": 3, "allOf": {}}, "{}"),
            ({"$ref": "#/$defs/Nowhere"}, "3"),
            ({"$ref": "#/$defs/Loop"}, "3"),
            ({"$ref": "#/$defs/Tree"}, "3"),  # one of its alternatives is itself, and says no more
            (True, "3"),
            ("no schema", "3"),
            (None, "3"),
            ({"enum": [1, [1, {"a": None}]]}, '[1.0, {"a": null}]'),
            ({"const": 1}, "1.0"),
            ({"minimum": 5, "pattern": "x", "format": "date", "not": {}}, "3"),  # not covered
            ({"patternProperties": {"^x": {}}, "additionalProperties": False}, '{"xy": 1}'),
            ({"prefixItems": [{}], "items": {"type": "string"}}, '[1, "a"]'),
            ({"items": [{"type": "string"}]}, "[1]"),
            ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "3"),
        ],
    )
    def test_fits(self, schema: Any, value: str) -> None:
        assert of(schema, value) == []

    @pytest.mark.parametrize(
        ("schema", "value", "problem"),
        [
            ({"enum": ["c", "f"]}, '"k"', 'string "k" is not one of: "c", "f"'),
            ({"enum": [1]}, "true", "true is not one of: 1"),
            ({"enum": [0, None]}, "false", "false is not one of: 0, null"),
            ({"const": {"a": 1}}, "{}", 'an object is not one of: {"a": 1}'),
            ({"enum": list(range(20))}, "20", "number 20 is not one of: 0, 1, 2, 3, 4, 5, 6, 7, …"),
            ({"enum": [{1, 2}]}, "1", "number 1 is not one of: a set"),
        ],
    )
    def test_enum(self, schema: Any, value: str, problem: str) -> None:
        assert of(schema, value) == [f"enum $.v: {problem}"]

    @pytest.mark.parametrize(
        ("schema", "value", "problems"),
        [
            (
                {"items": {"required": ["a"], "properties": {"b": {"type": "null"}}}},
                '[{}, {"a": 1, "b": 2}]',
                ["missing $.v[0].a: is required", "type $.v[1].b: expected null, got number 2"],
            ),
            (
                {"properties": {"a": {}}, "additionalProperties": False},
                '{"a": 1, "b c": 2, "\\ud800": 3}',
                [
                    'schema $.v["b c"]: is not one of the properties',
                    'schema $.v["\\ud800"]: is not one of the properties',
                ],
            ),
            (
                {"additionalProperties": {"type": "string"}},
                '{"x": 1}',
                ["type $.v.x: expected string, got number 1"],
            ),
            ({"items": False}, "[1]", ["schema $.v[0]: nothing is allowed here"]),
            (
                {"$ref": "#/$defs/Node"},
                '{"next": {"next": {"v": "1"}}}',
                ['type $.v.next.next.v: expected integer, got string "1"'],
            ),
            ({"oneOf": [{"type": "number"}, {"type": "integer"}]}, "3",
             ["schema $.v: fits 2 of 2 alternatives, one is allowed"]),
            ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, "{}", ["schema $.v: fits none of 2 alternatives"]),
            # the alternative that was meant
            (
                {"anyOf": [{"type": "string"}, {"type": "object", "required": ["a"]}]},
                "{}",
                ["missing $.v.a: is required"],
            ),
        ],
    )  # fmt: skip
    def test_nested(self, schema: Any, value: str, problems: list[str]) -> None:
        assert of(schema, value) == problems

    def test_no_more_problems_than_anybody_reads(self) -> None:
        found = of({"items": {"type": "string"}}, json.dumps(list(range(1000))))
        assert len(found) == 64
        assert found[63] == "type $.v[63]: expected string, got number 63"

    def test_work_is_bounded(self) -> None:
        # Two alternatives that each go one level down: 2 ** 60 paths.
        two: dict[str, Any] = {"type": "array"}
        two["items"] = {"anyOf": [{"allOf": [two, {"type": "string"}]}, two, {"type": "string"}]}
        assert said('{"v": ' + "[" * 60 + "1" + "]" * 60 + "}", {"properties": {"v": two}}) == [
            "schema $: too large or too deep to be checked"
        ]

    def test_depth_is_bounded(self) -> None:
        deep = '{"next":' * 150 + "{}" + "}" * 150
        assert said(deep, {**DEFS["Node"], "$defs": DEFS}) == ["schema $: too large or too deep to be checked"]
        assert said(deep, {"type": "object"}) == []  # what no schema speaks of is not looked at


class TestValidator:
    def test_call(self) -> None:
        validator = Validator([tool("get_weather", WEATHER), tool("now", None)])
        assert validator.check("get_weather", '{"city": "Paris"}') == []
        assert validator.check("get_weather", "{}") == [Problem("$.city", "missing", "is required")]
        assert validator.check("now", "{}") == []
        assert validator.check("now", "") == [Problem("$", "not_json", "not JSON: Expecting value at character 0")]

    def test_unknown_tool(self) -> None:
        # sglang#40817: the client offers View, the model calls Read
        problem = [Problem("$", "unknown_tool", '"Read" is not one of the tools')]
        assert Validator([tool("View", None)]).check("Read", "{}") == problem
        assert Validator([]).check("Read", "not read") == problem
        assert Validator(None).check("Read", "{}") == []
        assert Validator(None).check("Read", "[]") == [
            Problem("$", "not_an_object", "expected an object, got an array")
        ]

    def test_shapes_of_tools(self) -> None:
        flat = {"type": "function", "name": "f", "parameters": {"required": ["x"]}}
        attributes = SimpleNamespace(function=SimpleNamespace(name="f", parameters={"required": ["x"]}))
        for tools in ([flat], [attributes], iter([flat]), ({"type": "web_search"}, flat), [flat, tool("f", None)]):
            assert Validator(tools).check("f", "{}") == [Problem("$.x", "missing", "is required")]

    @pytest.mark.parametrize(
        ("tools", "message"),
        [
            ("f", "tools: expected a list, got str"),
            ({"name": "f"}, "tools: expected a list, got dict"),
            ([{"type": "function"}], "tools[0].name: is required"),
            ([tool("f", [])], "tools[0].function.parameters: expected an object (a JSON schema), got list"),
        ],
    )
    def test_misuse(self, tools: Any, message: str) -> None:
        with pytest.raises(ValueError) as raised:  # noqa: PT011
            Validator(tools)
        assert str(raised.value) == message


class TestNeedsFull:
    @pytest.mark.parametrize(
        ("schema", "words"),
        [
            (WEATHER, []),
            (None, []),
            ([], []),
            ({"type": "string", "description": "x", "default": {"pattern": "x"}, "examples": [{"minimum": 1}]}, []),
            ({"pattern": "x", "minLength": 1}, ["pattern", "minLength"]),
            ({"properties": {"pattern": {"type": "string"}, "a": {"minimum": 1}}}, ["minimum"]),
            ({"items": {"anyOf": [{"format": "date"}, {"format": "int32"}]}}, ["format"]),
            ({"format": "int64"}, []),  # OpenAPI's, not JSON Schema's
            ({"if": {"pattern": "x"}, "then": {}, "else": {}}, ["if"]),
            ({"additionalProperties": {"not": {}}}, ["not"]),
            ({"$ref": "https://example.com/schema"}, ["$ref"]),
            ({"$ref": "#/$defs/a", "$defs": {"a": {"maxItems": 1}, "unused": {"pattern": "x"}}}, ["maxItems"]),
            ({"$ref": "#/$defs/nowhere"}, ["$ref"]),
            ({"items": [{"type": "string"}]}, ["items"]),
            ({"$ref": "#"}, []),
        ],
    )
    def test_words(self, schema: Any, words: list[str]) -> None:
        assert needs_full(schema) == words

    def test_deep_schemas_are_read(self) -> None:
        schema: dict[str, Any] = {"pattern": "x"}
        for _ in range(5000):
            schema = {"items": schema}
        assert needs_full(schema) == ["pattern"]


class TestFull:
    @pytest.mark.parametrize(
        ("schema", "value", "problem"),
        [
            ({"type": "string", "pattern": "^a+$"}, '"b"', 'schema $.v: "b" does not match "^a+$"'),
            ({"minimum": 3}, "2", "schema $.v: 2 is less than the minimum of 3"),
            ({"format": "date"}, '"x"', 'schema $.v: "x" is not a "date"'),
            ({"if": {"required": ["a"]}, "then": {"required": ["b"]}}, '{"a": 1}', "missing $.v.b: is required"),
            ({"contains": {"const": 1}}, "[2]", "schema $.v: None of [2] are valid under the given schema"),
            # Keywords that the built-in check covers are reported in its words.
            ({"type": "integer", "minimum": 3}, '"2"', 'type $.v: expected integer, got string "2"'),
        ],
    )
    def test_keywords(self, schema: Any, value: str, problem: str) -> None:
        assert of(schema, value, full=True) == [problem]

    def test_right(self) -> None:
        assert of({"pattern": "^(?!x)a"}, '"ab"', full=True) == []  # lookahead, as zod writes it

    @pytest.mark.parametrize("value", [r'"\ud800"', r'{"\ud800": "\udfff"}', "9" * 5000, "1e999", "[" * 90 + "]" * 90])
    def test_never_raises(self, value: str) -> None:
        found = of({"pattern": "^a", "maximum": 1e6, "maxProperties": 0, "maxItems": 0}, value, full=True)
        assert [line.split()[0] for line in found] == ["schema"]

    def test_messages_are_short(self) -> None:
        [problem] = validate(json.dumps({"v": "x" * 9999}), {"properties": {"v": {"pattern": "^a"}}}, full=True)
        assert len(problem.message) == 201

    def test_nothing_is_fetched(self) -> None:
        with pytest.raises(ValueError, match="references to other documents are not followed"):
            check_strict([tool("f", {"$ref": "http://127.0.0.1:9/schema"})])

    def test_broken_schemas_are_refused(self) -> None:
        with pytest.raises(ValueError) as raised:  # noqa: PT011
            check_strict([tool("f", {"properties": {"a": {"minimum": "3"}}})])
        assert str(raised.value) == 'tools[0].function.parameters: "3" is not of type "number"'

    def test_patterns_stop(self) -> None:
        [line] = of({"pattern": r"^(?=(a+)+$)(a+)+b\1$"}, json.dumps("a" * 5000 + "c"), full=True)
        assert line.startswith("schema $.v: ")

    @pytest.mark.parametrize("word", ["allOf", "anyOf", "oneOf", "not", "if"])
    def test_work_is_counted_before_the_library_does_it(self, word: str) -> None:
        definitions: dict[str, Any] = {"d0": {"minimum": 0}}
        for i in range(1, 31):
            one, two = ({"$ref": f"#/$defs/d{i - 1}"} for _ in range(2))
            part = {"if": one, "then": two} if word == "if" else {"not": one, "allOf": [two]}
            definitions[f"d{i}"] = part if word in ("if", "not") else {word: [one, two]}
        schema = {"properties": {"v": {"$ref": "#/$defs/d30"}}, "$defs": definitions}
        assert said('{"v": 1}', schema, full=True) == ["schema $: too large or too deep to be checked"]
        assert said("{}", schema, full=True) == []

    @pytest.mark.parametrize(
        ("schema", "value", "too_long"),
        [
            ({"items": {"pattern": "a"}}, ["x"] * 10_000, False),
            ({"items": {"enum": list(range(1_000))}}, list(range(1_000)), True),
            ({"contains": {"anyOf": [{"minimum": i} for i in range(1_000)]}}, [1] * 1_000, True),
            ({"patternProperties": {str(i): {} for i in range(1_000)}}, {str(i): i for i in range(1_000)}, True),
            ({"dependentSchemas": {"a": {"$ref": "#"}}}, {"a": 1}, True),
            ({"pattern": "(a|b)" * 1_000}, "c" * 1_000_000, True),
            ({"prefixItems": [{}] * 10_000}, [1] * 10_000, False),
            ({"properties": {"n": {"$ref": "#"}}, "minProperties": 1}, {"n": {"n": {"n": {}}}}, False),
        ],
    )
    def test_work(self, schema: Any, value: Any, too_long: bool) -> None:
        assert takes_too_long(value, schema) is too_long

    def test_patterns_are_linear_where_they_can_be(self) -> None:
        [line] = of({"pattern": "^(a+)+$"}, json.dumps("a" * 50_000 + "!"), full=True)
        assert line.startswith('schema $.v: "aaa')  # a match was looked for: no limit was reached
        assert line.endswith("…")

    def test_deep_schemas(self) -> None:
        schema: dict[str, Any] = {"minimum": 1}
        for _ in range(10_000):
            schema = {"items": schema}
        with pytest.raises(ValueError, match=r"^tool_schema: "):
            validate("{}", schema, full=True)
        assert validate("{}", schema) == []

    @pytest.mark.parametrize(("value", "fits"), [("1.0", True), ("1.5", False), ("1e400", False), ("9" * 5_000, True)])
    def test_numbers(self, value: str, fits: bool) -> None:
        assert (of({"type": "integer", "minimum": 0}, value, full=True) == []) is fits

    def test_strict_validator(self) -> None:
        validator = Validator([tool("f", {"properties": {"n": {"maximum": 3}}})], strict=True)
        assert validator.check("f", '{"n": 3}') == []
        assert validator.check("f", '{"n": 4}') == [Problem("$.n", "schema", "4 is greater than the maximum of 3")]
        assert Validator([tool("f", {"properties": {"n": {"maximum": 3}}})]).check("f", '{"n": 4}') == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
keywords = st.sampled_from(
    ["type", "properties", "items", "required", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "nullable",
     "additionalProperties", "patternProperties", "prefixItems", "$defs", "pattern", "format"]
)  # fmt: skip
schemas = st.recursive(
    json_values | st.sampled_from(["string", "integer", "null", "#", "#/$defs/a", "#/properties/a"]),
    lambda inner: st.dictionaries(keywords | st.sampled_from(["a", "b"]), inner, max_size=4) | st.lists(inner),
    max_leaves=12,
)


# Schemas of what the built-in check knows.
kinds = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
keys = st.sampled_from(["", "0", "a"])
covered = st.recursive(
    st.builds(lambda kind: {"type": kind}, kinds | st.lists(kinds, min_size=1, unique=True))
    | st.builds(lambda option: {"const": option}, json_values)
    | st.builds(lambda options: {"enum": options}, st.lists(json_values, min_size=1, max_size=1)),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "items": inner,
            "properties": st.dictionaries(keys, inner, max_size=2),
            "required": st.lists(keys, unique=True, max_size=1),
            "additionalProperties": st.booleans() | inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
        },
    ),
    max_leaves=6,
)


class TestProperties:
    @settings(deadline=None)
    @given(st.text() | json_values.map(json.dumps), schemas)
    def test_never_raises(self, arguments: str, schema: Any) -> None:
        for problem in validate(arguments, schema):
            str(problem).encode()
        needs_full(schema)

    @settings(deadline=None)
    @given(json_values)
    def test_a_value_fits_its_own_constant(self, value: Any) -> None:
        text = json.dumps({"v": value})
        assert validate(text, {"properties": {"v": {"const": value}}}) == []
        assert validate(text, {"properties": {"v": {"enum": [value]}}, "required": ["v"]}) == []

    @settings(deadline=None)
    @given(json_values, covered)
    def test_agrees_with_the_library(self, value: Any, schema: dict[str, Any]) -> None:
        assert needs_full(schema) == []
        text = json.dumps({"v": value})
        valid = jsonschema_rs.validator_for({"properties": {"v": schema}}).is_valid(json.loads(text))
        assert (validate(text, {"properties": {"v": schema}}) == []) == valid


# -- the fast check -------------------------------------------------------------------------------------------------

_SCHEMAS = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(
                ["string", "integer", "number", "boolean", "null", "array", "str", "what", ["null"]]
            ),
            "enum": st.lists(st.sampled_from(["a", "b", 1, None]), max_size=2),
            "nullable": st.booleans(),
            "required": st.just(["a"]),
            "items": st.sampled_from([{"type": "string"}, {"enum": ["a", None]}, {"$ref": "#/$defs/r"}, False, []]),
            "$ref": st.sampled_from(["#", "#/$defs/r", "#/nowhere"]),
            "anyOf": st.just([{"type": "string"}, {"type": "integer"}]),
            "const": st.just("a"),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {"type": st.sampled_from(["object", "object", "dict"])},
        optional={
            "properties": st.dictionaries(st.sampled_from("abc"), inner),
            "required": st.lists(st.sampled_from(["a", "b", 1]), max_size=2),
            "additionalProperties": st.one_of(st.booleans(), inner),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
        },
    ),
    max_leaves=6,
)
_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(0, 3), st.sampled_from(["a", "b", "x", 1.5, 2.0])),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("abcd"), inner)),
    max_leaves=6,
)


@settings(max_examples=400)
@given(_SCHEMAS, _VALUES)
def test_what_fits_at_first_sight_has_no_failures(schema: Any, value: Any):
    schema["$defs"] = {"r": {"type": ["array", "null"], "items": {"$ref": "#/$defs/r"}}}
    check = fits_of(schema)
    if check is not None and check(value):
        assert failures(value, schema) == []


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        ({"type": "object", "properties": {"a": {"type": "str"}}, "required": ["a"]}, {"a": "x", "b": 1}, True),
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, {"a": True}, False),
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, {"a": 3.0}, False),
        ({"type": "object", "additionalProperties": False}, {"a": 1}, False),
        ({"type": "object", "properties": {"a": {"type": "string", "enum": ["x"]}}}, {"a": []}, False),
        ({"required": []}, {str(i): i for i in range(1_001)}, False),
        ({"type": ["string", "null"]}, None, True),
        ({"type": "array", "items": {"type": "number"}}, [1, 2.5], True),
        ({"type": "array", "items": {"type": "number"}}, [1, True], False),
        ({"items": {"items": {"enum": ["a", None]}}}, [["a", None], "x"], True),
        ({"items": {"items": {"enum": ["a", None]}}}, [["b"]], False),
        ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, ["x"], True),
        ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, [1], False),
        ({"properties": {"a": {"$ref": "#/$defs/p"}}, "$defs": {"p": {"required": ["x"]}}}, {"a": {"x": 1}}, True),
        ({"properties": {"a": {"$ref": "#/$defs/p"}}, "$defs": {"p": {"required": ["x"]}}}, {"a": {}}, False),
        ({"type": "string", "nullable": True}, None, True),
        (None, {}, True),
    ],
)
def test_the_fast_check(schema: Any, value: Any, fits: bool):
    check = fits_of(schema)
    assert check is not None
    assert check(value) is fits


@pytest.mark.parametrize(
    "part",
    [
        {"const": 1}, {"allOf": []}, {"oneOf": []}, {"prefixItems": []}, {"patternProperties": {}}, {"anyOf": []},
        {"items": []}, {"enum": [1]}, {"type": "what"}, {"$ref": "#", "type": "string"}, {"$ref": "#"},
        {"anyOf": [{"type": "string"}] * 9},
    ],
)  # fmt: skip
def test_the_fast_check_leaves_other_schemas_to_the_full_one(part: dict[str, Any]):
    assert fits_of({"type": "object", "properties": {"a": part}}) is None


def test_other_keywords_need_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    assert strict.compiled({"type": "object", "required": ["x"]}, "tools[0]") is None
    command = install_command("untemplate", "validate")
    with pytest.raises(ModuleNotFoundError) as caught:
        strict.compiled({"properties": {"x": {"pattern": "^a"}, "y": {"minimum": 1}}}, "tools[0]")
    assert str(caught.value) == f"tools[0]: checking pattern, minimum needs jsonschema-rs: {command}"
