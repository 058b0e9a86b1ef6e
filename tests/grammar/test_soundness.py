"""Law 9 with the real engines: what a grammar accepts parses into valid calls, and it accepts what ``render`` writes. A
few Formats and samples here; every cell, with many samples, in ``make test-grammar``.

``tests/data/grammar_matrix.json`` records the properties of each cell. A recorded property that fails here is an error.
"""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from itertools import islice
from typing import Any

import pytest

from untemplate.formats import named
from untemplate.grammar import GrammarError, make_grammar

from .cells import MADE, TOOLS, formats, problem, subjects, templates
from .engines import Vocabulary
from .measure import DIALECTS, MATRIX, WHAT, measure, samples

NEEDS = {"gbnf": ("xllamacpp", "gguf", "numpy"), "lark": ("llguidance",), "structural_tag": ("xgrammar", "torch")}
MANY = 200


def installed(dialect: str) -> None:
    for module in (*NEEDS[dialect], "jsonschema_rs"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed (make test-grammar installs it)")


def hold(name: str, dialect: str, count: int, by_id: int) -> None:
    installed(dialect)
    cell = measure(subjects()[name], dialect, count, by_id=by_id)
    expected = json.loads(MATRIX.read_text())[name][dialect]
    for what in WHAT:
        assert getattr(cell, what) or not expected[what], "\n".join((what, *cell.examples))


def test_every_cell_is_in_the_matrix() -> None:
    matrix = json.loads(MATRIX.read_text())
    named = {name for name in matrix if not name.endswith(".jinja")}
    assert named == set(formats())
    # Cells of templates stay in the matrix if the templates are missing.
    assert set(templates()) <= set(matrix)
    for cells in matrix.values():
        assert sorted(cells) == sorted(DIALECTS)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "pythonic", "gpt-oss"])
def test_some_cells_hold(name: str, dialect: str) -> None:
    hold(name, dialect, 10, 5)


@cache
def measured() -> list[tuple[str, ...]]:
    """Return the names of the matrix, with those of one Format together: it is measured once."""
    groups: dict[Any, list[str]] = {}
    for name, fmt in subjects().items():
        groups.setdefault(fmt.extend(name="x"), []).append(name)
    return [tuple(names) for names in groups.values()]


