"""verl's tool parser for any model, in place of one per family. Needs `verl` and `transformers`.

A training run names it: `VERL_USE_EXTERNAL_MODULES=untemplate.integrations.verl` in the environment, and
`actor_rollout_ref.rollout.multi_turn.format=untemplate`. This file asks the parser, with a small tokenizer.
"""

from __future__ import annotations

import asyncio

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from verl.experimental.agent_loop.tool_parser import ToolParser

import untemplate.integrations.verl as integration

OUTPUT = 'One moment.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call><|im_end|>'

core = Tokenizer(models.BPE({piece: i for i, piece in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, []))
core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
core.decoder = decoders.ByteLevel()
core.add_special_tokens([AddedToken(text, special=True) for text in ("<|im_start|>", "<|im_end|>")])
tokenizer = PreTrainedTokenizerFast(tokenizer_object=core)

parser = ToolParser.get_tool_parser("untemplate:hermes", tokenizer)
assert isinstance(parser, integration.UntemplateToolParser)
content, calls = asyncio.run(parser.extract_tool_calls(tokenizer.encode(OUTPUT, add_special_tokens=False)))
print("content:", content)
for call in calls:
    print("call:", call.name, call.arguments)
print("stops at:", tokenizer.convert_ids_to_tokens(parser.stop_token_ids))

# Prints:
# content: One moment.
# call: weather {"city": "Oslo"}
# stops at: ['<|im_end|>']
