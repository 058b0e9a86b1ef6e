"""Profiles of vendors: what their own verifiers of hosted models measure.

``kimi``: schema accuracy, and agreement of the decision to call with a reference, as MoonshotAI/K2-Vendor-Verifier
defines them (2025-11). Its data set and its results can be given as files. Without them, a few questions of our own
are asked, and the reference is what each of them needs; then the similarity is a rough one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from .._internal.schemas.validation import Validator
from ..tools import ToolSet
from ._cases import TOOLS
from ._model import Message, Result
from ._session import ServerCheck, Session
from ._statistics import share

_SIMILAR: Final = {"thinking": 0.73, "": 0.8}
"""Part of a model's name → least similarity (F1) that the verifier accepts."""
_QUESTIONS: Final = (
    ("What is the weather in Rome right now?", True),
    ("What time is it?", True),
    ("Write the text 'hello' to the file a.txt.", True),
    ("Which weather do I have to expect in Oslo for the next 3 days?", True),
    ("What is two plus two?", False),
    ("Say hello in French.", False),
)
"""Questions, and whether they need a tool."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A request of a vendor's data set."""

    body: dict[str, Any]
    calls: bool | None = None
    """True if the vendor's own server answers with calls; ``None`` if that is not known."""


def read_samples(path: str, reference: str = "") -> tuple[Sample, ...]:
    """Read the data set of K2-Vendor-Verifier: JSON lines with a request of Chat Completions each.

    Args:
        path: the samples.
        reference: results of the vendor's own server, as the verifier writes them (``results.jsonl``), or empty.

    Raises:
        OSError: a file cannot be read.
        ValueError: a line is not what the verifier reads or writes; the message names file and line.
    """
    decided = {
        result.get("data_index"): result.get("finish_reason") == "tool_calls"
        for _, result in (_lines(reference) if reference else ())
        if result.get("status") == "success"
    }
    samples = []
    for number, body in _lines(path):
        if not isinstance(body.get("messages"), list):
            raise ValueError(f"{path}, line {number}: needs 'messages', a list")
        try:
            ToolSet(body.get("tools"))
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
        messages = [_without_input(message) for message in body["messages"]]
        samples.append(Sample(body={**body, "messages": messages}, calls=decided.get(number)))
    if not samples:
        raise ValueError(f"{path}: no samples in it")
    return tuple(samples)


def _lines(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(Path(path).read_bytes().splitlines(), 1):
        if line.strip():
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                raise ValueError(f"{path}, line {number}: not JSON") from None
            if not isinstance(value, dict):
                raise ValueError(f"{path}, line {number}: not an object")
            yield number, value


def _without_input(message: Any) -> Any:
    """Return a message with the role ``system`` in place of the data set's ``_input``."""
    return {**message, "role": "system"} if isinstance(message, dict) and message.get("role") == "_input" else message


def checks(vendor: str, repeat: int, samples: Sequence[Sample]) -> Iterator[ServerCheck]:
    """Yield the checks of a profile: one for each sample."""
    if vendor != "kimi":
        return
    for number, sample in enumerate(samples or _questions(max(repeat, len(_QUESTIONS))), 1):
        name = f"vendor/kimi/sample {number}"
        yield name, partial(_one, name=name, sample=sample)


def _questions(count: int) -> Iterator[Sample]:
    for number in range(count):
        question, needs = _QUESTIONS[number % len(_QUESTIONS)]
        messages = [{"role": "user", "content": question}]
        body = {"messages": messages, "tools": list(TOOLS), "max_tokens": 1000, "temperature": 1.0, "seed": number}
        yield Sample(body=body, calls=needs)


async def _one(session: Session, *, name: str, sample: Sample) -> list[Result]:
    result = Result(id=name, verdict="pass")
    return [await session.judged(result, _measure(session, result, sample))]


async def _measure(session: Session, result: Result, sample: Sample) -> None:
    body = {key: value for key, value in sample.body.items() if key not in ("stream", "stream_options")}
    seen = await session.chat({**body, "model": session.found.model}, stream=sample.body.get("stream") is True)
    message = seen.message
    called = message.finish_reason == "tool_calls"
    problems = _problems(message, sample.body.get("tools") or []) if called else []
    valid = called and not problems
    result.counts = {"finish_reason": message.finish_reason, "valid": valid, "reference": sample.calls}
    if problems:
        result.verdict, result.reason = "soft", problems[0]
        result.got, result.raw = msgspec.to_builtins(message), seen.raw


def _problems(message: Message, tools: Sequence[Any]) -> list[str]:
    """Return what the verifier counts as errors of the schema."""
    if not message.calls:
        return ["the finish_reason is 'tool_calls', and no call came"]
    validator = Validator(tools)
    return [str(problem) for call in message.calls for problem in validator.check(call.name, call.arguments)]


def totals(model: str, results: Sequence[Result]) -> list[Result]:
    """Return the verifier's figures over the results of all samples."""
    counted = [result.counts for result in results if result.id.startswith("vendor/kimi/sample ") and result.counts]
    return [_accuracy(counted), _similarity(counted, model)]


def _accuracy(counted: Sequence[dict[str, Any]]) -> Result:
    result = Result(id="vendor/kimi/schema accuracy", verdict="pass")
    reasons = [counts["finish_reason"] for counts in counted]
    total, stops = reasons.count("tool_calls"), reasons.count("stop")
    successful = sum(counts["valid"] for counts in counted)
    result.counts = {
        "finish_stop": stops,
        "finish_tool_calls": total,
        "finish_others": len(reasons) - total - stops,
        "successful_tool_call_count": successful,
        "schema_validation_error_count": total - successful,
        "schema_accuracy": share(successful, total),
    }
    if not total:
        result.verdict, result.reason = "cannot", "no output has calls"
    elif successful < total:
        result.verdict, result.reason = "fail", f"{total - successful} of {total} answers with calls do not fit"
    return result


def _similarity(counted: Sequence[dict[str, Any]], model: str) -> Result:
    result = Result(id="vendor/kimi/trigger similarity", verdict="pass")
    pairs = [
        (counts["finish_reason"] == "tool_calls", counts["reference"])
        for counts in counted
        if counts["reference"] is not None
    ]
    if not pairs:
        result.verdict, result.reason = "cannot", "no answers of a reference are known"
        return result
    hits, wrong, missed = (pairs.count(pair) for pair in ((True, True), (True, False), (False, True)))
    score = 2 * hits / (2 * hits + wrong + missed) if hits else 0.0
    result.counts = {"tool_call_f1": round(score, 3), "hits": hits, "wrong": wrong, "missed": missed}
    least = next(value for word, value in _SIMILAR.items() if word in model.lower())
    if score < least:
        result.verdict, result.reason = "soft", f"F1 is {score:.2f}, under the verifier's {least}"
    return result
