"""Find what a template is good for, apart from its markup.

* Parts of a message that it drops, and places where it changes text that it has already written (:mod:`._prefix`).
* If the assistant's tokens can be masked for training.
* Remarks on the template, each with a line: messages of usual clients that it refuses or garbles, and habits that
  surprise. A conversation is rendered once as the template wants it and once as a client sends it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal, get_args

from ._prefix import PrefixBreak, find_prefix_breaks
from ._probes import (
    AGAIN,
    ASKED,
    CONTENT,
    EOS,
    IDS,
    KEYS,
    NAMES,
    RESULT,
    SYSTEM,
    THOUGHT,
    Attempt,
    CallSamples,
    ProbeCall,
    ProbeMessage,
    Style,
)
from ._reasoning import ReasoningSamples
from ._tools import ONE
from ._turns import LAST, MIDDLE, TurnFrame

Part = Literal["reasoning", "calls", "content next to calls"]
"""A part of an assistant's message."""

RemarkCode = Literal[
    "needs_system",
    "needs_parts",
    "needs_tools",
    "needs_text_arguments",
    "needs_object_arguments",
    "needs_content",
    "needs_named_ids",
    "needs_short_ids",
    "refuses_system",
    "refuses_parts",
    "refuses_questions",
    "cuts_content",
    "python_values",
    "bare_strings",
    "reads_clock",
    "mask_without_end",
    "not_measured",
    "unknown_end",
]
"""Codes of remarks. ``needs_``: a demand on messages; ``refuses_``: messages of usual clients that fail;
``not_measured``: abilities that the template may have."""


@dataclass(frozen=True, slots=True)
class Remark:
    """One remark on a template."""

    code: RemarkCode
    message: str
    line: int = 0
    """Line of the template, counted from 1; 0 if no single line is responsible."""

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}" if self.line else self.message


@dataclass(frozen=True, slots=True)
class Dropped:
    """A part of a message that a later rendering does not have."""

    part: Part
    when: Literal["always", "question", "result"]
    """``always``, or what was appended: another ``question``, or the ``result`` of a call."""

    def __str__(self) -> str:
        return f"{self.part}, {'always' if self.when == 'always' else f'once a {self.when} follows'}"


