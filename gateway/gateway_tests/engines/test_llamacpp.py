"""The llama.cpp engine: a real llama.cpp, on a tiny model."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from untemplate import OutputParser
from untemplate.format import Format
from untemplate_gateway.engines.base import EngineChunk, Health, Job
from untemplate_gateway.engines.llamacpp import LlamaCppEngine, check_version, default_threads
from untemplate_gateway.engines.llamacpp_server import LlamaCppServer
from untemplate_gateway.engines.openai import OpenAIChatEngine, OpenAIEngine
from untemplate_gateway.errors import ApiError, EngineError
from untemplate_gateway.generation import Constraint, Generation, Sampling, Usage
from untemplate_gateway.manager import Manager, Model
from untemplate_gateway.request_context import RequestContext, current
from untemplate_gateway.settings import LlamaCpp

from ..tiny_gguf import END, ENDLESS, NOISE, TEMPLATE, tiny_gguf

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {"unit": {"enum": ["celsius", "kelvin"]}},
                "required": ["unit"],
                "additionalProperties": False,
            },
        },
    }
]
IM_END = 258


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_gguf(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model that may write for longer than any test waits."""
    return tiny_gguf(tmp_path_factory.mktemp("models"), context=1 << 18)


def run(model: Path, act: Callable[[LlamaCppEngine], Awaitable[Any]], **settings: Any) -> Any:
    async def main() -> Any:
        engine = LlamaCppEngine(model, LlamaCpp(**{"n_parallel": 2, "threads": 1, **settings}))
        try:
            await engine.start()
            return await act(engine)
        finally:
            await engine.close()

    return asyncio.run(asyncio.wait_for(main(), 120))


def job(prompt: str | list[int] = "x", bias: dict[str, float] = NOISE, **fields: Any) -> Job:
    sampling = Sampling(temperature=1.0, seed=3, logit_bias=bias)
    return Job(id="1", model="m", prompt=prompt, sampling=sampling, **fields)


async def pieces(engine: Any, job: Job) -> list[EngineChunk]:
    """Return the chunks of an output, without the times that llama.cpp has measured."""
    found = [piece async for piece in engine.generate(job)]
    usage = found[-1].usage
    if usage is not None:
        assert usage.completion_ns > 0 or engine.kind != "llamacpp"
        usage.prompt_ns = usage.completion_ns = 0
    return found


def joined(found: list[EngineChunk]) -> str:
    return "".join(piece.text for piece in found)


async def busy(engine: LlamaCppEngine) -> int:
    return sum(slot["is_processing"] for slot in (await engine._get("/slots"))[1])


async def freed(engine: LlamaCppEngine) -> None:
    while await busy(engine):
        await asyncio.sleep(0.005)


def test_what_is_known_of_the_model(model: Path):
    async def act(engine: LlamaCppEngine) -> None:
        assert (engine.takes.grammar, engine.takes.logprobs, engine.takes.token_ids) == ("gbnf", True, True)
        assert engine.context_length == 512
        assert await engine.health() == Health(ok=True)
        template = engine.template()
        assert template is not None
        assert template.source == TEMPLATE
        assert engine.vocabulary().get_vocab()["<tool_call>"] == 259
        assert await engine.tokenize("<tool_call>é") == [259, 0xC3, 0xA9]
        assert await engine.tokenize("<tool_call>", special=False) == list(b"<tool_call>")
        assert await engine.detokenize([259, 0xC3, 0xA9]) == "<tool_call>é"
        with pytest.raises(ApiError, match=r"^tokens: 99999 is not a token id: the vocabulary has [0-9]+ tokens$"):
            await engine.detokenize([65, 99999])

    run(model, act, n_ctx=512)


@pytest.mark.parametrize(
    ("name", "size", "threads"),
    [("m.gguf", 1000, 1), ("m.gguf", 64 << 20, 0), ("m-00001-of-00003.gguf", 1000, 0), ("m-00002.gguf", 1000, 1)],
)
def test_a_small_model_has_one_thread(tmp_path: Path, name: str, size: int, threads: int):
    """A large model in parts has more threads, even if its first part has no weights."""
    path = tmp_path / name
    with path.open("wb") as file:
        file.truncate(size)
    assert default_threads(path) == threads


