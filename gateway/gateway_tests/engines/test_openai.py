"""The OpenAI engine against a server with scripted answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from untemplate import OutputParser
from untemplate._internal.deltas import assemble
from untemplate._internal.sse import EventReader
from untemplate.formats import named
from untemplate.messages import DeltaFunctionCall, DeltaMessage, DeltaToolCall
from untemplate_gateway.choice import ChoiceStream
from untemplate_gateway.engines.base import Embeddings, Engine, EngineChunk, Health, Job, Scores
from untemplate_gateway.engines.chunks import logprobs_of, read_chunk
from untemplate_gateway.engines.llamacpp_wire import piece_of
from untemplate_gateway.engines.openai import OpenAIChatEngine, OpenAIEngine
from untemplate_gateway.engines.vectors import embeddings_of
from untemplate_gateway.engines.wire import Client
from untemplate_gateway.errors import ApiError, EngineError
from untemplate_gateway.generation import Generation, Sampling, Thinking, TokenLogprob, Usage
from untemplate_gateway.prompt import Prompt

from .upstream import DIE, WAIT, Answer, Upstream, events

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


def job(prompt: str | list[int] = "Hi", **fields: Any) -> Job:
    return Job(id="1", model="m", prompt=prompt, **fields)


def chat_job(request: Generation | None = None, **fields: Any) -> Job:
    request = request or Generation(messages=[{"role": "user", "content": "Hi"}])
    return Job(id="1", model="m", prompt="", request=request, **fields)


def run(
    answers: dict[str, Any],
    act: Callable[[Any, Upstream], Awaitable[Any]],
    *,
    chat: bool = False,
    models: Any = None,
    **settings: Any,
) -> Any:
    """Start upstream and engine, and run ``act`` with them."""

    async def main() -> Any:
        async with Upstream(answers, models=models) as upstream:
            engine = (OpenAIChatEngine if chat else OpenAIEngine)(upstream.url, **settings)
            try:
                await engine.start()
                return await act(engine, upstream)
            finally:
                await engine.close()

    return asyncio.run(asyncio.wait_for(main(), 120))


async def pieces(engine: Engine, job: Job) -> list[EngineChunk]:
    return [piece async for piece in engine.generate(job)]


async def until_the_end(engine: Engine, job: Job, came: list[EngineChunk]) -> None:
    async for piece in engine.generate(job):
        came.append(piece)


def text(value: str, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "text": value, "finish_reason": finish, **fields}]}


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


USAGE = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": None}}


# -- Completions --------------------------------------------------------------------------------------------------


def test_text_ids_and_usage():
    chunks = events(text("Good", token_ids=[5]), text(" day", token_ids=[6]), text("", "stop", token_ids=[2]), USAGE)

    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        assert (engine.takes.grammar, engine.takes.logprobs, engine.takes.token_ids) == ("structural_tag", True, True)
        assert (engine.server, engine.model, engine.context_length) == ("vllm", "m", 4096)
        assert await pieces(engine, job()) == [
            EngineChunk("Good", [5]),
            EngineChunk(" day", [6]),
            EngineChunk("", [2], "stop", usage=Usage(prompt_tokens=3, completion_tokens=2)),
        ]
        assert upstream.to("/v1/completions")[0].body == {
            "model": "m",
            "prompt": "Hi",
            "stream": True,
            "max_tokens": None,
            "stream_options": {"include_usage": True},
            "skip_special_tokens": False,
            "spaces_between_special_tokens": False,
            "return_token_ids": True,
            "add_special_tokens": False,
        }

    run({"/v1/completions": Answer(chunks)}, act, models={"owned_by": "vllm", "max_model_len": 4096})


@pytest.mark.parametrize("most", [None, 0, 5, 131072])
def test_a_request_pays_for_the_tokens_that_the_server_counts(most: int | None):
    """Whatever its limit is. A request without usage pays for the tokens that came."""
    answers = [
        Answer(events(text("Good", token_ids=[5]), text("", "stop", token_ids=[2]), *more)) for more in ([USAGE], [])
    ]

    async def act(engine: OpenAIEngine, upstream: Upstream) -> list[float]:
        spent = []
        with await engine._turns.reserve(price=1):  # otherwise all would be forgotten
            for _ in range(2):
                before = engine._turns._spent[""]
                await pieces(engine, job(max_tokens=most))
                spent.append(engine._turns._spent[""] - before)
        return spent

    assert run({"/v1/completions": answers}, act, models={"owned_by": "vllm"}) == [5, 2]


def test_what_a_job_asks_for_is_sent():
    parser = OutputParser.named("hermes")
    grammar = parser.grammar(TOOLS, "required", dialect="structural_tag")
    sampling = Sampling(temperature=0.5, top_k=3, seed=1, logit_bias={"5": 1.0})
    asked = job([1, 2], max_tokens=7, sampling=sampling, logprobs=2, grammar=grammar, raw=True)

    async def act(engine: OpenAIEngine, upstream: Upstream) -> Any:
        await pieces(engine, asked)
        body = upstream.to("/v1/completions")[0].body
        return {k: v for k, v in body.items() if k not in ("model", "stream", "stream_options")}

    answers = {"/v1/completions": Answer(events(text("", "stop")))}
    common = {
        "prompt": [1, 2],
        "max_tokens": 7,
        "temperature": 0.5,
        "top_k": 3,
        "seed": 1,
        "logit_bias": {"5": 1.0},
        "logprobs": 2,
        "skip_special_tokens": False,
        "return_token_ids": True,
    }
    assert run(dict(answers), act, models={"owned_by": "vllm"}) == {
        **common,
        "spaces_between_special_tokens": False,
        "structured_outputs": {"structural_tag": grammar.text},
    }
    assert run(dict(answers), act, models={"owned_by": "sglang"}) == {**common, "response_format": grammar.json}


@pytest.mark.parametrize(
    ("path", "value", "server"),
    [
        ("/version", {"version": "0.11"}, "vllm"),
        ("/get_model_info", {"model_path": "x"}, "sglang"),
        ("/health", {}, ""),
    ],
)
def test_a_server_is_known_by_its_endpoints(path: str, value: Any, server: str):
    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        assert engine.server == server
        assert engine.takes.grammar == ("structural_tag" if server else None)
        assert engine.takes.token_ids == bool(server)

    run({path: Answer.json(value)}, act, models={"owned_by": "me"})


def test_the_logprobs_of_completions():
    logprobs = {"tokens": ["a", "b"], "token_logprobs": [-0.5, None], "top_logprobs": [{"a": -0.5, "c": -1.0}, None]}

    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        found = await pieces(engine, job(logprobs=1))
        assert found == [
            EngineChunk("ab", (), None, [TokenLogprob("a", -0.5, [("a", -0.5)]), TokenLogprob("b", None)]),
            EngineChunk("", (), "length"),
        ]

    run({"/v1/completions": Answer(events(text("ab", logprobs=logprobs), text("", "length")))}, act)


def test_the_logprobs_of_a_prompt():
    """vLLM repeats the prompt with its tokens. The list of likely tokens begins with the token itself, even an unlikely
    one."""
    tops = [None, {" 2": -3.0, " 1": -0.1}, {"!": -0.2}]
    logprobs = {"tokens": ["1", " 2", "!"], "token_logprobs": [None, -3.0, -0.2], "top_logprobs": tops}

    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        assert engine.takes.prompt_logprobs
        (last,) = await pieces(engine, job([1, 2], logprobs=1, echo=True, max_tokens=1))
        assert last == EngineChunk(
            "1 2!",
            (),
            "length",
            [TokenLogprob("1", None), TokenLogprob(" 2", -3.0, [(" 1", -0.1)]), TokenLogprob("!", -0.2, [("!", -0.2)])],
        )
        body = upstream.to("/v1/completions")[0].body
        assert {name: body[name] for name in ("prompt", "echo", "logprobs")} == {
            "prompt": [1, 2], "echo": True, "logprobs": 1
        }  # fmt: skip

    answer = Answer(events(text("1 2!", "length", logprobs=logprobs)))
    run({"/v1/completions": answer}, act, models={"owned_by": "vllm"})


SPLIT = [
    [b"data: {\"choices\": [{\"text\": \"h\xc3\xa9\"}]}\r\n\r\n: a comment\r\n\r\nevent: x\r\ndata: {\"choices\":\r\n"
     b"data: [{\"text\": \"!\", \"finish_reason\": \"stop\"}]}\r\n\r\ndata: [DONE]\r\n\r\n"],
    [b'data:{"choices": [{"text": "h\xc3\xa9"}]}\n\n\ndata: {"choices": [{"text": "!", "finish_reason": "stop"}]}\n\n'],
    [b'data: {"choices": [{"text": "h\xc3\xa9"}]}\n\ndata: {"choices": [{"text": "!", "finish_reason": "stop"}]}'],
]  # fmt: skip


@pytest.mark.parametrize("raw", SPLIT)
def test_events_may_be_written_and_cut_in_any_way(raw: list[bytes]):
    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        assert await pieces(engine, job()) == [EngineChunk("hé"), EngineChunk("!", (), "stop")]

    data = b"".join(raw)
    run({"/v1/completions": Answer([data])}, act)
    run({"/v1/completions": Answer([data[i : i + 1] for i in range(len(data))])}, act)


def test_an_event_that_never_ends_is_given_up():
    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        with pytest.raises(EngineError) as caught:
            await pieces(engine, job())
        assert caught.value.message == "the upstream broke off: an event is longer than 16777216 bytes"

    run({"/v1/completions": Answer([b"data: ", *([b"x" * 2**20] * 17)])}, act)


def test_events_that_never_end_are_given_up():
    with pytest.raises(ValueError, match=r"^an event is longer than 100 bytes$"):
        EventReader(limit=100).feed(b"data: x\n" * 101)


def test_a_server_that_does_not_stream():
    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        assert await pieces(engine, job()) == [EngineChunk("ab", (), "stop")]

    run({"/v1/completions": Answer.json(text("ab", "stop"))}, act)


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "Text/Event-Stream"])
def test_events_by_another_name(kind: str):
    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        assert await pieces(engine, job()) == [EngineChunk("a"), EngineChunk("b", (), "stop")]

    run({"/v1/completions": Answer([b": hi\n\n", *events(text("a"), text("b", "stop"))], type=kind)}, act)


def test_what_is_null_or_cannot_be_is_passed_over():
    odd = {"object": None, "choices": None, "usage": {"prompt_tokens": -1, "completion_tokens": 2}}

    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        assert await pieces(engine, job()) == [EngineChunk("a", (), "stop", None, Usage(0, 2))]

    run({"/v1/completions": Answer(events(text("a", "stop"), odd))}, act)


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ("Unrecognized request argument: return_token_ids", {"skip_special_tokens", "stream_options"}),
        ("Extra inputs are not permitted", set()),
    ],
)
def test_fields_that_a_server_refuses_are_left_out_from_then_on(message: str, kept: set[str]):
    """The markers of a format may be special tokens, so one that is refused should not take that wish with it."""

    def strict(request: Any) -> Answer:
        if "return_token_ids" in request.body:
            return Answer.json({"error": {"message": message}}, 400)
        return Answer(events(text("ok", "stop")))

    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        for _ in range(2):
            assert await pieces(engine, job(max_tokens=5)) == [EngineChunk("ok", (), "stop")]
        bodies = [request.body for request in upstream.to("/v1/completions")]
        plain = {"model": "m", "prompt": "Hi", "stream": True, "max_tokens": 5}
        assert [set(body) - set(plain) for body in bodies] == [
            {"skip_special_tokens", "return_token_ids", "stream_options"},
            kept,
            kept,
        ]

    run({"/v1/completions": strict}, act)


def test_a_400_that_is_the_requests_own_is_not_blamed_on_our_fields():
    wrong = Answer.json({"error": {"message": "temperature must be positive", "param": "temperature"}}, 400)
    answers: dict[str, Any] = {"/v1/completions": [wrong, wrong, Answer(events(text("ok", "stop")))]}

    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        with pytest.raises(ApiError) as caught:
            await pieces(engine, job())
        assert (caught.value.status, caught.value.message, caught.value.param) == (
            400,
            "temperature must be positive",
            "temperature",
        )
        assert await pieces(engine, job()) == [EngineChunk("ok", (), "stop")]
        assert upstream.requests[-1].body["return_token_ids"] is True

    run(answers, act)


# -- Failures -----------------------------------------------------------------------------------------------------


def test_requests_are_repeated_before_the_first_byte():
    answers = {
        "/v1/completions": [
            Answer.json({"error": {"message": "later"}}, 429, retry_after="0"),
            Answer.json({"error": {"message": "later"}}, 503),
            Answer(events(text("ok", "stop"))),
        ]
    }

    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        assert await pieces(engine, job()) == [EngineChunk("ok", (), "stop")]
        assert len(upstream.to("/v1/completions")) == 3

    run(answers, act)


@pytest.mark.parametrize(
    ("answer", "status", "message", "sent"),
    [
        (Answer.json({"error": {"message": "too much"}}, 429, retry_after="60"), 429, "too much", 1),
        (Answer.json({"error": {"message": "no"}}, 429, retry_after="0"), 429, "no", 2),
        (Answer.json({"detail": "down"}, 503, retry_after="0"), 503, "the upstream is not available", 2),
        (Answer([b"<html>boom"], 500, type="text/html"), 502, "the upstream failed", 1),
        (Answer([], 504), 504, "the upstream failed", 1),
        (
            Answer([], 308, {"location": "https://h/v1/completions"}),
            502,
            "the upstream redirects to another server",
            1,
        ),
        (
            Answer([b"\x1f\x8b"], headers={"content_encoding": "gzip"}),
            502,
            "the upstream broke off: the response is encoded as gzip, which was not asked for",
            1,
        ),
        (Answer.json({"error": "unknown model"}, 404), 404, "unknown model", 1),
        (
            Answer.json({"error": {"message": "bad key"}}, 401),
            502,
            "the upstream refuses the gateway's API key",
            1,
        ),
        # It may have closed an idle connection before it saw the request: this request is repeated.
        (Answer([DIE]), 502, "the upstream broke off: the connection was closed", 2),
    ],
)
def test_errors_before_the_output(answer: Answer, status: int, message: str, sent: int):
    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        with pytest.raises(ApiError) as caught:
            await pieces(engine, job())
        assert (caught.value.status, caught.value.message) == (status, message)
        assert len(upstream.to("/v1/completions")) == sent
        if answer.headers.get("retry_after"):
            assert caught.value.headers == {"Retry-After": answer.headers["retry_after"]}

    run({"/v1/completions": answer}, act, retries=1)


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (Answer.json({"detail": "down"}, 503), "answers HTTP 503: down"),
        (Answer([b"<html>boom"], 500, type="text/html"), "answers HTTP 500: <html>boom"),
        (Answer([], 504), "answers HTTP 504: HTTP 504"),
        (Answer([], 308, {"location": "https://h/x"}),
         "answers HTTP 308: redirects to https://h/x; give the URL of that server"),
        (Answer.json({"error": {"message": "bad key"}}, 401), "answers HTTP 401: bad key"),
    ],
)  # fmt: skip
def test_what_an_upstream_says_of_itself_is_for_the_log(answer: Answer, detail: str):
    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        with pytest.raises(ApiError) as caught:
            await pieces(engine, job())
        assert caught.value.detail == f"{upstream.url} {detail}"
        assert upstream.url not in caught.value.message

    run({"/v1/completions": answer}, act, retries=0)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([DIE], "the upstream broke off: the connection was closed"),
        ([], "the upstream broke off in the middle of the output"),
        (
            [b'data: {"error": {"message": "CUDA out of memory", "code": 500}}\n\n'],
            "the upstream failed",
        ),
        ([b"data: {nonsense\n\n"], "the upstream sent an invalid event"),
        (
            [b'data: {"choices": [{"text": "", "finish_reason": "abort"}]}\n\n'],
            "the upstream ended the output: abort",
        ),
    ],
)
def test_a_server_that_fails_in_the_middle(parts: list[Any], message: str):
    begun = b'data: {"choices": [{"text": "begun"}]}\n\n'

    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        came: list[EngineChunk] = []
        with pytest.raises(EngineError) as caught:
            await until_the_end(engine, job(), came)
        assert came == [EngineChunk("begun")]
        assert (caught.value.status, caught.value.message) == (502, message)

    run({"/v1/completions": Answer([begun, *parts])}, act)


def test_a_server_that_is_silent():
    begun = b'data: {"choices": [{"text": "begun"}]}\n\n'

    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        with pytest.raises(EngineError) as caught:
            await pieces(engine, job())
        assert (caught.value.status, caught.value.message) == (
            504,
            "the upstream is silent: no data for 0.5 s",
        )

    run({"/v1/completions": Answer([begun, WAIT])}, act, read_timeout=0.5)


def test_who_leaves_closes_the_connection():
    begun = b'data: {"choices": [{"text": "begun"}]}\n\n'

    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        output = engine.generate(job())
        assert await anext(output) == EngineChunk("begun")
        assert not upstream.gone.is_set()
        await output.aclose()
        await asyncio.wait_for(upstream.gone.wait(), 60)

    run({"/v1/completions": Answer([begun, WAIT])}, act)


def test_connections_are_used_again():
    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        for _ in range(3):
            await pieces(engine, job())
        assert upstream.connections == 1

    run({"/v1/completions": Answer(events(text("ok", "stop")))}, act)


def test_a_connection_that_the_server_has_closed_meanwhile_is_replaced():
    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        await pieces(engine, job())
        for task in list(upstream._tasks):
            task.cancel()
        assert await pieces(engine, job()) == [EngineChunk("ok", (), "stop")]
        assert upstream.connections == 2

    run({"/v1/completions": Answer(events(text("ok", "stop")))}, act)


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@pytest.mark.parametrize(
    ("raw", "connections"),
    [
        (b"HTTP/1.1 103 Early Hints\r\ncontent-encoding: x\r\n\r\n" + OK, 1),
        (OK + b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno", 3),
        (OK + b"HTTP/1.1 408 Request Timeout\r\ncontent-le", 3),
        (OK + b"?", 3),
    ],
)
def test_one_response_for_each_request(raw: bytes, connections: int):
    made = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal made
        made += 1
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(raw)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        client = Client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        for _ in range(3):
            async with client.request("GET", "/") as response:
                assert (response.status, await response.body()) == (200, b"ok")
        await client.close()
        server.close()

    asyncio.run(asyncio.wait_for(main(), 120))
    assert made == connections


def test_what_comes_when_nothing_was_asked():
    late = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(OK)
                await asyncio.sleep(0.02)
                writer.write(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 2\r\n\r\nno")
                await asyncio.sleep(0.02)
                late.set()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        client = Client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        async with client.request("GET", "/") as response:
            assert await response.body() == b"ok"
        [connection] = client._all
        await late.wait()
        assert connection.closed
        await client.close()
        server.close()

    asyncio.run(asyncio.wait_for(main(), 120))


def test_no_more_connections_than_allowed():
    async def main() -> None:
        async with Upstream({"/": Answer.json({})}) as upstream:
            client = Client(upstream.url, max_connections=2)

            async def ask() -> bytes:
                async with client.request("GET", "/") as response:
                    return await response.body()

            assert await asyncio.gather(*(ask() for _ in range(8))) == [b"{}"] * 8
            assert upstream.connections <= 2
            await client.close()

    asyncio.run(asyncio.wait_for(main(), 120))


def test_a_slow_reader_does_not_grow_memory():
    chunk = b'data: {"choices": [{"text": "%s"}]}\n\n' % (b"x" * 1000)

    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        output = engine.generate(job())
        await anext(output)
        await asyncio.sleep(0.2)
        [connection] = engine._client._all
        # Unread data is bounded, however much the server has written in the meantime.
        assert connection.size < 2**20
        assert sum([len(piece.text) async for piece in output]) == 19_999_000

    run({"/v1/completions": Answer([chunk] * 20_000 + events(text("", "stop")))}, act)


# -- Start --------------------------------------------------------------------------------------------------------


def start(url: str, **settings: Any) -> EngineError:
    async def main() -> None:
        await OpenAIEngine(url, **settings).start()

    with pytest.raises(EngineError) as caught:
        asyncio.run(main())
    return caught.value


def test_nobody_is_there():
    error = start("http://127.0.0.1:1/v1")
    assert error.message == "the upstream cannot be reached"
    assert error.detail.startswith("http://127.0.0.1:1: ")
    assert start("ftp://x").message == "upstream: 'ftp://x' is not an http:// or https:// URL"
    # The quotes of a word processor.
    error = start("http://127.0.0.1:1", api_key="\u201ckey\u201d")
    assert error.message == "upstream: '\u201c' is not allowed in a URL, a key or a header"
    error = start("http://two..dots")
    assert error.detail.startswith("http://two..dots: ")
    assert start("user:secret@h:8000").message == "upstream: 'h:8000' is not an http:// or https:// URL"
    assert start("http://user:se/cret@h").message == "upstream: 'h' is not an http:// or https:// URL"
    error = start("http://user:p@ss@127.0.0.1:1/v1")
    assert error.detail.startswith("http://127.0.0.1:1: ")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            Answer.json({"data": [{"id": "a"}, {"id": "b"}]}),
            "lists the models a, b: set upstream_model (--upstream-model NAME)",
        ),
        (Answer.json({}), "does not name its model: set upstream_model (--upstream-model NAME)"),
        (
            Answer.json({"data": [{"object": "model"}]}),
            "does not name its model: set upstream_model (--upstream-model NAME)",
        ),
        (Answer.json({}, 404), "does not name its model (HTTP 404): set upstream_model (--upstream-model NAME)"),
        (Answer([], 308, {"location": "https://h/v1/models"}), "redirects: give the URL https://h"),
        (
            Answer([b"?"], 401, headers={"content_encoding": "gzip"}),
            "refuses the API key (HTTP 401): set upstream_api_key (UNTEMPLATE_UPSTREAM_API_KEY)",
        ),
        (Answer.json({}, 401), "refuses the API key (HTTP 401): set upstream_api_key (UNTEMPLATE_UPSTREAM_API_KEY)"),
    ],
)
def test_a_server_that_does_not_say_enough(answer: Answer, message: str):
    async def main() -> None:
        async with Upstream({"/v1/models": answer}) as upstream:
            with pytest.raises(EngineError) as caught:
                await OpenAIEngine(upstream.url + "/v1").start()
            assert caught.value.message == f"{upstream.url} {message}"

    asyncio.run(main())


@pytest.mark.parametrize(("wanted", "model"), [("b", "b"), ("a", "a")])
def test_the_wanted_model_is_taken_of_several(wanted: str, model: str):
    async def main() -> None:
        async with Upstream({"/v1/models": Answer.json({"data": [{"id": "a"}, {"id": "b"}]})}) as upstream:
            engine = OpenAIEngine(upstream.url + "/v1", wanted=wanted)
            await engine.start()
            assert engine.model == model
            await engine.close()

    asyncio.run(main())


def test_key_and_health():
    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        assert await engine.health() == Health(ok=True)
        assert {r.headers.get("authorization") for r in upstream.requests} == {"Bearer secret"}
        upstream.answers["/health"] = Answer.json({}, 503)
        assert await engine.health() == Health(ok=False, detail="the upstream answers HTTP 503")

    run({}, act, api_key="secret")


@pytest.mark.parametrize("properties", [[], {"default_generation_settings": []}])
def test_a_llama_cpp_that_says_little(properties: Any):
    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        assert (engine.server, engine.context_length) == ("llama.cpp", None)
        upstream.answers["/tokenize"] = Answer.json({"tokens": "none"})
        with pytest.raises(EngineError) as caught:
            await engine.tokenize("a")
        said = "the upstream's answer to /tokenize is not understood: it has no 'tokens'"
        assert (caught.value.status, caught.value.message) == (502, said)

    run({"/props": Answer.json(properties)}, act, models={"owned_by": "llamacpp"})


# -- The fixing proxy ---------------------------------------------------------------------------------------------


def test_chat_content_comes_raw():
    chunks = events(
        delta(role="assistant", content=""),
        delta(content="<tool_call>\n"),
        {"choices": [{"index": 0, "delta": {"content": "{}"}, "token_ids": [7], "finish_reason": None}]},
        delta("tool_calls"),
        USAGE,
    )
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    request = Generation(
        messages=[{"role": "user", "content": [image]}],
        tools=TOOLS,
        template_kwargs={"a": 1},
        thinking=Thinking(enabled=True, effort="low"),
        parallel_tool_calls=False,
        response_format={"type": "json_object"},
        extra={"mm_processor_kwargs": {"x": 1}},
    )

    async def act(engine: OpenAIChatEngine, upstream: Upstream) -> None:
        assert (engine.takes.logprobs, engine.takes.token_ids, engine.takes.messages, engine.takes.tool_choice) == (
            True,
            True,
            True,
            True,
        )
        assert await pieces(engine, chat_job(request, logprobs=2, max_tokens=9)) == [
            EngineChunk("<tool_call>\n"),
            EngineChunk("{}", [7]),
            EngineChunk(finish_reason="stop", usage=Usage(prompt_tokens=3, completion_tokens=2)),
        ]
        assert upstream.to("/v1/chat/completions")[0].body == {
            "mm_processor_kwargs": {"x": 1},
            "model": "m",
            "messages": [{"role": "user", "content": [image]}],
            "stream": True,
            "tools": TOOLS,
            "tool_choice": "none",
            "parallel_tool_calls": False,
            "max_tokens": 9,
            "response_format": {"type": "json_object"},
            "logprobs": True,
            "top_logprobs": 2,
            "reasoning_effort": "low",
            "chat_template_kwargs": {"enable_thinking": True, "thinking": True, "a": 1},
            "stream_options": {"include_usage": True},
            "skip_special_tokens": False,
            "spaces_between_special_tokens": False,
            "return_token_ids": True,
        }

    run({"/v1/chat/completions": Answer(chunks)}, act, chat=True, models={"owned_by": "vllm"})


@pytest.mark.parametrize(
    ("server", "choice", "sent"),
    [
        ("vllm", None, (True, "none")),
        ("vllm", "required", (True, "required")),
        ("vllm", "none", (False, None)),
        ("sglang", None, (True, None)),
        ("sglang", "auto", (True, "auto")),
        ("", "none", (True, "none")),
    ],
)
def test_the_tool_choice_that_a_server_gets(server: str, choice: Any, sent: tuple[bool, Any]):
    async def act(engine: OpenAIChatEngine, upstream: Upstream) -> None:
        request = Generation(messages=[{"role": "user", "content": "Hi"}], tools=TOOLS, tool_choice=choice)
        await pieces(engine, chat_job(request))
        body = upstream.to("/v1/chat/completions")[0].body
        assert ("tools" in body, body.get("tool_choice")) == sent

    run({"/v1/chat/completions": Answer(events(delta("stop")))}, act, chat=True, models={"owned_by": server})


def test_a_forced_call_is_a_structural_tag_for_vllm():
    """Without a parser vLLM refuses ``tool_choice: required``; with "none" it still shows the tools to the model."""
    grammar = OutputParser.named("hermes").grammar(TOOLS, tool_choice="required", dialect="structural_tag")

    async def act(engine: OpenAIChatEngine, upstream: Upstream) -> None:
        assert engine.takes.grammar == "structural_tag"
        request = Generation(messages=[{"role": "user", "content": "Hi"}], tools=TOOLS, tool_choice="required")
        await pieces(engine, chat_job(request, grammar=grammar))
        body = upstream.to("/v1/chat/completions")[0].body
        assert (body["tools"], body["tool_choice"]) == (TOOLS, "none")
        assert body["structured_outputs"] == {"structural_tag": grammar.text}

    run({"/v1/chat/completions": Answer(events(delta("stop")))}, act, chat=True, models={"owned_by": "vllm"})


def call(index: int | None, id: str | None, name: str | None, arguments: Any) -> dict[str, Any]:
    return {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_what_a_server_has_parsed_is_passed_on():
    chunks = events(
        delta(reasoning_content="Let me"),
        delta(reasoning="  see.", content=None),
        delta(content="Hello."),
        delta(tool_calls=[call(0, "a1", "f", '{"x"')]),
        delta(tool_calls=[call(0, None, None, ": 1}")]),
        delta(tool_calls=[call(1, None, "f", {"x": 2})]),
        delta("tool_calls", content=""),
    )

    async def act(engine: OpenAIChatEngine, upstream: Upstream) -> list[EngineChunk]:
        engine.expect(named("qwen3"))
        return await pieces(engine, chat_job(in_reasoning=True))

    found = run({"/v1/chat/completions": Answer(chunks)}, act, chat=True)

    def part(index: int, id: str | None, name: str | None, arguments: str) -> EngineChunk:
        function = DeltaFunctionCall(name=name, arguments=arguments)
        call = DeltaToolCall(index=index, id=id, type=id and "function", function=function)
        return EngineChunk(delta=DeltaMessage(tool_calls=[call]))

    assert found == [
        EngineChunk(delta=DeltaMessage(reasoning="Let me")),
        EngineChunk(delta=DeltaMessage(reasoning="  see.")),
        EngineChunk("\n</think>\n\n"),
        EngineChunk("Hello."),
        part(0, "a1", "f", '{"x"'),
        part(0, None, None, ": 1}"),
        part(1, "call_1", "f", '{"x":2}'),
        EngineChunk(finish_reason="stop"),
    ]
    parser = OutputParser.named("hermes", reasoning="qwen3")
    stream = parser.stream(tools=TOOLS, prompt="<|im_start|>assistant\n<think>\n", collect=True)
    for piece in found:
        if piece.delta is not None:
            stream.accept(piece.delta)
        else:
            stream.feed(piece.text, piece.token_ids)
    stream.finish("stop")
    parsed = stream.result()
    assert parsed.message() == {
        "role": "assistant",
        "content": "Hello.",
        "reasoning": "Let me  see.",
        "tool_calls": [
            {"id": "a1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
            {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"x":2}'}},
        ],
    }
    assert parsed.finish_reason == "tool_calls"
    assert [c.status for c in parsed.tool_calls] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("server", "chunks", "shown"),
    [
        (
            "vllm",
            [delta(tool_calls=[call(0, "a", "f", "{'x': 1")]), delta("tool_calls")],
            "sends calls that it parsed itself; what its parser breaks stays broken: "
            "start vLLM without --tool-call-parser and --reasoning-parser",
        ),
        (
            "",
            [delta(content="I call f."), delta("tool_calls")],
            "ends with tool_calls and sent none, so its parser read calls and lost them; what its parser breaks stays "
            "broken: turn its parsers off, or use --upstream, which reads its completions",
        ),
        ("vllm", [delta(content="<tool_call>"), delta("stop")], None),
    ],
)
def test_a_server_that_parses_is_reported_once(
    server: str, chunks: list[Any], shown: str | None, caplog: pytest.LogCaptureFixture
):
    """Calls that the server's parser broke were passed on without a word."""

    async def act(engine: OpenAIChatEngine, upstream: Upstream) -> str:
        for _ in range(2):
            await pieces(engine, chat_job())
        return upstream.url

    url = run({"/v1/chat/completions": Answer(events(*chunks))}, act, chat=True, models={"owned_by": server})
    warned = [record.getMessage() for record in caplog.records if "upstream" in record.getMessage()]
    assert warned == ([] if shown is None else [f"upstream {url}, model 'm': {shown}"])


