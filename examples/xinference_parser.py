"""Xinference's tool parsers, by untemplate. Needs `xinference`; a model's `tool_parser` names one."""

from __future__ import annotations

from xinference.model.llm.tool_parsers import TOOL_PARSERS

from untemplate.integrations.xinference import register

register()
parser = TOOL_PARSERS["untemplate:hermes"]()
text = 'One moment.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
for event in parser.extract_tool_calls(text):
    print(event)

# Prints:
# ('One moment.', None, None)
# (None, 'weather', {'city': 'Oslo'})
