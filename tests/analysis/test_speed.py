"""A template nobody has seen, in CPU time. The table is printed with ``-s``."""

from __future__ import annotations

import statistics
import time

import pytest

from tests.analysis.conftest import TEMPLATES
from untemplate.analysis.analyze import analyze_template
from untemplate.templates import ChatTemplate

MEDIAN = 0.1
WORST = 0.4
SLACK = 2.5
"""For machines that do something else besides; DESIGN section 7 holds the numbers themselves."""


@pytest.mark.skipif(not TEMPLATES, reason="the public templates are not here")
def test_cold_analysis_is_quick() -> None:
    analyze_template(ChatTemplate.load(TEMPLATES[0]))
    times = {}
    for path in TEMPLATES:
        # A comment makes the source new to every cache, the compiled template's included.
        template = ChatTemplate(ChatTemplate.load(path).source + "{# cold #}")
        began = time.process_time()
        renders = analyze_template(template).renders
        times[path.stem] = (time.process_time() - began, renders)
    spent = [t for t, _ in times.values()]
    for name, (t, renders) in sorted(times.items(), key=lambda item: -item[1][0]):
        print(f"{1000 * t:7.1f} ms  {renders:4} renderings  {name}")
    print(f"median {1000 * statistics.median(spent):.1f} ms, worst {1000 * max(spent):.1f} ms")
    assert statistics.median(spent) < MEDIAN * SLACK
    assert max(spent) < WORST * SLACK
