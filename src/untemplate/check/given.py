"""Checks with given texts: the server's model writes a known text, and its message is compared with the expected one.

A failure is reported only where nobody can disagree. A clean output has one right reading. Of an unusual one, servers
may make different things; they may not fail at it, lose all of it, or stream another message than they send whole.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from .cases import Case, message_of
from .compare import compare, first_difference
from .model import Message, Observation, Result
from .session import Session

__all__ = ["check_case"]


async def check_case(session: Session, case: Case) -> list[Result]:
    """Force the text of a case, whole and streamed, and judge what came."""
    case = _started(session, case)
    seen: list[Observation] = []
    results = []
    for kind in ("whole", "stream"):
        result = Result(id=f"given/{case.id}/{kind}", verdict="cannot", title=case.why, raw=case.raw)
        result.reason = _impossible(session, case, kind == "stream")
        if not result.reason:
            await session.judged(result, _check(session, case, result, seen, kind == "stream"))
        results.append(result)
    return results


def _impossible(session: Session, case: Case, stream: bool) -> str:
    """Return the reason why a case cannot be forced; empty if it can."""
    if not session.found.way:
        return "this server offers no way to force a text"
    if session.found.way == "prefix" and stream:
        return "a prefix is not streamed again, and this server offers no other way to force a text"
    if session.found.way == "prefix" and case.expect.reasoning:
        return "a prefix is not reasoning, and this server offers no other way to force a text"
    return ""


async def _check(session: Session, case: Case, result: Result, before: list[Observation], stream: bool) -> None:
    body = session.forcing(case.raw, case.tools, thinks=bool(case.expect.reasoning))
    seen = await session.chat(body, stream=stream)
    result.reason = _otherwise(session, case, seen)
    if result.reason:
        return
    _judge(result, case, seen)
    if result.verdict != "pass" and _unquoted(session, case, seen):
        result.verdict, result.reason = "cannot", _unquoted(session, case, seen)
    elif before:
        _against_whole(result, before[0].message, seen.message)
    before.append(seen)


def _started(session: Session, case: Case) -> Case:
    """Return the case as it is written and read after the server's own prompt, which may have opened reasoning."""
    prompt = session.prompts.get(bool(case.expect.reasoning))
    if prompt is None:
        return case
    reasoning = session.parser.format.reasoning
    reopens = case.expect.reasoning and reasoning is not None and prompt.rstrip().endswith(reasoning.close.text.strip())
    for raw in _openings(session, case.raw):
        if message_of(session.parser.parse(raw, tools=case.tools, prompt=prompt)) == case.expect:
            return msgspec.structs.replace(case, raw=raw, clean=case.clean and not reopens)
    expect = message_of(session.parser.parse(case.raw, tools=case.tools, prompt=prompt))
    return msgspec.structs.replace(case, expect=expect, clean=False)


def _openings(session: Session, raw: str) -> Iterator[str]:
    """Yield the text, the text without an opener of reasoning, and the text after a close of reasoning."""
    yield raw
    reasoning = session.parser.format.reasoning
    if reasoning is not None:
        if reasoning.open is not None:
            yield raw.removeprefix(reasoning.open.text)
        yield reasoning.close.text + raw


def _otherwise(session: Session, case: Case, seen: Observation) -> str:
    """Return the reason why the model did not write the text as given; empty if it did."""
    if seen.raw is not None and seen.raw.removesuffix(session.ending) != case.raw:
        return f"the model wrote another text: {seen.raw[:60]!r}"
    for text, token in session.tokens.items() if seen.token_ids is not None else ():
        written, wanted = (seen.token_ids or []).count(token), case.raw.count(text)
        if written != wanted and text != session.ending:
            return f"the model wrote {text!r} with ordinary tokens: as one token {written} of {wanted} times"
    return ""


def _unquoted(session: Session, case: Case, seen: Observation) -> str:
    """Return the reason why a marker that the case has as text may count as one; empty without one."""
    texts = (case.expect.reasoning, case.expect.content, *(call.arguments for call in case.expect.calls))
    for text, token in session.tokens.items():
        if token in (seen.token_ids or ()) and any(text in quoting for quoting in texts):
            return f"the model wrote {text!r} as one token, where the case has it as text of the message"
    return ""


def _judge(result: Result, case: Case, seen: Observation) -> None:
    verdict, reason = compare(case.expect, seen.message)
    if verdict == "fail" and not case.clean:
        lost = case.expect.size > 0 and seen.message.size == 0
        verdict, reason = ("fail", "all of the output is lost") if lost else ("soft", reason)
    if seen.problems:
        verdict, reason = "fail", seen.problems[0]
    result.verdict, result.reason = verdict, reason
    result.got = msgspec.to_builtins(seen.message)
    if verdict != "pass":
        result.expected = msgspec.to_builtins(case.expect)
        result.first_difference = first_difference(case.expect, seen) if seen.stream else None


def _against_whole(result: Result, whole: Message, streamed: Message) -> None:
    """Fail a stream whose message differs from the whole one."""
    verdict, reason = compare(whole, streamed)
    if verdict == "fail" and result.verdict in ("pass", "soft"):
        result.verdict, result.reason = "fail", f"streamed, the message is another one than whole: {reason}"
        result.expected = msgspec.to_builtins(whole)
