# ruff: noqa: E501  (templates read better unbroken)
"""Select the Format of a model: the order of candidates, and the evidence."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from tests.gguf_writer import write_gguf
from tests.public import SHARED, needs_wild
from untemplate import OutputParser
from untemplate.analysis._certify import Certificate
from untemplate.analysis._checks import Finding
from untemplate.format import Format, JsonBody, Marker, Tools
from untemplate.formats import UnknownFormatError, lookup, named
from untemplate.selection import Selection, Source, Tried, _uncertified, _with_reasoning, select, suggested

HERMES = (
    "{%- for m in messages -%}{{- '<|im_start|>' + m.role + '\\n' + (m.content or '') -}}"
    '{%- for c in m.tool_calls or [] -%}{{- \'\\n<tool_call>\\n{"name": "\' + c.function.name + \'", "arguments": \' -}}'
    "{{- c.function.arguments|tojson + '}\\n</tool_call>' -}}{%- endfor -%}{{- '<|im_end|>\\n' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
)
OTHER = HERMES.replace("tool_call>", "action>")


def model(folder: Path, template: str | None, **config: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    if template is not None:
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def test_an_enforced_name_wins() -> None:
    selection = select("Qwen/Qwen3-8B", enforce="mistral")
    assert selection.source == "enforced"
    assert selection.format.name == "mistral"
    assert select(enforce="hermes", reasoning="deepseek_r1").format.reasoning is not None


def test_a_wrong_enforced_name_lists_the_valid_ones() -> None:
    with pytest.raises(
        UnknownFormatError, match=r"unknown format 'mistrall'; did you mean 'mistral'.*valid names: .*passthrough"
    ):
        select("Qwen/Qwen3-8B", enforce="mistrall")


def test_the_catalogue_comes_before_analysis_where_it_certifies(tmp_path: Path) -> None:
    selection = select(model(tmp_path / "Qwen2.5-7B-Instruct", HERMES))
    assert (selection.source, selection.chosen.name) == ("catalogue", "hermes")
    assert selection.certificate is not None
    assert selection.certificate.certified
    assert not selection.warning


def test_an_entry_that_does_not_certify_gives_way_to_analysis(tmp_path: Path) -> None:
    selection = select(model(tmp_path / "Qwen2.5-7B-Instruct", OTHER))
    assert selection.source == "analysis"
    assert selection.format.tools[0].call_open is not None
    assert "<action>" in selection.format.tools[0].call_open.text
    assert selection.runner_up is not None
    assert selection.runner_up.name == "hermes"
    assert "not certified: calls" in selection.runner_up.remark


def test_a_response_template_comes_first(tmp_path: Path) -> None:
    folder = model(tmp_path / "some-model", HERMES)
    shipped = {"version": 99, "nonsense": True}
    selection = select(folder, response_template=shipped)
    assert selection.tried[0].source == "response-template"
    assert selection.tried[0].format is None
    assert "cannot be translated to a Format" in selection.tried[0].remark
    assert selection.source == "catalogue"


def test_model_type_suggests(tmp_path: Path) -> None:
    names = [name for name, _, _ in suggested(None, "kimi_k2")]
    assert names == ["kimi_k2"]
    folder = model(tmp_path / "finetune", HERMES, model_type="hermes")
    assert select(folder).chosen.name == "hermes"


def test_without_a_template_the_entry_is_used_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = model(tmp_path / "Qwen2.5-7B-Instruct", None)
    with caplog.at_level(logging.WARNING, logger="untemplate"):
        selection = select(folder)
    assert (selection.source, selection.chosen.name) == ("catalogue", "hermes")
    assert selection.warning.startswith("there is no chat template; catalogue 'hermes' is used: ")
    assert selection.warning in caplog.text
    assert any("no usable template" in note for note in selection.notes)


def test_nothing_known_passes_through(tmp_path: Path) -> None:
    selection = select(model(tmp_path / "nobody", None))
    assert selection.source == "passthrough"
    assert selection.warning


def test_nothing_given() -> None:
    with pytest.raises(ValueError, match="needs a model, a template or a name"):
        select()


def test_the_most_specific_pattern_comes_first() -> None:
    assert next(iter(suggested("Qwen/Qwen3-Coder-30B-A3B-Instruct", None)))[0] == "qwen3_coder+qwen3"
    assert not list(suggested("nobody/nothing", None))


def test_for_model_keeps_the_evidence(tmp_path: Path) -> None:
    parser = OutputParser.for_model(model(tmp_path / "Qwen2.5-7B-Instruct", HERMES))
    assert parser.selection is not None
    assert parser.selection.source == "catalogue"
    assert parser.certificate is parser.selection.certificate
    assert json.loads(json.dumps(parser.selection.to_dict()))["chosen"]["certified"] is True
    assert isinstance(parser.format, Format)
    assert OutputParser.named("hermes").certificate is None


def test_for_model_takes_an_enforced_name(tmp_path: Path) -> None:
    parser = OutputParser.for_model(tmp_path, enforce="mistral", reasoning="mistral")
    assert parser.format.reasoning is not None


THINKING = HERMES.replace(
    "(m.content or '')",
    "('<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' if m.reasoning_content else '') + (m.content or '')",
)


def test_enforced_calls_keep_the_reasoning_that_is_selected(tmp_path: Path) -> None:
    folder = model(tmp_path / "Qwen3-8B", THINKING)
    chosen = select(folder).format
    assert chosen.reasoning is not None
    selection = select(folder, enforce="mistral_v3")
    assert selection.format.reasoning == chosen.reasoning
    assert (selection.format.name, selection.format.tools) == ("mistral_v3", lookup("tool", "mistral_v3").format.tools)
    assert selection.chosen.remark.startswith("enforced by the operator, with the reasoning of ")


@pytest.mark.parametrize("name", ["glm45", "passthrough"])
def test_an_enforced_format_with_reasoning_or_without_calls_is_used_as_it_is(tmp_path: Path, name: str) -> None:
    folder = model(tmp_path / "Qwen3-8B", THINKING)
    assert select(folder, enforce=name).format == named(name)


def test_enforced_calls_that_do_not_fit_the_reasoning_are_used_alone(tmp_path: Path) -> None:
    """Both formats give ``<think>`` a meaning."""
    clash = Format(
        name="clash", tools=(Tools(body=JsonBody(), call_open=Marker("<think>"), call_close=Marker("</x>")),)
    )
    selection = _with_reasoning(
        Selection(Tried("enforced", "clash", clash, None, "enforced by the operator")),
        select(model(tmp_path / "Qwen3-8B", THINKING)),
    )
    assert selection.format == clash
    assert selection.notes[0].startswith("reasoning ")


def test_an_analysis_that_certifies_in_part_comes_before_an_entry_that_reads_no_calls(tmp_path: Path) -> None:
    numbers_as_text = (
        "{%- for m in messages -%}<{{ m.role }}>{{ m.content or '' }}"
        """{%- for c in m.tool_calls or [] -%}<c>{"name": "{{ c.function.name }}", "arguments": {{ '{' }}"""
        "{%- for k, v in c.function.arguments.items() -%}"
        '"{{ k }}": "{{ v }}"{{ ", " if not loop.last else "" }}{%- endfor -%}{{ "}}" }}</c>{%- endfor -%}'
        "<e>{%- endfor -%}{%- if add_generation_prompt -%}<assistant>{%- endif -%}"
    )
    folder = model(tmp_path / "mine", numbers_as_text)
    selection = select(folder, model_type="qwen3")
    assert (selection.source, selection.chosen.reads_calls, selection.chosen.certified) == ("analysis", True, False)
    assert "no format certifies against the model's chat template; analysis" in selection.warning


def test_an_analysis_that_reads_too_little_does_not_displace_the_catalogue() -> None:
    """Although it reads calls and the entry reads none: below the least score, only entries are used."""

    def tried(source: Source, calls: Finding, score: float) -> Tried:
        return Tried(source, source, named("hermes"), Certificate({"calls": calls}, score), "")

    selection = _uncertified([tried("catalogue", "failed", 0.6), tried("analysis", "yes", 0.4)], [], measured=True)
    assert (selection.source, selection.runner_up and selection.runner_up.source) == ("catalogue", "analysis")


@needs_wild
def test_an_analysis_that_reads_much_more_is_preferred_to_the_catalogue() -> None:
    """This template writes all values in quotes, which the catalogue's entries take for strings."""
    template = SHARED / "templates" / "wild" / "vllm__tool_chat_template_llama4_pythonic.jinja"
    chosen = select("meta-llama/Llama-4-Scout-17B-16E-Instruct", template=template)
    assert (chosen.source, [(tried.name, round(tried.score, 2)) for tried in chosen.tried[:2]]) == (
        "analysis",
        [("llama4_json", 0.18), ("llama4_pythonic", 0.68)],
    )
    tool = {"type": "function", "function": {"name": "f", "parameters": {"properties": {"n": {"type": "integer"}}}}}
    parsed = OutputParser.from_format(chosen.format).parse('[f(n="3")]', tools=[tool])
    assert [(call.function.name, call.function.arguments) for call in parsed.tool_calls] == [("f", '{"n": 3}')]


def test_a_broken_template_is_not_reported_as_missing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "chat_template.jinja").write_text("{% for %}")
    select(tmp_path)
    assert caplog.messages[-1].startswith("the chat template cannot be used; passthrough 'passthrough' is used: ")
    assert f"the template is broken: {tmp_path / 'chat_template.jinja'}, line 1: not a template" in caplog.messages[-1]


