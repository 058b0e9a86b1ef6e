"""A short conversation with a served model, printed as it streams (``untemplate serve --tour``).

The tour is a client of the gateway, over HTTP, and prints the model's real answers.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from untemplate._internal.deltas import assemble
from untemplate._internal.terminal import visible
from untemplate.messages import DeltaMessage

from .engines.wire import Client, events

WEATHER: Final = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather in a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
QUESTIONS: Final = ("What is the weather in Rosenheim?", "What's the weather in Oslo and Bergen?", "Who are you?")
_ASKED: Final = {"tools": [WEATHER], "stream": True, "max_tokens": 300, "temperature": 0}
_RESULT: Final = json.dumps({"temperature": 17, "condition": "cloudy"})


async def tour(url: str, model: str, *, key: str = "") -> None:
    """Ask the model all questions and print its answers.

    Raises:
        WireError: the gateway cannot be reached.
    """
    client = Client(url, headers={"authorization": f"Bearer {key}"} if key else None)
    try:
        for question in QUESTIONS:
            messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
            print(f"    user  {question}")
            for _ in range(2):  # the answer to the question, then to the result of the tool
                messages.append(await _ask(client, model, messages))
                for call in messages[-1].get("tool_calls") or ():
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": _RESULT})
                    print(f"    tool  {_RESULT}")
                if messages[-1]["role"] != "tool":
                    break
            print()
    finally:
        await client.close()


async def _ask(client: Client, model: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Stream one answer; return it as a message."""
    body = msgspec.json.encode({**_ASKED, "model": model, "messages": messages})
    deltas: list[DeltaMessage] = []
    reader, label = events(), ""
    async with client.request("POST", "/v1/chat/completions", body) as response:
        while data := await response.read():
            for event in reader.feed(data) if response.status == 200 else (data,):
                chunk = {} if event == b"[DONE]" else json.loads(event)
                parts = [("error", chunk["error"]["message"])] if "error" in chunk else []
                for choice in chunk.get("choices", ()):
                    delta = msgspec.convert(choice["delta"], DeltaMessage)
                    deltas.append(delta)
                    parts += [("thinks", delta.reasoning or ""), ("says", delta.content or "")]
                    for call in delta.tool_calls or ():
                        if call.function is not None:
                            name = f"{call.function.name} " if call.function.name else ""
                            parts.append(("calls", name + (call.function.arguments or "")))
                for now, text in parts:
                    if text:
                        begin = "" if now == label else f"{label and chr(10)}{now:>8}  "
                        print(begin + visible(text), end="", flush=True)
                        label = now
    print()
    return assemble(deltas).message()
