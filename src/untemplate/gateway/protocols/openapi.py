"""The gateway's endpoints as an OpenAPI document (``/openapi.json``).

The rule: it says what is read, as far as clients and fuzzers need it. What is allowed is decided by the dialects; a
field that is missing here may still be understood.
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ["document"]

Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_FLAG: Final[Schema] = {"type": "boolean"}
_OBJECT: Final[Schema] = {"type": "object"}
_SCHEMA: Final[Schema] = {"type": "object", "description": "a JSON schema"}


def _number(low: float, high: float) -> Schema:
    return {"type": "number", "minimum": low, "maximum": high}


def _integer(low: int, high: int | None = None) -> Schema:
    return {"type": "integer", "minimum": low, **({} if high is None else {"maximum": high})}


def _list(items: Schema, least: int = 0) -> Schema:
    return {"type": "array", "items": items, **({"minItems": least} if least else {})}


def _any(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


def _one_of(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def _fields(required: tuple[str, ...] = (), /, **properties: Schema) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    return schema


_UNTEMPLATE: Final = _fields(diagnostics=_FLAG, raw=_FLAG)
_STOP: Final = _any(_TEXT, _list(_TEXT))
_SAMPLING: Final[dict[str, Schema]] = {
    "temperature": _number(0, 2),
    "top_p": _number(0, 1),
    "top_k": _integer(-1),
    "min_p": _number(0, 1),
    "presence_penalty": _number(-2, 2),
    "frequency_penalty": _number(-2, 2),
    "repetition_penalty": _number(0.01, 10),
    "seed": _integer(0, 2**31 - 1),
    "logit_bias": {"type": "object", "additionalProperties": _number(-100, 100)},
}
_EFFORT: Final = _one_of("none", "minimal", "low", "medium", "high", "xhigh")
_FUNCTION: Final = _fields(("name",), name=_TEXT, description=_TEXT, parameters=_SCHEMA, strict=_FLAG)
_CALL: Final = _fields(
    ("function",), id=_TEXT, type=_one_of("function"), function=_fields(("name",), name=_TEXT, arguments=_TEXT)
)
_MESSAGE: Final = _fields(
    ("role",),
    role=_one_of("system", "developer", "user", "assistant", "tool"),
    content=_any(_TEXT, _list(_fields(("type",), type=_one_of("text"), text=_TEXT)), {"type": "null"}),
    reasoning_content=_TEXT,
    name=_TEXT,
    tool_call_id=_TEXT,
    tool_calls=_list(_CALL),
)
_CHAT: Final = _fields(
    ("messages",),
    model=_TEXT,
    messages=_list(_MESSAGE, 1),
    tools=_list(_fields(("type", "function"), type=_one_of("function"), function=_FUNCTION)),
    tool_choice=_any(
        _one_of("none", "auto", "required"),
        _fields(("type", "function"), type=_one_of("function"), function=_fields(("name",), name=_TEXT)),
    ),
    parallel_tool_calls=_FLAG,
    response_format=_fields(
        ("type",),
        type=_one_of("text", "json_object", "json_schema"),
        json_schema=_fields(("schema",), name=_TEXT, schema=_SCHEMA, strict=_FLAG),
    ),
    n=_integer(1, 16),
    stop=_STOP,
    stream=_FLAG,
    stream_options=_fields(include_usage=_FLAG),
    max_tokens=_integer(1),
    max_completion_tokens=_integer(1),
    logprobs=_FLAG,
    top_logprobs=_integer(0, 20),
    reasoning_effort=_EFFORT,
    thinking_budget=_integer(0),
    chat_template_kwargs=_OBJECT,
    include_reasoning=_FLAG,
    continue_final_message=_FLAG,
    untemplate=_UNTEMPLATE,
    **_SAMPLING,
)
_COMPLETION: Final = _fields(
    ("prompt",),
    model=_TEXT,
    prompt=_any(_TEXT, _list(_integer(0, 100_000), 1)),
    n=_integer(1, 16),
    stop=_STOP,
    stream=_FLAG,
    stream_options=_fields(include_usage=_FLAG),
    max_tokens=_integer(1),
    logprobs=_integer(0, 20),
    echo=_FLAG,
    untemplate=_UNTEMPLATE,
    **_SAMPLING,
)
_RESPONSE_ITEM: Final = _any(
    _fields(
        ("role", "content"),
        type=_one_of("message"),
        role=_one_of("user", "assistant", "system", "developer"),
        content=_any(_TEXT, _list(_fields(("type", "text"), type=_one_of("input_text", "output_text"), text=_TEXT))),
    ),
    _fields(
        ("type", "call_id", "name", "arguments"),
        type=_one_of("function_call"),
        call_id=_TEXT,
        name=_TEXT,
        arguments=_TEXT,
    ),
    _fields(("type", "call_id", "output"), type=_one_of("function_call_output"), call_id=_TEXT, output=_TEXT),
)
_RESPONSE: Final = _fields(
    ("input",),
    model=_TEXT,
    input=_any(_TEXT, _list(_RESPONSE_ITEM)),
    instructions=_TEXT,
    tools=_list(_fields(("type", "name"), type=_one_of("function"), name=_TEXT, parameters=_SCHEMA, strict=_FLAG)),
    tool_choice=_one_of("none", "auto", "required"),
    parallel_tool_calls=_FLAG,
    text=_fields(format=_fields(("type",), type=_one_of("text", "json_object"))),
    reasoning=_fields(effort=_EFFORT),
    max_output_tokens=_integer(1),
    temperature=_number(0, 2),
    top_p=_number(0, 1),
    top_logprobs=_integer(0, 20),
    stream=_FLAG,
    untemplate=_UNTEMPLATE,
)
_BLOCK: Final = _any(
    _fields(("type", "text"), type=_one_of("text"), text=_TEXT),
    _fields(("type", "id", "name", "input"), type=_one_of("tool_use"), id=_TEXT, name=_TEXT, input=_OBJECT),
    _fields(("type", "tool_use_id"), type=_one_of("tool_result"), tool_use_id=_TEXT, content=_TEXT, is_error=_FLAG),
    _fields(("type", "thinking"), type=_one_of("thinking"), thinking=_TEXT, signature=_TEXT),
)
_ANTHROPIC: Final[dict[str, Schema]] = {
    "model": _TEXT,
    "messages": _list(
        _fields(("role", "content"), role=_one_of("user", "assistant"), content=_any(_TEXT, _list(_BLOCK))), 1
    ),
    "system": _any(_TEXT, _list(_fields(("type", "text"), type=_one_of("text"), text=_TEXT))),
    "tools": _list(_fields(("name", "input_schema"), name=_TEXT, description=_TEXT, input_schema=_SCHEMA)),
    "tool_choice": _fields(("type",), type=_one_of("auto", "any", "none"), disable_parallel_tool_use=_FLAG),
    "thinking": _fields(("type",), type=_one_of("enabled", "disabled", "adaptive"), budget_tokens=_integer(1024)),
}
_MESSAGES: Final = _fields(
    ("model", "messages", "max_tokens"),
    **_ANTHROPIC,
    max_tokens=_integer(1),
    stop_sequences=_list(_TEXT),
    temperature=_number(0, 1),
    top_p=_number(0, 1),
    top_k=_integer(0),
    stream=_FLAG,
    untemplate=_UNTEMPLATE,
)
_OLLAMA: Final[dict[str, Schema]] = {
    "model": _TEXT,
    "stream": _FLAG,
    "think": _any(_FLAG, _one_of("low", "medium", "high")),
    "format": _any(_one_of("json"), _SCHEMA),
    "options": _fields(
        num_predict=_integer(-1), stop=_list(_TEXT), **{k: v for k, v in _SAMPLING.items() if k != "logit_bias"}
    ),
    "untemplate": _UNTEMPLATE,
}
_OLLAMA_CHAT: Final = _fields(
    ("model",),
    **_OLLAMA,
    messages=_list(
        _fields(("role",), role=_one_of("system", "user", "assistant", "tool"), content=_TEXT, thinking=_TEXT)
    ),
    tools=_list(_fields(("type", "function"), type=_one_of("function"), function=_FUNCTION)),
)
_OLLAMA_GENERATE: Final = _fields(("model",), **_OLLAMA, prompt=_TEXT, system=_TEXT, raw=_FLAG)

_STREAM: Final = "text/event-stream"
_LINES: Final = "application/x-ndjson"
_POSTS: Final[dict[str, tuple[str, Schema, str]]] = {
    "/v1/chat/completions": ("Chat Completions (OpenAI)", _CHAT, _STREAM),
    "/v1/completions": ("Completions (OpenAI): a raw prompt, and the raw output", _COMPLETION, _STREAM),
    "/v1/responses": ("Responses (OpenAI), without state", _RESPONSE, _STREAM),
    "/v1/messages": ("Messages (Anthropic)", _MESSAGES, _STREAM),
    "/v1/messages/count_tokens": ("Tokens of a prompt (Anthropic)", _fields(("messages",), **_ANTHROPIC), ""),
    "/api/chat": ("Chat (Ollama)", _OLLAMA_CHAT, _LINES),
    "/api/generate": ("Generate (Ollama)", _OLLAMA_GENERATE, _LINES),
    "/api/show": ("A model (Ollama)", _fields(("model",), model=_TEXT), ""),
    "/tokenize": ("Text, or messages through the chat template, as token ids", _fields(prompt=_TEXT, model=_TEXT), ""),
    "/detokenize": (
        "Token ids as text",
        _fields(("tokens",), tokens=_list(_integer(0, 100_000)), model=_TEXT),
        "",
    ),
    "/parse": (
        "Raw output in, message out",
        _fields(
            ("text",),
            text=_TEXT,
            model=_TEXT,
            format=_any(_TEXT, _OBJECT),
            reasoning=_TEXT,
            template=_TEXT,
            tools=_list(_fields(("type", "function"), type=_one_of("function"), function=_FUNCTION)),
            prompt=_TEXT,
            token_ids=_list(_integer(0, 100_000)),
            finish_reason=_TEXT,
            policy=_OBJECT,
            spans=_FLAG,
        ),
        "",
    ),
}
_GETS: Final[dict[str, tuple[str, str]]] = {
    "/v1/models": ("The models", "application/json"),
    "/health": ("Whether every engine can take a request (503: not)", "application/json"),
    "/metrics": ("Prometheus metrics", "text/plain"),
    "/api/tags": ("The models (Ollama)", "application/json"),
    "/api/ps": ("The models that are loaded (Ollama)", "application/json"),
    "/api/version": ("The version (Ollama)", "application/json"),
}


def document(version: str) -> dict[str, Any]:
    """The document, OpenAPI 3.1."""
    paths: dict[str, Any] = {}
    error = {"description": "an error, in the shape of this API", "content": {"application/json": {"schema": _OBJECT}}}
    for path, (summary, schema, streams) in _POSTS.items():
        content: dict[str, Any] = {"application/json": {"schema": _OBJECT}}
        if streams:
            content[streams] = {"schema": _TEXT}
        paths[path] = {
            "post": {
                "summary": summary,
                "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
                "responses": {"200": {"description": "done", "content": content}, "4XX": error, "501": error},
            }
        }
    for path, (summary, media_type) in _GETS.items():
        done = {"description": "done", "content": {media_type: {"schema": {}}}}
        paths[path] = {"get": {"summary": summary, "responses": {"200": done, "4XX": error}}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "untemplate",
            "version": version,
            "description": "Raw output of language models as messages, in the APIs that clients know.",
        },
        "paths": paths,
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }
