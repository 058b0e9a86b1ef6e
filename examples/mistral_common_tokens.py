"""Sampled token ids of mistral-common, read without decoding. Needs `mistral-common`, which has this vocabulary."""

from __future__ import annotations

from importlib.resources import files

from mistral_common.tokens.tokenizers.tekken import Tekkenizer

from untemplate import OutputParser
from untemplate.integrations.mistral_common import Tokenizer

tekken = Tekkenizer.from_file(str(files("mistral_common") / "data" / "tekken_240911.json"))
text = '[{"name": "weather", "arguments": {"city": "Zürich ☀️"}}]'
sampled = [tekken.get_special_token("[TOOL_CALLS]"), *tekken.encode(text, bos=False, eos=True)]
parsed = OutputParser.named("mistral", tokenizer=Tokenizer(tekken)).parse_tokens(sampled)
print(parsed.output.tool_calls[0].function)
print([(span.kind, span.first, span.end) for span in parsed.spans])

# Prints:
# FunctionCall(name='weather', arguments='{"city": "Zürich ☀️"}')
# [('markup', 0, 6), ('name', 6, 7), ('markup', 7, 12), ('arguments', 12, 24), ('markup', 24, 26)]
