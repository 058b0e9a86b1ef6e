# ruff: noqa: E501  (templates read better unbroken)
"""Traits of templates: parts that it drops, masks, and remarks with their lines."""

from __future__ import annotations

from typing import get_args

import pytest

from tests.public import SHARED, TEMPLATES, needs_templates
from untemplate.analysis import AnalysisError, Dropped, Remark, Traits
from untemplate.analysis._pipeline import prepare
from untemplate.analysis._traits import RemarkCode
from untemplate.errors import TemplateError
from untemplate.templates import ChatTemplate

PLAIN = """\
{%- for m in messages -%}
<{{ m.role }}>
{%- if m.content is string -%}
{{ m.content }}
{%- elif m.content -%}
{%- for part in m.content -%}{{ part.text }}{%- endfor -%}
{%- endif -%}
{%- for c in m.tool_calls or [] -%}
<c>{{ c.function.name }} {{ c.function.arguments if c.function.arguments is string else c.function.arguments|tojson }}</c>
{%- endfor -%}<e>
{%- endfor -%}
{%- if add_generation_prompt -%}<assistant>{%- endif -%}
"""
ARGUMENTS = "{{ c.function.arguments if c.function.arguments is string else c.function.arguments|tojson }}"


def traits(source: str) -> Traits:
    return prepare(ChatTemplate(source)).traits


def changed(old: str, new: str) -> str:
    assert old in PLAIN
    return PLAIN.replace(old, new)


def test_a_template_without_remarks() -> None:
    assert traits(PLAIN) == Traits(branches=8)


