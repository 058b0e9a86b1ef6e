# ruff: noqa: E501  (templates read better unbroken)
"""What templates insist on is met by probing; what is no template, or a hostile one, is a clear error."""

from __future__ import annotations

import pytest

from untemplate import OutputParser
from untemplate.analysis import Analysis, AnalysisError, prepare
from untemplate.analysis._cache import analyze
from untemplate.analysis._pipeline import analyze_template
from untemplate.format import Format, Marker, NamedBody, TaggedArguments, Tools, Turn
from untemplate.templates import ChatTemplate, TemplateError

HEAD = "{%- for m in messages -%}"
TURN = (
    "{%- if m.role == 'assistant' -%}<a>{{- m.content or '' -}}"
    '{%- for c in m.tool_calls or [] -%}<go>{{- \'{"name": "\' + c.function.name + \'", "arguments": \' -}}'
    "ARGUMENTS{{- '}' -}}</go>{%- endfor -%}<e>"
    "{%- else -%}<{{ m.role }}>{{ m.content }}<e>{%- endif -%}{%- endfor -%}{%- if add_generation_prompt -%}<a>{%- endif -%}"
)
OBJECT = TURN.replace("ARGUMENTS", "{{- c.function.arguments|tojson -}}")
TEXT = TURN.replace("ARGUMENTS", "{{- '' + c.function.arguments -}}")


def analysed(source: str) -> Analysis:
    return analyze_template(ChatTemplate(source))


QUIRKS = {
    "arguments as text": HEAD + TEXT,
    "a system message is required": "{%- if messages[0].role != 'system' -%}{{ raise_exception('no system') }}{%- endif -%}"
    + HEAD
    + OBJECT,
    "roles alternate": HEAD
    + "{%- if m.role != 'tool' and not m.tool_calls and (m.role == 'user') != (loop.index0 % 2 == 0) -%}"
    + "{{ raise_exception('alternate') }}{%- endif -%}"
    + OBJECT,
    "tools are required": "{%- for t in tools -%}{{- t.function.name -}}{%- endfor -%}" + HEAD + OBJECT,
    "a variable is required": "{{- 'On ' + date_of_today + '\\n' -}}" + HEAD + OBJECT,
    "content must not be null": HEAD + "{%- set x = '' + m.content -%}" + OBJECT,
    "content must be null with calls": HEAD
    + "{%- if m.tool_calls and m.content is not none -%}{{ raise_exception('both') }}{%- endif -%}"
    + OBJECT,
    "ids of nine characters": HEAD
    + "{%- for c in m.tool_calls or [] -%}{%- if c.id|length != 9 -%}{{ raise_exception('id') }}{%- endif -%}{%- endfor -%}"
    + OBJECT,
    "a prompt that is always there": HEAD + OBJECT.replace("{%- if add_generation_prompt -%}<a>{%- endif -%}", "<a>"),
    "tools behind the conversation": HEAD + OBJECT.replace("{%- if add_gen", "<system>Write JSON.<e>{%- if add_gen"),
}


@pytest.mark.parametrize("quirk", QUIRKS)
def test_quirk_is_met(quirk: str) -> None:
    analysis = analysed(QUIRKS[quirk])
    assert analysis.certificate.certified, analysis.certificate.failed
    assert analysis.certificate.capabilities["calls"] == "yes"


def test_several_ways_to_say_reasoning() -> None:
    for key in ("reasoning_content", "reasoning", "thinking", "thought"):
        source = HEAD + "{%- if m." + key + " -%}<r>{{- m." + key + " -}}</r>{%- endif -%}" + OBJECT
        analysis = analysed(source)
        # Reasoning comes before the turn's own header here: nobody could parse that, and the certificate does not claim
        # to.
        assert analysis.certificate.capabilities["content"] == "yes"


