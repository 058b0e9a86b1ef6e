"""Models are loaded, replaced and unloaded without an effect on running requests."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from untemplate_gateway.engines import EngineError, Health
from untemplate_gateway.errors import ApiError
from untemplate_gateway.manager import Loader, Manager, Model, Report

from .fakes import FakeEngine, model


def refused(manager: Manager, name: str) -> tuple[int, str | None, str]:
    """Return the error of a request for this name."""

    async def ask() -> None:
        async with manager.use(name):
            pass

    with pytest.raises(ApiError) as caught:
        asyncio.run(ask())
    return caught.value.status, caught.value.code, caught.value.message


async def answer(manager: Manager, name: str = "") -> str:
    """Answer one request, in several steps."""
    async with manager.use(name) as leased:
        text = ""
        for _ in range(5):
            await asyncio.sleep(0)
            async for piece in leased.engine.generate(None):  # type: ignore[arg-type]
                text = piece.text
        return text


def loads(found: Model) -> Loader:
    async def loader(report: Report) -> Model:
        report("reading")
        await found.engine.start()
        await asyncio.sleep(0)
        return found

    return loader


# -- names --------------------------------------------------------------------------------------------------------


def names_of(manager: Manager, *names: str) -> list[str]:
    return [manager.get(name).name for name in names]


def test_names_and_aliases():
    manager = Manager([model("a", aliases=("first",)), model("b")], aliases={"gpt-4o": "b"})
    assert names_of(manager, "a", "first", "b", "gpt-4o", "a:latest", "gpt-4o:latest") == ["a", "a", "b", "b", "a", "b"]
    assert [m.name for m in manager.list()] == ["a", "b"]


def test_the_only_model_needs_no_name():
    assert names_of(Manager([model("a")], aliases={"gpt-4o": ""}), "", "gpt-4o") == ["a", "a"]


def test_any_name_will_do_where_the_operator_says_so():
    assert names_of(Manager([model("a")], any_name=True), "whatever") == ["a"]
    two = Manager([model("a"), model("b")], any_name=True)
    assert refused(two, "whatever") == (
        *(404, "model_not_found"),
        "the model 'whatever' does not exist (models: a, b)",
    )


def test_unknown_names():
    manager = Manager([model("qwen3-8b"), model("llama")])
    assert refused(manager, "qwen3-8B") == (
        *(404, "model_not_found"),
        "the model 'qwen3-8B' does not exist; did you mean 'qwen3-8b'? (models: qwen3-8b, llama)",
    )
    assert refused(manager, "") == (400, None, "model: is required: there are several models: qwen3-8b, llama")
    assert refused(Manager(), "") == (404, "model_not_found", "no model is loaded (models: none)")
    assert refused(Manager(), "x") == (404, "model_not_found", "the model 'x' does not exist (models: none)")
    assert refused(Manager(aliases={"gpt": "b"}), "gpt") == (
        *(404, "model_not_found"),
        "the model 'gpt' does not exist (models: none)",
    )


@pytest.mark.parametrize(
    ("models", "aliases", "taken"),
    [
        ([model("a"), model("a")], {}, "the name 'a' of model 'a' belongs to another model"),
        ([model("a"), model("b", aliases=("a",))], {}, "the name 'a' of model 'b' belongs to another model"),
        ([model("a", aliases=("x",)), model("x")], {}, "the name 'x' of model 'x' belongs to another model"),
        ([model("a", aliases=("x",))], {"x": "b"}, "the name 'x' of model 'a' belongs to another model"),
    ],
)
def test_a_name_belongs_to_one_model(models: list[Model], aliases: dict[str, str], taken: str):
    with pytest.raises(ValueError, match="belongs") as caught:
        Manager(models, aliases=aliases)
    assert str(caught.value) == taken


# -- loading ------------------------------------------------------------------------------------------------------


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Return what was logged about models, without the time that it took."""
    return [(r.levelname, r.getMessage().partition(" (")[0]) for r in caplog.records]


