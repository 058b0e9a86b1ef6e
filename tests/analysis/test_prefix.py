"""Where templates change earlier turns: the breaks of templates made for it, and a rollout over the public ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.analysis.roundtrip import NEXT, USER, Renderer, Scenario, Shape
from tests.public import TEMPLATES, needs_templates
from untemplate.analysis import PrefixBreak
from untemplate.analysis._pipeline import analyze_template
from untemplate.templates import ChatTemplate

KEEPS = (
    "{%- for m in messages -%}<{{ m.role }}>{%- if m.reasoning_content -%}<t>{{ m.reasoning_content }}</t>{%- endif -%}"
    "{{ m.content }}<e>{%- endfor -%}{%- if add_generation_prompt -%}<assistant>{%- endif -%}"
)
DROPS = KEEPS.replace("if m.reasoning_content", "if m.reasoning_content and loop.last")
OPENS = KEEPS.replace("-%}<assistant>", "-%}<assistant>{%- if ponder is defined and ponder -%}<t>{%- endif -%}")


def breaks(source: str) -> tuple[PrefixBreak, ...]:
    return analyze_template(ChatTemplate(source)).certificate.traits.prefix_breaks


def test_a_template_that_only_appends_has_no_breaks() -> None:
    assert breaks(KEEPS) == ()


def test_dropped_reasoning_is_a_break() -> None:
    (found,) = breaks(DROPS)
    assert (found.step, found.message, found.settings) == ("question", "reasoning and content", "")
    assert found.was.startswith("<t>qzthoughtqz</t>")
    assert found.becomes.startswith("qzcontentqz<e><user>")


def test_a_prompt_that_no_turn_continues_is_a_break() -> None:
    assert [str(b) for b in breaks(OPENS)] == ["content (ponder=True), turn appended: '<t>' becomes 'qzcontentqz<e>'"]


@needs_templates
@pytest.mark.parametrize("path", TEMPLATES[::4], ids=lambda p: p.stem)
def test_breaks_are_those_of_a_rollout(path: Path) -> None:
    """Compare with renderings of another environment, in other words."""
    source = path.read_text(encoding="utf-8")
    renderer, shape = Renderer(source), Shape()
    question, answer = {"role": "user", "content": USER}, Scenario("", (), "Sunny.").write(shape)
    prompt = renderer.render([question], shape, tools=None, prompt=True)
    turn = renderer.render([question, answer], shape, tools=None)
    longer = renderer.render([question, answer, {"role": "user", "content": NEXT}], shape, tools=None)
    if prompt is None or turn is None or longer is None:
        pytest.skip("the template does not take this conversation")
    found = {b.step for b in breaks(source) if not b.settings}
    if not turn.startswith(prompt):
        assert found, "the prompt is changed"
    if not longer.startswith(turn):
        assert found, "the turn is changed"
