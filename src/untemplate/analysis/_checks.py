"""Make checks: conversations that a template renders, with the messages that they mean.

Each check is rendered by the template and compared with the message that it was rendered from. A rendering counts only
if it contains the message: a template that drops reasoning does not express it. The words are realistic and awkward; no
probe has any of them, so that a Format which holds a probe word cannot pass.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from . import _diff as diff
from ._probes import ASKED, EOS, RESULT, THOUGHT, CallSamples, ProbeCall, ProbeMessage, Style
from ._reasoning import ReasoningSamples
from ._turns import LAST, MIDDLE, RenderedTurn, TurnFrame

Finding = Literal["yes", "no", "failed", "cannot say"]
"""Outcome for one capability."""

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
    rendered: bool = True
    """False if the output is not a rendering but made from what the template drops: a failure proves nothing."""
    alone: bool = True
    """False if another check of its group may pass instead."""


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
    "double quotes": 'say "hi" and "bye"',
    "single quotes": "it's Anna's",
    "backslashes": "C:\\new\\table",
    "newline at the end": "one line\n",
    "newline at the start": "\n  indented",
    "like a number": "0042",
}
_ONE: Final = "survey_reef"
_TWO: Final = "paint_fence"
_IDS: Final = ("Fw3kT9pLx", "Zr7mQ2vBn", "Hd5sY8cJu")


_LIST: Final = {"type": "array", "items": {"type": ["integer", "string", "boolean"]}}
_FLAG: Final = {"type": "object", "properties": {"b": {"type": "boolean"}}}
_INSIDE: Final[dict[str, dict[str, Any]]] = {
    "object": {"properties": {"unit": {"type": "string"}, "deep": {"type": "object", "properties": {"list": _LIST}}}},
    "array": {"items": {"anyOf": [{"type": ["string", "integer"]}, _FLAG]}},
}
"""The types inside objects and arrays: text in nested elements has no type of its own."""


def _schema(kind: str) -> dict[str, Any]:
    return {"type": ["string", "null"] if kind == "null" else kind, **_INSIDE.get(kind, {})}


def _tool(name: str, properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": name, "description": "d", "parameters": {"type": "object", "properties": properties}},
    }


TYPED_TOOLS: Final = [
    _tool(_ONE, {**{f"a_{k}": _schema(k) for k in TYPES}, **{k: {"type": "string"} for k in STRINGS}}),
    _tool(_TWO, {"place": {"type": "string"}, "note": {"type": "string"}}),
]


@dataclass(slots=True)
class Checks:
    """All checks of a template, and what they leave open."""

    all: list[Check]
    unmeasured: dict[str, Finding]
    """Capabilities of which no check or not every check could be made."""
    reasons: dict[str, str]
    """The reason why they were not measured."""


def checks_of(frame: TurnFrame, reasoning: ReasoningSamples, calls: CallSamples | None, droppers: list[str]) -> Checks:
    """Return all checks that the template can render."""
    reasons: dict[str, str] = {}
    found = [*_plain(frame), *_reasoned(frame, reasoning), *_prompts(frame, droppers)]
    if calls is not None:
        found += _Called(frame, calls, reasoning, reasons).checks()
    for kind in ("content", "several_turns"):
        if not any(c.kind == kind for c in found):
            reasons[kind] = "no rendering shows such an answer"
    unmeasured: dict[str, Finding] = dict.fromkeys(reasons, "cannot say")
    if calls is None and frame.shows_arguments:
        unmeasured["calls"] = "failed"
    sizes = Counter((c.kind, c.group) for c in found)
    return Checks([replace(c, alone=sizes[c.kind, c.group] == 1) for c in found], unmeasured, reasons)


def _cut(frame: TurnFrame, turn: RenderedTurn, message: ProbeMessage, *, end: bool = False) -> tuple[str, str]:
    """Return prompt and output: the prompt reaches as far as the template's own, if the turn begins the same way."""
    text = turn.text if end else _without_end(frame, turn.text)
    if frame.never_in_prompts and turn.before.endswith(frame.header):
        return turn.before.removesuffix(frame.header), frame.header + text
    return _cut_at_tail(turn, text, message)


