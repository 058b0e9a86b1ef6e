"""Tool loops of Python clients. usage: python_clients.py CLIENT URL MODEL RESULT

The tool ``get_weather`` returns RESULT. The answer is printed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

CLIENT, URL, MODEL, RESULT = sys.argv[1:]
ASKED = "What is the weather in Ulm?"
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "the city"}},
    "required": ["city"],
}
FUNCTION = {"name": "get_weather", "description": "The weather in a city", "parameters": PARAMETERS}
TOOL = {"type": "function", "function": FUNCTION}


def get_weather(city: str) -> str:
    """Return the weather in a city.

    Args:
        city: the city
    """
    assert city
    return RESULT


def openai_chat() -> str:
    import openai

    client = openai.OpenAI(base_url=f"{URL}/v1", api_key="none", max_retries=0)
    messages: list[Any] = [{"role": "user", "content": ASKED}]
    for _ in range(4):
        with client.chat.completions.stream(model=MODEL, messages=messages, tools=[TOOL], temperature=0) as stream:  # type: ignore[list-item]
            message = stream.get_final_completion().choices[0].message
        if not message.tool_calls:
            return message.content or ""
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            result = get_weather(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    raise RuntimeError("no answer")


def openai_responses() -> str:
    import openai

    client = openai.OpenAI(base_url=f"{URL}/v1", api_key="none", max_retries=0)
    asked: Any = ASKED
    previous: str | None = None
    for _ in range(4):
        tools: Any = [{"type": "function", **FUNCTION}]
        response = client.responses.create(
            model=MODEL, input=asked, previous_response_id=previous, tools=tools, temperature=0
        )
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return response.output_text
        previous = response.id
        asked = [
            {"type": "function_call_output", "call_id": c.call_id, "output": get_weather(**json.loads(c.arguments))}
            for c in calls
        ]
    raise RuntimeError("no answer")


def anthropic_runner() -> str:
    import anthropic

    client = anthropic.Anthropic(base_url=URL, api_key="none", max_retries=0)
    runner = client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=400,
        tools=[anthropic.beta_tool(get_weather)],
        messages=[{"role": "user", "content": ASKED}],
        extra_body={"temperature": 0},
    )
    return "".join(block.text for block in runner.until_done().content if block.type == "text")


def ollama_chat() -> str:
    import ollama

    client = ollama.Client(host=URL)
    messages: list[Any] = [{"role": "user", "content": ASKED}]
    for _ in range(4):
        parts = list(client.chat(model=MODEL, messages=messages, tools=[TOOL], stream=True, options={"temperature": 0}))
        calls = [call for part in parts for call in part.message.tool_calls or ()]
        text = "".join(part.message.content or "" for part in parts)
        if not calls:
            return text
        messages.append({"role": "assistant", "content": text, "tool_calls": calls})
        for call in calls:
            result = get_weather(**call.function.arguments)
            messages.append({"role": "tool", "tool_name": call.function.name, "content": result})
    raise RuntimeError("no answer")


def litellm_chat() -> str:
    import litellm

    messages: list[Any] = [{"role": "user", "content": ASKED}]
    for _ in range(4):
        answer = litellm.completion(
            f"openai/{MODEL}", messages=messages, tools=[TOOL], api_base=f"{URL}/v1", api_key="none", temperature=0
        )
        message = answer.choices[0].message
        if not message.tool_calls:
            return message.content or ""
        messages.append(message.model_dump())
        for call in message.tool_calls:
            result = get_weather(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    raise RuntimeError("no answer")


def langchain_loop(model: Any) -> str:
    from langchain_core.messages import HumanMessage
    from langchain_core.tools import tool

    weather = tool(get_weather, parse_docstring=True)
    bound = model.bind_tools([weather])
    messages: list[Any] = [HumanMessage(ASKED)]
    for _ in range(4):
        message = bound.invoke(messages)
        if not message.tool_calls:
            content = message.content
            return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
        messages.append(message)
        messages += [weather.invoke(call) for call in message.tool_calls]
    raise RuntimeError("no answer")


def langchain_openai() -> str:
    from langchain_openai import ChatOpenAI

    return langchain_loop(ChatOpenAI(model=MODEL, base_url=f"{URL}/v1", api_key="none", temperature=0))  # type: ignore[arg-type]


def langchain_anthropic() -> str:
    from langchain_anthropic import ChatAnthropic

    return langchain_loop(ChatAnthropic(model=MODEL, base_url=URL, api_key="none", temperature=0, max_tokens=400))  # type: ignore[call-arg, arg-type]


if __name__ == "__main__":
    found = globals()[CLIENT]()
    print(asyncio.run(found) if asyncio.iscoroutine(found) else found)
