"""Finds what a server offers: its kind, its model, its APIs, and a way to force a text.

Nothing is assumed from the kind of server: a way counts if the forced words came back as content.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from .._internal.output_parser import OutputParser
from ._cases import TOOLS
from ._client import Answer, NoAnswer, Server, Unusable
from ._model import Capabilities
from ._reading import Malformed
from ._session import Refused, Session, Start
from ._ways import CONTINUED, WAYS

_WORDS: Final = "Zephyr 41 quokkas hum."
"""No model writes this by chance."""
_VERSIONS: Final = (
    ("/version", "version", "vllm"),
    ("/get_model_info", "model_path", "sglang"),
    ("/props", "default_generation_settings", "llama.cpp"),
    ("/api/version", "version", "ollama"),
    ("/perf_metrics", "", "tensorrt-llm"),
)
"""Path below the server's root, a key of its answer, and the kind of server that has both."""


async def look(server: Server, model: str = "") -> tuple[Capabilities, str, str]:
    """Return the kind of server with its model and its APIs; the name of the Format and the chat template, where the
    server shows them.

    Raises:
        Unusable: it cannot be checked: it cannot be reached, refuses the key or does not speak this API.
    """
    try:
        listed = await server.get("/models")
        _refuse(server, listed)
        data = listed.value.get("data") if isinstance(listed.value, dict) else None
        models = [one for one in data or () if isinstance(one, dict) and isinstance(one.get("id"), str)]
        mine = _chosen(server, models, model, listed)
        found = Capabilities(model=model or str(mine["id"]))
        found.server, found.version = await _kind(server, mine, listed)
        found.apis = await _apis(server, found.model)
        template = await _template(server, found)
    except NoAnswer as error:
        raise Unusable(str(error)) from None
    ours = mine.get("untemplate")
    return found, str(ours.get("format") or "") if isinstance(ours, dict) else "", template


def _refuse(server: Server, answer: Answer) -> None:
    """Raise `Unusable` for answers after which no check makes sense."""
    kind = answer.headers.get("content-type", "")
    if answer.status in (401, 403):
        hint = "is it right?" if server.key_name else "name the variable that has one with --api-key-env"
        raise Unusable(f"{server.url} refuses the API key (HTTP {answer.status}): {hint}")
    if answer.status == 429:
        raise Unusable(f"{server.url} is busy (HTTP 429) after three attempts: try later, or slower with --rate")
    if answer.status >= 500:
        raise Unusable(f"{server.url} fails: {answer.problem}")
    if 300 <= answer.status < 400:
        raise Unusable(f"{server.url} redirects to {answer.headers.get('location', 'nowhere')}: check that URL")
    if "html" in kind or answer.text.lstrip()[:1] == "<":
        raise Unusable(f"{server.url} answers with HTML: the base URL of an API often ends with /v1")


def _chosen(server: Server, models: list[dict[str, Any]], model: str, listed: Answer) -> dict[str, Any]:
    if model:
        return next((one for one in models if one["id"] == model), {"id": model})
    if len(models) == 1:
        return models[0]
    if models:
        names = ", ".join(one["id"] for one in models[:8])
        raise Unusable(f"{server.url} has the models {names}: name one with --model")
    if listed.ok or listed.status in (404, 405):
        raise Unusable(f"{server.url} lists no models, as OpenAI's API does: is it another API? (--model NAME)")
    raise Unusable(f"{server.url} does not list its models: {listed.problem}")


async def _kind(server: Server, mine: dict[str, Any], listed: Answer) -> tuple[str, str]:
    owner = str(mine.get("owned_by", "")).lower()
    kind = {"llamacpp": "llama.cpp", "library": "ollama"}.get(owner, owner)
    if kind == "untemplate":
        return kind, ""
    for path, key, name in _VERSIONS:
        if kind in (name, "") or kind not in {row[2] for row in _VERSIONS}:
            answer = await server.get(path, root=True)
            value = answer.value
            if answer.ok and (key in value if isinstance(value, dict) else not key and isinstance(value, list)):
                version = value.get("version", value.get("build_info", "")) if isinstance(value, dict) else ""
                return name, str(version)
    return kind if kind in {row[2] for row in _VERSIONS} else "", ""


