"""What the gateway wants of an API dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ...messages import DeltaMessage
from ..errors import ApiError
from ..generation import Ended, Generation, Meta, TokenLogprob, Usage

__all__ = ["Dialect", "Writer"]


class Writer(Protocol):
    """Writes one streamed response. Each method returns the bytes to send; empty for nothing.

    ``begin`` comes first; then any number of ``delta``, and one ``finish`` for each choice, in any order between
    choices; then ``end``. After ``error`` nothing follows: it closes what is open as far as the dialect can.
    """

    media_type: str

    def begin(self, usage: Usage) -> bytes:
        """``usage``: what is known before the first token (tokens of the prompt; 0 if they are not known yet)."""
        ...

    def delta(self, choice: int, delta: DeltaMessage, logprobs: list[TokenLogprob] | None = None) -> bytes:
        """One delta: only one of its texts is set, or calls."""
        ...

    def finish(self, ended: Ended) -> bytes: ...

    def end(self, usage: Usage) -> bytes: ...

    def error(self, error: ApiError) -> bytes: ...


class Dialect(Protocol):
    """One endpoint of one API."""

    name: str

    def read(self, body: dict[str, Any]) -> Generation:
        """The request.

        Args:
            body: the JSON object of the request.

        Raises:
            ApiError: a field that is wrong, or that can be neither obeyed nor ignored; names it.
        """
        ...

    def respond(self, request: Generation, ended: Sequence[Ended], usage: Usage, meta: Meta) -> dict[str, Any]:
        """The whole response, as the JSON object that is sent."""
        ...

    def writer(self, request: Generation, meta: Meta) -> Writer:
        """The streamed response."""
        ...

    def error(self, error: ApiError) -> dict[str, Any]:
        """The body of a response that failed before it began."""
        ...
