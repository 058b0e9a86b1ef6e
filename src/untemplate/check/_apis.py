"""Checks of the APIs Responses and Messages: their streams equal their whole responses, and both agree with Chat.

Sources: OpenAI API reference, "Responses" and "Streaming events"; Anthropic API reference, "Messages" and "Streaming
Messages".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import msgspec

from .._internal.deltas import REASONS
from ._behaviour import STORY, WEATHER
from ._cases import TOOLS
from ._client import Answer
from ._compare import compare
from ._model import Call, Message, Result
from ._reading import Malformed, objects
from ._session import Refused, ServerCheck, Session


def checks() -> Iterator[ServerCheck]:
    """Yield the checks, each with its name."""
    for api in ("responses", "messages"):
        for name, text, tools in (("content", STORY, ()), ("a call", WEATHER, TOOLS[:1])):
            full = f"{api}/{name}"
            yield full, partial(_one, name=full, api=api, text=text, tools=list(tools))


async def _one(session: Session, *, name: str, api: str, text: str, tools: list[dict[str, Any]]) -> list[Result]:
    result = Result(id=name, verdict="cannot", reason=f"this server has no API {api}")
    if api in session.found.apis:
        await session.judged(result, _check(session, result, api, text, tools))
    return [result]


async def _check(session: Session, result: Result, api: str, text: str, tools: list[dict[str, Any]]) -> None:
    result.verdict, result.reason = "pass", ""
    chat, again = [
        (await session.chat(session.request(text, tools=tools or None, max_tokens=200))).message for _ in range(2)
    ]
    body, read = _APIS[api](session.found.model, text, tools)
    messages = []
    for extra in ({}, {"stream": True}):
        answer = await session.post(f"/{api}", {**body, **extra})
        if not answer.ok:
            raise Refused(answer.problem)
        messages.append(read(answer))
    whole, streamed = messages
    verdict, reason = compare(whole, streamed)
    result.got, result.expected = msgspec.to_builtins(streamed), msgspec.to_builtins(whole)
    if compare(chat, again)[0] == "fail":
        result.verdict, result.reason = "cannot", "the model does not repeat itself at temperature 0"
    elif verdict == "fail":
        result.verdict, result.reason = "fail", f"streamed, the message is another one than whole: {reason}"
    elif compare(chat, whole)[0] == "fail":
        result.verdict, result.reason = "soft", f"Chat Completions has another message: {compare(chat, whole)[1]}"
        result.expected = msgspec.to_builtins(chat)


def _responses(model: str, text: str, tools: list[dict[str, Any]]) -> tuple[dict[str, Any], Callable[..., Message]]:
    body: dict[str, Any] = {"model": model, "input": text, "temperature": 0, "max_output_tokens": 200, "store": False}
    if tools:
        body["tools"] = [{"type": "function", **tool["function"], "strict": False} for tool in tools]
    return body, read_responses


def _messages(model: str, text: str, tools: list[dict[str, Any]]) -> tuple[dict[str, Any], Callable[..., Message]]:
    body: dict[str, Any] = {"model": model, "temperature": 0, "max_tokens": 200}
    body["messages"] = [{"role": "user", "content": text}]
    if tools:
        functions = [tool["function"] for tool in tools]
        body["tools"] = [
            {"name": f["name"], "description": f["description"], "input_schema": f["parameters"]} for f in functions
        ]
    return body, read_messages


_APIS: Final = {"responses": _responses, "messages": _messages}


def _object(answer: Answer, api: str) -> dict[str, Any]:
    if not isinstance(answer.value, dict):
        raise Malformed(f"the response is not one of {api}: {answer.text[:60]!r}")
    return answer.value


def _decoded(answer: Answer) -> Iterator[dict[str, Any]]:
    for value in objects(answer.events):
        if value.get("type") in ("error", "response.failed"):
            raise Malformed(f"the stream reports an error: {json.dumps(value)[:160]}")
        yield value


# -- Responses ----------------------------------------------------------------------------------------------------


def read_responses(answer: Answer) -> Message:
    """Return the message of a response of Responses: of a stream, as its deltas make it.

    Raises:
        Malformed: it is not one, or the deltas differ from the final response.
    """
    if not answer.events:
        return _response(_object(answer, "Responses"))
    texts = {"reasoning": "", "content": ""}
    calls: dict[Any, list[str]] = {}
    final: dict[str, Any] | None = None
    for event in _decoded(answer):
        kind, delta = str(event.get("type")), event.get("delta")
        if kind in ("response.reasoning_text.delta", "response.reasoning_summary_text.delta"):
            texts["reasoning"] += str(delta)
        elif kind == "response.output_text.delta":
            texts["content"] += str(delta)
        elif kind == "response.output_item.added" and (event.get("item") or {}).get("type") == "function_call":
            calls[event["item"].get("id")] = [str(event["item"].get("name")), ""]
        elif kind == "response.function_call_arguments.delta":
            calls.setdefault(event.get("item_id"), ["", ""])[1] += str(delta)
        elif kind in ("response.completed", "response.incomplete"):
            final = event.get("response")
    if not isinstance(final, dict):
        raise Malformed("the stream ends without response.completed")
    ended = _response(final)
    made = Message(**texts, calls=tuple(Call(*call) for call in calls.values()), finish_reason=ended.finish_reason)
    verdict, reason = compare(ended, made)
    if verdict == "fail":
        raise Malformed(f"the deltas differ from the final response: {reason}")
    return made


def _response(value: dict[str, Any]) -> Message:
    reasoning = content = ""
    calls = []
    for item in value.get("output") or ():
        parts = [part for part in (item.get("content") or item.get("summary") or ()) if isinstance(part, dict)]
        text = "".join(str(part.get("text") or "") for part in parts)
        if item.get("type") == "reasoning":
            reasoning += text
        elif item.get("type") == "message":
            content += text
        elif item.get("type") == "function_call":
            calls.append(Call(str(item.get("name")), str(item.get("arguments"))))
    reason = REASONS.get(str(value.get("status")), str(value.get("status")))
    reason = "tool_calls" if calls and reason == "stop" else reason
    return Message(reasoning=reasoning, content=content, calls=tuple(calls), finish_reason=reason)


# -- Messages -----------------------------------------------------------------------------------------------------


def read_messages(answer: Answer) -> Message:
    """Return the message of a response of Messages: of a stream, as its deltas make it.

    Raises:
        Malformed: it is not one.
    """
    if not answer.events:
        value = _object(answer, "Messages")
        return _message(value.get("content") or [], value.get("stop_reason"))
    blocks: dict[Any, dict[str, Any]] = {}
    reason = None
    for event in _decoded(answer):
        kind = event.get("type")
        if kind == "content_block_start":
            blocks[event.get("index")] = {**event["content_block"], "json": ""}
        elif kind == "content_block_delta":
            block, delta = blocks.get(event.get("index")), event.get("delta") or {}
            if block is None:
                raise Malformed("a delta of the stream has no block")
            for key in ("text", "thinking"):
                block[key] = block.get(key, "") + delta.get(key, "")
            block["json"] += delta.get("partial_json", "")
        elif kind == "message_delta":
            reason = (event.get("delta") or {}).get("stop_reason") or reason
    return _message(list(blocks.values()), reason)


def _message(blocks: list[dict[str, Any]], reason: Any) -> Message:
    texts = {
        name: "".join(str(block.get(name) or "") for block in blocks if block.get("type") == name)
        for name in ("thinking", "text")
    }
    calls = tuple(
        Call(str(block.get("name")), block.get("json") or json.dumps(block.get("input")))
        for block in blocks
        if block.get("type") == "tool_use"
    )
    return Message(
        reasoning=texts["thinking"],
        content=texts["text"],
        calls=calls,
        finish_reason=REASONS.get(str(reason), str(reason)),
    )
