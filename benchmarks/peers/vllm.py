"""Run streams through vLLM's parsers, as its chat endpoint does.

A server has one parser class, composed from a tool parser and a reasoning parser; a request has one parser object. For
models that can switch reasoning, the prompt and `chat_template_kwargs` decide. The variants below cover the settings
that a chat template would give; the first variant that parses a stream correctly is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import vllm
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser import ParserManager
from vllm.tokenizers.hf import get_cached_tokenizer

from . import assembly

WORD = r" ?[A-Za-z]{1,6}|\d{1,3}| +(?= )|\s|[^\sA-Za-z\d]"

PARSERS: dict[str, tuple[str, *tuple[str, ...]]] = {
    "hermes": ("hermes", "qwen3"),
    "qwen3_coder": ("qwen3_coder", "qwen3"),
    "deepseek_v3": ("deepseek_v3", "deepseek_r1", "deepseek_v3"),
    "deepseek_v31": ("deepseek_v31", "deepseek_v3", "deepseek_r1"),
    "deepseek_v32": ("deepseek_v32", "deepseek_v3", "deepseek_r1"),
    "glm45": ("glm45", "glm45"),
    "kimi_k2": ("kimi_k2", "kimi_k2"),
    "gpt-oss": ("openai", "openai_gptoss"),
    "gemma4": ("gemma4", "gemma4"),
    "mistral": ("mistral", "mistral"),
    "minimax_m2": ("minimax_m2", "minimax_m2"),
    "cohere_command3": ("cohere_command3", "cohere_command3"),
    "seed_oss": ("seed_oss", "seed_oss"),
    "step3p5": ("step3p5", "step3p5"),
    "nemotron_v3": ("qwen3_coder", "nemotron_v3"),
    "hunyuan_a13b": ("hunyuan_a13b", "hunyuan_a13b"),
    "granite4": ("granite4",),
    "llama3_json": ("llama3_json",),
    "pythonic": ("pythonic",),
    "phi4_mini_json": ("phi4_mini_json",),
    "internlm": ("internlm",),
    "jamba": ("jamba",),
    "xlam": ("xlam",),
}
"""Formats → the names of their tool parser and their reasoning parsers."""

MARKERS = {"seed_oss": ("<seed:think>", "</seed:think>")}
"""Reasoning markers other than `<think>`, for prompts that open or close reasoning."""

NATIVE = frozenset({"cohere_command3"})
"""Formats whose parser is not Python."""


def tokenizer(stream: dict[str, Any]) -> Any:
    """Return a real tokenizer that encodes to the ids of the stream."""
    special = stream["special"]
    words = Tokenizer(models.WordLevel(stream["vocabulary"], unk_token=special[0]))
    words.pre_tokenizer = pre_tokenizers.Split(Regex(WORD), "isolated")
    words.decoder = decoders.Fuse()
    # As in most checkpoints, each is one token, but only the end of a turn has the attribute `special`.
    words.add_tokens([AddedToken(token, normalized=False, special=token == special[0]) for token in special])
    made = PreTrainedTokenizerFast(tokenizer_object=words, eos_token=special[0], unk_token=special[0])
    return get_cached_tokenizer(made)


class Candidate:
    """One stream with one configuration of vLLM's parser."""

    def __init__(self, stream: dict[str, Any], made: Any, reasoning: str | None, prompt: str, thinking: bool) -> None:
        self._stream = stream
        self._tokenizer = made
        tool = PARSERS[stream["format"]][0]
        self._class = ParserManager.get_parser(
            tool_parser_name=tool,
            reasoning_parser_name=reasoning,
            enable_auto_tools=True,
            is_harmony=stream["format"] == "gpt-oss",
            tokenizer=made,
        )
        self._settings = {"enable_thinking": thinking, "thinking": thinking}
        self._request = ChatCompletionRequest(
            model="m",
            messages=[{"role": "user", "content": "Hello"}],
            tools=stream["tools"],
            tool_choice="auto",
            stream=True,
            chat_template_kwargs=self._settings,
        )
        self._prompt = made.encode(prompt, add_special_tokens=False) if prompt else []
        self._whole = stream["way"].startswith("whole")
        self._deltas = [(text, ids) for text, ids in stream["deltas"]]
        self.name = f"{tool}, {reasoning}" if reasoning else tool
        engine = "engine" if getattr(self._open(), "_engine_based", True) else "older"
        self.kind = "vLLM, native" if stream["format"] in NATIVE else f"vLLM, {engine}"

    def _open(self) -> Any:
        assert self._class is not None
        return self._class(self._tokenizer, self._request.tools, chat_template_kwargs=self._settings)

    def prepare(self) -> Callable[[Callable[[Any], object] | None], object]:
        parser, request, prompt = self._open(), self._request, self._prompt
        if self._whole:
            text, ids = self._deltas[0]

            def parse(take: Callable[[Any], object] | None) -> None:
                parser.set_prompt_token_ids(prompt)
                parsed = parser.parse(text, request, enable_auto_tools=True, model_output_token_ids=ids)
                if take is not None:
                    take(parsed)

            return parse
        deltas = self._deltas

        def run(take: Callable[[Any], object] | None) -> None:
            parse_delta = parser.parse_delta
            for text, ids in deltas:
                delta = parse_delta(text, ids, request, prompt, finished=False)
                if take is not None:
                    take(delta)
            delta = parse_delta("", [], request, prompt, finished=True)
            if take is not None:
                take(delta)

        return run

    def message(self, results: list[Any]) -> dict[str, Any]:
        if self._whole:
            reasoning, content, calls = results[0]
            found = [(call.name, call.arguments) for call in calls or ()]
            return {"reasoning": reasoning, "content": content, "calls": found}
        return assembly.message(
            (
                delta.reasoning,
                delta.content,
                [
                    (call.index, call.function.name, call.function.arguments)
                    for call in delta.tool_calls
                    if call.function
                ],
            )
            for delta in results
            if delta is not None
        )


def version() -> dict[str, str]:
    return {"name": "vLLM", "version": vllm.__version__}


def candidates(stream: dict[str, Any]) -> Iterator[Candidate]:
    """Yield the configurations for a stream, the likeliest first. vLLM's parsers always get token ids."""
    if stream["format"] not in PARSERS or not stream["deltas"][0][1]:
        return
    if stream["format"] == "gpt-oss" and stream["way"].startswith("whole"):
        return  # vLLM reads whole gpt-oss outputs with a library that downloads its vocabulary on first use
    made = tokenizer(stream)
    thinks = bool(stream["expected"]["reasoning"])
    opening, closing = MARKERS.get(stream["format"], ("<think>", "</think>"))
    marked = opening in stream["vocabulary"]
    prompts = ("", f"{opening}\n\n{closing}\n\n") if marked and not thinks else ("",)
    for reasoning in PARSERS[stream["format"]][1:] or (None,):
        for prompt, thinking in product(prompts, (thinks, not thinks)):
            yield Candidate(stream, made, reasoning, prompt, thinking)
