"""StreamBackend: what a Stream needs of the parser of one output."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from ...messages import DeltaMessage, ParsedOutput
from ..machine.mypyc_compat import mypyc_attr
from ..machine.snapshot import Snapshot

__all__ = ["StreamBackend"]


@mypyc_attr(allow_interpreted_subclasses=True)
class StreamBackend(ABC):
    """Parses one output for a :class:`Stream`. ``feed``, ``finish`` and ``has_calls`` are required."""

    @abstractmethod
    def feed(self, text: str, token_ids: Sequence[int]) -> list[DeltaMessage]:
        """Take the next part of the output and return the deltas that it completes."""

    def feed_tokens(self, text: str, token_ids: Sequence[int], places: Sequence[int]) -> list[DeltaMessage]:
        """Take the text of exactly these ids; ``places`` are those in the text where special tokens begin."""
        return self.feed(text, token_ids)

    @abstractmethod
    def finish(self, finish_reason: str | None) -> list[DeltaMessage]:
        """End the output and return the remaining deltas. Called once."""

    @property
    @abstractmethod
    def has_calls(self) -> bool:
        """True if the output has calls so far."""

    @property
    def has_whole_calls(self) -> bool:
        """True if a call of the output has ended by itself."""
        return False

    @property
    def ends_in_cut_call(self) -> bool:
        """True if the last call of the output has not ended by itself."""
        return False

    @property
    def in_call(self) -> bool:
        """True while the output is inside what may be a call."""
        return False

    @property
    def in_reasoning(self) -> bool:
        """True while the output is inside reasoning."""
        return False

    @property
    def marked(self) -> Sequence[tuple[int, int, int]]:
        """(kind, start, end) of each stretch of the output so far, where spans are kept."""
        return ()

    @property
    def snapshot(self) -> Snapshot | None:
        """The place in the output and what is held back; ``None`` if this backend has no machine."""
        return None

    def accept(self, delta: DeltaMessage) -> list[DeltaMessage]:
        """Take a delta that somebody else has parsed, and return the deltas that can be sent now."""
        return [delta]

    def complete(self, result: ParsedOutput) -> None:  # noqa: B027 - optional
        """Add to a result what deltas do not carry: statuses of calls, diagnostics, spans."""
