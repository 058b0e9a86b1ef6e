"""untemplate as an engine of canitoolcall, in the form of the modules in its ``adapters/``.

canitoolcall is a public suite of recorded model outputs, with token ids, and the messages that they mean. Its worker
loads this module by ``tests.conformance.adapter:UntemplateAdapter``; `make test-canitoolcall` runs all of it.

Other adapters load the tokenizer of the model from the hub to convert token ids to text. This one needs no network. It
infers the ids of special tokens by comparing the ids of all fixtures with their texts, and divides the text between
them evenly among the other ids. So special tokens are exact, and ordinary tokens have about the right length.

``UNTEMPLATE_POLICY`` may hold a policy as JSON, such as ``{"malformed_arguments": "content"}``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

from canitoolcall.adapters.base import Adapter, ReplayInput, Support
from canitoolcall.fixtures import Fixture, load_families, load_fixtures
from canitoolcall.results import ParsedToolCall, ParseResult, StreamAccumulator

import untemplate
from untemplate import OutputParser, Policy

NAMES: dict[str, tuple[str, str | None]] = {
    "deepseek-ai/DeepSeek-V3-0324": ("deepseek_v3", "deepseek_r1"),
    "deepseek-ai/DeepSeek-V3.1": ("deepseek_v31", "deepseek_v3"),
    "deepseek-ai/DeepSeek-V3.2": ("deepseek_v32", "deepseek_v32"),
    "deepseek-ai/DeepSeek-V4-Flash": ("deepseek_v4", "deepseek_v4"),
    "deepseek-ai/DeepSeek-V4.1-Flash": ("deepseek_v41", "deepseek_v41"),
    "google/gemma-4-31B-it": ("gemma4", "gemma4"),
    "zai-org/GLM-4.5": ("glm45", "glm45"),
    "zai-org/GLM-4.7": ("glm47", "glm47"),
    "zai-org/GLM-5.3": ("glm47", "glm47"),
    "openai/gpt-oss-20b": ("gpt-oss", "gpt-oss"),
    "moonshotai/Kimi-K2-Instruct-0905": ("kimi_k2", None),
    "moonshotai/Kimi-K2.6": ("kimi_k2", "kimi_k2"),
    "moonshotai/Kimi-K3": ("kimi_k3", "kimi_k3"),
    "meta-llama/Llama-3.3-70B-Instruct": ("llama3_json", None),
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": ("llama4_pythonic", None),
    "mistralai/Devstral-Small-2507": ("mistral", None),
    "mistralai/Magistral-Small-2506": ("mistral", "magistral"),
    "mistralai/Magistral-Small-2509": ("mistral", "mistral"),
    "mistralai/Ministral-3-14B-Instruct-2512": ("mistral", None),
    "mistralai/Ministral-3-14B-Reasoning-2512": ("mistral", "mistral"),
    "mistralai/Mistral-7B-Instruct-v0.3": ("mistral_v3", None),
    "mistralai/Mistral-Small-3.2-24B-Instruct-2506": ("mistral", None),
    "Qwen/Qwen3-0.6B": ("hermes", "qwen3"),
    "Qwen/Qwen3-4B-Instruct-2507": ("hermes", None),
    "Qwen/Qwen3-4B-Thinking-2507": ("hermes", "qwen3-thinking"),
    "Qwen/Qwen3-Coder-30B-A3B-Instruct": ("qwen3_coder", None),
    "Qwen/Qwen3-Coder-Next": ("qwen3_coder", None),
    "Qwen/Qwen3.5-9B": ("qwen3_coder", "qwen3"),
    "Qwen/Qwen3.8-27B": ("qwen3_coder", "qwen3"),
}
"""Model → names of tool calls and reasoning in the catalogue, as a server would be started with."""


class Vocabulary:
    """The special tokens of one tokenizer, as far as the fixtures reveal their ids."""

    def __init__(self, fixtures: Sequence[Fixture], texts: Collection[str]) -> None:
        self.ids: dict[str, int] = {}
        used = sorted({text for text in texts if any(text in f.raw_output for f in fixtures)}, key=len, reverse=True)
        if not used:
            return
        pattern = re.compile("|".join(map(re.escape, used)))
        found = [(pattern.findall(f.raw_output), list(f.output_token_ids or ())) for f in fixtures]
        every = {i for _, ids in found for i in ids}
        candidates = {
            text: sorted(
                (i for i in every if all(ids.count(i) == texts.count(text) for texts, ids in found)),
                key=lambda i: self._distance(fixtures, text, i),
            )
            for text in used
        }
        self._assign(
            sorted((text for text in used if candidates[text]), key=lambda t: len(candidates[t])), candidates, found
        )

    def _assign(
        self, texts: Sequence[str], candidates: Mapping[str, list[int]], found: Sequence[tuple[list[str], list[int]]]
    ) -> bool:
        """Choose an id for each text such that texts and ids occur in the same order. A text may have none."""
        if not texts:
            return True
        for token in candidates[texts[0]]:
            if token not in self.ids.values():
                self.ids[texts[0]] = token
                if self._in_order(found) and self._assign(texts[1:], candidates, found):
                    return True
                del self.ids[texts[0]]
        return self._assign(texts[1:], candidates, found)

    def _in_order(self, found: Sequence[tuple[list[str], list[int]]]) -> bool:
        texts_of = {i: text for text, i in self.ids.items()}
        return all(
            [t for t in texts if t in self.ids] == [texts_of[i] for i in ids if i in texts_of] for texts, ids in found
        )

    def _distance(self, fixtures: Sequence[Fixture], text: str, token: int) -> float:
        """Compare where a text occurs with where an id occurs, both as a share of the whole."""
        total = 0.0
        for fixture in fixtures:
            ids = list(fixture.output_token_ids or ())
            there = [at / len(ids) for at, i in enumerate(ids) if i == token]
            text_at = [m.start() / len(fixture.raw_output) for m in re.finditer(re.escape(text), fixture.raw_output)]
            total += sum(abs(a - b) for a, b in zip(there, text_at, strict=False))
        return total

    def get_vocab(self) -> dict[str, int]:
        return dict(self.ids)

    def pieces(self, text: str, ids: Sequence[int]) -> list[str]:
        """Divide a text among its ids."""
        special = {i: token for token, i in self.ids.items()}
        pieces: list[str] = []
        at = start = 0
        for n, token in enumerate([*ids, None]):
            literal = special.get(token) if token is not None else ""
            if literal is None:
                continue
            end = text.find(literal, at) if literal else len(text)
            if end < 0:
                continue
            between = text[at:end]
            pieces += _evenly(between, n - start)
            if literal:
                pieces.append(literal if n > start else between + literal)
            at, start = end + len(literal), n + 1
        return pieces


def _evenly(text: str, parts: int) -> Iterator[str]:
    """Divide a text into so many pieces."""
    for n in range(parts):
        yield text[len(text) * n // parts : len(text) * (n + 1) // parts]


@cache
def vocabulary(repo: str) -> Vocabulary:
    fixtures = [f for f in load_fixtures() if f.tokenizer is not None and f.tokenizer.repo == repo]
    texts: set[str] = set()
    for family in load_families().values():
        if any(f.family == family.slug for f in fixtures):
            texts |= set(family.markers) | {t for model in family.reference_models for t in model.stop_tokens}
    for model in {f.reference_model for f in fixtures}:
        tools, reasoning = NAMES[model]
        texts |= set(OutputParser.named(tools, reasoning=reasoning).format.special_tokens)
    return Vocabulary(fixtures, texts)


class UntemplateAdapter(Adapter):
    """One stream per replay, fed with the text and the ids of each group."""

    name: ClassVar[str] = "untemplate"
    pinned_version: ClassVar[str] = untemplate.__version__

    def version(self) -> str:
        return untemplate.__version__

    def supports(self, family: str, model: str) -> Support:
        return Support(model in NAMES, None if model in NAMES else f"{model} has no entry in NAMES")

    def parser_config(self, raw: ReplayInput) -> dict[str, Any]:
        tools, reasoning = NAMES[raw.model]
        return {"tool_parser": tools, "reasoning_parser": reasoning, "policy": _policy()}

    def units(self, raw: ReplayInput) -> list[int]:
        return list(raw.token_ids or ())

    def special_token_ids(self, raw: ReplayInput) -> Collection[int]:
        return set(_vocabulary(raw).ids.values())

    def parse(self, raw: ReplayInput, tools: Sequence[Mapping[str, Any]]) -> ParseResult:
        found = self._parser(raw).parse(
            raw.text,
            finish_reason="length" if raw.truncated else "stop",
            token_ids=self.units(raw),
            tools=list(tools),
            prompt=raw.generation_prompt,
        )
        calls = tuple(ParsedToolCall(call.function.name, call.function.arguments) for call in found.tool_calls)
        return ParseResult(found.content, found.reasoning_content, calls)

    def parse_stream(
        self, raw: ReplayInput, chunks: Sequence[Sequence[int]], tools: Sequence[Mapping[str, Any]]
    ) -> ParseResult:
        pieces = _vocabulary(raw).pieces(raw.text, self.units(raw))
        assert "".join(pieces) == raw.text, raw.fixture_id
        stream = self._parser(raw).stream(tools=list(tools), prompt=raw.generation_prompt)
        total = StreamAccumulator()
        at = 0
        for ids in chunks:
            for delta in stream.feed("".join(pieces[at : at + len(ids)]), ids):
                total.add_openai_delta(delta.model_dump(exclude_none=True))
            at += len(ids)
        for delta in stream.finish("length" if raw.truncated else "stop"):
            total.add_openai_delta(delta.model_dump(exclude_none=True))
        return total.result()

    def _parser(self, raw: ReplayInput) -> OutputParser:
        tools, reasoning = NAMES[raw.model]
        policy = Policy.from_mapping(_policy())
        return OutputParser.named(tools, reasoning=reasoning, tokenizer=_vocabulary(raw), policy=policy)


def _vocabulary(raw: ReplayInput) -> Vocabulary:
    assert raw.tokenizer is not None
    return vocabulary(raw.tokenizer.repo)


def _policy() -> dict[str, Any]:
    return dict(json.loads(os.environ.get("UNTEMPLATE_POLICY", "{}")))
