"""Everything that is asked of the gateway beside output: models, tokens, parsing alone, health, metrics.

The rule: small, and without state of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from .. import __version__
from ..format import Format, FormatError
from ..output_parser import OutputParser
from ..policy import Policy
from ..templates import ChatTemplate
from .asgi import Receive, Scope, Send, header, read_json, send_bytes, send_json
from .errors import ApiError, bad_request, not_found, unsupported
from .generation import Generation, Meta
from .manager.model import Model
from .observe import Record
from .prompt import make_prompt
from .protocols import anthropic, chat, ollama

if TYPE_CHECKING:
    from .app import Gateway

__all__ = ["Call", "dialect_of", "endpoints", "ollama_load"]

Call = Callable[["Gateway", Scope, Receive, Send, Record], Awaitable[None]]


def dialect_of(path: str) -> str:
    """The name of the dialect whose errors clients of this path expect."""
    if path.startswith("/api/"):
        return ollama.CHAT.name
    if path.startswith("/v1/messages"):
        return anthropic.MESSAGES.name
    return chat.CHAT.name


def endpoints() -> dict[tuple[str, str], Call]:
    """(method, path) → what answers it."""
    return {
        ("GET", "/"): _root,
        ("GET", "/health"): _health,
        ("GET", "/metrics"): _metrics,
        ("GET", "/openapi.json"): _openapi,
        ("GET", "/v1/models"): _models,
        ("GET", "/v1/models/{model:path}"): _model,
        ("POST", "/v1/messages/count_tokens"): _count_tokens,
        ("POST", "/tokenize"): _tokenize,
        ("POST", "/detokenize"): _detokenize,
        ("POST", "/parse"): _parse,
        ("GET", "/api/tags"): _tags,
        ("GET", "/api/ps"): _ps,
        ("POST", "/api/show"): _show,
        ("GET", "/api/version"): _version,
    }


async def _body(gateway: Gateway, scope: Scope, receive: Receive) -> dict[str, Any]:
    return await read_json(scope, receive, gateway.settings.max_body_bytes)


async def _root(gateway: Gateway, scope: Scope, receive: Receive, send: Send, record: Record) -> None:
    record.status = 200
    await send_bytes(send, 200, b"untemplate is running\n", b"text/plain; charset=utf-8", [])


async def _health(gateway: Gateway, scope: Scope, receive: Receive, send: Send, record: Record) -> None:
    """200 while every engine can take a job, else 503."""
    found = await gateway.manager.health()
    models = {
        name: {"status": "ok" if health.ok else "error", **({"detail": health.detail} if health.detail else {})}
        for name, health in found.items()
    }
    ok = bool(found) and all(health.ok for health in found.values())
    record.status = 200 if ok else 503
    status = "ok" if ok else "error" if found else "no model is loaded"
    await send_json(send, record.status, {"status": status, "models": models}, [])


async def _metrics(gateway: Gateway, scope: Scope, receive: Receive, send: Send, record: Record) -> None:
    if not gateway.settings.metrics:
        raise not_found("metrics are switched off (metrics = false)")
    record.status = 200
    await send_bytes(send, 200, gateway.metrics.text(), b"text/plain; version=0.0.4; charset=utf-8", [])


async def _openapi(gateway: Gateway, scope: Scope, receive: Receive, send: Send, record: Record) -> None:
    from .protocols.openapi import document

    record.status = 200
    await send_json(send, 200, document(__version__), [])


def _model_object(model: Model) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": model.name, "object": "model", "created": model.created, "owned_by": "untemplate"}
    if model.context_length:
        shown["max_model_len"] = model.context_length
    shown["untemplate"] = {
        "format": model.parser.format.name,
        "engine": model.engine.kind,
        "reasoning": model.parser.has_reasoning,
        "tools": model.parser.has_tools,
        "grammar": model.engine.takes.grammar,
    }
    return shown


async def _models(gateway: Gateway, scope: Scope, receive: Receive, send: Send, record: Record) -> None:
    record.status = 200
    data = [_model_object(model) for model in gateway.manager.list()]
    if header(scope, b"anthropic-version"):
        await send_json(send, 200, anthropic.models(data), [])
        return
    await send_json(send, 200, {"object": "list", "data": data}, [])


async def _model(gateway: Gateway, scope: Scope, receive: Receive, send: Send, record: Record) -> None:
    model = gateway.manager.get(scope["path_params"]["model"])
    record.status = 200
    await send_json(send, 200, _model_object(model), [])


# -- Tokens ------------------------------------------------------------------------------------------------------


async def _count(model: Model, request: Generation) -> list[int]:
    """The tokens of a request's prompt."""
    prompt = await asyncio.to_thread(make_prompt, model, request)  # other streams go on meanwhile
    if isinstance(prompt.text, list):
        return prompt.text
    if model.engine.takes.messages:
        raise unsupported("model", f"the engine {model.engine.kind!r} renders prompts itself and cannot count them")
    return await _tokens(model, prompt.text)


