"""Measure untemplate's parsers in SGLang next to SGLang's own, per delta, as its Responses endpoint calls both.

`make bench-peers` runs it in SGLang's environment. Streams of four characters a delta: text, one call with a long
argument, one short call. Reasoning parser first, then tool parser. Prints the thread's CPU time in microseconds, the
least of 15 turns, and how many times as long SGLang's own take.
"""

from __future__ import annotations

import time
from typing import Any, Final

from sglang.srt.entrypoints.openai.protocol import ChatCompletionRequest, Tool
from sglang.srt.function_call.function_call_parser import FunctionCallParser
from sglang.srt.parser.reasoning_parser import ReasoningParser

import untemplate.integrations.sglang
from untemplate import OutputParser

assert untemplate.integrations.sglang

FAMILIES: Final = {
    # Format: SGLang's tool parser, SGLang's reasoning parser
    "hermes": ("qwen25", "qwen3"),
    "qwen3_coder": ("qwen3_coder", "qwen3"),
    "deepseek_v31": ("deepseekv31", "deepseek-v3"),
    "glm45": ("glm45", "glm45"),
    "kimi_k2": ("kimi_k2", "kimi_k2"),
    "minimax_m2": ("minimax-m2", "qwen3"),
}
PROSE: Final = "The quick brown fox jumps over the lazy dog and runs into the wood. " * 40
SCHEMA: Final = {"type": "object", "properties": {"city": {"type": "string"}, "text": {"type": "string"}}}
TOOLS: Final = [Tool(type="function", function={"name": "get_weather", "parameters": SCHEMA})]
REQUEST: Final = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "Hi"}], tools=TOOLS)
TURNS: Final = 15


def called(name: str, arguments: dict[str, Any]) -> str:
    call = {"id": "functions.get_weather:0", "type": "function"}
    call["function"] = {"name": "get_weather", "arguments": arguments}  # type: ignore[assignment]
    return OutputParser.named(name).render({"role": "assistant", "content": "", "tool_calls": [call]})


def cost(tool_parser: str, reasoning_parser: str, pieces: list[str]) -> float:
    """Return the microseconds of a delta. Making the parsers does not count."""
    best = float("inf")
    for _ in range(TURNS):
        reasoning = ReasoningParser(reasoning_parser, request=REQUEST, tool_call_parser_active=True)
        calls = FunctionCallParser(TOOLS, tool_parser)
        begun = time.thread_time()
        for piece in pieces:
            _, rest = reasoning.parse_stream_chunk(piece)
            if rest:
                calls.parse_stream_chunk(rest)
        _, rest = reasoning.parse_stream_end()
        if rest:
            calls.parse_stream_chunk(rest)
        calls.parse_stream_end()
        best = min(best, time.thread_time() - begun)
    return best / len(pieces) * 1e6


def main() -> None:
    print("| format | stream | untemplate | SGLang | times as long |\n| --- | --- | ---: | ---: | ---: |")
    for name, theirs in FAMILIES.items():
        streams = {
            "text": PROSE,
            "long argument": called(name, {"text": PROSE}),
            "one call": called(name, {"city": "Paris"}),
        }
        for stream, text in streams.items():
            pieces = [text[at : at + 4] for at in range(0, len(text), 4)]
            own = cost(f"untemplate:{name}", f"untemplate:{name}", pieces)
            other = cost(*theirs, pieces)
            print(f"| {name} | {stream} | {own:.1f} | {other:.1f} | {other / own:.1f} |", flush=True)


if __name__ == "__main__":
    main()
