"""Infer the markers around content, and the end of the turn that goes with them.

Text that a turn writes before its content, reasoning aside, opens content. A turn that opens content also closes it.
The close and the end of the turn are adjacent: the part that other turns end with is the end. Without an opening there
are no content markers. Content before a call may have markers of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from . import _diff as diff
from ._probes import CONTENT, NAMES, THOUGHT, CallSamples, ProbeMessage, Style
from ._reasoning import ReasoningSamples
from ._result import ContentGuess, ReasoningGuess
from ._turns import LAST, MIDDLE, TurnFrame


def content_guesses(
    frame: TurnFrame, reasoning: ReasoningGuess | None, samples: ReasoningSamples, calls: CallSamples | None
) -> list[ContentGuess]:
    """Return hypotheses about content, given one about reasoning."""
    plain = ContentGuess("", "", "always", frame.end, "plain")
    markers = () if reasoning is None else (reasoning.open, reasoning.close)
    fronts: list[str] = []
    by_tail = {tail: setting for setting, tail in reversed(frame.tails.items())}  # variables that change the prompt
    for setting in reversed(by_tail.values()):
        turn = frame.turn(ProbeMessage(CONTENT), Style(settings=setting), LAST)
        if turn is None or CONTENT not in turn.text:
            continue
        fronts.append(diff.strip_front(turn.text[: turn.text.index(CONTENT)], markers))
    middle = frame.turn(ProbeMessage(CONTENT), Style(), MIDDLE)
    if middle is not None and CONTENT in middle.text:
        fronts.append(diff.strip_front(middle.text[: middle.text.index(CONTENT)], markers))
    opens = list(dict.fromkeys(f for f in fronts if f.strip()))
    written = "always"
    if not opens and reasoning is not None and samples.style is not None and not samples.with_calls_only:
        turn = frame.turn(ProbeMessage(CONTENT, THOUGHT), samples.style, LAST)
        if turn is not None and CONTENT in turn.text:
            between = turn.text[turn.text.find(THOUGHT) + len(THOUGHT) : turn.text.find(CONTENT)]
            opened = diff.strip_front(between, [reasoning.close])
            opens = [opened] if opened.strip() else []
            written = "with_reasoning"
    behind = _behind(frame, samples, written)
    guesses: list[ContentGuess] = []
    for open_ in opens:
        for end in _ends(frame, behind, calls):
            close = behind[: len(behind) - len(end)] if end else behind
            if close.strip() and close.strip() != open_.strip():
                guesses.append(ContentGuess(open_, close, written, end, "wrapped"))
    whole = [replace(plain, end=frame.content_end)] if frame.content_end else []
    before_calls = list(_before_calls([*guesses, plain], calls, markers))
    result = list(dict.fromkeys([*guesses, plain, *whole, *before_calls]))
    frame.log.append(f"content: {[(g.open, g.close, g.end) for g in result]!r}")
    return result


def _before_calls(
    guesses: list[ContentGuess], calls: CallSamples | None, markers: tuple[str | None, ...]
) -> Iterator[ContentGuess]:
    """Yield these guesses with the markers of content that a call follows, if they are others."""
    if calls is None or calls.with_content is None:
        return
    before, _, rest = calls.with_content.partition(CONTENT)
    opened, between = diff.strip_front(before, markers), rest[: rest.index(NAMES[0])]
    closed = between[: len(between) - len(diff.common_suffix([between, calls.front]))]
    if not opened.strip() or not closed.strip():
        return
    for guess in guesses:
        if not guess.open and len(guesses) == 1:
            yield replace(guess, open=opened, close=closed, written="with_reasoning", source="wrapped before calls")
        elif guess.open and guess.open.strip() != opened.strip():
            yield replace(guess, other=(opened.strip(), closed.strip()))


def _behind(frame: TurnFrame, samples: ReasoningSamples, written: str) -> str:
    """Return the text after the content of a turn that wraps it."""
    style, message = Style(), ProbeMessage(CONTENT)
    if written == "with_reasoning" and samples.style is not None:
        style, message = samples.style, ProbeMessage(CONTENT, THOUGHT)
    turn = frame.turn(message, style, LAST) or frame.turn(message, replace(style), MIDDLE)
    return "" if turn is None or CONTENT not in turn.text else turn.text[turn.text.index(CONTENT) + len(CONTENT) :]


def _ends(frame: TurnFrame, behind: str, calls: CallSamples | None) -> list[str]:
    """Return what may end the turn, out of the text after the content."""
    ends = [frame.end] if frame.content_end and behind.endswith(frame.end) else []
    if calls is not None and calls.end:
        ends.append(diff.common_suffix([behind, calls.end]))
    pieces = diff.split_tags(behind)
    ends += ["".join(pieces[i:]) for i in range(1, len(pieces))]
    if frame.end and behind.endswith(frame.end):
        ends.append(frame.end)
    ends.append("")
    return [e for e in dict.fromkeys(ends) if len(e) < len(behind)][:3]
