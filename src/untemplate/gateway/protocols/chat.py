"""OpenAI's Chat Completions (``/v1/chat/completions``).

Rules of this module:

* What vLLM, SGLang and llama.cpp add to the API is understood under their names: ``top_k``, ``min_p``,
  ``repetition_penalty``, ``chat_template_kwargs``, ``include_reasoning``, ``continue_final_message``,
  ``thinking_budget``, ``reasoning`` and ``reasoning_content`` in messages.
* A delta is written from prebuilt bytes: only its own text is encoded anew.

Source: OpenAI API reference, "Chat Completions".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...messages import DeltaMessage, name_reasoning
from ..errors import ApiError
from ..generation import Ended, Generation, Meta, Sampling, Thinking, TokenLogprob, Usage
from .common import (
    EVENT_STREAM,
    Fields,
    encode,
    encode_text,
    function_tool,
    token_bytes,
    untemplate_asked,
    untemplate_of,
)

__all__ = ["CHAT", "Chat", "ChatWriter", "logprob_object", "usage_object"]

_HARMLESS: Final = (
    *("user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "verbosity"),
    *("prompt_cache_retention", "prediction", "add_generation_prompt", "skip_special_tokens"),
    *("spaces_between_special_tokens", "separate_reasoning", "return_token_ids", "reasoning_format"),
)
"""Fields that change nothing here, and harm nobody."""
_ROLES: Final = ("system", "developer", "user", "assistant", "tool", "function")
_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


class Chat:
    """The dialect."""

    name = "chat"

    def read(self, body: dict[str, Any]) -> Generation:
        fields = Fields(body)
        asked = untemplate_asked(fields)
        messages = [_message(message) for message in fields.objects("messages", required=True)]
        if not messages:
            raise fields.wrong("messages", "must not be empty")
        tools = [_tool(tool) for tool in fields.objects("tools")]
        continues = fields.flag("continue_final_message") or False
        if continues and messages[-1]["role"] != "assistant":
            raise fields.wrong("continue_final_message", "the last message must be the assistant's")
        stream = fields.flag("stream") or False
        modalities = fields.texts("modalities")
        if any(kind != "text" for kind in modalities):
            raise fields.refused("modalities", "only text")
        fields.skip(_HARMLESS)
        request = Generation(
            model=fields.text("model") or "",
            messages=messages,
            tools=tools or None,
            tool_choice=tool_choice(fields, tools),
            parallel_tool_calls=fields.flag("parallel_tool_calls") is not False,
            response_format=_response_format(fields),
            n=fields.integer("n", 1, 128) or 1,
            stop=stop_strings(fields, "stop"),
            max_tokens=_max_tokens(fields),
            sampling=sampling(fields),
            logprobs=_logprobs(fields),
            thinking=_thinking(fields),
            template_kwargs=fields.mapping("chat_template_kwargs") or {},
            continue_final_message=continues,
            include_reasoning=fields.flag("include_reasoning") is not False,
            stream=stream,
            include_usage=include_usage(fields, stream),
            **asked,
        )
        request.extra = fields.rest()
        return request

    def respond(self, request: Generation, ended: Sequence[Ended], usage: Usage, meta: Meta) -> dict[str, Any]:
        """A ``chat.completion``."""
        response: dict[str, Any] = {
            "id": f"chatcmpl-{meta.id}",
            "object": "chat.completion",
            "created": meta.created,
            "model": meta.model,
            "choices": [
                {
                    "index": one.index,
                    "message": {
                        **one.parsed.message(reasoning_field=request.reasoning_field),
                        "refusal": None,
                        "annotations": [],
                    },
                    "logprobs": None if one.logprobs is None else logprobs_object(one.logprobs),
                    "finish_reason": one.finish_reason,
                }
                for one in ended
            ],
            "usage": usage_object(usage),
        }
        inside = [untemplate_of(request, one) for one in ended]
        for choice, found in zip(response["choices"], inside, strict=True):
            if found is not None:
                choice["untemplate"] = found
        return response

    def writer(self, request: Generation, meta: Meta) -> ChatWriter:
        return ChatWriter(request, meta)

    def error(self, error: ApiError) -> dict[str, Any]:
        return error_object(error)


def error_object(error: ApiError) -> dict[str, Any]:
    """OpenAI's error."""
    return {"error": {"message": error.message, "type": error.type, "param": error.param, "code": error.code}}


