"""``no`` in a certificate is a proof: what was only not seen is ``cannot say``, or is measured after all."""

from __future__ import annotations

import pytest

from untemplate.analysis._pipeline import Analysis, analyze_template
from untemplate.errors import AnalysisError
from untemplate.templates import ChatTemplate

PROMPT = "{% if add_generation_prompt %}<a>{% endif %}"


def analysed(answer: str, prompt: str = PROMPT) -> Analysis:
    """Analyse a template that writes messages of the assistant in this way."""
    return analyse("", answer, prompt)


def analyse(before: str, answer: str, prompt: str = PROMPT) -> Analysis:
    """Analyse such a template that begins with `before`."""
    asked = "{% if m.role == 'user' %}<u>{{ m.content }}</u>{% else %}"
    return analyze_template(
        ChatTemplate(f"{before}{{% for m in messages %}}{asked}{answer}{{% endif %}}{{% endfor %}}{prompt}")
    )


def remarks(analysis: Analysis) -> list[str]:
    return [str(r) for r in analysis.certificate.traits.remarks if r.code == "not_measured"]


def test_a_switch_that_changes_only_the_history() -> None:
    thought = "{% if m.reasoning_content and enable_thinking %}<t>{{ m.reasoning_content }}</t>{% endif %}"
    found = analysed(f"<a>{thought}{{{{ m.content }}}}</a>")
    assert found.certificate.capabilities["reasoning"] == "yes"
    reasoning = found.format.reasoning
    assert reasoning is not None
    assert reasoning.open is not None
    assert (reasoning.open.text, reasoning.close.text) == ("<t>", "</t>")
    assert remarks(found) == []


def test_reasoning_in_a_field_of_another_name() -> None:
    found = analysed("<a>{% if m.own_thoughts %}<t>{{ m.own_thoughts }}</t>{% endif %}{{ m.content }}</a>")
    assert found.certificate.capabilities["reasoning"] == "yes"
    found = analysed(
        "<a>{% if m.own_thoughts and documents %}<t>{{ m.own_thoughts }}</t>{% endif %}{{ m.content }}</a>"
    )
    assert found.certificate.capabilities["reasoning"] == "cannot say"
    assert remarks(found) == ["line 1: reasoning: a branch was never rendered; it depends on documents"]


def test_a_plan_that_is_written_only_before_calls() -> None:
    call = "<t>{{ m.tool_plan }}</t>{% for c in m.tool_calls %}<call>{{ c.function | tojson }}</call>{% endfor %}"
    found = analysed(f"<a>{{% if m.tool_calls %}}{call}{{% else %}}{{{{ m.content }}}}{{% endif %}}</a>")
    assert found.certificate.capabilities["reasoning_with_calls"] == "yes"
    assert found.result.markers.reasoning_start == "<t>"
    assert found.result.markers.per_call_start == "<call>"


THOUGHT = "<t>{{ m.reasoning_content }}</t>"
THINK = "{% macro think(x, shown) %}{% if shown %}<t>{{ x }}</t>{% endif %}{% endmacro %}"
SET_BY_SWITCH = "{% set ns = namespace(keep=false) %}{% if keep_all %}{% set ns.keep = true %}{% endif %}"


