"""The interface between the gateway and an API dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import ApiError
from ..generation import Ended, Generation, Meta, Usage
from .encoding import Writer
from .fields import Open


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
