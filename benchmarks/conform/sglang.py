"""SGLang's reasoning parsers and tool-call detectors, as its chat endpoint uses them. They get text."""

from __future__ import annotations

from typing import Any

from benchmarks.peers import sglang as peer

from .program import Unsupported, name_of, serve, stream_of

PARSERS = dict(peer.PARSERS)
SETTINGS = (None, False, True, "without")
"""Reasoning is not forced, off, or forced; or there is no reasoning parser."""


def answer(request: dict[str, Any], form: dict[str, Any], setting: bool | str | None) -> dict[str, Any]:
    name = name_of(request)
    if name not in peer.PARSERS:
        raise Unsupported("it has no parser for this format")
    tool, reasoning = PARSERS[name]
    without = setting == "without" or ("reasoning" not in form and "channels" not in form)
    peer.PARSERS[name] = (tool, None if without else reasoning)
    stream = stream_of(request, form, ids=False)
    if (
        name == "gpt-oss"
        and " to=" in "".join(request["pieces"]).rpartition("<|channel|>")[2].partition("<|message|>")[0]
    ):
        stream["deltas"].append(("<|call|>", ()))  # the server keeps the token that ends a call
        if stream["way"] == "whole":
            stream["deltas"] = [("".join(text for text, _ in stream["deltas"]), ())]
    candidate = peer.Candidate(stream, None if setting == "without" else setting)
    results: list[Any] = []
    candidate.prepare()(results.append)
    return candidate.message(results)


if __name__ == "__main__":
    serve(SETTINGS, answer)
