"""Finds the raw outputs in texts that hold more than one output: an API's answer as JSON, and rows as JSON.

* An answer has what the server made of the output. If the server took nothing out of it, its content is the raw output.
* If it took the reasoning, the content is the rest of the output, and the reasoning is put back (`Output.put_back`).
* If it took calls, the raw output is not in it, and `Answer.problem` gives the reason: what it left may be a copy of
  them, or a call next to them.
* Rows are a JSON array, or lines of JSON: each is a text, an object with the text in a column, or an answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from ..format import Format
from ..format._markers import text_of
from ..messages import Item, ParsedOutput
from .backends.recognition import markers_in
from .deltas import REASONS
from .sse import EventReader

__all__ = [
    "OUTPUT",
    "Answer",
    "Output",
    "answer_in",
    "answer_of",
    "columns_in",
    "failure_of",
    "may_be_answer",
    "rows_in",
]

_GIVE: Final = (
    'give the raw output: from untemplate\'s gateway with "untemplate": {"raw": true} in the request, from vLLM and '
    'SGLang with "skip_special_tokens": false and a server that was started without parsers'
)
_REASONING: Final = ("reasoning_content", "reasoning", "thinking")
_PARSED: Final = (*_REASONING, "tool_calls")
"""Members of a message that a server makes of an output."""
_ANSWER: Final = re.compile(r'\s{0,64}(?:data:|event:|\{(?=[^\x00]{0,4000}"(?:choices|object|done|type)"))')
OUTPUT: Final = "output"
"""The usual column of rows."""


@dataclass(frozen=True, slots=True)
class Output:
    """A raw output in an answer."""

    text: str
    finish_reason: str | None = None
    reasoning: str = ""
    """Reasoning that the server took out of it."""

    def context(self, fmt: Format) -> dict[str, Any]:
        """Return the arguments of `OutputParser.parse` that it needs: reasoning that the server took has ended."""
        if not self.reasoning or fmt.reasoning is None:
            return {}
        prompt = f"{text_of(fmt.reasoning.open)}\n\n{fmt.reasoning.close.text}\n\n"
        return {"prompt": prompt, "prompt_token_ids": None}

    def put_back(self, parsed: ParsedOutput) -> str:
        """Put the reasoning that the server took before a message. Return the reason if that is not possible."""
        if not self.reasoning:
            return ""
        if parsed.reasoning is not None:
            return f"the server took reasoning out of it, and its content has reasoning of its own; {_GIVE}"
        parsed.reasoning = self.reasoning
        parsed.items.insert(0, Item(type="reasoning", text=self.reasoning))
        return ""


@dataclass(frozen=True, slots=True)
class Answer:
    """An API's answer, or what a program wrote of one."""

    what: str
    """Example: ``an answer of Chat Completions``."""
    outputs: tuple[Output, ...] = ()
    """Those that are in it, of each choice."""
    parsed: tuple[str, ...] = ()
    """Members of its message that the server took out of the output."""
    read: str = "content"
    """The member that was read."""

    def note(self, file: str) -> str:
        """Return the line that reports what was read."""
        taken = f", from which the server took {' and '.join(self.parsed)}" if self.parsed else ""
        more = f" of the first of {len(self.outputs)} choices" if len(self.outputs) > 1 else ""
        return f"{file} is {self.what}: its {self.read}{more} is read{taken}"

    def problem(self, file: str) -> str:
        """Return the reason why no raw output is in it, as a line; empty if one is."""
        if self.outputs:
            return ""
        why = f"the server parsed it already ({', '.join(self.parsed)})" if self.parsed else "it has no text"
        return f"{file} is {self.what} without the raw output: {why}; {_GIVE}"


def answer_in(text: str) -> Answer | None:
    """Return the answer that a text is: a JSON object, a stream of events, or JSON text with an output that has
    markers. ``None`` if it is not one."""
    start = text[:64].lstrip("\ufeff \t\r\n")
    if start.startswith(("data:", "event:")):
        return _streamed(_events(text))
    if start.startswith('"'):
        value = _json(text)
        is_output = isinstance(value, str) and "\\" in text and any(markers_in(value))
        return Answer("a JSON string", (Output(value),), read="value") if is_output else None
    return answer_of(_json(text)) if start.startswith("{") else None


def may_be_answer(beginning: str) -> bool:
    """True if a text that begins like this may be an API's answer, so that the whole of it has to be read."""
    return _ANSWER.match(beginning) is not None