def test_what_cannot_be_expressed_is_no_failure() -> None:
    analysis = analysed(HEAD + "<{{ m.role }}>{{ m.content }}<e>{%- endfor -%}<assistant>")
    assert analysis.certificate.certified
    assert analysis.certificate.capabilities["calls"] == "no"
    assert analysis.result.to_dict()["supports_tools"] is False


def test_quotes_that_a_template_does_not_escape_are_its_own_limit() -> None:
    source = OBJECT.replace(
        '<go>{{- \'{"name": "\' + c.function.name + \'", "arguments": \' -}}', "<go>{{- c.function.name + '(' -}}"
    )
    pieces = "{%- for k, v in c.function.arguments.items() -%}{{- k + '=' + (\"'\" + v + \"'\" if v is string else v|string) -}}{{- ', ' if not loop.last else '' -}}{%- endfor -%}"
    source = source.replace("{{- c.function.arguments|tojson -}}{{- '}' -}}", pieces + "{{- ')' -}}")
    analysis = analysed(HEAD + source)
    assert analysis.result.variant == "pythonic"
    assert analysis.certificate.certified, analysis.certificate.failed
    assert analysis.certificate.capabilities["awkward_strings"] == "cannot say"


SWITCH = """\
{%- set ns = namespace(on=true) -%}
{%- for m in messages -%}
{%- if '<|think_off|>' in (m.content or '') -%}{%- set ns.on = false -%}{%- endif -%}
{%- if '<|think_on|>' in (m.content or '') -%}{%- set ns.on = true -%}{%- endif -%}
{%- endfor -%}
{%- for m in messages -%}
{%- set content = (m.content or '') | replace('<|think_off|>', '') | replace('<|think_on|>', '') -%}
{%- if m.role == 'assistant' -%}
{%- set content = content.split('</think>')[-1].lstrip('\\n') -%}
{%- endif -%}
<|im_start|>{{ m.role }}
{{ content }}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant
{{ '<think>\\n' if ns.on else '<think>\\n\\n</think>\\n\\n' }}{%- endif -%}
"""


def test_a_control_switch_does_not_close_reasoning() -> None:
    analysis = analysed(SWITCH)
    assert analysis.certificate.certified
    assert [r.message for r in analysis.certificate.traits.remarks if r.code == "cuts_content"] == [
        "content before '</think>' is dropped, even where a message quotes it"
    ]
    prompt = ChatTemplate(SWITCH).render([{"role": "user", "content": "Hi"}], add_generation_prompt=True)
    parsed = OutputParser.from_template(SWITCH).parse("I think.\n</think>\n\nYes.<|im_end|>", prompt=prompt)
    assert (parsed.reasoning, parsed.content) == ("I think.", "Yes.")


NO_HEADER = """\
{%- set ns = namespace(side='') -%}
{%- for m in messages -%}
{%- if (m.role == 'assistant') != (ns.side == 'model') -%}
{%- if ns.side -%}{{- '<|over|>\\n' -}}{%- endif -%}
{%- set ns.side = 'model' if m.role == 'assistant' else 'other' -%}
{%- endif -%}
{%- if m.role == 'assistant' -%}
{%- if m.thinking -%}{{- '<|muse|>\\n' + m.thinking + '\\n' -}}{%- endif -%}
{%- if m.content -%}{{- '<|say|>\\n' + m.content + '\\n' -}}{%- endif -%}
{%- for c in m.tool_calls or [] -%}
{{- '<|do|>\\n{"name":"' + c.function.name + '","arguments":' + (c.function.arguments|tojson) + '}\\n' -}}
{%- endfor -%}
{%- else -%}{{- '<|' + m.role + '|>\\n' + m.content + '\\n' -}}{%- endif -%}
{%- endfor -%}
{{- '<|over|>\\n' -}}{{- '' if add_generation_prompt else eos_token -}}
"""


