"""Facts about a request that its engine needs or finds: headers for upstreams, waiting times, failed attempts.

The context belongs to the request's task and to the tasks that it starts.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(slots=True)
class RequestContext:
    owner: str = ""
    """The one who takes turns with others: the name of the API key; without keys, the client's address."""
    headers: dict[str, str] = field(default_factory=dict)
    """Headers for requests to upstreams: ``x-request-id``, ``traceparent``, ``tracestate``."""
    size: int = 0
    """Bytes of its body: by it the work for the request is priced."""
    worked: float = 0.0
    """Seconds of work off the event loop."""
    queued: float = 0.0
    """Seconds that the request waited for a place at its engine, or for a thread."""
    errors: list[str] = field(default_factory=list)
    """Code of each failed attempt at an upstream."""
    retries: int = 0
    """Number of attempts after a failed one."""


current: ContextVar[RequestContext | None] = ContextVar("untemplate_request", default=None)
"""The context of the request that is being answered."""
