"""Find where a template changes text that it has already written.

An agent's rollout appends to its tokens: the prompt, the model's turn, the result of a call, the next turn. That works
only if the template renders a longer conversation as the shorter one and more (*prefix preservation*). Templates that
drop the reasoning of earlier turns do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

from . import _diff as diff
from ._probes import AGAIN, ASKED, CONTENT, IDS, KEYS, NAMES, RESULT, THOUGHT, VALUES, ProbeCall, ProbeMessage, Style
from ._turns import TurnFrame

Step = Literal["turn", "question", "result"]
"""The message that was appended: the model's ``turn`` to its prompt, the next ``question`` or a call's ``result`` to
the turn."""

_EXCERPT: Final = 60
_CALL: Final = ProbeCall(NAMES[0], {KEYS[0]: VALUES[0]})


@dataclass(frozen=True, slots=True)
class PrefixBreak:
    """One place where a longer conversation is not a continuation of the shorter one."""

    step: Step
    message: str
    """Parts of the assistant's message: ``content``, ``reasoning and content``, ``call``, ``reasoning and call``."""
    was: str
    """Beginning of the text that the shorter rendering has from the first difference on."""
    becomes: str
    """Text that the longer rendering has there."""
    settings: str = ""
    """Template variables that were set, such as ``enable_thinking=False``."""

    def __str__(self) -> str:
        switched = f" ({self.settings})" if self.settings else ""
        return f"{self.message}{switched}, {self.step} appended: {self.was!r} becomes {self.becomes!r}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return asdict(self)


def find_prefix_breaks(frame: TurnFrame, calls: Style | None, reasoning: Style | None) -> tuple[PrefixBreak, ...]:
    """Return every place where the rendering of a conversation changes when messages are added; none if it never does.

    Args:
        calls, reasoning: the shapes in which the template writes calls and reasoning, ``None`` if it does not.
    """
    found: list[PrefixBreak] = []
    for name, message, style in _messages(frame, calls, reasoning):
        found += _breaks(frame, name, message, style)
    return tuple(found)


def _messages(
    frame: TurnFrame, calls: Style | None, reasoning: Style | None
) -> Iterator[tuple[str, ProbeMessage, Style]]:
    if reasoning is None or reasoning.settings:
        yield "content", ProbeMessage(CONTENT), Style()
    if reasoning is not None:
        yield "reasoning and content", ProbeMessage(CONTENT, THOUGHT), reasoning
    for setting, tail in frame.tails.items():
        if tail != frame.tail and setting != (() if reasoning is None else reasoning.settings):
            yield "content", ProbeMessage(CONTENT), Style(settings=setting)
    if calls is not None and reasoning is None:
        yield "call", ProbeMessage(calls=(_CALL,)), calls
    elif calls is not None and reasoning is not None:
        style = replace(reasoning, arguments=calls.arguments, no_content=calls.no_content)
        yield "reasoning and call", ProbeMessage("", THOUGHT, (_CALL,)), style


def _breaks(frame: TurnFrame, name: str, message: ProbeMessage, style: Style) -> Iterator[PrefixBreak]:
    prober = frame.prober
    tools = prober.call_tools if message.calls else prober.plain_tools
    settings = dict(style.settings)
    conversation = [{"role": "user", "content": ASKED}, style.write(message)]
    result = {"role": "tool", "content": RESULT, "tool_call_id": IDS[0], "name": NAMES[0]}
    after = ("result", result) if message.calls else ("question", {"role": "user", "content": AGAIN})
    prompt = prober.render(conversation[:1], prompt=True, tools=tools, settings=settings)
    turn = prober.render(conversation, tools=tools, settings=settings)
    longer = prober.render([*conversation, after[1]], tools=tools, settings=settings)
    if turn is None or (message.reasoning and message.reasoning not in turn):
        return
    steps: tuple[tuple[Step, str | None, str | None], ...] = (
        ("turn", prompt, turn), ("result" if message.calls else "question", turn, longer)
    )  # fmt: skip
    for step, short, long in steps:
        if short is None or long is None or long.startswith(short):
            continue
        at = len(diff.same_start(short, long))
        switched = ", ".join(f"{key}={value}" for key, value in style.settings)
        yield PrefixBreak(step, name, short[at : at + _EXCERPT], long[at : at + _EXCERPT], switched)
