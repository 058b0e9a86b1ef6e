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


def langchain_ollama() -> str:
    from langchain_ollama import ChatOllama

    return langchain_loop(ChatOllama(model=MODEL, base_url=URL, temperature=0))


def langchain_google() -> str:
    from langchain_google_genai import ChatGoogleGenerativeAI

    return langchain_loop(ChatGoogleGenerativeAI(model=MODEL, base_url=URL, api_key="none", temperature=0))


def google_genai() -> str:
    from google import genai
    from google.genai import types

    client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=URL))
    chat = client.chats.create(model=MODEL, config=types.GenerateContentConfig(tools=[get_weather], temperature=0))
    return chat.send_message(ASKED).text or ""


async def pydantic_ai() -> str:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=f"{URL}/v1", api_key="none"))
    return str((await Agent(model, tools=[get_weather]).run(ASKED)).output)


async def openai_agents() -> str:
    import agents
    import openai

    agents.set_tracing_disabled(True)
    client = openai.AsyncOpenAI(base_url=f"{URL}/v1", api_key="none", max_retries=0)
    model = agents.OpenAIResponsesModel(MODEL, client)
    agent = agents.Agent("helper", model=model, tools=[agents.function_tool(get_weather)])
    return str((await agents.Runner.run(agent, ASKED)).final_output)


def instructor_tools() -> str:
    import instructor
    import openai
    import pydantic

    class get_weather(pydantic.BaseModel):
        city: str

    client = instructor.from_openai(openai.OpenAI(base_url=f"{URL}/v1", api_key="none"), mode=instructor.Mode.TOOLS)
    messages: list[Any] = [{"role": "user", "content": ASKED}]
    found = client.chat.completions.create(model=MODEL, response_model=get_weather, messages=messages, max_retries=1)
    assert found.city
    return RESULT


def smolagents() -> str:
    import smolagents

    model = smolagents.OpenAIServerModel(MODEL, api_base=f"{URL}/v1", api_key="none")
    weather = smolagents.tool(get_weather)
    messages: list[Any] = [{"role": "user", "content": ASKED}]
    for _ in range(4):
        message = model.generate(messages, tools_to_call_from=[weather], tool_choice="auto")
        if not message.tool_calls:
            return str(message.content)
        messages.append({"role": "assistant", "content": message.content or "", "tool_calls": message.tool_calls})
        for call in message.tool_calls:
            arguments = call.function.arguments
            result = get_weather(**(json.loads(arguments) if isinstance(arguments, str) else arguments))
            return f"{call.function.name}: {result}"
    raise RuntimeError("no answer")


def haystack() -> str:
    from haystack.components.agents import Agent
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.dataclasses import ChatMessage
    from haystack.tools import create_tool_from_function
    from haystack.utils import Secret

    # Its own timeout is 30 s, in which a small model without an end may still write.
    settings: Any = {"api_base_url": f"{URL}/v1", "timeout": 200, "generation_kwargs": {"max_tokens": 300}}
    model = OpenAIChatGenerator(model=MODEL, api_key=Secret.from_token("none"), **settings)
    agent = Agent(chat_generator=model, tools=[create_tool_from_function(get_weather)])
    return str(agent.run(messages=[ChatMessage.from_user(ASKED)])["messages"][-1].text)


def agno() -> str:
    from agno.agent import Agent
    from agno.models.openai import OpenAILike

    model = OpenAILike(id=MODEL, base_url=f"{URL}/v1", api_key="none")
    return str(Agent(model=model, tools=[get_weather], telemetry=False).run(ASKED).content)


def huggingface_hub() -> str:
    from huggingface_hub import InferenceClient

    client = InferenceClient(base_url=f"{URL}/v1", api_key="none")
    messages: list[Any] = [{"role": "user", "content": ASKED}]
    for _ in range(4):
        message = client.chat_completion(messages, model=MODEL, tools=[TOOL], max_tokens=300).choices[0].message  # type: ignore[list-item]
        if not message.tool_calls:
            return message.content or ""
        messages.append({"role": "assistant", "content": message.content, "tool_calls": message.tool_calls})
        for call in message.tool_calls:
            result = get_weather(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    raise RuntimeError("no answer")


if __name__ == "__main__":
    found = globals()[CLIENT]()
    print(asyncio.run(found) if asyncio.iscoroutine(found) else found)
