"""A peer for tests of the benchmark harness: it can read plain text, fails on calls and is wrong about reasoning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


class Candidate:
    def __init__(self, stream: dict[str, Any], kind: str, right: bool) -> None:
        self.name = "plain"
        self.kind = kind
        self._texts = [text for text, _ in stream["deltas"]]
        self._right = right

    def prepare(self) -> Callable[[Callable[[Any], object] | None], object]:
        def run(take: Callable[[Any], object] | None) -> None:
            for text in self._texts:
                if "tool_call" in text:
                    raise ValueError("no calls here")
                if take is not None:
                    take(text)

        return run

    def message(self, results: list[str]) -> dict[str, Any]:
        return {"reasoning": "", "content": "".join(results) if self._right else "wrong", "calls": []}


def version() -> dict[str, str]:
    return {"name": "fake", "version": "1.0"}


def candidates(stream: dict[str, Any]) -> Iterator[Candidate]:
    if stream["way"] != "whole":
        yield Candidate(stream, "fake", right=False)
        yield Candidate(stream, "fake", right=True)
        yield Candidate(stream, "fake, second", right=True)
