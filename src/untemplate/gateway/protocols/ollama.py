"""Ollama's API: ``/api/chat``, ``/api/generate``, and what lists and describes models.

Rules of this module:

* Calls come whole, at their close, with ``arguments`` as an object; arguments that are none (cut, or no JSON) stand
  whole in ``{"INVALID_JSON": "…"}``.
* Options of llama.cpp's loader change nothing here; those that change what is sampled are obeyed or refused.
* A request without messages (or prompt) asks for no output but for the model to be loaded, or let go: `load_of`.

Source: Ollama, "API" (docs/api.md) and api/types.go; ollama-python for what clients insist on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ...messages import DeltaMessage, DeltaToolCall
from ..errors import ApiError
from ..generation import Ended, Generation, Meta, Sampling, Thinking, TokenLogprob, Usage
from ..manager.model import Model
from .chat import logprob_object, stop_strings
from .common import (
    Fields,
    arguments_object,
    arguments_text,
    encode,
    encode_text,
    function_tool,
    timestamp,
    untemplate_asked,
    untemplate_of,
)

__all__ = [
    "CHAT",
    "GENERATE",
    "Chat",
    "ChatWriter",
    "Generate",
    "GenerateWriter",
    "Load",
    "load_of",
    "loaded",
    "ps",
    "show",
    "tags",
    "version",
]

_HARMLESS_OPTIONS: Final = (
    *("numa", "num_ctx", "num_batch", "num_gpu", "main_gpu", "low_vram", "f16_kv", "logits_all", "vocab_only"),
    *("use_mmap", "use_mlock", "embedding_only", "num_thread", "num_keep", "repeat_last_n", "penalize_newline"),
    *("mirostat_tau", "mirostat_eta"),
)
"""What the loader is told; and what only matters beside options that are refused."""
_NEUTRAL: Final = {"mirostat": 0, "tfs_z": 1, "typical_p": 1}
"""Options that are not supported, and the value at which they do nothing."""
_ROLES: Final = ("system", "user", "assistant", "tool")
_EFFORTS: Final = ("low", "medium", "high", "max")
_MEDIA_TYPE: Final = "application/x-ndjson"


class Load(msgspec.Struct, frozen=True):
    """A request for a model to be loaded, or to be let go."""

    model: str
    unload: bool
    chat: bool
    """Whether it came to ``/api/chat``."""


def load_of(body: dict[str, Any], *, chat: bool) -> Load | None:
    """Whether the request asks for no output: there are no messages, or no prompt.

    Args:
        chat: it came to ``/api/chat``, not to ``/api/generate``.

    Raises:
        ApiError: ``model`` or ``keep_alive`` are wrong.
    """
    if body.get("messages" if chat else "prompt") not in (None, [], ""):
        return None
    if not chat and body.get("images") not in (None, []):
        return None
    fields = Fields(body)
    return Load(fields.text("model") or "", _keep_alive(fields), chat)


def loaded(load: Load, meta: Meta) -> dict[str, Any]:
    """The response, streamed or not: one object."""
    said = {"message": {"role": "assistant", "content": ""}} if load.chat else {"response": ""}
    reason = "unload" if load.unload else "load"
    return {"model": meta.model, "created_at": timestamp(meta.created), **said, "done": True, "done_reason": reason}


class _Ollama:
    name = "ollama"

    def error(self, error: ApiError) -> dict[str, Any]:
        return {"error": error.message}


class Chat(_Ollama):
    """``/api/chat``."""

    def read(self, body: dict[str, Any]) -> Generation:
        fields = Fields(body)
        request = _read(fields)
        turns = _Turns()
        for message in fields.objects("messages", required=True):
            turns.add(message)
        if not turns.messages:
            raise fields.wrong("messages", "must not be empty")
        request.messages = turns.messages
        request.tools = [_tool(tool) for tool in fields.objects("tools")] or None
        request.continue_final_message = turns.messages[-1]["role"] == "assistant"
        if request.continue_final_message and turns.messages[-1].get("tool_calls"):
            raise fields.wrong("messages", "the last message calls tools: their results must follow it")
        request.extra = fields.rest()
        return request

    def respond(self, request: Generation, ended: Sequence[Ended], usage: Usage, meta: Meta) -> dict[str, Any]:
        """A chat response."""
        (one,) = ended
        parsed = one.parsed
        message: dict[str, Any] = {"role": "assistant", "content": parsed.content or ""}
        if parsed.reasoning_content:
            message["thinking"] = parsed.reasoning_content
        if parsed.tool_calls:
            message["tool_calls"] = [
                _call(index, call.id, call.function.name, call.function.arguments)
                for index, call in enumerate(parsed.tool_calls)
            ]
        return _whole(request, one, usage, meta, {"message": message})

    def writer(self, request: Generation, meta: Meta) -> ChatWriter:
        return ChatWriter(request, meta)


class Generate(_Ollama):
    """``/api/generate``."""

    def read(self, body: dict[str, Any]) -> Generation:
        fields = Fields(body)
        request = _read(fields)
        prompt = fields.string("prompt")
        images = _images(fields)
        system = fields.text("system")
        if fields.text("suffix"):
            raise fields.refused("suffix")
        if fields.text("template"):
            raise fields.refused("template", "the model's own template is used; for none, send raw: true")
        for name in ("width", "height", "steps"):
            if fields.take(name) is not None:
                raise fields.refused(name, "images are not generated")
        fields.skip(("context",))
        if fields.flag("raw"):
            if images:
                raise fields.refused("images", "not together with raw: true")
            if system:
                raise fields.refused("system", "not together with raw: true")
            request.prompt = prompt
            request.parse = False
        else:
            request.messages = [] if not system else [{"role": "system", "content": system}]
            request.messages.append({"role": "user", "content": _with_images(prompt, images)})
        request.extra = fields.rest()
        return request

    def respond(self, request: Generation, ended: Sequence[Ended], usage: Usage, meta: Meta) -> dict[str, Any]:
        """A generate response."""
        (one,) = ended
        said: dict[str, Any] = {"response": one.parsed.content or ""}
        if one.parsed.reasoning_content:
            said["thinking"] = one.parsed.reasoning_content
        return _whole(request, one, usage, meta, said)

    def writer(self, request: Generation, meta: Meta) -> GenerateWriter:
        return GenerateWriter(request, meta)


# -- The request -------------------------------------------------------------------------------------------------


def _read(fields: Fields) -> Generation:
    """What both have."""
    stream = fields.flag("stream")
    logprobs = fields.flag("logprobs")
    top = fields.integer("top_logprobs", 0, 20)
    _keep_alive(fields)
    fields.skip(("truncate", "shift"))
    request = Generation(
        model=fields.text("model") or "",
        response_format=_format(fields),
        logprobs=(top or 0) if logprobs else None,
        thinking=_think(fields),
        template_kwargs=fields.mapping("chat_template_kwargs") or {},
        stream=stream is not False,
        **untemplate_asked(fields),
    )
    options = fields.object("options")
    if options is not None:
        _options(options, request)
    return request


def _options(options: Fields, request: Generation) -> None:
    most = options.integer("num_predict", -2)
    request.max_tokens = most if most is not None and most > 0 else None  # -1: no limit; -2: what the context holds
    request.stop = stop_strings(options, "stop")
    request.sampling = Sampling(
        temperature=options.number("temperature", 0, 10),
        top_p=options.number("top_p", 0, 1),
        top_k=options.integer("top_k", -1),
        min_p=options.number("min_p", 0, 1),
        presence_penalty=options.number("presence_penalty", -2, 2),
        frequency_penalty=options.number("frequency_penalty", -2, 2),
        repetition_penalty=options.number("repeat_penalty", 0.01, 10),
        seed=options.integer("seed", -(1 << 63), (1 << 63) - 1),
    )
    for name, neutral in _NEUTRAL.items():
        value = options.take(name)
        if value not in (None, neutral):
            raise options.refused(name, f"only {neutral}")
    options.skip(_HARMLESS_OPTIONS)
    options.done()


def _keep_alive(fields: Fields) -> bool:
    """Whether ``keep_alive`` (seconds, or a duration: ``1h30m``) is 0. Else it changes nothing: the server's settings
    say how long models stay."""
    value = fields.take("keep_alive")
    if value is None:
        return False
    if isinstance(value, str) and not value.strip("0123456789.+-hmsnuµ") and any(c in "0123456789" for c in value):
        return all(c not in "123456789" for c in value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise fields.wrong("keep_alive", "must be seconds or a duration (5m)")
    return value == 0


def _format(fields: Fields) -> dict[str, Any] | None:
    """``format``: ``json``, or a JSON schema."""
    value = fields.take("format")
    if value is None or value == "":
        return None
    if value == "json":
        return {"type": "json_object"}
    if not isinstance(value, dict):
        raise fields.wrong("format", "must be json or a JSON schema")
    return {"type": "json_schema", "json_schema": {"name": "response", "schema": value, "strict": True}}


def _think(fields: Fields) -> Thinking:
    value = fields.take("think")
    if value is None or isinstance(value, bool):
        return Thinking(enabled=value)
    if value not in _EFFORTS:
        raise fields.wrong("think", f"must be true, false or one of {', '.join(_EFFORTS)}")
    return Thinking(enabled=True, effort=value)


class _Turns:
    """Messages. Older clients' calls have no ids, and their results name the tool only: both are matched by order."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._count = 0
        self._open: list[tuple[str, str]] = []
        """(name, id) of the calls that no result has come for."""

    def add(self, message: Fields) -> None:
        role = message.text("role", required=True, of=_ROLES)
        content = _with_images(message.text("content") or "", _images(message))
        found: dict[str, Any] = {"role": role, "content": content}
        thinking = message.text("thinking")
        calls = [self._call(call) for call in message.objects("tool_calls")]
        if role == "assistant":
            if thinking:
                found["reasoning_content"] = thinking
            if calls:
                found["tool_calls"] = calls
                found["content"] = content or None
                self._open = [(call["function"]["name"], call["id"]) for call in calls]
        elif calls:
            raise message.wrong("tool_calls", "belong to the assistant's messages")
        if role == "tool":
            name = message.text("tool_name") or message.text("name")
            found["tool_call_id"] = self._answered(name, message.text("tool_call_id"))
            if name:
                found["name"] = name
        message.skip(("tool_name", "name", "tool_call_id"))
        message.done()
        self.messages.append(found)

    def _call(self, call: Fields) -> dict[str, Any]:
        function = call.object("function", required=True)
        assert function is not None
        name = function.filled("name")
        given = function.mapping("arguments") or {}
        function.skip(("index", "description"))
        function.done()
        id = call.text("id") or f"call_{self._count}"
        self._count += 1
        call.skip(("type",))
        call.done()
        arguments = arguments_text(given, function.at("arguments"))
        return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}

    def _answered(self, name: str | None, id: str | None) -> str:
        """The id of the call that this is the result of: the one that is named, else the first of the tool, else the
        first."""
        for match in self._open:
            if match[1] == id or (not id and name in (None, "", match[0])):
                self._open.remove(match)
                return match[1]
        return id or (self._open.pop(0)[1] if self._open else "")


