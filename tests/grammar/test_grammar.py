"""Grammars as texts: choices, names, notes, triggers, caching. No engine is needed here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from untemplate import OutputParser
from untemplate.format import Format, Marker
from untemplate.formats import named
from untemplate.grammar import GrammarError, Trigger, make_grammar
from untemplate.grammar._automaton import automaton
from untemplate.grammar._rules import EMPTY, Scan

from ..work import lines_run
from .cells import TOOLS, formats
from .engines import Vocabulary

DIALECTS = ("gbnf", "lark", "structural_tag")
dialects = pytest.mark.parametrize("dialect", DIALECTS)


def tool(name: str = "f", **parameters: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


@dialects
@pytest.mark.parametrize("name", formats())
@pytest.mark.parametrize("choice", ["auto", "required", "none"])
def test_every_format_has_a_grammar_in_every_dialect(name: str, choice: str, dialect: str) -> None:
    for strict in (True, False):
        grammar = make_grammar(formats()[name], TOOLS, choice, dialect=dialect, strict=strict)
        assert grammar.text
        assert grammar.dialect == dialect


def test_a_grammar_preserves_the_tokens_of_its_own_vocabulary() -> None:
    fmt = named("hermes")
    assert make_grammar(fmt, TOOLS).preserved_tokens == tuple(fmt.special_tokens)
    assert make_grammar(fmt, TOOLS, tokens={}).preserved_tokens == ()


def test_a_parser_gives_its_formats_grammar() -> None:
    parser = OutputParser.named("hermes")
    assert parser.grammar(TOOLS) == make_grammar(parser.format, TOOLS)
    assert parser.grammar(TOOLS).triggers == (Trigger("word", "<tool_call>"),)


def test_special_tokens_are_named_by_id_where_the_vocabulary_is_known() -> None:
    vocabulary = Vocabulary(frozenset({"<tool_call>", "</tool_call>"}))
    parser = OutputParser(vocabulary, tool_parser_name="hermes")
    begin = vocabulary.ids["<tool_call>"]
    gbnf = parser.grammar(TOOLS, dialect="gbnf")
    assert gbnf.triggers == (Trigger("token", "<tool_call>", begin),)
    assert gbnf.text.startswith(f"root ::= <[{begin}]>")
    assert f"<[{begin}]>" in parser.grammar(TOOLS, dialect="lark").text
    assert {"type": "token", "token": begin} in _all(parser.grammar(TOOLS, dialect="structural_tag").json)


def test_a_marker_of_several_tokens_is_a_word_to_wait_for() -> None:
    fmt = named("deepseek_v32")
    vocabulary = Vocabulary(frozenset(fmt.special_tokens), fmt)
    grammar = make_grammar(fmt, TOOLS, dialect="gbnf", reasoning="closed", tokens=vocabulary.tokens())
    token = vocabulary.ids["｜DSML｜"]
    assert grammar.triggers == (Trigger("word", "<｜DSML｜function_calls>"),)
    assert grammar.text.startswith(f'root ::= "<" <[{token}]> "function_calls>\\n<" <[{token}]> "invoke name=')


def test_as_much_white_space_as_the_renderer_writes_may_stand_before_the_calls() -> None:
    """Templates that indent their lines write it: DeepSeek V3.1's in vLLM has ten blanks before the section."""
    fmt = named("deepseek_v31")
    (way,) = fmt.tools
    indented = fmt.extend(tools=(replace(way, section_open=Marker(" " * 10 + "<｜tool▁calls▁begin｜>")),))
    lines = make_grammar(indented, [tool()], "required", dialect="gbnf", reasoning="off").text.splitlines()
    assert lines[1] == r'answer ::= [ \t\r\n]{0,10} "<｜tool▁calls▁begin｜>" calls'


def test_a_structural_tag_that_needs_ebnf_is_text() -> None:
    fmt = named("gemma4")
    tokens = Vocabulary(frozenset(fmt.special_tokens), fmt).tokens()
    known = {d: make_grammar(fmt, TOOLS, "required", dialect=d, tokens=tokens) for d in DIALECTS}
    assert {d: g.by_id for d, g in known.items()} == {"gbnf": True, "lark": True, "structural_tag": False}
    spelled = known["structural_tag"].text
    assert '"token"' not in spelled
    assert "<|tool_call>call:" in spelled


