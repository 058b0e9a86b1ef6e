"""Anthropic's Messages (``/v1/messages``, ``/v1/messages/count_tokens``).

Rules of this module:

* Blocks come and go as messages of Chat Completions: thinking as ``reasoning_content``, ``tool_use`` as calls, each
  ``tool_result`` as a message of its own, where it stood.
* Thinking has no signature here, so the field is empty; what comes back is taken without one.
* ``input`` is an object. Arguments that are none (cut, or no JSON) stand whole in ``{"INVALID_JSON": "…"}``. In a
  stream, arguments that were cut are the beginning that was written, and those that break are closed where they break,
  with ``INVALID_JSON`` as a further member: clients parse them as they come.

Sources: Anthropic API reference, "Messages", "Streaming messages", "Errors"; anthropic-python's ``accumulate_event``
for what clients insist on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...messages import DeltaMessage
from ..errors import ApiError
from ..generation import Ended, Generation, Meta, Sampling, Thinking, TokenLogprob, Usage
from .common import (
    EVENT_STREAM,
    Fields,
    arguments_object,
    arguments_text,
    encode_text,
    event,
    function_tool,
    merged_items,
    timestamp,
    untemplate_asked,
    untemplate_of,
)
from .guard import ArgumentsGuard

__all__ = ["COUNT_TOKENS", "MESSAGES", "CountTokens", "Messages", "MessagesWriter", "models"]

_HARMLESS: Final = (
    *("metadata", "service_tier", "cache_control", "inference_geo", "speed", "diagnostics", "betas"),
    "context_management",  # what it lets the server leave out is kept
)
"""Fields that change nothing here, and harm nobody."""
_EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")


class Messages:
    """The dialect."""

    name = "anthropic"

    def read(self, body: dict[str, Any]) -> Generation:
        fields = Fields(body)
        most = fields.integer("max_tokens", 1, required=True)
        request = _read(fields)
        request.max_tokens = most
        request.extra = fields.rest()
        return request

    def respond(self, request: Generation, ended: Sequence[Ended], usage: Usage, meta: Meta) -> dict[str, Any]:
        """A ``message``."""
        (one,) = ended
        reason, stop = _stop(one)
        message = _message(meta, _blocks(one), usage, reason, stop)
        inside = untemplate_of(request, one)
        if inside is not None:
            message["untemplate"] = inside
        return message

    def writer(self, request: Generation, meta: Meta) -> MessagesWriter:
        return MessagesWriter(request, meta)

    def error(self, error: ApiError) -> dict[str, Any]:
        return _error(error)


class CountTokens:
    """How many tokens a request's prompt has: the same body, of which ``max_tokens`` and the like are not needed."""

    name = "anthropic"

    def read(self, body: dict[str, Any]) -> Generation:
        fields = Fields(body)
        request = _read(fields)
        request.max_tokens = fields.integer("max_tokens", 1)
        fields.done()
        return request

    def respond(self, tokens: int) -> dict[str, Any]:
        """A ``message_tokens_count``."""
        return {"input_tokens": tokens}