def rows_in(text: str, column: str | None = None) -> list[tuple[int, Any]] | None:
    """Return the rows that a text is, each with its number: of the line, or in the array. ``None`` if it is no rows.

    A line that is not a row is among them, as it is, if the first one is.

    Args:
        column: of the raw output. If it is given, each object is a row; otherwise answers, and those with `OUTPUT`.
    """
    start = text[:64].lstrip("\ufeff \t\r\n")
    if not start.startswith(("[", "{", '"')):
        return None
    whole = _json(text)
    if isinstance(whole, list):
        rows = list(enumerate(whole, 1))
    elif whole is None:
        rows = [(number, _json_or_bytes(line)) for number, line in _lines(text)]
    else:
        rows = [(1, whole)]
    if not rows or (isinstance(whole, str) and column is None):
        return None
    first = rows[0][1]
    begins = whole is None and isinstance(first, dict) and _is_row(first, column)
    if not begins and not all(_is_row(value, column) for _, value in rows):
        return None
    return [(number, {column or OUTPUT: value} if isinstance(value, str) else value) for number, value in rows]


def columns_in(text: str) -> list[str]:
    """Return the members of the first object of a text of rows, whatever they are called; none for other texts."""
    whole = _json(text) if text[:64].lstrip("\ufeff \t\r\n").startswith(("[", "{")) else None
    if whole is None:
        whole = [_json(line) for _, line in islice(_lines(text), 1)]
    first = whole[0] if isinstance(whole, list) and whole else whole
    return list(first) if isinstance(first, dict) else []


# -- JSON ---------------------------------------------------------------------------------------------------------


def _json(text: str) -> Any:
    try:
        return json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return None


def _json_or_bytes(line: str) -> Any:
    value = _json(line)
    return line.encode("utf-8", "surrogateescape") if value is None else value


def _lines(text: str) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(text.split("\n"), 1) if line and not line.isspace())


def _is_row(value: Any, column: str | None) -> bool:
    if not isinstance(value, dict):
        return isinstance(value, str)
    return column is not None or isinstance(value.get(OUTPUT), str) or answer_of(value) is not None


# -- Answers ------------------------------------------------------------------------------------------------------


def answer_of(value: Any) -> Answer | None:
    """Return the answer that a JSON value is; ``None`` if it is not one."""
    if not isinstance(value, dict):
        return None
    choices = _objects(value.get("choices"))
    if choices:
        return _of_choices(choices)
    message, response = value.get("message"), value.get("response")
    if isinstance(response, dict):  # a row of a batch API: {"custom_id": …, "response": {"body": …}}
        return answer_of(response.get("body"))
    if isinstance(response, str):
        message = {"content": response, "thinking": value.get("thinking")}
    if isinstance(message, dict) and "done" in value:
        return _of_messages("an answer of Ollama", [(message, value.get("done_reason"), None)])
    content = _objects(value.get("content"))
    if value.get("type") == "message" and content:
        return _of_blocks("an answer of Messages", content, value.get("stop_reason"))
    output = _objects(value.get("output"))
    if value.get("object") == "response" and output:
        return _of_blocks("an answer of Responses", output, value.get("status"))
    return None


def failure_of(value: Mapping[str, Any]) -> str:
    """Return the error that a batch API wrote instead of an answer; empty without one."""
    response = value.get("response")
    body = response.get("body") if isinstance(response, dict) else None
    for holder in (value, body):
        error = holder.get("error") if isinstance(holder, dict) else None
        said = error.get("message") or error.get("code") if isinstance(error, dict) else error
        if isinstance(said, str) and said:
            return f"its request failed: {said:.200}"
    status = response.get("status_code") if isinstance(response, dict) else None
    return f"its request failed: HTTP {status}" if isinstance(status, int) and status >= 400 else ""


def _objects(value: Any) -> list[dict[str, Any]]:
    """Return a list of objects; an empty one for any other value."""
    return value if isinstance(value, list) and all(isinstance(one, dict) for one in value) else []


def _of_choices(choices: Sequence[dict[str, Any]]) -> Answer | None:
    if all(isinstance(one.get("text"), str) for one in choices):
        return Answer(
            "an answer of Completions",
            tuple(output for one in choices for output in _left(one["text"], {}, one.get("finish_reason"))),
            read="text",
        )
    if not all(isinstance(one.get("message"), dict) for one in choices):
        return None
    messages = [(one["message"], one.get("finish_reason"), one.get("untemplate")) for one in choices]
    return _of_messages("an answer of Chat Completions", messages)