MARKUP = '<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>'
TWICE = "tool_calls: the upstream parsed a call and left it in the content as well; made once"


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("content", "sent", "made", "notes"),
    [
        (MARKUP, {"x": 1}, [{"x": 1}], [TWICE]),
        (f"<think>\nHm.\n</think>\n\nSure.\n{MARKUP}", {"x": 1}, [{"x": 1}], [TWICE]),
        (MARKUP, {"x": 1.0}, [{"x": 1}], [TWICE]),
        (MARKUP, {"x": 2}, [{"x": 1}, {"x": 2}], []),
        (MARKUP, {"x": True}, [{"x": 1}, {"x": True}], []),
        ("Sure.", {"x": 1}, [{"x": 1}], []),
    ],
)
def test_a_call_that_the_server_parsed_and_left_in_the_content_is_made_once(
    content: str, sent: Any, made: list[Any], notes: list[str], whole: bool
):
    """It ran twice. A call that the server missed is still made."""
    calls = [call(0, "a1", "f", json.dumps(sent))]
    if whole:
        message = {"role": "assistant", "content": content, "tool_calls": calls}
        answer = Answer.json({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]})
    else:
        text = [delta(content=content[at : at + 7]) for at in range(0, len(content), 7)]
        value = json.dumps(sent["x"])
        parts = [call(0, "a1", "f", ""), call(0, None, None, '{"x"'), call(0, None, None, f": {value}}}")]
        answer = Answer(events(*text, *(delta(tool_calls=[part]) for part in parts), delta("tool_calls")))
    found = run({"/v1/chat/completions": answer}, lambda engine, _: pieces(engine, chat_job()), chat=True)
    asked = Generation(model="m", tools=TOOLS)
    stream = OutputParser.named("hermes+qwen3").stream(tools=TOOLS, collect=True)
    choice = ChoiceStream(0, asked, stream, Prompt("", None))
    steps = [step for chunk in found for step in choice.feed(chunk)]
    last, ended = choice.finish()
    streamed = assemble([step[0] for step in [*steps, *last]])
    for message in (ended.parsed, streamed):
        assert [json.loads(one.function.arguments) for one in message.tool_calls] == made
    assert "<tool_call>" not in (ended.parsed.content or "")
    assert (ended.finish_reason, asked.notes.texts) == ("tool_calls", notes)


