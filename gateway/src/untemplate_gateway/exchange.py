"""One HTTP request, and the description of an endpoint that answers such requests."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from .asgi import Receive, Scope, Send, send_bytes, send_json
from .notes import Notes
from .observe import Record

if TYPE_CHECKING:
    from .manager import Manager
    from .manager.pulling import Pulls
    from .observe import Metrics
    from .protocols.base import Dialect
    from .settings import Settings
    from .store import ResponseStore


class Background(Protocol):
    """Responses that are generated in the background, as far as endpoints use them."""

    async def begin(self, exchange: Exchange) -> None: ...
    async def stop(self, id: str) -> None: ...


class Gateway(Protocol):
    """The application, as far as endpoints use it."""

    manager: Manager
    settings: Settings
    metrics: Metrics
    store: ResponseStore
    pulls: Pulls

    @property
    def background(self) -> Background: ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    @property
    def has_inspector(self) -> bool: ...

    async def generate(self, exchange: Exchange, dialect: Dialect) -> None: ...


@dataclass(slots=True)
class Exchange:
    """One HTTP request and the means to answer it."""

    gateway: Gateway
    scope: Scope
    receive: Receive
    send: Send
    record: Record
    body: dict[str, Any]
    """The request's JSON object; empty for endpoints that read none."""
    notes: Notes
    """Remarks on the request, which the response carries in a header."""

    async def reply(self, value: Any, status: int = 200) -> None:
        """Send a whole response as JSON."""
        self.record.status = status
        await send_json(self.send, status, value, self.notes.headers())

    async def reply_text(self, text: bytes, media_type: bytes) -> None:
        """Send a whole response as text."""
        self.record.status = 200
        await send_bytes(self.send, 200, text, media_type, [])


Handler = Callable[[Exchange], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A path and method of the API."""

    name: str
    """Name in logs and metrics."""
    handle: Handler
    reads_body: bool = False
    """True if the endpoint takes a JSON object, which is read before the call."""
    limited: bool = True
    """False if the endpoint answers at once: it then never returns 429."""
    open: bool = False
    """True if it needs no API key."""
    counted: bool = True
    """False for endpoints that monitoring polls: they are neither counted nor logged."""
    traced: bool = False
    """True if its requests are spans of traces."""
