"""Warnings about calls that a policy dropped, or that are passed on although they are not valid.

A warning has the tool's name and the reason, and nothing else of the output: arguments may be private.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from ...messages import CallStatus
    from ..schemas.validation import Problem

__all__ = ["INVALID", "no_warnings", "reason_of", "warn_of_call"]

_silent: Final = ContextVar("untemplate_silent", default=False)
_MAX_NAME: Final = 80
_MAX_PROBLEMS: Final = 3

INVALID: Final[dict[CallStatus, str]] = {
    "incomplete": "the output ended inside it",
    "invalid_json": "its arguments are not a JSON object",
    "unknown_tool": "the tool was not offered",
    "invalid_arguments": "its arguments do not fit the tool's schema",
}
"""Statuses of calls that must not run as they are, and the reason."""


def reason_of(status: CallStatus, problems: Iterable[Problem] = ()) -> str:
    """Return the reason of a status, and for invalid arguments where the first problems are."""
    reason = INVALID.get(status, status)
    if status != "invalid_arguments":
        return reason
    places = [f"{p.path} {p.slug}" for p in problems if p.slug != "schema"][:_MAX_PROBLEMS]
    return f"{reason} ({', '.join(places)})" if places else reason


def warn_of_call(fate: Literal["dropped", "kept"], name: str, reason: str) -> None:
    """Log a warning. The name is the model's, so it is escaped and cut."""
    if not _silent.get():
        from ..log import logger  # every first parse would pay for its import

        logger().warning("%s call of %s: %s", fate, ascii(name[:_MAX_NAME]), reason)


@contextmanager
def no_warnings() -> Iterator[None]:
    """Log none of these warnings within the block: it parses an output only to look at it."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)