def held(content: str, calls: list[DeltaToolCall]) -> tuple[ChoiceStream, Generation]:
    """Return a choice whose content has calls, and that has got calls of the server as well."""
    asked = Generation(model="m", tools=TOOLS)
    choice = ChoiceStream(0, asked, OutputParser.named("hermes").stream(tools=TOOLS, collect=True), Prompt("", None))
    choice.feed(EngineChunk(content))
    for one in calls:
        assert choice.feed(EngineChunk(delta=DeltaMessage(tool_calls=[one]))) == []
    return choice, asked


def server_call(index: int, arguments: str, name: str | None = "f") -> DeltaToolCall:
    return DeltaToolCall(index=index, function=DeltaFunctionCall(name=name, arguments=arguments))


@pytest.mark.parametrize(("left", "sent", "made"), [(1, 1, 1), (1, 2, 2), (2, 1, 2), (2, 2, 2), (1, 3, 3)])
def test_each_equal_call_of_the_content_stands_for_one_of_the_server(left: int, sent: int, made: int):
    """A model may call `roll_dice()` twice: what the server sends twice is lost otherwise."""
    choice, asked = held(MARKUP * left, [server_call(i, '{"x": 1}') for i in range(sent)])
    _, ended = choice.finish("stop")
    assert [json.loads(one.function.arguments) for one in ended.parsed.tool_calls] == [{"x": 1}] * made
    assert asked.notes.texts == [TWICE]


