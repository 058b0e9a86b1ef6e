"""Tokens of a message: which token ids became which part of it.

* A token belongs to the region that its first character lies in. A token without characters belongs to the region at
  its place.
* So every token is in exactly one of the masks. Tokens that reach into another region are listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from itertools import groupby
from typing import Any, Final, get_args

import msgspec

from ...messages import ParsedOutput, Span, SpanKind

__all__ = ["Bridge", "ParsedTokens", "Straddling", "TokenSpan"]

_KINDS: Final[tuple[SpanKind, ...]] = get_args(SpanKind)


class TokenSpan(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Successive tokens of one kind and call. ``first`` and ``end`` (exclusive) are indices into the ids."""

    kind: SpanKind
    first: int
    end: int
    call: int | None = None


class Straddling(msgspec.Struct, frozen=True, gc=False):
    """A token that lies in several regions.

    ``token`` is its index, ``id`` its id; ``parts`` are its pieces, with offsets in characters of the output.
    """

    token: int
    id: int
    parts: list[Span]


class Bridge(msgspec.Struct, frozen=True, gc=False):
    """Ids to append after a sampled turn.

    ``text`` is what follows the end of the turn. ``proof`` is one of:

    * ``prefix``: the template renders the longer conversation as the shorter one and more;
    * ``turn``: it changes earlier text, but writes the same after any turn;
    * ``none``: what it writes depends on the turn, or the end of a turn is not one token.
    """

    ids: list[int]
    text: str
    proof: str


class ParsedTokens:
    """A whole output as a message, with the tokens of each part.

    Attributes:
        output: the message, with spans in characters.
        ids: the token ids.
        offsets: for each of them, the character of the output that holds its first byte, and the one after its last.
    """

    def __init__(self, output: ParsedOutput, ids: Sequence[int], offsets: Sequence[tuple[int, int]]) -> None:
        self.output = output
        self.ids: list[int] = list(ids)
        self.offsets: list[tuple[int, int]] = list(offsets)

    def __repr__(self) -> str:
        return f"<ParsedTokens of {len(self.ids)} tokens, {len(self.output.spans)} regions>"

    @cached_property
    def _places(self) -> list[int]:
        """The index of each token's region in the spans of the output."""
        spans = self.output.spans
        found = []
        at = 0
        for start, _ in self.offsets:
            while at < len(spans) - 1 and start >= spans[at].end:
                at += 1
            found.append(at)
        return found

    @cached_property
    def regions(self) -> list[Span]:
        """The region of each token.

        Raises:
            ValueError: the output was parsed without spans.
        """
        spans = self.output.spans
        if not spans and self.offsets and self.offsets[-1][1]:
            raise ValueError("the output was parsed without spans, so the regions of its tokens are not known")
        return [spans[at] if spans else Span(kind="markup", start=0, end=0) for at in self._places]

    @property
    def spans(self) -> list[TokenSpan]:
        """The regions in tokens, in order; regions in which no token begins are not listed."""
        parts = groupby(range(len(self.ids)), lambda token: (self.regions[token].kind, self.regions[token].call))
        return [TokenSpan(kind, (tokens := list(part))[0], tokens[-1] + 1, call) for (kind, call), part in parts]

    @property
    def straddling(self) -> list[Straddling]:
        """Tokens that lie in several regions."""
        spans = self.output.spans
        found = []
        for token, ((start, end), at) in enumerate(zip(self.offsets, self._places, strict=True)):
            parts: list[Span] = []
            while at < len(spans) and spans[at].start < end:
                span = spans[at]
                parts.append(Span(span.kind, max(span.start, start), min(span.end, end), span.call))
                at += 1
            if len(parts) > 1:
                found.append(Straddling(token, self.ids[token], parts))
        return found

    def mask(self, kind: SpanKind, call: int | None = None) -> list[bool]:
        """Return True for each token of a region.

        Args:
            kind: ``reasoning``, ``content``, ``name``, ``id``, ``arguments``, ``markup`` or ``dropped``.
            call: only the name, id or arguments of the call with this index.

        Raises:
            ValueError: an unknown kind; lists the valid ones.
        """
        if kind not in _KINDS:
            raise ValueError(f"mask() kind: {kind!r} is not one of: {', '.join(map(repr, _KINDS))}")
        return [region.kind == kind and (call is None or region.call == call) for region in self.regions]

    def masks(self) -> dict[SpanKind, list[bool]]:
        """Return the mask of each kind; every token is in exactly one of them."""
        return {kind: self.mask(kind) for kind in _KINDS}

    def arrays(self) -> dict[SpanKind, Any]:
        """Return the masks as NumPy arrays of bool.

        Raises:
            ModuleNotFoundError: NumPy is not installed.
        """
        numpy = import_module("numpy")
        return {kind: numpy.array(mask, dtype=bool) for kind, mask in self.masks().items()}
