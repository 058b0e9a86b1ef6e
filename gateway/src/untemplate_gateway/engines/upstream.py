"""The connection to an OpenAI-compatible server: its kind, its tokens, its events, its errors.

* The kind of server (vLLM, SGLang, llama.cpp or unknown) is detected once, at the start. If the server refuses the
  gateway's additional fields, they are left out from then on.
* A request is repeated only before any part of its response has arrived.
* Errors for clients contain no key, no URL and no internal text of the upstream; the log has them.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import msgspec

from untemplate.format import Format
from untemplate.templates import ChatTemplate, TemplateError

from ..errors import ApiError
from ..request_context import current
from .admission import STEP, Turn, Turns
from .base import Embeddings, Engine, EngineError, Health, Job, Scores, Takes
from .chunks import decoded
from .llamacpp_wire import image_marker, refused
from .servers import SERVERS, UNKNOWN, Server
from .vectors import embeddings_of, scores_of
from .wire import Client, Response, WireError, events

_log: Final = logging.getLogger("untemplate.gateway.engines")
_AGAIN: Final = frozenset((429, 502, 503))
"""Statuses after which a request is repeated."""
_KEY_REFUSED: Final = frozenset((401, 403, 407))
_BYTES: Final = 4
"""Bytes of a request for a token of its prompt, as turns are priced before the server has counted it."""
_LONGEST_WAIT: Final = 10.0
"""Seconds. If a server asks for a longer wait, the request is not repeated."""
_ANY: Final = msgspec.json.Decoder()


class Upstream(Engine):
    """Base class of both modes; see `OpenAIEngine` for the arguments."""

    kind = "openai"
    takes = Takes(logprobs=True)

    def __init__(
        self,
        url: str,
        *,
        model: str = "",
        wanted: str = "",
        api_key: str = "",
        connect_timeout: float = 5.0,
        read_timeout: float = 300.0,
        retries: int = 2,
        concurrency: int = 0,
    ) -> None:
        # Without the password, because logs contain the URL.
        self.url = re.sub(r"(?<=://)[^/?#]*@", "", url).rstrip("/").removesuffix("/v1")
        self.model = model
        self._wanted = wanted
        """Without ``model``: the one to take if the server lists several."""
        self.server = ""
        """``vllm``, ``sglang``, ``llama.cpp``, or empty if unknown. Detected at the start, like ``context_length``."""
        self.context_length: int | None = None
        self.format: Format | None = None
        """The Format of the server's model (`expect`)."""
        self._settings: dict[str, Any] = {
            "headers": {"authorization": f"Bearer {api_key}"} if api_key else {},
            "connect_timeout": connect_timeout,
            "read_timeout": read_timeout,
        }
        self._retries = retries
        self._turns = Turns(concurrency)
        self._client: Client | None = None
        self._ours: dict[str, Any] = {}
        self._accepted = False
        self._bos = ""
        self._ends: dict[int, str] = {}
        """Tokens that end an output. Their text is not part of the output, even if the Format does not know them."""
        self._properties: dict[str, Any] = {}
        """llama.cpp's description of itself."""
        self._template: ChatTemplate | None = None

    # -- Start and end -----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        if self._client is not None:
            return
        try:
            self._client = Client(self.url, **self._settings)
        except ValueError as error:
            raise EngineError(f"upstream: {error}", status=500, code="bad_setting") from None
        try:
            await self._look()
        except BaseException:
            await self.close()
            raise
        kind, chat = self._kind, self.takes.messages
        fields = kind.chat_fields if chat else kind.fields
        self._ours = {"stream_options": {"include_usage": True}, **fields}
        self.takes = msgspec.structs.replace(
            self.takes,
            grammar=kind.chat_grammar if chat else kind.grammar,
            prompt_logprobs=kind.echoes and not chat,
            token_ids="return_token_ids" in fields if chat else bool(self.server),
            sampling=UNKNOWN.sampling if chat else kind.sampling,
            constraints=kind.constraints,
            images=None if chat else image_marker(self._properties),
        )

    @property
    def _kind(self) -> Server:
        return SERVERS.get(self.server, UNKNOWN)

    def expect(self, format: Format) -> None:
        self.format = format

    def template(self) -> ChatTemplate | None:
        """Return the model's chat template, if the server shows it, as llama.cpp does."""
        return self._template

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _look(self) -> None:
        """Detect the kind of server, and its model."""
        status, found, headers = await self._get("/v1/models")
        self._check_answer(status, headers)
        mine = self._choose_model(_models_of(found) if status == 200 else [], status)
        length = mine.get("max_model_len")
        self.server = _server_of(mine, headers) or await self._named()
        if self.server == "llama.cpp":
            length = await self._read_properties()
        self.context_length = length if isinstance(length, int) else None

    def _check_answer(self, status: int, headers: Mapping[str, str]) -> None:
        if 300 <= status < 400 and "location" in headers:
            problem = f"{self.url} redirects: give the URL {headers['location'].removesuffix('/v1/models')}"
            raise EngineError(problem, status=500, code="bad_setting")
        if status in (401, 403):
            problem = (
                f"{self.url} refuses the API key (HTTP {status}): set upstream_api_key (UNTEMPLATE_UPSTREAM_API_KEY)"
            )
            raise EngineError(problem, status=500, code="upstream_refused")

    def _choose_model(self, models: list[dict[str, Any]], status: int) -> dict[str, Any]:
        """Set the model, if it was not given. Return its entry in the server's list, or the first one."""
        if not self.model and any(model["id"] == self._wanted for model in models):
            self.model = self._wanted
        if not self.model and len(models) != 1:
            names = ", ".join(model["id"] for model in models)
            answered = "" if status == 200 else f" (HTTP {status})"
            has = f"lists the models {names}" if names else f"does not name its model{answered}"
            raise EngineError(
                f"{self.url} {has}: set upstream_model (--upstream-model NAME)", status=500, code="upstream_model"
            )
        mine = next((model for model in models if model["id"] == self.model), models[0] if models else {})
        self.model = self.model or mine["id"]
        return mine

    async def _read_properties(self) -> Any:
        """Read llama.cpp's description of itself. Return the length of its context."""
        _, found, _ = await self._get("/props")
        properties = found if isinstance(found, dict) else {}
        settings = properties.get("default_generation_settings")
        self._template = _template_of(properties)
        self._properties = properties
        # llama.cpp adds a BOS token to prompts that are text; templates write their own.
        with suppress(NotImplementedError):
            if await self._tokens("", add_special=True):
                self._bos = str(properties.get("bos_token") or "")
        return settings.get("n_ctx") if isinstance(settings, dict) else None

    async def _named(self) -> str:
        """Return the kind of a server whose list of models does not show it."""
        for server in SERVERS.values():
            path, key = server.known_by
            status, found, _ = await self._get(path)
            if status == 200 and isinstance(found, dict) and key in found:
                return server.name
        return ""

    async def health(self) -> Health:
        try:
            status, _, _ = await self._get("/health")
            if status == 404:
                status, _, _ = await self._get("/v1/models")
        except EngineError as error:
            _log.debug("health: %s: %s", error.message, error.detail)
            return Health(ok=False, detail=error.message)
        return Health(ok=status == 200, detail="" if status == 200 else f"the upstream answers HTTP {status}")

    async def tokenize(self, text: str, *, special: bool = True) -> list[int]:
        return await self._tokens(text, special=special)

    async def _tokens(self, text: str, *, special: bool = True, add_special: bool = False) -> list[int]:
        if not self.server:
            raise NotImplementedError
        if self.server == "llama.cpp":
            body = {"content": text, "add_special": add_special, "parse_special": special}
        else:
            body = {"model": self.model, "prompt": text, "add_special_tokens": add_special}
        ids: list[int] = await self._asked("/tokenize", body, "tokens", list)
        return ids

    async def detokenize(self, token_ids: Sequence[int]) -> str:
        if not self.server:
            raise NotImplementedError
        body = {"model": self.model, "tokens": list(token_ids)}
        text: str = await self._asked("/detokenize", body, self._kind.text_key, str)
        return text

    async def embed(self, inputs: Sequence[str | list[int]], dimensions: int | None = None) -> Embeddings:
        body: dict[str, Any] = {"model": self.model, "input": list(inputs), "encoding_format": "float"}
        if dimensions is not None:
            body["dimensions"] = dimensions
        return embeddings_of(await self._post("/v1/embeddings", body), len(inputs))

    async def rerank(self, query: str, documents: Sequence[str]) -> Scores:
        body = {"model": self.model, "query": query, "documents": list(documents)}
        return scores_of(await self._post("/v1/rerank", body), len(documents))

    # -- Requests ----------------------------------------------------------------------------------------------------

    def _reached(self) -> Client:
        if self._client is None:
            raise EngineError("the engine is not started", status=503)
        return self._client

    async def _get(self, path: str) -> tuple[int, Any, Mapping[str, str]]:
        """Return the status, the JSON value and the headers of an answer."""
        try:
            async with self._reached().request("GET", path, read_timeout=10) as response:
                body = await response.body()
                return response.status, _value(body), response.headers
        except WireError as error:
            raise self._unreachable(error) from None

    async def _asked(self, path: str, body: dict[str, Any], key: str, kind: type) -> Any:
        """Return one value of an answer."""
        found = await self._post(path, body)
        value = found.get(key) if isinstance(found, dict) else None
        if not isinstance(value, kind):
            problem = f"the upstream's answer to {path} is not understood: it has no {key!r}"
            raise EngineError(problem, code="bad_upstream")
        return value

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        try:
            async with self._reached().request("POST", path, msgspec.json.encode(body)) as response:
                answer = await response.body()
                if response.status in (404, 501) or b"is not OAI compatible" in answer:
                    raise NotImplementedError
                if response.status != 200:
                    raise self._refused(response, answer)
                return _value(answer)
        except WireError as error:
            raise self._unreachable(error) from None

    @asynccontextmanager
    async def _opened(
        self, path: str, fields: dict[str, Any], ours: dict[str, Any], job: Job, tokens: int = 0
    ) -> AsyncIterator[tuple[Response, Turn]]:
        """Yield the response to a request, which is repeated after errors that may pass, and the turn, to which the
        tokens of the output are to be added.

        Args:
            fields: the body.
            job: the job that the request is for.
            ours: additional fields of the gateway, which are left out if the server refuses them.
            tokens: tokens of the context that the request may need, where requests share it.

        Raises:
            ApiError: the server answers with an error, or not at all, or breaks off while its response is read.
        """
        context = current.get()
        size = 0 if context is None else context.size // _BYTES
        output = STEP if job.max_tokens is None else min(job.max_tokens, STEP)
        with await self._turns.reserve(tokens, size + output) as turn:
            turn.cost = size
            async with self._attempted(path, fields, ours) as response:
                yield response, turn

    @asynccontextmanager
    async def _attempted(self, path: str, fields: dict[str, Any], ours: dict[str, Any]) -> AsyncIterator[Response]:
        client = self._reached()
        ours = {name: value for name, value in ours.items() if name not in fields}
        refused: ApiError | None = None
        attempt = 0
        while True:
            body = msgspec.json.encode({**fields, **ours})
            try:
                async with client.request("POST", path, body) as response:
                    if response.status == 200:
                        self._accepted = True
                        if refused is not None:
                            _log.warning(
                                "%s refuses the additional fields of the gateway: %s", self.url, refused.message
                            )
                            self._ours = {name: value for name, value in self._ours.items() if name in ours}
                        yield response
                        return
                    error = self._refused(response, await response.body())
                    wait = _wait(response.headers.get("retry-after"), attempt)
                    again = response.status in _AGAIN
            except WireError as broken:
                if broken.kind != "connect":
                    raise self._unreachable(broken) from None
                error, wait, again = self._unreachable(broken), _wait(None, attempt), True
            context = current.get()
            if context is not None:
                code = error.code if isinstance(error, EngineError) else None  # other codes are the server's own text
                context.errors.append(code or str(error.status))
            if error.status in (400, 422) and ours and not self._accepted:
                # The server may refuse unknown fields. If the request succeeds without them, they were the cause.
                refused, ours = error, _not_named(ours, error.message)
                continue
            if not again or attempt >= self._retries or wait > _LONGEST_WAIT:
                raise error
            attempt += 1
            if context is not None:
                context.retries += 1
            await asyncio.sleep(wait)

    async def _events(self, response: Response) -> AsyncGenerator[bytes, None]:
        """Yield the data of the response's events, up to ``[DONE]``."""
        if "text/event-stream" not in response.headers.get("content-type", "text/event-stream").lower():
            body = await response.body()  # the server does not stream, or its content type is wrong
            streamed = body.lstrip().startswith((b"data:", b"event:", b"id:", b":"))
            for event in events().feed(body + b"\n\n") if streamed else [body]:
                if event == b"[DONE]":
                    return
                yield event
            return
        reader = events()
        read = response.read
        while chunk := await read():
            for event in reader.feed(chunk):
                if event == b"[DONE]":
                    await response.rest()
                    return
                yield event
        for event in reader.end():
            if event != b"[DONE]":
                yield event

    def _unreachable(self, error: WireError) -> EngineError:
        if error.kind == "timeout":
            return EngineError(f"the upstream is silent: {error}", status=504, code="upstream_timeout")
        if error.kind == "connect":
            return EngineError(
                "the upstream cannot be reached", code="upstream_unreachable", detail=f"{self.url}: {error}"
            )
        return EngineError(f"the upstream broke off: {error}", code="upstream_broke_off")

    def _refused(self, response: Response, body: bytes) -> ApiError:
        """Return the error for a response that is not 200.

        Messages of a 4xx are about the request and reach the client. Others, redirects and refused keys are about the
        upstream: their text goes to the log.
        """
        status = response.status
        text, about = _problem(response, body)
        if self.server == "llama.cpp" and (400 <= status < 600) and status not in _KEY_REFUSED:
            return refused(status, text)
        headers = {"Retry-After": response.headers["retry-after"]} if "retry-after" in response.headers else {}
        detail = f"{self.url} answers HTTP {status}: {text}"
        if status in _KEY_REFUSED:
            return EngineError("the upstream refuses the gateway's API key", code="upstream_refused", detail=detail)
        if 400 <= status < 500:
            kind, param, code = about.get("type"), about.get("param"), about.get("code")
            return ApiError(
                status,
                text,
                type=kind if isinstance(kind, str) else "invalid_request_error",
                param=param if isinstance(param, str) else None,
                code=code if isinstance(code, str) else None,
                headers=headers,
            )
        if 300 <= status < 400:
            problem = "the upstream redirects to another server"
            return EngineError(problem, code="upstream_redirects", detail=f"{detail}; give the URL of that server")
        problem = "the upstream is not available" if status == 503 else "the upstream failed"
        status = status if status in (503, 504) else 502
        return EngineError(problem, status=status, code="upstream_error", headers=headers, detail=detail)


