"""Several processes on one port, as `untemplate serve --workers` runs them."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from .server import LONG, soon

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds processes in /proc")
CHAT = {"model": "hermes", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4}


@contextmanager
def served(*options: str, cwd: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run `untemplate serve` until the block ends, and yield its URL."""
    command = [sys.executable, "-m", "untemplate", "serve", *options, "--port", "0", "--shutdown-grace", "1"]
    with open(cwd / "errors", "w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        found = None
        while found is None:
            line = process.stdout.readline()
            assert line, (cwd / "errors").read_text()
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
        yield found[0], process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(LONG)
        assert process.stdout is not None
        process.stdout.close()


def workers(process: subprocess.Popen[str]) -> list[int]:
    """Return the ids of the worker processes."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(pid) for pid in children if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()]


def metric(url: str, name: str) -> float:
    text = httpx.get(url + "/metrics", timeout=LONG).text
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))


def test_workers_share_the_port_the_metrics_and_the_responses(tmp_path: Path):
    with served("replay:hermes", "--workers", "2", "--replay-speed", "0", cwd=tmp_path) as (url, process):
        assert soon(lambda: len(workers(process)) == 2)
        for _ in range(12):  # each on a connection of its own
            assert httpx.post(url + "/v1/chat/completions", json=CHAT, timeout=LONG).status_code == 200
        chats = 'untemplate_requests_total{dialect="chat"'
        assert soon(lambda: metric(url, chats) == 12)  # a request is counted when its answer has been sent
        asked = {"model": "hermes", "input": "Hi", "max_output_tokens": 4}
        kept = httpx.post(url + "/v1/responses", json=asked, timeout=LONG).json()["id"]
        for _ in range(12):
            assert httpx.get(f"{url}/v1/responses/{kept}", timeout=LONG).json()["id"] == kept

        first = workers(process)[0]
        os.kill(first, signal.SIGKILL)
        assert soon(lambda: len(workers(process)) == 2 and first not in workers(process))
        assert soon(lambda: "another one takes its place" in (tmp_path / "errors").read_text())
        for _ in range(4):
            assert httpx.post(url + "/v1/chat/completions", json=CHAT, timeout=LONG).status_code == 200
        assert soon(lambda: metric(url, chats) == 16)  # those of the dead worker still count
    assert process.returncode == 0


def test_sighup_reads_the_settings_again(tmp_path: Path):
    file, errors = tmp_path / "settings.toml", tmp_path / "errors"
    file.write_text('model = "replay:hermes"')
    with served("--config", str(file), "--workers", "2", cwd=tmp_path) as (url, process):
        assert soon(lambda: len(workers(process)) == 2)

        def models() -> set[str]:
            """Return the models that several connections see."""
            return {httpx.get(url + "/v1/models", timeout=LONG).json()["data"][0]["id"] for _ in range(6)}

        first = set(workers(process))
        for wrong, problem in (
            ('model = "none.gguf"', "reload: none.gguf: no such file or folder; the workers are unchanged"),
            ('model = "replay:hermes"\nlog_raw = "/"\nlog_raw_consent = true', "0 of 2 are replaced"),
        ):
            file.write_text(wrong)
            process.send_signal(signal.SIGHUP)
            assert soon(lambda problem=problem: problem in errors.read_text()), errors.read_text()  # type: ignore[misc]
            assert models() == {"hermes"}
            assert soon(lambda: set(workers(process)) == first)  # a list of child processes may leave one out
        file.write_text('model = "replay:mistral"')
        process.send_signal(signal.SIGHUP)
        assert soon(lambda: "reload: all workers are replaced" in errors.read_text())
        assert models() == {"mistral"}
        assert not first & set(workers(process))
    assert process.returncode == 0


def test_a_worker_that_cannot_start_ends_the_server_with_the_reason(tmp_path: Path):
    command = [
        sys.executable,
        "-m",
        "untemplate",
        "serve",
        str(tmp_path / "none.gguf"),
        "--workers",
        "2",
        "--port",
        "0",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONG, check=False)
    problem = f"untemplate: error: {tmp_path}/none.gguf: no such file or folder\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", problem)


def test_a_stream_ends_when_its_server_does(tmp_path: Path):
    """A supervisor passes the signal on; a running stream gets its grace."""
    with served("replay:hermes", "--workers", "2", "--replay-speed", "200", cwd=tmp_path) as (url, process):
        with httpx.stream("POST", url + "/v1/chat/completions", json={**CHAT, "stream": True}, timeout=LONG) as stream:
            lines = stream.iter_lines()
            next(lines)
            process.send_signal(signal.SIGTERM)
            assert list(lines)[-2:] == ["data: [DONE]", ""]
        until = time.monotonic() + LONG
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
    assert process.returncode == 0


@pytest.mark.parametrize("count", ["1", "2"])
def test_the_listener_closes_at_once_and_streams_end_within_the_grace(tmp_path: Path, count: str):
    options = ["--workers", count, "--replay-speed", "10", "--shutdown-grace", "30"]
    with served("replay:hermes", *options, cwd=tmp_path) as (url, process):
        asked = {**CHAT, "max_tokens": 20, "stream": True}
        with httpx.stream("POST", url + "/v1/chat/completions", json=asked, timeout=LONG) as stream:
            lines = stream.iter_lines()
            next(lines)
            process.send_signal(signal.SIGTERM)
            begun, port = time.monotonic(), int(url.rpartition(":")[2])
            assert soon(lambda: not _takes_connections(port))
            assert time.monotonic() - begun < 1
            assert list(lines)[-2:] == ["data: [DONE]", ""]
        process.wait(LONG)
    assert process.returncode == 0


def _takes_connections(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_workers_end_when_their_supervisor_is_killed(tmp_path: Path):
    with served("replay:hermes", "--workers", "2", cwd=tmp_path) as (_, process):
        assert soon(lambda: len(workers(process)) == 2)
        pids = workers(process)
        process.kill()
        assert soon(lambda: not any(_runs(pid) for pid in pids))


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_workers_share_a_unix_socket(tmp_path: Path):
    path = str(tmp_path / "gateway.sock")
    command = [sys.executable, "-m", "untemplate", "serve", "replay:hermes", "--workers", "2", "--uds", path]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            assert soon(lambda: _listens(path))
            with httpx.Client(transport=httpx.HTTPTransport(uds=path)) as client:
                assert client.get("http://localhost/health").status_code == 200
        finally:
            process.terminate()


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(path) == 0
