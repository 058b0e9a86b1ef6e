"""Models that Ollama's clients pull, copy and delete, and conversations that they continue by ``context``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import ollama
import pytest

from untemplate.gateway.manager.offers import Offer
from untemplate.gateway.manager.pulling import delete, pull

from .manager.fake_hub import fake_hub
from .manager.fakes import model
from .scripted import scripted
from .server import LONG, Running, running

NAME = "org/demo-GGUF"
ASKED = [{"role": "user", "content": "What is 6 times 7?"}]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A hub with the demonstration model; yields the folder of the cache."""
    pytest.importorskip("xllamacpp", reason="needs llama.cpp")
    pytest.importorskip("huggingface_hub")
    demo = pytest.importorskip("untemplate_demo", reason="needs the demonstration model")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    with fake_hub({NAME: {"demo-Q8_0.gguf": demo.model_path().read_bytes()}}) as (url, _):
        monkeypatch.setenv("HF_ENDPOINT", url)
        yield tmp_path / "hub"


Connect = Callable[[Running], ollama.Client]


@pytest.fixture
def connect() -> Iterator[Connect]:
    with ExitStack() as stack:
        yield lambda gateway: stack.enter_context(ollama.Client(host=gateway.url))


def names(client: ollama.Client) -> list[str | None]:
    return [one.model for one in client.list().models]


@pytest.mark.parametrize("several", [False, True])
def test_a_model_is_pulled_copied_and_deleted(hub: Path, connect: Connect, several: bool) -> None:
    with running([] if several else [scripted("x")], allow_pull=True, allow_delete=True) as gateway:
        if several:

            async def load(report: Any) -> Any:
                return model("scripted")

            gateway.app.manager.offer([Offer(name="scripted", load=load)])
        client = connect(gateway)
        steps = [step.status for step in client.pull(NAME, stream=True)]
        assert (steps[0], steps[-2:]) == (f"pulling {NAME}", ["loading", "success"])
        assert [step.status for step in client.pull(NAME, stream=True)] == [f"pulling {NAME}", "success"]
        client.copy(NAME, "short")
        assert names(client) == (["scripted", NAME, "short"] if not several else [NAME, "scripted", "short"])
        answered = client.chat("short:latest", ASKED, options={"num_predict": 8})
        assert answered.model == "short:latest"
        assert (answered.eval_count or 0) > 0
        assert list(hub.rglob("*.gguf"))
        client.delete("short")
        with pytest.raises(ollama.ResponseError, match="the model 'short' does not exist"):
            client.chat("short", ASKED)
        client.delete(NAME)
        assert names(client) == ["scripted"]
        assert not list(hub.rglob("*.gguf"))
        with pytest.raises(ollama.ResponseError, match=f"the model '{NAME}' does not exist"):
            client.delete(NAME)
        problem = f"{NAME} has no 'Q2_K'; available: Q8_0 (5.7 MB)"
        with pytest.raises(ollama.ResponseError, match="available: Q8_0") as error:
            list(client.pull(f"{NAME}:Q2_K", stream=True))
        assert error.value.error == problem


def test_a_delete_waits_for_running_requests(hub: Path) -> None:
    async def act(gateway: Running) -> None:
        manager, settings = gateway.app.manager, gateway.app.settings
        assert [step async for step in pull(manager, settings, NAME)][-1] == "loading"
        async with manager.use(NAME):
            deleting = asyncio.create_task(delete(manager, NAME))
            await asyncio.sleep(0.05)
            assert list(hub.rglob("*.gguf"))
        await deleting
        assert not list(hub.rglob("*.gguf"))

    with running([scripted("x")]) as gateway:
        asyncio.run_coroutine_threadsafe(act(gateway), gateway.loop).result(LONG)


@pytest.fixture(scope="module")
def shared() -> Iterator[Running]:
    with running([scripted("x")]) as gateway:
        yield gateway


