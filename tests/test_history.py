"""`OutputParser.history`: a conversation in the shape that the model's template takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.public import TEMPLATES, needs_templates
from untemplate import ChatTemplate, OutputParser
from untemplate.errors import ContentPartError
from untemplate.templates._history import template_needs

TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Looks.",
        "parameters": {"type": "object", "properties": {"at": {"type": "string", "description": "Where."}}},
    },
}
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at": "the sea"}'}}
CONVERSATION: list[dict[str, Any]] = [
    {"role": "user", "content": "Look."},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "Blue."},
]


def test_messages_are_converted_and_not_changed() -> None:
    source = (
        "{%- for m in messages -%}<{{ m.role }}>{{ m.content or '' }}{%- for c in m.tool_calls or [] -%}"
        "<c>{{ c.function.name }} {{ c.function.arguments|tojson }}</c>{%- endfor -%}<e>{%- endfor -%}"
        "{%- if add_generation_prompt -%}<assistant>{%- endif -%}"
    )
    parser = OutputParser.from_template(source, cache=False)
    written = parser.history(CONVERSATION)
    assert written[1]["tool_calls"][0]["function"] == {"name": "look", "arguments": {"at": "the sea"}}
    assert written[2]["name"] == "look"
    assert CONVERSATION[1]["tool_calls"] == [CALL]
    assert ChatTemplate(source).render(written) == (
        '<user>Look.<e><assistant><c>look {"at": "the sea"}</c><e><tool>Blue.<e>'
    )


def test_misuse_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"^history: no chat template is known; make the parser with from_template"):
        OutputParser.named("hermes").history(CONVERSATION)
    parser = OutputParser.from_template("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>")
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}
    with pytest.raises(
        ContentPartError, match=r"^messages\[0\].content\[0\]: parts of type 'image_url' need an engine"
    ):
        parser.history([image])
    with pytest.raises(TypeError, match=r"^messages: expected a dict or a model, got int$"):
        parser.history([3])


@needs_templates
@pytest.mark.parametrize("path", TEMPLATES[2::6], ids=lambda p: p.stem)
def test_real_templates_render_an_agents_conversation(path: Path) -> None:
    template = ChatTemplate.load(path)
    parser = OutputParser.from_template(template)
    if not parser.has_tools:
        pytest.skip("the template writes no calls")
    text = template.render(parser.history(CONVERSATION), tools=[TOOL], add_generation_prompt=True)
    assert "the sea" in text
    assert template_needs(template).no_content in ("null", "empty", "absent")
