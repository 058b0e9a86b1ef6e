"""Turns of requests at an engine whose requests share places, and perhaps one cache of tokens.

* Requests of one owner (an API key, or an address where there are no keys) are admitted in order.
* Between owners, the one that was admitted for the lowest price is next, so that long requests do not get around the
  turns: a key with many of them delays another one by at most one request. Of equal ones, it is the one with the fewest
  running requests, and of those the one that has waited longest. (Start-time fair queueing: an owner that comes begins
  where the others are.)
* A request pays a first price when it is admitted, further ones while it runs, and gets the rest back at its end.
* A request that ends raises the price at which others come, by the share of each present owner in its cost, at most to
  the price of one that waits. Otherwise addresses that keep coming would always be before one that has paid.
* One more place is for an owner that has no running request: it need not even wait for that one.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from typing import Final

from ..request_context import current

_OWNERS: Final = 1000
"""Owners after which those are forgotten that have spent no more than others; later, twice those that were left."""

STEP: Final = 512
"""Price that a request pays in advance for its output, each time that it has used up what it paid."""


class Turns:
    """Admits requests to an engine.

    Args:
        places: requests that may run together, and one more of an owner without a running one; 0: no limit.
        tokens: tokens that they may hold together; a request that runs alone may hold all of them. 0: no limit.
    """

    def __init__(self, places: int = 0, tokens: int = 0) -> None:
        self._places = places
        self.size = tokens
        self.held = 0
        self._running: Counter[str] = Counter()
        self._now = 0.0
        """The price at which an owner comes that has spent less."""
        self._spent: dict[str, float] = {}
        """The price at which the next request of each owner begins, unless it comes at a higher one."""
        self._most = _OWNERS
        self._waiting: dict[str, deque[tuple[float, int, float, asyncio.Future[None]]]] = {}
        """The requests that wait, by owner: the price at which each has come, its tokens and its own price. The owner
        that was admitted last is the last one."""

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
        price, tokens = max(1, price or tokens), min(tokens, self.size)
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append((self._now, tokens, price, turn))
        self._admit()
        if not turn.done():
            begun = time.monotonic()
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    admitted = Turn(self, owner, tokens, price)  # at the same moment
                    admitted.cost = 0.0
                    admitted.end()
                else:
                    self._forget(owner, turn)
                raise
            if context is not None:
                context.queued += time.monotonic() - begun
        return Turn(self, owner, tokens, price)

    def pay(self, owner: str, price: float) -> None:
        """Let an owner with a running request pay more than at its admission, or less if the price is negative."""
        self._spent[owner] = self._spent.get(owner, self._now) + price

    def give_back(self, owner: str, tokens: int, cost: float) -> None:
        """End the turn of a request, and admit those that wait."""
        raised = self._now + cost / len(self._waiting.keys() | self._running.keys())
        self._now = min((raised, *(one for one in map(self._begin, self._waiting) if one > self._now)))
        self.held -= tokens
        self._running[owner] -= 1
        if not self._running[owner]:
            del self._running[owner]
        self._admit()

    def _forget(self, owner: str, turn: asyncio.Future[None]) -> None:
        # Another request that ended at the same moment may have passed over this one already.
        left = deque(one for one in self._waiting.pop(owner, ()) if one[3] is not turn)
        if left:
            self._waiting = {owner: left, **self._waiting}
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self._admit_one():
            pass
        if not self._running:
            self._spent.clear()
        elif len(self._spent) > self._most:
            self._spent = {
                one: spent for one, spent in self._spent.items() if spent > self._now or one in self._waiting
            }
            self._most = max(_OWNERS, 2 * len(self._spent))

    def _admit_one(self) -> bool:
        """Admit the next request that waits; False if it must wait longer."""
        owner = min(self._waiting, key=lambda one: (self._begin(one), self._running[one]))
        _, tokens, price, turn = self._waiting[owner][0]
        running = sum(self._running.values())
        if self._places and running >= self._places + (not self._running[owner]):
            return False
        if self.held + tokens > self.size:
            return False  # a smaller one of somebody else would fit, but then a large one would never have its turn
        begun = self._begin(owner)
        queue = self._waiting.pop(owner)
        queue.popleft()
        if queue:
            self._waiting[owner] = queue
        if not turn.done():
            self.held += tokens
            self._running[owner] += 1
            self._now = max(self._now, begun)
            self._spent[owner] = begun + price
            turn.set_result(None)
        return True

    def _begin(self, owner: str) -> float:
        """Return the price at which the next request of an owner that waits begins."""
        return max(self._waiting[owner][0][0], self._spent.get(owner, 0.0))


class Turn:
    """The turn of one request. Used as a context manager, it ends at the end."""

    def __init__(self, turns: Turns, owner: str, tokens: int, price: float) -> None:
        self._turns = turns
        self._owner = owner
        self._tokens = tokens
        self._paid = price
        self.cost = price
        """Cost of the request so far: the price of its admission, unless it is counted."""

    def add(self, cost: float) -> None:
        """Add to the cost. If it exceeds what is paid, the next step is paid in advance."""
        self.cost += cost
        if self.cost > self._paid:
            self._pay(self.cost + STEP - self._paid)

    def _pay(self, price: float) -> None:
        self._paid += price
        self._turns.pay(self._owner, price)

    def end(self) -> None:
        """End the turn, and pay what the request has cost."""
        self._pay(self.cost - self._paid)
        self._turns.give_back(self._owner, self._tokens, self.cost)

    def __enter__(self) -> Turn:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()
