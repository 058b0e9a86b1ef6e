"""Ends of turns with text after their tag, headers without a channel, and reasons of what cannot be said."""

from __future__ import annotations

import pytest

from untemplate import OutputParser
from untemplate.format import Marker

MESSAGES = "{% for m in messages %}<|start|>{{ m.role }}"
PROMPT = "{% if add_generation_prompt %}<|start|>assistant{% endif %}"
OLD_HARMONY = (
    "{% for m in messages %}{% if m.role == 'assistant' and m.tool_calls %}"
    "{% if m.content %}<|start|>assistant<|channel|>analysis<|message|>{{ m.content }}<|end|>{% endif %}"
    "<|start|>assistant to=functions.{{ m.tool_calls[0].function.name }}<|channel|>commentary json<|message|>"
    "{{ m.tool_calls[0].function.arguments | tojson }}<|call|>"
    "{% elif m.role == 'assistant' and m.thinking %}"
    "<|start|>assistant<|channel|>analysis<|message|>{{ m.thinking }}<|end|>"
    "<|start|>assistant<|channel|>final<|message|>{{ m.content }}<|return|>"
    "{% elif m.role == 'assistant' %}<|start|>assistant<|message|>{{ m.content }}"
    "{{ '<|return|>' if loop.last and not add_generation_prompt else '<|end|>' }}"
    "{% elif m.role == 'tool' %}<|start|>functions to=assistant<|message|>{{ m.content }}<|end|>"
    "{% else %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endif %}{% endfor %}" + PROMPT
)


@pytest.mark.parametrize(
    ("end", "written"),
    [("<|im_end|>\\n\n", "<|im_end|>"), ("\n<|EOT|>\n### ", "\n<|EOT|>"), ("<|im_end|>\n", "<|im_end|>")],
)
def test_a_model_stops_at_the_tag_of_the_end(end: str, written: str) -> None:
    """The template writes more after the tag, which no model does."""
    template = (
        f"{{% for m in messages %}}[[{{{{ m.role }}}}]]{{{{ m.content }}}}{end}{{% endfor %}}"
        "{% if add_generation_prompt %}[[assistant]]{% endif %}"
    )
    parser = OutputParser.from_template(template, cache=False)
    assert parser.certificate is not None
    assert parser.certificate.certified
    for output in (f"Hello.{written}", f"Hello.{end}", "Hello."):
        assert (parser.parse(output).content or "").strip() == "Hello.", output


def test_answers_whose_header_has_no_channel() -> None:
    """Only an answer after reasoning has the channel: the calls of the template are messages all the same."""
    parser = OutputParser.from_template(OLD_HARMONY, cache=False)
    assert parser.certificate is not None
    assert parser.certificate.certified
    assert parser.format.channels is not None
    call = '<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{"a": 1}<|call|>'
    parsed = parser.parse(f"<|channel|>analysis<|message|>I look.<|end|>{call}")
    assert (parsed.reasoning, parsed.content) == ("I look.", None)
    assert [(one.function.name, one.function.arguments) for one in parsed.tool_calls] == [("f", '{"a": 1}')]
    assert parser.parse("<|message|>Hello.<|end|>").content == "Hello."
    found = [str(remark) for remark in parser.certificate.traits.remarks if remark.code == "not_measured"]
    assert found == ["content_with_calls: content before a call is written as reasoning is"]


def test_the_reasons_of_what_cannot_be_said() -> None:
    template = (
        MESSAGES + "|>{{ m.content or '' }}{% for c in m.tool_calls or [] %}[{{ c.function.name }}("
        "{% for k, v in c.function.arguments.items() %}{{ k }}='{{ v }}'{{ ', ' if not loop.last }}{% endfor %})]"
        "{% endfor %}<|end|>{% endfor %}{% if add_generation_prompt %}<|start|>assistant|>{% endif %}"
    )
    certificate = OutputParser.from_template(template, cache=False).certificate
    assert certificate is not None
    assert certificate.capabilities["awkward_strings"] == "cannot say"
    found = [str(remark) for remark in certificate.traits.remarks if remark.code == "not_measured"]
    reasons = "values are written without quotes, or in quotes that they hold themselves"
    assert any(one.endswith(reasons) and "awkward_strings" in one for one in found), found


