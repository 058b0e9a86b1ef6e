"""An engine controlled by a test, and models with it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from untemplate import OutputParser
from untemplate_gateway.engines import Engine, EngineChunk, EngineError, Health, Job, Takes
from untemplate_gateway.manager import Model

PASSTHROUGH = OutputParser.named("passthrough")


class FakeEngine(Engine):
    kind = "fake"
    takes = Takes()

    def __init__(self, text: str = "Hi.", *, fails: bool = False) -> None:
        self.text = text
        self.fails = fails
        self.started = self.closed = 0

    async def start(self) -> None:
        if self.fails:
            raise EngineError("out of memory")
        self.started += 1

    async def close(self) -> None:
        self.closed += 1

    async def generate(self, job: Job) -> AsyncGenerator[EngineChunk, None]:
        assert not self.closed, "a job for an engine that is closed"
        yield EngineChunk(self.text, finish_reason="stop")

    async def health(self) -> Health:
        return Health(not self.closed)


def model(name: str, engine: Engine | None = None, **more: Any) -> Model:
    return Model(name=name, engine=engine or FakeEngine(), parser=PASSTHROUGH, **more)
