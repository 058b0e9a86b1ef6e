"""Combine hypotheses into Formats and choose the best.

The search is greedy (``analyze._candidates``): reasoning and content first, with the likeliest call syntax, then the
call syntaxes for the best of these. Candidates are ranked by the score of their certificate; ties go to the simplest,
then to the first. The ranking never looks at the text of a marker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ..format import Content, Format, FormatError, Marker, Reasoning, Turn
from . import diff
from .certify import Certificate, certify
from .checks import Check
from .probes import EOS
from .result import ChannelsGuess, ContentGuess, ReasoningGuess, ToolsGuess
from .turns import TurnFrame

__all__ = ["Candidate", "best_of", "build", "build_channels"]


@dataclass(slots=True)
class Candidate:
    """One hypothesis about the whole Format."""

    format: Format
    variant: str = ""
    sources: tuple[str, ...] = ()
    score: float = -1.0
    cut: bool = False
    """True once it was measured with split outputs as well."""
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
        "tools": () if tools is None else (tools.tools,),
    }
    fmt = _format(frame, frame.header, ends, parts, "random" if tools is None else tools.ids)
    return None if fmt is None else Candidate(fmt, "" if tools is None else tools.variant, sources)


def build_channels(frame: TurnFrame, guess: ChannelsGuess) -> Candidate | None:
    """Build the Format of a turn that consists of messages with headers."""
    close = guess.channels.close
    call_close = guess.channels.call_close
    taken = {m.text.strip() for m in (close, call_close) if m is not None}
    ends = [e for e in (frame.end, *frame.ends) if e.strip() not in taken]
    fmt = _format(frame, guess.header, ends, {"channels": guess.channels}, "random")
    return None if fmt is None else Candidate(fmt, guess.variant, (guess.source,))


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
    opened, closed = Marker(guess.open), Marker(guess.close)
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
    turn = Turn(
        start=_start(frame, header),
        end=Marker(spelled[0], tuple(spelled[1:])) if spelled else None,
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
            fmt = Format(name="inferred", turn=Turn(start=_start(frame, header), end=end), ids=ids, **parts)
        except FormatError:
            continue
        return replace(fmt, special_tokens=_special(fmt))
    return None


def _pieces(end: str) -> list[str]:
    """Split an end into the parts that may occur alone: engines stop at the first token."""
    pieces = diff.split_tags(end)
    if len(pieces) < 2:
        return []
    return ["".join(pieces[:i]) for i in range(1, len(pieces))] + [pieces[-1]]


def _start(frame: TurnFrame, header: str) -> Marker | None:
    if not header.strip():
        return None
    return Marker(header, tuple(s for s in frame.starts if s.strip() != header.strip()))


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
    for marker in markers:
        for text in () if marker is None else marker.spellings:
            found.update(dict.fromkeys(diff.closed_tags(text)))
    return tuple(found)


def best_of(candidates: Sequence[Candidate], checks: Sequence[Check], steps: tuple[int, ...] = ()) -> list[Candidate]:
    """Rank candidates by the number of checks that parse back, best first.

    With ``steps``, the leading ones are measured again with the output cut into pieces of that many characters.
    """
    order = {id(c): i for i, c in enumerate(candidates)}

    def ranked(some: Sequence[Candidate]) -> list[Candidate]:
        return sorted((c for c in some if c.score >= 0), key=lambda c: (-round(c.score, 6), c.complexity, order[id(c)]))

    perfect: Candidate | None = None
    others = 0
    for candidate in candidates:
        # After a perfect candidate only a simpler one can win; a few more are measured to name the runner-up.
        if perfect is not None and candidate.complexity >= perfect.complexity:
            others += 1
            if others > _OTHERS:
                continue
        _measure(candidate, checks, ())
        if candidate.score > 0.999999 and (perfect is None or candidate.complexity < perfect.complexity):
            perfect = candidate
    found = ranked(candidates)
    measured = 0
    while steps and measured < min(_LEADERS, len(found)):
        best = found[0]
        if best.cut:
            break
        _measure(best, checks, steps)
        best.cut = True
        measured += 1
        found = ranked(found)
    return found


_LEADERS: Final = 4
_OTHERS: Final = 2


def _measure(candidate: Candidate, checks: Sequence[Check], steps: tuple[int, ...]) -> None:
    try:
        candidate.certificate = certify(candidate.format, checks, steps=steps)
    except FormatError:
        return
    candidate.score = candidate.certificate.score
