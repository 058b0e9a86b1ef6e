"""A short conversation with a served model, printed as it streams (``untemplate serve --tour``).

The tour is a client of the gateway, over HTTP, and prints the model's real answers.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Final, TextIO

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
_RESULT: Final = json.dumps({"temperature": 17, "condition": "cloudy"})


async def tour(url: str, model: str, *, key: str = "", out: TextIO | None = None) -> None:
    """Ask the model all questions and print its answers.

    Raises:
        WireError: the gateway cannot be reached.
    """
    out = out or sys.stdout
    client = Client(url, headers={"authorization": f"Bearer {key}"} if key else None)
    try:
        for question in QUESTIONS:
            messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
            out.write(f"    user  {question}\n")
            for _ in range(2):  # the answer to the question, then to the result of the tool
                messages.append(await _ask(client, model, messages, out))
                for call in messages[-1].get("tool_calls") or ():
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": _RESULT})
                    out.write(f"    tool  {_RESULT}\n")
                if messages[-1]["role"] != "tool":
                    break
            out.write("\n")
    finally:
        await client.close()


async def _ask(client: Client, model: str, messages: list[dict[str, Any]], out: TextIO) -> dict[str, Any]:
    """Stream one answer; return it as a message."""
    body = {"model": model, "messages": messages, "tools": [WEATHER], "stream": True, "max_tokens": 300}
    deltas: list[DeltaMessage] = []
    reader, label = events(), ""
    async with client.request(
        "POST", "/v1/chat/completions", msgspec.json.encode({**body, "temperature": 0})
    ) as response:
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
                            parts.append(("calls", f"{call.function.name} " if call.function.name else ""))
                            parts.append(("calls", call.function.arguments or ""))
                for now, text in parts:
                    if text:
                        begin = f"{now:>8}  "
                        out.write(visible(text) if now == label else f"{label and chr(10)}{begin}{visible(text)}")
                        label = now
                        out.flush()
    out.write("\n")
    return assemble(deltas).message()