def test_requests_to_servers() -> None:
    vocabulary = Vocabulary(frozenset({"<tool_call>", "</tool_call>"}))
    parser = OutputParser(vocabulary, tool_parser_name="hermes")
    lazy = parser.grammar(TOOLS)
    begin = vocabulary.ids["<tool_call>"]
    assert lazy.request("llama.cpp") == {
        "grammar": lazy.text,
        "preserved_tokens": list(lazy.preserved_tokens),
        "grammar_lazy": True,
        "grammar_triggers": [{"type": 0, "value": "<tool_call>", "token": begin}],
    }
    whole = parser.grammar(TOOLS, "required")
    assert whole.request("llama.cpp") == {"grammar": whole.text, "preserved_tokens": list(whole.preserved_tokens)}
    assert {"<tool_call>", "</tool_call>"} < set(whole.preserved_tokens)
    bare = OutputParser.named("llama3_json").grammar(TOOLS)
    assert bare.request("llama.cpp")["grammar_triggers"] == [{"type": 3, "value": bare.triggers[0].value}]
    tag = parser.grammar(TOOLS, dialect="structural_tag")
    assert tag.request("vllm") == {"structured_outputs": {"structural_tag": tag.text}}
    assert tag.request("sglang") == {"response_format": tag.json}
    lark = parser.grammar(TOOLS, dialect="lark")
    assert lark.request("vllm") == {"structured_outputs": {"grammar": lark.text}}
    assert lark.request("sglang") == {"ebnf": lark.text}
    for grammar, server, message in (
        (tag, "llama.cpp", "llama.cpp does not take 'structural_tag', but: 'gbnf', 'lark'"),
        (lazy, "vllm", "vllm does not take 'gbnf', but: 'structural_tag', 'lark'"),
        (lark, "ollama", "server 'ollama' is not one of: 'llama.cpp', 'vllm', 'sglang'"),
    ):
        with pytest.raises(GrammarError) as caught:
            grammar.request(server)
        assert str(caught.value) == message


def _all(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value, *(x for v in value.values() for x in _all(v))]
    return [x for v in value for x in _all(v)] if isinstance(value, list) else []


@pytest.mark.parametrize(
    ("name", "kind", "value"),
    [
        ("qwen3_coder", "word", "<tool_call>"),
        ("kimi_k2", "word", "<|tool_calls_section_begin|>"),
        ("llama3_json", "pattern", r'^\s*(\{\s*"name"[\s\S]*)'),
        ("pythonic", "pattern", r"^\s*(\[\s*(?:get_weather|get_weather_map|ping|now)[\s\S]*)"),
    ],
)
def test_lazy_grammars_switch_on_where_calls_begin(name: str, kind: str, value: str) -> None:
    grammar = make_grammar(named(name), TOOLS, "auto", dialect="gbnf")
    assert grammar.lazy
    assert [(t.type, t.value) for t in grammar.triggers] == [(kind, value)]


def test_a_grammar_is_not_lazy_where_thinking_is_open_or_nothing_can_trigger() -> None:
    fmt = named("hermes", reasoning="qwen3")
    assert make_grammar(fmt, TOOLS, dialect="gbnf").lazy
    assert not make_grammar(fmt, TOOLS, dialect="gbnf", reasoning="open").lazy
    assert not make_grammar(named("gpt-oss"), TOOLS, dialect="gbnf").lazy
    assert not make_grammar(named("hermes"), TOOLS, "required", dialect="gbnf").lazy
    assert not make_grammar(named("hermes"), TOOLS, dialect="lark").lazy


@dialects
@pytest.mark.parametrize(
    "choice",
    [
        {"type": "function", "function": {"name": "ping"}},
        {"type": "function", "name": "ping"},
        {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "ping"}]},
        {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "ping"}}]},
        },
    ],
)
def test_named_and_allowed_tools_are_the_only_ones(choice: Any, dialect: str) -> None:
    text = make_grammar(named("hermes"), TOOLS, choice, dialect=dialect).text
    assert "ping" in text
    assert "get_weather" not in text


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (
            {"type": "function", "name": "pong"},
            "tool_choice names 'pong'; the tools are: 'get_weather', 'get_weather_map', 'ping', 'now'",
        ),
        (
            "sometimes",
            "tool_choice 'sometimes' is not 'auto', 'required', 'none', a named function or allowed_tools",
        ),
        (
            {"type": "allowed_tools", "mode": "never", "tools": []},
            "tool_choice allowed_tools: mode 'never' is not 'auto' or 'required'",
        ),
    ],
)
def test_a_choice_that_cannot_be_is_an_error(choice: Any, message: str) -> None:
    with pytest.raises(GrammarError) as caught:
        make_grammar(named("hermes"), TOOLS, choice)
    assert str(caught.value) == message


