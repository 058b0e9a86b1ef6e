"""Facts about a request that its engine needs or finds: headers for upstreams, waiting times, failed attempts.

The context belongs to the request's task and to the tasks that it starts.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from .asgi import Scope, header

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_TRACESTATE: Final = re.compile(r"[ -~]{1,512}")


@dataclass(slots=True)
class RequestContext:
    owner: str = ""
    """The one who takes turns with others: the name of the API key; without keys, the client's address."""
    headers: dict[str, str] = field(default_factory=dict)
    """Headers for requests to upstreams: ``x-request-id``, ``traceparent``, ``tracestate``."""
    queued: float = 0.0
    """Seconds that the request waited for a place at its engine."""
    errors: list[str] = field(default_factory=list)
    """Code of each failed attempt at an upstream."""
    retries: int = 0
    """Number of attempts after a failed one."""


current: ContextVar[RequestContext | None] = ContextVar("untemplate_request", default=None)
"""The context of the request that is being answered."""


def context_of(scope: Scope, request_id: str) -> RequestContext:
    """Return the context of a request. Upstreams continue its trace (W3C Trace Context), if its headers are valid."""
    headers = {"x-request-id": request_id}
    parent, state = header(scope, b"traceparent"), header(scope, b"tracestate")
    if _TRACEPARENT.fullmatch(parent):
        headers["traceparent"] = parent
        if _TRACESTATE.fullmatch(state):
            headers["tracestate"] = state
    client = scope.get("client")
    return RequestContext(client[0] if client else "", headers)
