"""How the inspector is served: alone, by the gateway, and as one file."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway_tests.scripted import scripted
from gateway_tests.server import LONG, running
from tests.inspector.outputs import HERMES, HOSTILE
from untemplate._internal.cli import main
from untemplate._internal.inspector import FILES, Inspector
from untemplate._internal.inspector.server import LocalModels, make_server

OUTPUT = f"<think>\nHm.\n</think>\n\n{HERMES}"
ASK: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)


# -- Alone --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def alone() -> Iterator[str]:
    server = make_server(0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    with server:
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
    thread.join()


@pytest.mark.parametrize("name", FILES)
def test_every_file(alone: str, name: str):
    found = httpx.get(f"{alone}/inspect/{name}", timeout=LONG)
    assert found.status_code == 200
    assert found.headers["content-security-policy"] == POLICY
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.headers["referrer-policy"] == "no-referrer"
    assert found.headers["content-type"] == FILES[name][1].decode()


def test_the_way_to_the_page(alone: str):
    for path in ("/", "/inspect"):
        found = httpx.get(alone + path, timeout=LONG)
        assert (found.status_code, found.headers["location"]) == (307, "/inspect/")


def test_a_request(alone: str):
    found = httpx.post(f"{alone}/inspect/api/parse", json={"text": HERMES, "format": "hermes"}, timeout=LONG)
    assert found.json() == Inspector(LocalModels()).answer("parse", {"text": HERMES, "format": "hermes"})


@pytest.mark.parametrize(
    ("path", "options", "status", "problem"),
    [
        ("parse", {"json": {"text": 3}}, 400, "Expected `str`, got `int` - at `$.text`"),
        ("parse", {"content": b"{", "headers": {"content-type": "application/json"}}, 400, "the body is not JSON"),
        ("nothing", {"json": {}}, 404, "there is nothing at /inspect/api/nothing"),
        ("parse", {"content": b"{}"}, 403, "this host, origin or type of body is not allowed here"),
        ("parse", {"content": b"{}", "headers": {"content-type": "text/plain"}}, 403,
         "this host, origin or type of body is not allowed here"),
        ("parse", {"json": {}, "headers": {"origin": "https://a.example"}}, 403,
         "this host, origin or type of body is not allowed here"),
        ("parse", {"json": {}, "headers": {"origin": "null"}}, 403,
         "this host, origin or type of body is not allowed here"),
        ("parse", {"json": {}, "headers": {"host": "a.example"}}, 403,
         "this host, origin or type of body is not allowed here"),
    ],
)  # fmt: skip
def test_refused(alone: str, path: str, options: dict[str, Any], status: int, problem: str):
    found = httpx.post(f"{alone}/inspect/api/{path}", timeout=LONG, **options)
    assert (found.status_code, found.json()) == (status, {"error": problem})


def test_a_body_that_is_too_long(alone: str):
    connection = http.client.HTTPConnection(alone.removeprefix("http://"), timeout=LONG)
    with closing(connection):
        connection.putrequest("POST", "/inspect/api/parse")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", "16777217")
        connection.endheaders()
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())) == (413, {"error": "a body has at most 16777216 bytes"})


def test_pages_are_refused_under_other_names(alone: str):
    found = httpx.get(f"{alone}/inspect/", headers={"host": "a.example"}, timeout=LONG)
    assert (found.status_code, found.json()) == (403, {"error": "this host or origin is not allowed here"})


@pytest.mark.parametrize("path", ["/inspect/../cases.py", "/inspect/cases.py", "/etc/passwd", "/inspect/api/parse"])
def test_nothing_else_is_served(alone: str, path: str):
    assert httpx.get(alone + path, timeout=LONG).status_code == 404


def test_the_command(tmp_path: Path):
    command = [sys.executable, "-m", "untemplate", "inspect", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"untemplate inspects on (http://127\.0\.0\.1:\d+/inspect/) \(Ctrl-C ends it\)\n", line)
        assert found is not None
        assert "<title>untemplate inspector</title>" in httpx.get(found[1], timeout=LONG).text
        process.terminate()


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]):
    with make_server(0) as server:
        port = server.server_port
        assert main(["inspect", "--port", str(port)]) == 2
    problem = f"untemplate: error: --port {port}: Address already in use; --port 0 chooses a free one\n"
    assert capsys.readouterr().err == problem


# -- By the gateway -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        ({}, 200),
        ({"inspect": "off"}, 404),
        ({"inspect": "on"}, 200),
        ({"host": "0.0.0.0", "insecure": True}, 404),
        ({"host": "0.0.0.0", "insecure": True, "inspect": "on"}, 200),
        ({"uds": "/run/x.sock"}, 404),
    ],
)
def test_on_public_addresses_only_if_asked_for(settings: dict[str, Any], status: int):
    with running([scripted("x")], **settings) as gateway:
        found = httpx.get(f"{gateway.url}/inspect/", timeout=LONG)
        assert found.status_code == status
        assert httpx.post(f"{gateway.url}/inspect/api/choices", json={}, timeout=LONG).status_code == status
        if status == 200:
            assert found.headers["content-security-policy"] == POLICY


def test_the_gateway_s_requests():
    with running([scripted(OUTPUT)]) as gateway:
        way = httpx.get(f"{gateway.url}/inspect", timeout=LONG)
        assert (way.status_code, way.headers["location"]) == (307, "inspect/")

        def ask(route: str, body: Any) -> tuple[int, Any]:
            found = httpx.post(f"{gateway.url}/inspect/api/{route}", json=body, timeout=LONG)
            return found.status_code, found.json()

        status, choices = ask("choices", {})
        assert (status, choices["models"]) == (200, ["scripted"])
        status, view = ask("parse", {"text": OUTPUT, "model": "scripted"})
        assert (status, view["calls"][0]["status"]) == (200, "ok")
        status, template = ask("template", {"model": "scripted"})
        assert (status, template["certificate"]["certified"]) == (200, True)
        assert ask("nothing", {})[1]["error"]["message"] == "there is nothing at /inspect/api/nothing"
        assert ask("parse", {"text": 1})[1]["error"]["message"] == "Expected `str`, got `int` - at `$.text`"
        missing = "the model 'gone' does not exist (models: scripted)"
        assert ask("parse", {"model": "gone"})[1]["error"]["message"] == missing


def test_models_are_not_read_from_disk_for_clients(tmp_path: Path):
    (tmp_path / "chat_template.jinja").write_text("x")
    with running([scripted("x")]) as gateway:
        found = httpx.post(f"{gateway.url}/inspect/api/template", json={"model": str(tmp_path)}, timeout=LONG)
        assert found.status_code == 404


# -- As one file --------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """Reads a page as a browser does: scripts are raw text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.types: list[str | None] = []
        self.policy = ""
        self.remote: list[str] = []
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        self.tags.append(tag)
        self.remote += [value or "" for name, value in attributes if name in ("src", "href") and value != "#views"]
        assert not any(name.startswith("on") or name == "style" for name, _ in attributes)
        if tag in self.raw:
            self._inside = tag
            self.raw[tag].append("")
            if tag == "script":
                self.types.append(found.get("type"))
        if found.get("http-equiv") == "Content-Security-Policy":
            self.policy = found["content"] or ""

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.raw[self._inside][-1] += data


