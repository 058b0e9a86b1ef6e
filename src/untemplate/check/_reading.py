"""Responses of the APIs → `Observation`, with the violations of the protocol that were found on the way."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from ._client import Answer
from ._model import Call, Message, Observation

_REASONING: Final = ("reasoning_content", "reasoning")


class Malformed(Exception):
    """A response that is not one of its API; the message is one line."""


def chat(answer: Answer) -> Observation:
    """Read a response of Chat Completions, whole or streamed.

    Raises:
        Malformed: it is not a response of Chat Completions.
    """
    if answer.events:
        return _Stream().read(answer.events)
    return _whole(answer)


def completion(answer: Answer) -> Observation:
    """Read a whole response of Completions; its text is the content.

    Raises:
        Malformed: it is not a response of Completions.
    """
    choice = _choices(answer, "Completions")[0]
    if not isinstance(choice.get("text"), str):
        raise Malformed(f"the response is not one of Completions: {answer.text[:60]!r}")
    return Observation(
        message=Message(content=choice["text"], finish_reason=str(choice.get("finish_reason") or "")),
        token_ids=choice.get("token_ids") if isinstance(choice.get("token_ids"), list) else None,
        usage=answer.value.get("usage"),
    )


def _choices(answer: Answer, api: str) -> list[dict[str, Any]]:
    if isinstance(answer.value, dict) and answer.value.get("error"):
        raise Malformed(f"an error came with the status 200: {json.dumps(answer.value['error'])[:160]}")
    choices = answer.value.get("choices") if isinstance(answer.value, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        what = "HTML" if "html" in answer.headers.get("content-type", "") else repr(answer.text[:60])
        raise Malformed(f"the response is not one of {api}: {what}")
    return choices


def _whole(answer: Answer) -> Observation:
    choices = _choices(answer, "Chat Completions")
    choice = choices[0]
    found = choice.get("message")
    message: dict[str, Any] = found if isinstance(found, dict) else {}
    problems: list[str] = []
    if message.get("role") != "assistant":
        problems.append(f"the role is {message.get('role')!r}, not 'assistant'")
    calls = [_call(call, problems) for call in message.get("tool_calls") or ()]
    ids = [call.get("id") for call in message.get("tool_calls") or () if isinstance(call, dict)]
    if len(set(map(str, ids))) < len(ids) or not all(ids):
        problems.append(f"the ids of the calls are not different texts: {ids}")
    return Observation(
        message=Message(
            reasoning=_text(message, _REASONING, problems),
            content=_text(message, ("content",), problems),
            calls=tuple(calls),
            finish_reason=str(choice.get("finish_reason") or ""),
        ),
        raw=_raw([choice]),
        logged=_logged(choice),
        token_ids=choice.get("token_ids") if isinstance(choice.get("token_ids"), list) else None,
        usage=answer.value.get("usage"),
        fields=frozenset(key for key, text in message.items() if text),
        problems=problems,
        choices=len({c.get("index") for c in choices if isinstance(c, dict)}),
    )


def _call(call: Any, problems: list[str]) -> Call:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        problems.append("a tool call has no function")
        return Call("", "")
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        problems.append(f"the arguments of a call are {type(arguments).__name__}, not JSON text")
        arguments = json.dumps(arguments)
    return Call(str(function.get("name") or ""), arguments)


def _text(message: dict[str, Any], names: tuple[str, ...], problems: list[str]) -> str:
    for name in names:
        value = message.get(name)
        if value is not None and not isinstance(value, str):
            problems.append(f"{name} is {type(value).__name__}, not a string")
        elif value:
            return str(value)
    return ""


def _raw(choices: list[dict[str, Any]]) -> str | None:
    """Return the raw output: as untemplate's gateway reports it."""
    for choice in choices:
        reports = choice.get("untemplate")
        if isinstance(reports, dict) and isinstance(reports.get("raw"), str):
            return str(reports["raw"])
    return None


def _logged(choice: dict[str, Any]) -> str | None:
    """Return the text of the tokens whose log probabilities are reported."""
    tokens = (choice.get("logprobs") or {}).get("content") or ()
    parts = [bytes(token.get("bytes") or ()) or str(token.get("token") or "").encode() for token in tokens]
    return b"".join(parts).decode("utf-8", "replace") if parts else None


def objects(events: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a stream.

    Raises:
        Malformed: an event is not one.
    """
    for event in events:
        if event.strip() == "[DONE]":
            continue
        try:
            value = json.loads(event)
        except ValueError:
            raise Malformed(f"an event of the stream is not JSON: {event[:60]!r}") from None
        if not isinstance(value, dict):
            raise Malformed(f"an event of the stream is not an object: {event[:60]!r}")
        yield value


class _Stream:
    """Assembles a stream."""

    def __init__(self) -> None:
        self.texts = {"reasoning": "", "content": ""}
        self.calls: list[list[str]] = []
        self.ids: list[Any] = []
        self.problems: list[str] = []
        self.fields: set[str] = set()
        self.finish = ""

    def read(self, events: list[str]) -> Observation:
        deltas: list[Any] = []
        choices: list[dict[str, Any]] = []
        usage = None
        seen: set[Any] = set()
        for value in objects(events):
            if value.get("error"):
                raise Malformed(f"the stream reports an error: {json.dumps(value['error'])[:160]}")
            usage = value.get("usage") or usage
            for choice in value.get("choices") or ():
                seen.add(choice.get("index"))
                if choice.get("index", 0) == 0:
                    choices.append(choice)
                    deltas.append(choice.get("delta") or {})
                    self._choice(choice)
        if events[-1].strip() != "[DONE]":
            self.problems.append("the stream does not end with [DONE]")
        if not self.finish:
            self.problems.append("the stream ended without a finish reason")
        ids = [token for choice in choices for token in choice.get("token_ids") or ()]
        message = Message(
            **self.texts, calls=tuple(Call(name, text) for name, text in self.calls), finish_reason=self.finish
        )
        return Observation(
            message=message,
            stream=True,
            deltas=deltas,
            raw=_raw(choices),
            token_ids=ids or None,
            usage=usage,
            fields=frozenset(self.fields),
            problems=self.problems,
            choices=len(seen),
        )

    def _choice(self, choice: dict[str, Any]) -> None:
        delta = choice.get("delta") or {}
        self.fields |= {key for key, value in delta.items() if value}
        if self.finish and any(delta.get(key) for key in (*_REASONING, "content", "tool_calls")):
            self.problems.append("a delta came after the finish reason")
        self.texts["reasoning"] += _text(delta, _REASONING, self.problems)
        self.texts["content"] += _text(delta, ("content",), self.problems)
        for part in delta.get("tool_calls") or ():
            self._part(part)
        self.finish = choice.get("finish_reason") or self.finish

    def _part(self, part: dict[str, Any]) -> None:
        index = part.get("index")
        if not isinstance(index, int) or not 0 <= index <= len(self.calls):
            self.problems.append(f"a delta has the call index {index!r} after {len(self.calls)} calls")
            index = len(self.calls)
        function = part.get("function") or {}
        if index == len(self.calls):
            self.calls.append(["", ""])
            self.ids.append(part.get("id"))
            if not part.get("id") or not function.get("name"):
                self.problems.append(f"the first delta of call {index} has no {'name' if part.get('id') else 'id'}")
        elif part.get("id") not in (None, "", self.ids[index]):
            self.problems.append(f"the id of call {index} changes")
        call = self.calls[index]
        name = function.get("name") or ""
        if name and call[0]:
            self.problems.append(f"the name of call {index} is sent twice")
        call[0] = call[0] or name
        call[1] += function.get("arguments") or ""