def test_the_model_chooses_its_own_header() -> None:
    analysis = analysed(NO_HEADER)
    found = analysis.certificate.capabilities
    assert analysis.certificate.certified, analysis.certificate.failed
    assert {
        a: found[a] for a in ("content", "reasoning", "calls", "parallel_calls", "content_with_calls")
    } == dict.fromkeys(("content", "reasoning", "calls", "parallel_calls", "content_with_calls"), "yes")
    prompt = ChatTemplate(NO_HEADER).render([{"role": "user", "content": "Hi"}], add_generation_prompt=True)
    parsed = OutputParser.from_template(NO_HEADER).parse(
        '<|muse|>\nHm.\n<|do|>\n{"name":"f","arguments":{}}\n', prompt=prompt
    )
    assert (parsed.reasoning, parsed.content) == ("Hm.", None)
    assert [(c.function.name, c.function.arguments) for c in parsed.tool_calls or []] == [("f", "{}")]


def test_a_template_without_a_generation_prompt() -> None:
    source = HEAD + "{{- '<' + m.role + '>' + m.content + '<e>\n' -}}{%- endfor -%}"
    prompt = ChatTemplate(source).render([{"role": "user", "content": "Hi"}], add_generation_prompt=True)
    parsed = OutputParser.from_template(source).parse("<assistant>Yes.<e>\n", prompt=prompt)
    assert parsed.content == "Yes."


def test_a_prompt_that_a_variable_prefixes_with_another_turn() -> None:
    source = HEAD + OBJECT.replace(
        "<a>{%- endif -%}", "{%- if remind -%}<system>Call.<e>{%- endif -%}<a>{{- remind -}}{%- endif -%}"
    )
    analysis = analysed(source)
    assert analysis.certificate.certified, analysis.certificate.failed
    assert analysis.format.turn.start is not None
    assert analysis.format.turn.start.text == "<a>"
    assert analysis.format.reasoning is None


@pytest.mark.parametrize(("ahead", "behind"), [("", "\\n"), ("\\n", ""), ("\\n", "\\n\\n")])
def test_values_with_other_newlines_before_than_after(ahead: str, behind: str) -> None:
    pieces = "{%- for k, v in c.function.arguments.items() -%}{{- '<arg=' + k + '>AHEAD' + (v if v is string else v|tojson) + 'BEHIND</arg>\n' -}}{%- endfor -%}"
    start = '{{- \'{"name": "\' + c.function.name + \'", "arguments": \' -}}'
    source = OBJECT.replace(start, "{{- '<f=' + c.function.name + '>\n' -}}").replace("{{- '}' -}}", "{{- '</f>\n' -}}")
    source = HEAD + source.replace(
        "{{- c.function.arguments|tojson -}}", pieces.replace("AHEAD", ahead).replace("BEHIND", behind)
    )
    analysis = analysed(source)
    assert analysis.certificate.certified, analysis.certificate.failed
    assert analysis.certificate.capabilities["awkward_strings"] == "yes"


def test_the_end_of_a_turn_after_a_call() -> None:
    source = HEAD + OBJECT.replace("<go>", "GO NOW: ").replace("</go>", " THEN GO\n")
    parser = OutputParser.from_template(source)
    assert parser.certificate is not None
    assert parser.certificate.certified, parser.certificate.failed
    parsed = parser.parse('GO NOW: {"name": "f", "arguments": {}} THEN GO<e>', prompt="<user>Hi<e><a>")
    assert parsed.content is None
    assert [c.function.name for c in parsed.tool_calls or []] == ["f"]
    assert parsed.diagnostics == []