def test_text_and_ids_come_together(model: Path):
    async def act(engine: LlamaCppEngine) -> None:
        found = await pieces(engine, job("abc", max_tokens=12))
        assert [bytes(piece.token_ids).decode() for piece in found] == [piece.text for piece in found]
        assert len(joined(found)) == 12
        assert found[-1] == EngineChunk("", [], "length", usage=Usage(prompt_tokens=3, completion_tokens=12))
        again = await pieces(engine, job(list(b"abc"), max_tokens=12))
        assert joined(again) == joined(found)
        assert again[-1].usage is not None
        assert again[-1].usage.cached_tokens > 0

    run(model, act)


def test_special_tokens_have_text_and_ids(model: Path):
    only = {str(i): -100.0 for i in range(264) if i not in (259, 260)}

    async def act(engine: LlamaCppEngine) -> None:
        found = await pieces(engine, job(max_tokens=5, bias=only))
        names = {259: "<tool_call>", 260: "</tool_call>"}
        assert [names[i] for piece in found for i in piece.token_ids] == [p.text for p in found if p.text]
        assert sum(len(piece.token_ids) for piece in found) == 5

    run(model, act)


@pytest.mark.parametrize("end", [END, IM_END])  # the file names the first; llama.cpp knows the other
def test_an_end_token_ends_the_output(model: Path, end: int):
    async def act(engine: LlamaCppEngine) -> None:
        found = await pieces(engine, job(bias={str(end): 100.0}))
        last = EngineChunk("", [], "stop", usage=Usage(prompt_tokens=1, completion_tokens=1))
        assert found == [EngineChunk("", [end]), last]

    run(model, act)


def test_logprobs_are_those_of_the_tokens(model: Path):
    async def act(engine: LlamaCppEngine) -> None:
        for found in (
            (await pieces(engine, job(max_tokens=4, logprobs=2))),
            (await pieces(engine, job(max_tokens=4, logprobs=0))),
        ):
            likely = [one for piece in found for one in piece.logprobs or ()]
            assert [one.token for one in likely] == list(joined(found))
            assert [one.id for one in likely] == [i for piece in found for i in piece.token_ids]
            assert all(one.logprob < 0 for one in likely)
        assert {len(one.top) for one in likely} == {0}

    run(model, act)


def test_a_grammar_makes_it_call(model: Path):
    async def act(engine: LlamaCppEngine) -> None:
        parser = OutputParser.named("hermes", reasoning="qwen3", tokenizer=engine.vocabulary())
        grammar = parser.grammar(TOOLS, "required", strict=True, parallel_tool_calls=False)
        for seed in range(4):
            asked = job("<|im_start|>assistant\n", max_tokens=400, grammar=grammar, bias={"32": -9.0, "10": -9.0})
            asked.sampling = msgspec.structs.replace(asked.sampling, seed=seed)
            stream = parser.stream(tools=TOOLS, collect=True)
            for piece in await pieces(engine, asked):
                stream.feed(piece.text, piece.token_ids)
            stream.finish(piece.finish_reason)
            [call] = stream.result().tool_calls
            assert (call.function.name, call.status) == ("get_weather", "ok")
            assert stream.finish_reason == "tool_calls"

    run(model, act)


def test_a_lazy_grammar_waits_for_its_trigger(model: Path):
    async def act(engine: LlamaCppEngine) -> None:
        parser = OutputParser.named("hermes", tokenizer=engine.vocabulary())
        grammar = parser.grammar(TOOLS, strict=True)
        assert grammar.lazy
        free = {**NOISE, "259": 2.0, "32": -9.0, str(END): -3.0}
        for seed in range(3):
            asked = job(max_tokens=500, grammar=grammar, bias=free)
            asked.sampling = msgspec.structs.replace(asked.sampling, seed=seed)
            output = joined(await pieces(engine, asked))
            before, called, _ = output.partition("<tool_call>")
            parsed = parser.parse(output, tools=TOOLS)
            assert parsed.content == before.strip()
            assert called
            assert {call.status for call in parsed.tool_calls} == {"ok"}

    run(model, act)


