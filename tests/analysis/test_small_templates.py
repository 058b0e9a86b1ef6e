"""Laws of the analysis over small templates: only our own errors leave it, and no rendering contradicts it."""

from __future__ import annotations

import random

import pytest

from tests.analysis.small_templates import write
from tests.analysis.truth import contradictions
from tests.public import TEMPLATES, WILD, needs_templates
from untemplate import OutputParser
from untemplate.analysis._pipeline import analyze_template
from untemplate.errors import AnalysisError, UntemplateError
from untemplate.templates import ChatTemplate

SAMPLE = 300


def analysed(source: str) -> str:
    """Analyse a template and return the outcome. An error that the analysis did not expect is a failure, and so is a
    ``no`` that a rendering contradicts."""
    template = ChatTemplate(source)
    try:
        analysis = analyze_template(template)
    except UntemplateError as error:
        outcome = str(error)
    else:
        outcome = "certified" if analysis.certificate.certified else "not certified"
        assert list(contradictions(template, analysis.certificate)) == [], source
    assert "please report" not in outcome, f"{outcome}\n{source}"
    return outcome


@pytest.mark.parametrize("seed", range(3))
def test_laws_of_small_templates(seed: int) -> None:
    chance = random.Random(seed)
    found = [analysed(write(chance)) for _ in range(SAMPLE // 3)]
    assert found.count("certified") > SAMPLE // 12  # the grammar writes sound templates as well


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(100, 120))
def test_laws_of_many_small_templates(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(1000):
        analysed(write(chance))


@needs_templates
@pytest.mark.exhaustive
def test_no_rendering_of_a_public_template_contradicts_its_certificate() -> None:
    for path in (*TEMPLATES, *WILD):
        analysed(path.read_text("utf-8"))


def test_an_unexpected_failure_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise KeyError("turn")

    monkeypatch.setattr("untemplate.analysis._pipeline.find_frame", fails)
    with pytest.raises(AnalysisError) as caught:
        analyze_template(ChatTemplate("{% for m in messages %}{{ m.content }}{% endfor %}"))
    assert str(caught.value) == "the analysis failed, please report the template: KeyError('turn')"


def test_a_template_that_drops_the_last_answer() -> None:
    """The shape of GigaChat-20B's template: a last message of the assistant is not written."""
    source = (
        "{% for m in messages %}{% if not loop.last or m.role=='user' %}<{{m.role}}>{{m.content}}{% endif %}"
        "{% if loop.last %}<assistant>{% endif %}{% endfor %}"
    )
    parsed = OutputParser.from_template(source, cache=False).parse("Hello.", prompt="<user>Hi<assistant>")
    assert (parsed.reasoning, parsed.content, parsed.tool_calls) == (None, "Hello.", [])


def test_a_template_whose_prompt_ends_in_the_end_of_sequence() -> None:
    source = (
        "{% for m in messages %}{% if m.role=='user' %}H: {{m.content}} A: {{eos_token}}"
        "{% elif m.role=='assistant' %}{{m.content}}{{eos_token}}{% endif %}{% endfor %}"
    )
    parsed = OutputParser.from_template(source, cache=False).parse("Hello.")
    assert (parsed.reasoning, parsed.content, parsed.tool_calls) == (None, "Hello.", [])
