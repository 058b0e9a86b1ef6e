"""Stored responses in a real Redis."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from untemplate.errors import SettingsError
from untemplate_gateway.errors import ApiError
from untemplate_gateway.storage import RedisStorage
from untemplate_gateway.store import Kept, ResponseStore

from ..scripted import Scripted, scripted
from ..server import LONG, running, soon

redis = pytest.importorskip("redis", reason="needs the package redis (make test-scaling)")
SERVER = shutil.which("redis-server") or shutil.which("valkey-server")
pytestmark = pytest.mark.skipif(SERVER is None, reason="needs redis-server")


class Server:
    def __init__(self, folder: Path) -> None:
        self.socket = folder / "redis.sock"
        self.url = f"unix://{self.socket}"
        self.folder = folder
        self.start()

    def start(self) -> None:
        assert SERVER is not None
        command = [SERVER, "--port", "0", "--unixsocket", str(self.socket), "--dir", str(self.folder), "--save", ""]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        assert soon(self._answers)

    def _answers(self) -> bool:
        try:
            with redis.Redis.from_url(self.url) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(LONG)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.stop()


def response(id: str) -> Kept:
    item = {"id": f"msg_{id}", "type": "message", "role": "assistant", "content": "Hi"}
    return Kept({"id": id, "output": [item]}, [{"type": "message", "role": "user", "content": "Hi"}])


def test_responses_belong_to_their_owners_and_end(server: Server):
    first, second = (ResponseStore(server.url, 0.3, 1 << 20) for _ in range(2))
    first.put("a", response("r"))
    assert second.get("a", "r") == response("r")
    assert second.item("a", "msg_r") == response("r").response["output"][0]
    assert (second.get("b", "r"), second.item("b", "msg_r"), second.delete("b", "r")) == (None, None, False)
    assert second.delete("a", "r")
    assert (first.get("a", "r"), first.item("a", "msg_r")) == (None, None)
    first.put("a", response("r"))
    time.sleep(0.4)
    assert first.get("a", "r") is None
    with redis.Redis.from_url(server.url) as client:
        assert client.keys() == []
    first.close()
    second.close()


def test_a_redis_that_fails_is_logged_once_and_not_asked_again_at_once(
    server: Server, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    store = ResponseStore(server.url, 60, 1 << 20)
    server.stop()
    assert not store.put("", response("r"))
    with pytest.raises(ApiError, match=r"^the stored responses cannot be read now; try again$") as caught:
        store.get("", "r")
    assert (caught.value.status, caught.value.detail) == (503, "Redis did not answer a moment ago")
    assert not store.put("", response("r"))
    [said] = caplog.messages
    assert said.startswith("response_store: Redis fails: ")
    assert said.endswith("; until it works again, responses are not stored")
    server.start()
    monkeypatch.setattr("untemplate_gateway.storage._PAUSE", 0)
    store._storage._paused_until = 0.0  # type: ignore[attr-defined]
    store.put("", response("r"))
    assert store.get("", "r") == response("r")
    store.close()


def test_a_redis_that_is_silent_is_a_503_and_never_asked_on_the_event_loop(
    server: Server, monkeypatch: pytest.MonkeyPatch
):
    asked_in: set[int] = set()
    storage_try = RedisStorage._try

    def recorded(storage: RedisStorage, act: Any) -> Any:
        asked_in.add(threading.get_ident())
        return storage_try(storage, act)

    monkeypatch.setattr(RedisStorage, "_try", recorded)
    model = scripted("Hello.")
    with running([model], response_store=server.url) as gateway, httpx.Client(base_url=gateway.url, timeout=LONG) as to:
        body = {"model": model.name, "input": "Hi"}
        id = to.post("/v1/responses", json=body).json()["id"]
        server.process.send_signal(signal.SIGSTOP)
        unstored = to.post("/v1/responses", json=body)
        answers = [
            to.post("/v1/responses", json={**body, "previous_response_id": id}),
            to.post("/v1/responses", json={**body, "input": [{"type": "item_reference", "id": "msg_1"}]}),
            to.post("/v1/responses/input_tokens", json={**body, "previous_response_id": id}),
            to.get(f"/v1/responses/{id}"),
            to.get(f"/v1/responses/{id}/input_items"),
            to.delete(f"/v1/responses/{id}"),
        ]
        loop = asyncio.run_coroutine_threadsafe(_ident(), gateway.loop).result(LONG)
    server.process.send_signal(signal.SIGCONT)
    assert (unstored.status_code, unstored.json()["store"]) == (200, False)
    assert {answer.status_code for answer in answers} == {503}
    assert {answer.json()["error"]["message"] for answer in answers} == {
        "the stored responses cannot be read now; try again"
    }
    assert asked_in
    assert loop not in asked_in


async def _ident() -> int:
    return threading.get_ident()


def test_a_redis_that_is_not_there_is_an_error_at_the_start(tmp_path: Path):
    with pytest.raises(SettingsError, match=r"^response_store: Redis does not answer: "):
        ResponseStore(f"unix://{tmp_path}/none.sock", 60, 1 << 20)


def test_a_conversation_continues_on_another_gateway(server: Server):
    models = [scripted("Hello."), scripted("Again.")]
    with running([models[0]], response_store=server.url) as one, running([models[1]], response_store=server.url) as two:
        asked = {"model": models[0].name, "input": "Hi"}
        first = httpx.post(one.url + "/v1/responses", json=asked, timeout=LONG).json()
        asked = {"model": models[1].name, "input": "And?", "previous_response_id": first["id"]}
        second = httpx.post(two.url + "/v1/responses", json=asked, timeout=LONG).json()
        assert second["output"][0]["content"][0]["text"] == "Again."
        engine = models[1].engine
        assert isinstance(engine, Scripted)
        assert "Hello." in str(engine.jobs[0].prompt)
