"""The default renderer of `renderers` with untemplate's parsers: it serves models without a renderer of their own.

With a real model: `tokenizer = load_tokenizer("ORG/MODEL")`. To run without one, this file builds a small tokenizer.
Needs `renderers` and `transformers`.
"""

from __future__ import annotations

from renderers import DefaultRendererConfig, create_renderer
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from untemplate.integrations.renderers import register

TEMPLATE = """\
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
OUTPUT = 'One moment.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call><|im_end|>'

core = Tokenizer(models.BPE({piece: i for i, piece in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, []))
core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
core.decoder = decoders.ByteLevel()
core.add_special_tokens([AddedToken(text, special=True) for text in ("<|im_start|>", "<|im_end|>")])
tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|im_end|>")
tokenizer.chat_template = TEMPLATE

register()
renderer = create_renderer(tokenizer, DefaultRendererConfig(tool_parser="untemplate", reasoning_parser="untemplate"))
parsed = renderer.parse_response(tokenizer.encode(OUTPUT, add_special_tokens=False))
print("content:", parsed.content)
for call in parsed.tool_calls:
    print("call:", call.name, call.arguments, call.status.value, call.token_span)

# Prints:
# content: One moment.
# call: weather {'city': 'Oslo'} ok (11, 87)
