"""A renderer for verifiers from a chat template: a sampled turn, and the ids to append. Needs `verifiers`.

In verifiers' configuration it is `[renderer]` with `name = "custom"` and this `import_path`. To run without a model,
this file builds a small tokenizer.
"""

from __future__ import annotations

from renderers import create_renderer
from renderers.configs import CustomRendererConfig
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

core = Tokenizer(models.BPE({piece: i for i, piece in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, []))
core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
core.decoder = decoders.ByteLevel()
core.add_special_tokens([AddedToken(text, special=True) for text in ("<|im_start|>", "<|im_end|>")])
tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|im_end|>")
tokenizer.chat_template = """\
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

path = "untemplate.integrations.template_renderer.TemplateRenderer"
renderer = create_renderer(tokenizer, CustomRendererConfig(import_path=path, format="hermes"))
prompt = renderer.render_ids([{"role": "user", "content": "Weather?"}], add_generation_prompt=True)
sampled = tokenizer.encode('<tool_call>\n{"name": "weather", "arguments": {}}\n</tool_call><|im_end|>')
print([(call.name, call.arguments) for call in renderer.parse_response(sampled).tool_calls])
bridged = renderer.bridge_to_next_turn(prompt, sampled, [{"role": "tool", "content": "12 °C"}])
print(repr(tokenizer.decode(bridged.token_ids[len(prompt) + len(sampled) :])))

# Prints:
# [('weather', {})]
# '\n<|im_start|>tool\n12 °C<|im_end|>\n<|im_start|>assistant\n'
