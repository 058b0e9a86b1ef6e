"""Embeddings and scores of documents, and how servers write them: OpenAI's embeddings, Jina's ``/v1/rerank``."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from .base import Embeddings, EngineError, Scores
from .chunks import counted

_T = TypeVar("_T")


class _Usage(msgspec.Struct):
    prompt_tokens: Any = None
    total_tokens: Any = None

    @property
    def tokens(self) -> int:
        return counted(self.prompt_tokens) or counted(self.total_tokens)


class _Embedding(msgspec.Struct):
    embedding: list[float]
    index: int


class _Embeddings(msgspec.Struct):
    data: list[_Embedding]
    usage: _Usage | None = None


class _Score(msgspec.Struct):
    index: int
    relevance_score: float | None = None
    score: float | None = None
    """SGLang's name of it."""


class _Scores(msgspec.Struct):
    results: list[_Score]
    usage: _Usage | None = None


def embeddings_of(found: Any, count: int) -> Embeddings:
    """Return the embeddings of so many inputs, in their order.

    Raises:
        EngineError: the answer has another shape, or not one embedding for each input.
    """
    read = _read(found, _Embeddings)
    vectors = {one.index: one.embedding for one in read.data}
    return Embeddings(_ordered(vectors, count), (read.usage or _Usage()).tokens)


def scores_of(found: Any, count: int) -> Scores:
    """Return the scores of so many documents, in their order. Raises as `embeddings_of`."""
    read = _read({"results": found} if isinstance(found, list) else found, _Scores)  # SGLang sends the list alone
    scores = {one.index: one.score if one.relevance_score is None else one.relevance_score for one in read.results}
    kept = {index: score for index, score in scores.items() if score is not None}
    return Scores(_ordered(kept, count), (read.usage or _Usage()).tokens)


def _read(found: Any, kind: type[_T]) -> _T:
    try:
        return msgspec.convert(found, kind)
    except msgspec.ValidationError as error:
        raise _odd(str(error)) from None


def _ordered(found: dict[int, _T], count: int) -> list[_T]:
    if sorted(found) != list(range(count)):
        raise _odd(f"{len(found)} results for {count} inputs")
    return [found[index] for index in range(count)]


def _odd(detail: str) -> EngineError:
    return EngineError("the engine's answer is not understood", code="bad_upstream", detail=detail)
