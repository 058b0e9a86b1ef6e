"""Responses of OpenAI's Responses, whole and as events.

* Reasoning is sent as open-weight servers do: items of type ``reasoning`` whose content is ``reasoning_text``, with
  nothing encrypted. If the request asks for a summary, the whole reasoning is sent as the summary instead.
* Calls of tools that are no functions for the client (`tools.Given`) are buffered, and sent when they close.
* The last event of a stream holds the same object as the whole response. An item closes when the next one begins; only
  the last one can be incomplete.

Sources: OpenAI API reference, "Responses" and "Streaming events"; openai-python's ``ResponseStreamState`` for what
clients require.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from untemplate.messages import ParsedOutput

from ...errors import ApiError
from ...generation import Ended, Generation, Meta, TokenLogprob, Usage
from ..arguments import arguments_object
from ..encoding import ItemWriter, encode, encode_text, event
from ..objects import logprob_object, merged_items, reports_of
from ..tools import custom_input
from .tools import Given


def respond_responses(request: Generation, ended: Sequence[Ended], usage: Usage, meta: Meta) -> dict[str, Any]:
    """Return a ``response``."""
    (one,) = ended
    response = _response(request, meta, _status(one), _output(request, one, meta), usage=usage, ended=one)
    _keep(request, response)
    return response


def waiting_response(request: Generation, meta: Meta) -> dict[str, Any]:
    """Return a ``response`` that is generated later."""
    return {**_response(request, meta, "queued", []), "store": True}


def _keep(request: Generation, response: dict[str, Any]) -> None:
    """Store a response. If that fails, the response says so: generating it again would not help."""
    if request.keep is not None and not request.keep(response):
        response["store"] = False
        request.notes.add("store: the response could not be stored; it cannot be referred to")


def _response(
    request: Generation,
    meta: Meta,
    status: str,
    output: list[dict[str, Any]],
    *,
    usage: Usage | None = None,
    ended: Ended | None = None,
    error: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the object of a response."""
    repeated = request.repeated
    response: dict[str, Any] = {
        "id": f"resp_{meta.id}",
        "object": "response",
        "created_at": meta.created,
        "conversation": repeated.get("conversation"),
        "status": status,
        "background": repeated.get("background", False),
        "error": error,
        "incomplete_details": None,
        "instructions": repeated.get("instructions"),
        "max_output_tokens": request.max_tokens,
        "model": meta.model,
        "output": output,
        "parallel_tool_calls": request.parallel_tool_calls,
        "previous_response_id": repeated.get("previous_response_id"),
        "prompt_cache_key": repeated.get("prompt_cache_key"),
        "reasoning": repeated.get("reasoning"),
        "safety_identifier": repeated.get("safety_identifier"),
        "service_tier": "default",
        "store": request.keep is not None,
        "temperature": request.sampling.temperature,
        "text": repeated.get("text"),
        "tool_choice": repeated.get("tool_choice", "auto"),
        "tools": [{"strict": None, **tool} for tool in repeated.get("tools") or _functions(request)],
        "top_logprobs": repeated.get("top_logprobs"),
        "top_p": request.sampling.top_p,
        "truncation": "disabled",
        "usage": None if usage is None else _usage(usage),
        "user": repeated.get("user"),
        "metadata": repeated.get("metadata", {}),
    }
    if ended is not None:
        if status == "incomplete":
            reason = "content_filter" if ended.finish_reason == "content_filter" else "max_output_tokens"
            response["incomplete_details"] = {"reason": reason}
        response |= reports_of(request, ended)
    return response


def _functions(request: Generation) -> list[dict[str, Any]]:
    return [{**tool["function"], "type": "function"} for tool in request.tools or ()]


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }


_STATUS: Final = {"length": "incomplete", "content_filter": "incomplete", "error": "failed"}


def _status(ended: Ended) -> str:
    return _STATUS.get(ended.finish_reason, "completed")


def _item_status(parsed: ParsedOutput, status: str) -> str:
    """Return the status of the last item: a call has its own, text that of the response."""
    last = parsed.items[-1] if parsed.items else None
    if last is not None and last.call is not None:
        return "incomplete" if last.call.status == "incomplete" else "completed"
    return "completed" if status == "completed" else "incomplete"


