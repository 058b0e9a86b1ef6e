"""Names of places in a request, for messages."""

from __future__ import annotations

__all__ = ["at", "whose"]

_LONGEST_PATH = 200


def whose(tool: str) -> str:
    """Return the owner of a schema: the tool, or ``response_format`` if the name is empty."""
    return f"tool {tool!r}" if tool else "response_format"


def at(path: str) -> str:
    """Return the place inside a schema; empty for the schema itself."""
    return f" at {path if len(path) <= _LONGEST_PATH else path[:_LONGEST_PATH] + '…'}" if path else ""
