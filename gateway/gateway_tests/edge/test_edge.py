"""The gateway behind the files of `deploy/` for nginx and HAProxy: streams pass at once, and slow clients end."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from ..scripted import scripted
from ..server import LONG, Running, running, soon
from ..test_cli_serve import certificate

DEPLOY = Path(__file__).parents[3] / "deploy"
FETCHED = Path(os.environ.get("EDGE_PROXIES", "build/edge")).absolute()
CHAT = "/v1/chat/completions"
KEY = "the-key-of-this-test"
ASK: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}], "stream": True}


@dataclass
class Edge:
    """A proxy with TLS in front of a gateway."""

    gateway: Running
    port: int
    trusting: ssl.SSLContext

    def client(self) -> httpx.Client:
        headers = {"authorization": f"Bearer {KEY}"}
        return httpx.Client(
            base_url=f"https://127.0.0.1:{self.port}", verify=self.trusting, headers=headers, timeout=LONG
        )

    def connected(self) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=LONG)
        return self.trusting.wrap_socket(plain, server_hostname="127.0.0.1")


def program(name: str) -> str:
    """Return a proxy that is installed, or that `make test-edge` has fetched."""
    fetched = FETCHED / "usr/sbin" / name
    found = str(fetched) if fetched.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"needs {name} (make test-edge)")
    return found


def command(proxy: str, folder: Path, port: int, gateway: int, times: str) -> list[str]:
    """Write the proxy's file for these ports, and for these times if there are any. Return the command that runs it."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    (folder / "both.pem").write_text(cert.read_text() + key.read_text())
    name = "nginx.conf" if proxy == "nginx" else "haproxy.cfg"
    text = (DEPLOY / name).read_text()
    changes = {"/etc/untemplate": str(folder), "127.0.0.1:8000": f"127.0.0.1:{gateway}"}
    changes |= {"listen 443": f"listen 127.0.0.1:{port}", "bind :443": f"bind 127.0.0.1:{port}"}
    changes |= {"/run/nginx.pid": f"{folder}/nginx.pid"}
    if times:
        changes |= dict.fromkeys((" 10s", " 30s", " 60s"), f" {times}")
    for old, new in changes.items():
        text = text.replace(old, new)
    if proxy == "nginx":  # where it may write, if it does not run as root
        places = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        text = text.replace("http {", "http {\n" + "".join(f"{one}_temp_path {folder}/{one};\n" for one in places))
    (folder / name).write_text(text)
    if proxy == "haproxy":
        return [program(proxy), "-db", "-f", str(folder / name)]
    return [program(proxy), "-e", str(folder / "error.log"), "-c", str(folder / name), "-g", "daemon off;"]


@contextlib.contextmanager
def started(proxy: str, folder: Path, times: str = "") -> Iterator[Edge]:
    program(proxy)
    folder.chmod(0o755)
    cert, _ = certificate(folder)
    with contextlib.ExitStack() as stack:
        gateway = stack.enter_context(running([scripted("Hello\1")], api_keys=(KEY,)))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        libraries = {"LD_LIBRARY_PATH": str(next(iter(FETCHED.glob("usr/lib/*-linux-gnu")), ""))}
        process = subprocess.Popen(command(proxy, folder, port, gateway.port, times), env={**os.environ, **libraries})
        stack.callback(process.wait)
        stack.callback(process.terminate)
        assert soon(lambda: listening(port) or process.poll() is not None)
        assert process.poll() is None
        yield Edge(gateway, port, ssl.create_default_context(cafile=str(cert)))


@pytest.fixture(params=["nginx", "haproxy"])
def proxy(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def edge(proxy: str, tmp_path: Path) -> Iterator[Edge]:
    with started(proxy, tmp_path) as found:
        yield found


def listening(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def requests(edge: Edge) -> int:
    """Return the number of requests that the gateway answers now."""
    return edge.gateway.ps()[0].requests


def test_a_stream_passes_at_once_and_ends_with_its_client(edge: Edge, caplog: pytest.LogCaptureFixture):
    """The model stops in the middle: what it wrote arrives, and when the client leaves, its request ends."""
    caplog.set_level(logging.INFO, "untemplate.gateway")
    with edge.client() as client, client.stream("POST", CHAT, json=ASK) as response:
        written = ""
        for line in response.iter_lines():
            if line.startswith("data: {"):
                written += json.loads(line[6:])["choices"][0]["delta"].get("content") or ""
            if written == "Hel":
                break
        assert requests(edge) == 1
    assert soon(lambda: requests(edge) == 0)
    assert soon(lambda: any(getattr(one, "fields", {}).get("status") == 499 for one in caplog.records))
    [fields] = [one.fields for one in caplog.records if getattr(one, "fields", {}).get("status") == 499]
    assert (fields["client"], fields["asked"]) == ("127.0.0.1", f"POST {CHAT}")


def test_a_client_that_says_nothing_is_disconnected(proxy: str, tmp_path: Path):
    """Neither a handshake, nor a head, nor a body that stops, holds its connection."""
    with started(proxy, tmp_path, times="1s") as edge:
        silent = socket.create_connection(("127.0.0.1", edge.port), timeout=LONG)
        head, body = edge.connected(), edge.connected()
        with silent, head, body:
            head.sendall(f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\n".encode())
            key = f"authorization: Bearer {KEY}\r\n"
            body.sendall(f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\n{key}content-length: 9\r\n\r\n{{".encode())
            for one in (silent, head, body):
                with contextlib.suppress(ConnectionError, ssl.SSLError):
                    while one.recv(65536):
                        pass
        assert httpx.get(edge.gateway.url + "/health").status_code == 200


def test_a_body_that_is_too_large(edge: Edge):
    with edge.client() as client:
        assert client.post(CHAT, content=b"a" * (33 << 20)).status_code == 413


def test_a_missing_key_is_the_gateways_answer(edge: Edge):
    with edge.client() as client:
        answer = client.post(CHAT, json=ASK, headers={"authorization": "Bearer none"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