@pytest.mark.parametrize(
    "written",
    [
        "{{- '<![CDATA[' + v + ']]>' if '<' in v|string or '&' in v|string or '\\n' in v|string else v|tojson if v is not string else v -}}",
        "{{- (v if v is string else v|tojson)|e -}}",
    ],
)
def test_values_that_are_escaped_as_in_xml(written: str) -> None:
    pieces = (
        "{%- for k, v in c.function.arguments.items() -%}{{- '<arg=' + k + '>' -}}"
        + written
        + "{{- '</arg>' -}}{%- endfor -%}"
    )
    start = '{{- \'{"name": "\' + c.function.name + \'", "arguments": \' -}}'
    source = OBJECT.replace(start, "{{- '<f=' + c.function.name + '>' -}}").replace("{{- '}' -}}", "{{- '</f>' -}}")
    analysis = analysed(HEAD + source.replace("{{- c.function.arguments|tojson -}}", pieces))
    assert analysis.certificate.certified, analysis.certificate.failed
    assert analysis.certificate.capabilities["awkward_strings"] == "yes"


# -- Bad input ----------------------------------------------------------------------------------------------------


def test_a_call_that_is_only_recovered_does_not_come_back() -> None:
    call, rest = OBJECT.index("{%- for c"), OBJECT.index("{%- endfor -%}<e>")
    tags = (
        "{%- for c in m.tool_calls or [] -%}{{- '<go ' + c.function.name + '>' -}}{%- for k, v in c.function.arguments.items() -%}"
        "<k>{{- k -}}</k>{{- v if v is string else v|tojson -}}</v></v>{%- endfor -%}</go>"
    )
    arguments = TaggedArguments(key_open=Marker("<k>"), key_close=Marker("</k>"), value_close=Marker("</v>"))
    body = NamedBody(name_close=Marker(">"), arguments=arguments)
    fmt = Format(
        name="single",
        turn=Turn(start=Marker("<a>"), end=Marker("<e>")),
        tools=(Tools(call_open=Marker("<go "), call_close=Marker("</go>"), body=body),),
    )
    certificate = prepare(ChatTemplate(HEAD + OBJECT[:call] + tags + OBJECT[rest:])).certify(fmt)
    assert certificate.capabilities["calls"] == "failed"
    assert "as recovered" in certificate.failed[0].problem


def test_one_that_always_raises() -> None:
    with pytest.raises(AnalysisError, match=r"renders no conversation: .*never"):
        analysed("{{ raise_exception('never') }}")


def test_one_of_an_embedding_model() -> None:
    template = (
        "{% if messages | length > 1 %}{{ raise_exception('one message at a time') }}{% endif %}"
        "{{ bos_token }}passage: {{ messages[0].content }}"
    )
    with pytest.raises(AnalysisError) as caught:
        analysed(template)
    assert str(caught.value) == (
        "not a chat template: it writes no assistant's message: TemplateRaised: template, line 1: one message at a time"
    )


def test_one_that_ignores_its_messages() -> None:
    with pytest.raises(AnalysisError, match="does not show up"):
        analysed("Hello!")


def test_not_a_template() -> None:
    with pytest.raises(TemplateError):
        analyze("{% if %}")
    with pytest.raises(TemplateError):
        analyze("just\ntext")


@pytest.mark.parametrize(
    "source",
    [
        "{%- for i in range(99999) -%}{%- for j in range(99999) -%}{{ i }}{%- endfor -%}{%- endfor -%}",
        "{%- macro f(x) -%}{{ f(x) }}{%- endmacro -%}{{ f(1) }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ 'x' * 10**9 }}",
    ],
)
def test_hostile_templates_end(source: str) -> None:
    with pytest.raises((AnalysisError, TemplateError)):
        analysed(source + HEAD + OBJECT)


def test_ten_megabytes() -> None:
    with pytest.raises(TemplateError):
        analyze("{{ messages }}" + "x" * 10_000_000)


def test_chance_and_the_clock_are_survived() -> None:
    analysis = analysed("{{- range(9)|random -}}{{- strftime_now('%f') -}}" + HEAD + OBJECT)
    assert analysis.certificate.capabilities["content"] == "yes"


def test_from_template_says_what_is_wrong() -> None:
    with pytest.raises(AnalysisError):
        OutputParser.from_template("{{ raise_exception('no') }}")
