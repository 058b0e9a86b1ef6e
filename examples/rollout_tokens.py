"""A rollout in token ids: parse what was sampled, mask it, and append the result of a call without encoding again.

The tokenizer here is a toy that grows as it encodes; any tokenizer of `tokenizers` or `transformers` takes its place.
"""

from untemplate import OutputParser
from untemplate.templates import ChatTemplate
from untemplate.testing import PieceTokenizer

TEMPLATE = ChatTemplate(
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}"
    "{% for c in m.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}'
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


class Tokenizer(PieceTokenizer):
    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
        return super().encode(text)


def parser() -> OutputParser:
    return OutputParser.named("hermes", tokenizer=tokenizer)  # reads the vocabulary as it is now


tokenizer = Tokenizer(["<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>"])
messages = [{"role": "user", "content": "Weather in Oslo?"}]
ids = tokenizer.encode(TEMPLATE.render(messages, add_generation_prompt=True))

sampled = tokenizer.encode(
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call><|im_end|>'
)
parsed = parser().parse_tokens(sampled)
call = parsed.output.tool_calls[0]
print(call.function.name, call.function.arguments, call.status)
for span in parsed.spans:
    print(f"  {span.kind}: tokens {span.first} to {span.end}")

result = {"role": "tool", "tool_call_id": call.id, "name": call.function.name, "content": "12 °C"}
tokenizer.encode(TEMPLATE.render([result], add_generation_prompt=True))  # lets the toy learn the tokens of the result
bridge = parser().bridge(ids + sampled, [result], template=TEMPLATE)
print(repr(bridge.text), bridge.proof)
ids = ids + sampled + bridge.ids

# Prints:
# get_weather {"city": "Oslo"} ok
#   markup: tokens 0 to 7
#   name: tokens 7 to 11
#   markup: tokens 11 to 18
#   arguments: tokens 18 to 25
#   markup: tokens 25 to 29
# '\n<|im_start|>tool\n12 °C<|im_end|>\n<|im_start|>assistant\n' prefix
