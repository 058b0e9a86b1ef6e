"""Speed of grammars: the text for 64 tools, new (the goal is 20 ms) and from the cache.

Every round has new tools; otherwise the cache would answer.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from untemplate.formats import named
from untemplate.grammar import make_grammar

DIALECTS = ("gbnf", "lark", "structural_tag")
PROPERTIES = {
    "path": {"type": "string"},
    "mode": {"enum": ["a", "b"]},
    "opts": {"type": "object", "properties": {"deep": {"type": "boolean"}}, "required": ["deep"]},
}


def tools(first: str) -> list[dict[str, Any]]:
    parameters = {"type": "object", "properties": PROPERTIES, "required": ["path"]}
    names = [first, *(f"tool_{i}" for i in range(63))]
    return [{"type": "function", "function": {"name": name, "parameters": parameters}} for name in names]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "deepseek_v32", "glm45", "kimi_k3", "gemma4", "gpt-oss"])
def test_sixty_four_tools(benchmark: Any, name: str, dialect: str) -> None:
    fmt = named(name)
    numbers = count()

    def setup() -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (fmt, tools(f"first_{next(numbers)}"), "required"), {"dialect": dialect, "strict": True}

    benchmark.pedantic(make_grammar, setup=setup, rounds=20, warmup_rounds=2)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_sixty_four_tools_again(benchmark: Any, dialect: str) -> None:
    fmt = named("hermes")
    offered = tools("first")
    benchmark(lambda: make_grammar(fmt, offered, "required", dialect=dialect, strict=True))
