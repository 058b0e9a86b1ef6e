"""Ids to append after a sampled turn: they join the sampled ids to the whole conversation as the template writes it."""

from __future__ import annotations

from typing import Any

import pytest

from untemplate import OutputParser
from untemplate._internal.tokens.decoding import encode
from untemplate.errors import TemplateError
from untemplate.templates import ChatTemplate

from .real_tokenizers import KINDS, byte_level

SPECIAL = ("<|im_start|>", "<|im_end|>", "<|observation|>", "<|assistant|>", "<|user|>", "<tool_call>", "</tool_call>")
CALLS = """{%- for c in m.tool_calls or [] %}
<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>
{%- endfor %}"""
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}" + CALLS + "<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
DROPS = CHATML.replace(
    "{{ m.content or '' }}",
    "{% if loop.last and m.role != 'tool' %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content or '' }}",
)
ROLES = (
    "{% for m in messages %}{% if m.role == 'tool' %}<|observation|>{% else %}<|{{ m.role }}|>{% endif %}\n"
    "{{ m.content or '' }}" + CALLS + "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
DEPENDS = CHATML.replace("<|im_end|>\n{% endfor %}", "<|im_end|>{{ messages[1].content | length }}\n{% endfor %}")

CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}}
TURN: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": [CALL]}
RESULT = {"role": "tool", "content": "42", "tool_call_id": "a", "name": "f"}
ASKED = {"role": "user", "content": "Go"}


def parser_for(source: str, tokenizer: Any) -> OutputParser:
    parser = OutputParser.named("hermes", tokenizer=tokenizer)
    parser._template = ChatTemplate(source)
    return parser


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("source", [CHATML, ROLES], ids=["the turn has an end", "the next role ends the turn"])
@pytest.mark.parametrize("new", [[RESULT], [RESULT, RESULT], [ASKED]], ids=["result", "two results", "question"])
@pytest.mark.parametrize("ended", [True, False], ids=["whole", "cut"])
def test_the_ids_are_those_of_the_whole_conversation(source: str, new: list[dict[str, Any]], ended: bool, make: Any):
    tokenizer = make(SPECIAL)
    template = ChatTemplate(source)
    turn = TURN if new[0] is RESULT else {"role": "assistant", "content": "Done"}
    prompt = template.render([ASKED], add_generation_prompt=True)
    whole = template.render([ASKED, turn, *new], add_generation_prompt=True)
    size = len(template.render([ASKED, turn]).rstrip("\n"))
    sampled = whole[len(prompt) : size]
    if source is ROLES and ended:
        sampled += "<|observation|>" if new[0] is RESULT else "<|user|>"
    elif not ended:
        sampled = sampled.removesuffix("<|im_end|>")
    previous = encode(tokenizer, prompt + sampled)
    for messages in (None, [ASKED, turn]):
        found = parser_for(source, tokenizer).bridge(previous, new, messages=messages)
        assert (previous + found.ids, found.proof) == (encode(tokenizer, whole), "prefix")
        assert whole.endswith(found.text)


def test_a_template_that_drops_reasoning_writes_the_same_after_any_turn():
    tokenizer = byte_level(SPECIAL)
    parser = parser_for(DROPS, tokenizer)
    thought = {**TURN, "reasoning_content": "Hm."}
    bridge = parser.bridge([tokenizer.token_to_id("<|im_end|>")], [RESULT], messages=[ASKED, thought])
    assert (bridge.proof, bridge.text) == ("turn", "\n<|im_start|>tool\n42<|im_end|>\n<|im_start|>assistant\n")
    assert tokenizer.decode(bridge.ids, skip_special_tokens=False) == bridge.text


def test_text_that_depends_on_the_turn_is_not_proved():
    parser = parser_for(DEPENDS, byte_level(SPECIAL))
    assert parser.bridge([], [ASKED]).proof == "none"


def test_an_end_that_is_not_one_token_is_not_proved():
    assert parser_for(CHATML, byte_level(("<tool_call>",))).bridge([], [ASKED]).proof == "none"


@pytest.mark.parametrize(
    ("source", "new", "message"),
    [
        ("{{ messages[0].content }}<|im_end|>", [ASKED], "bridge: the template does not write the model's turn"),
        (
            CHATML.replace("{% for m in messages %}", "{% for m in messages if m.role != 'tool' %}"), [RESULT],
            "bridge: the template does not write new_messages[0]",
        ),
        (
            CHATML.replace("<|im_end|>\n{% endf", "{% if loop.last %}<|im_end|>{% endif %}\n{% endf"), [ASKED],
            "bridge: the template ends a turn in another way if messages follow",
        ),
    ],
)  # fmt: skip
def test_templates_that_cannot_be_continued(source: str, new: list[dict[str, Any]], message: str):
    with pytest.raises(TemplateError) as caught:
        parser_for(source, byte_level(SPECIAL)).bridge([], new)
    assert str(caught.value) == message


def test_misuse():
    with pytest.raises(
        ValueError, match=r"^template: the parser was not made from a template, so bridge\(\) needs one$"
    ):
        OutputParser.named("hermes", tokenizer=byte_level(SPECIAL)).bridge([], [RESULT])
    with pytest.raises(ValueError, match=r"^bridge\(\) needs a parser with a tokenizer$"):
        OutputParser.named("hermes").bridge([], [RESULT], template=ChatTemplate(CHATML))


def test_a_parser_made_from_a_template_has_one():
    parser = OutputParser.from_template(ChatTemplate(CHATML), tokenizer=byte_level(SPECIAL))
    assert parser.bridge([], [ASKED]).text == "\n<|im_start|>user\nGo<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize(
    ("messages", "ends"), [([], "no message"), ([ASKED], "role 'user'"), ([ASKED, RESULT], "role 'tool'")]
)
def test_the_conversation_must_end_with_the_sampled_turn(messages: list[dict[str, Any]], ends: str) -> None:
    """A proof about another turn would be false: the template may drop the reasoning of this one."""
    with pytest.raises(ValueError, match=r"^messages: ") as caught:
        parser_for(CHATML, byte_level(SPECIAL)).bridge([], [RESULT], messages=messages)
    assert str(caught.value) == f"messages: must end with the sampled turn, of role 'assistant'; ends with {ends}"