class TestRefused:
    @pytest.mark.parametrize(
        ("method", "path", "body", "status", "problem"),
        [
            ("POST", "pull", {"model": "org/x"}, 403,
             "the operator of this gateway does not allow clients to download models (--allow-pull)"),
            ("DELETE", "delete", {"model": "scripted"}, 403,
             "the operator of this gateway does not allow clients to delete models (--allow-delete)"),
            ("POST", "pull", {}, 400, "model: is required"),
            ("POST", "copy", {"source": "nope", "destination": "x"}, 404,
             "the model 'nope' does not exist (models: scripted)"),
            ("POST", "copy", {"source": "scripted", "destination": "scripted:latest"}, 400,
             "destination: 'scripted' is the name of a model"),
            ("POST", "copy", {"source": "scripted", "destination": "x" * 257}, 400,
             "destination: must have from 1 to 256 characters"),
        ],
    )  # fmt: skip
    def test_whole_texts(self, shared: Running, method: str, path: str, body: Any, status: int, problem: str) -> None:
        found = httpx.request(method, f"{shared.url}/api/{path}", json=body, timeout=LONG)
        assert (found.status_code, found.json()) == (status, {"error": problem})

    def test_a_model_that_is_there_is_pulled_at_once(self, shared: Running, connect: Connect) -> None:
        assert connect(shared).pull("scripted").status == "success"

    def test_the_number_of_copies_is_bounded(self, connect: Connect) -> None:
        with running([scripted("x")]) as gateway:
            client = connect(gateway)
            for number in range(64):
                client.copy("scripted", f"copy-{number}")
            client.copy("scripted", "copy-0")
            with pytest.raises(ollama.ResponseError, match="destination: there are 64 copies already"):
                client.copy("scripted", "one-more")


def test_a_name_that_is_not_on_the_hub() -> None:
    with running([scripted("x")], allow_pull=True) as gateway:
        found = httpx.post(f"{gateway.url}/api/pull", json={"model": "llama3"}, timeout=LONG)
        problem = "model: 'llama3' is not a name on the hub; expected org/repo or org/repo:Q4_K_M"
        assert found.text == f'{{"status":"pulling llama3"}}\n{{"error":"{problem}"}}\n'


class TestContext:
    @pytest.mark.parametrize("stream", [False, True])
    def test_a_conversation_is_continued(self, connect: Connect, stream: bool) -> None:
        one = scripted(["One.", "<think>\nHm.\n</think>\n\nTwo.", "Three."])
        with running([one]) as gateway:
            client = connect(gateway)

            def ask(prompt: str, **more: Any) -> Any:
                found = client.generate("scripted", prompt, stream=stream, **more)
                return list(found)[-1] if stream else found

            first = ask("1?", system="Count.")
            second = ask("2?", context=first.context)
            ask("3?", context=second.context, system="Count on.")
        prompts = [job.prompt for job in one.engine.jobs]  # type: ignore[attr-defined]
        turns = [("system", "Count."), ("user", "1?"), ("assistant", "One."), ("user", "2?"), ("assistant", "Two.")]
        written = [f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in turns]
        begin = "<|im_start|>assistant\n"
        assert prompts[0] == "".join(written[:2]) + begin
        assert prompts[1] == "".join(written[:4]) + begin
        changed = "<|im_start|>system\nCount on.<|im_end|>\n"
        assert prompts[2] == changed + "".join(written[1:]) + "<|im_start|>user\n3?<|im_end|>\n" + begin

    @pytest.mark.parametrize("context", [[1, 2, 3], [-1], [1 << 24], [0]])
    def test_one_of_another_server_is_refused(self, connect: Connect, context: list[int]) -> None:
        with running([scripted("x")]) as gateway:
            with pytest.raises(ollama.ResponseError) as error:
                connect(gateway).generate("scripted", "Hi", context=context)
            assert error.value.error == "context: is not one that this gateway has returned"

    def test_a_raw_prompt_has_none(self, connect: Connect) -> None:
        with running([scripted("x")]) as gateway:
            client = connect(gateway)
            assert client.generate("scripted", "Hi", raw=True).context is None
            with pytest.raises(ollama.ResponseError, match="context: cannot be combined with raw: true"):
                client.generate("scripted", "Hi", raw=True, context=[1])
