"""vLLM's parsers, as its chat endpoint uses them. They get token ids, as in the engine."""

from __future__ import annotations

from itertools import product
from typing import Any

from benchmarks.peers import vllm as peer

from .program import Unsupported, name_of, serve, stream_of

SETTINGS = tuple(product((True, False), (None, 0, 1)))
"""A request that asks for thinking or not; no reasoning parser, or the first or the second that fits."""


def answer(request: dict[str, Any], form: dict[str, Any], setting: tuple[bool, int | None]) -> dict[str, Any]:
    name = name_of(request)
    if name not in peer.PARSERS:
        raise Unsupported("it has no parser for this format")
    if name == "gpt-oss":
        raise Unsupported("its vocabulary is fetched from the web")
    stream = stream_of(request, form, ids=True)
    thinking, number = setting
    parsers = peer.PARSERS[name][1:]
    reasons = "reasoning" in form or "channels" in form
    reasoning = parsers[min(number, len(parsers) - 1)] if reasons and parsers and number is not None else None
    candidate = peer.Candidate(stream, peer.tokenizer(stream), reasoning, "", thinking)
    results: list[Any] = []
    candidate.prepare()(results.append)
    return candidate.message(results)


if __name__ == "__main__":
    serve(SETTINGS, answer)
