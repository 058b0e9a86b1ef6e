"""A renderer for tinker-cookbook from a tokenizer's chat template. Needs `tinker-cookbook` and `transformers`."""

from __future__ import annotations

from tinker_cookbook.renderers import get_renderer
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from untemplate.integrations.tinker_cookbook import register

TEMPLATE = """\
{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content or '' }}{% for c in m.tool_calls or [] %}<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
core = Tokenizer(models.BPE({piece: i for i, piece in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, []))
core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
core.decoder = decoders.ByteLevel()
core.add_special_tokens([AddedToken(text, special=True) for text in ("<|im_start|>", "<|im_end|>")])
tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|im_end|>")
tokenizer.chat_template = TEMPLATE

register()
renderer = get_renderer("untemplate", tokenizer, model_name="demo")
question = {"role": "user", "content": "Tea?"}
print(repr(tokenizer.decode(renderer.build_generation_prompt([question]).to_ints())))

OUTPUT = '<tool_call>\n{"name": "brew", "arguments": {"cups": 2}}\n</tool_call><|im_end|>'
message, ended = renderer.parse_response(tokenizer.encode(OUTPUT, add_special_tokens=False))
print(ended, message["tool_calls"][0].function)
example, weights = renderer.build_supervised_example([question, message])
print(repr(tokenizer.decode([id for id, weight in zip(example.to_ints(), weights.tolist(), strict=True) if weight])))

# Prints:
# '<|im_start|>user\nTea?<|im_end|>\n<|im_start|>assistant\n'
# stop_sequence name='brew' arguments='{"cups": 2}'
# '<tool_call>\n{"name": "brew", "arguments": {"cups": 2}}\n</tool_call><|im_end|>'
