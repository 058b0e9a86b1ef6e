"""The application that loads its models when a server starts it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from untemplate_gateway.deferred import DeferredGateway
from untemplate_gateway.manager import Manager
from untemplate_gateway.settings import Settings


def test_a_gateway_that_cannot_start_says_why_and_closes_its_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    closed: list[Manager] = []
    close = Manager.close

    async def noted(self: Manager, timeout: float | None = None) -> bool:
        closed.append(self)
        return await close(self, timeout)

    monkeypatch.setattr(Manager, "close", noted)
    log = tmp_path / "missing" / "raw.jsonl"
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "lifespan.startup"}

    async def send(message: Any) -> None:
        sent.append(message)

    app = DeferredGateway(Settings(model="replay:hermes", log_raw=str(log), log_raw_consent=True))
    asyncio.run(app({"type": "lifespan"}, receive, send))
    problem = f"log_raw {log}: No such file or directory"
    assert sent == [{"type": "lifespan.startup.failed", "message": problem}]
    assert len(closed) == 1
