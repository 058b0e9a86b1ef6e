"""transformers' response parser, with templates after its documentation. It gets text."""

from __future__ import annotations

from typing import Any

from benchmarks.peers import transformers as peer

from .program import Unsupported, name_of, serve, stream_of

SETTINGS = (None,)


def answer(request: dict[str, Any], form: dict[str, Any], setting: None) -> dict[str, Any]:
    if name_of(request) not in peer.TEMPLATES:
        raise Unsupported("there is no template for this format")
    candidate = peer.Candidate(stream_of(request, form, ids=False))
    results: list[Any] = []
    candidate.prepare()(results.append)
    return candidate.message(results)


if __name__ == "__main__":
    serve(SETTINGS, answer)