@dataclass(frozen=True, slots=True)
class Traits:
    """Properties of a template that do not depend on a Format."""

    prefix_breaks: tuple[PrefixBreak, ...] = ()
    """Places where it changes text of earlier turns as a conversation continues; empty if it never does."""
    dropped: tuple[Dropped, ...] = ()
    """Parts of messages that it drops."""
    maskable: bool = False
    """True if it marks the assistant's text for training (``{% generation %}``)."""
    remarks: tuple[Remark, ...] = ()
    """Demands on messages, refusals and surprises; ``OutputParser.history`` meets the demands."""

    branches: int = 0
    """Number of branches of the template."""
    unreached: tuple[int, ...] = ()
    """First lines of the branches that no rendering has run, in order."""
    unreached_lines: tuple[int, ...] = ()
    """All lines with a part of such a branch."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "branches": self.branches,
            "unreached": list(self.unreached),
            "unreached_lines": list(self.unreached_lines),
            "prefix_breaks": [b.to_dict() for b in self.prefix_breaks],
            "dropped": [asdict(d) for d in self.dropped],
            "maskable": self.maskable,
            "remarks": [asdict(r) for r in self.remarks],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Traits:
        """Read what `to_dict` wrote.

        Raises:
            KeyError, TypeError, ValueError: it is something else.
        """
        remarks = tuple(Remark(**r) for r in data["remarks"])
        if not {r.code for r in remarks} <= set(get_args(RemarkCode)):
            raise ValueError("remarks: an unknown code")
        return cls(
            tuple(PrefixBreak(**b) for b in data["prefix_breaks"]),
            tuple(Dropped(**d) for d in data["dropped"]),
            bool(data["maskable"]),
            remarks,
            int(data["branches"]),
            tuple(int(line) for line in data["unreached"]),
            tuple(int(line) for line in data["unreached_lines"]),
        )


NO_TRAITS: Final = Traits()
"""Traits of a template that nobody looked at."""


def find_traits(
    frame: TurnFrame, calls: CallSamples | None, reasoning: ReasoningSamples, droppers: list[str]
) -> Traits:
    """Return what a template is good for. ``droppers``: literals that make it drop the content before them."""
    found = _Finder(frame, calls, reasoning, droppers)
    breaks = find_prefix_breaks(frame, None if calls is None else calls.style, reasoning.style)
    marked = _marked(frame)
    remarks = (*found.demands(), *found.refusals(), *found.surprises(), *marked[1])
    dropped = tuple(found.dropped())
    prober = frame.prober
    unreached = tuple(branch.line for branch in prober.unreached())
    return Traits(
        breaks, dropped, marked[0], remarks, prober.branches, unreached, tuple(prober.unreached_lines())
    )  # fmt: skip


_GENERATION: Final = re.compile(r"\{%[-+]?\s*generation\b")
_ASKED: Final = {"role": "user", "content": ASKED}


def _marked(frame: TurnFrame) -> tuple[bool, tuple[Remark, ...]]:
    """Return if ``{% generation %}`` marks a turn, and a remark if it leaves out the end of the turn."""
    from ..templates._sandbox import CLOSED, OPENED

    prober, source = frame.prober, frame.prober.template.source
    block = _GENERATION.search(source)
    if block is None:
        return False, ()
    conversation, variables = prober.inputs([_ASKED, Style().write(ProbeMessage(CONTENT))])
    try:
        marked = prober.template.render(conversation, tools=prober.plain_tools, mark_generation=True, **variables)
    except Exception:  # a template may raise any exception
        return False, ()
    inside = next((text for text in re.findall(f"{OPENED}(.*?){CLOSED}", marked, re.DOTALL) if CONTENT in text), None)
    end = frame.end.strip()
    if inside is None or not end or inside.rstrip().endswith(end):
        return inside is not None, ()
    problem = f"{{% generation %}} leaves out the end of the turn, {end!r}: a model that is trained with it never stops"
    return True, (Remark("mask_without_end", problem, source.count("\n", 0, block.start()) + 1),)


@dataclass(frozen=True, slots=True)
class _Finder:
    """Renders the conversations of usual clients."""

    frame: TurnFrame
    calls: CallSamples | None
    reasoning: ReasoningSamples
    droppers: list[str]

    # -- What it drops --------------------------------------------------------------------------------------------

    def dropped(self) -> Iterator[Dropped]:
        """Yield the parts of messages that disappear."""
        style = self.reasoning.style
        if style is not None:
            yield from self._dropped_reasoning(style)
        elif self.droppers:
            yield Dropped("reasoning", "always")
        if self.calls is None:
            return
        if self.calls.place == LAST and not self._stays(ProbeMessage(calls=(ONE,)), self.calls.style, NAMES[0]):
            yield Dropped("calls", "question")
        both = self.frame.turn(ProbeMessage(CONTENT, calls=(ONE,)), self.calls.style, self.calls.place)
        if both is not None and NAMES[0] in both.text and CONTENT not in both.text:
            yield Dropped("content next to calls", "always")

    def _dropped_reasoning(self, style: Style) -> Iterator[Dropped]:
        message = ProbeMessage(CONTENT, THOUGHT)
        if self.reasoning.with_calls_only:
            message = ProbeMessage("", THOUGHT, (ONE,))
        if not self._stays(message, style, THOUGHT):
            yield Dropped("reasoning", "question")
        if self.calls is None:
            return
        style = replace(style, arguments=self.calls.style.arguments, no_content=self.calls.style.no_content)
        called = [_ASKED, style.write(ProbeMessage("", THOUGHT, (ONE,)))]
        result = {"role": "tool", "content": RESULT, "tool_call_id": IDS[0], "name": NAMES[0]}
        prober, settings = self.frame.prober, dict(style.settings)
        before = prober.render(called, tools=prober.call_tools, settings=settings)
        after = prober.render([*called, result], tools=prober.call_tools, settings=settings)
        if before is not None and after is not None and THOUGHT in before and THOUGHT not in after:
            yield Dropped("reasoning", "result")

    def _stays(self, message: ProbeMessage, style: Style, word: str) -> bool:
        """True if a part is still there before another question, or if that cannot be rendered."""
        turn = self.frame.turn(message, style, MIDDLE)
        return turn is None or word in turn.text

    # -- What it demands ------------------------------------------------------------------------------------------

    def demands(self) -> Iterator[Remark]:
        """Yield what the template demands of messages."""
        prober = self.frame.prober
        if prober.system:
            bare = replace(prober, system=False).attempt([_ASKED], prompt=True, tools=prober.plain_tools)
            yield Remark("needs_system", "a system message is required", bare.line)
        if prober.parts:
            yield Remark("needs_parts", "content must be a list of parts", self._line_of("content"))
        if prober.plain_tools is not None:
            yield Remark("needs_tools", "tools are required", prober.attempt([_ASKED], prompt=True).line)
        if self.calls is not None:
            yield from self._demands_of_calls(self.calls.style, self.calls.short_ids)

    def _demands_of_calls(self, style: Style, short_ids: bool) -> Iterator[Remark]:
        if style.arguments == "text":
            line = self._called(replace(style, arguments="object")).line or self._line_of("arguments")
            yield Remark("needs_text_arguments", "arguments must be JSON text", line)
        else:
            sent = self._called(replace(style, arguments="text"))
            if sent.text is None or KEYS[0] not in sent.text or f'\\"{KEYS[0]}\\"' in sent.text:
                problem = "arguments must be an object, not the JSON text that clients send"
                yield Remark("needs_object_arguments", problem, sent.line or self._line_of("arguments"))
        if style.no_content != "null":
            line = self._called(replace(style, no_content="null")).line or self._line_of("content")
            yield Remark("needs_content", f"content next to calls must be {style.no_content}, not null", line)
        if style.ids:
            yield Remark("needs_named_ids", f"ids of calls must hold the name: {style.ids}", self._line_of("id"))
        if short_ids:
            line = self._called(replace(style, ids=f"call_{IDS[0]}")).line
            yield Remark("needs_short_ids", "ids of calls must be nine letters and digits", line)

    def _called(self, style: Style, call: ProbeCall = ONE) -> Attempt:
        prober = self.frame.prober
        return prober.attempt([_ASKED, style.write(ProbeMessage(calls=(call,)))], tools=prober.call_tools)

    # -- What it refuses ------------------------------------------------------------------------------------------

    def refusals(self) -> Iterator[Remark]:
        """Yield messages of usual clients that fail."""
        prober = self.frame.prober
        system = [{"role": "system", "content": SYSTEM}, _ASKED]
        yield from self._refusal("refuses_system", "a system message", system, SYSTEM)
        questions = [_ASKED, {"role": "user", "content": AGAIN}]
        yield from self._refusal("refuses_questions", "a second message of the user in a row", questions, AGAIN)
        if not prober.parts:
            parts = [{"role": "user", "content": [{"type": "text", "text": ASKED}]}]
            yield from self._refusal("refuses_parts", "content that is a list of text parts", parts, ASKED)

    def _refusal(self, code: RemarkCode, sent: str, messages: list[dict[str, Any]], word: str) -> Iterator[Remark]:
        prober = self.frame.prober
        found = prober.attempt(messages, prompt=True, tools=prober.plain_tools)
        if found.text is None:
            yield Remark(code, f"{sent} fails: {found.problem}", found.line)
        elif word not in found.text:
            yield Remark(code, f"{sent} is not written", self._line_of("role"))
        elif "'text'" in found.text:
            yield Remark(code, f"{sent} is written as Python writes a list", self._line_of("content"))

    # -- What surprises -------------------------------------------------------------------------------------------

    def surprises(self) -> Iterator[Remark]:
        """Yield habits that change what a message means."""
        for literal in self.droppers:
            problem = f"content before {literal!r} is dropped, even where a message quotes it"
            yield Remark("cuts_content", problem, self._line_of(literal))
        if self.calls is not None:
            yield from self._odd_values(self.calls.style)
        if self.frame.prober.eos == "" and EOS in self._answered():
            problem = "answers end with eos_token, whose text is not known: an output that has it keeps it as content"
            yield Remark("unknown_end", problem, self._line_of("eos_token"))
        line = self._line_of("strftime_now")
        if line:
            yield Remark("reads_clock", "the prompt depends on the date: caches of prompts end with the day", line)

    def _answered(self) -> str:
        """Return what the template writes from the beginning of an answer to the next question."""
        turns = (self.frame.turn(ProbeMessage(CONTENT), Style(), place) for place in (LAST, MIDDLE))
        return "".join(turn.text for turn in turns if turn is not None)

    def _odd_values(self, style: Style) -> Iterator[Remark]:
        text = self._called(style, ProbeCall(NAMES[0], {KEYS[0]: True, KEYS[1]: _QUOTES})).text or ""
        line = self._line_of("arguments")
        if re.search(rf"{KEYS[0]}[^=]*?\bTrue\b", text):
            yield Remark("python_values", "values are written as Python writes them: True, False, None", line)
        at = text.find(_QUOTES)
        if at > 0 and text[at - 1] == text[at + len(_QUOTES) :][:1] and text[at - 1] in "'\"":
            yield Remark("bare_strings", f"strings are put between {text[at - 1]} without escapes", line)

    def _line_of(self, text: str) -> int:
        return self.frame.prober.template.lines.get(text, 0)


_QUOTES: Final = "qz\"a'qz"
"""A string with both kinds of quotes."""
