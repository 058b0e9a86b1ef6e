"""Run streams through SGLang's reasoning parsers and tool-call detectors, as its chat endpoint does.

SGLang's parsers get text only. The reasoning parser runs first, and passes its ordinary text to the tool parser.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import sglang
from sglang.srt.entrypoints.openai.protocol import Tool
from sglang.srt.function_call.function_call_parser import FunctionCallParser
from sglang.srt.parser.reasoning_parser import ReasoningParser

from . import assembly

PARSERS: dict[str, tuple[str, str | None]] = {
    "hermes": ("qwen25", "qwen3"),
    "qwen3_coder": ("qwen3_coder", "qwen3"),
    "deepseek_v3": ("deepseekv3", "deepseek-r1"),
    "deepseek_v31": ("deepseekv31", "deepseek-v3"),
    "deepseek_v32": ("deepseekv32", "deepseek-v3"),
    "glm45": ("glm45", "glm45"),
    "kimi_k2": ("kimi_k2", "kimi_k2"),
    "gpt-oss": ("gpt-oss", "gpt-oss"),
    "gemma4": ("gemma4", "gemma4"),
    "mistral": ("mistral", "mistral"),
    "minimax_m2": ("minimax-m2", "qwen3"),
    "step3p5": ("step3p5", "step3p5"),
    "nemotron_v3": ("qwen3_coder", "nemotron_3"),
    "hunyuan_a13b": ("hunyuan", "hunyuan"),
    "granite4": ("qwen25", None),
    "llama3_json": ("llama3", None),
    "pythonic": ("pythonic", None),
    "internlm": ("interns1", None),
}
"""Formats → the names of their tool parser and their reasoning parser."""


class Candidate:
    """One stream with one configuration of SGLang's two parsers."""

    kind = "SGLang"

    def __init__(self, stream: dict[str, Any], forced: bool | None) -> None:
        self._tool, self._reasoning = PARSERS[stream["format"]]
        self._forced = forced
        self._tools = [Tool(**tool) for tool in stream["tools"]]
        self._whole = stream["way"] == "whole"
        self._texts = [text for text, _ in stream["deltas"]]
        self.name = f"{self._tool}, {self._reasoning}" if self._reasoning else self._tool

    def prepare(self) -> Callable[[Callable[[Any], object] | None], object]:
        calls = FunctionCallParser(self._tools, self._tool)
        thoughts = None
        if self._reasoning is not None:
            thoughts = ReasoningParser(self._reasoning, not self._whole, self._forced, tool_call_parser_active=True)
        return self._run_whole(thoughts, calls) if self._whole else self._run_stream(thoughts, calls)

    def _run_whole(self, thoughts: Any, calls: Any) -> Callable[[Callable[[Any], object] | None], object]:
        text = self._texts[0]

        def run(take: Callable[[Any], object] | None) -> None:
            reasoning, rest = thoughts.parse_non_stream(text) if thoughts is not None else (None, text)
            found: list[Any] = []
            if rest and calls.has_tool_call(rest):
                rest, found = calls.parse_non_stream(rest)
            if take is not None:
                take((reasoning, rest, [(index, call.name, call.parameters) for index, call in enumerate(found)]))

        return run

    def _run_stream(self, thoughts: Any, calls: Any) -> Callable[[Callable[[Any], object] | None], object]:
        texts = self._texts

        def run(take: Callable[[Any], object] | None) -> None:
            think = thoughts.parse_stream_chunk if thoughts is not None else None
            call = calls.parse_stream_chunk
            for text in texts:
                reasoning, rest = think(text) if think is not None else (None, text)
                content, found = call(rest) if rest else (rest, ())
                if take is not None:
                    take((reasoning, content, [(one.tool_index, one.name, one.parameters) for one in found]))
            reasoning, rest = thoughts.parse_stream_end() if thoughts is not None else (None, "")
            content, found = call(rest) if rest else ("", [])
            more, last = calls.parse_stream_end()
            if take is not None:
                pieces = [(one.tool_index, one.name, one.parameters) for one in (*found, *last)]
                take((reasoning, (content or "") + (more or ""), pieces + _unstreamed(calls.detector)))

        return run

    def message(self, results: list[Any]) -> dict[str, Any]:
        return assembly.message(results)


def _unstreamed(detector: Any) -> list[tuple[int, None, str]]:
    """Return the arguments that a detector has parsed but not streamed. The chat endpoint sends them at the end."""
    parsed, streamed = detector.prev_tool_call_arr, detector.streamed_args_for_tool
    last = len(parsed) - 1
    if last < 0 or last >= len(streamed):
        return []
    arguments = parsed[last].get("arguments", {})
    expected = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    rest = expected[len(streamed[last]) :] if expected.startswith(streamed[last]) else ""
    return [(last, None, rest)] if rest else []


def version() -> dict[str, str]:
    return {"name": "SGLang", "version": sglang.__version__}


def candidates(stream: dict[str, Any]) -> Iterator[Candidate]:
    """Yield the configurations for a stream, the likeliest first."""
    if stream["format"] not in PARSERS or stream["deltas"][0][1]:
        return
    for forced in (None, False, True):
        yield Candidate(stream, forced)
