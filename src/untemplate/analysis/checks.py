"""Make checks: conversations that a template renders, with the messages that they mean.

Each check is rendered by the template and compared with the message that it was rendered from. A rendering counts only
if it contains the message: a template that drops reasoning does not express it. Realistic and awkward texts replace
the probe words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from .probes import ASKED, EOS, IDS, ProbeCall, ProbeMessage, Style
from .reasoning import ReasoningEvidence
from .tools import CallEvidence
from .turns import LAST, MIDDLE, RenderedTurn, TurnFrame

__all__ = ["CAPABILITIES", "Check", "checks_of"]

CAPABILITIES: Final = (
    "content",
    "reasoning",
    "thinking_off",
    "calls",
    "parallel_calls",
    "no_arguments",
    "content_with_calls",
    "reasoning_with_calls",
    "ids",
    "string",
    "number",
    "integer",
    "boolean",
    "null",
    "object",
    "array",
    "awkward_strings",
    "several_turns",
)
"""Abilities that a certificate reports, in this order."""


@dataclass(frozen=True, slots=True)
class Check:
    """One output, its prompt, and the message that it means."""

    kind: str
    name: str
    prompt: str
    output: str
    reasoning: str | None = ""
    content: str | None = ""
    """``None``: the content is not compared."""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    ids: tuple[str, ...] = ()
    tools: list[dict[str, Any]] | None = None
    weight: float = 1.0
    group: str = ""
    """Checks of one group show the same thing in different places."""


SAID: Final = "Hello, world!\nWhat's up?"
THOUGHTS: Final = "I'm\nthinking about it."
ODD: Final = "if a < b && c > d: say \"hi\" to {name} — [1] 你好\n\n    'indented' `code`\n- <b>done</b>"
TYPES: Final[dict[str, Any]] = {
    "string": "Paris",
    "number": 2.5,
    "integer": 42,
    "boolean": True,
    "null": None,
    "object": {"unit": "C", "deep": {"list": [1, "two", False]}},
    "array": ["a", 2, {"b": True}],
}
STRINGS: Final[dict[str, str]] = {
    "lines": 'def f(x):\n    if x < 3 and x > 1:\n        print("hi", \'there\')\n\n    return {"a": [1]}',
    "unicode": "naïve — 你好 🎉",
    "tags": "<b>bold</b> <br/> &amp; [x] {y} </p>",
    "quotes": 'say "it\'s" \\ back\\slash',
}
_ONE: Final = "get_weather"
_TWO: Final = "find_place"


def _schema(kind: str) -> dict[str, Any]:
    return {"type": ["string", "null"] if kind == "null" else kind}


def _tool(name: str, properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": name, "description": "d", "parameters": {"type": "object", "properties": properties}},
    }


TYPED_TOOLS: Final = [
    _tool(_ONE, {**{f"a_{k}": _schema(k) for k in TYPES}, **{k: {"type": "string"} for k in STRINGS}}),
    _tool(_TWO, {"place": {"type": "string"}, "count": {"type": "integer"}}),
]


def checks_of(
    frame: TurnFrame, reasoning: ReasoningEvidence, calls: CallEvidence | None, droppers: list[str]
) -> list[Check]:
    """Return all checks that the template can render."""
    found = [*_plain(frame), *_reasoned(frame, reasoning), *_prompts(frame, droppers)]
    if calls is not None:
        found += _called(frame, calls, reasoning)
    return found


def _cut(frame: TurnFrame, turn: RenderedTurn, message: ProbeMessage, *, end: bool = False) -> tuple[str, str]:
    """Return prompt and output: the prompt reaches as far as the template's own, if the turn begins the same way."""
    text = turn.text if end else _without_end(frame, turn.text)
    if turn.tail and text.startswith(turn.tail):
        return turn.before + turn.tail, text[len(turn.tail) :]
    if turn.tail and message.reasoning and text.lstrip().startswith(message.reasoning):
        # The prompt opens reasoning with words that earlier turns do not show.
        return turn.before + turn.tail, text
    return turn.before, text


def _without_end(frame: TurnFrame, text: str) -> str:
    for end in (frame.end, *frame.ends, EOS):
        if end.strip() and text.rstrip().endswith(end.strip()):
            return text.rstrip()[: -len(end.strip())]
    return text


