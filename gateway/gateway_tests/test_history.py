"""History in the shape that the model's template needs: arguments, ids, content, roles, thinking."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.public import TEMPLATES, needs_templates
from untemplate import OutputParser
from untemplate.templates import ChatTemplate, TemplateError
from untemplate.templates._history import TemplateNeeds, template_needs
from untemplate_gateway.errors import ApiError
from untemplate_gateway.generation import Generation, Thinking
from untemplate_gateway.manager.model import Model
from untemplate_gateway.prompt import guarded, make_prompt, make_prompts

from .scripted import TEMPLATE, Scripted

CALL = {"id": "call_abcdef", "type": "function", "function": {"name": "f", "arguments": '{"x": "käse \\"y\\""}'}}
CONVERSATION: list[dict[str, Any]] = [
    {"role": "user", "content": "First."},
    {"role": "assistant", "content": None, "reasoning_content": "Hm.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_abcdef", "content": "Result."},
]
PARAMETERS = {"type": "object", "properties": {"x": {"type": "string", "description": "x"}}}
TOOLS = [{"type": "function", "function": {"name": "f", "description": "does", "parameters": PARAMETERS}}]


def model(source: str, format: str = "hermes") -> Model:
    return Model(name="m", engine=Scripted(""), parser=OutputParser.named(format), template=ChatTemplate(source))


def prompt(source: str, messages: list[dict[str, Any]], format: str = "hermes", **fields: Any) -> str:
    made = make_prompt(model(source, format), Generation(messages=messages, **fields))
    assert isinstance(made.text, str)
    return made.text


MESSAGES = "{% for m in messages %}[{{ m.role }}]{% if m.content is not none %}{{ m.content }}{% endif %}"
CALLS = "{% for c in m.tool_calls or [] %}<{{ c.id }} {{ c.function.name }} {% endfor %}"
END = "{% endfor %}"


class TestTemplateNeeds:
    def test_arguments_as_objects(self) -> None:
        body = "{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}"
        source = MESSAGES + body + END
        assert template_needs(ChatTemplate(source)).arguments == "object"
        assert 'f{"x": "käse \\"y\\""}' in prompt(source, CONVERSATION)

    def test_arguments_as_text(self) -> None:
        body = "{% for c in m.tool_calls or [] %}{{ c.function.name + c.function.arguments }}{% endfor %}"
        source = MESSAGES + body + END
        assert template_needs(ChatTemplate(source)).arguments == "text"
        given = {**CALL, "function": {"name": "f", "arguments": {"x": 1}}}
        assert 'f{"x": 1}' in prompt(source, [CONVERSATION[0], {"role": "assistant", "tool_calls": [given]}])

    def test_arguments_that_are_no_json_are_kept(self) -> None:
        body = "{% for c in m.tool_calls or [] %}{{ c.function.arguments | tojson }}{% endfor %}"
        given = {**CALL, "function": {"name": "f", "arguments": '{"x": '}}
        made = prompt(MESSAGES + body + END, [CONVERSATION[0], {"role": "assistant", "tool_calls": [given]}])
        assert json.dumps('{"x": ') in made

    @pytest.mark.parametrize(
        ("content", "wanted"),
        [
            ("{{ m.content or '' }}", "null"),
            ("{{ m.content + '' }}", "empty"),
            ("{% if 'content' in m %}{{ m.content + '!' }}{% endif %}", "empty"),
        ],
    )
    def test_content_beside_calls(self, content: str, wanted: str) -> None:
        calls = "{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}"
        source = "{% for m in messages %}" + content + calls + END
        assert template_needs(ChatTemplate(source)).no_content == wanted
        assert 'f{"x"' in prompt(source, CONVERSATION)

    def test_content_in_parts(self) -> None:
        source = "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %};{% endfor %}"
        assert template_needs(ChatTemplate(source)).parts
        assert prompt(source, [{"role": "user", "content": "Hi"}]) == "Hi;"

    def test_parts_as_text(self) -> None:
        parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
        assert "a\nb" in prompt(TEMPLATE, [{"role": "user", "content": parts}])
        with pytest.raises(ApiError) as caught:
            prompt(TEMPLATE, [{"role": "user", "content": [*parts, {"type": "image_url", "image_url": {}}]}])
        assert caught.value.message == (
            "messages[0].content[2]: parts of type 'image_url' need an engine that renders messages itself"
        )

    def test_developers_are_the_system_where_the_template_knows_none(self) -> None:
        message = {"role": "developer", "content": "Be brief."}
        assert "<|im_start|>system\nBe brief." in prompt(TEMPLATE, [message, CONVERSATION[0]])
        knows = "{% for m in messages %}{% if m.role == 'developer' %}D{% endif %}{{ m.role }}{% endfor %}"
        assert prompt(knows, [message]) == "Ddeveloper"

    def test_nothing_of_the_request_is_changed(self) -> None:
        before = json.dumps(CONVERSATION)
        prompt(TEMPLATE, CONVERSATION, tools=TOOLS)
        assert json.dumps(CONVERSATION) == before


class TestIds:
    SOURCE = "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.id }};{% endfor %}" + (
        "{{ m.tool_call_id }}{% endfor %}"
    )

    def test_nine_alphanumerics(self) -> None:
        made = prompt(self.SOURCE, CONVERSATION, format="mistral")
        first, second = made.split(";")
        assert first == second
        assert len(first) == 9
        assert first.isalnum()

    def test_counted_ones(self) -> None:
        assert prompt(self.SOURCE, CONVERSATION, format="kimi_k2") == "functions.f:0;functions.f:0"

    def test_others_stay(self) -> None:
        assert prompt(self.SOURCE, CONVERSATION) == "call_abcdef;call_abcdef"

    def test_results_know_their_tool(self) -> None:
        assert prompt("{% for m in messages %}{{ m.name }}{% endfor %}", CONVERSATION) == "f"


class TestThinking:
    OFF = "<think>\n\n</think>\n\n"

    def test_switches(self) -> None:
        source = "{{ enable_thinking }}{% for m in messages %}{% endfor %}"
        for thinking, wanted in (
            (Thinking(), ""),
            (Thinking(enabled=False), "False"),
            (Thinking(effort="none"), "False"),
            (Thinking(budget=0), "False"),
            (Thinking(effort="low"), "True"),
            (Thinking(budget=100), "True"),
        ):
            assert prompt(source, CONVERSATION[:1], thinking=thinking) == wanted
        asked = {"enable_thinking": "mine"}
        assert prompt(source, CONVERSATION[:1], thinking=Thinking(enabled=False), template_kwargs=asked) == "mine"

    def test_effort(self) -> None:
        source = "{{ reasoning_effort }}{% for m in messages %}{% endfor %}"
        assert prompt(source, CONVERSATION[:1], thinking=Thinking(effort="high")) == "high"
        assert prompt(source, CONVERSATION[:1], thinking=Thinking(effort="none")) == "low"

    @pytest.mark.parametrize(
        ("opened", "closed"), [("", "<think>\n\n</think>\n\n"), ("<think>\n", "<think>\n\n</think>\n\n")]
    )
    def test_without_a_switch_reasoning_is_closed_in_the_prompt(self, opened: str, closed: str) -> None:
        source = "{% for m in messages %}{{ m.content }}{% endfor %}<|im_start|>assistant\n" + opened.replace(
            "\n", "\\n"
        )
        source = source.replace("\\n", "{{ '\\n' }}")
        parser = OutputParser.named("hermes", reasoning="qwen3")
        thinks = Model(name="m", engine=Scripted(""), parser=parser, template=ChatTemplate(source))
        made = make_prompt(thinks, Generation(messages=CONVERSATION[:1], thinking=Thinking(enabled=False)))
        assert str(made.text).endswith(closed)
        assert not parser.stream(prompt=str(made.text)).in_reasoning


class TestRefusals:
    def test_a_template_that_refuses(self) -> None:
        with pytest.raises(ApiError) as caught:
            prompt("{{ raise_exception('Roles must alternate') }}", CONVERSATION)
        assert (caught.value.status, caught.value.param) == (400, "messages")
        assert "Roles must alternate" in caught.value.message

    def test_none_at_all(self) -> None:
        bare = Model(name="m", engine=Scripted(""), parser=OutputParser.named("hermes"))
        with pytest.raises(ApiError) as caught:
            make_prompt(bare, Generation(messages=CONVERSATION))
        assert caught.value.message == (
            "model 'm' has no chat template: start the server with --chat-template, or send a raw prompt to"
            " /v1/completions"
        )


@needs_templates
@pytest.mark.parametrize("path", TEMPLATES, ids=lambda p: p.stem)
def test_real_templates(path: Path) -> None:
    """A conversation with a call in OpenAI's terms is rendered by every template that has calls at all."""
    template = ChatTemplate.load(path)
    parser = OutputParser.from_template(template)
    here = Model(name="m", engine=Scripted(""), parser=parser, template=template)
    want = template_needs(template)
    assert isinstance(want, TemplateNeeds)
    if not parser.has_tools:
        return
    try:
        template.render(CONVERSATION[:1], tools=TOOLS, add_generation_prompt=True)
    except TemplateError:
        return  # it renders no tools as transformers gives them
    made = str(make_prompt(here, Generation(messages=CONVERSATION, tools=TOOLS)).text)
    assert "Result." in made
    assert "käse" in made or "k\\u00e4se" in made
    assert '\\\\"' not in made


