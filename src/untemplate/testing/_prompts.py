"""Check that the state at the start depends on the end of the prompt only."""

from __future__ import annotations

from typing import cast

from ..format import Marker
from ._markup import markers
from ._subject import Subject, difference


def start_states(subject: Subject) -> None:
    """Check the state at the start.

    An opening marker means the same in the prompt as in the output. After closed reasoning the rest of the message is
    the same. The user's text has no influence.
    """
    fmt = subject.format
    reasoning = fmt.reasoning
    prompt = subject.context.get("prompt")
    wanted = subject.whole.same()["message"]
    start = fmt.turn.start.text if fmt.turn.start is not None else ""
    if prompt is not None and start and any(s in prompt for s in cast(Marker, fmt.turn.start).spellings):
        decoys = " ".join(s for m in markers(fmt) for s in m.spellings)
        got = subject.run([subject.raw], prompt=f"{decoys}\n{prompt}").folded
        if got != wanted:
            raise subject.fail("the start state comes from the prompt's end", difference(wanted, got))
    if reasoning is None or "prefill" in subject.context or not start:
        return
    if prompt is None and reasoning.open is not None:
        opener = next((s for s in reasoning.open.spellings if subject.raw.lstrip(" \t\r\n").startswith(s)), None)
        if opener is not None:
            rest = subject.raw.lstrip(" \t\r\n")[len(opener) :]
            got = subject.run([rest], prompt=f"{start}{reasoning.open.text}").folded
            if got != wanted:
                raise subject.fail(
                    "an opening marker in the prompt", f"with {rest!r}" + difference(wanted, got), [rest]
                )
    _behind_closed(subject, start)


def _behind_closed(subject: Subject, start: str) -> None:
    """Check the same output with its reasoning closed in the prompt."""
    reasoning = subject.format.reasoning
    assert reasoning is not None
    items = subject.whole.folded
    if reasoning.open is None or not items or items[0][0] != "reasoning" or any(i[0] == "reasoning" for i in items[1:]):
        return
    spans = subject.whole.result.spans
    before = subject.raw[: min(s.start for s in spans if s.kind == "reasoning")].strip()
    if before and before not in reasoning.open.spellings:
        return
    end = max(s.end for s in spans if s.kind == "reasoning")
    tail = subject.raw[end:].lstrip(" \t\r\n")
    close = next((s for s in reasoning.close.spellings if tail.startswith(s)), None)
    if close is None:
        return
    prompt = f"{start}{reasoning.open.text}{reasoning.close.text}"
    rest = tail[len(close) :]
    got = subject.run([rest], prompt=prompt).folded
    if got != items[1:]:
        raise subject.fail("reasoning closed in the prompt", f"with {rest!r}" + difference(items[1:], got), [rest])
