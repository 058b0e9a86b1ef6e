"""Run streams through the response parser of transformers.

A checkpoint may contain a `response_template` that describes how to read its output. The templates below follow those
in transformers' documentation; formats without one are not measured.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import transformers
from transformers.utils.chat_parsing import ResponseParser, parse_response
from transformers.utils.chat_parsing.response_templates import load_response_template

THINK = {"open_pattern": r"<think>\n?", "close_pattern": r"\n?</think>\s*", "content": "text"}
CONTENT_IS_CALL = {"type": "function", "function": "{content}"}
NAME_AND_CONTENT = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
JSON_CALLS = {
    "open_pattern": r"<tool_call>\s*",
    "close_pattern": r"\s*</tool_call>\s*",
    "repeats": True,
    "content": "json",
    "transform": CONTENT_IS_CALL,
}
TEXT = {"content": "text", "content_args": {"strip": True}}
CHATML: dict[str, Any] = {"version": 1, "defaults": {"role": "assistant"}, "start_anchor": "<|im_start|>assistant\n"}

TEMPLATES: dict[str, dict[str, Any]] = {
    "hermes": {**CHATML, "fields": {"reasoning_content": THINK, "tool_calls": JSON_CALLS, "content": TEXT}},
    "granite4": {**CHATML, "fields": {"tool_calls": JSON_CALLS, "content": TEXT}},
    "qwen3_coder": {
        **CHATML,
        "fields": {
            "reasoning_content": THINK,
            "tool_calls": {
                "open_pattern": r"<tool_call>\s*<function=(?P<name>[^\n>]+)>",
                "close_pattern": r"</function>\s*</tool_call>\s*",
                "repeats": True,
                "content": "xml-inline",
                "content_args": {
                    "tag_pattern": r"<parameter=(?P<key>\w+)>\s*(?P<value>.*?)\s*</parameter>",
                },
                "transform": NAME_AND_CONTENT,
            },
            "content": TEXT,
        },
    },
    "glm45": {
        **CHATML,
        "fields": {
            "reasoning_content": THINK,
            "tool_calls": {
                "open_pattern": r"<tool_call>(?P<name>\S+)\n?",
                "close_pattern": r"</tool_call>\s*",
                "repeats": True,
                "content": "xml-inline",
                "content_args": {
                    "tag_pattern": r"<arg_key>(?P<key>[^<]+)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>"
                },
                "transform": NAME_AND_CONTENT,
            },
            "content": TEXT,
        },
    },
    "cohere_command3": {
        **CHATML,
        "fields": {
            "content": {"open": "<|START_RESPONSE|>", "close": "<|END_RESPONSE|>", "content": "text"},
            "reasoning_content": {"open": "<|START_THINKING|>", "close": "<|END_THINKING|>", "content": "text"},
            "tool_calls": {
                "open": "<|START_ACTION|>",
                "close": "<|END_ACTION|>",
                "content": "json",
                "transform_each": True,
                "transform": {
                    "type": "function",
                    "id": "{tool_call_id}",
                    "function": {"name": "{tool_name}", "arguments": "{parameters}"},
                },
            },
        },
    },
}


class Candidate:
    """One stream with transformers' parser for its template."""

    kind = "transformers"
    name = "response_template"

    def __init__(self, stream: dict[str, Any]) -> None:
        self._template = load_response_template(TEMPLATES[stream["format"]])
        self._tools = stream["tools"]
        self._whole = stream["way"] == "whole"
        self._texts = [text for text, _ in stream["deltas"]]

    def prepare(self) -> Callable[[Callable[[Any], object] | None], object]:
        texts, template, tools = self._texts, self._template, self._tools
        if self._whole:

            def parse(take: Callable[[Any], object] | None) -> None:
                parsed = parse_response(texts[0], template, prefix="", tools=tools)
                if take is not None:
                    take(parsed)

            return parse
        parser = ResponseParser(template, prefix="", tools=tools)

        def run(take: Callable[[Any], object] | None) -> None:
            feed = parser.feed
            for text in texts:
                feed(text)
            parsed, _ = parser.finalize()
            if take is not None:
                take(parsed)

        return run

    def message(self, results: list[Any]) -> dict[str, Any]:
        parsed = results[0]
        calls = [call["function"] for call in parsed.get("tool_calls") or ()]
        found = [(call["name"], json.dumps(call["arguments"])) for call in calls]
        return {"reasoning": parsed.get("reasoning_content"), "content": parsed.get("content"), "calls": found}


def version() -> dict[str, str]:
    return {"name": "transformers", "version": transformers.__version__}


def candidates(stream: dict[str, Any]) -> Iterator[Candidate]:
    """Yield the one configuration for a stream. transformers' parser gets text only."""
    if stream["format"] in TEMPLATES and not stream["deltas"][0][1]:
        yield Candidate(stream)
