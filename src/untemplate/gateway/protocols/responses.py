"""OpenAI's Responses (``/v1/responses``).

Rules of this module:

* The gateway keeps no responses: what refers to an earlier one is refused, and every response says ``store: false``.
* Reasoning is given out as open-weight servers do: items of type ``reasoning`` whose content is ``reasoning_text``,
  with no summary and nothing encrypted. What comes back of them in ``input`` is the history's reasoning.
* The last event of a stream holds the very object that the whole response would be. Items close when the next one
  begins; only the last one can be incomplete.

Sources: OpenAI API reference, "Responses" and "Streaming events"; openai-python's ``ResponseStreamState`` for what
clients insist on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...messages import DeltaMessage, DeltaToolCall, ParsedOutput
from ..errors import ApiError
from ..generation import Ended, Generation, Meta, Thinking, TokenLogprob, Usage
from .chat import error_object, logprob_object, sampling, stop_strings, tool_choice
from .common import (
    EVENT_STREAM,
    Fields,
    encode,
    encode_text,
    event,
    function_tool,
    merged_items,
    untemplate_asked,
    untemplate_of,
)

__all__ = ["RESPONSES", "Responses", "ResponsesWriter"]

_HARMLESS: Final = (
    *("store", "stream_options", "service_tier", "max_tool_calls", "prompt_cache_options", "prompt_cache_retention"),
    *("skip_special_tokens", "spaces_between_special_tokens"),
)
"""Fields that change nothing here, and harm nobody."""
_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_ITEMS: Final = ("message", "reasoning", "function_call", "function_call_output")
_STATELESS: Final = "the gateway keeps no responses: send the earlier items in input"
_LOGPROBS: Final = "message.output_text.logprobs"


class Responses:
    """The dialect."""

    name = "responses"

    def read(self, body: dict[str, Any]) -> Generation:
        fields = Fields(body)
        asked = untemplate_asked(fields)
        for name in ("previous_response_id", "conversation"):
            if fields.take(name) is not None:
                raise fields.refused(name, _STATELESS)
        if fields.take("prompt") is not None:
            raise fields.refused("prompt", "the gateway keeps no prompt templates: send instructions and input")
        if fields.flag("background"):
            raise fields.refused("background", "the gateway keeps no responses: leave it out, and stream")
        instructions = fields.text("instructions")
        messages = _messages(fields)
        if instructions:
            messages.insert(0, {"role": "system", "content": instructions})
        tools = [_tool(tool) for tool in fields.objects("tools")]
        top_logprobs = fields.integer("top_logprobs", 0, 20)
        include = fields.texts("include")
        told: dict[str, Any] = {"instructions": instructions, "metadata": _metadata(fields)}
        for name in ("user", "safety_identifier", "prompt_cache_key"):
            told[name] = fields.text(name)
        thinking, told["reasoning"] = _reasoning(fields)
        response_format, told["text"] = _text(fields)
        fields.text("truncation", of=("auto", "disabled"))
        fields.skip(_HARMLESS)
        request = Generation(
            model=fields.text("model") or "",
            messages=messages,
            tools=tools or None,
            tool_choice=tool_choice(fields, tools),
            parallel_tool_calls=fields.flag("parallel_tool_calls") is not False,
            response_format=response_format,
            stop=stop_strings(fields, "stop"),
            max_tokens=fields.integer("max_output_tokens", 1),
            sampling=sampling(fields),
            logprobs=(top_logprobs or 0) if _LOGPROBS in include else None,
            thinking=thinking,
            template_kwargs=fields.mapping("chat_template_kwargs") or {},
            include_reasoning=fields.flag("include_reasoning") is not False,
            stream=fields.flag("stream") or False,
            told=told,
            **asked,
        )
        told["tool_choice"] = fields.value.get("tool_choice") or "auto"
        told["top_logprobs"] = top_logprobs
        request.extra = fields.rest()
        return request

    def respond(self, request: Generation, ended: Sequence[Ended], usage: Usage, meta: Meta) -> dict[str, Any]:
        """A ``response``."""
        (one,) = ended
        return _response(request, meta, _status(one), _output(one, meta), usage=usage, ended=one)

    def writer(self, request: Generation, meta: Meta) -> ResponsesWriter:
        return ResponsesWriter(request, meta)

    def error(self, error: ApiError) -> dict[str, Any]:
        return error_object(error)


# -- The request -------------------------------------------------------------------------------------------------


def _messages(fields: Fields) -> list[dict[str, Any]]:
    """``input`` as messages."""
    given = fields.take("input", required=True)
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if not isinstance(given, list):
        raise fields.wrong("input", "must be a string or a list of items")
    turns = _Turns()
    for item in fields.objects("input"):
        turns.add(item)
    if not turns.messages:
        raise fields.wrong("input", "must not be empty")
    return turns.messages


class _Turns:
    """Items put together as messages: reasoning, text and calls that follow each other are one of the assistant's."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._last = ""

    def add(self, item: Fields) -> None:
        kind = item.text("type") or "message"
        if kind not in _ITEMS:
            if kind == "item_reference":
                raise item.refused("type", _STATELESS)
            raise item.refused("type", f"items of type {kind[:64]!r} are not supported; there are: {', '.join(_ITEMS)}")
        item.skip(("id", "status"))
        if kind == "message":
            self._message(item)
        elif kind == "reasoning":
            self._reasoning(item)
        elif kind == "function_call":
            self._call(item)
        else:
            self.messages.append(
                {"role": "tool", "tool_call_id": item.string("call_id"), "content": _content(item, "output")}
            )
            item.skip(("name", "caller"))
        item.done()
        self._last = kind

    def _message(self, item: Fields) -> None:
        role = item.text("role", required=True, of=("user", "assistant", "system", "developer"))
        content = _content(item, "content")
        item.skip(("phase",))
        if role != "assistant":
            self.messages.append({"role": role, "content": content})
            return
        # Two messages in a row are two turns of the caller's making; else text joins what it stands beside.
        turn = self._turn(new=self._last == "message")
        text = content if isinstance(content, str) else "".join(_text_of(part, item) for part in content)
        turn["content"] = (turn["content"] or "") + text

    def _reasoning(self, item: Fields) -> None:
        pieces = [part.string("text") for part in item.objects("content")]
        if not pieces:
            pieces = [part.string("text") for part in item.objects("summary")]
        item.skip(("summary", "encrypted_content"))
        if pieces:
            turn = self._turn()
            turn["reasoning_content"] = turn.get("reasoning_content", "") + "".join(pieces)

    def _call(self, item: Fields) -> None:
        function = {"name": item.filled("name"), "arguments": item.string("arguments")}
        call = {"id": item.filled("call_id"), "type": "function", "function": function}
        item.skip(("caller",))
        self._turn().setdefault("tool_calls", []).append(call)

    def _turn(self, new: bool = False) -> dict[str, Any]:
        """The assistant's message that is being put together."""
        if new or not self.messages or self.messages[-1]["role"] != "assistant":
            self.messages.append({"role": "assistant", "content": None})
        return self.messages[-1]