def test_triggers_in_llama_cpps_words():
    hermes, json = OutputParser.named("hermes"), OutputParser.named("llama3_json")
    assert hermes.grammar(TOOLS).request("llama.cpp")["grammar_triggers"] == [{"type": 1, "value": "<tool_call>"}]
    [trigger] = json.grammar(TOOLS).request("llama.cpp")["grammar_triggers"]
    assert trigger["type"] == 3
    assert "grammar_lazy" not in hermes.grammar(TOOLS, "required").request("llama.cpp")


def test_who_leaves_frees_the_slot(patient: Path):
    async def act(engine: LlamaCppEngine) -> None:
        output = engine.generate(job(bias=ENDLESS))
        for _ in range(10):
            await anext(output)
        assert await busy(engine) == 1
        await output.aclose()
        await freed(engine)

    run(patient, act)


def test_a_task_that_is_cancelled_frees_the_slot_too(patient: Path):
    async def act(engine: LlamaCppEngine) -> None:
        task = asyncio.create_task(pieces(engine, job(bias=ENDLESS)))
        while not await busy(engine):
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await freed(engine)

    run(patient, act)


def test_two_at_once_and_a_third_that_waits(patient: Path):
    async def act(engine: LlamaCppEngine) -> None:
        alone = await pieces(engine, job(max_tokens=40))
        outputs = [engine.generate(job(bias=ENDLESS)) for _ in range(2)]
        for output in outputs:
            await anext(output)
        assert await busy(engine) == 2
        third = asyncio.create_task(pieces(engine, job(max_tokens=40)))
        await asyncio.sleep(0.05)
        assert not third.done()
        for output in outputs:
            await output.aclose()
        assert joined(await third) == joined(alone)

    run(patient, act)


def test_a_prompt_that_is_too_long(model: Path):
    async def act(engine: LlamaCppEngine) -> None:
        with pytest.raises(ApiError) as caught:
            await pieces(engine, job("x" * 600))
        error = caught.value
        assert (error.status, error.code, error.param) == (400, "context_length_exceeded", "messages")
        assert error.message == (
            "llama.cpp: request (600 tokens) exceeds the available context size (512 tokens), try increasing it"
        )
        assert joined(await pieces(engine, job(max_tokens=2))) != ""

    run(model, act, n_ctx=512)


def test_a_bos_token_comes_once(tmp_path: Path):
    async def act(engine: LlamaCppEngine) -> None:
        for prompt in ("<end>x", "x"):
            found = await pieces(engine, job(prompt, max_tokens=1))
            assert found[-1].usage is not None
            assert found[-1].usage.prompt_tokens == 2

    run(tiny_gguf(tmp_path, bos=True), act)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"n_batsh": 1}, "llamacpp.extra: xllamacpp has no parameter 'n_batsh'; did you mean 'n_batch'?"),
        ({"sampling.tempp": 1}, "llamacpp.extra: xllamacpp has no parameter 'sampling.tempp'; did you mean 'temp'?"),
        ({"nothing.like": 1}, "llamacpp.extra: xllamacpp has no parameter 'nothing.like'"),
        (
            {"n_batch": "many"},
            "llamacpp.extra: n_batch='many' is not valid: Argument 'value' has incorrect type (expected int, got str)",
        ),
    ],
)
def test_parameters_that_cannot_be(model: Path, extra: dict[str, Any], message: str):
    with pytest.raises(EngineError) as caught:
        asyncio.run(LlamaCppEngine(model, LlamaCpp(extra=extra)).start())
    assert caught.value.message == message


