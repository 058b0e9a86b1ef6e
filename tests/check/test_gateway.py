"""A whole run against untemplate's own gateway with the replay engine: everything passes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from gateway_tests.server import Running, running
from untemplate import OutputParser
from untemplate.check import Order, Report, Server, run
from untemplate_gateway.manager.replaying import replay_models
from untemplate_gateway.settings import Replay, Settings


@pytest.fixture(scope="module")
def gateway() -> Iterator[Running]:
    models = replay_models(Settings(model="replay", replay=Replay(speed=0)))
    with running(models) as found:
        yield found


def check(url: str, model: str, **order: object) -> Report:
    async def checked() -> Report:
        server = Server(url)
        try:
            return await run(server, Order(**order), lambda _, name, __: OutputParser.named(name), model=model)
        finally:
            await server.close()

    return asyncio.run(checked())


@pytest.mark.parametrize("model", ["hermes", "gpt-oss", "qwen3_coder", "glm45", "minimax_m2"])
def test_everything_passes(gateway: Running, model: str) -> None:
    report = check(gateway.url, model)
    assert report.capabilities.way == "choice"
    assert report.capabilities.apis == ("chat", "completions", "responses", "messages")
    assert [result for result in report.results if result.verdict in ("fail", "soft")] == []
    assert report.count("pass") >= 40
    assert report.stopped == ""
