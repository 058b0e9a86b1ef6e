"""Code written for vLLM's parser classes, unchanged, and the same with `OutputParser`.

vLLM's serving code takes a reasoning parser and a tool parser by name and calls their methods one after the other.
The managers of `untemplate.vllm_api` have the same names and signatures. `OutputParser` does both halves at once.
"""

from __future__ import annotations

from untemplate import OutputParser
from untemplate.vllm_api import ReasoningParserManager, ToolParserManager, make_parser_request


class Tokenizer:
    """A tokenizer as the parsers need it: they only ask for the vocabulary."""

    def get_vocab(self) -> dict[str, int]:
        return {"<think>": 1, "</think>": 2, "<tool_call>": 3, "</tool_call>": 4}


OUTPUT = '<think>\nA forecast.\n</think>\n\n<tool_call>\n{"name": "forecast", "arguments": {"days": 2}}\n</tool_call>'
TOOLS = [{"type": "function", "function": {"name": "forecast", "parameters": {"type": "object"}}}]

tokenizer = Tokenizer()
request = make_parser_request("model", [], TOOLS)

# As in vLLM: two parsers, two steps.
reasoning_parser = ReasoningParserManager.get_reasoning_parser("qwen3")(tokenizer)
tool_parser = ToolParserManager.get_tool_parser("hermes")(tokenizer)
reasoning, rest = reasoning_parser.extract_reasoning(OUTPUT, request)
found = tool_parser.extract_tool_calls(rest or "", request)
print(reasoning, "|", found.tools_called, "|", found.tool_calls[0].function.arguments)

# With untemplate: one parser, one step.
parser = OutputParser(tokenizer, reasoning_parser_name="qwen3", tool_parser_name="hermes")
message = parser.parse(OUTPUT, request)
print(message.reasoning, "|", message.tools_called, "|", message.tool_calls[0].function.arguments)

# Streamed: deltas need no previous_text, current_text or id lists.
stream = parser.stream(request=request)
for piece in (OUTPUT[:20], OUTPUT[20:60], OUTPUT[60:]):
    for delta in stream.feed(piece):
        if delta.reasoning:
            print("reasoning:", delta.reasoning)
        for call in delta.tool_calls or ():
            print("call:", call.function.name, call.function.arguments)
stream.finish("stop")

# Prints:
# A forecast. | True | {"days": 2}
# A forecast. | True | {"days": 2}
# reasoning: A forecast.
# call: forecast {"days": 2}
