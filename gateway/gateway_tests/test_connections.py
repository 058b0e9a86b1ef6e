"""Connections that try to occupy the server: endless heads, bodies that never arrive, too many connections. The tests
check limits in bytes and counts, never in time.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import re
import select
import shutil
import socket
import ssl
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from untemplate_gateway import asgi
from untemplate_gateway.connections import HEAD_BYTES, HEADERS, ServerConfig
from untemplate_gateway.engines import EngineChunk
from untemplate_gateway.settings import Settings

from .scripted import Scripted, scripted
from .server import LONG, Running, running, soon

ASK: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}
CHAT = "/v1/chat/completions"


def connected(gateway: Running) -> socket.socket:
    return socket.create_connection(("127.0.0.1", gateway.port), timeout=LONG)


def answer(client: socket.socket) -> tuple[int, str]:
    """Return the status and error message of the only response on a connection that the server closes."""
    data = b"".join(iter(lambda: client.recv(65536), b""))
    head, _, body = data.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]["message"]


def open_post(gateway: Running, length: int = 1000) -> socket.socket:
    """Return a client that announces a body and sends one byte of it."""
    client = connected(gateway)
    client.sendall(f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{{".encode())
    return client


class TestHeads:
    def test_an_endless_header_ends_at_the_limit(self) -> None:
        with running([scripted("x")]) as gateway, connected(gateway) as client:
            client.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: ")
            sent = 0
            while sent <= HEAD_BYTES:
                client.sendall(b"a" * 4096)
                sent += 4096
            assert answer(client) == (431, f"the head of the request is longer than {HEAD_BYTES} bytes")

    def test_a_long_header_that_comes_at_once(self) -> None:
        with running([scripted("x")]) as gateway, connected(gateway) as client:
            head = b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * HEAD_BYTES + b"\r\n\r\n"
            client.sendall(head)
            assert answer(client) == (431, f"the head of the request is longer than {HEAD_BYTES} bytes")

    def test_many_header_fields(self) -> None:
        with running([scripted("x")]) as gateway, connected(gateway) as client:
            client.sendall(b"GET /health HTTP/1.1\r\n" + b"a: b\r\n" * (HEADERS + 1) + b"\r\n")
            assert answer(client) == (431, f"the request has more than {HEADERS} header fields")

    def test_a_head_that_does_not_end(self) -> None:
        with running([scripted("x")], head_timeout=0.2) as gateway, connected(gateway) as client:
            client.sendall(b"GET /health HTTP/1.1\r\n")
            assert answer(client) == (408, "the head of the request did not arrive within 0.2 seconds")

    def test_a_connection_that_sends_nothing(self) -> None:
        with (
            running([scripted("x")], head_timeout=0.2) as gateway,
            connected(gateway) as client,
            contextlib.suppress(ConnectionResetError),
        ):
            assert client.recv(1) == b""


class TestBodies:
    def test_one_that_does_not_come(self) -> None:
        with running([scripted("x")], body_timeout=0.2) as gateway, open_post(gateway) as client:
            status, problem = 0, ""
            data = client.recv(65536)
            while b"}" not in data:
                data += client.recv(65536)
            status, problem = int(data.split()[1]), json.loads(data.partition(b"\r\n\r\n")[2])["error"]["message"]
            assert (status, problem) == (408, "the body did not arrive within 0.2 seconds")

    def test_they_take_no_place_of_requests(self) -> None:
        """Connections without a request take no place of a request; nor does monitoring, when all places are taken."""
        with running([scripted("x")], max_concurrent_requests=1) as gateway:
            clients = [open_post(gateway) for _ in range(8)]
            assert httpx.post(gateway.url + CHAT, json=ASK, timeout=LONG).status_code == 200
            for client in clients:
                client.close()

    def test_many_slow_ones_shut_nobody_out(self) -> None:
        """The oldest of the address that has most of them makes room."""
        with running([scripted("x")], max_connections=8) as gateway:
            clients = [open_post(gateway) for _ in range(8)]
            for path in ("/health", "/metrics"):
                assert httpx.get(gateway.url + path, timeout=LONG).status_code == 200
            assert httpx.post(gateway.url + CHAT, json=ASK, timeout=LONG).status_code == 200
            with contextlib.suppress(ConnectionResetError):  # if a part of its body was not read yet
                assert clients[0].recv(1) == b""
            for client in clients:
                client.close()

    def test_one_address_may_have_so_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The oldest makes room. A body that comes with its head does not wait."""
        monkeypatch.setattr(asgi, "_SLOW", 2)
        with running([scripted("x")]) as gateway, contextlib.ExitStack() as clients:
            arriving = gateway.app.answers._bodies._slow
            first, second = (clients.enter_context(open_post(gateway)) for _ in range(2))
            assert soon(lambda: sum(map(len, list(arriving.values()))) == 2)
            third = clients.enter_context(open_post(gateway))
            [refused], _, _ = select.select([first, second], [], [], LONG)
            assert answer(refused) == (408, "more than 2 bodies of this client are arriving")
            assert httpx.post(gateway.url + CHAT, json=ASK, timeout=LONG).status_code == 200
            third.close()

    def test_one_that_makes_room_is_told_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The one that takes its place may have arrived whole before that."""
        monkeypatch.setattr(asgi, "_SLOW", 1)
        left = asyncio.Event()

        async def slow() -> dict[str, Any]:
            await left.wait()
            return {"type": "http.disconnect"}

        async def whole() -> dict[str, Any]:
            return {"type": "http.request", "body": b"{}"}

        async def act() -> list[Any]:
            reader = asgi.BodyReader(1000, 5.0)
            first = asyncio.create_task(reader.read({"headers": []}, slow, "a"))
            await asyncio.sleep(0)
            second = asyncio.create_task(reader.read({"headers": []}, whole, "a"))
            found = await asyncio.gather(first, second, return_exceptions=True)
            assert reader._slow == {}
            return found

        refused, body = asyncio.run(act())
        assert (refused.status, str(refused)) == (408, "more than 1 bodies of this client are arriving")
        assert body == b"{}"

    def test_a_fresh_connection_stays_while_slow_bodies_are_older(self) -> None:
        with running([scripted("x")], max_connections=4) as gateway:
            slow = [open_post(gateway) for _ in range(3)]
            fresh = connected(gateway)
            assert soon(lambda: len(gateway.server.server_state.connections) == 4)
            slow += [open_post(gateway) for _ in range(2)]
            assert [client.recv(1) for client in slow[:2]] == [b"", b""]
            fresh.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert fresh.recv(15) == b"HTTP/1.1 200 OK"
            for client in (fresh, *slow):
                client.close()

    def test_framing_without_an_end(self) -> None:
        with running([scripted("x")], body_timeout=0.5) as gateway, connected(gateway) as client:
            head = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
            client.sendall(head.encode() + b"1;")
            ended = False
            for _ in range(400):
                try:
                    client.sendall(b"a" * 1024)
                except OSError:
                    ended = True
                    break
                time.sleep(0.01)
            assert ended or client.recv(15) in (b"", b"HTTP/1.1 408 Re")

    def test_a_body_that_comes_byte_by_byte(self) -> None:
        body = json.dumps(ASK).encode()
        with running([scripted("x")]) as gateway, connected(gateway) as client:
            client.sendall(f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n".encode())
            for byte in body:
                client.sendall(bytes([byte]))
            assert client.recv(15) == b"HTTP/1.1 200 OK"

    def test_a_body_that_nobody_reads(self) -> None:
        """The response comes at once; the connection is used again if the body ends soon."""
        with running([scripted("x")]) as gateway, connected(gateway) as client:
            client.sendall(b"POST /nowhere HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n\r\nab")
            assert b"404 Not Found" in client.recv(65536)
            client.sendall(b"cdGET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
            data = b""
            while b"untemplate is running" not in data:
                data += client.recv(65536)

    def test_one_whose_head_asks_for_another_protocol(self) -> None:
        """Java's HTTP client asks for HTTP/2 in its first request. It gets HTTP/1.1, and its body is read."""
        ask = json.dumps(ASK).encode()
        upgrade = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n"
        head = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\n".encode() + upgrade
        whole = head + b"content-length: %d\r\n\r\n" % len(ask) + ask
        chunked = head + b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(ask), ask)
        last = b"GET /health HTTP/1.1\r\nhost: localhost\r\nupgrade: h2c\r\nconnection: close, upgrade\r\n\r\n"
        with running([scripted("x")]) as gateway:
            for size in (len(chunked), len(whole) - len(ask), len(head), 7):
                with connected(gateway) as client:
                    for sent, answered in ((whole, b'"content":"x"'), (chunked, b'"content":"x"'), (last, b'"ok"')):
                        for start in range(0, len(sent), size):
                            client.sendall(sent[start : start + size])
                        data = b""
                        while answered not in data:
                            data += client.recv(65536)
                        assert data.startswith(b"HTTP/1.1 200 OK")
                    while client.recv(65536):
                        pass

    def test_they_are_counted(self) -> None:
        with running([scripted("x")]) as gateway:
            for _ in range(3):
                with connected(gateway) as client:
                    client.sendall(b"what is this\r\n\r\n")
                    assert answer(client) == (400, "this is not an HTTP request")
            text = httpx.get(gateway.url + "/metrics", timeout=LONG).text
            assert 'untemplate_refused_connections_total{status="400"} 3.0' in text

    def test_no_host(self) -> None:
        with running([scripted("x")]) as gateway:
            with connected(gateway) as client:
                client.sendall(b"GET /health HTTP/1.1\r\n\r\n")
                assert answer(client) == (400, "the request has no Host header")
            with connected(gateway) as client:  # HTTP/1.0 has none
                client.sendall(b"GET /health HTTP/1.0\r\n\r\n")
                assert b"".join(iter(lambda: client.recv(65536), b"")).startswith(b"HTTP/1.1 200 OK\r\n")

    def test_what_is_no_request(self) -> None:
        with running([scripted("x")]) as gateway, connected(gateway) as client:
            client.sendall(b"hello\r\n\r\n")
            assert answer(client) == (400, "this is not an HTTP request")