def _content(item: Fields, name: str) -> Any:
    """Text, or parts as Chat Completions has them."""
    given = item.take(name, required=True)
    if isinstance(given, str):
        return given
    if not isinstance(given, list):
        raise item.wrong(name, "must be a string or a list of parts")
    parts = [_part(part) for part in item.objects(name)]
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _part(part: Fields) -> dict[str, Any]:
    kind = part.string("type")
    if kind in ("input_text", "output_text", "text"):
        part.skip(("annotations", "logprobs", "prompt_cache_breakpoint"))
        found: dict[str, Any] = {"type": "text", "text": part.string("text")}
    elif kind == "refusal":
        found = {"type": "text", "text": part.string("refusal")}
    elif kind == "input_image":
        if part.take("file_id") is not None:
            raise part.refused("file_id", "the gateway keeps no files: send the image as image_url")
        found = {"type": "image_url", "image_url": {"url": part.filled("image_url")}}
        detail = part.text("detail")
        if detail is not None:
            found["image_url"]["detail"] = detail
        part.skip(("prompt_cache_breakpoint",))
    else:
        raise part.refused(
            "type",
            f"parts of type {kind[:64]!r} are not supported; there are: input_text, output_text, refusal, input_image",
        )
    part.done()
    return found


def _text_of(part: dict[str, Any], item: Fields) -> str:
    if part["type"] != "text":
        raise item.wrong("content", "an assistant's message holds text only")
    text: str = part["text"]
    return text


