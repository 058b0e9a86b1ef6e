"""A response template that transformers reads without untemplate. Needs `transformers` (5.13 or later).

`untemplate export --model MODEL --response-template` writes the same template for a checkpoint.
"""

from __future__ import annotations

from transformers.utils.chat_parsing.response_parser import parse_response

from untemplate.formats import named

OUTPUT = (
    "<think>\nI need the weather.\n</think>\n\n"
    '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
)

template = named("hermes", reasoning="qwen3").to_response_template()
for key, value in parse_response(OUTPUT, template, prefix="<|im_start|>assistant\n").items():
    print(f"{key}: {value}")

# Prints:
# role: assistant
# reasoning_content: I need the weather.
# tool_calls: [{'type': 'function', 'function': {'name': 'weather', 'arguments': {'city': 'Oslo'}}}]
