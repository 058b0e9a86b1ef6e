"""Responses that clients may refer to later (``previous_response_id``, ``item_reference``).

* A store is bounded: by the bytes of its responses, and by the time that one is kept. The oldest go first.
* A response belongs to the API key that made it. Other keys do not find it.
* A request that refers to responses costs as much as one that contains them: each is read once, the number of
  references and their bytes are bounded, and all of it happens in a thread.
* `storage` keeps them: in memory, in an SQLite file, or in Redis.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from .errors import ApiError, bad_request
from .storage import RedisStorage, SqliteStorage, StorageError

_log: Final = logging.getLogger("untemplate.gateway")


class Kept(msgspec.Struct):
    """A stored response."""

    response: dict[str, Any]
    items: list[dict[str, Any]]
    """The whole conversation before the response, as items."""


class _Response(msgspec.Struct):
    """A stored response without the conversation before it."""

    response: dict[str, Any]


UNFINISHED: Final = ("queued", "in_progress")
"""Statuses of responses that are still being generated."""
_DECODER = msgspec.json.Decoder(Kept)
_RESPONSE = msgspec.json.Decoder(_Response)


class ResponseStore:
    """The stored responses of one gateway.

    Args:
        path: SQLite file or ``redis://`` URL; empty for memory.
        seconds: how long a response is kept; 0 stores none.
        limit: bytes of all responses.
        clock: seconds since the epoch.
        most: references of one request.
        most_bytes: bytes of the items that one request refers to.

    Raises:
        SettingsError: the file or the server cannot be used.
    """

    def __init__(
        self,
        path: str,
        seconds: float,
        limit: int,
        clock: Callable[[], float] = time.time,
        *,
        most: int = 4096,
        most_bytes: int = 32 << 20,
    ) -> None:
        self._seconds = seconds
        self._limit = limit
        self._most = most
        self._most_bytes = most_bytes
        self._failing = False
        self._changing = threading.Lock()
        redis = path.startswith(("redis://", "rediss://", "unix://"))
        self._storage = RedisStorage(path, seconds) if redis else SqliteStorage(path, seconds, limit, clock)

    @property
    def on(self) -> bool:
        """True if responses are stored."""
        return self._seconds > 0

    def put(self, owner: str, kept: Kept) -> bool:
        """Store a response, and remove what is too old or too much. Return False if it could not be stored: the storage
        failed, which the log has once, or it is too large.
        """
        data = msgspec.json.encode(kept)
        if not self.on or len(data) > self._limit:
            return False
        try:
            self._storage.put(owner, kept.response["id"], data, [item["id"] for item in kept.response["output"]])
        except StorageError as error:
            if not self._failing:
                _log.error("response_store: %s; until it works again, responses are not stored", error)
            self._failing = True
            return False
        self._failing = False
        return True

    def refusal(self, param: str) -> ApiError:
        """Return the error for what `put` has just not stored, where nothing else can be answered."""
        if self._failing:
            return _unavailable("changed")
        return bad_request(param, "cannot be stored: it is too large, or the operator stores none")

    def get(self, owner: str, id: str) -> Kept | None:
        """Return a stored response; ``None`` if it does not exist.

        Raises:
            ApiError: 503, the storage fails.
        """
        with _reading():
            data = self._storage.get(owner, id)
        return None if data is None else _DECODER.decode(data)

    def item(
        self, owner: str, id: str, known: dict[str, dict[str, dict[str, Any]]] | None = None
    ) -> dict[str, Any] | None:
        """Return an item of the output of a stored response; ``None`` if it does not exist.

        Args:
            known: items of the responses that were read before, by the ids of both; further ones are added.
        """
        known = {} if known is None else known
        with _reading():
            response = self._storage.response_of(id)
        if response is None:
            return None
        if response not in known:
            with _reading():
                data = self._storage.get(owner, response)
            output = [] if data is None else _RESPONSE.decode(data).response["output"]
            known[response] = {item["id"]: item for item in output}
        return known[response].get(id)

    def delete(self, owner: str, id: str) -> bool:
        """Remove a response. Return True if there was one."""
        kept = self.get(owner, id)
        if kept is None:
            return False
        try:
            self._storage.remove(owner, id, [item["id"] for item in kept.response["output"]])
        except StorageError as error:
            raise _unavailable("changed", str(error)) from None
        return True

    def finish(self, owner: str, kept: Kept) -> bool:
        """Store a response again that was generated in the background, unless it was cancelled or deleted meanwhile.
        Return False if it could not be stored.
        """
        try:
            now = self.get(owner, kept.response["id"])
        except ApiError:
            return False
        return now is None or now.response["status"] not in UNFINISHED or self.put(owner, kept)

    def change(self, owner: str, id: str, change: Callable[[Kept], None]) -> Kept | None:
        """Change a conversation, and return it; ``None`` if it could not be stored. Changes come one after another.

        Raises:
            ApiError: 503, the storage fails; or ``change`` raised it.
        """
        with self._changing:
            kept = self.get(owner, id)
            if kept is not None:
                change(kept)
            return kept if kept is not None and self.put(owner, kept) else None

    async def expanded(self, owner: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return a request with the items that it refers to in their places.

        Raises:
            ApiError: a response or item is not stored here, or they are too many or too large.
        """
        items = body.get("input")
        references = sum(map(_is_reference, items)) if isinstance(items, list) else 0
        if references > self._most:
            raise ApiError(400, f"input: {references} references are more than {self._most}", param="input")
        earlier = body.get("previous_response_id"), _conversation(body)
        if not references and not any(isinstance(one, str) for one in earlier):
            return body
        if all(isinstance(one, str) for one in earlier):
            raise ApiError(400, "conversation: excludes previous_response_id", param="conversation")
        return await asyncio.to_thread(self._expanded, owner, body)

    def _expanded(self, owner: str, body: dict[str, Any]) -> dict[str, Any]:
        items = body.get("input")
        previous, conversation = body.get("previous_response_id"), _conversation(body)
        earlier: list[dict[str, Any]] = []
        if isinstance(conversation, str):
            kept = self.get(owner, conversation)
            if kept is None or not conversation.startswith("conv_"):
                problem = f"conversation: no conversation {conversation[:64]!r} is stored here"
                raise ApiError(404, problem, param="conversation", code="conversation_not_found")
            earlier = kept.items
        if isinstance(previous, str):
            kept = self.get(owner, previous)
            if kept is None:
                raise _missing("previous_response_id", "response", previous)
            if kept.response.get("status") in UNFINISHED:
                problem = f"previous_response_id: the response {previous[:64]!r} has not ended"
                raise ApiError(400, problem, param="previous_response_id")
            earlier = kept.items + kept.response["output"]
        if not isinstance(items, str | list):
            return body
        return {**body, "input": [*earlier, *self._resolved(owner, _items(items))]}

    def _resolved(self, owner: str, items: list[Any]) -> Iterator[Any]:
        """Yield items, and for references what they refer to."""
        known: dict[str, dict[str, dict[str, Any]]] = {}
        found: dict[str, tuple[dict[str, Any], int]] = {}
        size = 0
        for i, item in enumerate(items):
            if not _is_reference(item):
                yield item
                continue
            id = str(item.get("id"))
            if id not in found:
                meant = self.item(owner, id, known)
                if meant is None:
                    raise _missing(f"input[{i}].id", "item", id)
                found[id] = meant, len(msgspec.json.encode(meant))
            size += found[id][1]
            if size > self._most_bytes:
                problem = f"input: the items that it refers to have more than {self._most_bytes} bytes"
                raise ApiError(413, problem, param="input", code="request_too_large")
            yield found[id][0]

    def keeper(
        self, owner: str, body: dict[str, Any], new: Any = None, *, again: bool = False
    ) -> Callable[[dict[str, Any]], bool] | None:
        """Return the function that stores the response to a request, as `put` does; ``None`` if it is not to be stored.

        Args:
            body: the request, expanded.
            new: its input before it was expanded, which is added to its conversation, and the output with it.
            again: True if the response is stored already, because it is generated in the background.
        """
        if not self.on or body.get("store") is False:
            return None
        items, conversation = _items(body.get("input")), _conversation(body)
        added = items[len(items) - len(_items(new)) :]

        def keep(response: dict[str, Any]) -> bool:
            stored = (self.finish if again else self.put)(owner, Kept(response, items))
            if not isinstance(conversation, str):
                return stored
            new = with_ids([*added, *response["output"]])
            try:
                return self.change(owner, conversation, lambda kept: kept.items.extend(new)) is not None and stored
            except ApiError:  # the storage fails
                return False

        return keep

    def close(self) -> None:
        self._storage.close()


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except StorageError as error:
        raise _unavailable("read", str(error)) from None


