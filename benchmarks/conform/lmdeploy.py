"""LMDeploy's parsers, as its server uses them. Its package needs CUDA, so only the modules of parsers are loaded."""

from __future__ import annotations

import importlib.metadata
import logging
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from .program import Unsupported, name_of, serve, without_end

PARSERS = {
    "glm47": "glm47",
    "hermes": "qwen3",
    "hermes+qwen3": "qwen3",
    "kimi_k2": "kimi_k2",
    "llama3_json": "llama3",
    "qwen3_coder": "qwen3coder",
}
"""Formats → the names of their tool parser. One reasoning parser reads ``<think>`` for all of them."""
SETTINGS = ("default", None)


def load() -> tuple[Any, Any]:
    """Return LMDeploy's response parsers and its type of a request."""
    root = Path(str(importlib.metadata.distribution("lmdeploy").locate_file("")))
    for name in ("lmdeploy", "lmdeploy.serve", "lmdeploy.serve.openai"):
        package = ModuleType(name)
        package.__path__ = [str(root / name.replace(".", "/"))]
        sys.modules.setdefault(name, package)
    utils: Any = ModuleType("lmdeploy.utils")
    utils.get_logger = logging.getLogger
    sys.modules.setdefault("lmdeploy.utils", utils)

    from lmdeploy.serve.openai.protocol import ChatCompletionRequest
    from lmdeploy.serve.parsers import ResponseParserManager

    return ResponseParserManager, ChatCompletionRequest


def answer(request: dict[str, Any], form: dict[str, Any], setting: str | None) -> dict[str, Any]:
    name = name_of(request)
    if name not in PARSERS:
        raise Unsupported("it has no parser for this format")
    parsers, asked = load()
    reasons = setting if form.get("reasoning") else None
    cls = type("Fresh", (parsers.get("default"),), {})
    cls.set_parsers(reasons, PARSERS[name])
    messages = [{"role": "user", "content": "Hi"}]
    reader = cls(asked(model="m", messages=messages, tools=request["tools"] or None))
    text, calls, thought = reader.parse_complete("".join(without_end(request["pieces"], form)))
    named = [(call.function.name, call.function.arguments) for call in calls or ()]
    return {"reasoning": thought or "", "content": text or "", "calls": named}


if __name__ == "__main__":
    serve(SETTINGS, answer)
