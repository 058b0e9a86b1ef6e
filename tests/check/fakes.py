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


def fake(
    kind: str, *, whole: Fault | None = None, delta: Fault | None = None, shows: bool = False, refuses: bool = False
) -> Callable[..., bytes]:
    """Return the answers of a server of this kind.

    Args:
        whole: applied to each whole message.
        delta: applied to each delta of a stream.
        shows: True to show prompts and token ids, to continue messages and to have Completions, as vLLM does.
        refuses: True to refuse grammars in requests with tools, as llama.cpp does.
    """
    owner = next((word for name, word in OWNERS.items() if kind.startswith(name)), "nvidia")

    def answer(path: str, request: dict[str, Any]) -> bytes:
        if path == "/v1/models":
            return http(200, {"data": [{"id": "m", "owned_by": owner}]})
        if path == "/perf_metrics" and kind == "tensorrt-llm":
            return http(200, [])
        if shows and path in SHOWN:
            return SHOWN[path](request)
        if path != "/v1/chat/completions":
            return http(404, {"error": {"message": "not found"}})
        if not isinstance(request.get("messages"), list):
            return http(400, {"error": {"message": "messages: a list is required"}})
        if refuses and request.get("tools") and "grammar" in request:
            return http(400, {"error": {"message": "Cannot use custom grammar constraints with tools."}})
        raw = FORCED[kind](request)
        return _answered(SAID if raw is None else raw, request, whole, delta, shows)

    return answer


# -- Prompts and token ids ----------------------------------------------------------------------------------------

SAID = "Nothing was asked for here."
SPECIAL = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_start|>", "<|im_end|>")
FIRST = 0x110000
"""Id of the first special token; all other tokens are characters."""


def encode(text: str) -> list[int]:
    parts = re.split(f"({'|'.join(map(re.escape, SPECIAL))})", text)
    return [token for part in parts for token in ([FIRST + SPECIAL.index(part)] if part in SPECIAL else map(ord, part))]


def decode(ids: list[int]) -> str:
    return "".join(SPECIAL[token - FIRST] if token >= FIRST else chr(token) for token in ids)


def prompt_of(request: dict[str, Any]) -> str:
    turns = [f"<|im_start|>{message['role']}\n{message['content']}<|im_end|>\n" for message in request["messages"]]
    if request.get("continue_final_message"):
        return "".join(turns).removesuffix("<|im_end|>\n")
    return "".join(turns) + "<|im_start|>assistant\n"


def _tokenized(request: dict[str, Any]) -> bytes:
    return http(200, {"tokens": encode(prompt_of(request) if "messages" in request else request["prompt"])})


def _completed(request: dict[str, Any]) -> bytes:
    if not isinstance(request.get("prompt"), list):
        return http(400, {"error": {"message": "prompt: a list of tokens is required"}})
    ids = [*encode(SAID), *encode("<|im_end|>")]
    return http(200, {"choices": [{"index": 0, "text": SAID, "finish_reason": "stop", "token_ids": ids}]})


SHOWN: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "/tokenize": _tokenized,
    "/detokenize": lambda request: http(200, {"prompt": decode(request["tokens"])}),
    "/v1/completions": _completed,
}


def _answered(raw: str, request: dict[str, Any], whole: Fault | None, delta: Fault | None, shows: bool) -> bytes:
    tools = request.get("tools") or []
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    ids, reason, prompt = [*encode(raw), *encode("<|im_end|>")], "stop", prompt_of(request) if shows else None
    if shows and len(ids) > request.get("max_tokens", len(ids)):
        ids, reason = ids[: request["max_tokens"]], "length"
        raw = decode(ids)
    if not request.get("stream"):
        parsed = PARSER.parse(raw, tools=tools, prompt=prompt, finish_reason=reason)
        message = {**parsed.message(reasoning_field="reasoning_content"), "finish_reason": parsed.finish_reason}
        message = whole(message) if whole is not None else message
        choice = {"index": 0, "message": message, "finish_reason": message.pop("finish_reason")}
        if request.get("return_token_ids") and shows:
            choice["token_ids"] = ids
        if request.get("logprobs"):
            choice["logprobs"] = {"content": [{"token": "?", "bytes": [byte]} for byte in raw.encode()]}
        return http(200, {"choices": [choice], "usage": usage})
    stream = PARSER.stream(tools=tools, collect=True, prompt=prompt)
    found = [part for i in range(0, len(raw), 5) for part in stream.feed(raw[i : i + 5])]
    found += stream.finish(reason)
    deltas = [part.model_dump(exclude_none=True) for part in found]
    deltas = [delta(part) if delta is not None else part for part in deltas]
    chunks = [{"choices": [{"index": 0, "delta": part, "finish_reason": None}]} for part in deltas]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": stream.result().finish_reason}]}
    if request.get("return_token_ids") and shows:
        end["choices"][0]["token_ids"] = ids
    return events(*chunks, end, {"choices": [], "usage": usage})