async def _tokens(model: Model, text: str) -> list[int]:
    try:
        return await model.engine.tokenize(text)
    except NotImplementedError:
        raise ApiError(
            501, f"the engine {model.engine.kind!r} has no tokenizer that could be asked", code="no_tokenizer"
        ) from None


async def _count_tokens(gateway: Gateway, scope: Scope, receive: Receive, send: Send, record: Record) -> None:
    request = anthropic.COUNT_TOKENS.read(await _body(gateway, scope, receive))
    async with gateway.manager.use(request.model) as model:
        tokens = await _count(model, request)
    record.status = 200
    await send_json(send, 200, anthropic.COUNT_TOKENS.respond(len(tokens)), [])


async def _tokenize(gateway: Gateway, scope: Scope, receive: Receive, send: Send, record: Record) -> None:
    """vLLM's: a ``prompt``, or ``messages`` (and ``tools``) through the chat template."""
    body = await _body(gateway, scope, receive)
    if "messages" in body:
        request = chat.CHAT.read(
            {k: v for k, v in body.items() if k not in ("add_special_tokens", "return_token_strs")}
        )
    else:
        request = Generation(model=_text(body, "model", ""), prompt=_text(body, "prompt"))
    async with gateway.manager.use(request.model) as model:
        tokens = await _count(model, request)
        length = model.context_length
    record.status = 200
    await send_json(send, 200, {"count": len(tokens), "max_model_len": length, "tokens": tokens}, [])


async def _detokenize(gateway: Gateway, scope: Scope, receive: Receive, send: Send, record: Record) -> None:
    body = await _body(gateway, scope, receive)
    tokens = body.get("tokens")
    if not isinstance(tokens, list) or not all(type(t) is int and 0 <= t < 1 << 31 for t in tokens):
        raise bad_request("tokens", "must be a list of token ids")
    async with gateway.manager.use(_text(body, "model", "")) as model:
        try:
            text = await model.engine.detokenize(tokens)
        except NotImplementedError:
            raise ApiError(
                501, f"the engine {model.engine.kind!r} has no tokenizer that could be asked", code="no_tokenizer"
            ) from None
    record.status = 200
    await send_json(send, 200, {"prompt": text}, [])


def _text(body: dict[str, Any], name: str, default: str | None = None) -> str:
    value = body.get(name, default)
    if not isinstance(value, str):
        raise bad_request(name, "must be a string" if name in body else "is required")
    return value


# -- Parsing alone -----------------------------------------------------------------------------------------------

_PARSE: Final = frozenset(
    (
        *("model", "text", "format", "reasoning", "template", "tools", "tool_choice", "prompt", "token_ids"),
        *("finish_reason", "messages", "policy", "spans"),
    )
)