NO_PROMPT = (
    "{% for m in messages %}{% if m.role == 'assistant' %}BOT: {{ m.content or '' }}"
    "{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}<end>\n"
    "{% else %}{{ m.role | upper }}: {{ m.content }}\n{% endif %}{% endfor %}"
)


def test_a_header_that_the_model_writes() -> None:
    """No prompt has the header: outputs begin with it, and it is not content."""
    parser = OutputParser.from_template(NO_PROMPT, cache=False)
    assert parser.certificate is not None
    assert parser.certificate.certified
    assert (parser.format.turn.start, parser.format.turn.in_output) == (Marker("BOT: "), True)
    history = "USER: Hi.\nBOT: Hello.<end>\nUSER: <call> is what?\n"
    call = '<call>{"name": "f", "arguments": {}}</call>'
    for prompt in (None, "USER: Hi.\n", history, history + "BOT: "):
        for output, content, names in (
            ("BOT: It is BOT: 5.<end>", "It is BOT: 5.", []),
            ("It is BOT: 5.<end>", "It is BOT: 5.", []),
            ("BOT: BOT: 5", "BOT: 5", []),
            (f"BOT: {call}", None, ["f"]),
            (f" \nBOT: Wait.{call}<end>", "Wait.", ["f"]),
        ):
            parsed = parser.parse(output, prompt=prompt)
            assert (parsed.content, [c.function.name for c in parsed.tool_calls]) == (content, names), (prompt, output)
            stream = parser.stream(prompt=prompt, collect=True)
            for character in output:
                stream.feed(character)
            stream.finish("stop")
            streamed = stream.result()
            assert (streamed.content, len(streamed.tool_calls)) == (content, len(names)), (prompt, output)
    assert parser.render({"role": "assistant", "content": "Hello."}) == "Hello."
    assert parser.expressible({"role": "assistant", "content": "BOT: Hello."}) == "marker_in_content"


def test_a_header_that_only_some_prompts_have() -> None:
    """After the result of a call, the prompt has no header."""
    template = (
        "{% for m in messages %}{% if m.role == 'tool' %}<result>{{ m.content }}</result>"
        "{% elif m.role == 'assistant' %}  <bot>{{ m.content or '' }}"
        "{% for c in m.tool_calls or [] %}<call>{{ c.function | tojson }}</call>{% endfor %}<end>"
        "{% else %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt and messages[-1].role != 'tool' %}<bot>{% endif %}"
    )
    parser = OutputParser.from_template(template, cache=False)
    assert parser.certificate is not None
    assert parser.certificate.certified
    assert parser.parse("  <bot>Hello.<end>", prompt="<user>Hi<result>5</result>").content == "Hello."
    assert parser.parse("Hello.<end>", prompt="<user>Hi<bot>").content == "Hello."


DOUBLED = (
    "{% for m in messages %}<<role {{ m.role }}>>{% if m.role == 'assistant' %}"
    "{% if m.reasoning_content %}<<think>>{{ m.reasoning_content }}<<done>>{% endif %}{{ m.content or '' }}"
    "{% for c in m.tool_calls or [] %}<<call {{ c.function.name }}>>{{ c.function.arguments | tojson }}<<end>>"
    "{% endfor %}{% else %}{{ m.content }}{% endif %}<<eot>>{% endfor %}"
    "{% if add_generation_prompt %}<<role assistant>>{% endif %}"
)


@pytest.mark.parametrize(("left", "right"), [("<<", ">>"), ("[[", "]]"), ("««", "»»"), ("<<<", ">>>"), ("<|", "|>")])
def test_doubled_brackets_belong_to_their_tag(left: str, right: str) -> None:
    words = ("eot", "think", "done", "end")
    tags = [f"{left}{word}{right}" for word in words]

    class Tokenizer:
        def get_vocab(self) -> dict[str, int]:
            return {"a": 0, **{tag: number for number, tag in enumerate(tags, 1)}}

    template = DOUBLED.replace("<<", left).replace(">>", right)
    parser = OutputParser.from_template(template, cache=False, tokenizer=Tokenizer())
    assert parser.certificate is not None
    assert parser.certificate.certified
    assert parser.format.special_tokens == tuple(tags)
    assert parser.format.tools[0].call_open == Marker(f"{left}call ")
    parsed = parser.parse_tokens([2, 0, 3, 0, 0, 1]).output
    assert (parsed.reasoning, parsed.content) == ("a", "aa")
