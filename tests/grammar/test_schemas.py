"""Every rule of a schema is in the grammars of every dialect, or a note reports that it is not."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from untemplate import OutputParser
from untemplate.formats import named
from untemplate.grammar import GrammarError, make_grammar

from .cells import HUGE
from .engines import LarkEngine, StructuralTagEngine, Vocabulary

jsonschema_rs = pytest.importorskip("jsonschema_rs")

DEFS = {"$defs": {"P": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}}}
SCHEMAS: dict[str, Any] = {
    "string": {"type": "string"},
    "minLength": {"type": "string", "minLength": 2, "maxLength": 4},
    "pattern": {"type": "string", "pattern": "^[a-c]{2,3}$"},
    "pattern, loose": {"type": "string", "pattern": "[0-9]"},
    "pattern, any": {"type": "string", "pattern": "^a.*[^b]$"},
    "pattern, hard": {"type": "string", "pattern": "^(?=a).*$"},
    "format": {"type": "string", "format": "date"},
    "format, unknown": {"type": "string", "format": "colour"},
    "enum": {"enum": ["a", 'b"\n\\', "</tool_call>", 3, None, True, {"k": [1]}]},
    "enum of a type": {"type": "string", "enum": ["a", "b"]},
    "const": {"const": "x y"},
    "integer": {"type": "integer"},
    "minimum": {"type": "integer", "minimum": 0},
    "range": {"type": "integer", "minimum": 3, "maximum": 17},
    "exclusive": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "multipleOf": {"type": "integer", "multipleOf": 5},
    "boolean": {"type": "boolean"},
    "null": {"type": "null"},
    "types": {"type": ["string", "null", "integer"]},
    "nullable": {"type": "string", "nullable": True},
    "anyOf": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "boolean"}}]},
    "anyOf and more": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "oneOf": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
    "allOf": {"allOf": [{"type": "string"}, {"minLength": 1}, {"maxLength": 3}]},
    "allOf of objects": {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"properties": {"b": {"type": "integer"}}, "required": ["b"]},
        ]
    },
    "array": {"type": "array", "items": {"type": "integer"}},
    "minItems": {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 3},
    "prefixItems": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False},
    "uniqueItems": {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True},
    "contains": {"type": "array", "contains": {"const": 7}},
    "object": {"type": "object"},
    "properties": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}},
    "additional": {"type": "object", "additionalProperties": {"type": "integer"}},
    "additional and more": {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": {"type": "boolean"},
    },
    "patternProperties": {"type": "object", "patternProperties": {"^s": {"type": "string"}}},
    "minProperties": {"type": "object", "minProperties": 2},
    "no type": {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
    "anything": {},
    "not": {"type": "string", "not": {"const": "a"}},
    "if": {"type": "object", "if": {"required": ["a"]}, "then": {"required": ["b"]}},
    "$ref": {"$ref": "#/$defs/P"},
    "$ref and more": {"$ref": "#/$defs/P", "description": "a point", "required": ["y"], "properties": {"y": True}},
    "recursive": {"$ref": "#/$defs/N"},
}
RECURSIVE = {"N": {"type": "object", "properties": {"v": {"type": "integer"}, "n": {"$ref": "#/$defs/N"}}}}


def tool(schema: Any) -> list[dict[str, Any]]:
    parameters = {
        "type": "object",
        "$defs": {**DEFS["$defs"], **RECURSIVE},
        "properties": {"v": schema},
        "required": ["v"],
    }
    return [{"type": "function", "function": {"name": "f", "parameters": parameters}}]


def drawn(format_name: str, dialect: str, tools: Any, count: int) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
    """Return (text, arguments) of some outputs, and the grammar's notes."""
    fmt = named(format_name)
    grammar = make_grammar(fmt, tools, "required", parallel_tool_calls=False, strict=True, dialect=dialect)
    vocabulary = Vocabulary()
    engine: Any
    if dialect == "lark":
        pytest.importorskip("llguidance")
        engine = LarkEngine(grammar, vocabulary)
    else:
        pytest.importorskip("xgrammar")
        engine = StructuralTagEngine(grammar, vocabulary, ebnf=dialect == "gbnf")
    rng = random.Random(5)
    parser = OutputParser(format=fmt)
    found: list[tuple[str, str]] = []
    for _ in range(count * 4):
        ids = engine.sample(rng, 300)
        # xgrammar takes a lone surrogate for one character; as text it becomes three invalid ones.
        if ids is None or HUGE.search(vocabulary.text(ids)) or "\ufffd" in vocabulary.text(ids):
            continue
        text = vocabulary.text(ids)
        parsed = parser.parse(text, tools=tools)
        assert {d.code for d in parsed.diagnostics} <= {"foreign_marker"}, (text, parsed.diagnostics)
        assert len(parsed.tool_calls) == 1, text
        found.append((text, parsed.tool_calls[0].function.arguments))
        if len(found) >= count:
            break
    return found, grammar.notes


