"""A fake server that can be forced in one way, parses with untemplate, and may have a fault."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from untemplate import OutputParser

from .hostile import events, http

PARSER = OutputParser.named("hermes+qwen3")
Fault = Callable[[dict[str, Any]], dict[str, Any]]
"""Changes a message (with its finish reason) or a delta of a stream."""

_UNESCAPED = {"n": "\n", "r": "\r"}


def _unescape(pattern: str) -> str:
    return re.sub(r"\\(.)", lambda found: _UNESCAPED.get(found[1], found[1]), pattern)


def _const(grammar: str) -> str:
    """Return the text of a grammar that is one literal."""
    quoted = grammar.removeprefix("root ::= ").strip()
    hexes = re.sub(r"\\x([0-9A-F]{2})", r"\\u00\1", quoted)
    return str(json.loads(hexes))


def _tag(found: dict[str, Any]) -> str | None:
    return found["format"]["value"] if found.get("type") == "structural_tag" else None


def _pattern(found: dict[str, Any]) -> str | None:
    return _unescape(found["regex"]) if found.get("type") == "regex" else None


FORCED: dict[str, Callable[[dict[str, Any]], str | None]] = {
    "vllm": lambda request: (request.get("structured_outputs") or {}).get("choice", [None])[0],
    "vllm before 0.11": lambda request: (request.get("guided_choice") or [None])[0],
    "sglang": lambda request: _tag(request.get("response_format") or {}),
    "sglang with outlines": lambda request: _unescape(request["regex"]) if "regex" in request else None,
    "sglang with ebnf": lambda request: _const(request["ebnf"]) if "ebnf" in request else None,
    "tensorrt-llm": lambda request: _pattern(request.get("response_format") or {}),
    "llama.cpp": lambda request: _const(request["grammar"]) if "grammar" in request else None,
    "ollama": lambda request: None,
}
"""Kind of server → the text that a request forces, as its documentation has it."""
OWNERS = {"vllm": "vllm", "sglang": "sglang", "llama.cpp": "llamacpp", "ollama": "library"}


def fake(kind: str, *, whole: Fault | None = None, delta: Fault | None = None) -> Callable[..., bytes]:
    """Return the answers of a server of this kind.

    Args:
        whole: applied to each whole message.
        delta: applied to each delta of a stream.
    """
    owner = next((word for name, word in OWNERS.items() if kind.startswith(name)), "nvidia")

    def answer(path: str, request: dict[str, Any]) -> bytes:
        if path == "/v1/models":
            return http(200, {"data": [{"id": "m", "owned_by": owner}]})
        if path == "/perf_metrics" and kind == "tensorrt-llm":
            return http(200, [])
        if path != "/v1/chat/completions":
            return http(404, {"error": {"message": "not found"}})
        if not isinstance(request.get("messages"), list):
            return http(400, {"error": {"message": "messages: a list is required"}})
        raw = FORCED[kind](request)
        return _answered("Nothing was asked for here." if raw is None else raw, request, whole, delta)

    return answer


def _answered(raw: str, request: dict[str, Any], whole: Fault | None, delta: Fault | None) -> bytes:
    tools = request.get("tools") or []
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    if not request.get("stream"):
        parsed = PARSER.parse(raw, tools=tools)
        message = {**parsed.message(reasoning_field="reasoning_content"), "finish_reason": parsed.finish_reason}
        message = whole(message) if whole is not None else message
        reason = message.pop("finish_reason")
        choice = {"index": 0, "message": message, "finish_reason": reason}
        if request.get("logprobs"):
            choice["logprobs"] = {"content": [{"token": "?", "bytes": [byte]} for byte in raw.encode()]}
        return http(200, {"choices": [choice], "usage": usage})
    stream = PARSER.stream(tools=tools, collect=True)
    found = [part for i in range(0, len(raw), 5) for part in stream.feed(raw[i : i + 5])]
    found += stream.finish("stop")
    deltas = [part.model_dump(exclude_none=True) for part in found]
    deltas = [delta(part) if delta is not None else part for part in deltas]
    chunks = [{"choices": [{"index": 0, "delta": part, "finish_reason": None}]} for part in deltas]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": stream.result().finish_reason}]}
    return events(*chunks, end, {"choices": [], "usage": usage})