class TestPlaces:
    def test_monitoring_is_never_refused(self) -> None:
        with running([scripted("a\1", size=1)], max_concurrent_requests=1) as gateway:
            body = {**ASK, "stream": True}
            with httpx.stream("POST", gateway.url + CHAT, json=body, timeout=LONG) as first:
                chunks = first.iter_raw()
                next(chunks)
                assert httpx.post(gateway.url + CHAT, json=ASK, timeout=LONG).status_code == 429
                for path in ("/health", "/metrics", "/v1/models"):
                    assert httpx.get(gateway.url + path, timeout=LONG).status_code == 200

    def test_the_oldest_connection_without_a_request_makes_room(self) -> None:
        with running([scripted("x")], max_connections=4) as gateway:
            idle = [connected(gateway) for _ in range(4)]
            assert soon(lambda: len(gateway.server.server_state.connections) == 4)
            assert httpx.get(gateway.url + "/health", timeout=LONG).status_code == 200
            with contextlib.suppress(ConnectionResetError):
                assert idle[0].recv(1) == b""
            for client in idle:
                client.close()

    def test_requests_that_have_arrived_are_never_dropped_to_make_room(self) -> None:
        model = scripted("x")
        go_on = asyncio.Event()

        class Waits(type(model.engine)):  # type: ignore[misc]
            async def generate(self, job: Any) -> Any:
                await go_on.wait()
                yield EngineChunk("x", finish_reason="stop")

        with running([replace(model, engine=Waits("x"))], max_connections=2) as gateway, ThreadPoolExecutor() as pool:
            busy = [pool.submit(httpx.post, gateway.url + CHAT, json=ASK, timeout=LONG) for _ in range(2)]
            assert soon(lambda: gateway.app.answers.running == 2)
            with connected(gateway) as client:
                assert answer(client) == (503, "the server has too many connections; try again")
            gateway.loop.call_soon_threadsafe(go_on.set)
            assert [one.result().status_code for one in busy] == [200, 200]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is needed")
    return make_certificate(tmp_path_factory.mktemp("tls") / "tls.pem")