def test_parts_of_calls_that_wait_are_kept_in_one_list():
    """Each part copied all parts before it."""
    choice, _ = held(MARKUP, [server_call(0, "{", "g")])
    waiting = choice._held_calls
    for _ in range(3):
        choice.feed(EngineChunk(delta=DeltaMessage(tool_calls=[server_call(0, " ", None)])))
    choice.feed(EngineChunk(delta=DeltaMessage(tool_calls=[server_call(0, "}", None)])))
    assert choice._held_calls is waiting
    _, ended = choice.finish("stop")
    assert [one.function.arguments for one in ended.parsed.tool_calls][1:] == ["{   }"]


def test_text_after_calls_that_the_server_parsed_is_not_parsed_for_calls():
    answer = Answer(events(delta(tool_calls=[call(0, "a1", "f", '{"x": 1}')]), delta(content=MARKUP), delta("stop")))
    found = run({"/v1/chat/completions": answer}, lambda engine, _: pieces(engine, chat_job()), chat=True)
    assert [one.delta for one in found if one.delta is not None][1:] == [DeltaMessage(content=MARKUP)]
    assert [one.text for one in found if one.text] == []


def test_a_call_that_the_server_missed_is_numbered_behind_the_one_that_it_found():
    stream = OutputParser.named("hermes").stream(tools=TOOLS, collect=True, seed="s")
    stream.feed('<tool_call>\n{"name": "f", "arguments": {"x"')
    found = DeltaToolCall(index=0, id="a", type="function", function=DeltaFunctionCall(name="f", arguments="{}"))
    assert stream.accept(DeltaMessage(tool_calls=[found])) == []
    stream.feed(": 1}}\n</tool_call>")
    stream.finish()
    calls = stream.result().tool_calls
    assert [(c.function.arguments, c.status) for c in calls] == [('{"x": 1}', "ok"), ("{}", "ok")]
    assert calls[1].id == "a"
    with pytest.raises(RuntimeError) as caught:
        stream.accept(DeltaMessage(content="more"))
    assert str(caught.value) == "accept() after finish(): a stream parses one output; open a new one"