def _not_named(fields: dict[str, Any], message: str) -> dict[str, Any]:
    """Return the fields that an error does not name; none if it names none of them."""
    kept = {name: value for name, value in fields.items() if name not in message}
    return kept if len(kept) < len(fields) else {}


def _problem(response: Response, body: bytes) -> tuple[str, dict[str, Any]]:
    """Return the text of an error response, and its other fields as OpenAI names them."""
    found = _value(body)
    inner = found.get("error", found) if isinstance(found, dict) else None
    text = ""
    about: dict[str, Any] = {}
    if isinstance(inner, dict):
        about = inner
        text = str(inner.get("message") or inner.get("detail") or "")
    elif isinstance(inner, str):
        text = inner
    if 300 <= response.status < 400 and "location" in response.headers:
        text = f"redirects to {response.headers['location']}"
    if "content-encoding" in response.headers:
        body = b""
    return text or body[:200].decode("utf-8", "replace").strip() or f"HTTP {response.status}", about


def _models_of(found: Any) -> list[dict[str, Any]]:
    """Return the models of a server's list that have a name."""
    listed = found.get("data") if isinstance(found, dict) else None
    listed = listed if isinstance(listed, list) else []
    return [model for model in listed if isinstance(model, dict) and isinstance(model.get("id"), str)]


