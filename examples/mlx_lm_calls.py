"""Calls as mlx-lm's server reads them, by untemplate. Needs `mlx-lm`.

With a real model: `model, tokenizer = load(MODEL)`. To run without one, this file builds a small tokenizer.
"""

from __future__ import annotations

from mlx_lm.server import ToolCallFormatter
from mlx_lm.tokenizer_utils import TokenizerWrapper
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from untemplate.integrations.mlx_lm import install

words = Tokenizer(models.WordLevel({"[UNK]": 0, "<tool_call>": 1, "</tool_call>": 2}, unk_token="[UNK]"))
tokenizer = TokenizerWrapper(PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]"))
install(tokenizer, "qwen3_coder")
print(tokenizer.tool_call_start, tokenizer.tool_call_end)
between = "\n<function=weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n"
for call in ToolCallFormatter(tokenizer.tool_parser, None)([between]):
    print(call["function"])

# Prints:
# <tool_call> </tool_call>
# {'name': 'weather', 'arguments': '{"city": "Oslo"}'}
