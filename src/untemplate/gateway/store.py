"""Responses that clients may refer to later (``previous_response_id``, ``item_reference``).

* A store is bounded: by the bytes of its entries, and by the time that an entry is kept. The oldest go first.
* An entry belongs to the API key that made it. Other keys do not find it.
* `storage` keeps the entries: in memory, in an SQLite file, or in Redis.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from .errors import ApiError
from .storage import open_storage

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
        path: SQLite file or ``redis://`` URL; empty for memory.
        seconds: how long a response is kept; 0 stores none.
        limit: bytes of all responses.
        clock: seconds since the epoch.

    Raises:
        SettingsError: the file or the server cannot be used.
    """

    def __init__(self, path: str, seconds: float, limit: int, clock: Callable[[], float] = time.time) -> None:
        self._seconds = seconds
        self._limit = limit
        self._storage = open_storage(path, seconds, limit, clock)

    @property
    def on(self) -> bool:
        """True if responses are stored."""
        return self._seconds > 0

    def put(self, owner: str, kept: Kept) -> None:
        """Store a response, and remove what is too old or too much."""
        data = msgspec.json.encode(kept)
        if not self.on or len(data) > self._limit:
            return
        self._storage.put(kept.response["id"], owner, data, [item["id"] for item in kept.response["output"]])

    def get(self, owner: str, id: str) -> Kept | None:
        """Return a stored response; ``None`` if it does not exist."""
        data = self._storage.get(id, owner)
        return None if data is None else _DECODER.decode(data)

    def item(self, owner: str, id: str) -> dict[str, Any] | None:
        """Return an item of the output of a stored response; ``None`` if it does not exist."""
        response = self._storage.entry_of(id)
        kept = None if response is None else self.get(owner, response)
        return None if kept is None else next((item for item in kept.response["output"] if item["id"] == id), None)

    def delete(self, owner: str, id: str) -> bool:
        """Remove a response. Return True if there was one."""
        if self.get(owner, id) is None:
            return False
        self._storage.remove(id)
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
        self._storage.close()


def _is_reference(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "item_reference"


def _missing(param: str, kind: str, id: str) -> ApiError:
    problem = f"{param}: no {kind} {id[:64]!r} is stored here"
    return ApiError(400, problem, param=param, code=f"previous_{kind}_not_found")
