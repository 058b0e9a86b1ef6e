"""mlx-lm's state machine and tool parsers, as its server uses them. They get text."""

from __future__ import annotations

from typing import Any

from benchmarks.peers import mlx_lm as peer

from .program import Unsupported, name_of, serve, stream_of

SETTINGS = ("normal", "reasoning")
"""The state in which the output begins; the server reads it from the prompt."""


def answer(request: dict[str, Any], form: dict[str, Any], setting: str) -> dict[str, Any]:
    if name_of(request) not in peer.PARSERS:
        raise Unsupported("it has no parser for this format")
    stream = stream_of(request, form, ids=False)
    made = peer.tokenizer(stream)
    candidate = peer.Candidate(stream, made, setting if made.has_thinking else "normal")
    results: list[Any] = []
    candidate.prepare()(results.append)
    return candidate.message(results)


if __name__ == "__main__":
    serve(SETTINGS, answer)
