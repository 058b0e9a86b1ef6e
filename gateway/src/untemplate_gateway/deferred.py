"""The gateway as an ASGI application that loads its models when a server starts it.

Any ASGI server, supervisor or cluster can run it: it is made from settings alone, before an event loop exists.
"""

from __future__ import annotations

import sys

from .app import Gateway, create_app
from .asgi import Receive, Scope, Send
from .connections import allow_open_files
from .errors import ApiError
from .manager.opening import open_manager
from .observe import log_to_stderr
from .settings import Settings, SettingsError


async def open_gateway(settings: Settings) -> Gateway:
    """Load the models, and return the application that serves them.

    Raises:
        SettingsError: the gateway cannot start; the message has the reason.
    """
    try:
        manager = await open_manager(settings)
        try:
            return create_app(manager, settings)
        except BaseException:
            await manager.close(timeout=0)
            raise
    except SettingsError:
        raise
    except ModuleNotFoundError as error:
        raise SettingsError(f"this engine needs the package {error.name}, which is not installed") from None
    except ApiError as error:
        raise SettingsError(f"{error.message}: {error.detail}" if error.detail else error.message) from None
    except (ValueError, OSError, ImportError) as error:  # files, the hub, packages
        raise SettingsError(str(error)) from None


def prepare_process(settings: Settings) -> None:
    """Set up the log, the limit of open files, and how often threads that compute yield to the event loop."""
    log_to_stderr(settings)
    allow_open_files(settings.max_connections)
    sys.setswitchinterval(0.001)  # one millisecond instead of five


class DeferredGateway:
    """The application; ``gateway`` is None until the server has started it (ASGI's lifespan protocol).

    Args:
        settings: everything about the gateway but its address.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.gateway: Gateway | None = None

    def refused(self, status: int) -> None:
        """Count a connection that the server refused before it was a request."""
        if self.gateway is not None:
            self.gateway.refused(status)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif self.gateway is None:
            raise RuntimeError("the gateway was not started: the server must support ASGI's lifespan protocol")
        else:
            await self.gateway(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            self.gateway = await open_gateway(self.settings)
        except SettingsError as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.gateway.close()
        await send({"type": "lifespan.shutdown.complete"})