def _output(request: Generation, ended: Ended, meta: Meta) -> list[dict[str, Any]]:
    """Return the items of a whole response."""
    items = merged_items(ended.parsed)
    logprobs = list(ended.logprobs or ())
    output = []
    for index, item in enumerate(items):
        last = index == len(items) - 1
        status = _item_status(ended.parsed, _status(ended)) if last else "completed"
        kind, id, found = _shown_kind(request, item.type), _id(item.type, meta, index), []
        if item.call is not None:
            function = item.call.function
            given = _given(request, function.name)
            output.append(_call(id, status, item.call.id, function.name, function.arguments, given))
            continue
        text = item.text or ""
        if kind == "content":
            found = logprobs if all(i.type != "content" for i in items[index + 1 :]) else _first(logprobs, len(text))
        output.append(_item(kind, id, status, [_part(kind, text, [logprob_object(token) for token in found])]))
    return output


def _first(logprobs: list[TokenLogprob], size: int) -> list[TokenLogprob]:
    """Remove and return the tokens of the first ``size`` characters."""
    count = 0
    while count < len(logprobs) and size > 0:
        size -= len(logprobs[count].token)
        count += 1
    found = logprobs[:count]
    del logprobs[:count]
    return found


_PREFIXES: Final = {"reasoning": "rs", "content": "msg", "tool_call": "fc"}


def _id(kind: str, meta: Meta, index: int) -> str:
    return f"{_PREFIXES[kind]}_{meta.id}_{index}"


def _shown_kind(request: Generation, kind: str) -> str:
    """Return the kind of an item; reasoning that the request wants as its summary is of a kind of its own."""
    wanted = kind == "reasoning" and (request.repeated.get("reasoning") or {}).get("summary")
    return "summary" if wanted else kind


def _given(request: Generation, name: str) -> Given | None:
    found: Given | None = request.repeated.get("given", {}).get(name)
    return found


def _item(kind: str, id: str, status: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    if kind == "content":
        return {"id": id, "type": "message", "status": status, "role": "assistant", "content": parts}
    places = {"summary": parts, "content": []} if kind == "summary" else {"summary": [], "content": parts}
    return {"id": id, "type": "reasoning", "status": status, **places}


def _part(kind: str, text: str, logprobs: list[dict[str, Any]]) -> dict[str, Any]:
    if kind == "content":
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}
    return {"type": f"{kind}_text", "text": text}


def _call(id: str, status: str, call_id: str, name: str, arguments: str, given: Given | None = None) -> dict[str, Any]:
    """Return a call as the item that the client expects. ``given``: how it knows the function."""
    if given is None or given.kind == "function":
        shown = {"name": name if given is None else given.name, "arguments": arguments}
        kind = "function_call"
    elif given.kind == "custom":
        shown = {"name": given.name, "input": custom_input(arguments)}
        kind = "custom_tool_call"
    else:
        action = {"type": "exec", "env": {}, **arguments_object(arguments)}
        return {"id": id, "type": "local_shell_call", "status": status, "call_id": call_id, "action": action}
    if given is not None and given.namespace is not None:
        shown["namespace"] = given.namespace
    return {"id": id, "type": kind, "status": status, "call_id": call_id, **shown}


# -- The stream --------------------------------------------------------------------------------------------------

_ERROR_CODES: Final = {400: "invalid_prompt", 429: "rate_limit_exceeded"}


_EVENTS: Final = {
    "content": ("output_text", "content_part", "content_index"),
    "reasoning": ("reasoning_text", "content_part", "content_index"),
    "summary": ("reasoning_summary_text", "reasoning_summary_part", "summary_index"),
}
"""Kind of an item → the names of the events of its text and its part, and the field of the part's number."""
_ARGUMENTS: Final = ("function_call_arguments", "", "")


