"""Turns of requests at an engine whose requests share places, and perhaps one cache of tokens.

* Requests of one owner (an API key, or an address where there are no keys) are admitted in order.
* Between owners, the one that was admitted for the lowest price is next, so that long requests do not get around the
  turns: a key with many of them delays another one by at most one request. Of equal ones, it is the one with the fewest
  running requests, and of those the one that has waited longest. (Start-time fair queueing: an owner that comes begins
  where the others are.)
* One more place is for an owner that has no running request: it need not even wait for that one.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from typing import Final

from ..request_context import current

_OWNERS: Final = 1000
"""Owners after which those are forgotten that have spent no more than others."""


class Turns:
    """Admits requests to an engine.

    Args:
        places: requests that may run together, and one more of an owner that has none; 0: no limit.
        tokens: tokens that they may hold together; a request that runs alone may hold all of them. 0: no limit.
    """

    def __init__(self, places: int = 0, tokens: int = 0) -> None:
        self._places = places
        self.size = tokens
        self.held = 0
        self._running: Counter[str] = Counter()
        self._now = 0.0
        """The price at which the last request began."""
        self._spent: dict[str, float] = {}
        """The price at which the next request of each owner begins, if that is later."""
        self._waiting: dict[str, deque[tuple[int, float, asyncio.Future[None]]]] = {}
        """The requests that wait, by owner; the owner that was admitted last is the last one."""

    @property
    def free(self) -> int:
        """Tokens that could be reserved now; 0 while other requests wait."""
        return 0 if self._waiting else self.size - self.held

    async def reserve(self, tokens: int = 0, price: float = 0.0) -> Turn:
        """Wait for the turn of a request, and for its tokens.

        Args:
            price: what it costs; 0: its tokens.
        """
        context = current.get()
        owner = "" if context is None else context.owner
        price, tokens = price or max(1, tokens), min(tokens, self.size)
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append((tokens, price, turn))
        self._admit()
        if not turn.done():
            begun = time.monotonic()
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self.give_back(owner, tokens)  # the request was admitted at the same moment
                else:
                    self._forget(owner, turn)
                raise
            if context is not None:
                context.queued += time.monotonic() - begun
        return Turn(self, owner, tokens)

    def give_back(self, owner: str, tokens: int) -> None:
        """End the turn of a request, and admit those that wait."""
        self.held -= tokens
        self._running[owner] -= 1
        if not self._running[owner]:
            del self._running[owner]
        self._admit()

    def _forget(self, owner: str, turn: asyncio.Future[None]) -> None:
        # Another request that ended at the same moment may have passed over this one already.
        left = deque(one for one in self._waiting.pop(owner, ()) if one[2] is not turn)
        if left:
            self._waiting = {owner: left, **self._waiting}
        self._admit()

    def _admit(self) -> None:
        while self._waiting:
            owner = min(self._waiting, key=lambda one: (self._begin(one), self._running[one]))
            tokens, price, turn = self._waiting[owner][0]
            running = sum(self._running.values())
            if self._places and running >= self._places + (not self._running[owner]):
                return
            if self.held + tokens > self.size:
                return  # a smaller one of somebody else would fit, but then a large one would never have its turn
            queue = self._waiting.pop(owner)
            queue.popleft()
            if queue:
                self._waiting[owner] = queue
            if not turn.done():
                self.held += tokens
                self._running[owner] += 1
                self._now = self._begin(owner)
                self._spent[owner] = self._now + price
                turn.set_result(None)
        if not self._running:
            self._spent.clear()
        elif len(self._spent) > _OWNERS:
            self._spent = {one: spent for one, spent in self._spent.items() if spent > self._now}

    def _begin(self, owner: str) -> float:
        return max(self._now, self._spent.get(owner, 0.0))


class Turn:
    """The turn of one request. Used as a context manager, it ends at the end."""

    def __init__(self, turns: Turns, owner: str, tokens: int) -> None:
        self._turns = turns
        self._owner = owner
        self._tokens = tokens

    def __enter__(self) -> Turn:
        return self

    def __exit__(self, *error: object) -> None:
        self._turns.give_back(self._owner, self._tokens)