def _of_messages(what: str, messages: Sequence[tuple[Mapping[str, Any], Any, Any]]) -> Answer:
    """Return the answer of messages, each with its finish reason and what untemplate's gateway reports."""
    outputs: list[Output] = []
    parsed: dict[str, None] = {}
    read = "content"
    for message, reason, reports in messages:
        content = message.get("content")
        taken = {name: message[name] for name in _PARSED if message.get(name)}
        if isinstance(reports, dict) and isinstance(reports.get("raw"), str):
            content, taken, read = reports["raw"], {}, "raw output"
        parsed.update(dict.fromkeys(taken))
        if isinstance(content, str) or taken:
            outputs += _left(content if isinstance(content, str) else "", taken, reason)
    return Answer(what, tuple(outputs), tuple(parsed), read)


def _of_blocks(what: str, blocks: Sequence[dict[str, Any]], reason: Any) -> Answer:
    """Return the answer of blocks of text, reasoning and calls."""
    texts: list[str] = []
    parsed: dict[str, Any] = {}
    for block in blocks:
        inner = block.get("content") if block.get("type") == "message" else [block]
        for part in inner if isinstance(inner, list) else ():
            text = part.get("text") if isinstance(part, dict) else None
            if isinstance(text, str) and part.get("type") in ("text", "output_text"):
                texts.append(text)
            elif isinstance(part, dict):
                kind, thought = str(part.get("type")), _thought(part)
                before = parsed.get(kind, "")
                parsed[kind] = None if thought is None or before is None else before + thought
    return Answer(what, _left("".join(texts), parsed, reason), tuple(parsed))


def _thought(block: Mapping[str, Any]) -> str | None:
    """Return the reasoning of a block; ``None`` if its text is not there."""
    if isinstance(thinking := block.get("thinking"), str):
        return thinking
    texts = [part.get("text") for part in _objects(block.get("content")) if part.get("type") == "reasoning_text"]
    return "".join(map(str, texts)) if texts else None


def _left(content: str, taken: Mapping[str, Any], reason: Any) -> tuple[Output, ...]:
    """Return the output of a content, out of which a server may have taken parts; none if they were not reasoning."""
    if not all(name in _REASONING and isinstance(value, str) for name, value in taken.items()):
        return ()
    if len(set(taken.values())) > 1:  # two fields of one text are usual, of two texts one would be lost
        return ()
    reason = REASONS.get(reason, reason) if isinstance(reason, str) and reason else None
    return (Output(content, reason, next(iter(taken.values()), "")),)


# -- Streams ------------------------------------------------------------------------------------------------------


def _events(text: str) -> list[Any]:
    reader = EventReader()
    try:
        events = reader.feed(text.encode("utf-8", "surrogateescape")) + reader.end()
    except ValueError:
        return []
    return [_json(event.decode("utf-8", "surrogateescape")) for event in events]


def _streamed(events: Sequence[Any]) -> Answer | None:
    """Return the answer of the chunks of Chat Completions or Completions."""
    chunks = [one for one in events if isinstance(one, dict)]
    listed = [one["choices"] for one in chunks if isinstance(one.get("choices"), list)]
    choices = [choice for found in listed for choice in found if isinstance(choice, dict)]
    if not choices:
        types = {str(one.get("type")) for one in chunks if "type" in one}
        api = "Responses" if any(t.startswith("response.") for t in types) else "Messages"
        return Answer(f"a stream of {api}", (), ("as a stream",)) if types else None
    whole: dict[str, dict[str, Any]] = {}
    pieces: dict[tuple[str, str | None], list[str]] = {}
    for choice in choices:
        index = repr(choice.get("index"))
        one = whole.setdefault(index, {"message": {}})
        delta = choice.get("delta")
        for name, value in (delta if isinstance(delta, dict) else {}).items():
            if isinstance(value, str):
                pieces.setdefault((index, name), []).append(value)
            else:
                one["message"][name] = value or one["message"].get(name)
        if isinstance(choice.get("text"), str):
            pieces.setdefault((index, None), []).append(choice["text"])
        for name in ("finish_reason", "untemplate"):
            one[name] = choice.get(name) or one.get(name)
    for (index, name), texts in pieces.items():
        if name is None:
            whole[index]["text"] = "".join(texts)
        else:
            whole[index]["message"][name] = "".join(texts)
    return _of_choices(list(whole.values()))
