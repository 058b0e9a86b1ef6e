"""Calls as AReaL reads them from a rollout, by untemplate's parsers in SGLang. Needs `areal` and `sglang`.

In AReaL: import `untemplate.integrations.sglang` in the script of the training, and set the two names in its
configuration.
"""

from __future__ import annotations

from areal.experimental.openai.tool_call_parser import process_tool_calls

from untemplate.integrations.sglang import register

register()
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}]
text = '<think>\nHm.\n</think>\n\n<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
calls, rest, reason = process_tool_calls(text, TOOLS, "untemplate:hermes", "untemplate:qwen3", "stop")
print([(call.function.name, call.function.arguments) for call in calls], reason)
print(repr(rest))

# Prints:
# [('weather', '{"city": "Oslo"}')] tool_calls
# '<think>\nHm.\n</think>'