@pytest.mark.exhaustive
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("names", measured(), ids=lambda names: names[0])
def test_every_cell_holds(names: tuple[str, ...], dialect: str) -> None:
    hold(names[0], dialect, MANY, MANY // 5)


def test_no_tool_choice_no_calls() -> None:
    installed("lark")
    fmt = named("hermes")
    grammar = make_grammar(fmt, TOOLS, "none", dialect="lark")
    for sample in samples(grammar, Vocabulary(format=fmt), 20, 3):
        assert "<tool_call>" not in sample[0]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_one_call_is_all_that_may_be_asked_for(dialect: str) -> None:
    installed(dialect)
    from untemplate import OutputParser
    from untemplate._internal.render import render

    fmt = named("hermes")
    call = {"type": "function", "function": {"name": "ping", "arguments": {}}}
    texts = [render(fmt, {"tool_calls": [call] * n}) for n in (1, 2)]
    grammar = make_grammar(fmt, TOOLS, "required", dialect=dialect, parallel_tool_calls=False)
    assert verdicts(grammar, texts) == [True, False]
    assert len(OutputParser(format=fmt).parse(texts[1], tools=TOOLS).tool_calls) == 2


@pytest.mark.parametrize("dialect", DIALECTS)
def test_elements_that_may_hold_one_another(dialect: str) -> None:
    """Eight of them: rules for each set of elements around one would be too many."""
    installed(dialect)
    from untemplate import OutputParser
    from untemplate._internal.render import render

    names = [f"c{i}" for i in range(8)]
    node = {"type": "object", "properties": {"t": {"type": "string"}, **{n: {"$ref": "#/$defs/node"} for n in names}}}
    schema = {"type": "object", "properties": {"n": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    fmt = named("minimax_m3")
    nested: dict[str, Any] = {"t": "<b> & </b>"}
    for name in ("c0", "c7", "c3", "c3", "c5", "c1", "c0", "c2"):
        nested = {"t": f"in {name}", name: nested}
    call = {"type": "function", "function": {"name": "f", "arguments": {"n": nested}}}
    text = render(fmt, {"tool_calls": [call]})
    (parsed,) = OutputParser(format=fmt).parse(text, tools=tools).tool_calls
    assert json.loads(parsed.function.arguments) == {"n": nested}
    grammar = make_grammar(fmt, tools, "required", dialect=dialect, strict=True)
    assert verdicts(grammar, [text, text.replace("</b>", "</c5>")]) == [True, False]


@pytest.mark.parametrize("dialect", ["lark", "structural_tag"])
def test_content_does_not_begin_like_a_call_without_a_marker(dialect: str) -> None:
    """``ping()`` would be read as a call. The GBNF begins at a marker: before it, it decides nothing."""
    installed(dialect)
    grammar = make_grammar(named("lfm2"), TOOLS, dialect=dialect)
    texts = ["ping()", " \nping() is it", "ping", "\npong()", "Use ping()."]
    assert verdicts(grammar, texts) == [False, False, True, True, True]
    grammar = make_grammar(named("lfm2"), TOOLS, "none", dialect=dialect)
    assert verdicts(grammar, ["ping()"]) == [True]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_content_may_be_bound_to_a_schema_behind_reasoning(dialect: str) -> None:
    installed(dialect)
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    fmt = named("hermes", reasoning="qwen3")
    grammar = make_grammar(fmt, None, dialect=dialect, reasoning="open", response_format=schema)
    texts = ['Hm.\n</think>\n\n{"n": 1}', 'Hm.\n</think>\n\n{"n": "x"}', "Hm.\n</think>\n\nOne.", '{"n": 1}']
    assert verdicts(grammar, texts) == [True, False, False, False]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_model_may_call_instead_of_answering_by_schema(dialect: str) -> None:
    installed(dialect)
    schema = {"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"]}
    fmt = named("hermes", reasoning="qwen3")
    grammar = make_grammar(fmt, TOOLS, dialect=dialect, reasoning="open", response_format=schema)
    call = '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>'
    texts = [f"Hm.\n</think>\n\n{text}" for text in ('{"n": "x<y"}', call, "One.", '{"n": "<tool_call>"}')]
    assert verdicts(grammar, texts) == [True, True, False, False]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_json_inside_tags_cannot_close_them(dialect: str) -> None:
    installed(dialect)
    fmt = named("qwen3_coder")
    parameters = {"type": "object", "properties": {"v": {"type": "array", "items": {"type": "string"}}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
    grammar = make_grammar(fmt, tools, "required", dialect=dialect, strict=True)
    call = "<tool_call>\n<function=f>\n<parameter=v>\n[%s]\n</parameter>\n</function>\n</tool_call>"
    values = ('"<p>"', '"a \\"b\\" \\u003c/parameter>"', '"</parameter>"', '"\\n</parameter>\n</function>"')
    assert verdicts(grammar, [call % value for value in values]) == [True, True, False, False]


@pytest.mark.exhaustive
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", sorted(MADE))
def test_formats_of_no_family_hold(name: str, dialect: str) -> None:
    installed(dialect)
    cell = measure(MADE[name], dialect, 40, by_id=20)
    assert {what: getattr(cell, what) for what in WHAT} == dict.fromkeys(WHAT, True), "\n".join(cell.examples)


def test_objects_in_quotes_with_escapes_are_refused() -> None:
    fmt = MADE["values in double quotes"].extend(tools__0__body__arguments__escapes=True)
    with pytest.raises(GrammarError) as error:
        make_grammar(fmt, TOOLS, "required", dialect="gbnf", strict=True)
    assert str(error.value) == (
        "tool 'get_weather_map' at /area: 'type' 'object' cannot be written in quotes with escapes"
    )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_objects_inside_tags_keep_to_their_own_schemas(dialect: str) -> None:
    installed(dialect)
    fmt = named("qwen3_coder")
    objects = {
        name: {"type": "object", "properties": {name * 2: {"type": "string"}}, "required": [name * 2]} for name in "ab"
    }
    parameters = {"type": "object", "properties": objects, "required": ["a", "b"]}
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
    grammar = make_grammar(fmt, tools, "required", dialect=dialect, strict=True)
    call = "<tool_call>\n<function=f>\n%s</function>\n</tool_call>"
    value = '<parameter=%s>\n{"%s": "x"}\n</parameter>\n'
    texts = [call % (value % ("a", a) + value % ("b", b)) for a, b in (("aa", "bb"), ("bb", "bb"), ("aa", "aa"))]
    assert verdicts(grammar, texts) == [True, False, False]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ["hermes", "kimi_k3", "qwen3_coder", "pythonic", "gemma4"])
def test_a_further_property_has_another_name_than_the_declared_ones(name: str, dialect: str) -> None:
    installed(dialect)
    from untemplate._internal.render import render

    fmt = named(name)
    parameters = {"type": "object", "properties": {"n": {"type": "integer"}, "nu": {"type": "integer"}}}
    function = {"name": "f", "parameters": parameters | {"additionalProperties": True}}
    grammar = make_grammar(fmt, [{"type": "function", "function": function}], "required", dialect=dialect, strict=True)
    given: list[dict[str, Any]] = [{"n": 1}, {"m": "x"}, {"nul": "x"}, {"n": "x"}, {"nu": "x"}, {"n": 1, "m": "x"}]
    texts = [
        render(fmt, {"tool_calls": [{"type": "function", "function": {"name": "f", "arguments": one}}]})
        for one in given
    ]
    assert verdicts(grammar, texts) == [True, True, True, False, False, True]


NAMES = (
    'a"b', "a\nb", "<b>", "größe", "日本", "a b", "it's", "a\\b", "x</tool_call>", "a.b", "a:1", "{x}", "call", "a&b",
    " a", "f(", "a=b", "x,y", "null", "1a", "</parameter>", "a>b", "functions.x",
)  # fmt: skip


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", formats())
def test_every_name_is_read_as_it_was_written_or_refused(name: str) -> None:
    installed("lark")
    from untemplate import OutputParser
    from untemplate.grammar import GrammarError

    fmt = formats()[name]
    parser = OutputParser(format=fmt)
    refused: list[tuple[str, str]] = []
    for function, key in [(n, "k") for n in NAMES] + [("f", n) for n in NAMES]:
        parameters = {"type": "object", "properties": {key: {"type": "integer"}}, "required": [key]}
        tools = [{"type": "function", "function": {"name": function, "parameters": parameters}}]
        try:
            grammar = make_grammar(fmt, tools, "required", dialect="lark", strict=True, parallel_tool_calls=False)
        except GrammarError as error:
            refused.append((function, str(error)))
            continue
        for sample in islice(samples(grammar, Vocabulary(format=fmt), 3, 2), 2):
            parsed = parser.parse(sample[0], tools=tools)
            assert {d.code for d in parsed.diagnostics} <= {"foreign_marker"}, sample
            (call,) = parsed.tool_calls
            assert (call.function.name, list(json.loads(call.function.arguments))) == (function, [key]), sample
    for function, message in refused:
        assert message.startswith(f"tool {function!r}: ")
        assert message.endswith(f" cannot be written in format {fmt.name!r}")


def verdicts(grammar: Any, texts: list[str]) -> list[bool]:
    if grammar.dialect == "gbnf":
        from .llama import accepted

        return accepted(grammar.text, texts)
    from .measure import engine_of

    engine = engine_of(grammar, Vocabulary())
    return [engine.accepts(list(t.encode())) == len(t.encode()) + 1 for t in texts]


@pytest.mark.parametrize(
    ("name", "kind", "call"),
    [
        ("hermes", "word", '<tool_call>\n{"name": "%s", "arguments": {}}\n</tool_call>'),
        (
            "deepseek_v32",
            "word",
            '<｜DSML｜function_calls>\n<｜DSML｜invoke name="%s">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
        ),
        ("llama3_json", "pattern", '{"name": "%s", "parameters": {}}'),
        ("pythonic", "pattern", "[%s()]"),
    ],
)
def test_llama_cpp_waits_for_the_trigger_of_a_lazy_grammar(name: str, kind: str, call: str) -> None:
    """The model can write only these texts: a text that it does not write is forbidden by the grammar."""
    installed("gbnf")
    from .llama import accepted

    grammar = make_grammar(named(name), TOOLS, "auto", dialect="gbnf", strict=True)
    assert [t.type for t in grammar.triggers] == [kind]
    fields = grammar.request("llama.cpp")
    texts = ["Hello <b>you</b>, {it} [is] fine.", call % "ping", call % "ping" + " and so on", call % "pong"]
    if kind == "pattern":
        # An unknown name in brackets is content; in JSON it would not be.
        texts += ["So: " + call % "pong"]
    verdicts = accepted(fields.pop("grammar"), texts, **fields)
    assert verdicts == [True, True, False, name == "pythonic", *([True] if kind == "pattern" else [])]


@pytest.mark.parametrize(("name", "by_id", "kind"), [("hermes", False, "word"), ("hermes", True, "token")])
def test_llama_cpp_switches_a_lazy_grammar_on_at_its_trigger(name: str, by_id: bool, kind: str) -> None:
    installed("gbnf")
    from untemplate import OutputParser
    from untemplate.policy import Policy

    from .measure import likely, llama, vocabulary_of

    fmt = named(name)
    vocabulary = vocabulary_of(fmt, by_id, "gbnf")
    server = llama(vocabulary)
    tokens = vocabulary.tokens() if by_id else None
    grammar = make_grammar(fmt, TOOLS, "auto", dialect="gbnf", strict=True, tokens=tokens)
    assert [t.type for t in grammar.triggers] == [kind]
    assert grammar.by_id == by_id
    fields = grammar.request("llama.cpp")
    text = fields.pop("grammar")
    parser = OutputParser(vocabulary if by_id else None, format=fmt, policy=Policy(spelled_markers="marker"))
    bias = [*server.bias, *([t, 5.0] for t in likely(grammar, vocabulary))]
    found = 0
    for seed in range(120):
        answer = server.complete(text, seed, logit_bias=bias, **fields)
        if answer is None or not parser.parse(answer[0], tools=TOOLS).tool_calls:
            continue
        found += 1
        ids = answer[1] if by_id else ()
        # The grammar begins at the trigger; any marker may come before it.
        before = frozenset({"stray_close", "empty_calls"})
        assert problem(parser, answer[0], ids, strict=True, calls=True, allowed=before) is None, answer[0]
    assert found >= 5
