"""Ranks the formats of the catalogue for an output whose format is not known.

Every format parses the output. The best one leaves no marker in the content, reads the most calls, and has nothing to
report. Of equal readings, one that begins in content comes before one that begins in reasoning, which would take a
plain answer for reasoning. Then the number of engines that know the format decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .backends.recognition import markers_in
from .format import Format
from .formats import Entry, IncompatibleFormatsError, entries, named
from .messages import ParsedOutput
from .output_parser import OutputParser

__all__ = ["Guess", "guess"]

_VALID = ("ok", "recovered")
_PLAIN = "Hello there."
"""An answer without any marker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """A format, and how well it reads the output."""

    name: str
    """Its name in the catalogue."""
    reasoning: str | None
    """Name of the reasoning format to combine it with; ``None``: its own, or none."""
    left_over: int
    """Number of markers of the catalogue that are left in the content."""
    calls: int
    """Number of calls that are valid."""
    problems: int
    """Number of calls that are not valid, and of diagnostics."""
    markup: int
    """Number of characters that were read as markup."""
    parsed: ParsedOutput
    begins_in_reasoning: bool
    """True if the format reads an output without any marker as reasoning."""
    engines: int
    """Number of engines that know the format."""

    @property
    def format(self) -> str:
        """The name for ``--format`` and `OutputParser.named`, such as ``hermes+qwen3``."""
        return self.name if self.reasoning is None else f"{self.name}+{self.reasoning}"

    @property
    def rank(self) -> tuple[int, ...]:
        """Sorting key; the smallest is the best."""
        reading = (self.left_over, -self.calls, self.problems, -self.markup)
        return (*reading, self.begins_in_reasoning, -self.engines)

    @property
    def is_evident(self) -> bool:
        """True if the output has something that the format explains: a call, or a marker."""
        return bool(self.calls or self.parsed.reasoning or self.markup)


def guess(text: str, tools: Sequence[Any] | None = None) -> list[Guess]:
    """Return all formats for a raw output, the best one first.

    Args:
        text: a whole raw output, special tokens included.
        tools: those of the request; a call of another tool then counts against a format.
    """
    if not isinstance(text, str):
        raise TypeError(f"guess() text: expected str, got {type(text).__name__}: {text!r:.200}")
    fitting = _fitting({marker for marker, _ in markers_in(text)})
    found = [min(_readings(entry, fitting, text, tools), key=lambda one: one.rank) for entry in _listed()]
    return sorted(found, key=lambda one: (one.rank, one.name))


def _listed() -> list[Entry]:
    """Return the entries with calls, and those of reasoning that have no calls of the same name."""
    listed = entries()
    tools = {entry.name for entry in listed if entry.kind == "tool"}
    return [entry for entry in listed if entry.kind == "tool" or entry.name not in tools]


def _fitting(markers: set[str]) -> list[Entry]:
    """Return the reasoning entries that differ and whose closing marker is one of these, the best known first."""
    distinct: dict[tuple[str, str, str], Entry] = {}
    for entry in sorted(entries(), key=lambda entry: (-len(entry.engines), entry.name)):
        part = entry.format.reasoning
        if entry.kind == "reasoning" and part is not None and part.close.text.strip() in markers:
            opening = "" if part.open is None else part.open.text.strip()
            distinct.setdefault((opening, part.close.text.strip(), part.start), entry)
    return list(distinct.values())


def _readings(entry: Entry, fitting: list[Entry], text: str, tools: Sequence[Any] | None) -> Iterator[Guess]:
    """Parse with a format. One that has calls and no reasoning is also combined with reasoning that may fit."""
    fmt = named(entry.name)
    yield _measured(entry, None, fmt, text, tools)
    if fmt.reasoning is not None or not fmt.tools:
        return
    for other in fitting:
        try:
            combined = named(entry.name, reasoning=other.name)
        except IncompatibleFormatsError:
            continue
        yield _measured(entry, other.name, combined, text, tools)


def _measured(entry: Entry, reasoning: str | None, fmt: Format, text: str, tools: Sequence[Any] | None) -> Guess:
    parser = OutputParser.from_format(fmt)
    parsed = parser.parse(text, tools=tools, spans=True, seed="guess")
    valid = sum(call.status in _VALID for call in parsed.tool_calls)
    return Guess(
        name=entry.name,
        reasoning=reasoning,
        left_over=sum(1 for _ in markers_in(parsed.content or "")),
        calls=valid,
        problems=len(parsed.tool_calls) - valid + sum(d.code != "foreign_marker" for d in parsed.diagnostics),
        markup=sum(span.end - span.start for span in parsed.spans if span.kind == "markup"),
        parsed=parsed,
        begins_in_reasoning=parser.parse(_PLAIN).reasoning is not None,
        engines=len(entry.engines),
    )
