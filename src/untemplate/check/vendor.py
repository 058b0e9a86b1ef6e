"""Profiles of vendors: what their own verifiers of hosted models measure.

``kimi``: schema accuracy, and agreement of the decision to call with a reference, as MoonshotAI/K2-Vendor-Verifier
defines them (2025-11). The reference is the expectation of each question here, where the verifier has recorded answers
of Moonshot's own API; so the similarity is a rough one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Final

from ..validation import Validator
from .cases import TOOLS
from .model import Result
from .session import Session
from .statistics import share

__all__ = ["checks"]

_SIMILAR: Final = 0.73
"""Least similarity (F1) that the verifier accepts from kimi-k2-thinking."""
_QUESTIONS: Final = (
    ("What is the weather in Rome right now?", True),
    ("What time is it?", True),
    ("Write the text 'hello' to the file a.txt.", True),
    ("Which weather do I have to expect in Oslo for the next 3 days?", True),
    ("What is two plus two?", False),
    ("Say hello in French.", False),
)
"""Questions, and whether they need a tool."""


def checks(vendor: str, repeat: int) -> Iterator[tuple[str, Callable[[Session], Awaitable[list[Result]]]]]:
    """Yield the checks of a profile."""
    if vendor == "kimi":
        yield "vendor/kimi", partial(_kimi, repeat=repeat)


async def _kimi(session: Session, *, repeat: int) -> list[Result]:
    accuracy = Result(id="vendor/kimi/schema accuracy", verdict="pass")
    similarity = Result(id="vendor/kimi/trigger similarity", verdict="pass")
    await session.judged(accuracy, _measure(session, accuracy, similarity, repeat))
    if accuracy.verdict == "cannot" or not similarity.counts:
        similarity.verdict, similarity.reason = "cannot", accuracy.reason
    return [accuracy, similarity]


async def _measure(session: Session, accuracy: Result, similarity: Result, repeat: int) -> None:
    validator = Validator(list(TOOLS))
    reasons: dict[str, int] = {}
    hits = wrong = missed = successful = 0
    for number in range(max(repeat, len(_QUESTIONS))):
        question, needs = _QUESTIONS[number % len(_QUESTIONS)]
        body = session.request(question, tools=list(TOOLS), max_tokens=1000, temperature=1.0, seed=number)
        message = (await session.chat(body)).message
        reasons[message.finish_reason] = reasons.get(message.finish_reason, 0) + 1
        called = message.finish_reason == "tool_calls"
        hits, wrong, missed = hits + (called and needs), wrong + (called and not needs), missed + (needs and not called)
        right = called and all(not validator.check(call.name, call.arguments) for call in message.calls)
        successful += right and bool(message.calls)
    total = reasons.get("tool_calls", 0)
    accuracy.counts = {
        "finish_stop": reasons.get("stop", 0),
        "finish_tool_calls": total,
        "finish_others": sum(reasons.values()) - total - reasons.get("stop", 0),
        "successful_tool_call_count": successful,
        "schema_validation_error_count": total - successful,
        "schema_accuracy": share(successful, total),
    }
    if successful < total:
        accuracy.verdict, accuracy.reason = "fail", f"{total - successful} of {total} answers with calls do not fit"
    if not total:
        accuracy.verdict, accuracy.reason = "cannot", "no output has calls"
    score = 2 * hits / (2 * hits + wrong + missed) if hits else 0.0
    similarity.counts = {"tool_call_f1": round(score, 3), "hits": hits, "wrong": wrong, "missed": missed}
    if score < _SIMILAR:
        similarity.verdict, similarity.reason = "soft", f"F1 is {score:.2f}, under the verifier's {_SIMILAR}"