def _tool(tool: Fields) -> dict[str, Any]:
    kind = tool.string("type")
    if kind != "function":
        raise tool.refused("type", f"tools of type {kind[:64]!r} are not supported, only function")
    found = function_tool(tool)
    tool.skip(("allowed_callers", "defer_loading", "output_schema"))
    tool.done()
    return found


def _metadata(fields: Fields) -> dict[str, Any]:
    metadata = fields.mapping("metadata") or {}
    for key, value in metadata.items():
        if not isinstance(value, str):
            raise fields.wrong(f"metadata.{key[:64]}", "must be a string")
    return metadata


def _reasoning(fields: Fields) -> tuple[Thinking, dict[str, Any]]:
    thinking = Thinking(enabled=fields.flag("enable_thinking"), budget=fields.integer("thinking_budget", 0))
    given = fields.object("reasoning")
    if given is not None:
        thinking.effort = given.text("effort", of=_EFFORTS)
        given.skip(("summary", "generate_summary", "context", "mode"))
        given.done()
    return thinking, {"effort": thinking.effort, "summary": None}


def _text(fields: Fields) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """``text``: the response format, and what the response says of it."""
    plain = {"format": {"type": "text"}}
    given = fields.object("text")
    if given is None:
        return None, plain
    given.text("verbosity", of=("low", "medium", "high"))
    form = given.object("format")
    given.done()
    if form is None:
        return None, plain
    kind = form.text("type", required=True, of=("text", "json_schema", "json_object"))
    if kind != "json_schema":
        form.done()
        return (None if kind == "text" else {"type": "json_object"}), {"format": {"type": kind}}
    schema: dict[str, Any] = {"name": form.text("name") or "response", "schema": form.mapping("schema", required=True)}
    for name, value in (("description", form.text("description")), ("strict", form.flag("strict"))):
        if value is not None:
            schema[name] = value
    form.done()
    return {"type": "json_schema", "json_schema": schema}, {"format": {"type": "json_schema", **schema}}


# -- The response ------------------------------------------------------------------------------------------------


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
    """The object of a response."""
    told = request.told
    response: dict[str, Any] = {
        "id": f"resp_{meta.id}",
        "object": "response",
        "created_at": meta.created,
        "status": status,
        "background": False,
        "error": error,
        "incomplete_details": None,
        "instructions": told.get("instructions"),
        "max_output_tokens": request.max_tokens,
        "model": meta.model,
        "output": output,
        "parallel_tool_calls": request.parallel_tool_calls,
        "previous_response_id": None,
        "prompt_cache_key": told.get("prompt_cache_key"),
        "reasoning": told.get("reasoning"),
        "safety_identifier": told.get("safety_identifier"),
        "service_tier": "default",
        "store": False,
        "temperature": request.sampling.temperature,
        "text": told.get("text"),
        "tool_choice": told.get("tool_choice", "auto"),
        "tools": [{"strict": None, **tool["function"], "type": "function"} for tool in request.tools or ()],
        "top_logprobs": told.get("top_logprobs"),
        "top_p": request.sampling.top_p,
        "truncation": "disabled",
        "usage": None if usage is None else _usage(usage),
        "user": told.get("user"),
        "metadata": told.get("metadata", {}),
    }
    if ended is not None:
        if status == "incomplete":
            reason = "content_filter" if ended.finish_reason == "content_filter" else "max_output_tokens"
            response["incomplete_details"] = {"reason": reason}
        inside = untemplate_of(request, ended)
        if inside is not None:
            response["untemplate"] = inside
    return response


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
    """The status of the last item. A call says itself whether it was cut; text was if the response was."""
    last = parsed.items[-1] if parsed.items else None
    if last is not None and last.call is not None:
        return "incomplete" if last.call.status == "incomplete" else "completed"
    return "completed" if status == "completed" else "incomplete"


