"""Measure untemplate's plugin in vLLM, per delta, next to vLLM's own parsers and to the cost of vLLM's types alone.

`make bench-peers` runs it in vLLM's environment. Streams of one token a delta, as vLLM's chat endpoint parses them:
text, and one call with a long argument. *Types* is the time that vLLM's classes take to make the same deltas. Prints
the thread's CPU time in microseconds, the least of 15 turns. Making the parsers does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser import ParserManager

from benchmarks.streams import FAMILIES, make
from untemplate.integrations.vllm import register
from untemplate.integrations.vllm._parsers import protocol

from .vllm import PARSERS, tokenizer

FORMATS: Final = ("hermes", "qwen3_coder", "deepseek_v31", "glm45", "kimi_k2", "minimax_m2", "gemma4", "seed_oss")
SHAPES: Final = {"plain": "text", "long argument": "call"}
TURNS: Final = 15


def least(prepare: Callable[[], Callable[[], object]]) -> float:
    """Return the CPU time of what is prepared, in seconds."""
    times = []
    for _ in range(TURNS):
        run = prepare()
        begun = time.thread_time()
        run()
        times.append(time.thread_time() - begun)
    return min(times)


Run = Callable[[], list[Any]]


def parsing(cls: Any, made: Any, request: Any, deltas: Sequence[tuple[str, list[int]]]) -> Callable[[], Run]:
    def prepare() -> Run:
        parser = cls(made, request.tools, chat_template_kwargs={})

        def run() -> list[Any]:
            found = [parser.parse_delta(text, ids, request, [], finished=False) for text, ids in deltas]
            return [*found, parser.parse_delta("", [], request, [], finished=True)]

        return run

    return prepare


Fields = tuple[dict[str, Any], list[tuple[dict[str, Any], dict[str, Any]]]]
"""The fields of a delta, and those of each of its calls and its function."""


def fields(delta: Any) -> Fields:
    dumped = delta.model_dump(exclude_unset=True)
    calls = [(call, call.pop("function")) for call in dumped.pop("tool_calls", ())]
    return dumped, calls


def remake(all_fields: Sequence[Fields]) -> None:
    """Make deltas with vLLM's classes."""
    for texts, calls in all_fields:
        if calls:
            made = [
                protocol.DeltaToolCall(**call, function=protocol.DeltaFunctionCall(**function))
                for call, function in calls
            ]
            protocol.DeltaMessage(**texts, tool_calls=made)
        else:
            protocol.DeltaMessage(**texts)


def main() -> None:
    register()
    print("| format | stream | deltas | untemplate | types | more than types | vLLM |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for name in FORMATS:
        tool, *others = PARSERS[name]
        reasoning = others[0] if others else None
        own = ParserManager.get_parser(
            tool_parser_name=f"untemplate:{name}",
            reasoning_parser_name=f"untemplate:{reasoning}" if reasoning else None,
            enable_auto_tools=True,
        )
        theirs = ParserManager.get_parser(
            tool_parser_name=tool, reasoning_parser_name=reasoning, enable_auto_tools=True
        )
        for shape, label in SHAPES.items():
            (stream,) = make(name, FAMILIES[name], shape, size=4_096, ways=("ids",))
            data = stream.to_json()
            made = tokenizer(data)
            deltas = [(text, ids) for text, ids in data["deltas"]]
            request = ChatCompletionRequest(
                model="m", messages=[{"role": "user", "content": "Hello"}], tools=data["tools"], stream=True
            )
            parse = parsing(own, made, request, deltas)
            make_again = partial(remake, [fields(delta) for delta in parse()() if delta is not None])
            ways = (parse, partial(partial, make_again), parsing(theirs, made, request, deltas))
            costs = map(least, ways)
            ours, types, other = (cost / len(deltas) * 1e6 for cost in costs)
            print(
                f"| {name} | {label} | {len(deltas)} | {ours:.1f} | {types:.1f} | {ours - types:.1f} | {other:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