def make_certificate(path: Path) -> Path:
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    subprocess.run([*command, "-keyout", path, "-out", f"{path}.crt"], check=True, capture_output=True)
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


@pytest.fixture(params=["asyncio", "uvloop"])
def loop_factory(request: pytest.FixtureRequest) -> Any:
    return None if request.param == "asyncio" else pytest.importorskip("uvloop").new_event_loop


class TestTls:
    def test_handshakes_count(self, certificate: Path, loop_factory: Any) -> None:
        options = {"tls_cert": str(certificate), "max_connections": 4, "loop_factory": loop_factory}
        with running([scripted("x")], **options) as gateway:
            silent = [connected(gateway) for _ in range(12)]
            for client in silent[:8]:
                with contextlib.suppress(ConnectionResetError):
                    assert client.recv(1) == b""
            assert soon(lambda: len(gateway.server.server_state.connections) == 4)
            url = f"https://localhost:{gateway.port}"
            with httpx.Client(verify=False) as client:
                assert client.post(url + CHAT, json=ASK, timeout=LONG).status_code == 200
                asked = {**ASK, "messages": [{"role": "user", "content": "x" * 3_000_000}]}
                assert client.post(url + CHAT, json=asked, timeout=LONG).status_code == 200
            for one in silent:
                one.close()
            assert soon(lambda: not gateway.server.server_state.connections)

    def test_a_handshake_has_a_deadline(self, certificate: Path, loop_factory: Any) -> None:
        options = {"tls_cert": str(certificate), "head_timeout": 0.2, "loop_factory": loop_factory}
        with running([scripted("x")], **options) as gateway:
            clients = [connected(gateway) for _ in range(3)]
            clients[1].sendall(b"\x16\x03\x01\x02\x00")  # the beginning of one
            clients[2].sendall(b"GET / HTTP/1.1\r\n\r\n")
            for client in clients:
                with contextlib.suppress(ConnectionResetError):
                    while client.recv(100):
                        pass
                client.close()
            assert soon(lambda: not gateway.server.server_state.connections)
            context = ssl._create_unverified_context()
            with context.wrap_socket(connected(gateway)) as client, contextlib.suppress(ConnectionResetError):
                assert client.recv(1) == b""  # after the handshake, a head must come

    def test_the_ciphers_are_those_of_python(self, certificate: Path) -> None:
        """OpenSSL's own list has some without forward secrecy."""
        config = ServerConfig(None, Settings(tls_cert=str(certificate)))
        config.load()
        assert config.limits.tls is not None
        assert config.limits.tls.get_ciphers() == ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).get_ciphers()