def test_models_that_cannot_be_loaded(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    pytest.importorskip("xllamacpp")
    with pytest.raises(EngineError) as caught:
        asyncio.run(LlamaCppEngine(tmp_path / "none.gguf").start())
    assert caught.value.message == f"{tmp_path}/none.gguf: no such file"
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF and nothing more")
    with pytest.raises(EngineError) as caught:
        asyncio.run(LlamaCppEngine(broken).start())
    assert caught.value.message.startswith(f"{broken}: llama.cpp cannot load it: ")
    assert caught.value.message.endswith("is there memory for its context (n_ctx)?")
    assert capfd.readouterr() == ("", "")


def test_it_says_nothing_on_the_terminal(model: Path, capfd: pytest.CaptureFixture[str]):
    async def act(engine: LlamaCppEngine) -> None:
        await pieces(engine, job(max_tokens=3))

    run(model, act)
    assert capfd.readouterr() == ("", "")


def test_closed_twice_and_not_started(model: Path):
    async def main() -> None:
        engine = LlamaCppEngine(model)
        assert await engine.health() == Health(ok=False, detail="the engine is not started")
        with pytest.raises(EngineError) as caught:
            await pieces(engine, job())
        assert (caught.value.status, caught.value.message) == (503, "the engine is not started")
        await engine.close()
        await engine.close()

    asyncio.run(main())


# -- The same llama.cpp as an upstream ----------------------------------------------------------------------------


def upstream(
    model: Path, act: Callable[[Any], Awaitable[Any]], kind: Any, *, format: Format | None = None, **settings: Any
) -> Any:
    async def behind(engine: LlamaCppEngine) -> Any:
        client = kind(engine._server.url + "/v1", **settings)
        if format is not None:
            client.expect(format)
        try:
            await client.start()
            return await act(client)
        finally:
            await client.close()

    chat = kind is OpenAIChatEngine
    return run(model, behind, extra={"special": chat, "force_pure_content_parser": chat})


def test_as_an_upstream_it_gives_ids_and_takes_grammars(model: Path):
    parser = OutputParser.named("hermes")
    grammar = parser.grammar(TOOLS, "required", strict=True)

    async def act(engine: OpenAIEngine) -> None:
        assert (engine.server, engine.context_length) == ("llama.cpp", 4096)
        assert (engine.takes.grammar, engine.takes.logprobs, engine.takes.token_ids) == ("gbnf", True, True)
        assert await engine.health() == Health(ok=True)
        assert await engine.tokenize("<tool_call>") == [259]
        assert await engine.detokenize([259]) == "<tool_call>"
        output = joined(await pieces(engine, job(max_tokens=400, grammar=grammar, bias={"32": -9.0})))
        assert parser.parse(output, tools=TOOLS).tool_calls[0].status == "ok"
        only = {str(i): -100.0 for i in range(264) if i != 259}
        found = await pieces(engine, job(max_tokens=3, bias=only))
        assert (joined(found), [i for p in found for i in p.token_ids]) == ("<tool_call>" * 3, [259] * 3)
        with pytest.raises(ApiError) as caught:
            await pieces(engine, job("x" * 5000))
        assert (caught.value.status, caught.value.message) == (
            400,
            "llama.cpp: request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
        )

    upstream(model, act, OpenAIEngine, format=parser.format)


def test_as_a_chat_upstream(model: Path):
    async def act(engine: OpenAIChatEngine) -> None:
        assert engine.server == "llama.cpp"
        request = Generation(messages=[{"role": "user", "content": "Hi"}], tools=TOOLS)
        sampling = Sampling(temperature=1.0, seed=3, logit_bias={"259": 90.0})
        asked = Job(id="1", model="m", prompt="", sampling=sampling, max_tokens=3, request=request)
        found = await pieces(engine, asked)
        assert joined(found) == "<tool_call>" * 3
        assert found[-1].finish_reason == "length"
        assert found[-1].usage is not None
        assert found[-1].usage.completion_tokens == 3

    upstream(model, act, OpenAIChatEngine, format=OutputParser.named("hermes").format)


def test_a_process_that_ends_breaks_its_outputs_off_and_is_named(patient: Path):
    async def act(engine: LlamaCppEngine) -> None:
        assert engine._server is not None
        assert engine._server._worker.process is not None
        chunks = engine.generate(job(bias=ENDLESS))
        await anext(chunks)
        engine._server._worker.process.kill()
        with pytest.raises(EngineError, match=r"^llama\.cpp broke off: its process ended \(SIGKILL\)$"):
            async for _ in chunks:
                pass
        assert await engine.health() == Health(ok=False, detail="llama.cpp broke off: its process ended (SIGKILL)")

    run(patient, act)


def test_a_process_that_ends_is_replaced(model: Path):
    async def act(engine: LlamaCppEngine) -> None:
        manager = Manager([Model(name="m", engine=engine, parser=OutputParser.named("passthrough"))])
        for _ in range(2):
            assert engine._server is not None
            assert engine._server._worker.process is not None
            engine._server._worker.process.kill()
            engine._server._worker.process.wait()

            async def ask() -> str:
                async with manager.use("m") as leased:
                    return joined(await pieces(leased.engine, job(max_tokens=3)))

            first, *others = await asyncio.gather(*(ask() for _ in range(3)))
            assert others == [first, first]
        engine._server._worker.process.kill()
        engine._server._worker.process.wait()
        assert await manager.health() == {
            "m": Health(ok=False, detail="the engine is not started")
        }  # and is being started
        while (await manager.health())["m"] != Health(ok=True):
            await asyncio.sleep(0.01)

    run(model, act)


def test_a_process_that_cannot_be_replaced_is_a_503(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    file = tiny_gguf(tmp_path)

    async def act(engine: LlamaCppEngine) -> None:
        manager = Manager([Model(name="m", engine=engine, parser=OutputParser.named("passthrough"))])
        assert engine._server is not None
        assert engine._server._worker.process is not None
        engine._server._worker.process.kill()
        engine._server._worker.process.wait()
        file.rename(tmp_path / "elsewhere.gguf")
        for _ in range(2):
            with pytest.raises(ApiError) as caught:
                async with manager.use("m"):
                    pass
            assert (caught.value.status, caught.value.message) == (
                503, "the model 'm' could not be loaded; the server's log has the reason",
            )  # fmt: skip
        await manager.close(timeout=0)

    run(file, act)
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [
        "model m: its process ended (SIGKILL); it is started again",
        f"model m: could not be started again: {file}: no such file",
    ]


def test_the_process_ends_even_if_closing_is_cancelled(model: Path, monkeypatch: pytest.MonkeyPatch):
    async def act(engine: LlamaCppEngine) -> None:
        client, server = engine._client, engine._server
        assert client is not None
        assert server is not None
        closed, close = asyncio.Event(), client.close

        async def slowly() -> None:
            closed.set()
            await close()
            await asyncio.Event().wait()

        monkeypatch.setattr(client, "close", slowly)
        closing = asyncio.create_task(engine.close())
        await closed.wait()
        closing.cancel()
        await asyncio.wait((closing,))
        assert server.end() == "SIGKILL"

    run(model, act)


def test_closing_while_the_model_loads_ends_the_process(model: Path):
    server = LlamaCppServer(str(model), {"verbosity": -1, "cpuparams.n_threads": 1}, {})

    async def main() -> None:
        loading = asyncio.create_task(asyncio.to_thread(server.load))
        while server._worker.process is None:
            await asyncio.sleep(0.001)
        await asyncio.to_thread(server.close)
        with pytest.raises(EngineError, match=r"^llama\.cpp's process ended while it loaded the model \(SIGKILL\)$"):
            await loading

    asyncio.run(main())
    assert server.end() == "SIGKILL"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_the_process_ends_with_the_gateway(patient: Path):
    """Even if another client's output is running."""
    program = (
        "import sys; from untemplate_gateway.engines.llamacpp_server import LlamaCppServer as S;"
        "s = S(sys.argv[1], {'verbosity': -1, 'cpuparams.n_threads': 1}, {}); s.load();"
        "print(s._worker.process.pid, s.url, flush=True); sys.stdin.read()"
    )
    gateway = subprocess.Popen(
        [sys.executable, "-c", program, str(patient)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert gateway.stdout is not None
    shown, url = gateway.stdout.readline().split()
    pid = int(shown)
    os.kill(pid, 0)  # runs
    asked = {"prompt": "x", "n_predict": -1, "ignore_eos": True, "stream": True}
    with httpx.stream("POST", f"{url}/completion", json=asked, timeout=60) as output:
        next(output.iter_lines())
        gateway.kill()
        gateway.communicate()
        until = time.monotonic() + 60
        while Path(f"/proc/{pid}").exists() and "State:\tZ" not in Path(f"/proc/{pid}/status").read_text():
            assert time.monotonic() < until, "the process runs without its gateway"
            time.sleep(0.02)


@pytest.mark.parametrize("version", ["0.2.14", "2026.6.9713"])
def test_an_xllamacpp_that_is_too_old(version: str):
    with pytest.raises(EngineError) as caught:
        check_version(version)
    assert caught.value.message == (
        f"xllamacpp {version} is too old: this needs 2026.7 or later: pip install --upgrade xllamacpp"
    )


@pytest.mark.parametrize("version", ["2026.7.9873", "2026.10.11549", "2027.1"])
def test_an_xllamacpp_that_is_new_enough(version: str):
    check_version(version)


def test_requests_that_share_the_context_wait_for_each_other(model: Path):
    """Each of them fits; together they would need more than twice the context."""

    async def act(engine: LlamaCppEngine) -> None:
        jobs = [job("x" * 100, ENDLESS, max_tokens=300) for _ in range(3)]
        for found in await asyncio.gather(*(pieces(engine, one) for one in jobs)):
            assert found[-1].finish_reason == "length"
            assert found[-1].usage == Usage(100, 300, cached_tokens=found[-1].usage.cached_tokens)
        assert engine._turns.held == 0

    run(model, act, n_ctx=512, n_parallel=3)


def test_requests_without_a_limit_take_turns(model: Path):
    """Each may write until the context is full; together they would need three times the context."""

    async def act(engine: LlamaCppEngine) -> None:
        prompt = [65] * 100
        jobs = [job("A" * 100, ENDLESS), job(prompt, ENDLESS), job(prompt, ENDLESS, max_tokens=1500)]
        first, second, third = await asyncio.gather(*(pieces(engine, one) for one in jobs))
        for found in (first, second):
            assert found[-1].finish_reason == "length"
            assert found[-1].usage is not None
            assert found[-1].usage.prompt_tokens == 100
            assert found[-1].usage.completion_tokens >= 2048 - 100 - 1
            assert sum(len(piece.token_ids) for piece in found) == found[-1].usage.completion_tokens
        assert third[-1].finish_reason == "length"
        assert third[-1].usage == Usage(100, 1500, cached_tokens=third[-1].usage.cached_tokens)
        assert engine._turns.held == 0

    run(model, act, n_ctx=2048, n_parallel=3)


def test_one_key_does_not_keep_another_one_waiting(model: Path):
    """12 requests of one key fill the engine's 4 places; then a short one of another key comes."""

    async def act(engine: LlamaCppEngine) -> int:
        ended: list[str] = []

        async def ask(owner: str, tokens: int) -> int:
            current.set(RequestContext(owner))
            before = -1
            async with contextlib.aclosing(engine.generate(job(bias=ENDLESS, max_tokens=tokens))) as chunks:
                async for _ in chunks:
                    before = len(ended) if before < 0 else before
            ended.append(owner)
            return before

        busy = [asyncio.create_task(ask("a", 1000)) for _ in range(12)]
        while len(ended) < 4:  # the first of them warm the engine up
            await asyncio.sleep(0.001)
        already = len(ended)
        before = await asyncio.create_task(ask("b", 5))
        await asyncio.gather(*busy)
        return before - already

    assert run(model, act, n_ctx=8192, n_parallel=4) <= 1


def test_an_output_in_parts_is_the_whole_output(model: Path):
    """Greedy, and bent to count: the parts are the same text as one output."""

    async def act(engine: LlamaCppEngine) -> str:
        greedy = Sampling(temperature=0.0, logit_bias=ENDLESS)
        return joined(await pieces(engine, Job(id="1", model="m", prompt="x", sampling=greedy, max_tokens=900)))

    whole = run(model, act, n_ctx=2048, n_parallel=1)
    assert len(whole) == 900
    assert run(model, act, n_ctx=2048, n_parallel=4) == whole


def test_a_prompt_that_cannot_fit_is_not_tokenized_whole(model: Path):
    async def act(engine: LlamaCppEngine) -> None:
        asked = 0
        tokens = engine._tokens

        async def counted(text: str, **options: Any) -> list[int]:
            nonlocal asked
            asked += len(text)
            return await tokens(text, **options)

        engine._tokens = counted  # type: ignore[method-assign]
        with pytest.raises(ApiError) as caught:
            await pieces(engine, job("word " * 2_000_000))
        assert caught.value.message == "the prompt has more tokens than the context of 512"
        assert caught.value.code == "context_length_exceeded"
        assert asked <= 32 * 1024

    run(model, act, n_ctx=512)


def test_restrictions_of_the_client(model: Path):
    """The tiny model writes noise, so what it writes shows the restriction."""

    async def act(engine: LlamaCppEngine) -> tuple[str, str]:
        choice = Constraint("choice", ('say "a"', 'say "b"'), "guided_choice")
        grammar = Constraint("grammar", 'root ::= "x" [0-9] "y"', "grammar")
        found = [joined(await pieces(engine, job(bias={}, constraint=one))) for one in (choice, grammar)]
        return found[0], found[1]

    choice, grammar = run(model, act)
    assert choice in ('say "a"', 'say "b"')
    assert re.fullmatch("x[0-9]y", grammar)


def test_embeddings(model: Path):
    async def act(engine: LlamaCppEngine) -> None:
        found = await engine.embed(["abc", "xyz", list(b"abc")])
        abc, xyz, again = found.vectors
        assert (len(abc), found.prompt_tokens) == (64, 9)
        assert sum(value * value for value in abc) == pytest.approx(1, abs=1e-4)
        assert abc == pytest.approx(again, abs=1e-4)
        assert abc != pytest.approx(xyz, abs=1e-2)
        assert len(joined(await pieces(engine, job("abc", max_tokens=5)))) == 5
        problem = r"^llama.cpp: input \(600 tokens\) is too large to process\."
        with pytest.raises(ApiError, match=problem) as caught:
            await engine.embed(["a" * 600])
        assert (caught.value.status, caught.value.code) == (400, "context_length_exceeded")
        with pytest.raises(ApiError, match=r"^dimensions: llama.cpp does not shorten embeddings$"):
            await engine.embed(["a"], 3)
        with pytest.raises(NotImplementedError, match=r"^the model is not loaded for reranking: .*pooling_type=4$"):
            await engine.rerank("a", ["b"])
        together = await asyncio.gather(*(engine.embed(["a" * 400]) for _ in range(8)))
        assert all(one.vectors[0] == pytest.approx(together[0].vectors[0], abs=1e-3) for one in together)

    run(model, act, n_ctx=1024, extra={"embedding": True, "pooling_type": 1})


def test_reranking(model: Path):
    async def act(engine: LlamaCppEngine) -> None:
        found = await engine.rerank("abc", ["xyz", "abc", "xyz"])
        one, other, again = found.scores
        assert one == pytest.approx(again, abs=1e-4)
        assert one != pytest.approx(other, abs=1e-6)
        assert found.prompt_tokens >= 18

    run(model, act, n_ctx=1024, extra={"embedding": True, "pooling_type": 4})


@pytest.mark.parametrize("extra", [{}, {"embedding": True, "pooling_type": 0}])
def test_a_model_that_is_not_loaded_for_embeddings(model: Path, extra: dict[str, Any]):
    async def act(engine: LlamaCppEngine) -> None:
        problem = r"^the model is not loaded for embeddings: start the gateway with --llamacpp-arg embedding=true and"
        with pytest.raises(NotImplementedError, match=problem):
            await engine.embed(["a"])

    run(model, act, n_ctx=512, extra=extra)
