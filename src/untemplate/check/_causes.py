"""Failures, grouped by their cause: one fault of a server fails many checks.

A cause is one line without the words of a case: what the server does wrong. It comes from the violation of the protocol
where there is one, otherwise from the difference between the message that came and the expected one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ._model import Cause, Result, json_of

_PROTOCOL: Final = (
    (r"the name of call \d+ is sent twice", "streamed calls repeat their names"),
    (r"the id of call \d+ changes", "streamed calls change their ids"),
    (r"a delta has the call index", "streamed calls have wrong indices"),
    (r"the first delta of call \d+ has no (name|id)", r"the first delta of a streamed call has no \1"),
    (r"the arguments of a call are (\w+), not JSON text", r"arguments are \1, not JSON text"),
    (r"a tool call has no function", "tool calls have no function"),
    (r"the role is", "the role of messages is not assistant"),
    (r"the ids of the calls are not different texts", "calls have no ids, or the same ones"),
    (r"(\w+) is (\w+), not a string", r"\1 is \2, not a string"),
    (r"the stream does not end with \[DONE\]", "streams do not end with [DONE]"),
    (r"the stream ended without a finish reason", "streams have no finish reason"),
    (r"a delta came after the finish reason", "deltas come after the finish reason"),
    (r"an event of the stream is not", "events of streams are not JSON objects"),
    (r"the stream reports an error", "streams end in an error"),
    (r"an error came with the status 200", "errors come with the status 200"),
    (r"HTTP (5\d\d)", r"requests end in HTTP \1"),
    (r"the response is not one of", "responses are not those of the API"),
    (r"closed the connection", "the connection closes inside a response"),
    (r"a cut output came with the finish_reason", "cut outputs are reported as whole"),
    (r"all of the output is lost", "unusual outputs are lost"),
    (r"streamed, the message is another one than whole", "streamed messages differ from whole ones"),
)
"""Pattern of a reason → the cause."""


def cause_of(result: Result) -> str:
    """Return the cause of a failed check in one line."""
    for pattern, cause in _PROTOCOL:
        found = re.search(pattern, result.reason)
        if found:
            return found.expand(cause)
    if _is_message(result.got) and _is_message(result.expected):
        return next(_differences(result.expected, result.got), _without_numbers(result.reason))
    return _without_numbers(result.reason)


def causes_of(results: Sequence[Result]) -> list[Cause]:
    """Return the causes of the failed checks, the most frequent first."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        if result.verdict == "fail":
            groups.setdefault(cause_of(result), []).append(result)
    found = [_cause(line, group) for line, group in groups.items()]
    return sorted(found, key=lambda cause: (-len(cause.ids), cause.cause))


def _cause(line: str, group: list[Result]) -> Cause:
    ways = {result.id.rpartition("/")[2] for result in group}
    only = next((word for word in ("whole", "stream") if ways == {word}), "")
    shown = next((one for one in group if one.first_difference is not None), group[0])
    return Cause(
        cause=line,
        ids=tuple(result.id for result in group),
        only=only,
        example=shown.id,
        reason=shown.reason,
        raw=shown.raw,
        got=shown.got,
        expected=shown.expected,
        first_difference=shown.first_difference,
        issue=next((result.issue for result in group if result.issue), ""),
        replay=shown.replay,
    )


def _is_message(value: Any) -> bool:
    return isinstance(value, dict)


def _without_numbers(reason: str) -> str:
    """Return a reason without the words of its case."""
    return re.sub(r"'[^']*'|\d+", "…", reason.split(":")[0])


# -- Differences of messages --------------------------------------------------------------------------------------


def _differences(expected: dict[str, Any], got: dict[str, Any]) -> Iterator[str]:
    wanted, came = expected.get("calls") or (), got.get("calls") or ()
    yield from _calls(wanted, came, got)
    yield from _arguments(wanted, came)
    yield from _texts(expected, got)
    if expected.get("finish_reason") != got.get("finish_reason"):
        yield f"finish_reason is {got.get('finish_reason')!r} where it is {expected.get('finish_reason')!r}"