def test_the_logprobs_of_chat():
    likely = {"content": [{"token": "a", "logprob": -0.5, "id": 4, "top_logprobs": [{"token": "b", "logprob": -1}]}]}
    chunk = {"choices": [{"index": 0, "delta": {"content": "a"}, "logprobs": likely}]}

    async def act(engine: OpenAIChatEngine, upstream: Upstream) -> None:
        found = await pieces(engine, chat_job(logprobs=3))
        assert found[0] == EngineChunk("a", (), None, [TokenLogprob("a", -0.5, [("b", -1.0)], 4)])

    run({"/v1/chat/completions": Answer(events(chunk, delta("stop")))}, act, chat=True)


def test_the_upstream_stand_in_writes_what_it_is_told():
    assert events({"a": 1}) == [b'data: {"a": 1}\n\n', b"data: [DONE]\n\n"]
    assert json.loads(Answer.json([1]).parts[0]) == [1]


# -- Embeddings and scores ----------------------------------------------------------------------------------------


def test_embeddings():
    data = [{"index": 1, "embedding": [3, 4.5]}, {"index": 0, "embedding": [1.0, 2.0]}]

    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        assert await engine.embed(["a", "b"], 2) == Embeddings([[1.0, 2.0], [3.0, 4.5]], 7)
        assert upstream.to("/v1/embeddings")[0].body == {
            "model": "m",
            "input": ["a", "b"],
            "encoding_format": "float",
            "dimensions": 2,
        }

    run({"/v1/embeddings": Answer.json({"data": data, "usage": {"prompt_tokens": 7}})}, act)


