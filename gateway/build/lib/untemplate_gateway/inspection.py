"""The inspector's pages at ``/inspect``.

The pages themselves need no API key, because they hold no data. Their requests do, like all others.
"""

from __future__ import annotations

from untemplate._internal.inspector import FILES, HEADERS, Inspector, InspectorError, read_file
from untemplate._internal.output_parser import OutputParser
from untemplate.templates import ChatTemplate

from .asgi import send_bytes
from .errors import ApiError, not_found
from .exchange import Endpoint, Exchange
from .manager import Manager
from .threads import in_slow_thread


class Inspection:
    """The inspector of one gateway.

    Args:
        manager: the models that pages may name.
    """

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._inspector = Inspector(self)

    def endpoints(self) -> dict[tuple[str, str], Endpoint]:
        """Return the endpoints by method and path."""
        page = Endpoint("inspect", self._page, limited=False, open=True, counted=False)
        request = Endpoint("inspect", self._answer, reads_body=True)
        paths = ("/inspect", "/inspect/", *(f"/inspect/{name}" for name in FILES if name))
        return {("GET", path): page for path in paths} | {("POST", "/inspect/api/{route}"): request}

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
        if route not in self._inspector.routes:
            raise not_found(f"there is nothing at /inspect/api/{route}")
        try:
            await exchange.reply(await in_slow_thread(self._inspector.answer, route, exchange.body))
        except InspectorError as error:
            raise ApiError(400, str(error)) from None
