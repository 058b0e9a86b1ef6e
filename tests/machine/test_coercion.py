"""Conversion of tagged argument text by the schema of the tool (mlx-lm#1236 reports one that raises)."""

import builtins
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from untemplate._internal.jsontext.coercion import Param, coerce_to_schema_type
from untemplate._internal.jsontext.lexical import json_escape
from untemplate._internal.schemas.reading import extract_types_from_schema

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