def _plain(frame: TurnFrame) -> Iterator[Check]:
    for name, said, kind in (("plain", SAID, "content"), ("odd", ODD, "content"), ("turns", SAID, "several_turns")):
        for place in (LAST, MIDDLE):
            if kind == "several_turns" and place == LAST:
                continue
            turn = frame.turn(ProbeMessage(said), Style(), place)
            if turn is None or said not in turn.text:
                continue
            prompt, output = _cut(frame, turn, ProbeMessage(said))
            yield Check(kind, f"{name} ({place})", prompt, output, "", said, group=name)
            if name == "plain" and frame.end.replace(EOS, "").strip() and EOS not in turn.text:
                prompt, output = _cut(frame, turn, ProbeMessage(said), end=True)
                yield Check(kind, f"{name}, with its end ({place})", prompt, output, "", said, weight=0.5, group="end")


def _reasoned(frame: TurnFrame, evidence: ReasoningEvidence) -> Iterator[Check]:
    if evidence.style is None or evidence.with_calls_only:
        return
    for name, thoughts in (("reasoning", THOUGHTS), ("odd reasoning", ODD)):
        message = ProbeMessage(SAID, thoughts)
        turn = frame.turn(message, evidence.style, LAST)
        if turn is None or thoughts not in turn.text or SAID not in turn.text:
            continue
        prompt, output = _cut(frame, turn, message)
        yield Check("reasoning", name, prompt, output, thoughts, SAID, weight=2.0, group=name)
        if prompt != turn.before and not turn.text.lstrip().startswith(thoughts):
            # The same output, by a model that opens reasoning itself.
            text = _without_end(frame, turn.text)
            yield Check("reasoning", f"{name}, no prompt", turn.before, text, thoughts, SAID, group=name + " own")


def _prompts(frame: TurnFrame, droppers: list[str]) -> Iterator[Check]:
    """Yield checks that the text which prompts add after the header is markup, and leads into reasoning or content."""
    asked = {"role": "user", "content": ASKED}
    for settings, tail in frame.tails.items():
        prompt = frame.prober.prompt([asked], Style(settings=settings))
        if prompt is None or not prompt.endswith(tail):
            continue
        before = prompt[: len(prompt) - len(tail)] if tail else prompt
        label = ", ".join(f"{k}={v}" for k, v in settings) or "default"
        if tail.strip():
            # Fed as output it must add nothing to the message.
            yield Check("prompt", f"prompt ending, {label}", before, tail, None, "", group=label)
        for literal in droppers:
            if literal not in tail and tail.strip() and _opens(frame, tail, literal):
                output = f"{THOUGHTS}{literal}{SAID}"
                yield Check("reasoning", f"dropped by {literal!r}", prompt, output, THOUGHTS, SAID, group=label)


def _opens(frame: TurnFrame, tail: str, literal: str) -> bool:
    """True if some other prompt continues from here and closes reasoning, or if no prompt closes it."""
    closed = [t for t in frame.tails.values() if literal in t]
    return not closed or any(t.startswith(tail.rstrip()) for t in closed)


