"""The interface between the gateway and an API dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from untemplate.messages import DeltaMessage

from ..errors import ApiError
from ..generation import Ended, Generation, Meta, TokenLogprob, Usage
from .fields import Open


class Writer(Protocol):
    """Writes one streamed response. Each method returns the bytes to send; empty for nothing.

    ``begin`` comes first; then any number of ``delta``, and one ``finish`` for each choice, in any order between
    choices; then ``end``. After ``error`` nothing follows: it closes what is open as far as the dialect can.
    """

    media_type: str
    ping: bytes
    """Bytes that keep a silent connection alive and mean nothing; empty if the media type allows no ping."""

    def begin(self, usage: Usage) -> bytes:
        """Begin the response. ``usage`` holds the tokens of the prompt, 0 if they are not known yet."""
        ...

    def delta(
        self, choice: int, delta: DeltaMessage, logprobs: list[TokenLogprob] | None = None, ids: Sequence[int] = ()
    ) -> bytes:
        """Write one delta, which has either one of the texts or tool calls.

        Args:
            ids: of the tokens since the last delta, if the request asks for them.
        """
        ...

    def finish(self, ended: Ended) -> bytes: ...

    def end(self, usage: Usage) -> bytes: ...

    def error(self, error: ApiError) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Dialect:
    """One endpoint of one API."""

    name: str
    """Name of the API."""
    request: type[Open]
    """The fields of a request."""
    read: Callable[..., Generation]
    """Read the JSON object of a request; unknown fields go to the `Notes` that may be the second argument. Raises
    `ApiError` for a field that is wrong or not supported."""
    respond: Callable[[Generation, Sequence[Ended], Usage, Meta], dict[str, Any]]
    """Return the whole response as the JSON object to send."""
    writer: Callable[[Generation, Meta], Writer]
    """Return the writer of a streamed response."""
    error: Callable[[ApiError], dict[str, Any]]
    """Return the body of a response that failed before it began."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Field of a `Generation` → the client's name of it, where they differ."""
