"""LiteLLM's callback for servers that return raw text. Needs `litellm`.

In a proxy, `config.yaml` names it: `litellm_settings: {callbacks: litellm_proxy.parser}`. This file calls the hook as
the proxy does, with LiteLLM's mock of a model.
"""

from __future__ import annotations

import asyncio
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no look-up on the network

import litellm

from untemplate.integrations.litellm import TextParser

OUTPUT = 'One moment.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]

parser = TextParser({"my-model": "hermes"})


async def main() -> None:
    messages = [{"role": "user", "content": "Weather in Oslo?"}]
    response = await litellm.acompletion("openai/x", messages, api_key="x", mock_response=OUTPUT)
    response = await parser.async_post_call_success_hook({"model": "my-model", "tools": TOOLS}, None, response)
    choice = response.choices[0]
    print("content:", choice.message.content)
    for call in choice.message.tool_calls:
        print("call:", call.function.name, call.function.arguments)
    print("finish reason:", choice.finish_reason)


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# content: One moment.
# call: weather {"city": "Oslo"}
# finish reason: tool_calls
