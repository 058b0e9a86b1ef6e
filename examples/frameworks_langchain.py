"""LangChain's `ChatOpenAI` on the gateway, with the Responses API: it keeps reasoning. Needs `langchain-openai`.

Start a gateway first: `untemplate serve replay:hermes+qwen3`.
"""

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

URL = "http://127.0.0.1:8000/v1"


def weather(city: str) -> str:
    """Get the weather.

    Args:
        city: Name of a city.
    """
    return f"Sunny in {city}."


model = ChatOpenAI(model="hermes+qwen3", base_url=URL, api_key="none", use_responses_api=True)
message = model.bind_tools([tool(weather)]).invoke("What is the weather in Lisbon?")
print([block["type"] for block in message.content_blocks])
print([(call["name"], call["args"]) for call in message.tool_calls])

# Prints:
# ['reasoning', 'text', 'tool_call']
# [('weather', {'city': 'Lisbon'})]
