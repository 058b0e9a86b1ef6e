"""Models that their first request loads: single loads, room, idleness, failures, fallbacks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from untemplate_gateway.engines import EngineError
from untemplate_gateway.errors import ApiError
from untemplate_gateway.manager import Loader, Manager, Report
from untemplate_gateway.manager.model import Model
from untemplate_gateway.manager.offers import Offer
from untemplate_gateway.request_context import RequestContext, current

from .fakes import FakeEngine, model


class Shelf:
    """Makes models, and counts how often each was loaded."""

    def __init__(self) -> None:
        self.loaded: list[str] = []
        self.fails: set[str] = set()
        self.gate = asyncio.Event()
        self.gate.set()

    def loader(self, name: str, aliases: tuple[str, ...]) -> Loader:
        async def load(report: Report) -> Model:
            self.loaded.append(name)
            await self.gate.wait()
            if name in self.fails:
                raise EngineError("out of memory", detail="cudaMalloc failed")
            return model(name, FakeEngine(name), aliases=aliases)

        return load

    def offer(self, name: str, *, aliases: tuple[str, ...] = (), **more: Any) -> Offer:
        return Offer(name=name, load=self.loader(name, aliases), aliases=aliases, **more)


def run(
    act: Callable[[Manager, Shelf], Awaitable[Any]], *offers: tuple[str, dict[str, Any]], most: int = 0, **more: Any
) -> Any:
    async def main() -> Any:
        shelf = Shelf()
        manager = Manager(**more)
        manager.offers.change([shelf.offer(name, **options) for name, options in offers], max_loaded=most)
        try:
            return await act(manager, shelf)
        finally:
            await manager.close(timeout=0)

    return asyncio.run(asyncio.wait_for(main(), 120))


async def ask(manager: Manager, name: str) -> str:
    async with manager.use(name) as leased:
        return leased.name


async def refused(manager: Manager, name: str) -> tuple[int, str | None, str]:
    with pytest.raises(ApiError) as caught:
        await ask(manager, name)
    return caught.value.status, caught.value.code, caught.value.message


def loaded(manager: Manager) -> list[str]:
    return [one.name for one in manager.list()]


def test_the_first_request_loads_a_model_and_all_others_wait_for_it():
    async def act(manager: Manager, shelf: Shelf) -> None:
        shelf.gate.clear()
        asked = [asyncio.create_task(ask(manager, name)) for name in ("a", "other", "a:latest", "a")]
        gone = asyncio.create_task(ask(manager, "a"))
        await asyncio.sleep(0.01)
        gone.cancel()  # a client that leaves does not stop the load
        shelf.gate.set()
        assert await asyncio.gather(*asked) == ["a", "a", "a", "a"]
        assert shelf.loaded == ["a"]
        assert [name for name, _ in manager.unloaded()] == ["b"]
        assert await refused(manager, "c") == (
            404, "model_not_found", "the model 'c' does not exist (models: a, b)",
        )  # fmt: skip
        assert await refused(manager, "") == (400, None, "model: is required: there are several models: a, b")

    run(act, ("a", {"aliases": ("other",)}), ("b", {}))


def test_a_request_without_a_name_means_the_only_model():
    async def act(manager: Manager, shelf: Shelf) -> None:
        assert await ask(manager, "") == "a"

    run(act, ("a", {}))


def test_a_load_that_fails_is_a_503_and_leaves_the_others_alone(caplog: pytest.LogCaptureFixture):
    async def act(manager: Manager, shelf: Shelf) -> None:
        shelf.fails.add("a")
        problem = (503, "model_not_loaded", "the model 'a' could not be loaded; the server's log has the reason")
        assert await refused(manager, "a") == problem
        assert await ask(manager, "b") == "b"
        assert await refused(manager, "a") == problem
        assert shelf.loaded == ["a", "b"]  # not tried again at once

    run(act, ("a", {}), ("b", {}))
    assert "model a: could not be loaded: cudaMalloc failed" in caplog.text


def test_requests_that_wait_for_a_load_are_refused_when_the_server_shuts_down():
    async def act(manager: Manager, shelf: Shelf) -> None:
        shelf.gate.clear()
        waiting = [asyncio.create_task(refused(manager, "a")) for _ in range(2)]
        await asyncio.sleep(0.01)
        await manager.close(timeout=0)
        assert await asyncio.gather(*waiting) == [(503, "shutting_down", "the server is shutting down")] * 2

    run(act, ("a", {}))


def test_a_load_does_not_belong_to_the_request_that_began_it():
    found: list[RequestContext | None] = []

    async def load(report: Report) -> Model:
        found.append(current.get())
        return model("a")

    async def act(manager: Manager, shelf: Shelf) -> None:
        manager.offers.change([Offer(name="a", load=load)])
        current.set(RequestContext({"x-request-id": "of the first request"}))
        assert await ask(manager, "a") == "a"
        assert found == [None]

    run(act)


def test_any_name_means_the_only_model():
    async def act(manager: Manager, shelf: Shelf) -> None:
        assert await ask(manager, "whatever") == "a"
        await manager.unload("a")
        assert await ask(manager, "fast") == "a"

    run(act, ("a", {}), any_name=True, aliases={"fast": ""})


def test_a_model_of_another_machine_needs_no_place():
    async def act(manager: Manager, shelf: Shelf) -> None:
        for name in ("a", "far", "farther"):
            assert await ask(manager, name) == name
        assert loaded(manager) == ["a", "far", "farther"]

    run(act, ("a", {}), ("far", {"local": False}), ("farther", {"local": False}), most=1)


def test_the_least_recently_used_idle_model_makes_room():
    now = iter(range(1000))

    async def act(manager: Manager, shelf: Shelf) -> None:
        for name in ("a", "b", "a", "c"):
            assert await ask(manager, name) == name
        assert loaded(manager) == ["a", "c"]
        assert await ask(manager, "b") == "b"
        assert loaded(manager) == ["c", "b"]

    run(
        act, ("a", {}), ("b", {}), ("c", {}), most=2, clock=lambda: float(next(now))
    )  # fmt: skip


def test_a_model_in_use_is_not_unloaded_for_another_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("untemplate_gateway.manager.offers._PATIENCE", 0.05)

    async def act(manager: Manager, shelf: Shelf) -> None:
        async with manager.use("a") as leased:
            assert await refused(manager, "b") == (
                503, "models_busy", "there is no room for the model 'b' while other models are in use; try again",
            )  # fmt: skip
            waiting = asyncio.create_task(ask(manager, "b"))
            await asyncio.sleep(0.01)
            assert leased.engine.closed == 0  # type: ignore[attr-defined]
        assert await waiting == "b"  # the end of the lease made room
        assert loaded(manager) == ["b"]

    run(act, ("a", {}), ("b", {}), most=1)


def test_a_pinned_model_keeps_its_place(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("untemplate_gateway.manager.offers._PATIENCE", 0.05)

    async def act(manager: Manager, shelf: Shelf) -> None:
        assert await ask(manager, "a") == "a"
        assert (await refused(manager, "b"))[:2] == (503, "models_busy")

    run(act, ("a", {"pinned": True}), ("b", {}), most=1)


def test_an_idle_model_is_unloaded_and_loaded_again():
    now = [0.0]

    async def act(manager: Manager, shelf: Shelf) -> None:
        async with manager.use("a"):
            now[0] = 50.0
            await manager.offers.unload_idle()
            assert loaded(manager) == ["a"]  # a request is running
        now[0] = 59.0
        await manager.offers.unload_idle()
        assert loaded(manager) == ["a"]
        now[0] = 60.0
        await manager.offers.unload_idle()
        assert loaded(manager) == []
        [(name, known)] = manager.unloaded()
        assert (name, None if known is None else known.name) == ("a", "a")
        assert await ask(manager, "a") == "a"
        assert shelf.loaded == ["a", "a"]

    run(act, ("a", {"idle_unload": 10.0}), clock=lambda: now[0])


def test_many_requests_for_more_models_than_fit():
    async def act(manager: Manager, shelf: Shelf) -> None:
        names = [f"m{i % 5}" for i in range(200)]
        assert await asyncio.gather(*(ask(manager, name) for name in names)) == names
        assert len(loaded(manager)) <= 2

    run(act, *((f"m{i}", {}) for i in range(5)), most=2)


class SlowEngine(FakeEngine):
    """An engine that takes its time to close."""

    def __init__(self) -> None:
        super().__init__()
        self.closing = asyncio.Event()
        self.go_on = asyncio.Event()

    async def close(self) -> None:
        self.closing.set()
        await self.go_on.wait()
        await super().close()


class TestALoadThatEndsWhileItMakesRoom:
    def test_the_model_that_makes_room_is_closed_to_the_end(self) -> None:
        slow = SlowEngine()

        async def load(report: Report) -> Model:
            return model("a", slow)

        async def act(manager: Manager, shelf: Shelf) -> None:
            offers = manager.offers
            offers.add(Offer(name="a", load=load))
            assert await ask(manager, "a") == "a"
            waiting = asyncio.create_task(refused(manager, "b"))
            await slow.closing.wait()
            offers.remove("b")  # cancels the load that makes room
            assert (await waiting)[0] == 404
            asked = asyncio.create_task(ask(manager, "c"))
            await asyncio.sleep(0.01)
            assert shelf.loaded == []  # there is no room before the old model is closed
            slow.go_on.set()
            assert await asked == "c"
            assert slow.closed == 1

        run(act, ("b", {}), ("c", {}), most=1)

    def test_a_model_that_was_told_to_close_closes_even_if_nobody_waits_for_it(self) -> None:
        slow = SlowEngine()

        async def act(manager: Manager, shelf: Shelf) -> None:
            manager.add(model("a", slow))
            unloading = asyncio.create_task(manager.unload("a"))
            await slow.closing.wait()
            unloading.cancel()
            slow.go_on.set()
            await asyncio.wait((unloading,))
            await manager.close(timeout=1)
            assert slow.closed == 1

        run(act)


class TestTheWatchForIdleModels:
    def test_it_survives_a_model_that_is_removed_meanwhile(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("untemplate_gateway.manager.offers._LOOKS", 0.001)
        slow, now = SlowEngine(), [0.0]

        async def load(report: Report) -> Model:
            return model("a", slow)

        async def act(manager: Manager, shelf: Shelf) -> None:
            offers = manager.offers
            offers.add(Offer(name="a", load=load, idle_unload=10.0))
            for name in ("a", "b", "c"):
                assert await ask(manager, name) == name
            now[0] = 20.0
            await slow.closing.wait()  # the watch has found all three, and closes the first
            offers.remove("b")
            slow.go_on.set()
            while loaded(manager):
                await asyncio.sleep(0.001)

        run(act, *((name, {"idle_unload": 10.0}) for name in "bc"), clock=lambda: now[0])

    def test_it_survives_a_failure(self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
        monkeypatch.setattr("untemplate_gateway.manager.offers._LOOKS", 0.001)
        fails = [True]

        def clock() -> float:
            if fails and task_name() == "watch":
                fails.clear()
                raise OSError("no clock")
            return 20.0

        def task_name() -> str:
            task = asyncio.current_task()
            return "" if task is None else task.get_name()

        async def act(manager: Manager, shelf: Shelf) -> None:
            assert await ask(manager, "a") == "a"
            assert manager.offers._watch is not None
            manager.offers._watch.set_name("watch")
            while fails:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.01)
            assert not manager.offers._watch.done()

        run(act, ("a", {"idle_unload": 10.0}), clock=clock)
        assert "looking for idle models: no clock" in caplog.text


class TestOtherOffers:
    """`Offers.change`: other models while requests run."""

    def test_the_same_origin_stays_loaded_and_another_one_is_replaced(self) -> None:
        async def act(manager: Manager, shelf: Shelf) -> None:
            for name in ("kept", "changed", "removed"):
                assert await ask(manager, name) == name
            async with manager.use("changed") as running, manager.use("removed") as last:
                later = [shelf.offer("kept", origin=1), shelf.offer("changed", origin=2), shelf.offer("added")]
                manager.offers.change(later)
                assert await refused(manager, "removed") == (
                    404, "model_not_found", "the model 'removed' does not exist (models: kept, changed, added)",
                )  # fmt: skip
                assert await ask(manager, "changed") == "changed"
                assert not running.engine.closed  # type: ignore[attr-defined]
                assert not last.engine.closed  # type: ignore[attr-defined]
            assert await ask(manager, "kept") == "kept"
            assert await ask(manager, "added") == "added"
            assert shelf.loaded == ["kept", "changed", "removed", "changed", "added"]
            while not (running.engine.closed and last.engine.closed):  # type: ignore[attr-defined]
                await asyncio.sleep(0.001)

        run(act, ("kept", {"origin": 1}), ("changed", {"origin": 1}), ("removed", {}))

    def test_a_request_that_waits_for_an_old_load_gets_the_new_one(self) -> None:
        async def act(manager: Manager, shelf: Shelf) -> None:
            shelf.gate.clear()
            asked = asyncio.create_task(ask(manager, "a"))
            gone = asyncio.create_task(refused(manager, "b"))
            while len(shelf.loaded) < 2:
                await asyncio.sleep(0.001)
            manager.offers.change([shelf.offer("a", origin=2)], max_loaded=1)
            shelf.gate.set()
            assert await asked == "a"
            assert await gone == (404, "model_not_found", "the model 'b' does not exist (models: a)")
            assert sorted(shelf.loaded) == ["a", "a", "b"]

        run(act, ("a", {"origin": 1}), ("b", {}), most=2)

    def test_a_model_that_leaves_counts_until_its_requests_have_ended(self) -> None:
        async def act(manager: Manager, shelf: Shelf) -> None:
            async with manager.use("a") as running:
                manager.offers.change([shelf.offer("b")], max_loaded=1)
                asked = asyncio.create_task(ask(manager, "b"))
                await asyncio.sleep(0.05)
                assert shelf.loaded == ["a"]
            assert await asked == "b"
            assert running.engine.closed  # type: ignore[attr-defined]

        run(act, ("a", {}), most=1)
