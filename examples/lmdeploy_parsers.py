"""A tool parser of untemplate in LMDeploy, as its server runs it. Needs `lmdeploy`.

Start the server from a file that calls `register()`, with `--tool-call-parser untemplate:hermes`.
"""

from __future__ import annotations

from lmdeploy.serve.openai.protocol import ChatCompletionRequest
from lmdeploy.serve.parsers import ResponseParserManager

from untemplate.integrations.lmdeploy import register

register()
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}]
reader = ResponseParserManager.get("default")
reader.set_parsers(None, "untemplate:hermes")
request = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "Weather in Oslo?"}], tools=TOOLS)
text = 'One moment.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
content, calls, _ = reader(request).parse_complete(text)
print(repr(content), [call.function for call in calls])

# Prints:
# 'One moment.\n' [FunctionCall(name='weather', arguments='{"city": "Oslo"}')]