def usage_object(usage: Usage) -> dict[str, Any]:
    """OpenAI's ``usage``."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def logprobs_object(tokens: Sequence[TokenLogprob]) -> dict[str, Any]:
    """OpenAI's ``logprobs`` of a choice: of the tokens of its content."""
    return {"content": [logprob_object(token) for token in tokens], "refusal": None}


def logprob_object(token: TokenLogprob) -> dict[str, Any]:
    return {
        "token": token.token,
        "logprob": token.logprob,
        "bytes": token_bytes(token.token),
        "top_logprobs": [{"token": text, "logprob": value, "bytes": token_bytes(text)} for text, value in token.top],
    }


_REASONING: Final = {"reasoning": b'{"reasoning":', "reasoning_content": b'{"reasoning_content":'}
_END: Final = b"data: [DONE]\n\n"


class ChatWriter:
    """``chat.completion.chunk`` events."""

    media_type = EVENT_STREAM

    def __init__(self, request: Generation, meta: Meta) -> None:
        self._request = request
        fixed = {
            "id": f"chatcmpl-{meta.id}",
            "object": "chat.completion.chunk",
            "created": meta.created,
            "model": meta.model,
        }
        self._head = b"data: " + encode(fixed)[:-1] + b',"choices":['
        self._before = [self._head + b'{"index":%d,"delta":' % i for i in range(request.n)]
        self._content = [before + b'{"content":' for before in self._before]
        # With include_usage every chunk but the last says that it has none.
        self._tail = b'],"usage":null}\n\n' if request.include_usage else b"]}\n\n"
        self._after = b',"logprobs":null,"finish_reason":null}' + self._tail
        self._text_after = b"}" + self._after
        self._arguments_after = b"}}]}" + self._after
        self._reasoning_field = request.reasoning_field
        field = _REASONING.get(request.reasoning_field)
        self._reasoning = None if field is None else [before + field for before in self._before]
        """``None``: where reasoning has no one field of its own."""
        self._arguments = [(-1, b"")] * request.n
        """Of each choice: the index of its last call, and what stands before a piece of that call's arguments."""

    def begin(self, usage: Usage) -> bytes:
        return b"".join(
            [before + b'{"role":"assistant","content":"","refusal":null}' + self._after for before in self._before]
        )

    def delta(self, choice: int, delta: DeltaMessage, logprobs: list[TokenLogprob] | None = None) -> bytes:
        if delta.content is not None:
            head = self._content[choice] + encode_text(delta.content)
            if logprobs is None:
                return head + self._text_after
            return head + b"}" + self._with(logprobs_object(logprobs), None)
        if delta.reasoning is not None and self._reasoning is not None:
            return self._reasoning[choice] + encode_text(delta.reasoning) + self._text_after
        calls = delta.tool_calls
        if calls is not None and len(calls) == 1 and calls[0].id is None and calls[0].function is not None:
            index, head = self._arguments[choice]
            if index != calls[0].index:
                index = calls[0].index
                head = self._before[choice] + b'{"tool_calls":[{"index":%d,"function":{"arguments":' % index
                self._arguments[choice] = (index, head)
            return head + encode_text(calls[0].function.arguments or "") + self._arguments_after
        shown = name_reasoning(delta.model_dump(exclude_none=True), self._reasoning_field)
        return self._before[choice] + encode(shown) + self._after

    def _with(self, logprobs: Any, finish_reason: str | None) -> bytes:
        return b',"logprobs":' + encode(logprobs) + b',"finish_reason":' + encode(finish_reason) + b"}" + self._tail

    def finish(self, ended: Ended) -> bytes:
        if ended.finish_reason == "error":  # OpenAI's chunks know no such reason; the error itself follows
            return b""
        before = self._before[ended.index] + b'{},"logprobs":null,"finish_reason":' + encode(ended.finish_reason)
        inside = untemplate_of(self._request, ended)
        if inside is not None:
            before += b',"untemplate":' + encode(inside)
        return before + b"}" + self._tail

    def end(self, usage: Usage) -> bytes:
        if not self._request.include_usage:
            return _END
        return self._head + b'],"usage":' + encode(usage_object(usage)) + b"}\n\n" + _END

    def error(self, error: ApiError) -> bytes:
        return b"data: " + encode(error_object(error)) + b"\n\n" + _END


