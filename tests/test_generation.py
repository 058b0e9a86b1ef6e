"""Ranges that `{% generation %}` marks: as Hugging Face finds them, and as the masks of the parsed turn."""

from __future__ import annotations

from typing import Any

import pytest

from untemplate import OutputParser
from untemplate._internal.tokens.decoding import encode
from untemplate.errors import TemplateError
from untemplate.templates import ChatTemplate, generation_ranges

from .real_tokenizers import KINDS
from .test_bridge import ASKED, CALLS, RESULT, TURN

TRAINING = (
    "{%- for m in messages %}\n<|im_start|>{{ m.role }}\n{%- if m.role == 'assistant' %}\n"
    "    {%- generation -%}\n    {{ m.content or '' }}" + CALLS + "<|im_end|>\n    {%- endgeneration %}\n"
    "{%- else %}{{ m.content }}<|im_end|>{% endif %}\n{%- endfor %}\n"
    "{%- if add_generation_prompt %}<|im_start|>assistant{% endif %}"
)
CONVERSATIONS = [
    [ASKED, {"role": "assistant", "content": "Done."}],
    [ASKED, TURN, RESULT, {"role": "assistant", "content": "42, 😀."}],
]


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("messages", CONVERSATIONS, ids=["text", "a call"])
def test_the_masks_of_a_turn_cover_what_the_template_marks(messages: list[dict[str, Any]], make: Any):
    template = ChatTemplate(TRAINING)
    tokenizer = make(("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>"))
    parser = OutputParser.named("hermes", tokenizer=tokenizer)
    text, ranges = generation_ranges(template, messages)
    turns = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    assert len(ranges) == len(turns)
    for (start, end), turn in zip(ranges, turns, strict=True):
        prompt = template.render(messages[:turn], add_generation_prompt=True)
        assert text[:start] == prompt
        parsed = parser.parse_tokens(encode(tokenizer, text[start:end]), prompt=prompt)
        assert (parsed.offsets[0][0], parsed.offsets[-1][1]) == (0, end - start)
        assert (parsed.output.content or "") == messages[turn]["content"]
        assert len(parsed.output.tool_calls) == len(messages[turn].get("tool_calls", ()))
        assert sum(map(sum, parsed.masks().values())) == len(parsed.ids)


@pytest.mark.parametrize("messages", CONVERSATIONS, ids=["text", "a call"])
def test_transformers_finds_the_same_ranges(messages: list[dict[str, Any]]):
    utilities = pytest.importorskip(
        "transformers.utils.chat_template_utils", reason="needs transformers (make test-integrations)"
    )
    rendered, ranges = utilities.render_jinja_template(
        conversations=[messages], chat_template=TRAINING, return_assistant_tokens_mask=True
    )
    assert generation_ranges(ChatTemplate(TRAINING), messages) == (rendered[0], [tuple(r) for r in ranges[0]])


def test_a_template_without_blocks():
    assert generation_ranges(ChatTemplate("{{ messages[0].content }}"), [ASKED]) == ("Go", [])


def test_a_template_that_changes_marked_text():
    source = "{% set x %}{% generation %}{{ messages[0].content }}{% endgeneration %}{% endset %}{{ x[1:] }}"
    with pytest.raises(TemplateError, match=r"^the template changes text after its generation blocks$"):
        generation_ranges(ChatTemplate(source), [ASKED])