def _server_of(model: Mapping[str, Any], headers: Mapping[str, str]) -> str:
    """Return the kind of server that an entry of its list, or the headers of that, name; empty if they do not."""
    owner = str(model.get("owned_by", "")).lower()
    if owner in ("vllm", "sglang"):
        return owner
    return "llama.cpp" if owner == "llamacpp" or headers.get("server") == "llama.cpp" else ""


def _template_of(properties: Mapping[str, Any]) -> ChatTemplate | None:
    """Return the template in llama.cpp's ``/props``; ``None`` if it is missing or invalid."""
    source = properties.get("chat_template")
    if not isinstance(source, str) or not source:
        return None
    bos, eos = (str(properties.get(name) or "") for name in ("bos_token", "eos_token"))
    try:
        return ChatTemplate(source, bos_token=bos, eos_token=eos, name="llama.cpp")
    except TemplateError:
        return None


def _wait(header: str | None, attempt: int) -> float:
    """Return the seconds until the next attempt: from the server's header, or growing with each attempt."""
    try:
        return max(0.0, float(header or ""))
    except ValueError:
        return min(2.0, 0.1 * 2.0**attempt) * random.uniform(0.5, 1.0)


def _value(body: bytes) -> Any:
    """Return a JSON value; ``None`` if the text is not JSON."""
    try:
        return decoded(_ANY, body)
    except msgspec.DecodeError:
        return None