def _output(ended: Ended, meta: Meta) -> list[dict[str, Any]]:
    """The items of a whole response."""
    items = merged_items(ended.parsed)
    logprobs = list(ended.logprobs or ())
    output = []
    for index, item in enumerate(items):
        last = index == len(items) - 1
        status = _item_status(ended.parsed, _status(ended)) if last else "completed"
        id = _id(item.type, meta, index)
        if item.type == "content":
            text = item.text or ""
            found = logprobs if all(i.type != "content" for i in items[index + 1 :]) else _first(logprobs, len(text))
            output.append(_message(id, status, text, [logprob_object(token) for token in found]))
        elif item.type == "reasoning":
            output.append(_thought(id, status, item.text or ""))
        else:
            call = item.call
            assert call is not None
            output.append(
                _call(id, status, call.id, call.function.name, call.function.arguments)
            )  # fmt: skip
    return output


def _first(logprobs: list[TokenLogprob], size: int) -> list[TokenLogprob]:
    """Takes off the tokens of the first ``size`` characters."""
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


def _thought(id: str, status: str, text: str | None) -> dict[str, Any]:
    content = [] if text is None else [{"type": "reasoning_text", "text": text}]
    return {"id": id, "type": "reasoning", "status": status, "summary": [], "content": content}


def _message(id: str, status: str, text: str | None, logprobs: list[dict[str, Any]]) -> dict[str, Any]:
    content = [] if text is None else [_output_text(text, logprobs)]
    return {"id": id, "type": "message", "status": status, "role": "assistant", "content": content}


def _output_text(text: str, logprobs: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}


