"""Server-sent events, read incrementally from bytes."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["EventReader"]


class EventReader:
    """Splits a stream of bytes into the data of its server-sent events. Other fields and comments are ignored.

    Args:
        limit: most bytes of one event.
        error: makes the exception for an event that is longer.
    """

    def __init__(self, limit: int = 16 * 1024 * 1024, *, error: Callable[[str], Exception] = ValueError) -> None:
        self._limit = limit
        self._error = error
        self._held: list[bytes] = []
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the events that the chunk completes.

        Raises:
            ValueError: an event is too long; or what ``error`` makes.
        """
        if b"\n" not in chunk:
            self._hold(chunk)
            return []
        if self._held:
            self._held.append(chunk)
            chunk = b"".join(self._held)
            self._held.clear()
        found: list[bytes] = []
        data = self._data
        rows = chunk.split(b"\n")
        rest = rows.pop()
        for row in rows:
            if row[:6] == b"data: ":
                data.append(row[6:])
            elif row[:5] == b"data:":
                data.append(row[5:])
            elif data and row in (b"", b"\r"):
                found.append(self._event())
        self._size = sum(map(len, data))
        self._hold(rest)
        return found

    def end(self) -> list[bytes]:
        """Return the last event if it was not ended: some servers omit the last empty line."""
        found = self.feed(b"\n\n") if self._held or self._data else []
        return [event for event in found if event]

    def _event(self) -> bytes:
        data = self._data
        event = data[0] if len(data) == 1 else b"\n".join([row.removesuffix(b"\r") for row in data])
        data.clear()
        return event.removesuffix(b"\r")

    def _hold(self, rest: bytes) -> None:
        if rest:
            self._held.append(rest)
        self._size += len(rest)
        if self._size > self._limit:
            raise self._error(f"an event is longer than {self._limit} bytes")
