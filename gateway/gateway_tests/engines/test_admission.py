"""Requests that share one cache of tokens."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from untemplate_gateway.engines.admission import Reservation, SharedCache


def test_who_fits_is_admitted_at_once_and_the_others_in_order():
    async def act() -> None:
        cache = SharedCache(100)
        order: list[str] = []

        async def one(name: str, tokens: int) -> Reservation:
            found = await cache.reserve(tokens)
            order.append(name)
            return found

        first = await one("first", 60)
        second = asyncio.create_task(one("second", 50))
        third = asyncio.create_task(one("third", 10))
        await asyncio.sleep(0)
        assert order == ["first"]  # the third would fit, but has come later
        assert cache.free == 0
        with first:
            pass
        await asyncio.gather(second, third)
        assert order == ["first", "second", "third"]
        assert (cache.held, cache.free) == (60, 40)

    asyncio.run(act())


def test_one_that_leaves_while_it_waits():
    async def act() -> None:
        cache = SharedCache(100)
        with await cache.reserve(100):
            tasks = [asyncio.create_task(cache.reserve(80)) for _ in range(2)]
            await asyncio.sleep(0)
            tasks[0].cancel()
            with suppress(asyncio.CancelledError):
                await tasks[0]
        with await tasks[1]:
            assert cache.held == 80
        assert cache.held == 0

    asyncio.run(act())


def test_one_that_leaves_in_the_moment_of_its_admission():
    async def act() -> None:
        cache = SharedCache(100)
        first = await cache.reserve(100)
        task = asyncio.create_task(cache.reserve(80))
        await asyncio.sleep(0)
        with first:
            pass
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert cache.held == 0

    asyncio.run(act())
