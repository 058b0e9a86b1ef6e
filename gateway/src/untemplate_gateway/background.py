"""Responses that are generated after their request was answered (``background`` of ``/v1/responses``).

* The request is answered with a stored response of status ``queued``. Clients read it again until it has ended.
* The gateway then asks itself: keys, limits, logs and metrics work as for any request. Where a limit is reached,
  the response waits.
* A response that was cancelled or deleted meanwhile is not stored. With several workers, the one that generates it
  continues to the end.
"""

from __future__ import annotations

import asyncio
import contextvars
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from .errors import bad_request, overloaded, unsupported
from .generation import Meta
from .protocols.responses import RESPONSES
from .protocols.responses.response import waiting_response
from .store import UNFINISHED, Kept
from .threads import in_thread

if TYPE_CHECKING:
    from .asgi import Message, Scope
    from .exchange import Exchange, Gateway

RESPONSE: Final = "untemplate.response"
"""Key of the scope of a request in the background: the id of its response, without ``resp_``."""
_AGAIN: Final = 1.0
"""Seconds between two attempts, while a limit is reached."""


class Background:
    """The responses that one gateway generates in the background."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._running: dict[str, _Run] = {}

    async def begin(self, exchange: Exchange) -> None:
        """Answer a request with a response that waits, and generate it after that.

        Raises:
            ApiError: the request is wrong, or its response cannot be stored; 429: too many responses wait.
        """
        gateway, owner = self._gateway, exchange.record.owner
        if exchange.body.get("stream"):
            raise unsupported("background", "a response is streamed, or generated in the background")
        body = await gateway.store.expanded(owner, exchange.body)
        keep = gateway.store.keeper(owner, body)
        if keep is None:
            raise bad_request("background", "needs a response that is stored (store, response_ttl)")
        most = gateway.settings.max_concurrent_requests
        if most and len(self._running) >= most:
            raise overloaded(f"{most} responses are generated in the background already", 5)
        request = await in_thread(RESPONSES.read, body, exchange.notes)
        if gateway.manager.offered(request.model) is None:
            gateway.manager.get(request.model)  # an error now, if there is no such model
        meta = Meta(id=secrets.token_hex(16), created=int(time.time()), model=request.model)
        waiting = waiting_response(request, meta)
        items = body["input"]
        kept = Kept(waiting, items if isinstance(items, list) else [])
        if not await asyncio.to_thread(gateway.store.put, owner, kept):
            raise gateway.store.refusal("background")
        run = _Run(gateway, {**exchange.scope, RESPONSE: meta.id}, exchange.body, owner, kept)
        exchange.record.after = lambda: self._start(waiting["id"], run)
        await exchange.reply(waiting)

    def _start(self, id: str, run: _Run) -> None:
        # In a context of its own: the response outlives the request.
        task = asyncio.get_running_loop().create_task(run.work(), context=contextvars.Context())
        run.task = task
        self._running[id] = run
        task.add_done_callback(lambda _: self._running.pop(id, None))

    async def stop(self, id: str) -> None:
        """Stop generating a response, if this process does."""
        run = self._running.get(id)
        if run is not None:
            await run.stop()

    async def close(self) -> None:
        """Stop all. What has not ended counts as failed."""
        for run in self._running.values():
            run.closing = True
        await asyncio.gather(*(run.stop() for run in list(self._running.values())))


class _Run:
    """One response: the request that the gateway sends itself."""

    def __init__(self, gateway: Gateway, scope: Scope, body: dict[str, Any], owner: str, kept: Kept) -> None:
        self._gateway = gateway
        self._scope = scope
        self._body = msgspec.json.encode(body)
        self._owner = owner
        self._kept = kept
        self._stopped = asyncio.Event()
        self.task: asyncio.Task[None]
        self.closing = False

    async def stop(self) -> None:
        self._stopped.set()
        await asyncio.wait((self.task,))

    async def work(self) -> None:
        """Generate the response and store it; try again while a limit is reached."""
        await self._note("in_progress")
        status, answer = 429, b""
        while status == 429 and not self._stopped.is_set():
            status, answer = await self._asked()
            if status == 429:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopped.wait(), _AGAIN)
        if status == 200:  # it has been stored
            return
        if self.closing:
            await self._note("failed", {"code": "server_error", "message": "the server was shut down"})
        elif self._stopped.is_set():
            await self._note("cancelled")
        else:
            error = msgspec.json.decode(answer)["error"]
            await self._note("failed", {"code": error.get("code") or "server_error", "message": error["message"]})

    async def _asked(self) -> tuple[int, bytes]:
        """Send the request. Return the status of the answer and its body; 0 if the work was stopped."""
        parts: list[Message] = [{"type": "http.request", "body": self._body, "more_body": False}]
        status, body = 0, b""

        async def receive() -> Message:
            if parts:
                return parts.pop()
            await self._stopped.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            nonlocal status, body
            status = message.get("status", status)
            body += message.get("body", b"")

        await self._gateway(dict(self._scope), receive, send)
        return status, body

    async def _note(self, status: str, error: dict[str, str] | None = None) -> None:
        """Store the response with another status, unless it was cancelled or deleted."""
        changed = {**self._kept.response, "status": status, "error": error}
        await asyncio.to_thread(self._gateway.store.finish, self._owner, Kept(changed, self._kept.items))


async def cancelled(gateway: Gateway, owner: str, kept: Kept) -> dict[str, Any]:
    """Cancel a response, and return it as it is now.

    Raises:
        ApiError: it is not generated in the background.
    """
    id = kept.response["id"]
    if not kept.response.get("background"):
        raise bad_request("response_id", "only responses that are generated in the background can be cancelled")
    await gateway.background.stop(id)
    found = await asyncio.to_thread(gateway.store.get, owner, id) or kept
    if found.response["status"] in UNFINISHED:  # another process generates it
        found = Kept({**found.response, "status": "cancelled"}, found.items)
        await asyncio.to_thread(gateway.store.finish, owner, found)
    return found.response