class TestPipelines:
    def ask(self, gateway: Running, count: int, size: int = 0) -> socket.socket:
        """Return a client that has sent several requests at once, each with a body of some size."""
        body = json.dumps(ASK).encode().ljust(size)
        client = connected(gateway)
        head = b"POST %b HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % (CHAT.encode(), len(body))
        client.sendall((head + body) * count)
        return client

    @pytest.mark.parametrize("size", [0, 200_000])
    def test_a_client_that_leaves_is_noticed_although_more_requests_wait(self, size: int) -> None:
        model = scripted("Hello\1")
        engine = model.engine
        assert isinstance(engine, Scripted)
        with running([model], ping_seconds=0.0) as gateway:
            with self.ask(gateway, 3, size):
                assert soon(lambda: len(engine.jobs) == 1)
            assert soon(lambda: len(engine.closed) == 1)
            assert soon(lambda: not gateway.server.server_state.connections)
            assert gateway.ps()[0].requests == 0
        assert len(engine.jobs) == 1

    @pytest.mark.parametrize("size", [0, 200_000])
    def test_the_first_one_is_answered_and_the_connection_closed(self, size: int) -> None:
        """A client may send the others again, on another connection."""
        model = scripted("Hello.")
        with running([model]) as gateway, self.ask(gateway, 3, size) as client:
            data = b""
            with contextlib.suppress(ConnectionResetError):
                while b"Hello." not in data or b"}}" not in data:
                    data += client.recv(65536)
                while client.recv(65536):
                    pass
            assert data.count(b"HTTP/1.1 200 OK") == 1
            assert data.count(b"Hello.") == 1
        assert len(model.engine.jobs) == 1  # type: ignore[attr-defined]

    def test_an_empty_line_after_the_body_does_not_cut_the_answer(self) -> None:
        model = scripted("Hello.")
        engine = model.engine
        assert isinstance(engine, Scripted)
        engine.gate.clear()
        with running([model], head_timeout=0.05) as gateway, self.ask(gateway, 1) as client:
            assert soon(lambda: len(engine.jobs) == 1)
            client.sendall(b"\r\n")
            time.sleep(0.2)
            gateway.loop.call_soon_threadsafe(engine.gate.set)
            assert client.recv(65536).startswith(b"HTTP/1.1 200 OK")


def test_the_private_members_of_uvicorn_that_the_limits_need() -> None:
    """They are not part of uvicorn's interface; a version without one would serve without limits."""
    protocol = inspect.getsource(HttpToolsProtocol)
    for name in (
        *("connections", "cycle", "headers", "loop", "parser", "timeout_keep_alive", "transport"),
        *("timeout_keep_alive_task", "url"),
    ):
        assert re.search(rf"self\.{name}\b.* = ", protocol), name
    for name in (
        *("connection_made", "connection_lost", "data_received", "on_message_begin", "on_url", "on_header", "on_body"),
        *("on_headers_complete", "on_message_complete", "on_response_complete", "pause_writing", "resume_writing"),
        *("timeout_keep_alive_handler", "_unset_keepalive_if_required"),
    ):
        assert callable(getattr(HttpToolsProtocol, name)), name
    cycle = inspect.getsource(RequestResponseCycle)
    for name in ("keep_alive", "response_complete"):
        assert f"self.{name}" in cycle, name
    assert STATUS_LINE[431].startswith(b"HTTP/1.1 431 ")
    assert "config.http_protocol_class(" in inspect.getsource(uvicorn.Server.startup)
