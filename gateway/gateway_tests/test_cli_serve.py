"""``serve``: its options, its errors at the start, and one server from its greeting to its end."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from untemplate._internal import cli
from untemplate_gateway.cli.serve import _bound
from untemplate_gateway.settings import Settings, fields

for package in ("starlette", "uvicorn", "httptools", "prometheus_client"):
    pytest.importorskip(package)

UNKNOWN = "unknown format 'hermess'; did you mean 'hermes'? `untemplate formats` lists all names"


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(["serve", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err.strip().split("\n")[-1].removeprefix("untemplate: error: ")


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    import logging

    for name in [name for name in os.environ if name.startswith("UNTEMPLATE_")]:
        monkeypatch.delenv(name)
    loggers = [logging.getLogger(name) for name in ("untemplate", "uvicorn")]
    before = [(log.handlers, log.propagate, log.level) for log in loggers]
    yield
    for log, (handlers, propagate, level) in zip(loggers, before, strict=True):
        log.handlers, log.propagate = handlers, propagate
        log.setLevel(level)


def test_every_setting_is_an_option(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit):
        cli.main(["serve", "--help"])
    shown = capsys.readouterr().out
    assert [one.flag for one in fields() if one.path != "model" and one.flag not in shown] == []
    assert "--port N" in shown
    assert "(default: 8000)" in shown


def test_the_settings_that_hold(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "u.toml"
    file.write_text("port = 1\nname = 'a'\n[replay]\nspeed = 5\n")
    monkeypatch.setenv("UNTEMPLATE_HOST", "h")
    arguments = ["serve", "replay", "--config", str(file), "--port", "2", "--api-key", "s3cret", "--no-metrics"]
    arguments += ["--policy", "strict=true", "--alias", "x", "--show-settings"]
    assert cli.main(arguments) == 0
    text = capsys.readouterr().out
    held = tomllib.loads(text)
    assert (held["model"], held["port"], held["host"], held["name"], held["metrics"]) == ("replay", 2, "h", "a", False)
    assert (held["replay"]["speed"], held["policy"], held["aliases"]) == (5.0, {"strict": "true"}, {"x": ""})
    origin = dict(re.findall(r"^(\w+) = .*  # (.+)$", text, re.MULTILINE))
    assert (origin["port"], origin["host"], origin["name"], origin["uds"]) == (
        *("--port", "UNTEMPLATE_HOST", str(file)),
        "default",
    )
    assert "s3cret" not in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "x"], "port: 'x' is not a whole number (--port)"),
        (["--enforce-parser", "hermess"], f"enforce_parser: {UNKNOWN}"),
        (["--config", "missing.toml"], "missing.toml: No such file or directory"),
        (
            ["--port", "0"],
            "model: nothing to serve; give a GGUF file, a folder, a hub id or replay, or --upstream URL for a server",
        ),
        (["missing.gguf", "--port", "0"], "missing.gguf: no such file or folder"),
        (
            ["--upstream", "http://127.0.0.1:9", "--set", "upstream_retries=0", "--port", "0"],
            None,
        ),
    ],
)
def test_what_cannot_be_served(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str | None):
    found = fails(capsys, *arguments)
    assert found == said if said is not None else "http://127.0.0.1:9" in found


def test_a_template_that_does_not_exist(capsys: pytest.CaptureFixture[str]):
    assert fails(capsys, "replay", "--port", "0", "--chat-template", "nofile") == (
        "chat_template: nofile: not a template, and no such file, folder or hub id"
    )


def test_a_public_address_needs_keys_or_a_decision(capsys: pytest.CaptureFixture[str]):
    assert fails(capsys, "replay", "--host", "0.0.0.0", "--port", "0") == (
        "host 0.0.0.0: anyone who reaches this address could use the gateway; set API keys (--api-key-file FILE or "
        "UNTEMPLATE_API_KEY), or allow it with --insecure"
    )


def test_a_certificate_that_cannot_be_read(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    missing = str(tmp_path / "missing.pem")
    found = fails(capsys, "replay:hermes", "--port", "0", "--tls-cert", missing)
    assert found == f"tls_cert {missing}: No such file or directory"
    assert fails(capsys, "replay:hermes", "--tls-key", missing) == "tls_key: needs tls_cert"


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert fails(capsys, "replay", "--port", str(port)) == (
            f"cannot listen on 127.0.0.1:{port}: Address already in use; --port 0 chooses a free one"
        )


def test_a_raw_log_that_cannot_be_written(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    file = tmp_path / "missing" / "raw.jsonl"
    arguments = ["replay:hermes", "--port", "0", "--log-raw", str(file), "--log-raw-consent"]
    assert fails(capsys, *arguments) == f"log_raw {file}: No such file or directory"


def test_the_greeting_promises_what_the_model_can_do(capsys: pytest.CaptureFixture[str]):
    """A model without a template takes raw prompts only."""
    from untemplate import OutputParser
    from untemplate_gateway.cli.serve import _greet
    from untemplate_gateway.manager import Manager, Model

    from .scripted import replay

    parser = OutputParser.named("hermes")
    engine = replay("hermes")
    chats = Model(name="chats", engine=engine, parser=parser, template=engine.template(), context_length=4096)
    completes = Model(name="completes", engine=engine, parser=parser)
    _greet("http://127.0.0.1:8000", Manager([completes, chats]), Settings(model="m", api_keys=("key",)))
    assert capsys.readouterr().out == (
        "\nuntemplate serves on http://127.0.0.1:8000\n\n"
        "  MODEL      FORMAT  THINKING  TOOLS  CONTEXT\n"
        "  completes  hermes  no        no\n"
        "  chats      hermes  no        yes    4096\n"
        "  chats: calls that it only quotes would run in 5 of 13 tested ways of quoting (code, tables …), "
        "because the tokenizer is not known; fewer do with a MODEL (folder or hub id) that has it, "
        "--policy quoted_calls=content or a grammar\n\n"
        '  curl -N http://127.0.0.1:8000/v1/completions -H "Authorization: Bearer $API_KEY" \\\n'
        "    -H 'Content-Type: application/json' -d "
        '\'{"model": "completes", "prompt": "6 times 7 is", "max_tokens": 64, "stream": true}\'\n\n'
    )


def test_advice_on_quoted_calls():
    from untemplate import OutputParser, Policy
    from untemplate_gateway.advice import advice_on_quotations
    from untemplate_gateway.manager import Model

    from .scripted import Scripted, replay

    class Plain:
        """A vocabulary without any marker."""

        def get_vocab(self) -> dict[str, int]:
            return {"a": 0}

    def said(name: str, engine, tokenizer, **policy) -> str:
        parser = OutputParser.named(name, tokenizer=tokenizer, policy=Policy(**policy))
        return advice_on_quotations(Model(name="m", engine=engine, parser=parser, template=hermes.template()))

    hermes = replay("hermes")
    tokens = hermes.vocabulary()
    content = "--policy quoted_calls=content or a grammar"
    assert said("hermes", hermes, tokens) == ""
    assert said("hermes", hermes, Plain()) == (
        f"calls that it only quotes would run in 5 of 13 tested ways of quoting (code, tables …), "
        f"because its calls begin with ordinary text; fewer do with {content}"
    )
    assert said("hermes", hermes, Plain(), quoted_calls="content").startswith(
        "calls that it only quotes would run in 3 of 13 tested ways of quoting"
    )
    without_ids = Scripted("")
    assert not without_ids.takes.token_ids
    assert said("hermes", without_ids, tokens) == (
        "calls that it only quotes would run in 5 of 13 tested ways of quoting (code, tables …), "
        "because the engine reports no token ids; fewer do with one that returns them, "
        f"{content}"
    )
    assert said("qwen3", hermes, None) == ""
    assert said("functionary_v3.2", without_ids, None) == ""


# -- A server -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def serving(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a server in a process of its own; yield it with its output until it listens."""
    command = [sys.executable, "-m", "untemplate", "serve", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    killer = threading.Timer(240, process.kill)
    killer.start()
    try:
        greeting = ""
        while "curl" not in greeting and (line := process.stdout.readline()):
            greeting += line
        yield process, greeting
    finally:
        process.kill()
        process.communicate()
        killer.cancel()


def ask(url: str, **body: object) -> urllib.request.Request:
    body = {"messages": [{"role": "user", "content": "Hello!"}], **body}
    headers = {"Content-Type": "application/json"}
    return urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), headers)


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_server_greets_answers_and_ends_what_it_has_begun():
    with serving("replay:hermes", "--port", "0", "--replay-speed", "30") as (process, greeting):
        found = re.search(r"untemplate serves on (http://127\.0\.0\.1:\d+)\n", greeting)
        assert found is not None
        url = found[1]
        assert "  MODEL   FORMAT        THINKING  TOOLS  CONTEXT\n  hermes  hermes+qwen3  yes       yes\n" in greeting
        assert f"  curl -N {url}/v1/chat/completions \\\n" in greeting
        with urllib.request.urlopen(ask(url, model="replay")) as response:
            whole = json.load(response)["choices"][0]["message"]
        with urllib.request.urlopen(ask(url, stream=True)) as response:
            first = response.readline()
            process.send_signal(signal.SIGTERM)
            lines = [first, *response]
        events = [json.loads(line[6:]) for line in lines if line.startswith(b"data: {")]
        deltas = [event["choices"][0]["delta"] for event in events if event["choices"]]
        assert lines[-2] == b"data: [DONE]\n"
        assert "".join(d.get("content") or "" for d in deltas) == whole["content"]
        assert process.wait() == 0
        assert process.stderr is not None
        said = process.stderr.read()
    assert "shutting down: running requests may take 30 s more" in said
    assert "Traceback" not in said


