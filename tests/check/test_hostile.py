"""Servers that misbehave: each gets one clear line, and nothing is repeated without limit."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from untemplate import OutputParser
from untemplate._internal.cli import main
from untemplate.check import Limits, Order, Report, Server, Unusable, run

from .hostile import MODELS, completion, events, http, plain, serving

PAGE = b"<!doctype html><html><body>Welcome</body></html>"


def check(
    url: str, *, limits: Limits | None = None, key: str = "", state: str = "", format: str = "hermes", **order: Any
) -> Report:
    async def checked() -> Report:
        server = Server(url, key=key, key_name="THE_KEY", limits=limits or Limits(timeout=30))
        try:
            return await run(server, Order(**order), lambda *_: OutputParser.named(format), state=state)
        finally:
            await server.close()

    return asyncio.run(checked())


def then(first: bytes, rest: bytes) -> Any:
    """Answer the first path, `/v1/models`, in another way than all others."""
    return lambda path, _: first if path == "/v1/models" else rest


@pytest.mark.parametrize(
    ("answer", "line", "requests"),
    [
        (lambda *_: http(200, PAGE, "text/html"), "answers with HTML: the base URL of an API often ends with /v1", 1),
        (
            lambda *_: http(401, {"error": {"message": "no"}}),
            "refuses the API key (HTTP 401): name the variable that has one with --api-key-env",
            1,
        ),
        (
            lambda *_: http(429, {}, retry_after="0"),
            "is busy (HTTP 429) after three attempts: try later, or slower with --rate",
            3,
        ),
        (lambda *_: http(500, {"error": "boom"}), "fails: HTTP 500: boom", 1),
        (lambda *_: http(503, b"down", "text/plain", retry_after="0"), "fails: HTTP 503: down", 3),
        (lambda *_: http(503, b"down", "text/plain", retry_after="3600"), "fails: HTTP 503: down", 1),
        (lambda *_: http(302, b"", location="https://else/v1"), "redirects to https://else/v1: check that URL", 1),
        (
            lambda *_: http(200, {"models": [{"name": "llama3"}]}),
            "lists no models, as OpenAI's API does: is it another API? (--model NAME)",
            1,
        ),
        (lambda *_: http(200, b"[1, 2", "application/json"),
         "lists no models, as OpenAI's API does: is it another API? (--model NAME)", 1),
        (then(http(200, {"data": [{"id": "a"}, {"id": "b"}]}), b""), "has the models a, b: name one with --model", 1),
        (lambda *_: b"", "closed the connection in the middle of a response", 1),
        (
            lambda *_: b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{",
            "closed the connection in the middle of a response",
            1,
        ),
        (
            lambda *_: b"220 mail ready\r\n\r\n",
            "does not speak HTTP as expected: illegal status line: bytearray(b'220 mail ready')",
            1,
        ),
    ],
)  # fmt: skip
def test_one_line(answer: Any, line: str, requests: int, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(answer) as server:
        code = main(["check", "--base-url", server.url, "--format", "hermes", "--timeout", "30"])
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", f"untemplate: error: {server.url}/v1 {line}\n")
    assert code == 2
    assert len(server.paths) == requests


def test_a_server_without_chat_completions() -> None:
    with serving(then(http(200, MODELS), http(404, {}))) as server, pytest.raises(Unusable) as error:
        check(server.url)
    assert str(error.value) == f"{server.url}/v1 has no Chat Completions: /chat/completions answers HTTP 404"


def test_a_server_that_hangs() -> None:
    with serving(None) as server, pytest.raises(Unusable) as error:
        check(server.url, limits=Limits(timeout=0.2))
    assert str(error.value) in (
        f"{server.url}/v1 is silent: no whole response within 0.2 s (--timeout)",
        f"{server.url}/v1 is silent: no data for 0.2 s (--timeout)",
    )
    assert len(server.paths) == 1


def test_a_port_without_a_server() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(Unusable, match=f"^http://127.0.0.1:{port}/v1 cannot be reached: "):
        check(f"http://127.0.0.1:{port}")


def test_a_wrong_url() -> None:
    with pytest.raises(Unusable, match=r"^--base-url: 'ftp://host' is not an http:// or https:// URL$"):
        check("ftp://host")


def test_a_stream_that_breaks_off() -> None:
    def answer(path: str, request: dict[str, Any]) -> bytes:
        if not request.get("stream"):
            return plain(path, request)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        return head + b'12\r\ndata: {"choices":[\r\n'

    with serving(answer) as server:
        report = check(server.url, only=("behaviour/stream",))
    [result] = report.results
    assert (result.verdict, result.reason) == (
        "fail",
        f"{server.url}/v1 closed the connection in the middle of a response",
    )
    assert result.replay.startswith(f"curl -sS {server.url}/v1/chat/completions ")


def test_a_response_that_is_late_is_no_failure() -> None:
    """A slow machine, or a model that does not end, explains it too."""

    over = threading.Event()

    def answer(path: str, request: dict[str, Any]) -> bytes:
        if request.get("n"):
            over.wait(60)
        return plain(path, request)

    with serving(answer) as server:
        report = check(server.url, limits=Limits(timeout=2), only=("behaviour/choices", "behaviour/history"))
        over.set()
    late, next_one = report.results
    assert (late.verdict, next_one.verdict) == ("cannot", "pass")
    assert late.reason.startswith(f"{server.url}/v1 is silent: no ")
    assert late.reason.endswith("2 s (--timeout)")


def test_a_stream_without_an_end() -> None:
    def answer(path: str, request: dict[str, Any]) -> bytes:
        delta = {"index": 0, "delta": {"role": "assistant", "content": "Hello."}, "finish_reason": None}
        return events({"choices": [delta]}, end=b"") if request.get("stream") else plain(path, request)

    with serving(answer) as server:
        report = check(server.url, only=("behaviour/stream",))
    assert [(one.verdict, one.reason) for one in report.results] == [
        ("fail", "streamed, the message is another one than whole: finish_reason is '', expected 'stop'")
    ]


def test_a_server_that_goes_away() -> None:
    """Three checks in a row without an answer end the run; the rest is not tried."""
    count = 0

    def answer(path: str, request: dict[str, Any]) -> bytes:
        nonlocal count
        count += path == "/v1/chat/completions"
        return plain(path, request) if count < 20 else b""

    with serving(answer) as server:
        report = check(server.url, only=("behaviour/",))
    assert report.stopped == f"{server.url}/v1 has not answered the last 3 checks"
    assert len(server.paths) < 60
    assert report.results[-1].verdict == "cannot"


def test_errors_in_the_middle_of_a_run_are_failures() -> None:
    def answer(path: str, request: dict[str, Any]) -> bytes:
        return http(500, {"error": {"message": "boom"}}) if request.get("n") else plain(path, request)

    with serving(answer) as server:
        report = check(server.url, only=("behaviour/choices",))
    assert [(one.verdict, one.reason) for one in report.results] == [("fail", "HTTP 500: boom")]


def test_without_a_way_nothing_is_forced() -> None:
    with serving(plain) as server:
        report = check(server.url, only=("given/",))
    assert report.capabilities.way == ""
    assert {(one.verdict, one.reason) for one in report.results} == {
        ("cannot", "this server offers no way to force a text")
    }


def test_the_key_is_not_kept(tmp_path: Path) -> None:
    """A server that repeats the key in its answers does not get it into a report."""

    def answer(path: str, request: dict[str, Any]) -> bytes:
        if path == "/v1/chat/completions" and request.get("messages") and not request.get("stream"):
            return completion({"content": "Your key is sk-geheim-1. \ud800"})
        return plain(path, request)

    state = tmp_path / "state.jsonl"
    with serving(answer) as server:
        report = check(server.url, key="sk-geheim-1", state=str(state))
    assert any("authorization: Bearer sk-geheim-1" in head for head in server.heads)
    import msgspec

    from untemplate.check._junit import junit
    from untemplate.check._page import page
    from untemplate.check._text import described

    written = [json.dumps(msgspec.to_builtins(report)), junit(report), page(report), described(report, verbose=True)]
    for text in (*written, state.read_text()):
        assert "geheim" not in text
    assert "Your key is $THE_KEY." in written[0]


def test_a_budget_ends_the_run() -> None:
    with serving(plain) as server:
        report = check(server.url, limits=Limits(tokens=100), only=("behaviour/",))
        with pytest.raises(Unusable, match=r"^the budget of 5 tokens is used up: before the first check$"):
            check(server.url, limits=Limits(tokens=5))
    assert report.stopped == "the budget of 100 tokens is used up"
    assert 100 <= report.tokens < 120
    assert report.results[0].verdict == "pass"
    assert report.results[-1].reason == report.stopped


def test_a_rate_spaces_requests() -> None:
    """The limiter waits for its turn: the times it asks to sleep add up to the spacing."""
    waits: list[float] = []

    async def measured() -> None:
        server = Server("http://127.0.0.1:1", limits=Limits(rate=600))
        sleep = asyncio.sleep

        async def noted(seconds: float) -> None:
            waits.append(seconds)
            await sleep(0)

        asyncio.sleep = noted  # type: ignore[assignment]
        try:
            for _ in range(3):
                await server._turn()
        finally:
            asyncio.sleep = sleep
            await server.close()

    asyncio.run(measured())
    assert waits[0] == 0
    assert waits[1] == pytest.approx(0.1, abs=0.05)
    assert waits[2] == pytest.approx(0.2, abs=0.05)


def test_a_run_is_resumed(tmp_path: Path) -> None:
    state = tmp_path / "state.jsonl"
    with serving(plain) as server:
        whole = check(server.url, only=("behaviour/",), state=str(state))
        lines = state.read_text().splitlines(keepends=True)
        assert len(lines) == 1 + len(whole.results)
        state.write_text("".join(lines[:5]) + lines[5][:20])  # killed while it wrote
        before = len(server.paths)
        again = check(server.url, only=("behaviour/",), state=str(state))
        assert len(server.paths) - before < before
        assert [one.id for one in again.results] == [one.id for one in whole.results]
        third = check(server.url, only=("behaviour/",), state=str(state))
        assert third.requests < again.requests
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps("http://else m hermes 0") + "\n")
    with serving(plain) as server, pytest.raises(ValueError, match="holds the results of another run"):
        check(server.url, state=str(other))
