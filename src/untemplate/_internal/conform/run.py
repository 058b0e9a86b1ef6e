"""Give the vectors to a parser, and compare its answers with the messages that are expected."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any, Final

from ..jsontext.equality import equal_values
from .parsers import Parser

__all__ = ["Outcome", "Result", "run", "with_tools"]

_MOST_PIECES: Final = 12
"""Pieces of one output: enough to cut most markers, few enough that a run stays short."""


class Outcome(StrEnum):
    """Judgement of one answer."""

    RIGHT = "right"
    SPACE = "space"
    """Right but for white space around reasoning and content."""
    WRONG = "wrong"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to one vector, judged: the worst of its whole and its cut readings.

    Attributes:
        id, format, level, rules: of the vector.
        outcome: right, space, wrong or unsupported.
        pieces: the pieces that gave the answer.
        problem: the difference, or the parser's reason; empty if it is right.
        reports: True if the codes of its diagnostics are those of the vector; None if the parser gives none.
    """

    id: str
    format: str
    level: str
    outcome: Outcome
    pieces: tuple[str, ...] = ()
    problem: str = ""
    rules: tuple[str, ...] = ()
    reports: bool | None = None


_WORST_FIRST: Final = (Outcome.WRONG, Outcome.UNSUPPORTED, Outcome.SPACE, Outcome.RIGHT)


def with_tools(vectors: Iterable[Mapping[str, Any]], tools: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return vectors with their lists of tools in place of the names of these lists.

    Args:
        vectors: as in ``vectors.jsonl`` of untemplate-vectors.
        tools: as in ``tools.json``: the lists by name.
    """
    return [{**one, "tools": tools[one["tools"]] if isinstance(one["tools"], str) else one["tools"]} for one in vectors]


def run(vectors: Sequence[Mapping[str, Any]], parser: Parser, *, splits: int = 10) -> Iterator[Result]:
    """Yield a result for each vector, in order.

    Args:
        vectors: as in ``vectors.jsonl`` of untemplate-vectors, with their tools.
        parser: returns an answer for each request, in order.
        splits: number of random ways to cut each output, besides reading it whole.

    Raises:
        CommandError: the program of the parser has ended, or has answered with something else than the protocol allows.
    """
    cuts = [list(_cuts(vector, splits)) for vector in vectors]
    answers = parser(_request(vector, parts) for vector, ways in zip(vectors, cuts, strict=True) for parts in ways)
    try:
        for vector, ways in zip(vectors, cuts, strict=True):
            given = [(next(answers), _texts(parts)) for parts in ways]
            judged = [(*_judge(vector, answer), pieces) for answer, pieces in given]
            outcome, problem, pieces = min(judged, key=lambda one: (_WORST_FIRST.index(one[0]), len(one[2])))
            rules = tuple(vector.get("rules", ()))
            reports = _reports(vector, [answer for answer, _ in given])
            yield Result(vector["id"], vector["format"], vector["level"], outcome, pieces, problem, rules, reports)
    finally:
        answers.close()  # ends a program


Parts = tuple[str, ...] | tuple[tuple[tuple[str, bool], ...], ...]
"""The pieces of an output, as texts or as the tokens of each."""


def _texts(parts: Parts) -> tuple[str, ...]:
    """Return the text of each piece."""
    return tuple(part if isinstance(part, str) else "".join(text for text, _ in part) for part in parts)


def _request(vector: Mapping[str, Any], parts: Parts) -> dict[str, Any]:
    context = {key: vector[key] for key in ("id", "format", "tools", "prompt", "finish_reason")}
    tokens = {"tokens": list(parts)} if "tokens" in vector else {}
    return {**context, "pieces": list(_texts(parts)), **tokens}


def _cuts(vector: Mapping[str, Any], splits: int) -> Iterator[Parts]:
    """Yield the ways to cut an output: whole, then at random places. Tokens are not cut."""
    whole = tuple((text, special) for text, special in vector["tokens"]) if "tokens" in vector else vector["output"]
    yield (whole,)
    chance = random.Random(vector["id"])  # the same cuts in every run
    for _ in range(splits if len(whole) > 1 else 0):
        count = chance.randint(1, min(_MOST_PIECES, len(whole) - 1))
        places = [0, *sorted(chance.sample(range(1, len(whole)), count)), len(whole)]
        yield tuple(whole[start:end] for start, end in pairwise(places))


def _judge(vector: Mapping[str, Any], answer: Mapping[str, Any]) -> tuple[Outcome, str]:
    if "unsupported" in answer:
        return Outcome.UNSUPPORTED, str(answer["unsupported"])
    expect, message = vector["expect"], answer["message"]
    difference = next(_differences(expect, message), "")
    if difference:
        return Outcome.WRONG, difference
    for part in ("reasoning", "content"):
        if (message.get(part) or "") != expect[part]:
            return Outcome.SPACE, f"{part}: {message.get(part)!r}, expected {expect[part]!r}"
    return Outcome.RIGHT, ""


def _reports(vector: Mapping[str, Any], answers: Iterable[Mapping[str, Any]]) -> bool | None:
    """Return whether all answers have the diagnostics of the vector; None if the vector or an answer lists none, as
    one that was imported does."""
    expected = vector.get("diagnostics")
    found = [answer.get("diagnostics") for answer in answers]
    return None if expected is None or None in found else all(set(codes or ()) == set(expected) for codes in found)


def _differences(expect: Mapping[str, Any], message: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is different, outer white space aside."""
    for part in ("reasoning", "content"):
        if (message.get(part) or "").strip() != expect[part].strip():
            yield f"{part}: {message.get(part)!r}, expected {expect[part]!r}"
    calls, wanted = message.get("tool_calls") or [], expect["tool_calls"]
    if [call.get("name") for call in calls] != [call["name"] for call in wanted]:
        yield f"calls: {[call.get('name') for call in calls]}, expected {[call['name'] for call in wanted]}"
        return
    for call, one in zip(calls, wanted, strict=True):
        if not _equal(call.get("arguments"), one["arguments"]):
            yield f"arguments of {one['name']}: {call.get('arguments')!r}, expected {one['arguments']!r}"
        if "status" in call and call["status"] != one["status"]:
            yield f"status of {one['name']}: {call['status']}, expected {one['status']}"


def _equal(given: Any, expected: str) -> bool:
    """True if two arguments are the same JSON, or the same text."""
    if given == expected:
        return True
    try:
        return isinstance(given, str) and equal_values(json.loads(given), json.loads(expected))
    except (ValueError, RecursionError):
        return False
