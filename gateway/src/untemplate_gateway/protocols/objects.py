"""Objects that the responses of several APIs share: OpenAI's errors, usage and log probabilities, and the reports that
a request can ask for."""

from __future__ import annotations

from typing import Any

from untemplate.messages import Item, ParsedOutput

from ..errors import ApiError
from ..generation import Ended, Generation, TokenLogprob, Usage


def error_object(error: ApiError) -> dict[str, Any]:
    """Return OpenAI's ``error``."""
    return {"error": {"message": error.message, "type": error.type, "param": error.param, "code": error.code}}


def usage_object(usage: Usage) -> dict[str, Any]:
    """Return OpenAI's ``usage``."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def token_bytes(text: str) -> list[int]:
    """Return the bytes of a token, for ``bytes`` in log probabilities. Surrogates stand for bytes of a part of a
    character."""
    try:
        return list(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return list(text.encode("utf-8", "surrogatepass"))


def logprob_object(token: TokenLogprob) -> dict[str, Any]:
    """Return the log probability of one token."""
    return {
        "token": token.token,
        "logprob": token.logprob or 0.0,
        "bytes": token_bytes(token.token),
        "top_logprobs": [{"token": text, "logprob": value, "bytes": token_bytes(text)} for text, value in token.top],
    }


def merged_items(parsed: ParsedOutput) -> list[Item]:
    """Return the parts of a message with neighbours of one kind merged, as a stream sends them."""
    items: list[Item] = []
    for item in parsed.items:
        if item.call is None and items and items[-1].type == item.type:
            items[-1] = Item(type=item.type, text=(items[-1].text or "") + (item.text or ""))
        else:
            items.append(item)
    return items


def reports_of(request: Generation, ended: Ended) -> dict[str, Any]:
    """Return the member ``untemplate`` of a response, with the reports on a choice that the request asks for; no member
    if it asks for none."""
    if not (request.diagnostics or request.raw):
        return {}
    reports: dict[str, Any] = {}
    if request.diagnostics:
        reports["diagnostics"] = [diagnostic.model_dump() for diagnostic in ended.parsed.diagnostics]
        reports["calls"] = call_reports(ended.parsed)
        if request.notes.texts:
            reports["notes"] = request.notes.texts
    if request.raw:
        reports["raw"] = ended.raw
    return {"untemplate": reports}


def call_reports(parsed: ParsedOutput) -> list[dict[str, Any]]:
    """Return the status of each tool call, and why one must not run."""
    return [
        {
            "index": index,
            "name": call.function.name,
            "status": call.status,
            "model_id": call.model_id,
            "repairs": call.repairs,
            **({"reason": call.reason} if call.reason else {}),
        }
        for index, call in enumerate(parsed.tool_calls)
    ]
