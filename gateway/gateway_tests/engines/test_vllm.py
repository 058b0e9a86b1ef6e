"""The vLLM engine and vLLM's parsers, on a package that stands in for vLLM."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from untemplate import OutputParser
from untemplate.formats import named
from untemplate.integrations._vllm_parsers import VllmOutputParser
from untemplate_gateway.engines.base import EngineChunk, Health, Job
from untemplate_gateway.engines.vllm import VllmEngine
from untemplate_gateway.errors import ApiError, EngineError
from untemplate_gateway.generation import Sampling, TokenLogprob, Usage
from untemplate_gateway.settings import Vllm

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "fake_vllm"))
    from vllm.v1.engine import async_llm

    yield async_llm
    for name in [name for name in sys.modules if name.partition(".")[0] == "vllm"]:
        del sys.modules[name]


def run(act: Callable[[VllmEngine], Awaitable[Any]], **settings: Any) -> Any:
    async def main() -> Any:
        engine = VllmEngine("a/model", Vllm(**settings))
        try:
            await engine.start()
            return await act(engine)
        finally:
            await engine.close()

    return asyncio.run(asyncio.wait_for(main(), 120))


async def pieces(engine: VllmEngine, **fields: Any) -> list[EngineChunk]:
    return [piece async for piece in engine.generate(Job(**{"id": "r1", "model": "m", "prompt": "Hi", **fields}))]


async def until_the_end(engine: VllmEngine, job: Job, came: list[EngineChunk]) -> None:
    async for piece in engine.generate(job):
        came.append(piece)


def test_options_reach_vllm(vllm: Any):
    async def act(engine: VllmEngine) -> None:
        arguments = engine._engine.arguments
        assert (arguments.model, arguments.dtype, arguments.enforce_eager) == ("a/model", "float16", True)
        assert (arguments.max_model_len, arguments.tensor_parallel_size) == (None, 2)
        assert (arguments.pipeline_parallel_size, arguments.trust_remote_code) == (4, False)
        assert (engine.takes.grammar, engine.takes.logprobs, engine.takes.token_ids) == ("structural_tag", True, True)
        assert engine.context_length == 128

    run(act, dtype="float16", enforce_eager=True, tensor_parallel_size=2, extra={"pipeline_parallel_size": 4})


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("seeed", 1, "vLLM has no such engine argument; did you mean 'seed'?"),
        ("seed", "one", "must be a whole number, not 'one'"),
        ("enforce_eager", 1, "must be true or false, not 1"),
        ("data_parallel_backend", 3, "must be text, not 3"),
        ("model", "b", "cannot be set here"),
        (
            "reasoning_parser",
            "qwen3",
            "the gateway parses, not the engine: use --reasoning-parser, --tool-parser or --parser-backend vllm",
        ),
    ],
)
def test_options_that_cannot_be(vllm: Any, name: str, value: Any, problem: str):
    with pytest.raises(EngineError) as caught:
        asyncio.run(VllmEngine("a/model", Vllm(extra={name: value})).start())
    assert caught.value.message == f"vllm.extra: {name}: {problem}"


def test_deltas_ids_and_usage(vllm: Any):
    parser = OutputParser.named("hermes")
    grammar = parser.grammar(TOOLS, "required", dialect="structural_tag")
    sampling = Sampling(top_k=5, logit_bias={"7": -1.0})

    async def act(engine: VllmEngine) -> None:
        engine._engine.script = [
            vllm.Completion("a", [97], None, [{97: vllm.Logprob(-0.5, "a"), 98: vllm.Logprob(-0.1, "b")}]),
            vllm.Completion("", [50]),
            vllm.Completion("b", [2], "length"),
        ]
        found = await pieces(engine, prompt="<s>Hi", sampling=sampling, logprobs=1, grammar=grammar, max_tokens=3)
        assert found == [
            EngineChunk("a", [97], None, [TokenLogprob("a", -0.5, [("b", -0.1)], 97)]),
            EngineChunk("", [50]),
            EngineChunk("b", [2], "length", usage=Usage(prompt_tokens=3, completion_tokens=3, cached_tokens=2)),
        ]
        [(prompt, params, request_id)] = engine._engine.requests
        assert prompt == {"prompt_token_ids": [0, ord("H"), ord("i")]}
        assert request_id == "r1"
        kinds = sys.modules["vllm.sampling_params"]
        assert params == kinds.SamplingParams(
            max_tokens=3,
            skip_special_tokens=False,
            spaces_between_special_tokens=False,
            output_kind=kinds.RequestOutputKind.DELTA,
            temperature=0.6,
            top_k=5,
            logprobs=1,
            logit_bias={7: -1.0},
            structured_outputs=kinds.StructuredOutputsParams(structural_tag=grammar.text),
        )
        assert engine._engine.aborted == []

    run(act)


def test_prompts_get_a_bos_token_only_where_no_template_has_written_it(vllm: Any):
    async def act(engine: VllmEngine) -> None:
        engine._engine.script = [vllm.Completion("", [], "stop")]
        for fields in ({"prompt": "Hi"}, {"prompt": "Hi", "raw": True}, {"prompt": [5, 6]}, {"prompt": "i" * 5000}):
            await pieces(engine, **fields)
        prompts = [request[0]["prompt_token_ids"] for request in engine._engine.requests]
        assert prompts == [[72, 105], [0, 72, 105], [5, 6], [105] * 5000]
        assert engine._engine.requests[0][1].max_tokens is None

    run(act)


def test_who_leaves_aborts(vllm: Any):
    async def act(engine: VllmEngine) -> None:
        engine._engine.script = [vllm.Completion("a", [97]), None]
        output = engine.generate(Job(id="r1", model="m", prompt="Hi"))
        await anext(output)
        await output.aclose()
        assert engine._engine.aborted == ["r1"]
        task = asyncio.create_task(pieces(engine, id="r2"))
        while len(engine._engine.requests) < 2:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert engine._engine.aborted == ["r1", "r2"]

    run(act)


@pytest.mark.parametrize(
    ("failure", "status", "code", "message"),
    [
        ("ValueError", 400, "context_length_exceeded", "vLLM: longer than max_model_len"),
        ("VLLMClientError", 400, "context_length_exceeded", "vLLM: longer than max_model_len"),
        ("EngineDeadError", 503, "engine_dead", "vLLM has crashed; the next request starts it again"),
        ("EngineGenerateError", 502, "engine_error", "vLLM failed; the server's log has the reason"),
    ],
)
def test_failures(vllm: Any, failure: str, status: int, code: str, message: str):
    kind = getattr(vllm, failure, ValueError)

    async def act(engine: VllmEngine) -> None:
        engine._engine.script = [vllm.Completion("a", [97]), kind("longer than max_model_len")]
        came: list[EngineChunk] = []
        with pytest.raises(ApiError) as caught:
            await until_the_end(engine, Job(id="r1", model="m", prompt="Hi"), came)
        assert came == [EngineChunk("a", [97])]
        assert (caught.value.status, caught.value.code, caught.value.message) == (status, code, message)

    run(act)


def test_a_vllm_that_has_crashed_has_ended(vllm: Any):
    async def act(engine: VllmEngine) -> None:
        assert engine.ended == ""
        engine._engine.dead = True
        assert engine.ended == "vLLM has crashed"
        await engine.close()
        await engine.start()
        assert engine.ended == ""

    run(act)


def test_outputs_that_end_in_other_ways(vllm: Any):
    async def act(engine: VllmEngine) -> None:
        engine._engine.script = [vllm.Completion("a", [97], "abort")]
        with pytest.raises(EngineError) as caught:
            await pieces(engine)
        assert caught.value.message == "vLLM ended the output: abort"
        engine._engine.script = []
        with pytest.raises(EngineError) as caught:
            await pieces(engine)
        assert caught.value.message == "vLLM ended the output without a finish reason"

    run(act)


def test_tokenizer_template_and_health(vllm: Any, tmp_path: Path):
    async def act(engine: VllmEngine) -> None:
        assert await engine.tokenize("<s>a") == [0, 97]
        assert await engine.tokenize("<s>", special=False) == [60, 115, 62]
        assert await engine.detokenize([0, 97]) == "<s>a"
        assert engine.vocabulary().get_vocab()["<think>"] == 1
        template = engine.template()
        assert template is not None
        assert template.render([{"role": "user", "content": "x"}]) == "<s>x"
        assert await engine.health() == Health(ok=True)
        engine._engine.dead = True
        assert await engine.health() == Health(ok=False, detail="EngineCore encountered an issue")
        fake = engine._engine
        await engine.close()
        await engine.close()
        assert fake.closed == 1
        assert await engine.health() == Health(ok=False, detail="not started")
        with pytest.raises(EngineError) as caught:
            await pieces(engine)
        assert (caught.value.status, caught.value.message) == (503, "the engine is not started")

    run(act)


def test_models_that_cannot_be_loaded(vllm: Any):
    with pytest.raises(EngineError) as caught:
        asyncio.run(VllmEngine("too/big").start())
    assert caught.value.message == "vLLM cannot load too/big: RuntimeError: CUDA out of memory"


def test_without_vllm():
    assert "vllm" not in sys.modules
    with pytest.raises(EngineError) as caught:
        asyncio.run(VllmEngine("a/model").start())
    assert caught.value.message == ("this engine needs vLLM 0.10 or later (pip install vllm): No module named 'vllm'")
    with pytest.raises(ValueError, match="parser_backend") as failed:
        VllmOutputParser(None, "deepseek_r1", format=named("hermes"))
    assert str(failed.value) == ("parser_backend: vllm needs vLLM, which cannot be imported: No module named 'vllm'")


# -- vLLM's parsers -----------------------------------------------------------------------------------------------


def parsed(parser: VllmOutputParser, *output: tuple[str, list[int]], **context: Any) -> Any:
    stream = parser.stream(**{"tools": TOOLS, "collect": True, **context})
    for text, ids in output:
        stream.feed(text, ids)
    stream.finish("stop")
    return stream.result()


def test_reasoning_and_then_calls(vllm: Any):
    parser = VllmOutputParser(vllm.Tokenizer(), "deepseek_r1", "bracket", format=named("hermes"))
    stream = parser.stream(tools=TOOLS, collect=True)
    assert [d.model_dump(exclude_none=True) for d in stream.feed("<think>", [1])] == []
    assert [d.model_dump(exclude_none=True) for d in stream.feed("Hm.", [72])] == [{"reasoning": "Hm."}]
    assert stream.in_reasoning
    deltas = stream.feed("!</think>So. ", [33, 2, 83])
    assert [d.model_dump(exclude_none=True) for d in deltas] == [{"reasoning": "!", "content": "So. "}]
    stream.feed("[f", [91])
    stream.feed("{", [123])
    stream.feed('"x"', [34])
    deltas = stream.finish("stop")
    assert [d.model_dump(exclude_none=True) for d in deltas] == [
        {"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]}
    ]
    result = stream.result()
    assert result.finish_reason == "tool_calls"
    assert result.message() == {
        "role": "assistant",
        "content": "So. ",
        "reasoning": "Hm.!",
        "tool_calls": [{"id": "call-1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}],
    }


def test_each_request_has_parsers_of_its_own(vllm: Any):
    parser = VllmOutputParser(vllm.Tokenizer(), "deepseek_r1", "bracket", format=named("hermes"))
    for _ in range(2):
        result = parsed(parser, ("x</think>", [120, 2]), ("[f", [91]), ("{", [123]), ("}", [125]))
        assert [call.function.name for call in result.tool_calls] == ["f"]


def test_a_prompt_that_has_closed_reasoning_and_requests_without_tools(vllm: Any):
    parser = VllmOutputParser(vllm.Tokenizer(), "deepseek_r1", "bracket", format=named("hermes"))
    assert parsed(parser, ("Hi", [72]), prompt="<think></think>").content == "Hi"
    assert parsed(parser, ("[f{", [91]), tools=[], prompt="</think>").content == "[f{"
    assert parsed(parser, ("[f{", [91]), tool_choice="none", prompt_token_ids=[2]).content == "[f{"


def test_a_parser_that_raises_gives_raw_content(vllm: Any, caplog: pytest.LogCaptureFixture):
    failed: list[str] = []
    parser = VllmOutputParser(
        vllm.Tokenizer(), "deepseek_r1", "bracket", format=named("hermes"), on_failure=failed.append
    )
    with caplog.at_level(logging.WARNING):
        result = parsed(parser, ("<think>", [1]), ("boom", [98]), (" and on</think>", [2]))
        assert (result.reasoning, result.content) == (None, "<think>boom and on</think>")
        result = parsed(parser, ("a</think>b", [97, 2, 98]), ("[f", [91]), ("crash{", [99]), ("}", [125]))
        assert (result.reasoning, result.content) == ("a", "b[fcrash{}")
    assert failed == ["bracket+deepseek_r1", "bracket+deepseek_r1"]
    assert [record.getMessage() for record in caplog.records] == [
        "vLLM's bracket+deepseek_r1 raised IndexError: list index out of range; the rest is content",
        "vLLM's bracket+deepseek_r1 raised ValueError: cannot parse; the rest is content",
    ]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("r1", None), "reasoning_parser: vLLM has no 'r1' (it has: deepseek_r1)"),
        ((None, "x"), "tool_parser: vLLM has no 'x' (it has: bracket)"),
    ],
)
def test_names_that_vllm_does_not_have(vllm: Any, names: tuple[str | None, str | None], message: str):
    with pytest.raises(ValueError, match="vLLM has no") as caught:
        VllmOutputParser(vllm.Tokenizer(), *names, format=named("hermes"))
    assert str(caught.value) == message


def test_an_output_that_repeats_itself_is_a_partial_answer(vllm: Any):
    from untemplate_gateway.engines import vllm as engine

    assert [engine._reason(reason) for reason in ("stop", "length", "repetition")] == ["stop", "length", "length"]
