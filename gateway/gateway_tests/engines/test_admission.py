"""Requests that share places and a cache of tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from untemplate_gateway.engines.admission import STEP, Turn, Turns
from untemplate_gateway.request_context import RequestContext, current


def test_who_fits_is_admitted_at_once_and_the_others_in_order():
    async def act() -> None:
        cache = Turns(tokens=100)
        order: list[str] = []

        async def one(name: str, tokens: int) -> Turn:
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
        cache = Turns(tokens=100)
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


def test_one_that_leaves_with_the_request_that_it_waits_for():
    """A client has closed its connection: all choices of its request end at once."""

    async def act() -> None:
        cache = Turns(tokens=100)

        async def one() -> None:
            with await cache.reserve(100):
                await asyncio.Event().wait()

        tasks = [asyncio.create_task(one()) for _ in range(3)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert [task.cancelled() for task in tasks] == [True, True, True]
        assert (cache.held, cache.free) == (0, 100)

    asyncio.run(act())


def test_one_that_leaves_in_the_moment_of_its_admission():
    async def act() -> None:
        cache = Turns(tokens=100)
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


class TestOwners:
    """An engine of four places, and requests of several keys."""

    def run(self, turns: Turns, act: Callable[[Callable[[str], asyncio.Task[Turn]]], object]) -> None:
        async def one(owner: str, tokens: int = 0) -> Turn:
            current.set(RequestContext(owner))
            return await turns.reserve(tokens)

        async def main() -> None:
            def ask(owner: str, tokens: int = 0) -> asyncio.Task[Turn]:
                return asyncio.create_task(one(owner, tokens))

            await act(ask)  # type: ignore[misc]

        asyncio.run(main())

    def test_a_key_with_many_requests_does_not_delay_another(self):
        turns = Turns(places=4)

        async def act(ask):
            busy = [ask("a") for _ in range(24)]
            await asyncio.sleep(0.01)
            assert [task.done() for task in busy] == [True] * 4 + [False] * 20
            other = [ask("b"), ask("b")]
            await asyncio.sleep(0.01)
            assert [task.done() for task in other] == [True, False]  # the first at once, in the place more
            with busy[0].result():
                pass
            await asyncio.sleep(0.01)
            assert not busy[4].done()  # four run: three of a, and one of b
            with busy[1].result():
                pass
            await asyncio.sleep(0.01)
            assert other[1].done()  # b has fewer running requests than a
            assert not busy[4].done()
            for task in (*busy, *other):
                task.cancel()

        self.run(turns, act)

    def test_owners_with_as_many_take_turns(self):
        turns = Turns(places=1)
        order = []

        async def act(ask):
            running = await ask("x")
            waiting = {asyncio.ensure_future(ask(owner)): owner for owner in "aaabbc"}
            order.append(await self.admitted(running, waiting))

        self.run(turns, act)
        assert order == ["abcaba"]

    def test_long_requests_do_not_get_around_the_turns(self):
        """A key whose requests cost a hundred times as much waits until the other one has had as much."""
        turns = Turns(places=1)
        order = []

        async def act(ask):
            running = await ask("x", 100)
            waiting = {
                asyncio.ensure_future(ask(owner, 100 if owner == "a" else 10)): owner for owner in "aaabbbbbbbbbb"
            }
            order.append(await self.admitted(running, waiting))

        self.run(turns, act)
        assert order[0].startswith("abbbbbbbbb")

    @staticmethod
    async def admitted(running: Turn, waiting: dict[asyncio.Future[Turn], str]) -> str:
        """End one running request after the other. Return the owners in the order in which they were admitted."""
        await asyncio.sleep(0.01)
        held, order = [running], ""
        while waiting:
            for task in [task for task in waiting if task.done()]:
                order += waiting.pop(task)
                held.append(task.result())
            with held.pop(0):
                pass
            await asyncio.sleep(0.01)
        return order

    @staticmethod
    async def one(turns: Turns, owner: str, price: float = 10, cost: float | None = None) -> None:
        """Make a request that takes a moment."""
        current.set(RequestContext(owner))
        with await turns.reserve(price=price) as turn:
            turn.cost = price if cost is None else cost
            await asyncio.sleep(0)

    def test_addresses_that_keep_coming_shut_nobody_out(self):
        """Eight clients that send each request from an address of its own, and one with one address."""
        turns = Turns(places=2)
        served: list[str] = []

        async def client(number: int) -> None:
            for i in range(500):
                await asyncio.create_task(self.one(turns, f"2001:db8::{number}:{i}"))
                served.append("")

        async def main() -> None:
            clients = [asyncio.create_task(client(number)) for number in range(8)]
            await asyncio.sleep(0)
            for _ in range(4):
                before = len(served)
                await asyncio.create_task(self.one(turns, "192.0.2.1"))
                assert len(served) - before < 40
            for one in clients:
                one.cancel()

        asyncio.run(main())

    def test_owners_that_have_gone_are_forgotten(self):
        turns = Turns(places=4)

        async def main() -> int:
            most = 0
            with await turns.reserve(price=10):  # the turns are never empty
                for i in range(5000):
                    await asyncio.create_task(self.one(turns, f"2001:db8::{i}"))
                    most = max(most, len(turns._spent))
            return most

        assert asyncio.run(main()) < 1100

    def test_a_request_pays_what_it_has_cost(self):
        """The one that might have been long and was not is not behind another one that was as short."""
        turns = Turns(places=1)
        order: list[str] = []

        async def main() -> None:
            hold = await turns.reserve(price=10)
            await asyncio.create_task(self.one(turns, "careful", price=5000, cost=10))
            for owner in ("short", "short", "careful", "careful"):
                task = asyncio.create_task(self.one(turns, owner))
                task.add_done_callback(lambda _, owner=owner: order.append(owner))
                await asyncio.sleep(0)
            hold.end()
            while len(order) < 4:
                await asyncio.sleep(0)

        asyncio.run(main())
        assert order[:3].count("careful") == 1
        assert order[3] == "careful"

    def test_a_long_output_pays_while_it_grows(self):
        turns = Turns(places=1)

        async def main() -> tuple[float, float]:
            with await turns.reserve(price=STEP) as turn:
                turn.cost = 0
                for _ in range(10 * STEP):
                    turn.add(1)
                return turns._spent[""], turn.cost

        spent, cost = asyncio.run(main())
        assert cost <= spent <= cost + STEP

    def test_tokens_hold_for_all_owners(self):
        turns = Turns(places=4, tokens=100)

        async def act(ask):
            first, second, third = ask("a", 80), ask("b", 50), ask("c", 10)
            await asyncio.sleep(0.01)
            assert [task.done() for task in (first, second, third)] == [True, False, False]
            second.cancel()
            await asyncio.sleep(0.01)
            assert third.done()
            assert turns.held == 90

        self.run(turns, act)
