"""Ranks the formats of the catalogue for outputs whose format is not known.

Every format parses the outputs. The best one leaves no marker in the content, reads the most calls, and has nothing to
report, over all outputs. Of equal readings, one that begins in content comes before one that begins in
reasoning, which would take a plain answer for reasoning. Then the number of engines that know the format decides.

Of many outputs, all formats parse a few that differ in their markers; the best formats then parse all.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from ..format import Format
from ..format._markers import spellings_of
from ..formats import Entry, IncompatibleFormatsError, entries, named
from ..messages import ParsedOutput
from .backends.call_like import CALL_OBJECT
from .backends.call_log import no_warnings
from .backends.recognition import markers_in
from .output_parser import OutputParser

__all__ = ["Guess", "Sample", "guess", "guess_many", "is_clear", "of_another_kind"]

_VALID = ("ok", "recovered")
_NOT_COUNTED: Final = ("foreign_marker", "unclosed_call")
"""Diagnostics that do not count against a format: what is left over is counted, and a stop string takes closes away."""
_CALL: Final = re.compile(r"[^\s{}]{0,32}" + CALL_OBJECT.pattern)
"""Matches what looks like a call, with the marker before it."""
_OPEN_TAG: Final = re.compile(r"<(\w[\w.:-]{0,64}+)[^<>\n]{0,64}+>")
_MOST_TAGS: Final = 16
"""Tags of a text whose close is looked for. One that is the model's comes early."""
_PLAIN = "Hello there."
"""An answer without any marker."""
_VARIED: Final = 48
"""Outputs that all formats parse."""
_BEST: Final = 16
"""Formats that parse all outputs."""
_TRIMMED: Final = 10
"""One of so many outputs may have problems that do not count: models slip."""


@dataclass(frozen=True, slots=True)
class Sample:
    """An output and its request."""

    text: str
    tools: Any = None
    prompt: str | None = None
    finish_reason: str = "stop"
    row: int = 1
    """Its number in its file."""