def _unavailable(use: str, detail: str = "") -> ApiError:
    problem, headers = f"the stored responses cannot be {use} now; try again", {"Retry-After": "5"}
    return ApiError(503, problem, type="server_error", code="store_unavailable", headers=headers, detail=detail)


def _conversation(body: dict[str, Any]) -> Any:
    """Return the id of the conversation that a request belongs to, if it is one."""
    given = body.get("conversation")
    return given.get("id") if isinstance(given, dict) else given


def _items(given: Any) -> list[Any]:
    """Return the input of a request as items."""
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return given if isinstance(given, list) else []


def with_ids(items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return items as a conversation lists them: each with an id and its type, texts of messages as parts."""
    found = []
    for item in items:
        id = item.get("id") or f"msg_{secrets.token_hex(24)}"
        item = {**item, "type": item.get("type") or "message", "id": id}
        if item["type"] == "message" and isinstance(item.get("content"), str):
            kind = "output_text" if item["role"] == "assistant" else "input_text"
            more: dict[str, Any] = {"annotations": []} if item["role"] == "assistant" else {}
            item |= {"status": "completed", "content": [{"type": kind, "text": item["content"], **more}]}
        found.append(item)
    return found


def _is_reference(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "item_reference"


def _missing(param: str, kind: str, id: str) -> ApiError:
    problem = f"{param}: no {kind} {id[:64]!r} is stored here"
    return ApiError(400, problem, param=param, code=f"previous_{kind}_not_found")
