"""An agent template of ms-swift with our parser: `--agent_template untemplate:hermes`. Needs `ms-swift`."""

from __future__ import annotations

from swift.agent_template.mapping import agent_template_map

from untemplate.integrations.ms_swift import register

register()
template = agent_template_map["untemplate:hermes"]()
text = 'One moment.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
for call in template.get_toolcall(text):
    print(call.name, call.arguments)

# Prints:
# weather {"city": "Oslo"}
