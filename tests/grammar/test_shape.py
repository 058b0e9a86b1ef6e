"""Invalid schemas are refused with the tool, the place and the keyword; no input causes another error."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from untemplate import OutputParser
from untemplate.grammar import GrammarError

HERMES = OutputParser.named("hermes")
CODER = OutputParser.named("qwen3_coder")


def tool(parameters: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "strict": True, "parameters": parameters}}


def inside(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": schema}}


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": 5}, "tool 'f': 'type' is neither a JSON type nor a list of them"),
        (inside({"type": [1]}), "tool 'f' at /x: 'type' is neither a JSON type nor a list of them"),
        ({"type": "object", "properties": []}, "tool 'f': 'properties' is not an object"),
        ({"type": "object", "required": "x"}, "tool 'f': 'required' is not a list of names"),
        (inside({"enum": "ab"}), "tool 'f' at /x: 'enum' is not a list of values"),
        (inside({"enum": []}), "tool 'f' at /x: 'enum' is not a list of values"),
        (inside({"anyOf": {}}), "tool 'f' at /x: 'anyOf' is not a list of schemas"),
        (inside({"anyOf": [{}, 3]}), "tool 'f' at /x/anyOf/1: int is not a schema"),
        (inside({"type": "array", "items": "x"}), "tool 'f' at /x/items: str is not a schema"),
        ({"type": "object", "additionalProperties": 1}, "tool 'f' at /*: int is not a schema"),
        (inside({"type": "string", "pattern": 1}), "tool 'f' at /x: 'pattern' is not a string"),
        (inside({"type": "string", "minLength": -1}), "tool 'f' at /x: 'minLength' is not a count"),
        (inside({"type": "string", "maxLength": 1.5}), "tool 'f' at /x: 'maxLength' is not a count"),
        (inside({"type": "integer", "minimum": "1"}), "tool 'f' at /x: 'minimum' is not a number"),
        ({"$ref": 1}, "tool 'f': '$ref' is not a string"),
        ({"$ref": "#/$defs/a", "$defs": {"a": 1}}, "tool 'f' at /$defs/a: int is not a schema"),
    ],
)
@pytest.mark.parametrize("dialect", ["gbnf", "lark", "structural_tag"])
def test_what_is_no_schema(dialect: str, schema: Any, problem: str) -> None:
    with pytest.raises(GrammarError) as caught:
        HERMES.grammar([tool(schema)], "required", dialect=dialect)
    assert str(caught.value) == problem


def test_in_an_answer() -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": 1}}}
    with pytest.raises(GrammarError) as caught:
        HERMES.grammar(response_format=wanted)
    assert str(caught.value) == "response_format: 'type' is neither a JSON type nor a list of them"


def test_a_tool_that_is_not_strict_may_have_any() -> None:
    loose = {"type": "function", "function": {"name": "f", "parameters": {"type": 5, "required": 3}}}
    assert HERMES.grammar([loose], "required").text


WORDS = [
    *("type", "properties", "required", "additionalProperties", "items", "prefixItems", "enum", "const", "anyOf"),
    *("oneOf", "allOf", "$ref", "$defs", "pattern", "format", "minLength", "maxLength", "minItems", "maxItems"),
    *("minimum", "maximum", "nullable", "not", "exclusiveMinimum", "title", "default"),
]
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 2**70),
    st.floats(),
    st.text(max_size=3),
    st.sampled_from(["object", "string", "integer", "array", "null", "#", "#/$defs/a", "^a$", "(", "date"]),
)
ANY = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
        st.dictionaries(st.sampled_from(["x", "y", 'q"<', *WORDS[:3]]), inner, max_size=2),
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("parser", [HERMES, CODER], ids=["json", "tagged"])
@pytest.mark.parametrize("dialect", ["gbnf", "lark", "structural_tag"])
def test_any_value_whatever(parser: OutputParser, dialect: str) -> None:
    @settings(max_examples=150, suppress_health_check=list(HealthCheck), deadline=None)
    @given(st.dictionaries(st.sampled_from(WORDS), ANY, max_size=5))
    def law(schema: dict[str, Any]) -> None:
        problem = ""
        try:
            parser.grammar([tool(schema)], "required", dialect=dialect)
        except GrammarError as error:
            problem = str(error)
        assert not problem or problem.startswith("tool 'f'")

    law()