def models(data: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """OpenAI's model objects as Anthropic's list of models."""
    shown = [
        {
            "type": "model",
            "id": model["id"],
            "display_name": model["id"],
            "created_at": timestamp(model.get("created", 0)),
        }
        for model in data
    ]
    ends = {"first_id": shown[0]["id"], "last_id": shown[-1]["id"]} if shown else {"first_id": None, "last_id": None}
    return {"data": shown, "has_more": False, **ends}


# -- The request -------------------------------------------------------------------------------------------------


def _read(fields: Fields) -> Generation:
    """Everything but ``max_tokens`` and what is not known."""
    asked = untemplate_asked(fields)
    messages = _system(fields)
    given = fields.objects("messages", required=True)
    if not given:
        raise fields.wrong("messages", "must not be empty")
    for message in given:
        messages += _turn(message)
    prefill = messages[-1]["role"] == "assistant"
    if prefill and messages[-1].get("tool_calls"):
        raise fields.wrong("messages", "the last message calls tools: their results must follow it")
    tools = [_tool(tool) for tool in fields.objects("tools")]
    choice, parallel = _tool_choice(fields, tools)
    thinking, shown = _thinking(fields)
    response_format = _output(fields, thinking)
    for name in ("container", "mcp_servers"):
        if fields.take(name):
            raise fields.refused(name)
    fields.skip(_HARMLESS)
    return Generation(
        model=fields.text("model") or "",
        messages=messages,
        tools=tools or None,
        tool_choice=choice,
        parallel_tool_calls=parallel,
        response_format=response_format,
        stop=tuple(dict.fromkeys(stop for stop in fields.texts("stop_sequences", most=64) if stop)),
        sampling=Sampling(
            temperature=fields.number("temperature", 0, 2),
            top_p=fields.number("top_p", 0, 1),
            top_k=fields.integer("top_k", -1),
        ),
        thinking=thinking,
        template_kwargs=fields.mapping("chat_template_kwargs") or {},
        continue_final_message=prefill,
        include_reasoning=shown,
        stream=fields.flag("stream") or False,
        **asked,
    )


def _system(fields: Fields) -> list[dict[str, Any]]:
    given = fields.take("system")
    if given is None or given == "" or given == []:
        return []
    if isinstance(given, str):
        return [{"role": "system", "content": given}]
    if not isinstance(given, list):
        raise fields.wrong("system", "must be a string or a list of text blocks")
    texts = []
    for block in fields.objects("system"):
        if block.string("type") != "text":
            raise block.wrong("type", "must be text")
        texts.append(_block_text(block))
        block.done()
    return [{"role": "system", "content": "\n".join(texts)}]


def _block_text(block: Fields) -> str:
    block.skip(("cache_control", "citations"))
    return block.string("text")


def _turn(message: Fields) -> list[dict[str, Any]]:
    """A message; results of tools that it holds are messages of their own, before and after its other blocks."""
    role = message.text("role", required=True, of=("user", "assistant", "system"))
    given = message.take("content", required=True)
    message.done()
    if isinstance(given, str):
        return [{"role": role, "content": given}]
    if not isinstance(given, list):
        raise message.wrong("content", "must be a string or a list of blocks")
    blocks = message.objects("content")
    if role == "assistant":
        return [_assistant(blocks)]
    found: list[dict[str, Any]] = []
    for block in blocks:
        kind = block.string("type")
        if kind == "tool_result" and role == "user":
            found.append(_result(block))
        else:
            part = _part(block, kind)
            if not found or found[-1]["role"] != role:
                found.append({"role": role, "content": []})
            found[-1]["content"].append(part)
        block.done()
    if not found:
        raise message.wrong("content", "must not be empty")
    for one in found:
        one["content"] = _plain(one["content"])
    return found


def _plain(content: Any) -> Any:
    """One text part alone is text."""
    if isinstance(content, list) and len(content) == 1 and content[0]["type"] == "text":
        return content[0]["text"]
    return content


_BLOCKS: Final = "text, image, tool_use, tool_result, thinking, redacted_thinking"


def _part(block: Fields, kind: str) -> dict[str, Any]:
    """A block of text or an image, as Chat Completions has it."""
    if kind == "text":
        return {"type": "text", "text": _block_text(block)}
    if kind == "image":
        block.skip(("cache_control",))
        source = block.object("source", required=True)
        assert source is not None
        way = source.text("type", required=True, of=("base64", "url"))
        if way == "url":
            url = source.filled("url")
        else:
            url = f"data:{source.filled('media_type')};base64,{source.filled('data')}"
        source.done()
        return {"type": "image_url", "image_url": {"url": url}}
    if kind == "document":
        source = block.object("source", required=True)
        assert source is not None
        if source.text("type") == "text":
            source.skip(("media_type",))
            text = source.string("data")
            source.done()
            title = block.text("title")
            block.skip(("cache_control", "citations", "context"))
            return {"type": "text", "text": f"{title}\n{text}" if title else text}
        raise source.refused("type", "only documents of type text")
    raise block.refused("type", f"blocks of type {kind[:64]!r} are not supported here; there are: {_BLOCKS}")


def _assistant(blocks: Sequence[Fields]) -> dict[str, Any]:
    """An assistant's turn."""
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    for block in blocks:
        kind = block.string("type")
        if kind == "text":
            texts.append(_block_text(block))
        elif kind == "thinking":
            thoughts.append(block.string("thinking"))
            block.skip(("signature", "cache_control"))
        elif kind == "redacted_thinking":  # encrypted by another server: nobody here can read it
            block.skip(("data", "cache_control"))
        elif kind == "tool_use":
            given = block.mapping("input", required=True)
            assert given is not None
            function = {"name": block.filled("name"), "arguments": arguments_text(given, block.at("input"))}
            calls.append({"id": block.filled("id"), "type": "function", "function": function})
            block.skip(("cache_control", "caller", "toolset_name"))
        else:
            raise block.refused("type", f"blocks of type {kind[:64]!r} are not supported here; there are: {_BLOCKS}")
        block.done()
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) if texts or not calls else None}
    if thoughts:
        message["reasoning_content"] = "".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    return message


