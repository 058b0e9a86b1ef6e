"""A short conversation with a served model, printed as it streams (``untemplate serve --tour``).

The tour is a client of the gateway, over HTTP, and prints the model's real answers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TextIO

import msgspec

from untemplate.deltas import assemble
from untemplate.messages import DeltaMessage
from untemplate.terminal import coloured, paint, visible

from .engines.wire import Client, events


@dataclass(frozen=True, slots=True)
class Story:
    """A question, the tools that may be called, and their results."""

    question: str
    tools: tuple[dict[str, Any], ...] = ()
    results: dict[str, Any] = field(default_factory=dict)
    """Tool name → result."""


def _tool(name: str, description: str, **properties: str) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in properties.items()},
        "required": list(properties),
        "additionalProperties": False,
    }
    function = {"name": name, "description": description, "parameters": parameters, "strict": True}
    return {"type": "function", "function": function}


_WEATHER: Final = _tool("get_weather", "Get the weather in a city", city="string")
_TIMER: Final = _tool("set_timer", "Set a timer", minutes="integer")
STORIES: Final = (
    Story(
        "What is the weather in Rosenheim?", (_WEATHER,), {"get_weather": {"temperature": 17, "condition": "cloudy"}}
    ),
    Story("Set a timer for 15 minutes.", (_TIMER, _WEATHER), {"set_timer": {"ok": True}}),
    Story(
        "What's the weather in Oslo and Bergen?", (_WEATHER,), {"get_weather": {"temperature": 9, "condition": "clear"}}
    ),
    Story("Who are you?"),
)


async def tour(
    url: str, model: str, *, key: str = "", stories: Iterable[Story] = STORIES, out: TextIO | None = None
) -> None:
    """Ask the model all questions and print its answers.

    Args:
        url: the gateway's URL.
        model: the model's name in the gateway.
        key: an API key, if the gateway requires one.
        out: the output file; stdout by default.

    Raises:
        WireError: the gateway cannot be reached.
    """
    shown = _Shown(out or sys.stdout)
    client = Client(url, headers={"authorization": f"Bearer {key}"} if key else None)
    try:
        for story in stories:
            await _converse(client, model, story, shown)
    finally:
        await client.close()


async def _converse(client: Client, model: str, story: Story, shown: _Shown) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": story.question}]
    shown.line("user", story.question, "title")
    for _ in range(2):  # twice: the answer to the question, then the answer to the tool's result
        message = await _ask(client, model, messages, story.tools, shown)
        calls = message.get("tool_calls") or ()
        if not calls:
            break
        messages.append(message)
        for call in calls:
            result = json.dumps(story.results.get(call["function"]["name"], {"error": "there is no such tool"}))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
            shown.line("tool", result, "markup")
    shown.gap()


async def _ask(
    client: Client, model: str, messages: list[dict[str, Any]], tools: tuple[dict[str, Any], ...], shown: _Shown
) -> dict[str, Any]:
    """Stream one answer; return it as a message."""
    body: dict[str, Any] = {
        "model": model, "messages": messages, "stream": True, "max_tokens": 300, "temperature": 0
    }  # fmt: skip
    if tools:
        body["tools"] = list(tools)
    deltas: list[DeltaMessage] = []
    reader = events()
    async with client.request("POST", "/v1/chat/completions", msgspec.json.encode(body)) as response:
        if response.status != 200:
            shown.line("error", (await response.body()).decode("utf-8", "replace"), "error")
            return {"role": "assistant", "content": ""}
        while data := await response.read():
            for event in reader.feed(data):
                if event == b"[DONE]":
                    continue
                chunk = json.loads(event)
                if "error" in chunk:
                    shown.line("error", chunk["error"]["message"], "error")
                for choice in chunk.get("choices", ()):
                    deltas.append(_delta(choice["delta"]))
                    _show(deltas[-1], shown)
    shown.end()
    return assemble(deltas).message()


def _delta(delta: dict[str, Any]) -> DeltaMessage:
    reasoning = delta.get("reasoning") or delta.get("reasoning_content")
    return msgspec.convert({**delta, "reasoning": reasoning}, DeltaMessage)


def _show(delta: DeltaMessage, shown: _Shown) -> None:
    if delta.reasoning:
        shown.append("thinks", delta.reasoning, "reasoning")
    if delta.content:
        shown.append("says", delta.content, "content")
    for call in delta.tool_calls or ():
        function = call.function
        if function is None:
            continue
        if function.name:
            shown.end()
            shown.append("calls", f"{function.name} ", "name")
        if function.arguments:
            shown.append("calls", function.arguments, "arguments")


class _Shown:
    """Prints labelled lines that grow with each delta."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._colour = coloured(out)
        self._label = ""

    def append(self, label: str, text: str, style: str) -> None:
        if label != self._label:
            self.end()
            self._label = label
            self._out.write(f"{label:>8}  ")
        text = visible(text).replace("\n", "\n" + " " * 10)
        self._out.write(paint(text, style) if self._colour else text)
        self._out.flush()

    def line(self, label: str, text: str, style: str) -> None:
        self.end()
        self.append(label, text, style)
        self.end()

    def gap(self) -> None:
        self.end()
        self._out.write("\n")

    def end(self) -> None:
        if self._label:
            self._label = ""
            self._out.write("\n")
            self._out.flush()
