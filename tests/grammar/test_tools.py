"""Law 9 with other tools than the matrix has, and with every ``tool_choice`` and ``response_format``, on the engines.

Invalid arguments are allowed only if a note names the keyword that they violate.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import pytest

from untemplate import OutputParser
from untemplate._internal.render import render
from untemplate.format import Format
from untemplate.formats import named
from untemplate.grammar import Grammar, GrammarError, make_grammar

from .cells import HINTS, TOOLS, formats
from .measure import DIALECTS, samples, vocabulary_of
from .test_soundness import installed, verdicts


def tool(name: str = "f", **parameters: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", **parameters}}}


NODE = {
    "type": "object",
    "properties": {"v": {"type": "integer"}, "n": {"$ref": "#/$defs/N"}},
    "required": ["v"],
    "additionalProperties": False,
}
LIST = {"type": "array", "items": {"type": "object", "properties": {"s": {"type": "string"}}, "required": ["s"]}}
OFFERED: dict[str, list[dict[str, Any]]] = {
    "names that begin with names": [
        tool("get", properties={"a": {"type": "string"}, "ab": {"type": "string"}, "abc": {"type": "integer"}}),
        tool("get_a", properties={"a": {"type": "boolean"}}, required=["a"]),
        tool("g", properties={}),
    ],
    "enums": [
        tool(
            properties={
                "e": {"enum": ["<tool_call>", "a\nb", " x ", "", "null", "3", '"q"', "<|", "it's", "]"]},
                "m": {"enum": ["1", 1, None, True, "true"]},
                "c": {"const": "only"},
            },
            required=["e", "m", "c"],
        )
    ],
    "nested": [
        tool(properties={"o": {"type": "object", "properties": {"l": LIST}, "required": ["l"]}}, required=["o"])
    ],
    "unions": [
        tool(
            properties={
                "u": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                "v": {"type": ["boolean", "string"]},
                "w": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
                "x": {},
            },
            required=["u", "v", "w"],
        )
    ],
    "more properties": [
        tool(properties={"a": {"type": "string"}}, required=["a"], additionalProperties=True),
        tool("h", additionalProperties={"type": "integer"}),
    ],
    "bounds": [
        tool(
            properties={
                "p": {"type": "string", "pattern": "^[a-z]{2,4}$"},
                "m": {"type": "string", "minLength": 1, "maxLength": 3},
                "i": {"type": "integer", "minimum": 0, "maximum": 9},
            },
            required=["p", "m", "i"],
        )
    ],
    "recursion": [tool(properties={"n": {"$ref": "#/$defs/N"}}, required=["n"], **{"$defs": {"N": NODE}})],
}


def drawn(fmt: Format, grammar: Grammar, count: int) -> list[str]:
    found = list(islice(samples(grammar, vocabulary_of(fmt, False), count, 3), count))
    texts: list[str] = []
    for sample in found:
        assert not isinstance(sample, str), sample
        texts.append(sample[0])
    return texts


def sound(fmt: Format, tools: list[dict[str, Any]], dialect: str, count: int) -> None:
    import jsonschema_rs

    grammar = make_grammar(fmt, tools, "required", dialect=dialect, strict=True)
    schemas = {t["function"]["name"]: jsonschema_rs.validator_for(t["function"]["parameters"]) for t in tools}
    parser = OutputParser(format=fmt)
    texts = drawn(fmt, grammar, count)
    if not texts:  # by chance, call followed call
        grammar = make_grammar(fmt, tools, "required", dialect=dialect, strict=True, parallel_tool_calls=False)
        texts = drawn(fmt, grammar, count)
    assert texts, "no output came to an end"
    for text in texts:
        parsed = parser.parse(text, tools=tools)
        assert {d.code for d in parsed.diagnostics} <= HINTS, (text, parsed.diagnostics)
        assert parsed.tool_calls, text
        for call in parsed.tool_calls:
            name = call.function.name
            for error in schemas[name].iter_errors(json.loads(call.function.arguments)):
                word = str(error.schema_path[-1])
                said = any(note.startswith(f"tool {name!r}: '{word}'") for note in grammar.notes)
                assert said, (text, error.message, grammar.notes)


@pytest.mark.parametrize("dialect", ["lark", "structural_tag"])
@pytest.mark.parametrize("name", ["hermes", "glm45", "pythonic"])
@pytest.mark.parametrize("offered", OFFERED)
def test_other_tools_are_sound_too(offered: str, name: str, dialect: str) -> None:
    installed(dialect)
    sound(named(name), OFFERED[offered], dialect, 3)


@pytest.mark.exhaustive
@pytest.mark.parametrize("offered", OFFERED)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", formats())
def test_other_tools_are_sound_in_every_format(offered: str, name: str, dialect: str) -> None:
    installed(dialect)
    sound(formats()[name], OFFERED[offered], dialect, 8)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_enum_that_would_close_its_tag_is_refused(dialect: str) -> None:
    tools = [tool(properties={"e": {"enum": ["a", "</parameter>"]}})]
    with pytest.raises(GrammarError) as caught:
        make_grammar(named("minimax_m2"), tools, "required", strict=True, dialect=dialect)
    assert str(caught.value) == "tool 'f': 'enum' holds '</parameter>', which closes the value"


def written(fmt: Format, *names: str) -> str:
    calls = [{"type": "function", "function": {"name": name, "arguments": {}}} for name in names]
    return render(fmt, {"tool_calls": calls})


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "kimi_k2", "gpt-oss"])
def test_a_choice_allows_what_it_names(name: str, dialect: str) -> None:
    installed(dialect)
    fmt = named(name)
    texts = [written(fmt, "ping"), written(fmt, "now"), written(fmt, "ping", "ping")]
    function = {"type": "function", "function": {"name": "ping"}}
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [function]}}
    for choice, expected in (
        ("required", [True, True, True]),
        (function, [True, False, True]),
        (allowed, [True, False, True]),
    ):
        assert verdicts(make_grammar(fmt, TOOLS, choice, dialect=dialect), texts) == expected
    once = make_grammar(fmt, TOOLS, allowed, dialect=dialect, parallel_tool_calls=False)
    assert verdicts(once, texts) == [True, False, False]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("mode", ["auto", "required"])
def test_allowed_tools_with_a_mode_may_or_must_call(mode: str, dialect: str) -> None:
    installed(dialect)
    fmt = named("hermes", reasoning="qwen3")
    function = {"type": "function", "function": {"name": "ping"}}
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [function]}}
    # Reasoning opened by the prompt: no dialect is lazy there.
    grammar = make_grammar(fmt, TOOLS, choice, dialect=dialect, reasoning="open")
    assert not grammar.lazy
    texts = [f"Hm.\n</think>\n\n{text}" for text in (written(fmt, "ping"), written(fmt, "now"), "Hello!")]
    assert verdicts(grammar, texts) == [True, False, mode == "auto"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_reasoning_that_the_model_opens_may_stand_before_a_call(dialect: str) -> None:
    installed(dialect)
    fmt = named("hermes", reasoning="qwen3")
    call = written(fmt, "ping")
    texts = [f"<think>\nHm.\n</think>\n\n{call}", call, f"<think>\nHm.\n{call}"]
    for reasoning, expected in (("closed", [True, True, False]), ("off", [False, True, False])):
        grammar = make_grammar(fmt, TOOLS, "required", dialect=dialect, reasoning=reasoning)
        assert verdicts(grammar, texts) == expected


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_json_object_may_be_asked_for_with_and_without_tools(dialect: str) -> None:
    installed(dialect)
    fmt = named("hermes", reasoning="qwen3")
    values = ('{"any": [1, "thing"]}', "{}", "[1]", "One.", written(fmt, "ping"))
    texts = [f"Hm.\n</think>\n\n{value}" for value in values]
    for tools in (None, TOOLS):
        grammar = make_grammar(fmt, tools, dialect=dialect, reasoning="open", response_format={"type": "json_object"})
        assert not grammar.lazy
        assert verdicts(grammar, texts) == [True, True, False, False, tools is not None]