Reading = tuple[int, int, int, int]
"""How well one output is read; the smallest is the best: markers of the catalogue that are left as text; valid calls,
negative; problems; characters that were read as markup, negative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """A format, and how well it reads the outputs."""

    name: str
    """Its name in the catalogue."""
    reasoning: str | None
    """Name of the reasoning format to combine it with; ``None``: its own, or none."""
    outputs: tuple[Reading, ...]
    """How well it reads each output."""
    readings: tuple[ParsedOutput, ...]
    """The message of each output."""
    begins_in_reasoning: bool
    """True if the format reads an output without any marker as reasoning."""
    engines: int
    """Number of engines that know the format."""
    loss: Reading = (0, 0, 0, 0)
    """How much worse it reads the outputs than the best reading of each."""

    @property
    def left_over(self) -> int:
        """Number of markers of the catalogue that are left in content and reasoning."""
        return sum(one[0] for one in self.outputs)

    @property
    def calls(self) -> int:
        """Number of calls that are valid."""
        return -sum(one[1] for one in self.outputs)

    @property
    def problems(self) -> int:
        """Number of calls that are not valid, of diagnostics, and of outputs with reasoning that has no marker."""
        return sum(one[2] for one in self.outputs)

    @property
    def markup(self) -> int:
        """Number of characters that were read as markup."""
        return -sum(one[3] for one in self.outputs)

    @property
    def parsed(self) -> ParsedOutput:
        """The message of the first output."""
        return self.readings[0]

    @property
    def format(self) -> str:
        """The name for ``--format`` and `OutputParser.named`, such as ``hermes+qwen3``."""
        return self.name if self.reasoning is None else f"{self.name}+{self.reasoning}"

    @property
    def rank(self) -> tuple[int, ...]:
        """Sorting key; the smallest is the best."""
        return (*self.loss, self.begins_in_reasoning, -self.engines)

    @property
    def is_evident(self) -> bool:
        """True if the outputs have something that the format explains: a call, or a marker."""
        return bool(self.calls or self.markup or any(one.reasoning for one in self.readings))

    @property
    def unread(self) -> str:
        """Text that the format leaves in content although it looks like a call, or like a pair of tags where nothing
        but the end of the turn was read; empty if it reads calls, or without any."""
        if self.calls:
            return ""
        texts = [one.content for one in self.readings if one.content]
        quoted = (text for text in texts if '"' in text)
        found = next((found for text in quoted if (found := _CALL.search(text)) is not None), None)
        if found is None and not any(one.reasoning for one in self.readings):
            found = next((found for text in texts if (found := _closed_tag(text)) is not None), None)
        return "" if found is None else found.group()

    def difference(self, other: Guess) -> int | None:
        """Return the index of the first output that the other format reads differently; ``None``: all are equal."""
        pairs = zip(self.readings, other.readings, strict=True)
        return next((i for i, (mine, its) in enumerate(pairs) if meaning(mine) != meaning(its)), None)


def _closed_tag(text: str) -> re.Match[str] | None:
    """Return the first tag whose close follows it."""
    tags = islice(_OPEN_TAG.finditer(text), _MOST_TAGS)
    return next((found for found in tags if text.find(f"</{found.group(1)}>", found.end()) >= 0), None)


def guess(text: str, tools: Sequence[Any] | None = None) -> list[Guess]:
    """Return all formats for a raw output, the best one first.

    Args:
        text: a whole raw output, special tokens included.
        tools: those of the request; a call of another tool then counts against a format.
    """
    if not isinstance(text, str):
        raise TypeError(f"guess() text: expected str, got {type(text).__name__}: {text!r:.200}")
    return guess_many([Sample(text, tools)])


def guess_many(samples: Sequence[Sample]) -> list[Guess]:
    """Return formats for raw outputs of one model, the best one first: all formats, or of many outputs the best ones.

    Raises:
        ValueError: there are no outputs.
    """
    if not samples:
        raise ValueError("guess_many() samples: expected at least one output")
    marked = [frozenset(marker for marker, _ in markers_in(one.text)) for one in samples]
    fitting = _fitting(frozenset().union(*marked))
    first = samples if len(samples) <= _VARIED else _varied(samples, marked)
    measured = [_measured_ways(entry, fitting, first) for entry in _listed()]
    best_of_each = (_best(ways) for ways in _compared(measured))
    ranked = sorted(best_of_each, key=lambda one: (one.rank, one.name))
    if first is samples:
        return ranked
    again = [[_measured(one.name, one.reasoning, one.engines, named(one.format), samples)] for one in ranked[:_BEST]]
    return sorted((one for [one] in _compared(again)), key=lambda one: (one.rank, one.name))


def is_clear(ranked: Sequence[Guess]) -> bool:
    """True if the best of these formats leaves no marker, and all that do as well read the outputs as it does."""
    best = ranked[0]
    alike = [one for one in ranked if one.loss == best.loss]
    return (
        best.is_evident
        and not best.left_over
        and not best.unread
        and all(best.difference(one) is None for one in alike)
    )


def of_another_kind(ranked: Sequence[Guess]) -> tuple[Guess, list[int]] | None:
    """Return the format, and the indices of the outputs, that it reads without a problem and the best format does not:
    the best leaves markers in them, or reads fewer calls. ``None`` without such samples."""
    best, found = ranked[0], None
    for one in ranked[1:]:
        pairs = enumerate(zip(best.outputs, one.outputs, strict=True))
        rows = [i for i, (mine, its) in pairs if its[0] == its[2] == 0 and its[:2] < mine[:2]]
        if len(rows) > (0 if found is None else len(found[1])):
            found = one, rows
    return found


def _compared(ways: Sequence[Sequence[Guess]]) -> list[list[Guess]]:
    """Compare each format with the best reading of each output, and note the loss.

    A model writes some outputs that its own format reads worse than another one does.
    """
    best = [min(readings) for readings in zip(*(one.outputs for group in ways for one in group), strict=True)]
    return [[replace(one, loss=_loss(one, best)) for one in group] for group in ways]


def _loss(one: Guess, best: Sequence[Reading]) -> Reading:
    """Return how much worse a format reads the outputs than the best reading of each.

    The worst tenth of the outputs does not count where only problems and the amount of markup differ, or where a format
    that reads enough other calls reports a problem in place of a call: a more lenient format reads damaged calls.
    """
    reads_calls = one.calls >= _TRIMMED
    slips: list[tuple[int, ...]] = []
    counted: list[tuple[int, ...]] = []
    for reading, ideal in zip(one.outputs, best, strict=True):
        loss = tuple(mine - least for mine, least in zip(reading, ideal, strict=True))
        is_damaged = reads_calls and reading[2] > 0
        (slips if loss[0] <= 0 and (loss[1] <= 0 or is_damaged) else counted).append(loss)
    slips.sort()
    counted += slips[: len(slips) - min(len(slips), len(best) // _TRIMMED)]
    left, calls, problems, markup = (sum(column) for column in zip((0, 0, 0, 0), *counted, strict=True))
    return left, calls, problems, markup


def _best(ways: Sequence[Guess]) -> Guess:
    """Return the best of a format as it is, which comes first, and with other reasoning.

    A format that has reasoning of its own keeps it where another leaves as many markers, calls and problems.
    """
    own, best = ways[0], min(ways, key=lambda one: one.rank)
    has_own = named(own.name).reasoning is not None
    return own if has_own and own.loss[:-1] == best.loss[:-1] else best


def meaning(parsed: ParsedOutput) -> tuple[Any, ...]:
    """Return the message of an output, without the ids of its calls."""
    calls = tuple((call.function.name, call.function.arguments) for call in parsed.tool_calls)
    return parsed.reasoning or "", parsed.content or "", calls


def _varied(samples: Sequence[Sample], marked: Sequence[frozenset[str]]) -> list[Sample]:
    """Return a few outputs: by turns one of each set of markers that outputs have."""
    groups: defaultdict[frozenset[str], list[Sample]] = defaultdict(list)
    for sample, markers in zip(samples, marked, strict=True):
        groups[markers].append(sample)
    depth = max(map(len, groups.values()))
    turns = (group[i] for i in range(depth) for group in groups.values() if i < len(group))
    return [sample for sample, _ in zip(turns, range(_VARIED), strict=False)]


def _listed() -> list[Entry]:
    """Return the entries with calls, and those of reasoning that have no calls of the same name."""
    listed = entries()
    tools = {entry.name for entry in listed if entry.kind == "tool"}
    return [entry for entry in listed if entry.kind == "tool" or entry.name not in tools]


def _fitting(markers: frozenset[str]) -> list[Entry]:
    """Return the reasoning entries that differ and whose closing marker is one of these, the best known first.

    Where nothing closes reasoning, those whose opening marker is: the model went on to its calls without closing it.
    """
    closed: dict[tuple[str, str, str], Entry] = {}
    opened: dict[tuple[str, str, str], Entry] = {}
    for entry in sorted(entries(), key=lambda entry: (-len(entry.engines), entry.name)):
        part = entry.format.reasoning
        if entry.kind != "reasoning" or part is None:
            continue
        opening = "" if part.open is None else part.open.text.strip()
        closing = part.close.text.strip()
        for marker, found in ((closing, closed), (opening, opened)):
            if marker in markers:
                found.setdefault((opening, closing, part.start), entry)
    return list((closed or opened).values())


def _measured_ways(entry: Entry, fitting: list[Entry], samples: Sequence[Sample]) -> list[Guess]:
    """Parse with a format as it is, and if it has calls, with each reasoning that may fit."""
    fmt = named(entry.name)
    engines = len(entry.engines)
    found = [_measured(entry.name, None, engines, fmt, samples)]
    for other in fitting if fmt.tools else ():
        try:
            combined = named(entry.name, reasoning=other.name)
        except IncompatibleFormatsError:
            continue
        found.append(_measured(entry.name, other.name, engines, combined, samples))
    return found


def _measured(name: str, reasoning: str | None, engines: int, fmt: Format, samples: Sequence[Sample]) -> Guess:
    parser = OutputParser.from_format(fmt)
    marks = _reasoning_markers(fmt)
    readings = [_parsed(parser, one) for one in samples]
    return Guess(
        name=name,
        reasoning=reasoning,
        outputs=tuple(_reading(one, parsed, marks) for one, parsed in zip(samples, readings, strict=True)),
        readings=tuple(readings),
        begins_in_reasoning=parser.parse(_PLAIN).reasoning is not None,
        engines=engines,
    )


def _parsed(parser: OutputParser, one: Sample) -> ParsedOutput:
    with no_warnings():  # of formats that nobody has chosen
        return parser.parse(
            one.text, tools=one.tools, prompt=one.prompt, finish_reason=one.finish_reason, spans=True, seed="guess"
        )


def _reading(one: Sample, parsed: ParsedOutput, marks: tuple[str, ...]) -> Reading:
    """Return how well a format read an output.

    A close of a call that the model wrote once too often is the format's own marker. It counts as markup: a format that
    reports it explains it no worse than one that takes it without a word.
    """
    left_over = sum(1 for text in (parsed.content, parsed.reasoning) for _ in markers_in(text or ""))
    valid = sum(call.status in _VALID for call in parsed.tool_calls)
    surplus = [d for d in parsed.diagnostics if d.code == "stray_close" and d.text.strip() not in marks]
    others = sum(d.code not in _NOT_COUNTED for d in parsed.diagnostics) - len(surplus)
    problems = len(parsed.tool_calls) - valid + others
    if parsed.reasoning and marks and one.finish_reason != "length":
        problems += not any(mark in one.text for mark in marks)
    markup = sum(span.end - span.start for span in parsed.spans if span.kind == "markup")
    return left_over, -valid, problems, -markup - sum(len(d.text) for d in surplus)


def _reasoning_markers(fmt: Format) -> tuple[str, ...]:
    """Return the markers that begin or end reasoning."""
    part = fmt.reasoning
    return () if part is None else tuple(text.strip() for text in spellings_of(part.open, part.close))