def _images(fields: Fields) -> list[dict[str, Any]]:
    return [
        {"type": "image_url", "image_url": {"url": image if image.startswith("data:") else _data_url(image)}}
        for image in fields.texts("images")
    ]


_MAGIC: Final = (("/9j/", "image/jpeg"), ("iVBOR", "image/png"), ("R0lGOD", "image/gif"), ("UklGR", "image/webp"))


def _data_url(data: str) -> str:
    """An image in base64, its type told by its first bytes."""
    kind = next((kind for start, kind in _MAGIC if data.startswith(start)), "image/jpeg")
    return f"data:{kind};base64,{data}"


def _with_images(text: str, images: list[dict[str, Any]]) -> Any:
    if not images:
        return text
    return ([{"type": "text", "text": text}] if text else []) + images


def _tool(tool: Fields) -> dict[str, Any]:
    kind = tool.text("type") or "function"
    if kind != "function":
        raise tool.refused("type", f"tools of type {kind[:64]!r} are not supported, only function")
    function = tool.object("function", required=True)
    assert function is not None
    found = function_tool(function)
    function.done()
    tool.skip(("items",))
    tool.done()
    return found


# -- The response ------------------------------------------------------------------------------------------------


def _call(index: int, id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": id, "function": {"index": index, "name": name, "arguments": arguments_object(arguments)}}


def _whole(request: Generation, ended: Ended, usage: Usage, meta: Meta, said: dict[str, Any]) -> dict[str, Any]:
    response = {"model": meta.model, "created_at": timestamp(meta.created), **said, **_done(request, ended, usage)}
    if ended.logprobs is not None:
        response["logprobs"] = [logprob_object(token) for token in ended.logprobs]
    return response


def _done(request: Generation, ended: Ended, usage: Usage) -> dict[str, Any]:
    """What a response ends with. Times that are not known are left out, as Ollama does with what is 0."""
    closing: dict[str, Any] = {
        "done": True,
        "done_reason": "length" if ended.finish_reason == "length" else "stop",
        "prompt_eval_count": usage.prompt_tokens,
        "eval_count": usage.completion_tokens,
    }
    if usage.prompt_ns:
        closing["total_duration"] = usage.prompt_ns + usage.completion_ns
        closing["prompt_eval_duration"] = usage.prompt_ns
        closing["eval_duration"] = usage.completion_ns
    inside = untemplate_of(request, ended)
    if inside is not None:
        closing["untemplate"] = inside
    return closing


# -- The stream --------------------------------------------------------------------------------------------------


class _Writer:
    """Lines of JSON."""

    media_type = _MEDIA_TYPE

    def __init__(self, request: Generation, meta: Meta, content: bytes, thinking: bytes, close: bytes) -> None:
        self._request = request
        self._fixed = {"model": meta.model, "created_at": timestamp(meta.created)}
        start = encode(self._fixed)[:-1]
        self._content = start + content
        self._thinking = start + thinking
        self._tail = close + b',"done":false}\n'
        self._close = close
        self._ended: Ended | None = None

    def begin(self, usage: Usage) -> bytes:
        return b""

    def _text(self, head: bytes, text: str, logprobs: list[TokenLogprob] | None) -> bytes:
        if logprobs is None:
            return head + encode_text(text) + self._tail
        found = encode([logprob_object(token) for token in logprobs])
        return head + encode_text(text) + self._close + b',"logprobs":' + found + b',"done":false}\n'

    def _last(self, usage: Usage, said: dict[str, Any]) -> bytes:
        ended = self._ended
        assert ended is not None  # finish() comes first
        return encode({**self._fixed, **said, **_done(self._request, ended, usage)}) + b"\n"

    def error(self, error: ApiError) -> bytes:
        return encode({"error": error.message}) + b"\n"


class ChatWriter(_Writer):
    """The lines of a streamed chat response."""

    def __init__(self, request: Generation, meta: Meta) -> None:
        super().__init__(
            request,
            meta,
            b',"message":{"role":"assistant","content":',
            b',"message":{"role":"assistant","content":"","thinking":',
            b"}",
        )
        self._call: tuple[int, str, str] | None = None
        """Index, id and name of the call that is open."""
        self._arguments: list[str] = []

    def delta(self, choice: int, delta: DeltaMessage, logprobs: list[TokenLogprob] | None = None) -> bytes:
        if delta.tool_calls is None and self._call is None:
            if delta.content is not None:
                return self._text(self._content, delta.content, logprobs)
            return self._text(self._thinking, delta.reasoning, None) if delta.reasoning else b""
        out = b""
        if delta.reasoning or delta.content:
            out = self._closed()
        if delta.reasoning:
            out += self._text(self._thinking, delta.reasoning, None)
        if delta.content:
            out += self._text(self._content, delta.content, logprobs)
        for piece in delta.tool_calls or ():
            out += self._piece(piece)
        return out

    def _piece(self, piece: DeltaToolCall) -> bytes:
        out = b""
        function = piece.function
        if piece.id is not None:
            out = self._closed()
            self._call = (piece.index, piece.id, (function.name if function is not None else None) or "")
        if function is not None and function.arguments:
            self._arguments.append(function.arguments)
        return out

    def _closed(self) -> bytes:
        """The call that was open, whole."""
        if self._call is None:
            return b""
        call = _call(*self._call, "".join(self._arguments))
        self._call = None
        self._arguments = []
        message = {"role": "assistant", "content": "", "tool_calls": [call]}
        return encode({**self._fixed, "message": message, "done": False}) + b"\n"

    def finish(self, ended: Ended) -> bytes:
        self._ended = ended
        return self._closed()

    def end(self, usage: Usage) -> bytes:
        return self._last(usage, {"message": {"role": "assistant", "content": ""}})

    def error(self, error: ApiError) -> bytes:
        return self._closed() + super().error(error)


class GenerateWriter(_Writer):
    """The lines of a streamed generate response."""

    def __init__(self, request: Generation, meta: Meta) -> None:
        super().__init__(request, meta, b',"response":', b',"response":"","thinking":', b"")

    def delta(self, choice: int, delta: DeltaMessage, logprobs: list[TokenLogprob] | None = None) -> bytes:
        out = self._text(self._thinking, delta.reasoning, None) if delta.reasoning else b""
        return out + self._text(self._content, delta.content, logprobs) if delta.content else out

    def finish(self, ended: Ended) -> bytes:
        self._ended = ended
        return b""

    def end(self, usage: Usage) -> bytes:
        return self._last(usage, {"response": ""})


# -- Models ------------------------------------------------------------------------------------------------------


def tags(models: Sequence[Model]) -> dict[str, Any]:
    """``/api/tags``: the models that can be asked for."""
    return {"models": [_model(model) for model in models]}


def ps(models: Sequence[Model]) -> dict[str, Any]:
    """``/api/ps``: the models that are loaded. They expire never."""
    return {
        "models": [
            {
                **_model(model),
                "expires_at": "9999-12-31T23:59:59Z",
                "size_vram": model.details.get("size_vram", 0),
                "context_length": model.context_length or 0,
            }
            for model in models
        ]
    }


def _model(model: Model) -> dict[str, Any]:
    return {
        "name": model.name,
        "model": model.name,
        "modified_at": timestamp(model.created),
        "size": model.details.get("size", 0),
        "digest": model.details.get("digest", ""),
        "details": _details(model),
    }


def _details(model: Model) -> dict[str, Any]:
    details = model.details
    family = details.get("family") or (model.capabilities.family if model.capabilities is not None else "unknown")
    return {
        "parent_model": details.get("parent_model", ""),
        "format": details.get("format", ""),
        "family": family,
        "families": details.get("families") or [family],
        "parameter_size": details.get("parameter_size", ""),
        "quantization_level": details.get("quantization_level", ""),
    }


def show(model: Model) -> dict[str, Any]:
    """``/api/show``. The template is the model's own Jinja, not Go's."""
    details = _details(model)
    info: dict[str, Any] = {"general.architecture": details["family"], **model.details.get("model_info", {})}
    if model.context_length:
        info[f"{details['family']}.context_length"] = model.context_length
    capabilities = ["completion"]
    if model.parser.has_tools:
        capabilities.append("tools")
    if model.parser.has_reasoning:
        capabilities.append("thinking")
    return {
        "license": model.details.get("license", ""),
        "modelfile": f"FROM {model.name}\n",
        "parameters": "",
        "template": "" if model.template is None else model.template.source,
        "details": details,
        "model_info": info,
        "capabilities": capabilities,
        "modified_at": timestamp(model.created),
    }


def version(number: str) -> dict[str, Any]:
    """``/api/version``."""
    return {"version": number}


CHAT: Final = Chat()
GENERATE: Final = Generate()
