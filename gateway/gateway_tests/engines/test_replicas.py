"""Several upstreams as one engine: choice, failures before and after the first chunk, health."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from untemplate_gateway.engines import EngineError, Takes, replicas
from untemplate_gateway.engines.openai import OpenAIEngine
from untemplate_gateway.engines.replicas import Replicas
from untemplate_gateway.errors import ApiError
from untemplate_gateway.request_context import RequestContext, current

from .test_openai import job, pieces, text
from .upstream import DIE, WAIT, Answer, Upstream, events

OK = {"/health": Answer()}


def good(word: str) -> Answer:
    return Answer(events(text(word), text("", "stop")))


def run(servers: list[Any], act: Callable[[Replicas, list[Upstream]], Awaitable[Any]]) -> Any:
    """Run ``act`` with replicas: one for each list of answers to ``/v1/completions``."""

    async def main() -> Any:
        async with AsyncExitStack() as stack:
            ups = [
                await stack.enter_async_context(Upstream({"/v1/completions": answers, "/health": Answer()}))
                for answers in servers
            ]
            engine = Replicas([OpenAIEngine(up.url, retries=0) for up in ups])
            try:
                await engine.start()
                return await act(engine, ups)
            finally:
                await engine.close()

    return asyncio.run(asyncio.wait_for(main(), 120))


async def said(engine: Replicas) -> str:
    return "".join(piece.text for piece in await pieces(engine, job()))


def test_the_least_busy_replica_takes_a_job():
    async def act(engine: Replicas, ups: list[Upstream]) -> None:
        running = asyncio.create_task(said(engine))
        while not ups[0].to("/v1/completions"):
            await asyncio.sleep(0.001)
        assert await said(engine) == "b"
        assert await said(engine) == "b"
        running.cancel()

    run([Answer([WAIT]), good("b")], act)


def test_a_replica_that_fails_before_its_first_chunk_is_replaced_and_left_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(replicas, "_CHECK", 3600.0)
    for failure in (Answer([DIE]), Answer.json({"error": {"message": "no"}}, 503)):

        async def act(engine: Replicas, ups: list[Upstream]) -> None:
            assert await said(engine) == "b"
            asked = len(ups[0].to("/v1/completions"))
            assert [await said(engine) for _ in range(3)] == ["b", "b", "b"]
            assert [len(up.to("/v1/completions")) for up in ups] == [asked, 4]

        run([failure, good("b")], act)
    assert caplog.text.count("takes no jobs for now") == 2


def test_a_failure_after_the_first_chunk_is_the_failure_of_the_answer():
    async def act(engine: Replicas, ups: list[Upstream]) -> None:
        came = []
        with pytest.raises(EngineError, match="the upstream broke off"):
            async for piece in engine.generate(job()):
                came.append(piece.text)
        assert came == ["a"]
        assert ups[1].to("/v1/completions") == []

    run([Answer([events(text("a"))[0], DIE]), good("b")], act)


def test_a_request_that_is_wrong_is_wrong_everywhere():
    async def act(engine: Replicas, ups: list[Upstream]) -> None:
        with pytest.raises(ApiError, match="prompt is too long"):
            await said(engine)
        assert ups[1].to("/v1/completions") == []

    run([Answer.json({"error": {"message": "prompt is too long"}}, 413), good("b")], act)


def test_codes_that_a_server_makes_up_are_not_counted():
    context = RequestContext()

    async def act(engine: Replicas, ups: list[Upstream]) -> None:
        current.set(context)
        with pytest.raises(ApiError):
            await said(engine)

    run([Answer.json({"error": {"message": "no", "code": "about 8d1f"}}, 404)], act)
    assert context.errors == ["404"]


def test_the_last_failure_is_raised_if_every_replica_fails():
    async def act(engine: Replicas, ups: list[Upstream]) -> None:
        with pytest.raises(EngineError, match="the upstream is not available"):
            await said(engine)

    run([Answer.json({}, 503), Answer.json({}, 503)], act)


def test_a_replica_takes_jobs_again_when_it_is_healthy(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(replicas, "_CHECK", 0.01)

    async def act(engine: Replicas, ups: list[Upstream]) -> None:
        assert await said(engine) == "b"
        while await said(engine) != "a":
            await asyncio.sleep(0.01)

    run([[Answer.json({}, 503), good("a")], good("b")], act)


def test_a_replica_with_other_abilities_is_reported_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(replicas, "_CHECK", 0.01)
    caplog.set_level("INFO")

    async def act(engine: Replicas, ups: list[Upstream]) -> None:
        engine.takes = Takes(logprobs=True)
        late = engine._replicas[1]
        late.started = late.healthy = False
        await asyncio.sleep(0.2)
        assert await said(engine) == "a"

    run([good("a"), good("b")], act)
    assert caplog.text.count("has other abilities than the first one; it takes no jobs") == 1
    assert "available again" not in caplog.text


def test_a_replica_that_is_not_there_at_the_start_is_reported(caplog: pytest.LogCaptureFixture):
    async def main() -> None:
        async with Upstream({"/v1/completions": good("b"), "/health": Answer()}) as up:
            engine = Replicas([OpenAIEngine("http://127.0.0.1:9", retries=0), OpenAIEngine(up.url, retries=0)])
            await engine.start()
            assert await said(engine) == "b"
            health = await engine.health()
            assert (health.ok, health.detail) == (True, "1 of 2 replicas are not available")
            await engine.close()
            engine = Replicas([OpenAIEngine("http://127.0.0.1:9", retries=0) for _ in range(2)])
            with pytest.raises(EngineError, match="the upstream cannot be reached"):
                await engine.start()

    asyncio.run(asyncio.wait_for(main(), 120))
    assert "replica http://127.0.0.1:9: not available: http://127.0.0.1:9: Connect" in caplog.text