def test_loading_logs_what_it_does(caplog: pytest.LogCaptureFixture):
    async def run() -> None:
        manager = Manager()
        engine = FakeEngine()
        loaded = await manager.load("a", loads(model("made up", engine)))
        assert (loaded.name, loaded.engine, engine.started) == ("a", engine, 1)
        assert await answer(manager, "a") == "Hi."
        assert await manager.close()
        assert engine.closed == 1

    with caplog.at_level(logging.INFO, "untemplate.gateway.manager"):
        asyncio.run(run())
    assert logged(caplog) == [
        ("INFO", "model a loading"),
        ("INFO", "model a reading"),
        ("INFO", "model a ready: fake"),
        ("INFO", "model a gone"),
    ]


def test_what_is_being_loaded_says_so():
    async def run() -> None:
        manager = Manager(clock=lambda: 7.0)
        gate = asyncio.Event()

        async def slow(report: Report) -> Model:
            await gate.wait()
            return model("a")

        task = asyncio.create_task(manager.load("a", slow))
        await asyncio.sleep(0)
        assert [(s.name, s.state, s.since, s.loaded) for s in manager.ps()] == [("a", "loading", 7.0, None)]
        for name, which in (("a", "the model 'a'"), ("", "the model")):
            with pytest.raises(ApiError) as caught:
                manager.get(name)
            assert (caught.value.status, caught.value.code) == (503, "model_loading")
            assert caught.value.message == f"{which} is being loaded; try again in a few seconds"
            assert caught.value.headers == {"Retry-After": "5"}
        gate.set()
        loaded = await task
        (status,) = manager.ps()
        assert (status.state, status.requests, status.model) == ("ready", 0, loaded)
        async with manager.use("a"):
            (status,) = manager.ps()
            assert status.requests == 1

    asyncio.run(run())


def test_a_load_that_fails_leaves_the_old_model(caplog: pytest.LogCaptureFixture):
    async def run() -> None:
        old = FakeEngine("old")
        manager = Manager([model("a", old)])
        with pytest.raises(EngineError, match="out of memory"):
            await manager.swap("a", loads(model("a", FakeEngine(fails=True))))
        assert await answer(manager, "a") == "old"
        assert (old.closed, [s.state for s in manager.ps()]) == (0, ["ready"])

    with caplog.at_level(logging.INFO, "untemplate.gateway.manager"):
        asyncio.run(run())
    assert logged(caplog) == [
        ("INFO", "model a loading"),
        ("INFO", "model a reading"),
        ("WARNING", "model a failed: out of memory"),
    ]


def test_a_model_that_cannot_have_its_name_is_closed_again():
    async def run() -> None:
        manager = Manager([model("a", aliases=("b",))])
        engine = FakeEngine()
        with pytest.raises(ValueError, match="the name 'b' of model 'b' belongs to another model"):
            await manager.load("b", loads(model("b", engine)))
        assert (engine.started, engine.closed) == (1, 1)

    asyncio.run(run())


def test_a_load_that_is_cancelled():
    async def run() -> None:
        manager = Manager()

        async def never(report: Report) -> Model:
            await asyncio.Event().wait()
            raise AssertionError

        task = asyncio.create_task(manager.load("a", never))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert manager.ps() == ()

    asyncio.run(run())


def test_loads_of_one_name_follow_each_other():
    async def run() -> None:
        running = most = 0

        def loader(found: Model) -> Loader:
            async def load(report: Report) -> Model:
                nonlocal running, most
                running += 1
                most = max(most, running)
                await asyncio.sleep(0)
                running -= 1
                return found

            return load

        manager = Manager()
        engines = [FakeEngine(str(i)) for i in range(4)]
        await asyncio.gather(*(manager.load("a", loader(model("a", engine))) for engine in engines))
        assert most == 1
        assert await answer(manager, "a") == "3"
        await manager.close()
        assert [engine.closed for engine in engines] == [1, 1, 1, 1]

    asyncio.run(run())