@pytest.mark.parametrize(
    ("before", "thought"),
    [
        ("{% set keep = keep_all is defined and keep_all %}", f"{{% if keep %}}{THOUGHT}{{% endif %}}"),
        (
            "{% set all = keep_all | default(false) %}{% set keep = all %}",
            "{% set t = m.reasoning_content %}{% if t and keep %}<t>{{ t }}</t>{% endif %}",
        ),
        ("{% set ns = namespace(keep=keep_all) %}", f"{{% if ns.keep %}}{THOUGHT}{{% endif %}}"),
        (
            "{% set ns = namespace(keep=false) %}{% set ns.keep = keep_all %}",
            f"{{% if ns['keep'] %}}{THOUGHT}{{% endif %}}",
        ),
        (SET_BY_SWITCH, f"{{% set own = ns %}}{{% if own.keep %}}{THOUGHT}{{% endif %}}"),
        ("{% set keep %}{{ 'x' if keep_all }}{% endset %}", f"{{% if keep %}}{THOUGHT}{{% endif %}}"),
        (THINK, "{{ think(m.reasoning_content, keep_all) }}"),
        (THINK, "{{ think(shown=keep_all, x=m.reasoning_content) }}"),
        (f"{{% macro think(m) %}}{THOUGHT}{{% endmacro %}}", "{% if keep_all %}{{ think(m) }}{% endif %}"),
        ("", f"{{% with keep = keep_all %}}{{% if keep %}}{THOUGHT}{{% endif %}}{{% endwith %}}"),
        ("", f"{{% for keep, _ in [[keep_all, 1]] %}}{{% if keep %}}{THOUGHT}{{% endif %}}{{% endfor %}}"),
    ],
)
def test_a_switch_that_has_another_name_in_the_template(before: str, thought: str) -> None:
    found = analyse(before, f"<a>{thought}{{{{ m.content }}}}</a>")
    assert found.certificate.capabilities["reasoning"] == "yes"
    assert found.certificate.traits.unreached == ()
    assert remarks(found) == []


@pytest.mark.parametrize(
    ("before", "thought"),
    [
        (
            "{% set given = documents %}",
            "{% set t = m.reasoning %}{% if t and given %}<t>{{ t }}</t>{% endif %}",
        ),
        (THINK, "{{ think(m.reasoning, documents and m.reasoning) }}"),
    ],
)
def test_a_field_that_has_another_name_in_the_template(before: str, thought: str) -> None:
    found = analyse(before, f"<a>{thought}{{{{ m.content }}}}</a>")
    assert found.certificate.capabilities["reasoning"] == "cannot say"
    assert remarks(found)[0].startswith("line 1: reasoning: a branch was never rendered; it depends on documents")


def test_an_id_in_a_loop_over_the_calls() -> None:
    call = "{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}{% if documents %}{{ c.id }}{% endif %}"
    found = analysed(f"<a>{{{{ m.content or '' }}}}{call}</call>{{% endfor %}}</a>")
    assert found.certificate.capabilities["ids"] == "cannot say"
    assert found.certificate.capabilities["parallel_calls"] == "yes"


def test_a_branch_about_the_first_call_cannot_write_two() -> None:
    call = (
        "{% set c = m.tool_calls[0].function %}{% if documents %}{{ c.name }}{% endif %}<call>{{ c | tojson }}</call>"
    )
    found = analysed(f"<a>{{{{ m.content or '' }}}}{{% if m.tool_calls %}}{call}{{% endif %}}</a>")
    assert found.certificate.capabilities["calls"] == "yes"
    assert found.certificate.capabilities["parallel_calls"] == "no"


def test_the_same_name_for_an_attribute_and_a_variable() -> None:
    plain = "{% set content = m.reasoning_content %}{% if documents %}{{ m.content }}{% endif %}{{ m.content }}"
    assert analysed(f"<a>{plain}</a>").certificate.capabilities["reasoning"] == "no"


def test_more_variables_than_are_followed() -> None:
    chain = "".join(f"{{% set v{i + 1} = v{i} %}}" for i in range(1100))
    found = analyse(f"{{% set v0 = 1 %}}{chain}", "<a>{% if documents %}{{ v1100 }}{% endif %}{{ m.content }}</a>")
    assert found.certificate.capabilities["reasoning"] == "cannot say"


def test_a_branch_that_needs_a_result_without_a_name() -> None:
    call = "{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}"
    looked_up = (
        "{% if m.role == 'tool' %}{% if m.name %}{{ m.name }}{% else %}{% for o in messages %}"
        "{% for c in o.tool_calls or [] %}{% if c.id == m.tool_call_id %}{{ c.function.name }}{% endif %}{% endfor %}"
        "{% endfor %}{% endif %}{% endif %}"
    )
    found = analysed(f"<a>{looked_up}{{{{ m.content or '' }}}}{call}</a>")
    assert found.certificate.capabilities["ids"] == "no"
    assert found.certificate.traits.unreached == ()


def test_a_template_that_needs_documents() -> None:
    source = "{% for d in documents %}{{ d.text }}{% endfor %}{% for m in messages %}<{{ m.role }}>{{ m.content }}<e>"
    assert analyze_template(ChatTemplate(f"{source}{{% endfor %}}<assistant>")).certificate.certified