MARKED = changed(
    "{%- if m.content is string -%}\n{{ m.content }}\n",
    "{%- if m.content is string -%}\n{% generation %}{{ m.content }}{% endgeneration %}\n",
)
TAGGED = changed(ARGUMENTS, "{%- for k, v in c.function.arguments.items() -%}<{{ k }}>{{ v }}</{{ k }}>{%- endfor -%}")
QUOTED = changed(
    ARGUMENTS,
    "({%- for k, v in c.function.arguments.items() -%}{{ k }}: \"{{ v }}\"{{ ', ' if not loop.last }}{%- endfor -%})",
)
REMARKS = {
    "needs_system": (
        "{%- if messages[0].role != 'system' -%}\n{{ raise_exception('no system') }}{%- endif -%}" + PLAIN,
        Remark("needs_system", "a system message is required", 2),
    ),
    "needs_parts": (
        changed("{{ m.content }}", "{{ raise_exception('text') }}"),
        Remark("needs_parts", "content must be a list of parts", 3),
    ),
    "needs_tools": (
        "\n{%- for t in tools -%}{{ t.function.name }}{%- endfor -%}" + PLAIN,
        Remark("needs_tools", "tools are required", 2),
    ),
    "needs_text_arguments": (
        changed(ARGUMENTS, "{{ '' + c.function.arguments }}"),
        Remark("needs_text_arguments", "arguments must be JSON text", 9),
    ),
    "needs_object_arguments": (
        changed(ARGUMENTS, "{{ c.function.arguments|tojson }}"),
        Remark("needs_object_arguments", "arguments must be an object, not the JSON text that clients send", 9),
    ),
    "needs_content": (
        changed("<{{ m.role }}>\n", "<{{ m.role }}>\n{{- '' if m.content + '' -}}\n").replace("is string -%}", "is string -%}", 1),
        Remark("needs_content", "content next to calls must be empty, not null", 3),
    ),
    "needs_named_ids": (
        changed("{{ c.function.name }}", "{{ c.id }}"),
        Remark("needs_named_ids", "ids of calls must hold the name: functions.{name}:{index}", 9),
    ),
    "needs_short_ids": (
        changed("<c>", "{%- if c.id|length != 9 -%}{{ raise_exception('id') }}{%- endif -%}<c>"),
        Remark("needs_short_ids", "ids of calls must be nine letters and digits", 9),
    ),
    "refuses_system": (
        changed("<{{ m.role }}>\n", "<{{ m.role }}>\n{%- if m.role == 'system' -%}{{ raise_exception('no') }}{%- endif -%}\n"),
        Remark("refuses_system", "a system message fails: no", 3),
    ),
    "refuses_questions": (
        "{%- if messages|length > 1 and messages[1].role == 'user' -%}{{ raise_exception('alternate') }}{%- endif -%}" + PLAIN,
        Remark("refuses_questions", "a second message of the user in a row fails: alternate", 1),
    ),
    "refuses_parts": (
        changed("{%- for part in m.content -%}{{ part.text }}{%- endfor -%}", "{{ m.content }}"),
        Remark("refuses_parts", "content that is a list of text parts is written as Python writes a list", 3),
    ),
    "cuts_content": (
        changed("{{ m.content }}", "{{ m.content.split('</t>')[-1] }}"),
        Remark("cuts_content", "content before '</t>' is dropped, even where a message quotes it", 4),
    ),
    "python_values": (
        TAGGED,
        Remark("python_values", "values are written as Python writes them: True, False, None", 9),
    ),
    "bare_strings": (QUOTED, Remark("bare_strings", 'strings are put between " without escapes', 9)),
    "reads_clock": (
        "\n{{- strftime_now('%Y') -}}" + PLAIN,
        Remark("reads_clock", "the prompt depends on the date: caches of prompts end with the day", 2),
    ),
    "mask_without_end": (
        MARKED,
        Remark(
            "mask_without_end",
            "{% generation %} leaves out the end of the turn, '<e>': a model that is trained with it never stops",
            4,
        ),
    ),
    "unknown_end": (
        changed("<e>", "{{ eos_token }}"),
        Remark(
            "unknown_end",
            "answers end with eos_token, whose text is not known: an output that has it keeps it as content",
            10,
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("code", [code for code in get_args(RemarkCode) if code != "not_measured"])
def test_remark(code: str) -> None:
    source, remark = REMARKS[code]
    assert [found for found in traits(source).remarks if found.code == code] == [remark]


def test_a_mask_with_the_end() -> None:
    inside = changed("<{{ m.role }}>\n", "<{{ m.role }}>{% generation %}\n").replace(
        "<e>\n", "<e>{% endgeneration %}\n"
    )
    found = traits(inside)
    assert (found.maskable, found.remarks) == (True, ())
    assert (traits(MARKED).maskable, traits(PLAIN).maskable) == (True, False)


def test_a_block_that_marks_nothing_of_the_assistant() -> None:
    assert not traits(PLAIN + "{% generation %}{% endgeneration %}").maskable


def test_dropped_parts() -> None:
    thinking = changed(
        "{%- if m.content is", "{%- if m.thinking -%}<t>{{ m.thinking }}</t>{%- endif -%}\n{%- if m.content is"
    )
    assert traits(thinking).dropped == ()
    last = thinking.replace("if m.thinking", "if m.thinking and loop.last")
    assert traits(last).dropped == (Dropped("reasoning", "question"), Dropped("reasoning", "result"))
    assert traits(REMARKS["cuts_content"][0]).dropped == (Dropped("reasoning", "always"),)
    either = changed("{%- if m.content is", "{%- if not m.tool_calls and m.content is").replace(
        "elif m", "elif not m.tool_calls and m"
    )
    assert traits(either).dropped == (Dropped("content next to calls", "always"),)
    calls = changed("in m.tool_calls or []", "in (m.tool_calls or [] if loop.last else [])")
    assert traits(calls).dropped == (Dropped("calls", "question"),)


def test_traits_are_json() -> None:
    for source, _ in REMARKS.values():
        found = traits(source)
        assert Traits.from_dict(found.to_dict()) == found
    with pytest.raises(ValueError, match="remarks: an unknown code"):
        Traits.from_dict(
            {"prefix_breaks": [], "dropped": [], "maskable": False, "remarks": [{"code": "x", "message": "y"}]}
        )


@needs_templates
def test_lines_are_lines_of_the_template() -> None:
    for path in TEMPLATES + sorted((SHARED / "templates" / "wild").glob("trl__*.jinja")):
        try:
            template = ChatTemplate.load(path)
            remarks = prepare(template).traits.remarks
        except (AnalysisError, TemplateError):
            continue
        assert all(0 <= remark.line <= template.source.count("\n") + 1 for remark in remarks), path.name