# -- swapping, and letting go -------------------------------------------------------------------------------------


def test_swapping_under_load_drops_nothing():
    async def run() -> None:
        engines = [FakeEngine(str(i)) for i in range(20)]
        manager = Manager([model("a", engines[0])])
        seen: set[str] = set()
        done = False

        async def client() -> None:
            while not done:
                seen.add(await answer(manager, "a"))

        clients = [asyncio.create_task(client()) for _ in range(50)]
        for engine in engines[1:]:
            await manager.swap("a", loads(model("a", engine)))
            await asyncio.sleep(0)
        await answer(manager, "a")
        done = True
        await asyncio.gather(*clients)
        assert await manager.close()
        assert len(seen) > 3
        assert [engine.closed for engine in engines] == [1] * 20

    asyncio.run(run())


def test_the_old_model_closes_when_its_last_request_ends():
    async def run() -> None:
        old, new = FakeEngine("old"), FakeEngine("new")
        manager = Manager([model("a", old)])
        async with manager.use("a") as held:
            await manager.swap("a", loads(model("a", new)))
            await asyncio.sleep(0)
            assert held.engine is old
            assert old.closed == 0
            assert await answer(manager, "a") == "new"
            assert [(s.name, s.state, s.requests) for s in manager.ps()] == [("a", "ready", 0), ("a", "draining", 1)]
        for _ in range(5):
            await asyncio.sleep(0)
        assert old.closed == 1
        assert [s.state for s in manager.ps()] == ["ready"]

    asyncio.run(run())


def test_swapping_what_is_not_there():
    async def run() -> None:
        with pytest.raises(ApiError) as caught:
            await Manager().swap("a", loads(model("a")))
        assert caught.value.message == "the model 'a' does not exist (models: none)"
        with pytest.raises(ApiError) as caught:
            await Manager([model("b")]).unload("a")
        assert caught.value.message == "the model 'a' does not exist (models: b)"

    asyncio.run(run())


def test_all_models_change_at_once():
    async def run() -> None:
        a, b, new, c = (FakeEngine(name) for name in ("a", "b", "new", "c"))
        manager = Manager([model("a", a), model("b", b, aliases=("x",))])
        async with manager.use("x"):
            bad = FakeEngine()
            with pytest.raises(ValueError, match="the name 'c' of model 'd' belongs to another model"):
                await manager.change(model("c", bad), model("d", bad, aliases=("c",)))
            assert ([m.name for m in manager.list()], bad.closed) == (["a", "b"], 1)
            await manager.change(model("a", new), model("c", c, aliases=("x",)))
            for _ in range(3):
                await asyncio.sleep(0)
            assert manager.get("x").name == "c"
            assert [m.name for m in manager.list()] == ["a", "c"]
            assert [await answer(manager, name) for name in ("a", "c")] == ["new", "c"]
            assert (a.closed, b.closed) == (1, 0)
            with pytest.raises(ApiError, match="the model 'b' does not exist"):
                manager.get("b")
        await manager.close()
        assert [engine.closed for engine in (a, b, new, c)] == [1, 1, 1, 1]

    asyncio.run(run())


def test_unloading_waits_for_requests():
    async def run() -> None:
        engine = FakeEngine()
        manager = Manager([model("a", engine, aliases=("x",)), model("b")])
        async with manager.use("x"):
            task = asyncio.create_task(manager.unload("a"))
            await asyncio.sleep(0)
            for name in ("a", "x"):
                with pytest.raises(ApiError, match=f"the model '{name}' does not exist"):
                    manager.get(name)
            assert (engine.closed, task.done()) == (0, False)
        assert await task is True
        assert engine.closed == 1
        await manager.load("a", loads(model("a")))

    asyncio.run(run())


