"""SGLang's own parsers with untemplate's formats, as its chat endpoint runs them. Needs `sglang`.

The server is `python -m untemplate.integrations.sglang --model-path MODEL --tool-call-parser untemplate
--reasoning-parser untemplate`. This file runs the two parsers without a model.
"""

from __future__ import annotations

from sglang.srt.entrypoints.openai.protocol import Tool
from sglang.srt.function_call.function_call_parser import FunctionCallParser
from sglang.srt.parser.reasoning_parser import ReasoningParser

from untemplate.integrations.sglang import register

OUTPUT = (
    "<think>\nI need the weather.\n</think>\n\n"
    '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
)
TOOLS = [Tool(type="function", function={"name": "weather", "parameters": {"type": "object"}})]

register()  # the launcher does this; so does an installed untemplate in `sglang serve`
thoughts = ReasoningParser("untemplate:qwen3", tool_call_parser_active=True)
calls = FunctionCallParser(TOOLS, "untemplate:hermes")
for start in range(0, len(OUTPUT), 20):
    reasoning, rest = thoughts.parse_stream_chunk(OUTPUT[start : start + 20])
    if reasoning:
        print("reasoning:", repr(reasoning))
    _, found = calls.parse_stream_chunk(rest) if rest else ("", [])
    for call in found:
        print("call:", call.tool_index, call.name, repr(call.parameters))

# Prints:
# reasoning: 'I need the w'
# reasoning: 'eather.'
# call: 0 weather ''
# call: 0 None '{"city": "Oslo"}'
