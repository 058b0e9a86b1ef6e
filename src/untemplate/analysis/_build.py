"""Combine hypotheses into Formats and choose the best.

The search is greedy (``pipeline._candidates``): reasoning and content first, with the likeliest call syntax, then the
call syntaxes for the best of these. Candidates are ranked by the score of their certificate; ties go to the simplest,
then to the first. The ranking never looks at the text of a marker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ..format import Content, Format, FormatError, Marker, Reasoning, Tools, Turn
from ..format._markers import spellings_of
from . import _diff as diff
from ._certify import Certificate, certify
from ._checks import Check
from ._probes import EOS, WORDS
from ._result import ChannelsGuess, ContentGuess, ReasoningGuess, ToolsGuess
from ._turns import TurnFrame


@dataclass(slots=True)
class Candidate:
    """One hypothesis about the whole Format."""

    format: Format
    variant: str = ""
    sources: tuple[str, ...] = ()
    score: float = -1.0
    certificate: Certificate = field(default_factory=Certificate)

    @property
    def complexity(self) -> int:
        """Number of parts of the Format; fewer is simpler."""
        fmt = self.format
        return sum(part is not None for part in (fmt.reasoning, fmt.content, fmt.channels)) + len(fmt.tools)


def build(
    frame: TurnFrame,
    reasoning: ReasoningGuess | None,
    content: ContentGuess | None,
    tools: ToolsGuess | None,
) -> Candidate | None:
    """Build the Format from one hypothesis per part; return ``None`` if they contradict each other."""
    ends = [content.end if content is not None else frame.end, *frame.ends, *(tools.ends if tools is not None else ())]
    sources = tuple(p.source for p in (reasoning, content, tools) if p is not None)
    parts: dict[str, Any] = {
        "reasoning": _reasoning(reasoning),
        "content": _content(content),
        "tools": () if tools is None else (_closed(frame, content, tools.tools),),
    }
    fmt = _format(frame, frame.header, ends, parts, "random" if tools is None else tools.ids)
    return (
        None
        if fmt is None or _holds_probe_word(fmt)
        else Candidate(fmt, "" if tools is None else tools.variant, sources)
    )


def _closed(frame: TurnFrame, content: ContentGuess | None, tools: Tools) -> Tools:
    """Give calls the close of content, if all turns end with it and it would therefore end none."""
    end = frame.end.strip()
    own = (tools.section_close, tools.call_close)
    if not end or content is None or content.close.strip() != end or any(own):
        return tools
    between = "" if tools.separator is None else tools.separator.text.removeprefix(frame.end)
    return replace(tools, call_close=Marker(frame.end), separator=Marker(between) if between else None)


def build_channels(frame: TurnFrame, guess: ChannelsGuess) -> Candidate | None:
    """Build the Format of a turn that consists of messages with headers."""
    close = guess.channels.close
    call_close = guess.channels.call_close
    taken = {m.text.strip() for m in (close, call_close) if m is not None}
    ends = [e for e in (frame.end, *frame.ends) if e.strip() not in taken]
    parts = {"channels": guess.channels, "tools": () if guess.tools is None else (guess.tools,)}
    fmt = _format(frame, guess.header, ends, parts, "random")
    return None if fmt is None or _holds_probe_word(fmt) else Candidate(fmt, guess.variant, (guess.source,))


def _holds_probe_word(fmt: Format) -> bool:
    """True if text of the analysis itself would count as markup."""
    written = fmt.to_json(indent=None)
    return any(word in written for word in WORDS)


def _reasoning(guess: ReasoningGuess | None) -> Reasoning | None:
    if guess is None:
        return None
    return Reasoning(
        open=Marker(guess.open) if guess.open else None,
        close=Marker(guess.close),
        start="open" if guess.starts_open else "closed",
        repeats=guess.repeats,
    )


def _content(guess: ContentGuess | None) -> Content | None:
    if guess is None or not guess.open:
        return None
    other = guess.other or ("", "")
    opened, closed = Marker(guess.open, (other[0],) * bool(other[0])), Marker(guess.close, (other[1],) * bool(other[1]))
    if guess.written == "always":
        return Content(open=opened, close=closed)
    return Content(open=opened, close=closed, written="with_reasoning")


def _format(frame: TurnFrame, header: str, ends: Sequence[str], parts: dict[str, Any], ids: str) -> Format | None:
    spelled: list[str] = []
    for end in ends:
        for text in (end, *_pieces(end)):
            known = text.replace(EOS, "")
            if known.strip() and known.strip() not in spelled:
                spelled.append(known.strip() if spelled else known)
    start = _start(frame, header)
    turn = Turn(
        start=start,
        end=Marker(spelled[0], tuple(spelled[1:])) if spelled else None,
        in_output=frame.in_output and start is not None,
    )
    try:
        fmt = Format(name="inferred", turn=turn, ids=ids, **parts)
        return replace(fmt, special_tokens=_special(fmt))
    except FormatError:
        return _without_ends(frame, header, parts, ids, spelled)


def _without_ends(frame: TurnFrame, header: str, parts: dict[str, Any], ids: str, spelled: list[str]) -> Format | None:
    """Drop ends of turns that already have another meaning, such as the opener of calls."""
    for keep in range(len(spelled) - 1, -1, -1):
        end = Marker(spelled[0], tuple(spelled[1:keep])) if keep else None
        try:
            start = _start(frame, header)
            turn = Turn(start=start, end=end, in_output=frame.in_output and start is not None)
            fmt = Format(name="inferred", turn=turn, ids=ids, **parts)
        except FormatError:
            continue
        return replace(fmt, special_tokens=_special(fmt))
    return None


def _pieces(end: str) -> list[str]:
    """Split an end into the parts that may occur alone: engines stop at the first token."""
    pieces = diff.split_tags(end)
    first = next((token for token in diff.tokens(end) if not token.isspace()), "")
    tag = end.find(first) + len(first)
    alone = [end[:tag]] if first in diff.closed_tags(end) and end[tag:].strip() else []
    if len(pieces) < 2:
        return alone
    return [*alone, *("".join(pieces[:i]) for i in range(1, len(pieces))), pieces[-1]]


def _start(frame: TurnFrame, header: str) -> Marker | None:
    """Return the start of a turn, without an end of sequence before it: its text is not known."""
    first, *others = (text.rpartition(EOS)[2] for text in (header, *frame.starts))
    if not first.strip():
        return None
    return Marker(first, tuple(dict.fromkeys(o for o in others if o.strip() not in ("", first.strip()))))


def _special(fmt: Format) -> tuple[str, ...]:
    """Return whole tags among the markers: tokens that a vocabulary may have for them."""
    found: dict[str, None] = {}
    markers = [fmt.turn.end]
    if fmt.reasoning is not None:
        markers += [fmt.reasoning.open, fmt.reasoning.close]
    if fmt.content is not None:
        markers += [fmt.content.open, fmt.content.close]
    for tools in fmt.tools:
        markers += [tools.section_open, tools.call_open, tools.call_close, tools.section_close]
    if fmt.channels is not None:
        channels = fmt.channels
        markers += [channels.open, channels.channel, channels.constraint, channels.body]
        markers += [channels.close, channels.call_close]
    for text in spellings_of(*markers):
        found.update(dict.fromkeys(diff.closed_tags(text)))
    return tuple(found)


def best_of(candidates: Sequence[Candidate], checks: Sequence[Check]) -> list[Candidate]:
    """Rank candidates by the checks that parse back, best first. Measuring one ends once it cannot become the best."""
    order = {id(c): i for i, c in enumerate(candidates)}
    best: Candidate | None = None
    others = 0
    for candidate in candidates:
        if best is not None and best.score > _PERFECT and candidate.complexity >= best.complexity:
            # Only a simpler one can win; one other is measured to name the runner-up.
            others += 1
            if others > 1:
                continue
        _measure(candidate, checks, 0.0 if best is None else best.score)
        if best is None or candidate.score > best.score:
            best = candidate
    measured = [c for c in candidates if c.score >= 0]
    return sorted(measured, key=lambda c: (-round(c.score, 6), c.complexity, order[id(c)]))


_PERFECT: Final = 0.999999


def _measure(candidate: Candidate, checks: Sequence[Check], needed: float) -> None:
    if candidate.score >= 0:
        return
    try:
        candidate.certificate = certify(candidate.format, checks, needed=needed)
    except FormatError:
        return
    candidate.score = candidate.certificate.score
