"""Models that Ollama's clients pull, copy and delete, and conversations that they continue by ``context``."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import ollama
import pytest

from untemplate_gateway.errors import ApiError
from untemplate_gateway.manager import Manager, Report, pulling
from untemplate_gateway.manager.offers import Offer
from untemplate_gateway.manager.pulling import Pulls, delete
from untemplate_gateway.settings import LlamaCpp, Settings, SettingsError, Vllm

from .manager.fake_hub import fake_hub
from .manager.fakes import model
from .scripted import scripted
from .server import LONG, Running, running

NAME = "org/demo-GGUF"
ASKED = [{"role": "user", "content": "What is 6 times 7?"}]


class SlowDownloads:
    """Downloads that do not end by themselves."""

    def __init__(self) -> None:
        self.running: list[str] = []

    async def download(self, name: str, report: Report) -> None:
        self.running.append(name)
        try:
            report("downloading")
            await asyncio.Event().wait()
        finally:
            self.running.remove(name)


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
def test_a_model_is_pulled_and_deleted(hub: Path, connect: Connect, several: bool) -> None:
    with running([] if several else [scripted("x")], allow_pull=True, allow_delete=True) as gateway:
        if several:

            async def load(report: Any) -> Any:
                return model("scripted")

            gateway.app.manager.offers.change([Offer(name="scripted", load=load)])
        client = connect(gateway)
        steps = [step.status for step in client.pull(NAME, stream=True)]
        assert (steps[0], steps[-2:]) == (f"pulling {NAME}", ["loading", "success"])
        assert [step.status for step in client.pull(NAME, stream=True)] == [f"pulling {NAME}", "success"]
        assert names(client) == (["scripted", NAME] if not several else [NAME, "scripted"])
        answered = client.chat(NAME, ASKED, options={"num_predict": 8})
        assert answered.model == NAME
        assert (answered.eval_count or 0) > 0
        assert list(hub.rglob("*.gguf"))
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
        manager = gateway.app.manager
        assert [step async for step in gateway.app.pulls.pull(NAME)][-1] == "loading"
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
        ],
    )  # fmt: skip
    def test_whole_texts(self, shared: Running, method: str, path: str, body: Any, status: int, problem: str) -> None:
        found = httpx.request(method, f"{shared.url}/api/{path}", json=body, timeout=LONG)
        assert (found.status_code, found.json()) == (status, {"error": problem})

    def test_a_model_that_is_there_is_pulled_at_once(self, shared: Running, connect: Connect) -> None:
        assert connect(shared).pull("scripted").status == "success"

    @pytest.mark.parametrize(
        ("method", "path", "body"),
        [("DELETE", "delete", {"model": "nope"})],
    )
    def test_any_model_name_is_for_answers_only(self, method: str, path: str, body: Any) -> None:
        with running([scripted("x")], any_model_name=True, allow_delete=True) as gateway:
            found = httpx.request(method, f"{gateway.url}/api/{path}", json=body, timeout=LONG)
            assert (found.status_code, found.json()) == (
                404, {"error": "the model 'nope' does not exist (models: scripted)"},
            )  # fmt: skip
            assert [one.name for one in gateway.app.manager.list()] == ["scripted"]

    def test_any_model_name_is_not_downloaded(self) -> None:
        with running([scripted("x")], any_model_name=True) as gateway:
            found = httpx.post(f"{gateway.url}/api/pull", json={"model": "org/x"}, timeout=LONG)
            assert found.status_code == 403

    def test_an_alias_cannot_be_deleted(self) -> None:
        manager = Manager([model("a")], aliases={"fast": ""})
        with pytest.raises(ApiError) as caught:
            manager.forget("fast")
        assert caught.value.message == "model: 'fast' is an alias of 'a', which must be named itself"


def test_a_name_that_is_not_on_the_hub() -> None:
    with running([scripted("x")], allow_pull=True) as gateway:
        found = httpx.post(f"{gateway.url}/api/pull", json={"model": "llama3"}, timeout=LONG)
        problem = "model: 'llama3' is not a name on the hub; expected org/repo or org/repo:Q4_K_M"
        assert found.text == f'{{"status":"pulling llama3"}}\n{{"error":"{problem}"}}\n'


class TestDownloads:
    """Downloads that are asked for together, given up or too many."""

    @pytest.fixture
    def slow(self, monkeypatch: pytest.MonkeyPatch) -> SlowDownloads:
        slow = SlowDownloads()
        monkeypatch.setattr(pulling, "download", slow.download)
        return slow

    def test_clients_share_one_and_it_ends_with_the_last_of_them(self, slow: SlowDownloads) -> None:
        async def act() -> None:
            pulls = Pulls(Manager(), Settings)
            steps = [pulls.pull("org/x") for _ in range(2)]
            for one in steps:
                assert [await anext(one), await anext(one)] == ["pulling org/x", "downloading"]
            assert slow.running == ["org/x"]
            await steps[0].aclose()
            await asyncio.sleep(0.01)
            assert slow.running == ["org/x"]
            await steps[1].aclose()
            while slow.running:
                await asyncio.sleep(0.001)

        asyncio.run(asyncio.wait_for(act(), LONG))

    def test_their_number_is_bounded(self, slow: SlowDownloads) -> None:
        async def act() -> None:
            pulls = Pulls(Manager(), Settings)
            steps = [pulls.pull(f"org/{i}") for i in range(4)]
            for one in steps:
                assert [await anext(one), await anext(one)][1] == "downloading"
            with pytest.raises(ApiError) as caught:
                [step async for step in pulls.pull("org/more")]
            assert (caught.value.status, caught.value.message) == (
                429, "4 models are being downloaded already; try again",
            )  # fmt: skip
            await pulls.close()
            assert slow.running == []
            for one in steps:
                with pytest.raises(ApiError) as caught:
                    await anext(one)
                assert (caught.value.status, caught.value.message) == (503, "the server is shutting down")

        asyncio.run(asyncio.wait_for(act(), LONG))

    def test_its_process_ends_when_it_is_given_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("huggingface_hub")
        silent = socket.create_server(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        processes: list[asyncio.subprocess.Process] = []
        start = asyncio.create_subprocess_exec

        async def started(*arguments: Any, **options: Any) -> asyncio.subprocess.Process:
            processes.append(await start(*arguments, **options))
            return processes[-1]

        monkeypatch.setattr(asyncio, "create_subprocess_exec", started)

        async def act() -> None:
            work = asyncio.create_task(pulling.download("org/x", lambda step: None))
            while not processes:
                await asyncio.sleep(0.01)
            work.cancel()
            await asyncio.wait((work,))

        with silent:
            asyncio.run(asyncio.wait_for(act(), LONG))
        [process] = processes
        assert process.returncode == -signal.SIGKILL

    def test_a_model_gets_nothing_that_belongs_to_another(self) -> None:
        vllm = Vllm(trust_remote_code=True, dtype="float16", extra={"hf_overrides": {}})
        llamacpp = LlamaCpp(n_ctx=7, mmproj="eyes.gguf", extra={"embedding": True})
        found = pulling._settings_of(Settings(model="a", vllm=vllm, llamacpp=llamacpp), "org/x")
        assert (found.vllm, found.llamacpp) == (Vllm(dtype="float16"), LlamaCpp(n_ctx=7))

    def test_code_of_a_model_runs_only_by_its_own_setting(self) -> None:
        with pytest.raises(SettingsError) as caught:
            Settings(model="a", vllm=Vllm(extra={"trust_remote_code": True}))
        assert str(caught.value) == (
            "vllm.extra: trust_remote_code has a setting of its own (--vllm-trust-remote-code)"
        )


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