def _result(block: Fields) -> dict[str, Any]:
    """A tool's result. That it is an error is said in its text: chat templates have no other place for it."""
    id = block.filled("tool_use_id")
    failed = block.flag("is_error")
    block.skip(("cache_control", "toolset_name"))
    given = block.take("content")
    if given is None:
        content: Any = ""
    elif isinstance(given, str):
        content = given
    elif isinstance(given, list):
        parts = []
        for part in block.objects("content"):
            parts.append(_part(part, part.string("type")))
            part.done()
        content = _plain(parts) if parts else ""
    else:
        raise block.wrong("content", "must be a string or a list of blocks")
    if failed:
        if isinstance(content, str):
            content = f"Error: {content}" if content else "Error"
        else:
            content.insert(0, {"type": "text", "text": "Error"})
    return {"role": "tool", "tool_call_id": id, "content": content}


def _tool(tool: Fields) -> dict[str, Any]:
    kind = tool.text("type")
    if kind not in (None, "custom"):
        raise tool.refused("type", f"tools that the server runs ({kind[:64]!r}) are not supported, only your own")
    found = function_tool(tool, "input_schema", required=True)
    tool.skip(("cache_control", "eager_input_streaming", "input_examples", "allowed_callers", "defer_loading"))
    tool.done()
    return found


_CHOICES: Final = {"auto": "auto", "any": "required", "none": "none"}


def _tool_choice(fields: Fields, tools: Sequence[dict[str, Any]]) -> tuple[Any, bool]:
    """``tool_choice`` as OpenAI has it, and whether calls may be parallel."""
    given = fields.object("tool_choice")
    if given is None:
        return None, True
    kind = given.text("type", required=True, of=("auto", "any", "tool", "none"))
    parallel = given.flag("disable_parallel_tool_use") is not True
    if kind != "tool":
        given.done()
        assert kind is not None
        return _CHOICES[kind], parallel
    name = given.filled("name")
    given.done()
    if all(tool["function"]["name"] != name for tool in tools):
        raise given.wrong("name", f"{name[:64]!r} is not among the tools")
    return {"type": "function", "function": {"name": name}}, parallel


def _thinking(fields: Fields) -> tuple[Thinking, bool]:
    """``thinking``, and whether it is to be shown."""
    given = fields.object("thinking")
    if given is None:
        return Thinking(), True
    kind = given.text("type", required=True, of=("enabled", "disabled", "adaptive", "between_tools"))
    budget = given.integer("budget_tokens", 1, required=kind == "enabled")
    shown = given.text("display", of=("summarized", "omitted")) != "omitted"
    given.done()
    if kind == "enabled":
        return Thinking(enabled=True, budget=budget), shown
    # Adaptive: the model decides, which is what its template does when nothing is said.
    return Thinking(enabled=False if kind == "disabled" else None), shown


def _output(fields: Fields, thinking: Thinking) -> dict[str, Any] | None:
    """``output_config`` (and ``output_format``, its older place): the response format, and effort."""
    config = fields.object("output_config")
    form = fields.object("output_format")
    if config is not None:
        thinking.effort = config.text("effort", of=_EFFORTS)
        form = config.object("format") or form
        config.done()
    if form is None:
        return None
    form.text("type", required=True, of=("json_schema",))
    schema = form.mapping("schema", required=True)
    form.skip(("name",))
    form.done()
    return {"type": "json_schema", "json_schema": {"name": "response", "schema": schema, "strict": True}}


# -- The response ------------------------------------------------------------------------------------------------


def _message(
    meta: Meta, blocks: list[dict[str, Any]], usage: Usage, reason: str | None, stop: str | None
) -> dict[str, Any]:
    return {
        "id": f"msg_{meta.id}",
        "type": "message",
        "role": "assistant",
        "model": meta.model,
        "content": blocks,
        "stop_reason": reason,
        "stop_sequence": stop,
        "usage": _usage(usage),
    }


def _usage(usage: Usage) -> dict[str, Any]:
    """Tokens. ``input_tokens`` are those that were not in the cache."""
    return {
        "input_tokens": max(usage.prompt_tokens - usage.cached_tokens, 0),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
    }


