"""Messages for an inspect-ai provider that gets raw text from its model. Needs `inspect-ai`."""

from __future__ import annotations

from inspect_ai.tool import ToolInfo, ToolParam, ToolParams

from untemplate.integrations.inspect_ai import Handler

OUTPUT = "<tool_call>\n<function=add>\n<parameter=a>\n2\n</parameter>\n</function>\n</tool_call>"
TOOLS = [ToolInfo(name="add", description="Add.", parameters=ToolParams(properties={"a": ToolParam(type="integer")}))]

message = Handler("my-model", "qwen3_coder").parse_assistant_response(OUTPUT, TOOLS)
for call in message.tool_calls:
    print(call.function, call.arguments)

# Prints:
# add {'a': 2}