def _called(frame: TurnFrame, evidence: CallEvidence, reasoning: ReasoningEvidence) -> Iterator[Check]:
    paris = {"a_string": "Paris"}

    def checks(
        kind: str, name: str, message: ProbeMessage, style: Style = evidence.style, weight: float = 1.0, **more: Any
    ) -> Iterator[Check]:
        places = (evidence.place, MIDDLE if evidence.place == LAST else LAST) if more.pop("both", False) else None
        for place in places or (evidence.place,):
            turn = frame.turn(message, style, place)
            if turn is None or not _shows(turn.text, message) or _breaks_quotes(turn.text, message):
                continue
            prompt, output = _cut(frame, turn, message)
            wanted = tuple((c.name, dict(c.arguments)) for c in message.calls)
            yield Check(
                kind, f"{name} ({place})", prompt, output, message.reasoning, message.content, wanted,
                tools=TYPED_TOOLS, weight=weight, group=name, **more,
            )  # fmt: skip

    one = ProbeCall(_ONE, paris)
    yield from checks("calls", "one call", ProbeMessage(calls=(one,)), weight=2.0, both=True)
    bare = next(iter(checks("calls", "tools unknown", ProbeMessage(calls=(one,)))), None)
    if bare is not None:
        yield replace(bare, tools=None)
        if _writes_id(frame, evidence, one):
            yield replace(bare, kind="ids", name="id", ids=(one.id,), group="id")
    two = (one, ProbeCall(_TWO, {"place": "Rome", "count": 3}, IDS[1]))
    yield from checks("parallel_calls", "two calls", ProbeMessage(calls=two), weight=2.0)
    three = (*two, ProbeCall(_ONE, {"a_string": "Oslo", "a_integer": 7}, "qzid00003"))
    if _ends_once(frame, evidence, two, three):
        yield from checks("parallel_calls", "three calls", ProbeMessage(calls=three))
    yield from checks("no_arguments", "no arguments", ProbeMessage(calls=(ProbeCall(_ONE, {}),)))
    for kind, value in TYPES.items():
        yield from checks(kind, kind, ProbeMessage(calls=(ProbeCall(_ONE, {f"a_{kind}": value, "lines": "x"}),)))
    for name, value in STRINGS.items():
        yield from checks(
            "awkward_strings", name, ProbeMessage(calls=(ProbeCall(_ONE, {name: value, "a_integer": 1}),))
        )
    yield from _own_marks(frame, evidence, checks)
    look = ProbeMessage("I will look.", calls=(one,))
    if not _taken_for_reasoning(frame, look, evidence.style, reasoning):
        yield from checks("content_with_calls", "content and call", look, both=True)
        again = ProbeMessage("I will look.\nTwice.", calls=two)
        yield from checks("content_with_calls", "content and two calls", again, both=True)
    if reasoning.style is not None:
        style = replace(reasoning.style, arguments=evidence.style.arguments, no_content=evidence.style.no_content)
        yield from checks("reasoning_with_calls", "reasoning and call", ProbeMessage("", THOUGHTS, (one,)), style)
        message = ProbeMessage("I will look.", THOUGHTS, (one,))
        yield from checks("reasoning_with_calls", "reasoning, content and call", message, style)


def _ends_once(
    frame: TurnFrame, evidence: CallEvidence, two: tuple[ProbeCall, ...], three: tuple[ProbeCall, ...]
) -> bool:
    """True if one more call does not end the turn once more: some templates end it after every call but the first."""
    end = frame.end.strip()
    turns = [frame.turn(ProbeMessage(calls=calls), evidence.style, evidence.place) for calls in (two, three)]
    counts = [t.text.count(end) for t in turns if t is not None and end]
    return len(set(counts)) < 2


def _taken_for_reasoning(frame: TurnFrame, message: ProbeMessage, style: Style, evidence: ReasoningEvidence) -> bool:
    """True if the template writes content before calls as it writes reasoning before calls."""
    if evidence.style is None:
        return False
    thought = replace(message, content="", reasoning=message.content)
    one = frame.turn(message, style)
    other = frame.turn(thought, replace(evidence.style, arguments=style.arguments, no_content=style.no_content))
    return one is not None and other is not None and one.text == other.text


def _own_marks(frame: TurnFrame, evidence: CallEvidence, checks: Any) -> Iterator[Check]:
    """Yield checks with the markers of the call inside an argument."""
    front = evidence.front.strip().splitlines()[-1:] or [""]
    inside = f"see {front[0][-40:]} and that is it"
    if front[0]:
        yield from checks(
            "awkward_strings",
            "own marks",
            ProbeMessage(calls=(ProbeCall(_ONE, {"lines": inside, "a_integer": 1}),)),
            weight=0.5,
        )


def _shows(text: str, message: ProbeMessage) -> bool:
    """True if a rendering contains all parts of a message, in the order in which models write them."""
    at = 0
    for part in (message.reasoning, message.content, *(c.name for c in message.calls)):
        found = text.find(part, at) if part else at
        if found < 0:
            return False
        at = found
    keys = [k for c in message.calls for k in c.arguments]
    return all(k in text for k in keys)


def _breaks_quotes(text: str, message: ProbeMessage) -> bool:
    """True if a template quotes a string that contains the same quotes unescaped: nothing can parse that."""
    for call in message.calls:
        for value in call.arguments.values():
            at = text.find(value) if isinstance(value, str) and value else -1
            if at > 0:
                around = text[at - 1] + text[at + len(value) : at + len(value) + 1]
                if around in ("''", '""', "``") and around[0] in value:
                    return True
    return False


def _writes_id(frame: TurnFrame, evidence: CallEvidence, call: ProbeCall) -> bool:
    turn = frame.turn(ProbeMessage(calls=(call,)), evidence.style, evidence.place)
    return turn is not None and call.id in turn.text