@pytest.mark.parametrize("name", ["from_json", "fromjson"])
def test_a_filter_that_reads_json(name: str) -> None:
    call = f"<call>{{{{ c.function.name }}}}:{{{{ (c.function.arguments | {name}) | tojson }}}}</call>"
    found = analysed(f"<a>{{{{ m.content or '' }}}}{{% for c in m.tool_calls or [] %}}{call}{{% endfor %}}</a>")
    assert found.certificate.certified
    assert found.certificate.capabilities["parallel_calls"] == "yes"


def test_a_branch_that_cannot_be_rendered() -> None:
    call = "{% for c in m.tool_calls or [] %}<call>{{ c.function | nofilter }}</call>{% endfor %}"
    found = analysed(f"<a>{{{{ m.content or '' }}}}{call}</a>")
    table = found.certificate.capabilities
    assert {table[name] for name in ("calls", "parallel_calls", "no_arguments", "string", "ids")} == {"cannot say"}
    assert (table["content"], table["reasoning"]) == ("yes", "no")
    assert len(remarks(found)) == 1
    assert remarks(found)[0].startswith("line 1: calls, parallel_calls, no_arguments, ")
    assert remarks(found)[0].endswith(": a rendering failed: No filter named 'nofilter' found.")


def test_a_branch_that_no_message_leads_to() -> None:
    call = "{% if m.tool_calls and documents %}<call>{{ m.tool_calls | tojson }}</call>{% endif %}"
    found = analysed(f"<a>{{{{ m.content or '' }}}}{call}</a>")
    assert found.certificate.capabilities["calls"] == "cannot say"
    assert remarks(found)[0].endswith(": a branch was never rendered; it depends on documents")


def test_a_refusal_is_a_proof() -> None:
    found = analysed("<a>{% if m.tool_calls %}{{ raise_exception('no tools') }}{% endif %}{{ m.content }}</a>")
    assert found.certificate.capabilities["calls"] == "no"
    assert remarks(found) == []


def test_a_template_without_calls_cannot_write_them() -> None:
    found = analysed("<a>{{ m.content }}</a>")
    assert set(found.certificate.capabilities.values()) == {"yes", "no"}


def test_a_header_that_is_written_only_with_content() -> None:
    content = "{% if m.content %}<a>{{ m.content }}</a>{% endif %}"
    found = analysed(f"{content}{{% if m.tool_calls %}}<call>{{{{ m.tool_calls | tojson }}}}</call>{{% endif %}}")
    table = found.certificate.capabilities
    assert (found.certificate.certified, table["calls"], table["parallel_calls"]) == (True, "yes", "yes")
    # After content the turn has ended, so no model writes a call there.
    assert table["content_with_calls"] == "cannot say"


def test_a_template_that_writes_only_names() -> None:
    found = analysed(
        "<a>{{ m.content or '' }}{% for c in m.tool_calls or [] %}<c>{{ c.function.name }}</c>{% endfor %}</a>"
    )
    assert found.certificate.capabilities["calls"] == "cannot say"
    assert remarks(found)[0].endswith(": the template writes only the names of tools")


def test_words_that_a_variable_is_compared_with_are_tried() -> None:
    prompt = "{% if add_generation_prompt %}<a>{{ '<t>' if effort == 'high' else '<t></t>' }}{% endif %}"
    found = analysed("<a><t>{{ m.reasoning_content or '' }}</t>{{ m.content }}</a>", prompt)
    table = found.certificate.capabilities
    assert (table["reasoning"], table["thinking_off"]) == ("yes", "yes")


@pytest.mark.parametrize(
    ("loop", "problem"),
    [
        ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "not a chat template: "),
        ("{% for i in range(90000) %}{% set x = i %}{% endfor %}" * 4, "the template takes too long: "),
    ],
)
def test_one_budget_for_all_renderings(loop: str, problem: str) -> None:
    with pytest.raises(AnalysisError) as caught:
        analyze_template(ChatTemplate(loop + "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"))
    assert str(caught.value).startswith(problem)