def test_unloading_waits_only_so_long(caplog: pytest.LogCaptureFixture):
    async def run() -> None:
        engine = FakeEngine()
        manager = Manager([model("a", engine)])
        async with manager.use("a"):
            assert await manager.unload("a", timeout=0) is False
            assert engine.closed == 1

    with caplog.at_level(logging.INFO, "untemplate.gateway.manager"):
        asyncio.run(run())
    assert logged(caplog) == [("INFO", "model a draining: 1 running"), ("WARNING", "model a gone: 1 cut off")]


def test_a_shared_engine_is_closed_with_its_last_model():
    async def run() -> None:
        engine = FakeEngine()
        manager = Manager([model("a", engine), model("b", engine)])
        await manager.unload("a")
        assert engine.closed == 0
        assert await answer(manager) == "Hi."
        await manager.unload("b")
        assert engine.closed == 1

    asyncio.run(run())


def test_closing():
    async def run() -> None:
        old, engine = FakeEngine(), FakeEngine()
        manager = Manager([model("a", old)])
        async with manager.use("a"):
            await manager.swap("a", loads(model("a", engine)))
            async with manager.use("a"):
                task = asyncio.create_task(manager.close())
                await asyncio.sleep(0)
                with pytest.raises(ApiError) as caught:
                    manager.get("a")
                assert (caught.value.status, caught.value.code) == (503, "shutting_down")
                assert caught.value.message == "the server is shutting down"
                with pytest.raises(ApiError, match="the server is shutting down"):
                    await manager.load("b", loads(model("b")))
            await asyncio.sleep(0)
            assert not task.done()
        assert await task is True
        assert (old.closed, engine.closed) == (1, 1)
        assert await manager.close() is True
        assert (old.closed, engine.closed) == (1, 1)

    asyncio.run(run())


def test_closing_waits_only_so_long():
    async def run() -> None:
        old, engine = FakeEngine(), FakeEngine()
        manager = Manager([model("a", old)])
        async with manager.use("a"):
            await manager.swap("a", loads(model("a", engine)))
            assert await manager.close(timeout=0) is False
            assert (old.closed, engine.closed) == (1, 1)

    asyncio.run(run())


def test_what_is_ready_after_the_end_is_closed():
    async def run() -> None:
        manager = Manager()
        gate = asyncio.Event()
        engine = FakeEngine()

        async def slow(report: Report) -> Model:
            await gate.wait()
            return model("a", engine)

        task = asyncio.create_task(manager.load("a", slow))
        await asyncio.sleep(0)
        await manager.close()
        gate.set()
        with pytest.raises(ApiError, match="the server is shutting down"):
            await task
        assert engine.closed == 1

    asyncio.run(run())


def test_an_engine_that_does_not_close(caplog: pytest.LogCaptureFixture):
    class Stuck(FakeEngine):
        async def close(self) -> None:
            raise RuntimeError("stuck")

    async def run() -> None:
        manager = Manager([model("a", Stuck())])
        assert await manager.unload("a")

    asyncio.run(run())
    assert [r.getMessage() for r in caplog.records] == ["model a: its engine did not close"]


def test_health():
    class Broken(FakeEngine):
        async def health(self) -> Health:
            raise OSError("no route")

    async def run() -> dict[str, Any]:
        return await Manager([model("a"), model("b", Broken())]).health()

    assert asyncio.run(run()) == {"a": Health(True), "b": Health(False, "OSError: no route")}


def test_what_is_logged(caplog: pytest.LogCaptureFixture):
    async def run() -> None:
        manager = Manager()
        await manager.load("a", loads(model("a")))
        with pytest.raises(EngineError):
            await manager.load("b", loads(model("b", FakeEngine(fails=True))))

    with caplog.at_level(logging.INFO, "untemplate.gateway.manager"):
        asyncio.run(run())
    assert logged(caplog) == [
        ("INFO", "model a loading"),
        ("INFO", "model a reading"),
        ("INFO", "model a ready: fake"),
        ("INFO", "model b loading"),
        ("INFO", "model b reading"),
        ("WARNING", "model b failed: out of memory"),
    ]