async def _parse(gateway: Gateway, scope: Scope, receive: Receive, send: Send, record: Record) -> None:
    """Raw text in, message out. Parsed as ``model``'s outputs are, or as those of a ``format`` (a name, or a Format as
    JSON) or ``template``."""
    body = await _body(gateway, scope, receive)
    for name in body:
        if name not in _PARSE:
            raise bad_request(name, f"there is no such field; there are: {', '.join(sorted(_PARSE))}")
    text = _text(body, "text")
    context: dict[str, Any] = {}
    for name, kind, what in (
        ("tools", list, "a list"), ("messages", list, "a list"), ("prompt", str, "a string"),
        ("token_ids", list, "a list of token ids"), ("finish_reason", str, "a string"), ("policy", dict, "an object"),
        ("spans", bool, "true or false"),
    ):  # fmt: skip
        value = body.get(name)
        if value is None:
            continue
        if not isinstance(value, kind):
            raise bad_request(name, f"must be {what}")
        context[name] = value
    if not all(type(t) is int and 0 <= t < 1 << 31 for t in context.get("token_ids", ())):
        raise bad_request("token_ids", "must be a list of token ids")
    if body.get("tool_choice") is not None:
        context["tool_choice"] = body["tool_choice"]
    if any(not isinstance(message, dict) for message in context.get("messages", ())):
        raise bad_request("messages", "must be a list of objects")
    try:
        if "policy" in context:
            context["policy"] = Policy.from_mapping(context["policy"])
        # In a thread: other streams go on, however long a text or a template is.
        parser = await asyncio.to_thread(_parser, gateway, body)
        parsed = await asyncio.to_thread(parser.parse, text, **context)
    except FormatError as error:
        raise bad_request("format", str(error)) from None
    except ValueError as error:
        raise bad_request(None, str(error)) from None
    except (TypeError, AttributeError, LookupError, RecursionError):
        raise bad_request(None, "tools, tool_choice or messages are not as Chat Completions has them") from None
    record.status = 200
    shown = {
        "message": parsed.message(reasoning_field=parser.policy.reasoning_field),
        "finish_reason": parsed.finish_reason,
        "format": parser.format.name,
        "calls": [
            {"index": i, "name": c.function.name, "status": c.status, "model_id": c.model_id, "repairs": c.repairs}
            for i, c in enumerate(parsed.tool_calls)
        ],
        "diagnostics": [d.model_dump() for d in parsed.diagnostics],
    }
    if context.get("spans"):
        shown["spans"] = [span.model_dump(exclude_none=True) for span in parsed.spans]
    await send_json(send, 200, shown, [])


def _parser(gateway: Gateway, body: dict[str, Any]) -> OutputParser:
    """The parser that a ``/parse`` request means."""
    given = [name for name in ("format", "template") if body.get(name) is not None]
    if len(given) == 2:
        raise bad_request("template", "excludes format")
    if not given:
        return gateway.manager.get(_text(body, "model", "")).parser
    value = body[given[0]]
    if given == ["template"]:
        # The text itself: what names a file or a model is none, or clients would read what the server may read.
        return OutputParser.from_template(ChatTemplate(_text(body, "template")))
    if isinstance(value, dict):
        return OutputParser.from_format(Format.from_json(msgspec.json.encode(value)))
    reasoning = body.get("reasoning")
    if reasoning is not None and not isinstance(reasoning, str):
        raise bad_request("reasoning", "must be a string")
    return OutputParser.named(_text(body, "format"), reasoning=reasoning)


# -- Ollama's ----------------------------------------------------------------------------------------------------


async def ollama_load(gateway: Gateway, send: Send, record: Record, path: str, body: dict[str, Any]) -> bool:
    """Answers a request without a prompt, which asks for a model to be loaded or let go. Returns whether it was one.

    Raises:
        ApiError: 404: no such model; 403: it is to be let go.
    """
    load = ollama.load_of(body, chat=path == "/api/chat")
    if load is None:
        return False
    model = gateway.manager.get(load.model)
    if load.unload:
        problem = "models are loaded and let go by who runs this gateway, not by its clients"
        raise ApiError(403, problem, type="permission_error", param="keep_alive")
    record.model, record.status = model, 200
    meta = Meta(id=record.id, created=int(time.time()), model=load.model or model.name)
    await send_json(send, 200, ollama.loaded(load, meta), [])
    return True


async def _tags(gateway: Gateway, scope: Scope, receive: Receive, send: Send, record: Record) -> None:
    record.status = 200
    await send_json(send, 200, ollama.tags(gateway.manager.list()), [])


async def _ps(gateway: Gateway, scope: Scope, receive: Receive, send: Send, record: Record) -> None:
    record.status = 200
    loaded = [status.model for status in gateway.manager.ps() if status.model is not None and status.state == "ready"]
    await send_json(send, 200, ollama.ps(loaded), [])


async def _show(gateway: Gateway, scope: Scope, receive: Receive, send: Send, record: Record) -> None:
    body = await _body(gateway, scope, receive)
    name = body.get("model", body.get("name", ""))
    if not isinstance(name, str):
        raise bad_request("model", "must be a string")
    record.status = 200
    await send_json(send, 200, ollama.show(gateway.manager.get(name)), [])


async def _version(gateway: Gateway, scope: Scope, receive: Receive, send: Send, record: Record) -> None:
    record.status = 200
    await send_json(send, 200, ollama.version(__version__), [])
