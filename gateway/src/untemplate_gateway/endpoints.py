"""All endpoints that generate no output: models, tokens, parsing, health, metrics, and Ollama's lists."""

from __future__ import annotations

import json
from functools import partial
from html import escape
from typing import Any, Final

from untemplate import __version__

from . import gemini_endpoints, ollama_endpoints
from . import response_endpoints as responses
from .asgi import header, is_gemini, path_of
from .counting import count_prompt, prompt_tokens
from .errors import ApiError, bad_request, not_found
from .exchange import Endpoint, Exchange
from .generation import Generation
from .manager import Model
from .parsing import parse
from .protocols import chat, ollama
from .protocols.anthropic import MESSAGES
from .protocols.anthropic.request import read_count_tokens
from .protocols.anthropic.response import models
from .protocols.fields import read_as
from .protocols.gemini import GEMINI
from .protocols.gemini.response import model_object as gemini_model
from .protocols.utilities import DetokenizeRequest, TokenizeRequest
from .vector_endpoints import embed, embedding, embeddings, rerank


def dialect_of(path: str) -> str:
    """Return the name of the dialect whose errors the clients of a path expect."""
    if path.startswith("/api/"):
        return ollama.CHAT.name
    if path.startswith("/v1/messages"):
        return MESSAGES.name
    if is_gemini(path):
        return GEMINI.name
    return chat.CHAT.name


def endpoints() -> dict[tuple[str, str], Endpoint]:
    """Return the endpoints by method and path."""

    monitoring = partial(Endpoint, limited=False, open=True, counted=False)
    listing = partial(Endpoint, limited=False)
    computing = partial(Endpoint, reads_body=True)
    gemini = Endpoint(GEMINI.name, gemini_endpoints.call, reads_body=True, traced=True)
    return {
        ("GET", "/"): monitoring("root", _root),
        ("GET", "/health"): monitoring("health", _health),
        ("GET", "/metrics"): monitoring("metrics", _metrics, open=False),
        ("GET", "/openapi.json"): monitoring("openapi", _openapi),
        ("GET", "/api/version"): monitoring("version", ollama_endpoints.version),
        ("GET", "/v1/models"): listing("models", _models),
        ("GET", "/v1/models/{model:path}"): listing("models", _model),
        ("GET", "/api/tags"): listing("models", ollama_endpoints.tags),
        ("GET", "/api/ps"): listing("models", ollama_endpoints.ps),
        ("POST", "/api/show"): Endpoint("models", ollama_endpoints.show, reads_body=True, limited=False),
        ("POST", "/api/pull"): computing("models", ollama_endpoints.pull),
        ("DELETE", "/api/delete"): computing("models", ollama_endpoints.delete),
        ("POST", "/v1/messages/count_tokens"): computing("count_tokens", _count_tokens),
        ("POST", "/v1/responses/input_tokens"): computing("count_tokens", responses.count_input),
        ("GET", "/v1/responses/{id}"): listing("responses", responses.get_response),
        ("DELETE", "/v1/responses/{id}"): listing("responses", responses.delete_response),
        ("GET", "/v1/responses/{id}/input_items"): listing("responses", responses.list_items),
        ("POST", "/v1/responses/{id}/cancel"): listing("responses", responses.cancel_response),
        ("POST", "/v1/conversations"): computing("conversations", responses.create_conversation),
        ("GET", "/v1/conversations/{id}"): listing("conversations", responses.show_conversation),
        ("POST", "/v1/conversations/{id}"): computing("conversations", responses.update_conversation),
        ("DELETE", "/v1/conversations/{id}"): listing("conversations", responses.delete_conversation),
        ("GET", "/v1/conversations/{id}/items"): listing("conversations", responses.list_conversation),
        ("POST", "/v1/conversations/{id}/items"): computing("conversations", responses.add_items),
        ("GET", "/v1/conversations/{id}/items/{item}"): listing("conversations", responses.show_item),
        ("DELETE", "/v1/conversations/{id}/items/{item}"): listing("conversations", responses.delete_item),
        ("GET", "/v1beta/models"): listing("models", _models),
        ("GET", "/v1beta/models/{model:path}"): listing("models", _model),
        ("POST", "/v1beta/models/{call:path}"): gemini,
        ("POST", "/v1/models/{call:path}"): gemini,
        ("POST", "/v1/embeddings"): computing("embeddings", embeddings),
        ("POST", "/v1/rerank"): computing("rerank", rerank),
        ("POST", "/api/embed"): computing("embeddings", embed),
        ("POST", "/api/embeddings"): computing("embeddings", embedding),
        ("POST", "/tokenize"): computing("tokenize", _tokenize),
        ("POST", "/detokenize"): computing("detokenize", _detokenize),
        ("POST", "/parse"): computing("parse", parse),
    }


_PAGE: Final = """<!doctype html>
<meta charset="utf-8"><title>untemplate</title>
<style>body {{ font: 16px system-ui; max-width: 50em; margin: 2em auto }} pre {{ overflow: auto }}</style>
<h1>untemplate is running</h1>
<table>{models}</table>
<p>{links}</p>
<pre>curl {url}/v1/models
curl {url}/health
curl {url}/v1/chat/completions -H 'content-type: application/json' \\
  -d '{{"model": {name}, "messages": [{{"role": "user", "content": "Hello"}}]}}'</pre>
"""
_DOCUMENTATION: Final = "https://github.com/untemplate/untemplate/tree/main/docs"


