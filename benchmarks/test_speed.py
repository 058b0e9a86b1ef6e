"""Speed of the parser on generated outputs: per delta, for whole outputs, and for a new stream.

* A delta is four characters, about the size of a token.
* Quote ``us_per_delta`` from the extra info: the median round divided by its deltas.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from untemplate import OutputParser

DELTA = 4
WORDS = " ".join(f"word{i % 97}" for i in range(60_000))
CODE = "def area(shape):\n    if shape['kind'] == \"circle\":\n        return 3.14 * shape['r'] ** 2\n" * 4_000


def text(deltas: int, source: str = WORDS) -> str:
    return source[: deltas * DELTA]


def hermes(argument: str) -> str:
    return f'<tool_call>\n{{"name": "write", "arguments": {{"text": {json.dumps(argument)}}}}}\n</tool_call>'


def tagged(argument: str) -> str:
    return "<tool_call>\n<function=write>\n<parameter=text>\n" + argument + "\n</parameter>\n</function>\n</tool_call>"


def gemma(argument: str) -> str:
    return f'<|tool_call>call:write{{text:<|"|>{argument}<|"|>}}<tool_call|>'


def pythonic(argument: str) -> str:
    return f"[write(text={argument!r})]"


STREAMS: dict[str, tuple[str, str | None, Callable[[str], str], str]] = {
    "plain": ("hermes", "qwen3", str, WORDS),
    "plain code": ("hermes", "qwen3", str, CODE),
    "reasoning": ("hermes", "qwen3", "<think>{}</think>ok".format, WORDS),
    "JSON argument": ("hermes", "qwen3", hermes, WORDS),
    "JSON argument, code": ("hermes", "qwen3", hermes, CODE),
    "tagged argument": ("qwen3_coder", "qwen3", tagged, WORDS),
    "tagged argument, code": ("qwen3_coder", "qwen3", tagged, CODE),
    "Gemma 4 argument": ("gemma4", None, gemma, WORDS),
    "Python argument": ("pythonic", None, pythonic, WORDS),
}


@pytest.mark.parametrize("deltas", [256, 4_096, 65_536])
@pytest.mark.parametrize("kind", STREAMS)
def test_per_delta(benchmark: Any, kind: str, deltas: int) -> None:
    """Measure one stream from beginning to end; the time per delta must not grow with the number of deltas."""
    name, reasoning, wrap, source = STREAMS[kind]
    parser = OutputParser.named(name, reasoning=reasoning)
    raw = wrap(text(deltas, source))
    pieces = [raw[i : i + DELTA] for i in range(0, len(raw), DELTA)]

    def run() -> None:
        stream = parser.stream()
        feed = stream.feed
        for piece in pieces:
            feed(piece)
        stream.finish()

    benchmark.group = f"per delta, {kind}"
    benchmark.pedantic(run, rounds=5, iterations=max(1, 4_096 // deltas), warmup_rounds=1)
    if benchmark.stats is not None:
        benchmark.extra_info["us_per_delta"] = round(benchmark.stats.stats.median / len(pieces) * 1e6, 3)


def many_calls(size: int) -> str:
    call = hermes("x" * 900) + "\n"
    return call * (size // len(call))


WHOLE = {
    "plain": ("hermes", WORDS[:65_536]),
    "one call": ("hermes", hermes(WORDS[:65_000])),
    "one call, code": ("hermes", hermes(CODE[:60_000])),
    "one tagged call": ("qwen3_coder", tagged(CODE[:65_000])),
    "64 calls": ("hermes", many_calls(65_536)),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_whole(benchmark: Any, kind: str) -> None:
    """Measure 64 KB in one piece."""
    name, raw = WHOLE[kind]
    parser = OutputParser.named(name)
    benchmark.group = "whole, 64 KB"
    benchmark(parser.parse, raw)


PROMPT = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n<think>\n"


@pytest.mark.parametrize("prompt", [None, PROMPT], ids=["no prompt", "prompt"])
def test_new_stream(benchmark: Any, prompt: str | None) -> None:
    """Measure the cost of a request before its first delta."""
    parser = OutputParser.named("hermes", reasoning="qwen3")
    benchmark.group = "new stream"
    benchmark(lambda: parser.stream(prompt=prompt))
