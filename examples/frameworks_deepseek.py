"""LangChain's `ChatDeepSeek` on the gateway, with the Chat Completions API. Needs `langchain-deepseek`.

Start a gateway first: `untemplate serve replay:hermes+qwen3`.
"""

from langchain_core.tools import tool
from langchain_deepseek import ChatDeepSeek

URL = "http://127.0.0.1:8000/v1"


def weather(city: str) -> str:
    """Get the weather.

    Args:
        city: Name of a city.
    """
    return f"Sunny in {city}."


model = ChatDeepSeek(model="hermes+qwen3", api_base=URL, api_key="none")
message = model.bind_tools([tool(weather)]).invoke("What is the weather in Lisbon?")
print(message.content_blocks[0])

# Prints:
# {'type': 'reasoning', 'reasoning': 'The tool weather can answer this. One call will do.'}
