"""Admission of requests to an engine whose requests share one cache of tokens."""

from __future__ import annotations

import asyncio
import time
from collections import deque

from ..request_context import current


class SharedCache:
    """The tokens that the running requests of an engine may hold together.

    Args:
        size: tokens of the cache. A request that runs alone may hold all of them.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.held = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def free(self) -> int:
        """Tokens that could be reserved now; 0 while other requests wait."""
        return 0 if self._waiting else self.size - self.held

    async def reserve(self, tokens: int) -> Reservation:
        """Reserve this many tokens, once they are free. Requests are admitted in order."""
        tokens = min(tokens, self.size)
        if self._waiting or self.held + tokens > self.size:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append((tokens, turn))
            begun = time.monotonic()
            try:
                await turn
                if (context := current.get()) is not None:
                    context.queued += time.monotonic() - begun
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self.give_back(tokens)  # the request was admitted at the same moment
                else:
                    self._waiting = deque(waiting for waiting in self._waiting if waiting[1] is not turn)
                    self._admit()
                raise
        else:
            self.held += tokens
        return Reservation(self, tokens)

    def give_back(self, tokens: int) -> None:
        """Free tokens, and admit requests that wait for them."""
        self.held -= tokens
        self._admit()

    def _admit(self) -> None:
        while self._waiting:
            tokens, turn = self._waiting[0]
            if self.held + tokens > self.size:
                return
            self._waiting.popleft()
            if not turn.done():
                self.held += tokens
                turn.set_result(None)


class Reservation:
    """The tokens that one request may hold. Used as a context manager, it frees them at the end."""

    def __init__(self, cache: SharedCache, tokens: int) -> None:
        self._cache = cache
        self.tokens = tokens

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, *error: object) -> None:
        self._cache.give_back(self.tokens)
        self.tokens = 0