@pytest.mark.exhaustive
@pytest.mark.parametrize("dialect", ["lark", "structural_tag", "gbnf"])
@pytest.mark.parametrize("format_name", ["hermes", "qwen3_coder", "pythonic", "deepseek_v32", "gemma4"])
@pytest.mark.parametrize("name", SCHEMAS)
def test_arguments_are_what_the_schema_says_or_a_note_says_otherwise(name: str, format_name: str, dialect: str) -> None:
    tools = tool(SCHEMAS[name])
    samples, notes = drawn(format_name, dialect, tools, 12)
    if name == "nullable":
        # OpenAPI's keyword, which JSON Schema does not know; the parser does.
        tools = tool({"type": ["string", "null"]})
    validator = jsonschema_rs.validator_for(tools[0]["function"]["parameters"], validate_formats=True)
    assert samples
    for text, arguments in samples:
        for error in validator.iter_errors(json.loads(arguments)):
            said = [note for note in notes if any(f"'{word}" in note for word in keywords(error))]
            assert said, (text, error.message, keywords(error), notes)
            assert all(note.startswith("tool 'f': ") for note in said)


def keywords(error: Any) -> set[str]:
    """Return the keywords that a value violates."""
    words = {str(part) for part in error.schema_path}
    return words & {"if", "then", "not", "oneOf"} or {str(error.schema_path[-1])}


NOTES = {
    "minLength": {"structural_tag": ("'maxLength' is not enforced", "'minLength' is not enforced")},
    "pattern": {"gbnf": ("'pattern' is not enforced",)},
    "pattern, loose": {
        "gbnf": ("'pattern' is not enforced",),
        "structural_tag": ("'pattern' '[0-9]' is matched from end to end",),
    },
    "format": {"gbnf": ("'format' is not enforced",), "structural_tag": ("'format' is not enforced",)},
    "range": {"gbnf": ("'maximum' is not enforced", "'minimum' is not enforced")},
    "multipleOf": dict.fromkeys(("gbnf", "lark", "structural_tag"), ("'multipleOf' is not enforced",)),
    "uniqueItems": dict.fromkeys(("gbnf", "lark", "structural_tag"), ("'uniqueItems' is not enforced",)),
    "oneOf": dict.fromkeys(
        ("gbnf", "lark", "structural_tag"), ("'oneOf' is not enforced (more than one of its schemas may fit)",)
    ),
    "not": dict.fromkeys(("gbnf", "lark", "structural_tag"), ("'not' is not enforced",)),
    "integer": {},
    "enum": {},
    "properties": dict.fromkeys(
        ("gbnf", "lark", "structural_tag"), ("'additionalProperties' is taken to be false where it is not given",)
    ),
}


@pytest.mark.parametrize("dialect", ["gbnf", "lark", "structural_tag"])
@pytest.mark.parametrize("name", NOTES)
def test_notes_name_the_tool_and_the_keyword(name: str, dialect: str) -> None:
    tools = tool(SCHEMAS[name])
    parameters = tools[0]["function"]["parameters"]
    del parameters["$defs"]
    parameters["additionalProperties"] = False
    notes = make_grammar(named("hermes"), tools, "required", strict=True, dialect=dialect).notes
    assert sorted(notes) == [f"tool 'f': {note}" for note in NOTES[name].get(dialect, ())]


def test_what_no_grammar_can_say_is_an_error_that_names_tool_and_keyword() -> None:
    for schema, message in (
        ({"$ref": "#/$defs/missing"}, "tool 'f' at /v: '$ref' '#/$defs/missing' points at nothing in its schema"),
        (
            {"$ref": "https://example.com/schema.json"},
            "tool 'f' at /v: '$ref' 'https://example.com/schema.json' points at nothing in its schema",
        ),
        ({"type": "banana"}, "tool 'f' at /v: 'type' 'banana' is not a JSON type"),
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "tool 'f' at /v: 'allOf' allows no type"),
    ):
        for dialect in ("gbnf", "lark", "structural_tag"):
            with pytest.raises(GrammarError) as caught:
                make_grammar(named("hermes"), tool(schema), "required", strict=True, dialect=dialect)
            assert str(caught.value) == message


def test_a_response_format_is_named_where_a_tool_would_be() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "array", "uniqueItems": True}}, "required": ["n"]}
    grammar = make_grammar(named("hermes"), None, response_format=schema)
    assert grammar.notes == (
        "response_format: 'additionalProperties' is taken to be false where it is not given",
        "response_format: 'uniqueItems' is not enforced",
    )
    with pytest.raises(GrammarError) as caught:
        make_grammar(named("hermes"), None, response_format={"type": "banana"})
    assert str(caught.value) == "response_format: 'type' 'banana' is not a JSON type"
    with pytest.raises(GrammarError) as caught:
        make_grammar(named("hermes"), None, response_format={"type": "object", "properties": {"n": {"type": "banana"}}})
    assert str(caught.value) == "response_format at /n: 'type' 'banana' is not a JSON type"