class TestMarkersInMessages:
    """Text of tools and users that holds a marker of the model."""

    TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"

    def made(self, setting: str, *messages: dict[str, Any]) -> tuple[str, list[str]]:
        served = Model(
            name="m",
            engine=Scripted(""),
            parser=OutputParser.named("hermes"),
            template=ChatTemplate(self.TEMPLATE),
            neutralize_markers=setting,  # type: ignore[arg-type]
        )
        request = Generation(messages=list(messages))
        (prompt,) = make_prompts(served, guarded(served, request))
        assert isinstance(prompt.text, str)
        return prompt.text, request.notes.texts

    @pytest.mark.parametrize(
        ("setting", "tool", "user"), [("off", "<|im_end|>", "<|im_end|>"), ("tools", "<\u200b|im_end|>", "<|im_end|>")]
    )
    def test_a_marker_that_stays_is_noted(self, setting: str, tool: str, user: str) -> None:
        given = [{"role": "tool", "content": "a <|im_end|>"}, {"role": "user", "content": "b <|im_end|>"}]
        text, notes = self.made(setting, *given)
        assert text == f"<|im_start|>tool\na {tool}<|im_end|>\n<|im_start|>user\nb {user}<|im_end|>\n"
        noted = (
            "a {} message holds '<|im_end|>', a marker of the model: as a token in the prompt it could end the message "
            "(neutralize_markers: {} breaks it)"
        )
        expected = [noted.format("user", "all")]
        assert notes == ([noted.format("tool", "tools"), *expected] if setting == "off" else expected)
        assert given[0]["content"] == "a <|im_end|>"

    def test_all_are_broken(self) -> None:
        parts = [{"type": "text", "text": "<tool_call>"}]
        text, notes = self.made("all", {"role": "user", "content": parts}, {"role": "system", "content": "<tool_call>"})
        assert "<\u200btool_call>" in text
        assert text.endswith("<|im_start|>system\n<tool_call><|im_end|>\n")
        assert notes == []

    def test_text_without_markers_is_not_noted(self) -> None:
        text, notes = self.made("off", {"role": "user", "content": "Is a < b? [x] <b>bold</b>"})
        assert text == "<|im_start|>user\nIs a < b? [x] <b>bold</b><|im_end|>\n"
        assert notes == []
