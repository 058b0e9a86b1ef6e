"""The inspector's pages at ``/inspect``, and the outputs that were served and are kept for it.

* The pages themselves need no API key, because they hold no data. Their requests do, like all others.
* Outputs are kept only if the operator asks for it, in memory, and each is shown only to the key that it was made for.
"""

from __future__ import annotations

import time
from collections import deque
from sys import getsizeof
from typing import TYPE_CHECKING, Any

import msgspec

from untemplate._internal.inspector import FILES, HEADERS, Case, Inspector, InspectorError, read_file
from untemplate._internal.output_parser import OutputParser
from untemplate.templates import ChatTemplate

from .access import is_private
from .asgi import send_bytes
from .errors import ApiError, not_found
from .exchange import Endpoint, Exchange
from .manager import Manager
from .observe import outcome
from .session import Session
from .settings import Settings
from .threads import in_slow_thread

if TYPE_CHECKING:
    from .generation import Ended

_PROMPT = 20_000
"""Most characters of the end of a prompt that are kept: the state at the start is read from them."""
_BYTES = 64 << 20
"""Most bytes of all outputs that are kept; the oldest go first."""
_OVERHEAD = 1024
"""Bytes of a kept output without its texts, about."""
_START = 60
"""Characters of an output by which it is recognised."""


class _Served(msgspec.Struct):
    """An output that was served."""

    id: str
    owner: str
    time: str
    model: str
    outcome: str
    case: Case
    """The case without its tools."""
    tools: bytes
    """The tools as JSON, which all outputs of a request share: as objects they take 30 times the memory."""
    size: int
    """Bytes of memory, about."""


class Inspection:
    """The inspector of one gateway.

    Args:
        manager: the models that pages may name.
        settings: if the inspector is served, and how many outputs are kept for it.
    """

    def __init__(self, manager: Manager, settings: Settings) -> None:
        self._manager = manager
        self._served: deque[_Served] = deque()
        self._most = settings.inspect_outputs
        self._bytes = 0
        self.on = settings.inspect == "on" or (settings.inspect == "auto" and is_private(settings))
        self._inspector = Inspector(self)

    def endpoints(self) -> dict[tuple[str, str], Endpoint]:
        """Return the endpoints by method and path; none if the inspector is off."""
        if not self.on:
            return {}
        page = Endpoint("inspect", self._page, limited=False, open=True, counted=False)
        request = Endpoint("inspect", self._answer, reads_body=True)
        paths = ("/inspect", "/inspect/", *(f"/inspect/{name}" for name in FILES if name))
        return {("GET", path): page for path in paths} | {("POST", "/inspect/api/{route}"): request}

    def keep(self, session: Session, owner: str) -> None:
        """Keep the outputs of a request for the pages, if the operator asks for it."""
        if not (self.on and self._most):
            return
        request = session.request
        offered = bool(request.tools) and request.tool_choice != "none"
        tools = msgspec.json.encode(request.tools if offered else [])
        for ended in session.ended:
            served = self._kept(session, ended, owner, tools)
            if ended is session.ended[-1]:  # the last output that shares them
                served.size += getsizeof(tools)
            self._served.append(served)
            self._bytes += served.size
            while len(self._served) > self._most or self._bytes > _BYTES:
                self._bytes -= self._served.popleft().size

    def _kept(self, session: Session, ended: Ended, owner: str, tools: bytes) -> _Served:
        model = session.model
        known = session.prompt_of(ended.index).known
        case = Case(
            text=ended.raw,
            model=model.name,
            prompt=None if known is None else known[-_PROMPT:],
            finish_reason="stop" if ended.finish_reason == "tool_calls" else ended.finish_reason,
        )
        result = outcome(ended, model, offered=tools != b"[]")
        size = _OVERHEAD + getsizeof(case.text) + getsizeof(case.prompt)
        time_of_day = time.strftime("%H:%M:%S")
        return _Served(f"{session.meta.id}-{ended.index}", owner, time_of_day, model.name, result, case, tools, size)

    # -- The models, as the inspector asks for them ------------------------------------------------------------------

    def names(self) -> list[str]:
        return [model.name for model in self._manager.list()]

    def find(self, name: str) -> tuple[OutputParser, ChatTemplate | None]:
        model = self._manager.get(name)
        return model.parser, model.template

    # -- Requests ----------------------------------------------------------------------------------------------------

    async def _page(self, exchange: Exchange) -> None:
        path: str = exchange.scope["path"]
        exchange.record.status = 200
        if path.endswith("/inspect"):
            # Relative, so that it is right under every prefix.
            await send_bytes(exchange.send, 307, b"", b"text/plain", [(b"location", b"inspect/")])
            return
        name, media_type = FILES[path.rpartition("/")[2]]
        await send_bytes(exchange.send, 200, read_file(name), media_type, list(HEADERS))

    async def _answer(self, exchange: Exchange) -> None:
        route: str = exchange.scope["path_params"]["route"]
        if route == "served":
            await exchange.reply(self._find_served(exchange.body.get("id"), exchange.record.owner))
            return
        if route not in self._inspector.routes:
            raise not_found(f"there is nothing at /inspect/api/{route}")
        try:
            answer = await in_slow_thread(self._inspector.answer, route, exchange.body)
        except InspectorError as error:
            raise ApiError(400, str(error)) from None
        if route == "choices" and self._most:
            answer["served"] = self._list(exchange.record.owner)
        await exchange.reply(answer)

    def _list(self, owner: str) -> list[dict[str, Any]]:
        """Return the outputs of an owner, the newest first."""
        return [
            {
                "id": one.id,
                "time": one.time,
                "model": one.model,
                "outcome": one.outcome,
                "start": one.case.text[:_START],
            }
            for one in reversed(self._served)
            if one.owner == owner
        ]

    def _find_served(self, name: Any, owner: str) -> Any:
        for one in self._served:
            if one.id == name and one.owner == owner:
                return {**msgspec.to_builtins(one.case), "tools": msgspec.json.decode(one.tools)}
        raise not_found(f"the output {name!r:.80} is not kept any more")
