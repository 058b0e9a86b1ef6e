"""Responses in the background, and conversations, with the official client."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import openai
import pytest

from untemplate_gateway.answering import Answers
from untemplate_gateway.errors import ApiError
from untemplate_gateway.store import Kept

from .scripted import scripted
from .server import LONG, Running, running, soon

MODEL: Any = "scripted"


@pytest.fixture
def gateway() -> Iterator[Running]:
    with running([scripted(lambda job: f"{job.prompt.count('user')} questions.")]) as gateway:
        yield gateway


@pytest.fixture
def client(gateway: Running) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0, timeout=LONG) as client:
        yield client


def hold(gateway: Running) -> Any:
    """Let the engine wait until its gate is set."""
    engine: Any = gateway.app.manager.get("scripted").engine
    gateway.loop.call_soon_threadsafe(engine.gate.clear)
    assert soon(lambda: not engine.gate.is_set())
    return engine


def go_on(gateway: Running) -> None:
    engine: Any = gateway.app.manager.get("scripted").engine
    gateway.loop.call_soon_threadsafe(engine.gate.set)


def ended(client: openai.OpenAI, id: str) -> Any:
    assert soon(lambda: client.responses.retrieve(id).status not in ("queued", "in_progress"))
    return client.responses.retrieve(id)


class TestBackground:
    def test_it_is_read_when_it_has_ended(self, gateway: Running, client: openai.OpenAI) -> None:
        hold(gateway)
        begun = client.responses.create(model=MODEL, input="Hi", background=True, metadata={"a": "b"})
        assert (begun.status, begun.background, begun.output, begun.store) == ("queued", True, [], True)  # type: ignore[attr-defined]
        assert soon(lambda: client.responses.retrieve(begun.id).status == "in_progress")
        with pytest.raises(openai.BadRequestError, match=f"the response '{begun.id}' has not ended"):
            client.responses.create(model=MODEL, input="And?", previous_response_id=begun.id)
        go_on(gateway)
        found = ended(client, begun.id)
        assert (found.id, found.status, found.background, found.metadata) == (begun.id, "completed", True, {"a": "b"})
        assert found.output_text == "1 questions."
        assert found.usage.output_tokens > 0
        assert client.responses.cancel(begun.id).status == "completed"
        second = client.responses.create(model=MODEL, input="And?", previous_response_id=begun.id)
        assert second.output_text == "2 questions."

    def test_cancelling_frees_the_engine(self, gateway: Running, client: openai.OpenAI) -> None:
        engine = hold(gateway)
        begun = client.responses.create(model=MODEL, input="Hi", background=True)
        assert soon(lambda: len(engine.jobs) == 1)
        assert client.responses.cancel(begun.id).status == "cancelled"
        assert len(engine.closed) == 1
        assert client.responses.retrieve(begun.id).status == "cancelled"
        assert client.responses.cancel(begun.id).status == "cancelled"

    def test_deleting_frees_the_engine(self, gateway: Running, client: openai.OpenAI) -> None:
        engine = hold(gateway)
        begun = client.responses.create(model=MODEL, input="Hi", background=True)
        assert soon(lambda: len(engine.jobs) == 1)
        client.responses.delete(begun.id)
        assert len(engine.closed) == 1
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(begun.id)

    def test_another_process_generates_it(self, gateway: Running, client: openai.OpenAI) -> None:
        """Its response is only stored if it is still wanted."""
        waiting = {"id": "resp_1", "object": "response", "status": "in_progress", "background": True, "output": []}
        store = gateway.app.store
        assert store.put("", Kept(waiting, []))
        cancelled = httpx.post(f"{gateway.url}/v1/responses/resp_1/cancel", timeout=LONG).json()
        assert cancelled == {**waiting, "status": "cancelled"}
        assert store.finish("", Kept({**waiting, "status": "completed"}, []))
        found = store.get("", "resp_1")
        assert found is not None
        assert found.response["status"] == "cancelled"

    def test_a_failure_is_in_the_response(self) -> None:
        with running([scripted("\0")]) as gateway, openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="x") as client:
            found = ended(client, client.responses.create(model=MODEL, input="Hi", background=True).id)
            assert (found.status, found.error.message) == ("failed", "the engine broke")

    def test_it_waits_while_a_limit_is_reached(self, gateway: Running, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("untemplate_gateway.background._AGAIN", 0.01)
        refused: list[str] = []
        limited = Answers._limited

        async def limit(self: Answers, endpoint: Any, exchange: Any) -> None:
            if "untemplate.response" in exchange.scope and len(refused) < 3:
                refused.append(endpoint.name)
                raise ApiError(429, "try again", type="rate_limit_error")
            await limited(self, endpoint, exchange)

        monkeypatch.setattr(Answers, "_limited", limit)
        with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0) as client:
            assert ended(client, client.responses.create(model=MODEL, input="Hi", background=True).id).error is None
        assert refused == ["responses"] * 3

    def test_a_key_pays_once(self) -> None:
        limits: dict[str, Any] = {"api_keys": ("secret",), "key_concurrent_requests": 1, "key_requests_per_minute": 1}
        with running([scripted("Hello.")], **limits) as gateway:
            asked = {"model": "scripted", "input": "Hi", "background": True}
            headers = {"authorization": "Bearer secret"}
            begun = httpx.post(f"{gateway.url}/v1/responses", json=asked, headers=headers, timeout=LONG).json()
            where = f"{gateway.url}/v1/responses/{begun['id']}"
            assert soon(lambda: httpx.get(where, headers=headers, timeout=LONG).json()["status"] == "completed")

    def test_what_is_refused(self, gateway: Running, client: openai.OpenAI) -> None:
        def refused(**fields: Any) -> str:
            body = {"model": "scripted", "input": "Hi", "background": True, **fields}
            answer = httpx.post(f"{gateway.url}/v1/responses", json=body, timeout=LONG)
            assert answer.status_code in (400, 404)
            message: str = answer.json()["error"]["message"]
            return message

        assert refused(stream=True) == "background: a response is streamed, or generated in the background"
        assert refused(store=False) == "background: needs a response that is stored (store, response_ttl)"
        assert refused(model="other") == "the model 'other' does not exist (models: scripted)"
        assert refused(input=7) == "input: must be a string or a list of items, got a number"
        made = client.responses.create(model=MODEL, input="Hi")
        with pytest.raises(openai.BadRequestError) as caught:
            client.responses.cancel(made.id)
        assert caught.value.body["message"] == (  # type: ignore[index]
            "response_id: only responses that are generated in the background can be cancelled"
        )

    def test_a_shutdown_is_a_failure(self, tmp_path: Any) -> None:
        path = str(tmp_path / "responses.db")
        with running([scripted("\1")], response_store=path) as gateway:
            body = {"model": "scripted", "input": "Hi", "background": True}
            begun = httpx.post(f"{gateway.url}/v1/responses", json=body, timeout=LONG).json()
            engine: Any = gateway.app.manager.get("scripted").engine
            assert soon(lambda: len(engine.jobs) == 1)
        with running([scripted("x")], response_store=path) as gateway:
            found = httpx.get(f"{gateway.url}/v1/responses/{begun['id']}", timeout=LONG).json()
            error = {"code": "server_error", "message": "the server was shut down"}
            assert found == {**begun, "status": "failed", "error": error}


class TestConversations:
    def test_input_and_output_are_added(self, client: openai.OpenAI) -> None:
        first: Any = {"type": "message", "role": "user", "content": "I am Ann."}
        conversation = client.conversations.create(items=[first], metadata={"topic": "names"})
        assert client.conversations.retrieve(conversation.id) == conversation
        made = client.responses.create(model=MODEL, input="Who am I?", conversation=conversation.id)
        assert made.conversation is not None
        assert (made.output_text, made.conversation.id) == ("2 questions.", conversation.id)
        with client.responses.stream(model=MODEL, input="Sure?", conversation={"id": conversation.id}) as stream:
            assert stream.get_final_response().output_text == "3 questions."
        items: Any = list(client.conversations.items.list(conversation.id, order="asc", limit=2))
        assert [(item.role, item.content[0].text) for item in items] == [
            ("user", "I am Ann."),
            ("user", "Who am I?"),
            ("assistant", "2 questions."),
            ("user", "Sure?"),
            ("assistant", "3 questions."),
        ]
        newest: Any = list(client.conversations.items.list(conversation.id))
        assert newest == items[::-1]

    def test_items_come_and_go(self, client: openai.OpenAI) -> None:
        conversation = client.conversations.create()
        item: Any = {"type": "message", "role": "user", "content": "Hello"}
        added = client.conversations.items.create(conversation.id, items=[item]).data[0]
        assert client.conversations.items.retrieve(added.id, conversation_id=conversation.id) == added  # type: ignore[arg-type]
        client.conversations.items.delete(added.id, conversation_id=conversation.id)  # type: ignore[arg-type]
        assert list(client.conversations.items.list(conversation.id)) == []
        with pytest.raises(openai.NotFoundError, match="the conversation has no item 'msg_"):
            client.conversations.items.retrieve(added.id, conversation_id=conversation.id)  # type: ignore[arg-type]
        changed = client.conversations.update(conversation.id, metadata={"a": "b"})
        assert changed.metadata == {"a": "b"}
        assert client.conversations.delete(conversation.id).deleted
        with pytest.raises(openai.NotFoundError, match=f"no conversation '{conversation.id}' is stored here"):
            client.conversations.retrieve(conversation.id)

    def test_a_reference_is_added_as_the_item_that_it_means(self, client: openai.OpenAI) -> None:
        conversation = client.conversations.create()
        first = client.responses.create(model=MODEL, input="Hi")
        reference: Any = {"type": "item_reference", "id": first.output[0].id}
        for expected in ("0 questions.", "1 questions."):
            made = client.responses.create(model=MODEL, input=[reference], conversation=conversation.id)
            assert made.output_text == expected
            reference = {"role": "user", "content": "Sure?"}

    def test_changes_do_not_overwrite_each_other(
        self, gateway: Running, client: openai.OpenAI, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        id, storage = client.conversations.create().id, gateway.app.store._storage
        put, delays, begun = storage.put, iter([0.2]), threading.Event()

        def slow(*arguments: Any) -> None:
            begun.set()
            time.sleep(next(delays, 0))
            put(*arguments)

        monkeypatch.setattr(storage, "put", slow)
        with ThreadPoolExecutor(1) as pool:
            changed = pool.submit(client.conversations.update, id, metadata={"a": "b"})
            assert begun.wait(LONG)
            client.conversations.items.create(id, items=[{"role": "user", "content": "x"}])
        assert changed.result().metadata == client.conversations.retrieve(id).metadata == {"a": "b"}
        assert len(list(client.conversations.items.list(id))) == 1

    def test_in_the_background(self, client: openai.OpenAI) -> None:
        conversation = client.conversations.create()
        begun = client.responses.create(model=MODEL, input="Hi", conversation=conversation.id, background=True)
        assert ended(client, begun.id).output_text == "1 questions."
        items: Any = list(client.conversations.items.list(conversation.id, order="asc"))
        assert [item.content[0].text for item in items] == ["Hi", "1 questions."]

    def test_what_is_refused(self, gateway: Running, client: openai.OpenAI) -> None:
        def asked(path: str, method: str = "POST", **fields: Any) -> tuple[int, str]:
            answer = httpx.request(method, gateway.url + path, json=fields or None, timeout=LONG)
            return answer.status_code, answer.json()["error"]["message"]

        id = client.conversations.create().id
        made = client.responses.create(model=MODEL, input="Hi")
        responses = "/v1/responses"
        assert asked(responses, input="x", conversation="conv_0") == (
            404, "conversation: no conversation 'conv_0' is stored here",
        )  # fmt: skip
        assert asked(responses, input="x", conversation=made.id)[0] == 404
        assert asked(responses, input="x", conversation=id, previous_response_id=made.id) == (
            400, "conversation: excludes previous_response_id",
        )  # fmt: skip
        assert asked(f"/v1/conversations/{made.id}", "GET")[0] == 404
        items = f"/v1/conversations/{id}/items"
        assert asked(items + "?limit=0", "GET") == (400, "limit: must be an integer from 1 to 100, got '0'")
        assert asked(items + f"?limit=000000001{'0' * 5000}", "GET")[0] == 400
        assert asked(items + "?order=up", "GET") == (400, "order: must be one of asc, desc, got 'up'")
        assert asked(items, items=[{"role": "nobody", "content": "x"}])[0] == 400

    def test_other_keys_find_nothing(self) -> None:
        with running([scripted("x")], api_keys=("one", "two")) as gateway:
            url = f"{gateway.url}/v1"
            with (
                openai.OpenAI(base_url=url, api_key="one") as first,
                openai.OpenAI(base_url=url, api_key="two") as second,
            ):
                id = first.conversations.create().id
                with pytest.raises(openai.NotFoundError):
                    second.conversations.retrieve(id)
                with pytest.raises(openai.NotFoundError):
                    second.responses.create(model=MODEL, input="x", conversation=id)
