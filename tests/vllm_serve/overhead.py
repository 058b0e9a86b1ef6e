"""Measure untemplate's plugin against vLLM's own parsers, in one process, in turns: `make test-vllm`.

usage: python -m tests.vllm_serve.overhead

Each stream has 1,000 deltas or more, of four characters each: text only, or one call with a long argument. Prints how
many times as long vLLM's parser takes, and how long a parser for one request takes to make with 150,000 tokens. Exits
with 1 if vLLM's parser is faster anywhere, by more than the noise of measuring, or if making one takes a millisecond.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).with_name("plugins")))

import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from untemplate_outcomes import tokenizer  # type: ignore[import-not-found]
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.parser_manager import ParserManager
from vllm.tokenizers.hf import get_cached_tokenizer

from tests.vllm_serve.answers import TOOLS
from untemplate import OutputParser
from untemplate.integrations.vllm import register

FAMILIES: Final = {
    # family: tool parser, reasoning parser; the names are vLLM's
    "Qwen3": ("hermes", "qwen3"),
    "Qwen3 Coder": ("qwen3_coder", "qwen3"),
    "DeepSeek V3.2": ("deepseek_v32", "deepseek_v3"),
    "GLM 4.5": ("glm45", "glm45"),
    "Kimi K2": ("kimi_k2", "kimi_k2"),
    "MiniMax M2": ("minimax_m2", "minimax_m2"),
    "Gemma 4": ("gemma4", "gemma4"),
    "Seed OSS": ("seed_oss", "seed_oss"),
    "Granite 4": ("granite4", None),
    "Llama 3": ("llama3_json", None),
}
WORDS: Final = "The weather in both cities will be fine, with some clouds in the evening. " * 70
ROUNDS: Final = 5
NOISE: Final = 0.9
"""A ratio down to this one counts as equal."""


def pieces(text: str, special: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Divide a text into pieces of four characters, special tokens whole; return each with its ids."""
    marks = "|".join(map(re.escape, sorted(special, key=len, reverse=True))) or "(?!)"
    return [
        (piece, tokenizer().encode(piece, add_special_tokens=False))
        for piece in re.findall(f"{marks}|.{{1,4}}?(?={marks})|.{{1,4}}", text, re.DOTALL)
    ]


def seconds(made: Any, stream: Sequence[tuple[str, list[int]]], request: Any) -> float:
    """Return the processor time of one stream."""
    parser = made(tokenizer(), request.tools)
    start = time.process_time()
    for text, ids in stream:
        parser.parse_delta(text, ids, request, [], finished=False)
    parser.parse_delta("", [], request, [], finished=True)
    return time.process_time() - start


def large_tokenizer() -> Any:
    """Return a tokenizer with 150,000 tokens and the special tokens of the catalogue."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {token: at for at, token in enumerate([*letters, *(f"w{number}" for number in range(150_000))])}
    made = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    made.add_tokens([AddedToken(token, normalized=False) for token in tokenizer().get_added_vocab()])
    return get_cached_tokenizer(transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>"))


def making(cls: Any, vocabulary: Any, request: Any) -> float:
    """Return the processor time of a parser for one request, told its prompt and given one token; the median."""
    times = []
    for _ in range(50):
        start = time.process_time()
        cls(vocabulary, request.tools).parse_delta("x", [5], request, [1, 2, 3], finished=False)
        times.append(time.process_time() - start)
    return median(times)


def main() -> int:
    register()
    request = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "Hi"}], tools=TOOLS, stream=True)
    arguments = json.dumps({"city": WORDS})
    call = {"id": "callid000", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
    slower = 0
    large = large_tokenizer()
    for family, (tool, reasoning) in FAMILIES.items():
        fmt = OutputParser.named(tool, reasoning=reasoning)
        own = ParserManager.get_parser(
            f"untemplate:{tool}", f"untemplate:{reasoning}" if reasoning else None, enable_auto_tools=True
        )
        theirs = ParserManager.get_parser(tool, reasoning, enable_auto_tools=True)
        for kind, message in (("text", {"content": WORDS}), ("call", {"tool_calls": [call]})):
            stream = pieces(fmt.render({"role": "assistant", **message}), fmt.format.special_tokens)
            times = [(seconds(own, stream, request), seconds(theirs, stream, request)) for _ in range(ROUNDS)]
            ours, other = (min(column) for column in zip(*times, strict=True))
            slower += other < NOISE * ours
            print(f"{family}, {kind}, {len(stream)} deltas: vLLM takes {other / ours:.1f} times as long", flush=True)
        made = making(own, large, request)
        slower += made >= 0.001
        print(f"{family}, a parser for one request: {1000 * made:.2f} ms", flush=True)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
