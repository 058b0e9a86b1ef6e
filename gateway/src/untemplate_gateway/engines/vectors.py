"""Embeddings and scores of documents, and how servers write them: OpenAI's embeddings, Jina's ``/v1/rerank``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from .base import Embeddings, EngineError, Scores
from .chunks import counted

_T = TypeVar("_T")


class _Usage(msgspec.Struct):
    prompt_tokens: Any = None
    total_tokens: Any = None


class _Result(msgspec.Struct):
    index: int
    embedding: list[float] | None = None
    relevance_score: float | None = None
    score: float | None = None
    """SGLang's name of it."""


class _Answer(msgspec.Struct):
    data: list[_Result] = []
    results: list[_Result] = []
    usage: _Usage | None = None


def embeddings_of(found: Any, count: int) -> Embeddings:
    """Return the embeddings of so many inputs, in their order.

    Raises:
        EngineError: the answer has another shape, or not one embedding for each input.
    """
    return Embeddings(*_read(found, count, lambda one: one.embedding))


def scores_of(found: Any, count: int) -> Scores:
    """Return the scores of so many documents, in their order. Raises as `embeddings_of`."""
    found = {"results": found} if isinstance(found, list) else found  # SGLang sends the list alone
    return Scores(*_read(found, count, lambda one: one.score if one.relevance_score is None else one.relevance_score))


def _read(found: Any, count: int, value: Callable[[_Result], _T | None]) -> tuple[list[_T], int]:
    """Return the values of an answer by their index, and its tokens."""
    try:
        answer = msgspec.convert(found, _Answer)
    except msgspec.ValidationError as error:
        problem = str(error)
    else:
        values = {one.index: kept for one in (*answer.data, *answer.results) if (kept := value(one)) is not None}
        usage = answer.usage or _Usage()
        if sorted(values) == list(range(count)):
            return [values[i] for i in range(count)], counted(usage.prompt_tokens) or counted(usage.total_tokens)
        problem = f"{len(values)} results for {count} inputs"
    raise EngineError("the engine's answer is not understood", code="bad_upstream", detail=problem)