async def _root(exchange: Exchange) -> None:
    """Answer with a page for people; for programs, with a line. Where keys are needed, the page names no model."""
    if "text/html" not in header(exchange.scope, b"accept"):
        await exchange.reply_text(b"untemplate is running\n", b"text/plain; charset=utf-8")
        return
    gateway, scope = exchange.gateway, exchange.scope
    shown = not gateway.settings.api_keys
    states = {status.name: status.state for status in gateway.manager.ps()} if shown else {}
    states |= {name: "not loaded" for name, _ in gateway.manager.unloaded()} if shown else {}
    links = [("openapi.json", "endpoints"), (_DOCUMENTATION, "documentation")]
    if gateway.has_inspector:
        links.insert(0, ("inspect/", "inspector"))
    host = header(scope, b"host") or "localhost"
    page = _PAGE.format(
        models="".join(f"<tr><td>{escape(name)}<td>{state}" for name, state in states.items()),
        links=" · ".join(f'<a href="{where}">{text}</a>' for where, text in links),
        url=escape(f"{scope.get('scheme', 'http')}://{host}{scope.get('root_path', '')}"),
        name=escape(json.dumps(next(iter(states), "MODEL")), quote=False),
    )
    await exchange.reply_text(page.encode(), b"text/html; charset=utf-8")


async def _health(exchange: Exchange) -> None:
    """Answer 200 while every engine can take a job, otherwise 503."""
    found = await exchange.gateway.manager.health()
    models = {
        name: {"status": "ok" if health.ok else "error", **({"detail": health.detail} if health.detail else {})}
        for name, health in found.items()
    }
    models |= {name: {"status": "not loaded"} for name, _ in exchange.gateway.manager.unloaded()}
    ok = bool(models) and all(health.ok for health in found.values())
    status = "ok" if ok else "error" if found else "no model is loaded"
    await exchange.reply({"status": status, "models": models}, 200 if ok else 503)


async def _metrics(exchange: Exchange) -> None:
    if not exchange.gateway.settings.metrics:
        raise not_found("metrics are switched off (metrics = false)")
    await exchange.reply_text(exchange.gateway.metrics.text(), b"text/plain; version=0.0.4; charset=utf-8")


async def _openapi(exchange: Exchange) -> None:
    from .protocols.openapi import document

    await exchange.reply(document(__version__))


_Listed = tuple[str, Model | None, bool]
"""A model: its name, the model unless it was never loaded, and True if it is loaded now."""


def _model_object(name: str, model: Model | None, loaded: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": name, "object": "model", "created": 0, "owned_by": "untemplate"}
    about: dict[str, Any] = {}
    if model is not None:
        shown |= {"id": model.name, "created": model.created}
        if model.context_length:
            shown["max_model_len"] = model.context_length
        about = {
            "format": model.parser.format.name,
            "engine": model.engine.kind,
            "reasoning": model.thinks,
            "tools": model.calls_tools,
            "grammar": model.engine.takes.grammar,
        }
    return {**shown, "untemplate": about if loaded else {**about, "loaded": False}}


def _of_google(exchange: Exchange) -> bool:
    return bool(header(exchange.scope, b"x-goog-api-client")) or is_gemini(path_of(exchange.scope))


def _for_google(name: str, model: Model | None, _: bool) -> dict[str, Any]:
    return gemini_model(name, model.context_length if model is not None else None)


async def _models(exchange: Exchange) -> None:
    """Return all models: the loaded ones, then those that a request would load."""
    manager = exchange.gateway.manager
    found: list[_Listed] = [(model.name, model, True) for model in manager.list()]
    found += [(name, model, False) for name, model in manager.unloaded()]
    if _of_google(exchange):
        await exchange.reply({"models": [_for_google(*one) for one in found]})
        return
    data = [_model_object(*one) for one in found]
    await exchange.reply(
        models(data) if header(exchange.scope, b"anthropic-version") else {"object": "list", "data": data}
    )


async def _model(exchange: Exchange) -> None:
    manager, name = exchange.gateway.manager, exchange.scope["path_params"]["model"]
    unloaded, wanted = dict(manager.unloaded()), manager.offered(name)
    if wanted in unloaded:
        one: _Listed = (wanted, unloaded[wanted], False)
    else:
        model = manager.get(name)
        one = (model.name, model, True)
    if _of_google(exchange):
        await exchange.reply(_for_google(*one))
        return
    found = _model_object(*one)
    await exchange.reply(models([found])["data"][0] if header(exchange.scope, b"anthropic-version") else found)


# -- Tokens ------------------------------------------------------------------------------------------------------


async def _count_tokens(exchange: Exchange) -> None:
    request = read_count_tokens(exchange.body, exchange.notes)
    await exchange.reply({"input_tokens": await count_prompt(exchange, request)})


async def _tokenize(exchange: Exchange) -> None:
    """Return the tokens of a ``prompt``, or of ``messages`` rendered by the chat template, as vLLM does."""
    asked = read_as(TokenizeRequest, exchange.body)
    if asked.messages is not None:
        own = ("prompt", "add_special_tokens", "return_token_strs")
        request = chat.CHAT.read({name: value for name, value in exchange.body.items() if name not in own})
    elif asked.prompt is None:
        raise bad_request("prompt", "is required")
    else:
        request = Generation(model=asked.model or "", prompt=asked.prompt)
    async with exchange.gateway.manager.use(request.model) as model:
        tokens = await prompt_tokens(model, request)
        length = model.context_length
    await exchange.reply({"count": len(tokens), "max_model_len": length, "tokens": tokens})


async def _detokenize(exchange: Exchange) -> None:
    asked = read_as(DetokenizeRequest, exchange.body)
    async with exchange.gateway.manager.use(asked.model or "") as model:
        try:
            text = await model.engine.detokenize(asked.tokens)
        except NotImplementedError:
            raise ApiError(
                501, f"the engine {model.engine.kind!r} does not offer its tokenizer", code="no_tokenizer"
            ) from None
    await exchange.reply({"prompt": text})
