"""Checks with given texts: the server's model writes a known text, and its message is compared with the expected one.

A failure is reported only where nobody can disagree. A clean output has one right reading. Of an unusual one, servers
may make different things; they may not fail at it, lose all of it, or stream another message than they send whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ._cases import Case, message_of
from ._compare import compare, first_difference, is_object
from ._model import Message, Observation, Result, Verdict
from ._session import Refused, Session, Start


async def check_case(session: Session, case: Case) -> list[Result]:
    """Force the text of a case, whole and streamed, and judge what came."""
    forces = session.found.way or session.found.way_without_tools
    found = await _started(session, case) if forces else (case, Start())
    seen: list[Observation] = []
    results = []
    for kind in ("whole", "stream"):
        result = Result(id=f"given/{case.id}/{kind}", verdict="cannot", title=case.why, raw=case.raw)
        if found is None:
            result.reason = "the text begins after a prompt of its own, which this server cannot be given"
        else:
            case, start = found
            result.raw = case.raw
            result.reason = _impossible(session, case, kind == "stream")
            if not result.reason:
                await session.judged(result, _check(session, case, start, result, seen, kind == "stream"))
        results.append(result)
    return results


def _way(session: Session, case: Case) -> tuple[str, list[Any]]:
    """Return the way to force a case, and the tools on offer."""
    way = session.found.way_without_tools
    if way and not case.expect.calls and _read(session, case, case.raw, None, tools=[]) == case.expect:
        return way, []
    return session.found.way, case.tools


def _impossible(session: Session, case: Case, stream: bool) -> str:
    """Return the reason why a case cannot be forced; empty if it can."""
    way = _way(session, case)[0]
    if not way:
        return "this server offers no way to force a text"
    if way != "prefix":
        return ""
    missing = "this server offers no other way to force a text with calls"
    if stream:
        return f"a prefix is not streamed again, and {missing}"
    if case.finish_reason == "length":
        return f"a prefix is not cut, and {missing}"
    return f"a prefix is not reasoning, and {missing}" if case.expect.reasoning else ""


async def _check(
    session: Session, case: Case, start: Start, result: Result, before: list[Observation], stream: bool
) -> None:
    way, tools = _way(session, case)
    body = session.forcing(case.raw, tools, start, way)
    if case.finish_reason == "length":
        seen = await session.chat(body)
        written = seen.token_ids or []
        if not written or session.end is None:
            raise Refused("this server does not report the tokens after which the output has to be cut")
        ended = written[-1] == session.end
        if not ended:  # the engine stops without a token, so the text has to go on after the cut
            body = session.forcing(case.raw + session.ending, tools, start, way)
        body["max_tokens"] = len(written) - ended
    seen = await session.chat(body, stream=stream)
    result.reason = _otherwise(session, case, seen)
    if result.reason:
        return
    _judge(result, case, seen)
    if result.verdict != "pass" and _unquoted(session, case, seen):
        result.verdict, result.reason = "cannot", _unquoted(session, case, seen)
    elif before and result.verdict == "soft":
        _against_whole(result, before[0].message, seen.message)
    before.append(seen)


async def _started(session: Session, case: Case) -> tuple[Case, Start] | None:
    """Return the case as it is written and read after a prompt of the server, which may have opened reasoning; ``None``
    if the case begins after a prompt of its own, and no prompt of the server is like it.
    """
    start = session.starts[bool(case.expect.reasoning)]
    if case.prompt is not None:
        return await _own_start(session, case)
    if start.prompt is None:
        return case, start
    reasoning = session.parser.format.reasoning
    closed = reasoning is not None and start.prompt.rstrip().endswith(reasoning.close.text.strip())
    for raw in _openings(session, case.raw):
        if _read(session, case, raw, start.prompt) == case.expect:
            clean = case.clean and not (case.expect.reasoning and closed)
            return msgspec.structs.replace(case, raw=raw, clean=clean), start
    expect = _read(session, case, case.raw, start.prompt)
    return msgspec.structs.replace(case, expect=expect, clean=False), start


async def _own_start(session: Session, case: Case) -> tuple[Case, Start] | None:
    """Return a start after which a case with a prompt of its own is read as it expects."""
    starts = list(session.starts.values())
    turn = session.parser.format.turn
    header = turn.start.text if turn is not None and turn.start is not None else ""
    begun = (case.prompt or "").rpartition(header)[2] if header else ""
    if begun and session.found.continues:
        starts.insert(0, await session.start(prefix=begun))
    for start in starts:
        if start.prompt is not None and _read(session, case, case.raw, start.prompt) == case.expect:
            same = start.prompt.endswith(header + start.prefix)
            return msgspec.structs.replace(case, clean=case.clean and (same or not case.expect.reasoning)), start
        if case.joined is not None:
            break
    return None


def _read(session: Session, case: Case, raw: str, prompt: str | None, *, tools: list[Any] | None = None) -> Message:
    """Return untemplate's reading of a text with the tools of a case, or with others."""
    tools = case.tools if tools is None else tools
    return message_of(session.parser.parse(raw, tools=tools, prompt=prompt, finish_reason=case.finish_reason))


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
    """Return the reason why a marker that the case has as text may count as one; empty if there is no such marker."""
    texts = (case.expect.reasoning, case.expect.content, *(call.arguments for call in case.expect.calls))
    for text, token in session.tokens.items():
        if token in (seen.token_ids or ()) and any(text in quoting for quoting in texts):
            return f"the model wrote {text!r} as one token, where the case has it as text of the message"
    return ""


def _judge(result: Result, case: Case, seen: Observation) -> None:
    result.verdict, result.reason = ("fail", seen.problems[0]) if seen.problems else _verdict(case, seen.message)
    result.got = msgspec.to_builtins(seen.message)
    if result.verdict != "pass":
        result.expected = msgspec.to_builtins(case.expect)
        result.first_difference = first_difference(case.expect, seen) if seen.stream else None


def _verdict(case: Case, message: Message) -> tuple[Verdict, str]:
    verdict, reason = compare(case.expect, message)
    if verdict == "fail" and case.joined is not None:
        joined = compare(case.joined, message)
        verdict, reason = joined if joined[0] != "fail" else (verdict, reason)
    if verdict != "fail" or case.clean:
        return verdict, reason
    # There is more than one right reading, but none of them loses the output.
    if case.expect.size > 0 and message.size == 0:
        return "fail", "all of the output is lost"
    if case.finish_reason == "length" and _looks_whole(message):
        return "fail", f"a cut output came with the finish_reason {message.finish_reason!r}"
    return "soft", reason


def _looks_whole(message: Message) -> bool:
    """True if a client takes the message of a cut output for a whole one, though a call in it is not."""
    if message.finish_reason == "length":
        return False
    return not message.calls or not all(is_object(call.arguments) for call in message.calls)


def _against_whole(result: Result, whole: Message, streamed: Message) -> None:
    """Fail a stream of an unusual output whose message is neither the expected one nor the one that came whole."""
    verdict, reason = compare(whole, streamed)
    if verdict == "fail":
        result.verdict, result.reason = "fail", f"streamed, the message is another one than whole: {reason}"
        result.expected = msgspec.to_builtins(whole)