CHAT: Final = Chat()


# -- Parts of a request --------------------------------------------------------------------------------------------


def _message(fields: Fields) -> dict[str, Any]:
    """A message; what the gateway does not know of it goes on to the template."""
    role = fields.text("role", required=True, of=_ROLES)
    message = {key: value for key, value in fields.value.items() if value is not None}
    content = fields.take("content")
    if content is not None and not isinstance(content, (str, list)):
        raise fields.wrong("content", "must be a string or a list of parts")
    if isinstance(content, list):
        for part in fields.objects("content"):
            kind = part.string("type")
            if kind in ("text", "refusal"):
                part.string(kind)
    elif content is None and role != "assistant":
        raise fields.wrong("content", "is required")
    for name in ("reasoning", "reasoning_content", "name", "tool_call_id"):
        fields.text(name)
    if role == "tool":
        fields.string("tool_call_id")
    if role == "assistant":
        calls = [_call(call) for call in fields.objects("tool_calls")]
        message.pop("tool_calls", None)
        if calls:
            message["tool_calls"] = calls
        reasoning = message.pop("reasoning", None)
        if reasoning is not None:
            message.setdefault("reasoning_content", reasoning)
    elif fields.value.get("tool_calls") is not None:
        raise fields.wrong("tool_calls", "belong to the assistant's messages")
    return message


def _call(fields: Fields) -> dict[str, Any]:
    """A call of the history."""
    kind = fields.text("type") or "function"
    if kind != "function":
        raise fields.refused("type", f"only function, got {kind!r}")
    function = fields.object("function", required=True)
    assert function is not None
    arguments = function.take("arguments")
    if arguments is not None and not isinstance(arguments, (str, dict)):
        raise function.wrong("arguments", "must be JSON text or an object")
    return {
        "id": fields.text("id") or "",
        "type": "function",
        "function": {"name": function.filled("name"), "arguments": arguments if arguments is not None else "{}"},
    }


def _tool(fields: Fields) -> dict[str, Any]:
    kind = fields.string("type")
    if kind != "function":
        raise fields.refused("type", f"only function, got {kind!r}")
    function = fields.object("function", required=True)
    assert function is not None
    tool = function_tool(function)
    # What else stands in it is the template's to read (``response``, ``examples``).
    return {"type": "function", "function": {**function.rest(), **tool["function"]}}


def tool_choice(fields: Fields, tools: Sequence[dict[str, Any]]) -> Any:
    """``tool_choice``, checked against the tools."""
    value = fields.take("tool_choice")
    if value is None or isinstance(value, str):
        return fields.text("tool_choice", of=("none", "auto", "required"))
    choice = fields.object("tool_choice")
    assert choice is not None
    kind = choice.text("type", required=True, of=("function", "allowed_tools"))
    names = {tool["function"]["name"] for tool in tools}
    if kind == "function":
        function = choice.object("function")
        name = function.filled("name") if function is not None else choice.filled("name")
        if name not in names:
            raise choice.wrong("function.name", f"{name!r} is not among the tools")
        return {"type": "function", "function": {"name": name}}
    allowed = choice.object("allowed_tools") or choice
    mode = allowed.text("mode", of=("auto", "required")) or "auto"
    chosen = []
    for tool in allowed.objects("tools", required=True):
        function = tool.object("function")
        name = function.filled("name") if function is not None else tool.filled("name")
        if name not in names:
            raise tool.wrong("function.name", f"{name!r} is not among the tools")
        chosen.append({"type": "function", "function": {"name": name}})
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": chosen}}