def certificate(folder: Path) -> tuple[Path, Path]:
    """Write a self-signed certificate for 127.0.0.1 and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-keyout", key, "-out", cert]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key


def test_https(tmp_path: Path):
    """A client that trusts the certificate gets an answer; one that does not refuses the connection."""
    cert, key = certificate(tmp_path)
    with serving("replay:hermes", "--port", "0", "--tls-cert", str(cert), "--tls-key", str(key)) as (process, greeting):
        found = re.search(r"untemplate serves on (https://127\.0\.0\.1:\d+)\n", greeting)
        assert found is not None
        trusting = ssl.create_default_context(cafile=str(cert))
        with urllib.request.urlopen(ask(found[1], model="replay"), context=trusting) as response:
            assert json.load(response)["object"] == "chat.completion"
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            urllib.request.urlopen(ask(found[1]), context=ssl.create_default_context())

        if os.name == "posix":
            assert process.stderr is not None
            content = cert.read_text()
            for written, said in (("", "nothing is changed"), (None, "reload: serving hermes")):
                certificate(tmp_path) if written is None else cert.write_text(written)
                process.send_signal(signal.SIGHUP)
                while "reload: " not in (line := process.stderr.readline()):
                    assert line
                assert said in line
            assert cert.read_text() != content
            with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
                urllib.request.urlopen(ask(found[1], model="replay"), context=trusting)
            trusting = ssl.create_default_context(cafile=str(cert))
            with urllib.request.urlopen(ask(found[1], model="replay"), context=trusting) as response:
                assert response.status == 200


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_second_signal_ends_it_at_once_and_in_silence():
    with serving("replay:hermes", "--port", "0", "--replay-speed", "1") as (process, greeting):
        found = re.search(r"untemplate serves on (\S+)\n", greeting)
        assert found is not None
        assert process.stderr is not None
        with urllib.request.urlopen(ask(found[1], stream=True)) as response:
            response.readline()
            process.send_signal(signal.SIGINT)
            while "shutting down" not in (line := process.stderr.readline()):
                assert line
            process.send_signal(signal.SIGINT)
            process.wait()
        said = process.stderr.read()
    assert "Traceback" not in said
    assert "ERROR" not in said


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_sighup_puts_another_model_in_place(tmp_path: Path):
    file = tmp_path / "u.toml"
    file.write_text("model = 'replay:hermes'\nport = 0\n[replay]\nspeed = 30\n")
    with serving("--config", str(file)) as (process, greeting):
        found = re.search(r"untemplate serves on (\S+)\n", greeting)
        assert found is not None
        url = found[1]
        assert process.stderr is not None
        with urllib.request.urlopen(ask(url, model="hermes", stream=True)) as response:
            first = response.readline()
            for model, said in (
                ("broken", "reload: broken: no such file or folder; the models are unchanged"),
                ("replay:mistral", "reload: serving mistral; a restart is needed for port"),
            ):
                file.write_text(f"model = '{model}'")
                process.send_signal(signal.SIGHUP)
                while "reload: " not in (line := process.stderr.readline()):
                    assert line
                assert said in line
            lines = [first, *response]
        assert lines[-2] == b"data: [DONE]\n"
        with urllib.request.urlopen(f"{url}/v1/models") as response:
            assert json.load(response)["data"][0]["id"] == "mistral"


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_sighup_ends_keys_that_were_removed(tmp_path: Path):
    keys, file = tmp_path / "keys", tmp_path / "u.toml"
    keys.write_text("first\nsecond\n")
    file.write_text(f"model = 'replay:hermes'\nport = 0\napi_keys_file = '{keys}'\n[replay]\nspeed = 0\n")

    def status(url: str, key: str, size: int = 0) -> int:
        asked = ask(url, model="hermes", max_tokens=2, user="x" * size)
        asked.add_header("Authorization", f"Bearer {key}")
        try:
            with urllib.request.urlopen(asked) as response:
                return response.status
        except urllib.error.HTTPError as error:
            return error.code

    with serving("--config", str(file)) as (process, greeting):
        url = re.search(r"untemplate serves on (\S+)\n", greeting)[1]
        assert process.stderr is not None

        def reload() -> str:
            process.send_signal(signal.SIGHUP)
            while "reload: " not in (line := process.stderr.readline()):
                assert line
            return line

        assert [status(url, key) for key in ("first", "second", "third")] == [200, 200, 401]
        keys.write_text("second\nthird\n")
        file.write_text(file.read_text().replace("port = 0", "port = 0\nmax_body_bytes = 2048"))
        assert "reload: serving hermes\n" in reload()
        assert [status(url, key) for key in ("first", "second", "third")] == [401, 200, 200]
        assert status(url, "third", 3000) == 413

        keys.write_text("fourth\n")
        file.write_text(file.read_text().replace("replay:hermes", "broken"))
        assert "reload: broken: no such file or folder; the models are unchanged\n" in reload()
        assert [status(url, key) for key in ("third", "fourth")] == [401, 200]

        keys.unlink()
        assert f"reload: api_keys_file {keys}: No such file or directory; nothing is changed\n" in reload()
        assert status(url, "fourth") == 200


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_sighup_changes_the_tables_of_models(tmp_path: Path):
    file = tmp_path / "u.toml"
    kept = "[models.kept]\nmodel = 'replay:hermes'\n"
    file.write_text(f"port = 0\n[replay]\nspeed = 30\n{kept}[models.old]\nmodel = 'replay:mistral'\n")
    with serving("--config", str(file)) as (process, greeting):
        found = re.search(r"untemplate serves on (\S+)\n", greeting)
        assert found is not None
        url = found[1]
        assert process.stderr is not None
        with urllib.request.urlopen(ask(url, model="old", stream=True)) as response:
            first = response.readline()
            for tables, said in (
                ("[models.kept]\nmodel = 'broken'\n", "reload: models.kept: broken: no such file or folder"),
                ("[models.kept]\nmodul = 'x'\n", "unknown setting 'models.kept.modul'"),
                ("model = 'replay:hermes'", "needs a restart; the models are unchanged"),
                (
                    f"[replay]\nspeed = 30\n{kept}[models.new]\nmodel = 'replay:qwen3'\nload = 'demand'\n",
                    "reload: serving kept, new; a restart is needed for port",
                ),
            ):
                file.write_text(tables)
                process.send_signal(signal.SIGHUP)
                while "reload: " not in (line := process.stderr.readline()):
                    assert line
                assert said in line
            lines = [first, *response]
        assert lines[-2] == b"data: [DONE]\n"
        with urllib.request.urlopen(f"{url}/v1/models") as response:
            assert [one["id"] for one in json.load(response)["data"]] == ["kept", "new"]
        with urllib.request.urlopen(ask(url, model="new")) as response:
            assert response.status == 200


@pytest.mark.skipif(os.name != "posix", reason="needs Unix sockets")
def test_a_unix_socket(tmp_path: Path):
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as killed:  # a server that was killed has left its file
        killed.bind(str(path))
    with serving("replay:hermes", "--uds", str(path)) as (_, greeting):
        assert f"untemplate serves on http://localhost ({path})\n" in greeting
        assert f"curl -N --unix-socket {path} http://localhost/v1/chat/completions" in greeting
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.skipif(os.name != "posix", reason="needs Unix sockets")
def test_a_server_leaves_the_unix_socket_of_the_one_that_takes_its_place(tmp_path: Path):
    path = tmp_path / "s"
    settings = Settings(uds=str(path))
    with contextlib.ExitStack() as later:
        with _bound(settings):
            later.enter_context(_bound(settings))
        assert path.is_socket()
    assert not path.exists()