RANKED = [{"index": 1, "relevance_score": 0.9, "document": {"text": "b"}}, {"index": 0, "relevance_score": 0.1}]


@pytest.mark.parametrize(
    ("answer", "tokens"),
    [
        ({"results": RANKED, "usage": {"total_tokens": 5}}, 5),  # vLLM, llama.cpp
        ([{"score": 0.9, "document": "b", "index": 1}, {"score": 0.1, "index": 0}], 0),  # SGLang
    ],
)
def test_scores(answer: Any, tokens: int):
    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        assert await engine.rerank("q", ["a", "b"]) == Scores([0.1, 0.9], tokens)
        assert upstream.to("/v1/rerank")[0].body == {"model": "m", "query": "q", "documents": ["a", "b"]}

    run({"/v1/rerank": Answer.json(answer)}, act)


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        ({"data": []}, "0 results for 1 inputs"),
        ({"data": [{"index": 1, "embedding": [1]}]}, "1 results for 1 inputs"),
        ({"data": [{"index": 0, "embedding": [None]}]}, "Expected `float`, got `null` - at `$.data[0].embedding[0]`"),
        ([], "Expected `object`, got `array`"),
    ],
)
def test_embeddings_that_are_not_understood(answer: Any, detail: str):
    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        with pytest.raises(EngineError, match=r"^the engine's answer is not understood$") as caught:
            await engine.embed(["a"])
        assert caught.value.detail == detail

    run({"/v1/embeddings": Answer.json(answer)}, act)


