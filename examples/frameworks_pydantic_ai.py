"""An agent of pydantic-ai on the gateway. Needs `pydantic-ai-slim[openai]`.

Start a gateway first: `untemplate serve replay:hermes+qwen3`.
"""

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

URL = "http://127.0.0.1:8000/v1"


def weather(city: str) -> str:
    """Get the weather.

    Args:
        city: Name of a city.
    """
    return f"Sunny in {city}."


model = OpenAIChatModel("hermes+qwen3", provider=OpenAIProvider(base_url=URL, api_key="none"))
result = Agent(model, tools=[weather]).run_sync("What is the weather in Lisbon?")
print([type(part).__name__ for part in result.all_messages()[1].parts])
print(result.output)

# Prints:
# ['ThinkingPart', 'TextPart', 'ToolCallPart']
# The tool returned: Sunny in Lisbon.
