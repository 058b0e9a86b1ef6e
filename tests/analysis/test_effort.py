"""The cost of a new template: the number of conversations that it renders. Benchmarks time them."""

from __future__ import annotations

import statistics

import pytest

from tests.analysis.conftest import TEMPLATES
from untemplate.analysis.analyze import analyze_template
from untemplate.templates import ChatTemplate


@pytest.mark.skipif(not TEMPLATES, reason="the public templates are not here")
def test_few_conversations_are_rendered() -> None:
    renders = {path.stem: analyze_template(ChatTemplate.load(path)).renders for path in TEMPLATES}
    for name, count in sorted(renders.items(), key=lambda item: -item[1]):
        print(f"{count:4} renderings  {name}")
    assert statistics.median(renders.values()) < 75
    assert max(renders.values()) < 130
