"""Law 9 with the real engines: what a grammar accepts parses into calls that validate; what ``render`` writes it
accepts. A few Formats and samples here; every cell, often, in ``make test-grammar``.

The ratchet: ``tests/data/grammar_matrix.json`` says what holds of each cell. One that holds there and not here fails.
"""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from typing import Any

import pytest

from untemplate.formats import named
from untemplate.grammar import make_grammar

from .cells import TOOLS, formats, problem, subjects, templates
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
    # Cells of templates stay where the templates are not there.
    assert set(templates()) <= set(matrix)
    for cells in matrix.values():
        assert sorted(cells) == sorted(DIALECTS)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "pythonic", "gpt-oss"])
def test_some_cells_hold(name: str, dialect: str) -> None:
    hold(name, dialect, 10, 5)


@cache
def measured() -> list[tuple[str, ...]]:
    """The names of the matrix, those of one Format together: it is measured once."""
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
    for sample in samples(grammar, Vocabulary(), 20, 3):
        assert "<tool_call>" not in sample[0]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_one_call_is_all_that_may_be_asked_for(dialect: str) -> None:
    installed(dialect)
    from untemplate import OutputParser
    from untemplate.render import render

    fmt = named("hermes")
    call = {"type": "function", "function": {"name": "ping", "arguments": {}}}
    texts = [render(fmt, {"tool_calls": [call] * n}) for n in (1, 2)]
    grammar = make_grammar(fmt, TOOLS, "required", dialect=dialect, parallel_tool_calls=False)
    assert verdicts(grammar, texts) == [True, False]
    assert len(OutputParser(format=fmt).parse(texts[1], tools=TOOLS).tool_calls) == 2


@pytest.mark.parametrize("dialect", DIALECTS)
def test_content_may_be_bound_to_a_schema_behind_reasoning(dialect: str) -> None:
    installed(dialect)
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    fmt = named("hermes", reasoning="qwen3")
    grammar = make_grammar(fmt, None, dialect=dialect, reasoning="open", response_format=schema)
    texts = ['Hm.\n</think>\n\n{"n": 1}', 'Hm.\n</think>\n\n{"n": "x"}', "Hm.\n</think>\n\nOne.", '{"n": 1}']
    assert verdicts(grammar, texts) == [True, False, False, False]


def verdicts(grammar: Any, texts: list[str]) -> list[bool]:
    if grammar.dialect == "gbnf":
        from .llama import accepted

        return accepted(grammar.text, texts)
    from .measure import engine_of

    engine = engine_of(grammar, Vocabulary())
    return [engine.accepts(list(t.encode())) == len(t.encode()) + 1 for t in texts]


def test_llama_cpp_switches_a_lazy_grammar_on_at_its_trigger() -> None:
    installed("gbnf")
    from untemplate import OutputParser

    from .measure import llama

    fmt = named("hermes")
    grammar = make_grammar(fmt, TOOLS, "auto", dialect="gbnf", strict=True)
    server = llama()
    opener = server.vocabulary.ids["<tool_call>"]
    triggers = [{"type": 1, "value": t.value} for t in grammar.triggers]
    parser = OutputParser(format=fmt)
    found = 0
    for seed in range(200):
        answer = server.complete(
            grammar.text, seed, grammar_lazy=True, grammar_triggers=triggers,
            preserved_tokens=list(grammar.preserved_tokens), logit_bias=[*server.bias, [opener, 5.0]],
        )  # fmt: skip
        if answer is None or "<tool_call>" not in answer[0]:
            continue
        found += 1
        assert problem(parser, answer[0], (), strict=True, calls=True) is None, answer[0]
    assert found >= 5