def _cut_at_tail(turn: RenderedTurn, text: str, message: ProbeMessage) -> tuple[str, str]:
    """Divide a turn after the text that its prompt adds to the header."""
    if turn.tail.strip() and text.lstrip().startswith(turn.tail.strip()):
        written = len(diff.lead(text)) + len(turn.tail.strip())
        written += len(turn.tail) - len(turn.tail.rstrip()) if text.startswith(turn.tail) else 0
        return turn.before + turn.tail, text[written:]
    if turn.tail and message.reasoning and text.lstrip().startswith(message.reasoning):
        # The prompt opens reasoning with words that earlier turns do not show.
        return turn.before + turn.tail, text
    return turn.before, text


def _without_end(frame: TurnFrame, text: str) -> str:
    for end in (frame.end + EOS, frame.end, *frame.ends, EOS):
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


def _reasoned(frame: TurnFrame, samples: ReasoningSamples) -> Iterator[Check]:
    if samples.style is None or samples.with_calls_only:
        return
    for name, thoughts in (("reasoning", THOUGHTS), ("odd reasoning", ODD)):
        message = ProbeMessage(SAID, thoughts)
        turn = frame.turn(message, samples.style, LAST)
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
                yield Check(
                    "reasoning", f"dropped by {literal!r}", prompt, output, THOUGHTS, SAID, group=label, rendered=False
                )  # fmt: skip


def _opens(frame: TurnFrame, tail: str, literal: str) -> bool:
    """True if some other prompt continues from here and closes reasoning, or if no prompt closes it."""
    closed = [t for t in frame.tails.values() if literal in t]
    return not closed or any(t.startswith(tail.rstrip()) for t in closed)


_ONE_TURN: Final = ("parallel_calls", "content_with_calls")


