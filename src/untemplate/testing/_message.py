"""Check a message: against what was expected, against its own deltas, and by rendering it again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from .._internal.render import expressible, render
from ..messages import ParsedOutput
from ._ledger import ledger
from ._subject import SEED, Outcome, Subject, as_parsed, difference

_EXPECTED_KEYS: Final = ("reasoning", "content", "tool_calls", "finish_reason", "diagnostics")


def expect(subject: Subject, expected: ParsedOutput | Mapping[str, Any]) -> None:
    wanted, got = _wanted(expected), _got(subject.whole.result)
    for part in ("reasoning", "content"):
        if (got[part] or None) != (wanted.get(part) or None):
            raise subject.fail("the message", f"{part} is another" + difference(wanted.get(part), got[part]))
    calls = [call if len(call) == 3 else (*call, "ok") for call in map(tuple, wanted.get("tool_calls") or ())]
    if len(calls) != len(got["tool_calls"]) or not all(map(_same_call, calls, got["tool_calls"])):
        raise subject.fail("the message", "tool calls are others" + difference(calls, got["tool_calls"]))
    for part in ("finish_reason", "diagnostics"):
        if wanted.get(part) is not None and wanted[part] != got[part]:
            raise subject.fail("the message", f"{part}" + difference(wanted[part], got[part]))


def _wanted(expected: ParsedOutput | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(expected, ParsedOutput):
        parts = _got(expected)
        del parts["diagnostics"]
        return parts
    unknown = set(expected) - set(_EXPECTED_KEYS)
    if unknown:
        raise ValueError(f"expected has {', '.join(map(repr, sorted(unknown)))}; it may have {_EXPECTED_KEYS}")
    return dict(expected)


def _got(result: ParsedOutput) -> dict[str, Any]:
    return {
        "reasoning": result.reasoning_content,
        "content": result.content,
        "tool_calls": [(c.function.name, c.function.arguments, c.status) for c in result.tool_calls],
        "finish_reason": result.finish_reason,
        "diagnostics": [d.code for d in result.diagnostics],
    }


def _same_call(wanted: tuple[Any, ...], got: tuple[Any, ...]) -> bool:
    if (wanted[0], wanted[2]) != (got[0], got[2]):
        return False
    if isinstance(wanted[1], str):
        return bool(wanted[1] == got[1])
    try:
        return canonical(json.loads(got[1])) == canonical(wanted[1])
    except ValueError:
        return False


def canonical(value: Any) -> str:
    """Return JSON text in which 1, 1.0 and true differ."""
    return json.dumps(value, sort_keys=True)


def sound(subject: Subject, raw: str, outcome: Outcome, where: str) -> None:
    """Check a single parse: deltas add up to the result, the finish reason fits, every character is accounted for."""
    result = outcome.result
    reason = result.finish_reason
    items = as_parsed(result.items)
    if items != outcome.folded:
        raise subject.fail("deltas add up to the result", where + difference(items, outcome.folded))
    texts = {kind: "".join(i[1] for i in items if i[0] == kind) for kind in ("reasoning", "content")}
    if texts != {"reasoning": result.reasoning_content or "", "content": result.content or ""}:
        raise subject.fail("items add up to the message", where + difference(texts, result))
    whole = any(call.status != "incomplete" for call in result.tool_calls)
    if result.tools_called != whole or (reason == "tool_calls") > bool(result.tool_calls):
        raise subject.fail("finish_reason", f"{where}: {reason!r} with {len(result.tool_calls)} calls")
    for call in result.tool_calls:
        if call.status == "ok":
            try:
                json.loads(call.function.arguments)
            except ValueError:
                raise subject.fail("status", f"{where}: {call!r} has the status ok but is not JSON") from None
    ledger(subject, raw, result, where)


def round_trip(subject: Subject) -> None:
    """Check that a message which can be rendered parses back."""
    result = subject.whole.result
    if any(call.status != "ok" for call in result.tool_calls):
        return
    message = result.message()
    tools = subject.context.get("tools")
    if expressible(subject.format, message, tools=tools) is not None:
        return
    text = render(subject.format, message)
    again = subject.parser.parse(text, tools=tools, seed=SEED).message()
    if _comparable(again) != _comparable(message):
        raise subject.fail("round trip", f"rendered {text!r}" + difference(message, again), [text])


def _comparable(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message without ids, with arguments as JSON."""
    return {
        "reasoning": message.get("reasoning") or "",
        "content": message.get("content") or "",
        "calls": [
            (c["function"]["name"], canonical(json.loads(c["function"]["arguments"])))
            for c in message.get("tool_calls") or ()
        ],
    }
