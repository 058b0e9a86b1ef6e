"""Responses that clients may refer to later (``previous_response_id``, ``item_reference``).

* A store is bounded: by the bytes of its entries, and by the time that an entry is kept. The oldest go first.
* An entry belongs to the API key that made it. Other keys do not find it.
* Entries are in memory, or in an SQLite file that survives a restart and may be shared by processes of one machine.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import Any

import msgspec

from .errors import ApiError

__all__ = ["Kept", "ResponseStore"]


class Kept(msgspec.Struct):
    """A stored response."""

    response: dict[str, Any]
    items: list[dict[str, Any]]
    """The whole conversation before the response, as items."""


_DECODER = msgspec.json.Decoder(Kept)


class ResponseStore:
    """The stored responses of one gateway.

    Args:
        path: SQLite file; empty for memory.
        seconds: how long a response is kept; 0 stores none.
        limit: bytes of all responses.
        clock: seconds since the epoch.

    Raises:
        OSError: the file cannot be used.
    """

    def __init__(self, path: str, seconds: float, limit: int, clock: Callable[[], float] = time.time) -> None:
        self._seconds = seconds
        self._limit = limit
        self._clock = clock
        try:
            self._db = sqlite3.connect(path or ":memory:", isolation_level=None, timeout=5, check_same_thread=False)
            self._db.executescript(
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
                "CREATE TABLE IF NOT EXISTS responses"
                " (id TEXT PRIMARY KEY, owner TEXT, until REAL, size INTEGER, data BLOB);"
                "CREATE TABLE IF NOT EXISTS items (id TEXT PRIMARY KEY, response TEXT);"
                "CREATE INDEX IF NOT EXISTS by_time ON responses (until, size);"
                "CREATE INDEX IF NOT EXISTS by_response ON items (response)"
            )
        except sqlite3.Error as error:
            raise OSError(f"{path}: {error}") from None

    @property
    def on(self) -> bool:
        """True if responses are stored."""
        return self._seconds > 0

    def put(self, owner: str, kept: Kept) -> None:
        """Store a response, and remove what is too old or too much."""
        data = msgspec.json.encode(kept)
        if not self.on or len(data) > self._limit:
            return
        id = kept.response["id"]
        until = self._clock() + self._seconds
        with self._db:
            self._db.execute("BEGIN")
            self._db.execute(
                "INSERT OR REPLACE INTO responses VALUES (?, ?, ?, ?, ?)", (id, owner, until, len(data), data)
            )
            for item in kept.response["output"]:
                self._db.execute("INSERT OR REPLACE INTO items VALUES (?, ?)", (item["id"], id))
            self._trim()

    def _trim(self) -> None:
        now = self._clock()
        held = self._db.execute("SELECT coalesce(sum(size), 0) FROM responses").fetchone()[0]
        oldest = "SELECT id, until, size FROM responses ORDER BY until, rowid LIMIT 1"
        while (row := self._db.execute(oldest).fetchone()) is not None and (row[1] <= now or held > self._limit):
            self._remove(row[0])
            held -= row[2]

    def _remove(self, id: str) -> None:
        self._db.execute("DELETE FROM responses WHERE id = ?", (id,))
        self._db.execute("DELETE FROM items WHERE response = ?", (id,))

    def get(self, owner: str, id: str) -> Kept | None:
        """Return a stored response; ``None`` if it does not exist."""
        row = self._db.execute(
            "SELECT data FROM responses WHERE id = ? AND owner = ? AND until > ?", (id, owner, self._clock())
        ).fetchone()
        return None if row is None else _DECODER.decode(row[0])

    def item(self, owner: str, id: str) -> dict[str, Any] | None:
        """Return an item of the output of a stored response; ``None`` if it does not exist."""
        row = self._db.execute("SELECT response FROM items WHERE id = ?", (id,)).fetchone()
        kept = None if row is None else self.get(owner, row[0])
        return None if kept is None else next((item for item in kept.response["output"] if item["id"] == id), None)

    def delete(self, owner: str, id: str) -> bool:
        """Remove a response. Return True if there was one."""
        if self.get(owner, id) is None:
            return False
        with self._db:
            self._db.execute("BEGIN")
            self._remove(id)
        return True

    def expanded(self, owner: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return a request with the items that it refers to in their places.

        Raises:
            ApiError: a response or item is not stored here.
        """
        items = body.get("input")
        previous = body.get("previous_response_id")
        earlier: list[dict[str, Any]] = []
        if isinstance(previous, str):
            kept = self.get(owner, previous)
            if kept is None:
                raise _missing("previous_response_id", "response", previous)
            earlier = kept.items + kept.response["output"]
        if not earlier and not (isinstance(items, list) and any(map(_is_reference, items))):
            return body
        if isinstance(items, str):
            items = [{"type": "message", "role": "user", "content": items}]
        if not isinstance(items, list):
            return body
        return {**body, "input": [*earlier, *(self._resolved(owner, item, i) for i, item in enumerate(items))]}

    def _resolved(self, owner: str, item: Any, i: int) -> Any:
        if not _is_reference(item):
            return item
        found = self.item(owner, str(item.get("id")))
        if found is None:
            raise _missing(f"input[{i}].id", "item", str(item.get("id")))
        return found

    def keeper(self, owner: str, body: dict[str, Any]) -> Callable[[dict[str, Any]], None] | None:
        """Return the function that stores the response to a request; ``None`` if it is not to be stored.

        Args:
            body: the request, expanded.
        """
        if not self.on or body.get("store") is False:
            return None
        items = body.get("input")
        if isinstance(items, str):
            items = [{"type": "message", "role": "user", "content": items}]
        return lambda response: self.put(owner, Kept(response, items if isinstance(items, list) else []))

    def close(self) -> None:
        self._db.close()


def _is_reference(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "item_reference"


def _missing(param: str, kind: str, id: str) -> ApiError:
    problem = f"{param}: no {kind} {id[:64]!r} is stored here"
    return ApiError(400, problem, param=param, code=f"previous_{kind}_not_found")
