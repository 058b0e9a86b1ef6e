"""An agent of OpenAI's Agents SDK on the gateway. Needs `openai-agents`.

Start a gateway first: `untemplate serve replay:hermes+qwen3`.
"""

import asyncio

from agents import Agent, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

URL = "http://127.0.0.1:8000/v1"


def weather(city: str) -> str:
    """Get the weather.

    Args:
        city: Name of a city.
    """
    return f"Sunny in {city}."


set_tracing_disabled(True)  # traces would be sent to OpenAI
model = OpenAIResponsesModel("hermes+qwen3", openai_client=AsyncOpenAI(base_url=URL, api_key="none"))
agent = Agent(name="forecaster", model=model, tools=[function_tool(weather)])
result = asyncio.run(Runner.run(agent, "What is the weather in Lisbon?"))
print([type(item).__name__ for item in result.new_items[:4]])
print(result.final_output)

# Prints:
# ['ReasoningItem', 'MessageOutputItem', 'ToolCallItem', 'ToolCallOutputItem']
# The tool returned: Sunny in Lisbon.
