"""Schemas that describe very large grammars are refused after a bounded number of steps, with the tool and keyword.

Work is counted (steps, characters), never timed.
"""

from __future__ import annotations

from typing import Any

import pytest

from untemplate import OutputParser
from untemplate.errors import GrammarError
from untemplate.grammar import _gbnf as gbnf
from untemplate.grammar import _lark as lark
from untemplate.grammar import _limits as limits
from untemplate.grammar import _structural_tag as structural_tag
from untemplate.grammar._build import build
from untemplate.grammar._choose import read_choice, read_tools
from untemplate.grammar._limits import MAX_ALTERNATIVES, MAX_CHARACTERS, MAX_DEPTH, MAX_RULES, MAX_STEPS, check_size
from untemplate.grammar._options import Options
from untemplate.grammar._schema import frozen
from untemplate.grammar._shape import check_shape

FORMATS = ["hermes", "qwen3_coder", "pythonic", "gemma4", "gpt_oss"]
DIALECTS = ["gbnf", "lark", "structural_tag"]
STRING = {"type": "string"}
WRITERS: Any = {"gbnf": gbnf.write, "lark": lark.write, "structural_tag": structural_tag.write}


def tool(schema: Any) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "f", "strict": True, "parameters": schema}}]


def inside(schema: Any, **definitions: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": schema}, "required": ["x"], "$defs": definitions}


def chain(keyword: str, last: Any, levels: int = 30) -> dict[str, Any]:
    """Each definition refers to the one before it twice."""
    definitions = {"d0": last}
    for i in range(1, levels + 1):
        definitions[f"d{i}"] = {keyword: [{"$ref": f"#/$defs/d{i - 1}"}, {"$ref": f"#/$defs/d{i - 1}"}]}
    return inside({"$ref": f"#/$defs/d{levels}"}, **definitions)


def mixed(levels: int = 30) -> dict[str, Any]:
    """Three chains, each level of one made of the level before of the other two."""
    property_of = {"d": STRING, "e": {"minLength": 1}, "f": {"maxLength": 9}}
    definitions: dict[str, Any] = {f"{name}0": {"properties": {"p": part}} for name, part in property_of.items()}
    for i in range(1, levels + 1):
        for one, two, three in ("def", "efd", "fde"):
            both = [{"$ref": f"#/$defs/{name}{i - 1}"} for name in (two, three)]
            definitions[f"{one}{i}"] = {"allOf": both}
    return inside({"$ref": f"#/$defs/d{levels}"}, **definitions)


def nested(levels: int, keyword: str) -> dict[str, Any]:
    schema: Any = {"type": "integer"}
    for _ in range(levels):
        schema = {
            "items": {"type": "array", "items": schema},
            "properties": {"type": "object", "properties": {"k": schema}},
            "additionalProperties": {"type": "object", "additionalProperties": schema},
            "anyOf": {"anyOf": [schema, {"type": "null"}]},
            "allOf": {"allOf": [schema]},
        }[keyword]
    return inside(schema)


def steps(schema: Any, format_name: str, dialect: str) -> int:
    """Return the steps that the grammar of one strict tool takes."""
    fmt = OutputParser.named(format_name).format
    assert fmt is not None
    selection = read_choice("required", read_tools(tool(schema), True))
    check_shape(frozen(schema, "f"), "f")
    rules = build(fmt, Options(selection), {})
    WRITERS[dialect](rules)
    return int(rules.budget.steps)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize(
    "schema",
    [chain("allOf", {"type": "object", "properties": {"a": STRING}}), nested(40, "items")],
    ids=["allOf", "arrays"],
)
def test_equal_parts_are_read_once(schema: Any, format_name: str, dialect: str) -> None:
    assert steps(schema, format_name, dialect) < 10_000
    grammar = OutputParser.named(format_name).grammar(tool(schema), "required", dialect=dialect)
    assert len(grammar.text) < 50_000


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("format_name", FORMATS)
def test_parts_that_differ_are_bounded(format_name: str, dialect: str) -> None:
    """Merged parts share their parts, so the schema is small in memory and very large as text."""
    if format_name != "qwen3_coder":
        assert steps(mixed(), format_name, dialect) < 20_000
        return
    with pytest.raises(GrammarError) as caught:
        steps(mixed(), format_name, dialect)
    assert str(caught.value) == f"tool 'f': 'properties' {COMPLEX}"


KEYWORDS = ["items", "properties", "additionalProperties", "anyOf", "allOf"]


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("keyword", KEYWORDS)
def test_deep_schemas(keyword: str, format_name: str) -> None:
    """The depth is counted before a dialect is written: each dialect meets each keyword and each format."""
    dialect = DIALECTS[(KEYWORDS.index(keyword) + FORMATS.index(format_name)) % len(DIALECTS)]
    parser = OutputParser.named(format_name)
    assert parser.grammar(tool(nested(30, keyword)), "required", dialect=dialect).text
    for levels in (MAX_DEPTH + 2, 2_000):
        with pytest.raises(GrammarError) as caught:
            parser.grammar(tool(nested(levels * 2, keyword)), "required", dialect=dialect)
        assert str(caught.value) == f"tool 'f': nested deeper than {MAX_DEPTH} schemas"


def test_a_long_chain_of_references_needs_no_stack() -> None:
    definitions = {f"a{i}": {"type": "array", "items": {"$ref": f"#/$defs/a{i + 1}"}} for i in range(1000)}
    schema = inside({"$ref": "#/$defs/a0"}, **definitions, a1000={"type": "null"})
    for format_name in FORMATS:
        for dialect in DIALECTS:
            assert OutputParser.named(format_name).grammar(tool(schema), "required", dialect=dialect).text


def expanding() -> dict[str, Any]:
    definitions: dict[str, Any] = {"d0": STRING}
    for i in range(1, 31):
        reference = {"$ref": f"#/$defs/d{i - 1}", "minProperties": 0}
        definitions[f"d{i}"] = {"type": "object", "properties": {"a": reference, "b": reference}}
    return inside({"$ref": "#/$defs/d30"}, **definitions)


LARGE = f"makes the grammar too large (it may hold {MAX_ALTERNATIVES:,} tools, properties, values and alternatives)"
COMPLEX = f"makes the schema too complex (a grammar may take {MAX_STEPS:,} steps)"


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (inside({"enum": [f"value-{i}" for i in range(70_000)]}), f"tool 'f' at /x: 'enum' {LARGE}"),
        ({"type": "object", "properties": {f"p{i}": STRING for i in range(6_000)}}, f"tool 'f': 'properties' {LARGE}"),
        (inside({"anyOf": [{"maxLength": i} for i in range(6_000)]}), f"tool 'f' at /x: 'anyOf' {LARGE}"),
        (
            inside({"allOf": [{"properties": {f"p{i}": STRING}} for i in range(6_000)]}),
            f"tool 'f' at /x: 'allOf' {COMPLEX}",
        ),
        (
            inside({"allOf": [{"enum": list(range(9_000))}, {"enum": list(range(1, 9_001))}]}),
            f"tool 'f' at /x: 'enum' {COMPLEX}",
        ),
        (
            inside({"anyOf": [{"$ref": "#/$defs/c", "minLength": i} for i in range(9)]}, c={"const": "x" * 300_000}),
            f"tool 'f' at /x/anyOf/5: 'const' {COMPLEX}",
        ),
    ],
    ids=["enum", "properties", "anyOf", "allOf", "enums", "const"],
)
def test_what_is_too_large(schema: Any, problem: str) -> None:
    with pytest.raises(GrammarError) as caught:
        OutputParser.named("hermes").grammar(tool(schema), "required", dialect="gbnf")
    assert str(caught.value) == problem


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("format_name", FORMATS)
def test_references_that_expand_are_bounded(format_name: str, dialect: str) -> None:
    with pytest.raises(GrammarError, match=r"^tool 'f' at .*: '\w+' makes the (grammar too large|schema too complex) "):
        OutputParser.named(format_name).grammar(tool(expanding()), "required", dialect=dialect)