@pytest.mark.parametrize("status", [404, 501])
def test_an_upstream_without_embeddings(status: int):
    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        with pytest.raises(NotImplementedError):
            await engine.embed(["a"])

    run({"/v1/embeddings": Answer.json({"error": {"message": "no"}}, status)}, act)


@pytest.mark.parametrize("tokens", ["1" + "0" * 30, "-3", "2.5", "1e30", "true", '"7"', "[]"])
def test_usage_that_cannot_be_is_not_believed(tokens: str, caplog: pytest.LogCaptureFixture):
    """The output is whole, and the request pays for the tokens that came."""
    shown = json.loads(tokens)
    usage = {"choices": [], "usage": {"prompt_tokens": shown, "completion_tokens": shown}}

    async def act(engine: OpenAIEngine, upstream: Upstream) -> None:
        with await engine._turns.reserve(price=1):  # otherwise all would be forgotten
            before = engine._turns._spent[""]
            chunks = [EngineChunk("Good", [5]), EngineChunk("", [2], "stop", usage=Usage(0, 0))]
            assert await pieces(engine, job()) == chunks
            assert engine._turns._spent[""] - before == 2

    answers = {"/v1/completions": Answer(events(text("Good", token_ids=[5]), text("", "stop", token_ids=[2]), usage))}
    run(answers, act, models={"owned_by": "vllm"})
    assert "tokens, which cannot be: the gateway counts them itself" in caplog.text
    native = b'{"content": "", "stop": true, "tokens_predicted": %s, "tokens_evaluated": 3}' % tokens.encode()
    assert piece_of(native, None).usage == Usage(3, 0)
    found = embeddings_of({"data": [], "usage": {"prompt_tokens": shown, "total_tokens": 4}}, 0)
    assert found.prompt_tokens == 4


def test_invalid_utf8_becomes_the_replacement_character():
    event = b'{"choices":[{"index":0,"delta":{"content":"a\xff\xfeb"},"logprobs":{"content":[{"token":"\xff"}]}}]}'
    [choice] = read_chunk(event).choices or ()
    assert choice.delta is not None
    assert choice.delta.content == "a\ufffd\ufffdb"
    [token] = logprobs_of(choice.logprobs, 0) or ()
    assert token.token == "\ufffd"
    assert piece_of(b'{"content":"a\xff","tokens":[1]}', None).text == "a\ufffd"
    with pytest.raises(EngineError, match="invalid event"):
        read_chunk(b'{"choices":"\xff"}')