def test_one_file_holds_the_view_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "output.txt").write_text(HOSTILE, "utf-8")
    options = ["--format", "hermes+qwen3", "--explain", "--html"]
    assert main(["parse", *options, str(tmp_path / "output.txt")]) == 0
    page = Page(capsys.readouterr().out.removesuffix("\n"))
    data, *scripts = page.raw["script"]
    assert page.types == ["application/json", *[None] * len(scripts)]
    assert page.remote == []
    assert {"b", "img", "i"} & {*page.tags} == set()
    held = json.loads(data)
    assert held["view"]["text"] == held["case"]["text"] == HOSTILE
    assert held["view"] == Inspector(LocalModels()).answer("parse", {"text": HOSTILE, "format": "hermes+qwen3"})
    assert held["splits"]["different"] == []
    digests = {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts}
    assert set(re.search(r"script-src ([^;]*)", page.policy)[1].split()) == {f"'sha256-{d}'" for d in digests}  # type: ignore[index]
    (style,) = page.raw["style"]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}';" in page.policy
    assert page.policy.startswith("default-src 'none'; ")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--html"], "--html needs --explain, and excludes --json"),
        (["--explain", "--html", "--json"], "--html needs --explain, and excludes --json"),
    ],
)
def test_what_goes_with_html(options: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "output.txt").write_text("x")
    assert main(["parse", "--format", "hermes", *options, str(tmp_path / "output.txt")]) == 2
    assert capsys.readouterr().err == f"untemplate: error: {problem}\n"


def test_an_output_that_is_too_long_for_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "output.txt"
    file.write_text("x" * 500_001)
    assert main(["parse", "--format", "hermes", "--explain", "--html", str(file)]) == 2
    problem = f"{file}: --html shows at most 500000 characters, and it has 500001"
    assert capsys.readouterr().err == f"untemplate: error: {problem}\n"


# -- The scripts --------------------------------------------------------------------------------------------------


def test_scripts_write_text_only():
    """No way from a string to markup or code, and no address of another server."""
    folder = Path(__file__).parents[2] / "src" / "untemplate" / "_internal" / "inspector" / "static"
    for path in folder.iterdir():
        text = path.read_text("utf-8")
        for sink in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function",
                     "setTimeout('", "srcdoc", "javascript:", "</script", "createContextualFragment"):  # fmt: skip
            assert path.suffix == ".html" or sink not in text, (path.name, sink)
        assert re.findall(r"https?://(?!www\.w3\.org/2000/svg|example\.org)", text) == []
    page = (folder / "index.html").read_text("utf-8")
    assert re.findall(r"<script(?![^>]* src=)[^>]*>|\son\w+=|\sstyle=", page) == []
