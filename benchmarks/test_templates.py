"""Speed of templates: new, known, and hostile.

Each source gets a comment of its own, which makes it new to every cache, including that of compiled templates.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from typing import Any

import pytest

from tests.public import TEMPLATES, needs_templates
from tests.templates.test_limits import GROWS, LOOPS, SOURCES
from untemplate.analysis import analyze
from untemplate.templates import ChatTemplate, TemplateError

HOSTILE = {**LOOPS, **GROWS, **SOURCES}
LOOKS = ("s == t", "s.islower()", "2 in l", "l.count(2)", "l | max", "s[1:] | length")
VALUES = "{% set s = 'a' * 1900000 %}{% set t = 'a' * 1899999 + 'b' %}{% set l = [1] * 200000 %}"


@needs_templates
def test_cold_analysis(benchmark: Any) -> None:
    """Analyze one template after the other: quote the median and the longest round."""
    sources = [ChatTemplate.load(path).source for path in TEMPLATES]
    numbers = count()

    def setup() -> tuple[tuple[Any, ...], dict[str, Any]]:
        number = next(numbers)
        return (ChatTemplate(sources[number % len(sources)] + f"{{# {number} #}}"),), {"cache": False}

    benchmark.pedantic(analyze, setup=setup, rounds=len(sources), warmup_rounds=1)


@needs_templates
def test_known_template(benchmark: Any) -> None:
    template = ChatTemplate.load(TEMPLATES[0])
    analyze(template)
    benchmark(analyze, template)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile(benchmark: Any, name: str) -> None:
    _refused(benchmark, HOSTILE[name])


@pytest.mark.parametrize("expression", LOOKS)
def test_long_values(benchmark: Any, expression: str) -> None:
    """Measure expressions on long values; some are fast enough to finish."""
    _refused(benchmark, VALUES + ("{{ " + expression + " }}") * 1000)


def _refused(benchmark: Any, source: str) -> None:
    numbers = count()

    def setup() -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (f"{source}{{# {next(numbers)} #}}",), {}

    def render(source: str) -> None:
        with suppress(TemplateError):
            ChatTemplate(source).render([{"role": "user", "content": "hi"}])

    benchmark.group = "hostile templates"
    benchmark.pedantic(render, setup=setup, rounds=2)
    benchmark.extra_info["seconds promised in docs/templates.md"] = 2