def test_many_tools() -> None:
    offered = [{"name": f"t{i}", "parameters": {}} for i in range(MAX_ALTERNATIVES + 1)]
    for format_name in ("hermes", "gpt_oss"):
        with pytest.raises(GrammarError) as caught:
            OutputParser.named(format_name).grammar(offered, "required")
        assert str(caught.value) == f"tool 't{MAX_ALTERNATIVES}': 'name' {LARGE}"


def test_size_of_the_text() -> None:
    with pytest.raises(GrammarError) as caught:
        OutputParser.named("hermes").grammar(tool(inside({"const": "x" * 600_000})), "required", dialect="lark")
    message = str(caught.value)
    assert message.startswith("the grammar has 600,")
    assert message.endswith(f" characters, more than {MAX_CHARACTERS:,}; the largest schema is that of tool 'f'")
    with pytest.raises(GrammarError) as caught:
        check_size("a\n" * (MAX_RULES + 1), {"f": "{}", "": '{"type": "object"}'})
    assert str(caught.value) == (
        f"the grammar has {MAX_RULES + 1:,} rules, more than {MAX_RULES:,}; "
        "the largest schema is that of response_format"
    )


def test_many_items_asked_for() -> None:
    schema: Any = {"type": "integer"}
    for _ in range(40):
        schema = {"type": "array", "prefixItems": [{"type": "null"}], "minItems": 1024, "items": schema}
    with pytest.raises(GrammarError, match=f"more than {MAX_CHARACTERS:,}; the largest schema is that of tool 'f'$"):
        OutputParser.named("hermes").grammar(tool(inside(schema)), "required", dialect="gbnf")


def test_keywords_next_to_all_of_are_kept() -> None:
    """A reference, or ``anyOf``, next to ``allOf``: all of them hold."""
    definitions = {"a": {"type": "object", "properties": {"a": {"const": "one"}}, "required": ["a"]}}
    schema = inside(
        {
            "$ref": "#/$defs/a",
            "allOf": [{"properties": {"b": {"const": "two"}}, "required": ["b"]}],
            "anyOf": [{"properties": {"c": {"const": "three"}}, "required": ["c"]}],
        },
        **definitions,
    )
    for dialect in ("gbnf", "lark", "structural_tag"):
        text = OutputParser.named("hermes").grammar(tool(schema), "required", dialect=dialect).text
        assert all(word in text for word in ("one", "two", "three")), dialect


def test_limits_are_documented() -> None:
    assert limits.MAX_STEPS == 100_000
    assert limits.MAX_DEPTH == 96