def _call(id: str, status: str, call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {
        "id": id,
        "type": "function_call",
        "status": status,
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
    }


# -- The stream --------------------------------------------------------------------------------------------------

_ERROR_CODES: Final = {400: "invalid_prompt", 429: "rate_limit_exceeded"}


class ResponsesWriter:
    """The events of a streamed response."""

    media_type = EVENT_STREAM

    def __init__(self, request: Generation, meta: Meta) -> None:
        self._request = request
        self._meta = meta
        self._sequence = -1
        self._output: list[dict[str, Any]] = []
        """Items that have closed."""
        self._kind = ""
        """Of the open item: ``content``, ``reasoning``, ``tool_call``; ``""`` for none."""
        self._pieces: list[str] = []
        """Its text, or its call's arguments."""
        self._shell: dict[str, Any] = {}
        """The item as it was when it opened."""
        self._logprobs: list[dict[str, Any]] = []
        self._place: dict[str, Any] = {}
        self._head = b""
        self._tail = b""
        """What stands before and after the text of a delta of the open item."""
        self._ended: Ended | None = None

    def _event(self, name: str, /, **data: Any) -> bytes:
        self._sequence += 1
        return event(name, {"type": name, **data, "sequence_number": self._sequence})

    def begin(self, usage: Usage) -> bytes:
        response = _response(self._request, self._meta, "in_progress", [])
        return self._event("response.created", response=response) + self._event(
            "response.in_progress", response=response
        )

    def delta(self, choice: int, delta: DeltaMessage, logprobs: list[TokenLogprob] | None = None) -> bytes:
        text = delta.content
        if text is not None and logprobs is None and self._kind == "content":
            return self._append(text)
        text = delta.reasoning
        if text is not None and self._kind == "reasoning" and delta.content is None:
            return self._append(text)
        out = b""
        if delta.reasoning:
            if self._kind != "reasoning":
                out += self._open("reasoning")
            out += self._append(delta.reasoning)
        if delta.content:
            if self._kind != "content":
                out += self._open("content")
            out += self._append(delta.content) if logprobs is None else self._append_with(delta.content, logprobs)
        for piece in delta.tool_calls or ():
            function = piece.function
            if piece.id is not None:
                out += self._open("tool_call", piece)
            if function is not None and function.arguments:
                out += self._append(function.arguments)
        return out

    def _append(self, text: str) -> bytes:
        self._pieces.append(text)
        self._sequence += 1
        return b"%b%b%b%d}\n\n" % (self._head, encode_text(text), self._tail, self._sequence)

    def _append_with(self, text: str, logprobs: list[TokenLogprob]) -> bytes:
        self._pieces.append(text)
        found = [logprob_object(token) for token in logprobs]
        self._logprobs += found
        return self._event("response.output_text.delta", **self._place, delta=text, logprobs=found)

    def _open(self, kind: str, piece: DeltaToolCall | None = None) -> bytes:
        """Closes what is open, and opens an item."""
        out = self._close("completed")
        index = len(self._output)
        id = _id(kind, self._meta, index)
        self._kind = kind
        self._place = {"item_id": id, "output_index": index}
        after = b',"sequence_number":'
        if piece is not None:
            assert piece.id is not None
            name = piece.function.name if piece.function is not None else None
            self._shell = _call(id, "in_progress", piece.id, name or "", "")
            delta = "response.function_call_arguments.delta"
        else:
            self._place["content_index"] = 0
            if kind == "content":
                self._shell = _message(id, "in_progress", None, [])
                delta = "response.output_text.delta"
                after = b',"logprobs":[]' + after
            else:
                self._shell = _thought(id, "in_progress", None)
                delta = "response.reasoning_text.delta"
        self._tail = after
        self._head = b'event: %b\ndata: %b,"delta":' % (delta.encode(), encode({"type": delta, **self._place})[:-1])
        out += self._event("response.output_item.added", output_index=index, item=self._shell)
        if piece is None:
            out += self._event("response.content_part.added", **self._place, part=self._part("", []))
        return out

    def _part(self, text: str, logprobs: list[dict[str, Any]]) -> dict[str, Any]:
        if self._kind == "content":
            return _output_text(text, logprobs)
        return {"type": "reasoning_text", "text": text}

    def _close(self, status: str) -> bytes:
        """Closes the open item."""
        if not self._kind:
            return b""
        text = "".join(self._pieces)
        place, id = self._place, self._place["item_id"]
        if self._kind == "tool_call":
            name, call_id = self._shell["name"], self._shell["call_id"]
            out = self._event("response.function_call_arguments.done", **place, name=name, arguments=text)
            item = _call(id, status, call_id, name, text)
        elif self._kind == "content":
            out = self._event("response.output_text.done", **place, text=text, logprobs=self._logprobs)
            out += self._event("response.content_part.done", **place, part=self._part(text, self._logprobs))
            item = _message(id, status, text, self._logprobs)
        else:
            out = self._event("response.reasoning_text.done", **place, text=text)
            out += self._event("response.content_part.done", **place, part=self._part(text, []))
            item = _thought(id, status, text)
        out += self._event("response.output_item.done", output_index=place["output_index"], item=item)
        self._output.append(item)
        self._kind, self._pieces, self._logprobs = "", [], []
        return out

    def finish(self, ended: Ended) -> bytes:
        self._ended = ended
        return self._close(_item_status(ended.parsed, _status(ended)))

    def end(self, usage: Usage) -> bytes:
        ended = self._ended
        assert ended is not None  # finish() comes first
        status = _status(ended)
        response = _response(self._request, self._meta, status, self._output, usage=usage, ended=ended)
        return self._event(f"response.{status}", response=response)

    def error(self, error: ApiError) -> bytes:
        """``response.failed``, with what there is; then ``error``, which some clients look for instead."""
        out = self._close("incomplete")
        ended = self._ended
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


RESPONSES: Final = Responses()