class ResponsesWriter(ItemWriter):
    """Writes the events of a streamed response."""

    def __init__(self, request: Generation, meta: Meta) -> None:
        super().__init__(request, meta)
        self._sequence = -1
        self._output: list[dict[str, Any]] = []
        """The closed items."""
        self._shown = ""
        """Kind of the open item for the client."""
        self._call = ("", "")
        """Id and name of the open call."""
        self._given: Given | None = None
        """How the client knows the function of the open call; ``None`` for an ordinary one."""
        self._texts: list[str] = []
        """Text of the open item, or arguments of its call."""
        self._logprobs: list[dict[str, Any]] = []
        self._place: dict[str, Any] = {}
        self._tail = b""
        """Bytes after the text of a delta of the open item, up to the number of the event."""

    def _event(self, name: str, /, **data: Any) -> bytes:
        self._sequence += 1
        return event(name, {"type": name, **data, "sequence_number": self._sequence})

    def begin(self, usage: Usage) -> bytes:
        response = _response(self._request, self._meta, "in_progress", [])
        return self._event("response.created", response=response) + self._event(
            "response.in_progress", response=response
        )

    def _append(self, text: str) -> bytes:
        self._texts.append(text)
        if not self._head:  # a call that is sent when it closes
            return b""
        self._sequence += 1
        return b"%b%b%b%d}\n\n" % (self._head, encode_text(text), self._tail, self._sequence)

    def _append_with(self, text: str, logprobs: list[TokenLogprob]) -> bytes:
        self._texts.append(text)
        found = [logprob_object(token) for token in logprobs]
        self._logprobs += found
        return self._event("response.output_text.delta", **self._place, delta=text, logprobs=found)

    def _open(self, kind: str, id: str = "", name: str = "") -> bytes:
        out = self._close("completed")
        index = len(self._output)
        self._kind, self._shown, self._call, self._head = kind, _shown_kind(self._request, kind), (id, name), b""
        self._place = {"item_id": _id(kind, self._meta, index), "output_index": index}
        self._given = _given(self._request, name) if kind == "tool_call" else None
        if self._given is not None and self._given.kind != "function":
            return out
        text, part, number = _EVENTS.get(kind if kind == "tool_call" else self._shown, _ARGUMENTS)
        if part:
            self._place[number] = 0
        delta = f"response.{text}.delta"
        self._head = b'event: %b\ndata: %b,"delta":' % (delta.encode(), encode({"type": delta, **self._place})[:-1])
        self._tail = b',"logprobs":[],"sequence_number":' if kind == "content" else b',"sequence_number":'
        out += self._event("response.output_item.added", output_index=index, item=self._item("in_progress", None))
        if part:
            out += self._event(f"response.{part}.added", **self._place, part=_part(self._shown, "", []))
        return out

    def _item(self, status: str, text: str | None) -> dict[str, Any]:
        """Return the open item."""
        id = self._place["item_id"]
        if self._kind == "tool_call":
            return _call(id, status, *self._call, text or "", self._given)
        return _item(self._shown, id, status, [] if text is None else [_part(self._shown, text, self._logprobs)])

    def _close(self, status: str) -> bytes:
        """Close the open item."""
        if not self._kind:
            return b""
        text, place = "".join(self._texts), self._place
        item = self._item(status, text)
        if self._kind != "tool_call":
            name, part, _ = _EVENTS[self._shown]
            more = {"logprobs": self._logprobs} if self._kind == "content" else {}
            out = self._event(f"response.{name}.done", **place, text=text, **more)
            out += self._event(f"response.{part}.done", **place, part=_part(self._shown, text, self._logprobs))
        elif self._head:
            out = self._event("response.function_call_arguments.done", **place, name=item["name"], arguments=text)
        else:
            out = self._held_call(item)
        out += self._event("response.output_item.done", output_index=place["output_index"], item=item)
        self._output.append(item)
        self._kind, self._texts, self._logprobs = "", [], []
        return out

    def _held_call(self, item: dict[str, Any]) -> bytes:
        """Write a call that the client knows in another way, up to its end."""
        place, custom = self._place, item["type"] == "custom_tool_call"
        opened = {**item, "status": "in_progress", **({"input": ""} if custom else {})}
        out = self._event("response.output_item.added", output_index=place["output_index"], item=opened)
        if custom:
            out += self._event("response.custom_tool_call_input.delta", **place, delta=item["input"])
            out += self._event("response.custom_tool_call_input.done", **place, input=item["input"])
        return out

    def finish(self, ended: Ended) -> bytes:
        self._ended = ended
        return self._close(_item_status(ended.parsed, _status(ended)))

    def end(self, usage: Usage) -> bytes:
        ended, status = self._ended, _status(self._ended)
        response = _response(self._request, self._meta, status, self._output, usage=usage, ended=ended)
        _keep(self._request, response)
        return self._event(f"response.{status}", response=response)

    def error(self, error: ApiError) -> bytes:
        """Write ``response.failed`` with the output so far, then ``error``, which some clients expect instead."""
        out = self._close("incomplete")
        ended: Ended | None = getattr(self, "_ended", None)
        code = _ERROR_CODES.get(error.status, "server_error")
        response = _response(
            self._request,
            self._meta,
            "failed",
            self._output,
            usage=None if ended is None else ended.usage,
            ended=ended,
            error={"code": code, "message": error.message},
        )
        out += self._event("response.failed", response=response)
        return out + self._event("error", code=error.code, message=error.message, param=error.param)
