"""Requests to the three APIs of vLLM's server, and their answers in one form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import httpx

__all__ = ["APIS", "CHOICES", "NAME", "TOOLS", "Answer", "ask", "body", "judge", "read"]

APIS = {"chat": "/chat/completions", "responses": "/responses", "anthropic": "/messages"}
"""Name of an API → its path."""
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather of a city.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city"],
            },
        },
    }
]
NAME = "get_weather"
CHOICES: dict[str, dict[str, Any]] = {
    "auto": dict.fromkeys(APIS),
    "required": {"chat": "required", "responses": "required", "anthropic": {"type": "any"}},
    "named": {
        "chat": {"type": "function", "function": {"name": NAME}},
        "responses": {"type": "function", "name": NAME},
        "anthropic": {"type": "tool", "name": NAME},
    },
    "none": {"chat": "none", "responses": "none", "anthropic": {"type": "none"}},
}
"""Choice of tools → the value of ``tool_choice`` in each API."""


class Answer(NamedTuple):
    """An answer of any API.

    Attributes:
        calls: (name, arguments) of each call. In a stream of the Responses API only those that are marked as completed.
        asks: True if the answer tells the client to run its calls. All whole answers with calls do.
    """

    reasoning: str
    content: str
    calls: list[tuple[str, str]]
    asks: bool

    @property
    def is_empty(self) -> bool:
        return not (self.reasoning or self.content or self.calls)


def body(
    api: str, asked: str, limit: int, *, stop: str | None = None, stream: bool, choice: str = "auto"
) -> dict[str, Any]:
    """Return a request. ``choice`` is a key of `CHOICES`."""
    function = TOOLS[0]["function"]
    made: dict[str, Any] = {"model": "m", "temperature": 0, "stream": stream}
    if api == "responses":
        made |= {"input": asked, "max_output_tokens": limit}
        tools: list[dict[str, Any]] = [{"type": "function", **function}]
    else:
        made |= {"messages": [{"role": "user", "content": asked}], "max_tokens": limit}
        tools = TOOLS
    if api == "anthropic":
        tools = [{"name": NAME, "description": function["description"], "input_schema": function["parameters"]}]
    if stop:
        made["stop_sequences" if api == "anthropic" else "stop"] = [stop]
    if CHOICES[choice][api] is not None:
        made["tool_choice"] = CHOICES[choice][api]
    return {**made, "tools": tools}


def ask(client: httpx.Client, api: str, request: dict[str, Any]) -> Answer | str:
    """Return the answer to a request; the text of an error."""
    response = client.post(APIS[api], json=request)
    if response.status_code != 200:
        return f"{response.status_code} {response.text}"
    if not request["stream"]:
        return _of_answer[api](response.json())
    return _of_events[api](_events(response.text.splitlines()))


def judge(answer: Answer | str, calls: Sequence[tuple[str, dict[str, Any]]]) -> tuple[str, Any]:
    """Return what is wrong with an answer that may have been cut, and the part of it that is.

    ``error``; ``served``: it has a call that is none of ``calls``, and tells the client to run it; ``shown``: it has
    one, and its finish reason shows the cut; ``empty``.
    """
    if isinstance(answer, str):
        return "error", answer
    broken = [(name, arguments) for name, arguments in answer.calls if (name, read(arguments)) not in calls]
    if broken:
        return "served" if answer.asks else "shown", broken
    return ("empty" if answer.is_empty else ""), answer


def read(arguments: str) -> Any:
    """Return arguments as a value; their text if they are not JSON."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _events(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the events of a stream."""
    for line in lines:
        if line.startswith("data:") and line[5:].strip() != "[DONE]":
            yield json.loads(line[5:])


# -- Chat completions ---------------------------------------------------------------------------------------------


def _chat(found: dict[str, Any]) -> Answer:
    message = found["choices"][0]["message"]
    calls = [(one["function"]["name"], one["function"]["arguments"]) for one in message.get("tool_calls") or ()]
    return Answer(message.get("reasoning") or "", message.get("content") or "", calls, True)


def _chat_streamed(found: Iterable[dict[str, Any]]) -> Answer:
    texts = {"reasoning": "", "content": ""}
    calls: dict[int, list[str]] = {}
    reason = None
    for choice in (choice for event in found for choice in event.get("choices", ())):
        reason = choice.get("finish_reason") or reason
        delta = choice["delta"]
        for name in texts:
            texts[name] += delta.get(name) or ""
        for part in delta.get("tool_calls") or ():
            call = calls.setdefault(part["index"], ["", ""])
            function = part.get("function") or {}
            call[0] += function.get("name") or ""
            call[1] += function.get("arguments") or ""
    return Answer(**texts, calls=_pairs(calls), asks=reason == "tool_calls")


# -- Responses ----------------------------------------------------------------------------------------------------


def _responses(found: dict[str, Any]) -> Answer:
    texts = {"reasoning": "", "message": ""}
    calls = []
    for item in found["output"]:
        if item["type"] == "function_call":
            calls.append((item["name"], item["arguments"]))
        else:
            texts[item["type"]] += "".join(part.get("text") or "" for part in item.get("content") or ())
    return Answer(texts["reasoning"], texts["message"], calls, True)


def _responses_streamed(found: Iterable[dict[str, Any]]) -> Answer:
    return _responses({"output": [one["item"] for one in found if one["type"] == "response.output_item.done"]})


# -- Anthropic's messages -----------------------------------------------------------------------------------------


def _anthropic(found: dict[str, Any]) -> Answer:
    blocks = found["content"]
    calls = [(one["name"], json.dumps(one["input"])) for one in blocks if one["type"] == "tool_use"]
    reasoning = "".join(one.get("thinking") or "" for one in blocks)
    return Answer(reasoning, "".join(one.get("text") or "" for one in blocks), calls, True)


def _anthropic_streamed(found: Iterable[dict[str, Any]]) -> Answer:
    calls: dict[int, list[str]] = {}
    reason = None
    texts = {"thinking": "", "text": ""}
    for event in found:
        if event["type"] == "content_block_start" and event["content_block"]["type"] == "tool_use":
            calls[event["index"]] = [event["content_block"]["name"], ""]
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            for name in texts:
                texts[name] += delta.get(name) or ""
            if delta.get("partial_json"):
                calls[event["index"]][1] += delta["partial_json"]
        elif event["type"] == "message_delta":
            reason = event["delta"].get("stop_reason")
    return Answer(texts["thinking"], texts["text"], _pairs(calls), reason == "tool_use")


def _pairs(calls: dict[int, list[str]]) -> list[tuple[str, str]]:
    return [(name, arguments) for name, arguments in calls.values()]


_of_answer = {"chat": _chat, "responses": _responses, "anthropic": _anthropic}
_of_events = {"chat": _chat_streamed, "responses": _responses_streamed, "anthropic": _anthropic_streamed}