def test_one_call_at_a_time() -> None:
    many = make_grammar(named("hermes"), TOOLS, "required", dialect="gbnf").text
    one = make_grammar(named("hermes"), TOOLS, "required", dialect="gbnf", parallel_tool_calls=False).text
    assert "call)*" in many
    assert "call)*" not in one


@dialects
@pytest.mark.parametrize("name", ['a"b', "a\nb", "<b>", "größe", "日本"])
def test_any_name_is_written_in_json_and_written_or_refused_in_markers(name: str, dialect: str) -> None:
    tools = [tool(name, type="object", properties={name: {"type": "string"}})]
    make_grammar(named("hermes"), tools, "required", dialect=dialect, strict=True)
    what = {'a"b': '"', "a\nb": "\n", "<b>": "<"}
    for format_name in ("qwen3_coder", "pythonic", "kimi_k3", "gpt-oss"):
        if name.isalnum():
            make_grammar(named(format_name), tools, "required", dialect=dialect, strict=True)
            continue
        with pytest.raises(GrammarError) as caught:
            make_grammar(named(format_name), tools, "required", dialect=dialect, strict=True)
        said = {
            "gpt-oss": f"tool {name!r}: the name cannot be written in format 'gpt-oss'",
            # Written as XML, where names hold neither "&" nor ";".
            "kimi_k3": f"tool {name!r}: {what[name] if name[0] != '<' and what[name] != chr(34) else ';'!r} in a name "
            "cannot be written in format 'kimi_k3'",
        }
        other = f"tool {name!r}: {what[name]!r} in a name cannot be written in format {format_name!r}"
        assert str(caught.value) == said.get(format_name, other)


def test_a_parameter_name_that_would_end_early_is_refused() -> None:
    tools = [tool("f", type="object", properties={"x</tool_call>": {"type": "string"}})]
    with pytest.raises(GrammarError) as caught:
        make_grammar(named("glm45"), tools, "required", strict=True)
    assert str(caught.value) == "tool 'f': the parameter name 'x</tool_call>' cannot be written in format 'glm45'"


def test_a_name_with_a_colon_can_be_written() -> None:
    """Only the last number of ``functions.a:1:0`` is the index of the call."""
    assert "functions.a:1:" in make_grammar(named("kimi_k2"), [tool("a:1")], "required").text


@dialects
def test_what_is_not_enforced_is_in_the_notes(dialect: str) -> None:
    schema = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    tools = [tool(type="object", properties={"v": schema})]
    notes = make_grammar(named("hermes"), tools, "required", dialect=dialect, strict=True).notes
    assert sorted(notes) == [
        "tool 'f': 'additionalProperties' is taken to be false where it is not given",
        "tool 'f': 'uniqueItems' is not enforced",
    ]
    assert make_grammar(named("hermes"), tools, "required", dialect=dialect).notes == ()