async def _template(server: Server, found: Capabilities) -> str:
    """Return the chat template that llama.cpp and untemplate's gateway show; empty for other servers."""
    if found.server == "llama.cpp":
        answer, key = await server.get("/props", root=True), "chat_template"
    elif found.server == "untemplate":
        answer, key = await server.post("/api/show", {"model": found.model}, root=True), "template"
    else:
        return ""
    source = answer.value.get(key) if isinstance(answer.value, dict) else None
    return source if isinstance(source, str) else ""


async def _apis(server: Server, model: str) -> tuple[str, ...]:
    """Return the APIs that the server has: an empty request gets another answer than 404."""
    found = []
    for path in ("chat/completions", "completions", "responses", "messages"):
        answer = await server.post(f"/{path}", {"model": model})
        if answer.status not in (404, 405, 501):
            found.append(path.split("/")[0])
    if "chat" not in found:
        raise Unusable(f"{server.url} has no Chat Completions: /chat/completions answers HTTP 404")
    return tuple(found)


async def probe(server: Server, parser: OutputParser, found: Capabilities) -> Session:
    """Return a session, after finding a way to force a text and what the server reports.

    Raises:
        Unusable: the server does not answer a plain question.
    """
    session = Session(server, parser, found)
    found.format = parser.format.name
    await _reports(session)
    await _tokens(session)
    if parser.has_reasoning:
        session.switches = True
        session.switches = (await session.answer(session.request(max_tokens=8, **session.thinking(False)))).ok
    await _ways(session)
    session.starts = {thinks: await session.start(thinks=thinks) for thinks in (False, True)}
    if found.way:
        found.continues = await _continues(session)
    return session


async def _ways(session: Session) -> None:
    """Find the ways to force a text; one that is refused with tools only, if no other writes more than a prefix."""
    found = session.found
    for way in WAYS:
        problem = await _try(session, way, TOOLS[:1])
        if not problem:
            found.way = way
            break
        found.refused[way] = problem
    if found.way in ("", "prefix"):
        for way, problem in found.refused.items():
            if problem.startswith("HTTP ") and way != "prefix" and not await _try(session, way, ()):
                found.way_without_tools = way
                break


async def _continues(session: Session) -> str:
    """Return the way to make the model continue a message: the prompt that the server shows ends with it."""
    for way in CONTINUED:
        session.found.continues = way
        prompt = (await session.start(prefix=_WORDS)).prompt
        if prompt is not None and prompt.rstrip().endswith(_WORDS):
            return way
    return ""


async def _reports(session: Session) -> None:
    """Ask a plain question, with and without the fields for reports."""
    found = session.found
    plain = session.request(max_tokens=8)
    try:
        await session.chat(plain)
    except (Refused, Malformed, NoAnswer) as error:
        raise Unusable(f"{session.server.url} does not answer a plain question: {error}") from None
    for name, fields in (("token_ids", {}), ("reports_raw", {}), ("logprobs", {"logprobs": True})):
        if name != "logprobs":
            setattr(found, name, True)
        try:
            seen = await session.chat({**plain, **fields})
        except (Refused, Malformed, NoAnswer):
            setattr(found, name, False)
        else:
            has = {"token_ids": seen.token_ids is not None, "reports_raw": seen.raw is not None}
            setattr(found, name, has.get(name, True))


async def _tokens(session: Session) -> None:
    """Find the ids of the Format's special tokens."""
    end = session.ending
    for text in dict.fromkeys((*session.parser.format.special_tokens, end)):
        ids = await _encoded(session, text) if text else None
        if ids is None:
            continue
        session.found.tokenizes = True
        if len(ids) == 1:
            session.tokens[text] = ids[0]
    session.end = session.tokens.get(end)


async def _encoded(session: Session, text: str) -> list[int] | None:
    body = {
        "model": session.found.model,
        "prompt": text,
        "add_special_tokens": False,
        "content": text,
        "add_special": False,
        "parse_special": True,
    }
    answer = await session.server.post("/tokenize", body, root=True)
    ids = answer.value.get("tokens") if answer.ok and isinstance(answer.value, dict) else None
    return ids if isinstance(ids, list) and all(isinstance(one, int) for one in ids) else None


async def _try(session: Session, way: str, tools: Sequence[Any]) -> str:
    """Force words. Return the problem; empty if they came back as content."""
    try:
        seen = await session.chat(session.forcing(_WORDS, tools, Start(), way))
    except (Refused, Malformed, NoAnswer) as error:
        return str(error)
    texts = (seen.message.content.strip(), seen.message.reasoning.strip())
    return "" if _WORDS in texts else f"has no effect: {''.join(texts)[:40]!r} came"