@dataclass(slots=True)
class _Called:
    """Makes the checks of turns with calls."""

    frame: TurnFrame
    samples: CallSamples
    reasoning: ReasoningSamples
    unmeasured: dict[str, str]
    """Abilities that cannot be said, with the reason."""

    def checks(self) -> Iterator[Check]:
        one = ProbeCall(_ONE, {"a_string": "Paris", "lines": "x"}, _IDS[0])
        two = (one, ProbeCall(_TWO, {"place": "Rome", "note": "soon"}, _IDS[1]))
        yield from self._single(one)
        yield from self._check("parallel_calls", "two calls", ProbeMessage(calls=two), weight=2.0)
        three = (*two, ProbeCall(_ONE, {"a_string": "Oslo", "lines": "y"}, _IDS[2]))
        yield from self._check("parallel_calls", "three calls", ProbeMessage(calls=three))
        yield from self._check("no_arguments", "no arguments", ProbeMessage(calls=(ProbeCall(_ONE, {}, _IDS[0]),)))
        yield from self._values()
        yield from self._with_content(one, two)
        yield from self._with_reasoning(one)
        yield from self._after_result(one)

    def _check(
        self, kind: str, name: str, message: ProbeMessage, style: Style | None = None, *, both: bool = False,
        weight: float = 1.0,
    ) -> Iterator[Check]:  # fmt: skip
        style, place = style or self.samples.style, self.samples.place
        for at in (place, MIDDLE if place == LAST else LAST) if both else (place,):
            turn = self.frame.turn(message, style, at)
            if turn is None or not _shows(turn.text, message):
                continue
            prompt, output = _cut(self.frame, turn, message)
            one_turn = kind in _ONE_TURN
            if _unreadable(turn.text, message):
                self.unmeasured[kind] = "values are written without quotes, or in quotes that they hold themselves"
                continue
            if one_turn and self._ends_after(message.calls[0].name, output):
                self.unmeasured[kind] = "the template ends the turn after the first call, and writes more"
                continue
            ends = one_turn and bool(message.content) and self._ends_after(message.content, output)
            wanted = tuple((c.name, dict(c.arguments)) for c in message.calls)
            yield Check(
                kind, f"{name} ({at})", prompt, output, message.reasoning, message.content, wanted, tools=TYPED_TOOLS,
                weight=weight, group=name, rendered=not ends,
            )  # fmt: skip

    def _single(self, one: ProbeCall) -> Iterator[Check]:
        found = list(self._check("calls", "one call", ProbeMessage(calls=(one,)), weight=2.0, both=True))
        yield from found
        yield from self._with_end(one, found)
        if found:
            bare = replace(found[0], weight=1.0)
            yield replace(bare, tools=None, name=f"tools unknown ({self.samples.place})", group="tools unknown")
            given = self.samples.style.id_of(one, 0)
            if given in bare.output:
                yield replace(bare, kind="ids", name="id", ids=(given,), group="id")

    def _with_end(self, one: ProbeCall, found: list[Check]) -> Iterator[Check]:
        """Yield the check of one call again, with the end of the turn, if the template writes one."""
        message, end = ProbeMessage(calls=(one,)), self.frame.end.replace(EOS, "").strip()
        turn = self.frame.turn(message, self.samples.style, self.samples.place)
        if found and turn is not None and end and EOS not in turn.text and turn.text.rstrip().endswith(end):
            prompt, output = _cut(self.frame, turn, message, end=True)
            yield replace(found[0], name="one call, with its end", prompt=prompt, output=output, group="call end")

    def _values(self) -> Iterator[Check]:
        for kind, value in TYPES.items():
            call = ProbeCall(_ONE, {f"a_{kind}": value, "lines": "x"}, _IDS[0])
            found = list(self._check(kind, kind, ProbeMessage(calls=(call,))))
            yield from found
            if kind in _INSIDE and found and not _QUOTED.search(found[0].output):
                self._find_untyped(kind, call)
        front = self.samples.front.strip().splitlines()[-1:] or [""]
        own = {"own marks": f"see {front[0][-40:]} and that is it"} if front[0] else {}
        for name, text in (STRINGS | own).items():
            call = ProbeCall(_ONE, {"lines": text, "a_string": "x"}, _IDS[0])
            yield from self._check("awkward_strings", name, ProbeMessage(calls=(call,)), weight=0.5)

    def _find_untyped(self, kind: str, call: ProbeCall) -> None:
        """Note that values inside values have no type, if the template writes numbers as it writes strings."""
        key = f"a_{kind}"
        spelled = replace(call, arguments={**call.arguments, key: _spelled(call.arguments[key])})
        turns = [
            self.frame.turn(ProbeMessage(calls=(c,)), self.samples.style, self.samples.place) for c in (call, spelled)
        ]
        if turns[0] is not None and turns[1] is not None and turns[0].text == turns[1].text:
            self.unmeasured[kind] = "numbers inside a value are written as strings are"

    def _with_content(self, one: ProbeCall, two: tuple[ProbeCall, ...]) -> Iterator[Check]:
        look = ProbeMessage("I will look.", calls=(one,))
        if self._taken_for_reasoning(look):
            self.unmeasured["content_with_calls"] = "content before a call is written as reasoning is"
            return
        yield from self._check("content_with_calls", "content and call", look, both=True)
        again = ProbeMessage("I will look.\nTwice.", calls=two)
        yield from self._check("content_with_calls", "content and two calls", again, both=True)

    def _with_reasoning(self, one: ProbeCall) -> Iterator[Check]:
        style = self._reasoning_style()
        if style is None:
            return
        yield from self._check("reasoning_with_calls", "reasoning and call", ProbeMessage("", THOUGHTS, (one,)), style)
        message = ProbeMessage("I will look.", THOUGHTS, (one,))
        yield from self._check("reasoning_with_calls", "reasoning, content and call", message, style)

    def _reasoning_style(self) -> Style | None:
        mine, style = self.samples.style, self.reasoning.style
        return style and replace(style, arguments=mine.arguments, no_content=mine.no_content, ids=mine.ids)

    def _ends_after(self, part: str, output: str) -> bool:
        """True if the template ends the turn after this part of a message and continues: no model writes that."""
        end = self.frame.end.strip()
        return bool(end) and end in output[output.index(part) :]

    def _after_result(self, one: ProbeCall) -> Iterator[Check]:
        """Yield a check of content after the result of a call, where the prompt may end in another way."""
        style, prober = self.samples.style, self.frame.prober
        call = style.write(ProbeMessage(calls=(one,)))
        result = {"role": "tool", "content": RESULT, "tool_call_id": style.id_of(one, 0), "name": one.name}
        conversation = [{"role": "user", "content": ASKED}, call, result]
        prompt = prober.prompt(conversation, style, calls=True)
        answer = style.write(ProbeMessage(SAID))
        whole = prober.render([*conversation, answer], tools=prober.call_tools)
        if prompt is None or whole is None or not whole.startswith(prompt) or SAID not in whole[len(prompt) :]:
            return
        if any(tail.strip() and prompt.rstrip().endswith(tail.strip()) for tail in self.frame.tails.values()):
            return  # it opens reasoning, which this answer does not have
        output = _without_end(self.frame, whole[len(prompt) :].removesuffix(self.frame.trailer))
        yield Check("several_turns", "after a result", prompt, output, "", SAID, tools=TYPED_TOOLS, group="results")

    def _taken_for_reasoning(self, message: ProbeMessage) -> bool:
        """True if the template writes content before calls as it writes reasoning before calls."""
        style = self._reasoning_style()
        if style is None:
            return False
        one = self.frame.turn(message, self.samples.style)
        thought = self.reasoning.turn
        if one is not None and thought is not None and message.content in one.text:
            ahead = thought.text[: thought.text.find(THOUGHT)]
            if ahead.strip() and one.text[: one.text.index(message.content)] == ahead:
                return True
        other = self.frame.turn(replace(message, content="", reasoning=message.content), style)
        return one is not None and other is not None and one.text == other.text


