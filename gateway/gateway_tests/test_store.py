"""Stored responses: bounds and owners of the store, and conversations of the official client."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from untemplate.errors import SettingsError
from untemplate_gateway.errors import ApiError
from untemplate_gateway.storage import StorageError
from untemplate_gateway.store import Kept, ResponseStore

from .scripted import Scripted, scripted
from .server import LONG, Running, running


def response(id: str, text: str = "") -> Kept:
    item = {"id": f"msg_{id}", "type": "message", "role": "assistant", "content": text}
    return Kept({"id": id, "output": [item]}, [{"type": "message", "role": "user", "content": "Hi"}])


def refer(id: str) -> dict[str, Any]:
    return {"type": "item_reference", "id": f"msg_{id}"}


@pytest.fixture(params=["memory", "file"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "responses.db") if request.param == "file" else ""


def test_old_responses_go(path: str):
    now = [0.0]
    store = ResponseStore(path, 10, 1 << 20, clock=lambda: now[0])
    store.put("", response("a"))
    now[0] = 5
    store.put("", response("b"))
    assert store.get("", "a") == response("a")
    assert store.item("", "msg_a") == response("a").response["output"][0]
    now[0] = 11
    assert store.get("", "a") is None
    assert store.get("", "b") is not None
    store.put("", response("c"))
    assert store._storage._db.execute("SELECT id FROM responses ORDER BY id").fetchall() == [("b",), ("c",)]
    assert store._storage._db.execute("SELECT count(*) FROM items").fetchone() == (2,)
    store.close()


def test_the_oldest_make_room(path: str):
    store = ResponseStore(path, 10, 1000, clock=lambda: 0.0)
    for i in range(20):
        store.put("", response(str(i), "x" * 300))
        assert store._storage._db.execute("SELECT sum(size) FROM responses").fetchone()[0] <= 1000
    assert [store.get("", str(i)) is not None for i in range(20)] == [False] * 18 + [True] * 2
    store.put("", response("large", "x" * 2000))
    assert store.get("", "large") is None
    assert store.get("", "19") is not None
    store.close()


def test_other_keys_find_nothing(path: str):
    store = ResponseStore(path, 10, 1 << 20)
    store.put("one", response("a"))
    assert store.get("two", "a") is None
    assert store.item("two", "msg_a") is None
    assert not store.delete("two", "a")
    with pytest.raises(ApiError) as caught:
        asyncio.run(store.expanded("two", {"input": "x", "previous_response_id": "a"}))
    assert caught.value.message == "previous_response_id: no response 'a' is stored here"
    with pytest.raises(ApiError) as caught:
        asyncio.run(store.expanded("two", {"input": [refer("a")]}))
    assert caught.value.message == "input[0].id: no item 'msg_a' is stored here"
    assert store.delete("one", "a")
    assert not store.delete("one", "a")
    store.close()


def test_a_file_outlives_its_gateway(tmp_path: Path):
    path = str(tmp_path / "responses.db")
    first = ResponseStore(path, 10, 1 << 20)
    first.put("", response("a"))
    second = ResponseStore(path, 10, 1 << 20)
    assert second.get("", "a") == response("a")
    first.close()
    second.close()


class TestManyReferences:
    """One request that refers to the same item thousands of times."""

    def test_each_response_is_read_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        store = ResponseStore("", 10, 1 << 20)
        store.put("", response("a", "x" * 1000))
        read: list[str] = []
        get = store._storage.get

        def counted(owner: str, id: str) -> bytes | None:
            read.append(id)
            return get(owner, id)

        monkeypatch.setattr(store._storage, "get", counted)
        found = asyncio.run(store.expanded("", {"input": [refer("a")] * 4000}))
        assert read == ["a"]
        [item] = {id(item): item for item in found["input"]}.values()  # one object, 4000 times
        assert item == response("a", "x" * 1000).response["output"][0]

    def test_more_than_the_limit_of_messages_are_refused_first(self) -> None:
        store = ResponseStore("", 10, 1 << 20, most=3)
        with pytest.raises(ApiError) as caught:
            asyncio.run(store.expanded("", {"input": [refer("none")] * 4}))
        assert (caught.value.status, caught.value.param, caught.value.message) == (
            400, "input", "input: 4 references are more than 3",
        )  # fmt: skip

    def test_together_they_are_not_larger_than_a_body_may_be(self) -> None:
        store = ResponseStore("", 10, 1 << 20, most_bytes=10_000)
        store.put("", response("a", "x" * 1000))
        assert len(asyncio.run(store.expanded("", {"input": [refer("a")] * 9}))["input"]) == 9
        with pytest.raises(ApiError) as caught:
            asyncio.run(store.expanded("", {"input": [refer("a")] * 10}))
        assert (caught.value.status, caught.value.param, caught.value.message) == (
            413, "input", "input: the items that it refers to have more than 10000 bytes",
        )  # fmt: skip


# -- Through the gateway ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gateway() -> Iterator[Running]:
    with running([scripted(lambda job: f"<think>\nHm.\n</think>\n\n{len(job.prompt)}")]) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def client(gateway: Running) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.mark.parametrize("streamed", [False, True])
def test_a_response_that_continues_another(client: openai.OpenAI, streamed: bool):
    def create(**asked: Any) -> Any:
        if not streamed:
            return client.responses.create(model="scripted", **asked)
        with client.responses.stream(model="scripted", **asked) as stream:
            return stream.get_final_response()

    first = create(input="Hello")
    assert first.store
    items = [{"role": "user", "content": "Hello"}, *(item.model_dump() for item in first.output)]
    whole = create(input=[*items, {"role": "user", "content": "And?"}], store=False)
    second = create(input="And?", previous_response_id=first.id)
    assert second.previous_response_id == first.id
    assert second.output_text == whole.output_text != first.output_text
    references: Any = [{"type": "item_reference", "id": item.id} for item in first.output]
    again = create(input=[items[0], *references, {"role": "user", "content": "And?"}])
    assert again.output_text == whole.output_text
    assert not whole.store


def test_reading_and_deleting(gateway: Running, client: openai.OpenAI):
    made = client.responses.create(model="scripted", input="Hello")
    assert client.responses.retrieve(made.id) == made
    assert [item.content for item in client.responses.input_items.list(made.id)] == ["Hello"]  # type: ignore[union-attr]
    client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError, match=r"no response .* is stored here"):
        client.responses.retrieve(made.id)
    unstored = client.responses.create(model="scripted", input="Hello", store=False)
    with pytest.raises(openai.NotFoundError):
        client.responses.delete(unstored.id)


class Wordless(Scripted):
    """An engine without a tokenizer."""

    async def tokenize(self, text: str, *, special: bool = True) -> list[int]:
        raise NotImplementedError


def test_counting_the_input(gateway: Running):
    asked = {"input": "Hello " * 40}
    answer = httpx.post(f"{gateway.url}/v1/responses/input_tokens", json=asked, timeout=60)
    assert answer.json() == {"object": "response.input_tokens", "input_tokens": 290}
    assert "x-untemplate-notes" not in answer.headers


def test_an_estimate_is_marked():
    messages = [{"role": "user", "content": "Hello " * 40}]
    with running([replace(scripted("x"), engine=Wordless("x"))]) as gateway:
        for path, field in (("responses/input_tokens", "input"), ("messages/count_tokens", "messages")):
            answer = httpx.post(f"{gateway.url}/v1/{path}", json={field: messages}, timeout=60)
            assert answer.json()["input_tokens"] == 69
            note = "the number of tokens is an estimate: the engine does not offer its tokenizer"
            assert answer.headers["x-untemplate-notes"] == note


def test_nothing_is_stored_if_the_operator_says_so():
    with running([scripted("x")], response_ttl=0.0) as gateway:
        made = httpx.post(f"{gateway.url}/v1/responses", json={"input": "Hello"}, timeout=60).json()
        assert made["store"] is False
        assert httpx.get(f"{gateway.url}/v1/responses/{made['id']}", timeout=60).status_code == 404


def test_a_full_disk(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """The answer is there, so it is sent; clients that got an error would have it generated once more."""
    asked = {"model": "scripted", "input": "Hi"}
    with running([scripted("Hello")], response_store=str(tmp_path / "responses.db")) as gateway:
        first = httpx.post(gateway.url + "/v1/responses", json=asked, timeout=LONG)
        database = gateway.app.store._storage._db
        pages = database.execute("PRAGMA page_count").fetchone()[0]
        database.execute(f"PRAGMA max_page_count = {pages}")  # what SQLite reports then is what a full disk gives
        long = {**asked, "input": "x" * 100_000}
        message = {"role": "user", "content": long["input"]}
        for _ in range(2):
            answered = httpx.post(gateway.url + "/v1/responses", json=long, timeout=LONG)
            note = "store: the response could not be stored; it cannot be referred to"
            assert (answered.status_code, answered.headers["x-untemplate-notes"]) == (200, note)
            assert (answered.json()["status"], answered.json()["store"]) == ("completed", False)
        streamed = httpx.post(gateway.url + "/v1/responses", json={**long, "stream": True}, timeout=LONG).text
        last = json.loads(streamed.rstrip().rpartition("data: ")[2])
        assert (last["type"], last["response"]["store"]) == ("response.completed", False)
        assert httpx.get(f"{gateway.url}/v1/responses/{first.json()['id']}", timeout=LONG).json() == first.json()
        for path, body in (
            ("/v1/conversations", {"items": [message]}),
            ("/v1/responses", {"input": [message], "background": True}),
        ):
            answered = httpx.post(gateway.url + path, json=body, timeout=LONG)
            assert (answered.status_code, answered.headers["retry-after"]) == (503, "5")
            assert answered.json()["error"]["message"] == "the stored responses cannot be changed now; try again"
    lines = [line for line in caplog.messages if "response_store" in line]
    assert lines == ["response_store: database or disk is full; until it works again, responses are not stored"]


_LIMITED = """
import resource, sys
from untemplate_gateway.store import Kept, ResponseStore
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
store = ResponseStore(sys.argv[1], 1000, 1 << 30)
stored = [
    store.put("owner", Kept({"id": f"resp_{i}", "output": [{"id": f"msg_{i}"}], "text": "x" * 20_000}, []))
    for i in range(40)
]
assert stored[0] and not stored[-1]
assert store.get("owner", "resp_0") and not store.get("owner", "resp_39")
print(store.refusal("input").status)
"""


def test_a_file_that_cannot_grow(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, str(tmp_path / "responses.db")], capture_output=True, text=True, timeout=LONG
    )
    assert (done.returncode, done.stdout) == (0, "503\n"), done.stderr
    assert done.stderr.splitlines() == [
        "response_store: disk I/O error; until it works again, responses are not stored"
    ]


def test_a_storage_that_fails_is_not_an_unknown_response(monkeypatch: pytest.MonkeyPatch):
    with running([scripted("Hello")]) as gateway:

        def fail(*arguments: Any) -> Any:
            raise StorageError("gone")

        monkeypatch.setattr(gateway.app.store._storage, "get", fail)
        monkeypatch.setattr(gateway.app.store._storage, "response_of", fail)
        asked = {"model": "scripted", "input": "Hi", "previous_response_id": "resp_1"}
        for answered in (
            httpx.get(gateway.url + "/v1/responses/resp_1", timeout=LONG),
            httpx.post(gateway.url + "/v1/responses", json=asked, timeout=LONG),
            httpx.post(gateway.url + "/v1/responses", json={**asked, "input": [refer("1")]}, timeout=LONG),
        ):
            assert (answered.status_code, answered.headers["retry-after"]) == (503, "5")
            assert answered.json()["error"]["message"] == "the stored responses cannot be read now; try again"


def test_a_file_of_a_later_version_is_named(tmp_path: Path):
    path = str(tmp_path / "responses.db")
    with closing(sqlite3.connect(path)) as later:
        later.execute("PRAGMA user_version=99")
    with pytest.raises(SettingsError) as caught:
        ResponseStore(path, 10, 1 << 20)
    assert str(caught.value) == f"response_store: {path}: a later version of untemplate made this file"


def test_a_slow_storage_does_not_stop_the_server(monkeypatch: pytest.MonkeyPatch):
    with running([scripted("Hello")]) as gateway:
        storing, waits = threading.Event(), threading.Event()

        def wait(*arguments: Any) -> None:
            storing.set()
            assert waits.wait(LONG)

        monkeypatch.setattr(gateway.app.store._storage, "put", wait)
        asked = {"model": "scripted", "input": "Hi"}
        with ThreadPoolExecutor() as pool:
            answers = [
                pool.submit(httpx.post, gateway.url + "/v1/responses", json={**asked, "stream": stream}, timeout=LONG)
                for stream in (False, True)
            ]
            assert storing.wait(LONG)
            assert httpx.get(gateway.url + "/health", timeout=LONG).status_code == 200
            waits.set()
            assert [one.result().status_code for one in answers] == [200, 200]