def _calls(wanted: Sequence[Any], came: Sequence[Any], got: dict[str, Any]) -> Iterator[str]:
    if len(wanted) > len(came):
        text = (got.get("content") or "") + (got.get("reasoning") or "")
        if wanted[len(came)]["name"] in text:
            yield "calls stay text in the message"
        else:
            yield "calls are lost" if not came else "calls after the first are lost"
    elif len(wanted) < len(came):
        twice = any(one == other for i, one in enumerate(came) for other in came[:i])
        yield "calls come twice" if twice else "calls come that the model did not write"
    for one, other in zip(wanted, came, strict=False):
        if one["name"] != other["name"]:
            parts = one["name"].startswith(other["name"])
            yield "names of calls are cut" if parts else "names of calls are altered"


def _arguments(wanted: Sequence[Any], came: Sequence[Any]) -> Iterator[str]:
    for one, other in zip(wanted, came, strict=False):
        mine, its = json_of(one["arguments"]), json_of(other["arguments"])
        if mine == its and type(mine) is type(its):
            continue
        if not other["arguments"] or (its == {} and mine):
            yield "arguments are lost"
        elif isinstance(its, str) and json_of(its) == mine:
            yield "arguments are encoded twice"
        elif its is None:
            cut = _packed(one["arguments"]).startswith(_packed(other["arguments"]))
            yield "arguments are cut" if cut else "arguments are not JSON"
        elif isinstance(mine, dict) and isinstance(its, dict):
            yield _of_values(mine, its)
        else:
            yield "arguments are altered"


def _of_values(mine: dict[str, Any], its: dict[str, Any]) -> str:
    if mine.keys() != its.keys():
        return "keys of arguments are lost" if its.keys() < mine.keys() else "keys of arguments are altered"
    pairs = [(mine[key], its[key]) for key in mine if mine[key] != its[key] or type(mine[key]) is not type(its[key])]
    if any(type(a) is not type(b) for a, b in pairs):
        return "values of arguments have another type"
    if all(isinstance(a, str) and a.split() == b.split() for a, b in pairs):
        return "white space of arguments is altered"
    return "values of arguments are altered"


def _texts(expected: dict[str, Any], got: dict[str, Any]) -> Iterator[str]:
    for name, other in (("reasoning", "content"), ("content", "reasoning")):
        wanted, came = (expected.get(name) or "").strip(), (got.get(name) or "").strip()
        if wanted and not came:
            moved = wanted in (got.get(other) or "")
            yield f"{name} comes as {other}" if moved else f"{name} is lost"
        elif wanted != came:
            yield _of_text(name, wanted, came, expected.get(other) or "")


def _of_text(name: str, wanted: str, came: str, other: str) -> str:
    """Return the cause of a text that came and is another. ``other``: the text expected in the other field."""
    if wanted and came == wanted + wanted:
        return f"{name} comes twice"
    if wanted.startswith(came):
        return f"the end of {name} is lost"
    if wanted.endswith(came):
        return f"the beginning of {name} is lost"
    if wanted in came:
        return _added(name, wanted, came, other)
    white_space = "".join(wanted.split()) == "".join(came.split())
    return f"white space of {name} is altered" if white_space else f"{name} is altered"


def _added(name: str, wanted: str, came: str, other: str) -> str:
    """Return the cause of text that came and was not expected."""
    added = came.replace(wanted, "", 1) if wanted else came
    if other.strip() and other.strip() in added:
        return f"{'content' if name == 'reasoning' else 'reasoning'} comes as {name}"
    return (
        f"markup stays in {name}" if re.search(r"[<\[{|]", added) else f"{name} has text that the model did not write"
    )


def _packed(text: str) -> str:
    return "".join(text.split())
