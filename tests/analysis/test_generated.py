"""Templates of our own making: every way to write calls, in several frames, with every kind of reasoning."""

from __future__ import annotations

import pytest

from tests.analysis.generator import CALLS, MARKS, REASONING, Generated, generate, template
from untemplate import OutputParser
from untemplate.analysis._pipeline import analyze_template
from untemplate.templates import ChatTemplate

GENERATED = generate()


def test_the_space_is_covered() -> None:
    assert len(GENERATED) >= 40
    assert all(any(g.name.startswith(f"{calls}-") for g in GENERATED) for calls in CALLS)
    assert all(any(f"-{kind}-" in g.name for g in GENERATED) for kind in REASONING)


@pytest.mark.parametrize("generated", GENERATED, ids=lambda g: g.name)
def test_generated_template_certifies(generated: Generated) -> None:
    analysis = analyze_template(ChatTemplate(generated.source))
    certificate = analysis.certificate
    assert certificate.certified, certificate.failed
    assert analysis.result.variant == generated.variant
    table = certificate.capabilities
    assert ("yes" in (table["reasoning"], table["reasoning_with_calls"])) == generated.reasoning
    assert (table["calls"] == "yes") == generated.calls
    assert (table["parallel_calls"] == "yes") == generated.parallel


def test_other_seeds_certify_too(capsys: pytest.CaptureFixture[str]) -> None:
    made = [g for seed in (1, 2) for g in generate(seed, rounds=1)]
    failed = [g.name for g in made if not analyze_template(ChatTemplate(g.source)).certificate.certified]
    with capsys.disabled():
        print(f"\n{len(made) - len(failed)} of {len(made)} generated templates certified {failed}")
    assert not failed


def test_from_template_parses() -> None:
    parser = OutputParser.from_template(template("chat", "optional", MARKS[0], "tagged_args", wrapped=False))
    assert parser.certificate is not None
    assert parser.certificate.certified
    call = "<act>\n<fn=f>\n<arg=x>\n1\n</arg>\n</fn>\n</act>"
    parsed = parser.parse(f"Look:\n{call}")
    assert (parsed.content or "").strip() == "Look:"
    assert [(c.function.name, c.function.arguments) for c in parsed.tool_calls] == [("f", '{"x": "1"}')]