_QUOTED: Final = re.compile(r"""(["'])(?:two|a)\1""")
"""A string of `TYPES` inside an object or array, in quotes."""


def _spelled(value: Any) -> Any:
    """Return a value with text in place of numbers and booleans."""
    if isinstance(value, dict):
        return {key: _spelled(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_spelled(item) for item in value]
    return value if isinstance(value, str) else json.dumps(value)


def _shows(text: str, message: ProbeMessage) -> bool:
    """True if a rendering contains all parts of a message, reasoning before the others and calls in order."""
    at = 0
    for part in (message.reasoning, *(c.name for c in message.calls)):
        found = text.find(part, at) if part else at
        if found < 0:
            return False
        at = found
    keys = [k for c in message.calls for k in c.arguments]
    return all(k in text for k in keys) and message.content in text[text.find(message.reasoning) :]


def _unreadable(text: str, message: ProbeMessage) -> bool:
    """True if nobody could parse a value: it is in quotes that it contains unescaped, or it has no quotes at all."""
    for call in message.calls:
        for value in call.arguments.values():
            at = text.find(value) if isinstance(value, str) and value else -1
            if at > 0 and _ambiguous(value, text[at - 1], text[at + len(value) : at + len(value) + 1]):
                return True
    return False


def _ambiguous(value: str, before: str, after: str) -> bool:
    if before == after and before in "'\"`":
        return any(c in value for c in (before, "\\", "\n"))
    return before in "=:" and after in ",)}" and not value.isalpha()