def test_a_gguf_file_is_of_the_type_that_its_architecture_names(tmp_path: Path) -> None:
    path = tmp_path / "some.gguf"
    write_gguf(path, {"tokenizer.chat_template": HERMES, "general.architecture": "qwen3"})
    found = select(path)
    folder = select(model(tmp_path / "folder", HERMES, model_type="qwen3"))
    assert (found.source, found.chosen.name) == (folder.source, folder.chosen.name)
    assert [(tried.source, tried.name) for tried in found.tried] == [(t.source, t.name) for t in folder.tried]
    assert any("model type qwen3" in tried.remark for tried in found.tried)


CODER = """
{%- if tools %}<|im_start|>system
Call as <tool_call>.<|im_end|>
{% endif %}
{%- for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + (m.content or '') }}
{%- for c in m.tool_calls or [] %}{{ '\\n<tool_call>\\n<function=' + c.function.name + '>\\n' }}
{%- for k, v in c.function.arguments.items() %}
{{- '<parameter=' + k + '>\\n' + (v if v is string else v | tojson) + '\\n</parameter>\\n' }}{% endfor %}
{{- '</function>\\n</tool_call>' }}{% endfor %}
{{- '<|im_end|>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
WITHOUT_ITS_OPENER = "<function=add>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>"


@pytest.mark.parametrize("config", [{}, {"model_type": "qwen3_moe"}])
def test_a_fine_tune_of_another_name_gets_the_entry_with_the_markers_of_its_template(
    tmp_path: Path, config: dict[str, str]
) -> None:
    """The type of Qwen3-Coder suggests hermes, and no template shows the calls that it writes without their opener."""
    folder = model(tmp_path / "ours-v2", CODER, **config)
    selection = select(folder)
    assert (selection.source, selection.chosen.name) == ("catalogue", "qwen3_coder")
    assert selection.chosen.remark == "its calls have the markers of the template; certified"
    assert [call.function.name for call in OutputParser.for_model(folder).parse(WITHOUT_ITS_OPENER).tool_calls] == [
        "add"
    ]


def test_the_reasoning_of_such_an_entry_is_the_inferred_one(tmp_path: Path) -> None:
    template = CODER.replace(
        "'\\n' + (m.content or '') }}",
        "'\\n' + ('<thought>\\n' + m.reasoning_content + '\\n</thought>\\n\\n' if m.reasoning_content else '')"
        " + (m.content or '') }}",
    )
    parser = OutputParser.for_model(model(tmp_path / "ours-v3", template))
    parsed = parser.parse("<thought>\nA\n</thought>\n\n" + WITHOUT_ITS_OPENER)
    assert (parsed.reasoning or "").strip() == "A"
    assert [call.function.name for call in parsed.tool_calls] == ["add"]
    assert parser.format.name.startswith("qwen3_coder+inferred-")


def test_the_analysis_is_kept_where_the_entry_reads_less(tmp_path: Path) -> None:
    template = HERMES.replace('"name"', '"tool"')
    selection = select(model(tmp_path / "ours-v4", template))
    assert (selection.source, selection.certificate.certified if selection.certificate else None) == ("analysis", True)
    assert "hermes" in [tried.name for tried in selection.tried]