_REASONS: Final = {"length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


def _stop(ended: Ended) -> tuple[str, str | None]:
    """``stop_reason`` and ``stop_sequence``. Calls that were made before a stop string are there to be answered."""
    if ended.stop is not None and ended.finish_reason != "tool_calls":
        return "stop_sequence", ended.stop
    return _REASONS.get(ended.finish_reason, "end_turn"), None


def _blocks(ended: Ended) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for item in merged_items(ended.parsed):
        call = item.call
        if call is not None:
            arguments = arguments_object(call.function.arguments)
            blocks.append({"type": "tool_use", "id": call.id, "name": call.function.name, "input": arguments})
        elif item.type == "reasoning":
            blocks.append({"type": "thinking", "thinking": item.text or "", "signature": ""})
        else:
            blocks.append({"type": "text", "text": item.text or ""})
    return blocks


_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""Status → type of an error. Source: Anthropic, "Errors"."""


def _error(error: ApiError) -> dict[str, Any]:
    kind = _TYPES.get(error.status, "invalid_request_error" if error.status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": error.message}}


# -- The stream --------------------------------------------------------------------------------------------------

_PING: Final = event("ping", {"type": "ping"})
_DELTAS: Final = {
    "content": ("text_delta", "text"),
    "reasoning": ("thinking_delta", "thinking"),
    "tool_call": ("input_json_delta", "partial_json"),
}
"""Kind of a block → the type of its deltas, and where their text stands."""


class MessagesWriter:
    """The events of a streamed message."""

    media_type = EVENT_STREAM

    def __init__(self, request: Generation, meta: Meta) -> None:
        self._request = request
        self._meta = meta
        self._index = -1
        """Of the block that is open, or was last."""
        self._kind = ""
        """Of the open block: ``content``, ``reasoning``, ``tool_call``; ``""`` for none."""
        self._head = b""
        """What stands before the text of a delta of the open block."""
        self._guard = ArgumentsGuard()
        """Of the call that is open."""
        self._ended: Ended | None = None

    def begin(self, usage: Usage) -> bytes:
        message = _message(self._meta, [], usage, None, None)
        return event("message_start", {"type": "message_start", "message": message}) + _PING

    def delta(self, choice: int, delta: DeltaMessage, logprobs: list[TokenLogprob] | None = None) -> bytes:
        text = delta.content
        if text is not None and self._kind == "content":
            return self._head + encode_text(text) + b"}}\n\n"
        out = b""
        if delta.reasoning:
            if self._kind != "reasoning":
                out += self._open("reasoning", {"type": "thinking", "thinking": "", "signature": ""})
            out += self._append(delta.reasoning)
        if text:
            if self._kind != "content":
                out += self._open("content", {"type": "text", "text": ""})
            out += self._append(text)
        for piece in delta.tool_calls or ():
            function = piece.function
            if piece.id is not None:
                name = (function.name if function is not None else None) or ""
                out += self._open("tool_call", {"type": "tool_use", "id": piece.id, "name": name, "input": {}})
                self._guard = ArgumentsGuard()
            if function is not None and function.arguments:
                through = self._guard.feed(function.arguments)
                if through:
                    out += self._append(through)
        return out

    def _append(self, text: str) -> bytes:
        return self._head + encode_text(text) + b"}}\n\n"

    def _open(self, kind: str, block: dict[str, Any]) -> bytes:
        out = self._close()
        self._index += 1
        self._kind = kind
        delta, field = _DELTAS[kind]
        self._head = (
            b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"%b","%b":'
            % (self._index, delta.encode(), field.encode())
        )
        return out + event(
            "content_block_start", {"type": "content_block_start", "index": self._index, "content_block": block}
        )

    def _close(self) -> bytes:
        if not self._kind:
            return b""
        index = self._index
        out = b""
        if self._kind == "reasoning":  # clients take a thinking block as whole when its signature has come
            delta = {"type": "signature_delta", "signature": ""}
            out = event("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta})
        elif self._kind == "tool_call" and (rest := self._guard.finish()):
            out = self._append(rest)
        self._kind = ""
        return out + event("content_block_stop", {"type": "content_block_stop", "index": index})

    def finish(self, ended: Ended) -> bytes:
        self._ended = ended
        return self._close()

    def end(self, usage: Usage) -> bytes:
        ended = self._ended
        assert ended is not None  # finish() comes first
        reason, stop = _stop(ended)
        closing: dict[str, Any] = {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": stop},
            "usage": _usage(usage),
        }
        inside = untemplate_of(self._request, ended)
        if inside is not None:
            closing["untemplate"] = inside
        return event("message_delta", closing) + event("message_stop", {"type": "message_stop"})

    def error(self, error: ApiError) -> bytes:
        return self._close() + event("error", _error(error))


MESSAGES: Final = Messages()
COUNT_TOKENS: Final = CountTokens()