@dialects
def test_a_response_format_binds_content(dialect: str) -> None:
    schema = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
    for given in ({"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}, schema):
        fmt = named("hermes", reasoning="qwen3")
        grammar = make_grammar(fmt, None, dialect=dialect, response_format=given, reasoning="open")
        assert "answer" in grammar.text
        assert "</think>" in grammar.text or dialect == "gbnf"
        assert not grammar.lazy


@pytest.mark.parametrize(
    ("fmt", "options", "message"),
    [
        (
            named("hermes"),
            {"dialect": "ebnf"},
            "dialect 'ebnf' is not one of: 'gbnf', 'lark', 'structural_tag'",
        ),
        (named("hermes"), {"reasoning": "maybe"}, "reasoning 'maybe' is not one of: 'open', 'closed', 'off'"),
        (named("hermes"), {"reasoning": "open"}, "reasoning 'open': format 'hermes' has no reasoning"),
        (Format(name="plain"), {"tool_choice": "required"}, "format 'plain' has no way to write calls"),
    ],
)
def test_options_that_do_not_exist_are_errors(fmt: Format, options: dict[str, Any], message: str) -> None:
    with pytest.raises(GrammarError) as caught:
        make_grammar(fmt, TOOLS, **options)
    assert str(caught.value) == message


@dialects
def test_the_same_request_has_the_same_grammar(dialect: str) -> None:
    first = make_grammar(named("glm45"), TOOLS, "required", dialect=dialect)
    again = make_grammar(named("glm45"), [dict(t) for t in TOOLS], "required", dialect=dialect)
    assert first is again
    others = (
        make_grammar(named("glm47"), TOOLS, "required", dialect=dialect),
        make_grammar(named("glm45"), TOOLS[:2], "required", dialect=dialect),
        make_grammar(named("glm45"), TOOLS, "required", dialect=dialect, strict=True),
        make_grammar(named("glm45"), TOOLS, "required", dialect=dialect, parallel_tool_calls=False),
        make_grammar(named("glm45"), TOOLS, "required", dialect=dialect, reasoning="open"),
        make_grammar(named("glm45"), TOOLS, dialect=dialect, response_format={"type": "object"}),
        make_grammar(named("glm45"), TOOLS, "required", dialect=dialect, tokens={"<tool_call>": 7}),
    )
    assert len({first, *others}) == len(others) + 1


@dialects
def test_work_grows_with_the_tools(dialect: str) -> None:
    """The time for 64 tools is measured by the benchmarks."""
    properties = {
        "path": {"type": "string"},
        "mode": {"enum": ["a", "b"]},
        "opts": {"type": "object", "properties": {"deep": {"type": "boolean"}}, "required": ["deep"]},
    }
    tools = [tool(f"tool_{i}", type="object", properties=properties, required=["path"]) for i in range(128)]

    def work(count: int) -> int:
        offered = tools[:count]
        return lines_run(lambda: make_grammar(named("hermes"), offered, "required", dialect=dialect, strict=True))

    work(1)
    assert work(128) < 17 * work(8)


def test_free_text_ends_at_the_first_stop_and_holds_nothing_excluded() -> None:
    states, start = automaton(Scan(("</p>", "ab"), (("\n</p>", EMPTY),)))

    def run(text: str) -> str:
        state = states[start]
        for i, c in enumerate(text):
            if c in state.dead:
                return "dead"
            if any(c == letter for letter, _ in state.stops):
                return "stopped" if i == len(text) - 1 else "stopped early"
            state = states[next((t for t, letters in state.moves.items() if c in letters), 0)]
        return "open"

    assert run("x\n</p>") == "stopped"
    assert run("\n</p>y") == "stopped early"
    assert run("x</p>") == "dead"
    assert run("</</p") == "open"
    assert run("a\nb<\n<</p") == "open"
    assert run("aab") == "dead"
    assert run("\n\n</p>") == "stopped"


@pytest.mark.parametrize("dialect", ["gbnf", "lark", "structural_tag"])
def test_keys_of_literals_are_short(dialect: str) -> None:
    """The parser takes a string of more than 1024 characters before a colon for no key."""
    tool = {
        "type": "function",
        "function": {
            "name": "f",
            "strict": True,
            "parameters": {
                "type": "object",
                "properties": {"v": {"type": "object", "additionalProperties": {"type": "integer"}}},
                "required": ["v"],
            },
        },
    }
    pythonic = OutputParser.named("pythonic").grammar([tool], "required", dialect=dialect).text
    assert "{0,128}" in pythonic
    assert "128" not in OutputParser.named("hermes").grammar([tool], "required", dialect=dialect).text


@pytest.mark.parametrize("name", ["glm45", "hy_v4", "spark25"])
def test_a_value_may_not_hold_the_close_of_a_key_because_that_may_end_it(name: str) -> None:
    text = make_grammar(named(name), TOOLS, "required", dialect="lark").text
    values = [line for line in text.splitlines() if "</arg_value" in line.partition("& ~")[2]]
    assert values
    assert all(r"|<\/arg_key" in line for line in values)
