"""Configs and tokenizers for the tests of ``untemplate.vllm_api``, written as a user would write them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from untemplate.messages import DeltaMessage
from untemplate.vllm_api import EventType, ParserEngineConfig, ParserState, Transition

CONTENT = ParserState.CONTENT
REASONING = ParserState.REASONING
PREAMBLE = ParserState.TOOL_PREAMBLE
NAME = ParserState.TOOL_NAME
ARGS = ParserState.TOOL_ARGS
BETWEEN = ParserState.TOOL_BETWEEN

THINKING = {
    (CONTENT, "THINK_START"): Transition(REASONING, (EventType.REASONING_START,)),
    (REASONING, "THINK_START"): Transition(REASONING),
    (REASONING, "THINK_END"): Transition(CONTENT, (EventType.REASONING_END,)),
    (CONTENT, "THINK_END"): Transition(CONTENT),
}
THINK = {"THINK_START": "<think>", "THINK_END": "</think>"}
CALL = {"TOOL_START": "<tool_call>", "TOOL_END": "</tool_call>"}


def hermes(**changes: Any) -> ParserEngineConfig:
    """``<think>…</think>`` and ``<tool_call>{"name": …, "arguments": …}</tool_call>``."""
    settings: dict[str, Any] = {
        "name": "hermes",
        "terminals": {**THINK, **CALL},
        "token_id_terminals": {**THINK, **CALL},
        "transitions": {
            **THINKING,
            (CONTENT, "TOOL_START"): Transition(ARGS, (EventType.TOOL_CALL_START,)),
            (REASONING, "TOOL_START"): Transition(ARGS, (EventType.REASONING_END, EventType.TOOL_CALL_START)),
            (ARGS, "TOOL_END"): Transition(CONTENT, (EventType.TOOL_CALL_END,)),
        },
    }
    return ParserEngineConfig(**{**settings, **changes})


def qwen_coder(**changes: Any) -> ParserEngineConfig:
    """``<tool_call><function=name><parameter=key>value</parameter></function></tool_call>``, with a converter."""
    settings: dict[str, Any] = {
        "name": "qwen_coder",
        "terminals": {
            **THINK,
            **CALL,
            "FUNCTION": "<function=",
            "FUNCTION_END": "</function>",
            "PARAMETER": "<parameter=",
            "PARAMETER_END": "</parameter>",
            "CLOSE": ">",
        },
        "token_id_terminals": {**THINK, **CALL},
        "transitions": {
            **THINKING,
            (CONTENT, "TOOL_START"): Transition(PREAMBLE, (EventType.TOOL_CALL_START,)),
            (CONTENT, "FUNCTION"): Transition(NAME, (EventType.TOOL_CALL_START,)),
            (REASONING, "TOOL_START"): Transition(PREAMBLE, (EventType.REASONING_END, EventType.TOOL_CALL_START)),
            (PREAMBLE, "FUNCTION"): Transition(NAME),
            (PREAMBLE, "TOOL_END"): Transition(CONTENT, (EventType.TOOL_CALL_END,)),
            (NAME, "CLOSE"): Transition(ARGS),
            (NAME, "FUNCTION_END"): Transition(BETWEEN, (EventType.TOOL_CALL_END,)),
            (ARGS, "PARAMETER"): Transition(ARGS, (EventType.ARG_VALUE_CHUNK,)),
            (ARGS, "PARAMETER_END"): Transition(ARGS, (EventType.ARG_VALUE_CHUNK,)),
            (ARGS, "FUNCTION_END"): Transition(BETWEEN, (EventType.TOOL_CALL_END,)),
            (BETWEEN, "TOOL_END"): Transition(CONTENT),
            (BETWEEN, "TOOL_START"): Transition(PREAMBLE, (EventType.TOOL_CALL_START,)),
            (BETWEEN, "FUNCTION"): Transition(NAME, (EventType.TOOL_CALL_START,)),
        },
        "arg_converter": qwen_arguments,
        "tool_args_json": False,
    }
    return ParserEngineConfig(**{**settings, **changes})


_PARAMETER = re.compile(r"<parameter=([^>]*)>(.*?)(?:</parameter>|\Z)", re.DOTALL)


def qwen_arguments(raw: str, partial: bool) -> str:
    """Tagged arguments as a JSON object of strings; one newline a side is markup."""
    found = {}
    for key, value in _PARAMETER.findall(raw):
        value = value.removeprefix("\n")
        found[key] = value.removesuffix("\n")
    return json.dumps(found, ensure_ascii=False)


def tool(name: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": properties}},
    }


class Tokenizer:
    """Each of ``special`` is one token, every other character too."""

    def __init__(self, *special: str) -> None:
        self.all_special_tokens = list(special)
        self._vocab = {chr(code): code for code in range(32, 127)} | {"\n": 10}
        self._vocab.update({text: 1000 + i for i, text in enumerate(special)})

    def get_vocab(self) -> dict[str, int]:
        return dict(self._vocab)

    def pieces(self, text: str) -> list[tuple[str, list[int]]]:
        """Text with its ids, special tokens whole."""
        pattern = "|".join(map(re.escape, sorted(self.all_special_tokens, key=len, reverse=True))) or "(?!)"
        cut = re.findall(f"{pattern}|.", text, re.DOTALL)
        return [(piece, [self._vocab[piece]]) for piece in cut]

    def ids(self, text: str) -> list[int]:
        return [token for _, ids in self.pieces(text) for token in ids]


def cuts(text: str) -> Iterator[list[str]]:
    """Every way in two, one character at a time, and two at a time."""
    for at in range(len(text) + 1):
        yield [text[:at], text[at:]]
    yield list(text)
    yield [text[i : i + 2] for i in range(0, len(text), 2)]


def message(deltas: Sequence[DeltaMessage | None]) -> dict[str, Any]:
    """What deltas add up to, as a client adds them: ``{"reasoning", "content", "calls": [(id, name, arguments)]}``."""
    reasoning = content = ""
    calls: list[list[str]] = []
    for delta in deltas:
        if delta is None:
            continue
        assert delta.reasoning or delta.content or delta.tool_calls, "an empty delta"
        reasoning += delta.reasoning or ""
        content += delta.content or ""
        for piece in delta.tool_calls or ():
            function = piece.function
            assert function is not None
            if piece.index == len(calls):
                assert piece.type == "function", "a call without a beginning"
                calls.append([piece.id or "", function.name or "", ""])
                assert all(calls[-1][:2]), "a call without a beginning"
            else:
                assert (piece.id, piece.type, function.name) == (None, None, None), "a call begun twice"
            calls[piece.index][2] += function.arguments or ""
    return {"reasoning": reasoning, "content": content, "calls": [tuple(call) for call in calls]}
