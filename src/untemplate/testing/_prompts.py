"""Check that the state at the start depends on the end of the prompt only."""

from __future__ import annotations

from ..format._markers import spellings_of
from ._markup import markers
from ._subject import Subject, difference


def start_states(subject: Subject) -> None:
    """Check the state at the start.

    An opening marker means the same in the prompt as in the output. After closed reasoning the rest of the message is
    the same. The user's text has no influence.
    """
    prompt = subject.context.get("prompt")
    start = subject.format.turn.start
    if start is None or not start.text:
        return
    if prompt is not None and any(s in prompt for s in start.spellings):
        _after_decoys(subject, prompt)
    if subject.format.reasoning is None or "prefill" in subject.context:
        return
    if prompt is None:
        _opened_by_prompt(subject, start.text)
    _behind_closed(subject, start.text)


def _after_decoys(subject: Subject, prompt: str) -> None:
    """Check that markers before the turn in the prompt change nothing."""
    wanted = subject.whole.same()["message"]
    decoys = " ".join(s for m in markers(subject.format) for s in m.spellings)
    got = subject.run([subject.raw], prompt=f"{decoys}\n{prompt}").folded
    if got != wanted:
        raise subject.fail("the start state comes from the prompt's end", difference(wanted, got))


def _opened_by_prompt(subject: Subject, start: str) -> None:
    """Check the same output with its first marker in the prompt, if that opens reasoning."""
    reasoning = subject.format.reasoning
    assert reasoning is not None
    raw = subject.raw.lstrip(" \t\r\n")
    opener = next((s for s in spellings_of(reasoning.open) if raw.startswith(s)), None)
    if reasoning.open is None or opener is None:
        return
    # A close may begin as the opener does (Gemma 4): whole, or cut by the end of the output.
    if any(raw.startswith(close) or close.startswith(raw) for close in reasoning.close.spellings):
        return
    rest, wanted = raw[len(opener) :], subject.whole.same()["message"]
    got = subject.run([rest], prompt=f"{start}{reasoning.open.text}").folded
    if got != wanted:
        raise subject.fail("an opening marker in the prompt", f"with {rest!r}" + difference(wanted, got), [rest])


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