def _response_format(fields: Fields) -> dict[str, Any] | None:
    given = fields.object("response_format")
    if given is None:
        return None
    kind = given.text("type", required=True, of=("text", "json_object", "json_schema"))
    if kind == "text":
        return None
    if kind == "json_schema":
        schema = given.object("json_schema", required=True)
        assert schema is not None
        schema.mapping("schema", required=True)
    return given.value


def stop_strings(fields: Fields, name: str) -> tuple[str, ...]:
    """One stop string, or several; empty ones are none."""
    value = fields.take(name)
    found = (value,) if isinstance(value, str) else fields.texts(name, most=64)
    return tuple(dict.fromkeys(stop for stop in found if stop))


def _max_tokens(fields: Fields) -> int | None:
    newer = fields.integer("max_completion_tokens", 1)
    older = fields.integer("max_tokens", 1)
    return newer if newer is not None else older


def sampling(fields: Fields) -> Sampling:
    """How tokens are chosen."""
    biases = fields.mapping("logit_bias")
    for token, bias in (biases or {}).items():
        if not (token.isascii() and token.isdecimal() and len(token) < 10):
            raise fields.wrong("logit_bias", f"{token[:20]!r} is not a token id")
        if isinstance(bias, bool) or not isinstance(bias, (int, float)) or not -100 <= bias <= 100:
            raise fields.wrong(f"logit_bias.{token}", "must be a number from -100 to 100")
    return Sampling(
        temperature=fields.number("temperature", 0, 2),
        top_p=fields.number("top_p", 0, 1),
        top_k=fields.integer("top_k", -1),
        min_p=fields.number("min_p", 0, 1),
        presence_penalty=fields.number("presence_penalty", -2, 2),
        frequency_penalty=fields.number("frequency_penalty", -2, 2),
        repetition_penalty=fields.number("repetition_penalty", 0.01, 10),
        logit_bias=None if biases is None else {token: float(bias) for token, bias in biases.items()},
        seed=fields.integer("seed", -(1 << 63), (1 << 63) - 1),
    )


def _logprobs(fields: Fields) -> int | None:
    wanted = fields.flag("logprobs")
    top = fields.integer("top_logprobs", 0, 20)
    if top is not None and not wanted:
        raise fields.wrong("top_logprobs", "needs logprobs: true")
    return (top or 0) if wanted else None


def _thinking(fields: Fields) -> Thinking:
    budget = fields.integer("thinking_budget", 0)
    other = fields.integer("thinking_token_budget", 0)
    enabled = fields.flag("enable_thinking")
    effort = fields.text("reasoning_effort", of=_EFFORTS)
    nested = fields.object("reasoning")
    if nested is not None:  # OpenRouter's
        effort = nested.text("effort", of=_EFFORTS) or effort
        switch = nested.flag("enabled")
        enabled = switch if enabled is None else enabled
        most = nested.integer("max_tokens", 0)
        budget = most if budget is None else budget
        nested.skip(("exclude", "summary"))
        nested.done()
    return Thinking(enabled=enabled, effort=effort, budget=budget if budget is not None else other)


def include_usage(fields: Fields, stream: bool) -> bool:
    """Whether ``stream_options`` asks for a last chunk with usage."""
    options = fields.object("stream_options")
    if options is None:
        return False
    if not stream:
        raise fields.wrong("stream_options", "needs stream: true")
    wanted = options.flag("include_usage") or False
    options.skip(("include_obfuscation", "continuous_usage_stats"))
    options.done()
    return wanted
