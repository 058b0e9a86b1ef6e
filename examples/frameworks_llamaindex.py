"""LlamaIndex's `OpenAILike` on the gateway. Needs `llama-index-llms-openai-like`.

Start a gateway first: `untemplate serve replay:hermes+qwen3`.
"""

from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike

URL = "http://127.0.0.1:8000/v1"


def weather(city: str) -> str:
    """Get the weather.

    Args:
        city: Name of a city.
    """
    return f"Sunny in {city}."


llm = OpenAILike(model="hermes+qwen3", api_base=URL, api_key="none", is_chat_model=True, is_function_calling_model=True)
response = llm.chat_with_tools([FunctionTool.from_defaults(weather)], user_msg="What is the weather in Lisbon?")
print([type(block).__name__ for block in response.message.blocks])
print([(call.tool_name, call.tool_kwargs) for call in llm.get_tool_calls_from_response(response)])

# Prints:
# ['ThinkingBlock', 'TextBlock', 'ToolCallBlock']
# [('weather', {'city': 'Lisbon'})]
