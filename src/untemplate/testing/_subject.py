"""Run one case in several ways, add up deltas, and report a broken law."""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from .._internal.deltas import assemble
from .._internal.output_parser import OutputParser
from .._internal.stream import Stream
from ..errors import UntemplateError
from ..format import Format
from ..formats import named
from ..messages import DeltaMessage, Item, ParsedOutput
from ..policy import Policy

SEED: Final = "untemplate.testing"
_RETRACTED: Final = "nothing is retracted"

Parsed = tuple[tuple[str, ...], ...]
"""A message in order: ``("reasoning", text)``, ``("content", text)``, ``("call", id, name, arguments)``."""


class LawBroken(UntemplateError, AssertionError):
    """A broken law. ``law`` names it; ``chunks`` is the smallest split that breaks it, if a split does."""

    def __init__(self, law: str, message: str, chunks: tuple[str, ...] | None = None) -> None:
        super().__init__(message)
        self.law = law
        self.chunks = chunks


def fold(deltas: Iterable[DeltaMessage]) -> Parsed:
    """Return the message that deltas add up to, in order.

    Raises:
        LawBroken: a delta that no client could add: a call continued before it began, begun twice, or begun without id,
            type or name; an empty delta.
    """
    checked = []
    begun = 0
    for delta in deltas:
        begun = _check_delta(delta, begun)
        checked.append(delta)
    return as_parsed(assemble(checked).items)


def _check_delta(delta: DeltaMessage, begun: int) -> int:
    """Check a delta that follows on ``begun`` calls, and return how many have begun after it."""
    if delta.reasoning is None and delta.content is None and not delta.tool_calls:
        raise LawBroken(_RETRACTED, f"an empty delta: {delta!r}")
    for kind, text in (("reasoning", delta.reasoning), ("content", delta.content)):
        if text == "":
            raise LawBroken(_RETRACTED, f"an empty {kind} delta")
    for piece in delta.tool_calls or ():
        named = piece.function is not None and bool(piece.function.name)
        if piece.index == begun:
            if not piece.id or piece.type != "function" or not named:
                raise LawBroken(_RETRACTED, f"a call begins without id, type or name: {piece!r}")
            begun += 1
        elif piece.index != begun - 1:
            raise LawBroken(_RETRACTED, f"call {piece.index} goes on after {begun} have begun")
        elif piece.id or piece.type or named:
            raise LawBroken(_RETRACTED, f"a call's id, type or name comes again: {piece!r}")
    return begun


def as_parsed(items: Iterable[Item]) -> Parsed:
    """Return the items of a message as plain tuples."""
    return tuple(
        (i.type, i.text or "")
        if i.call is None
        else ("call", i.call.id, i.call.function.name, i.call.function.arguments)
        for i in items
    )


@dataclass(slots=True)
class Outcome:
    """Result of feeding an output in one way."""

    folded: Parsed
    early: Parsed
    """The message before ``finish``."""
    result: ParsedOutput

    def same(self) -> dict[str, Any]:
        """Return everything that must not depend on the split, by name."""
        return {
            "message": self.folded,
            "finish_reason": self.result.finish_reason,
            "calls": [(c.status, c.model_id) for c in self.result.tool_calls],
            "diagnostics": [(d.code, d.start, d.end) for d in self.result.diagnostics],
            "spans": [(s.kind, s.start, s.end, s.call) for s in self.result.spans],
        }


class Subject:
    """A case and the ways to run it."""

    def __init__(
        self,
        format: Format | str | OutputParser,
        raw: str,
        reasoning: str | None,
        special_tokens: Sequence[str] | None,
        context: dict[str, Any],
        finish_reason: str,
        cuts: int | None,
    ) -> None:
        if isinstance(format, OutputParser):
            if reasoning is not None or special_tokens is not None:
                raise ValueError("reasoning and special_tokens cannot be given together with a parser")
            self.parser = format
        else:
            self.parser = _parser_of(format, reasoning, None if special_tokens is None else tuple(special_tokens))
        self.format = self.parser.format
        self.raw = raw
        self.context = {k: v for k, v in context.items() if v is not None and v != ""}
        self.finish_reason = finish_reason
        self.exhaustive = cuts is None
        self.cuts = cuts
        policy: Policy | None = self.context.get("policy")
        inline = self.format.reasoning is not None and self.format.reasoning.inline
        policy = self.parser.policy if policy is None else policy.resolved()
        self.default_policy = policy.needs_no_filter and not inline
        """True if no policy drops, trims or repairs anything, and reasoning stays apart from content."""
        self.random = random.Random(zlib.crc32(raw.encode("utf-8", "surrogatepass")))
        self.whole = self.run([raw])

    def run(
        self,
        chunks: Iterable[str],
        *,
        parser: OutputParser | None = None,
        ids: Sequence[Sequence[int]] | None = None,
        finish_reason: str | None = None,
        **changes: Any,
    ) -> Outcome:
        """Feed the chunks, with the ids of each if there are any. ``changes`` replace parts of the context."""
        context = {**self.context, **changes}
        stream = (parser or self.parser).stream(collect=True, spans=True, seed=SEED, **context)
        deltas: list[DeltaMessage] = []
        if ids is None:
            for chunk in chunks:
                deltas += stream.feed(chunk)
        else:
            for chunk, new in zip(chunks, ids, strict=True):
                deltas += stream.feed(chunk, new)
        early = fold(deltas)
        deltas += stream.finish(finish_reason or self.finish_reason)
        _closed(stream)
        return Outcome(fold(deltas), early, stream.result())

    def places(self, size: int) -> Iterable[int]:
        """Return where to split: everywhere, or in a long output at the edges of words."""
        many = self.cuts
        if many is None or size <= many:
            return range(1, size)
        edges = {m.start() for m in re.finditer(r"(?<=\W)|\W", self.raw) if 0 < m.start() < size}
        inner = set(range(1, size)) - edges
        chosen = set(self.random.sample(sorted(edges), min(len(edges), many * 3 // 4)))
        chosen |= set(self.random.sample(sorted(inner), min(len(inner), many - len(chosen))))
        return sorted(chosen)

    def fail(self, law: str, problem: str, chunks: Sequence[str] | None = None) -> LawBroken:
        lines = [f"{law}: {problem}", f"  format  {self.format.name}", f"  raw     {short(self.raw, 2000)}"]
        lines += [f"  {k:<7} {short(v)}" for k, v in self.context.items()]
        if chunks is not None:
            lines.append(f"  cut     {short(list(chunks), 2000)}")
        return LawBroken(law, "\n".join(lines), None if chunks is None else tuple(chunks))


@lru_cache(maxsize=128)
def _parser_of(format: Format | str, reasoning: str | None, special: tuple[str, ...] | None) -> OutputParser:
    fmt = named(format, reasoning=reasoning, files=True) if isinstance(format, str) else format
    if isinstance(format, Format) and reasoning is not None:
        raise ValueError("reasoning= needs a name, not a Format")
    return OutputParser.from_format(fmt if special is None else replace(fmt, special_tokens=special))


def _closed(stream: Stream) -> None:
    """Check that ``finish`` may be called again, and that ``feed`` after it raises."""
    again = stream.finish()
    if again:
        raise LawBroken("finish is idempotent", f"the second finish() returned {again!r}")
    try:
        stream.feed("x")
    except RuntimeError:
        return
    raise LawBroken("finish is final", "feed() after finish() does not raise RuntimeError")


def short(value: Any, limit: int = 600) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def difference(expected: Any, got: Any) -> str:
    return f"\n    expected {short(expected, 2000)}\n    got      {short(got, 2000)}"
