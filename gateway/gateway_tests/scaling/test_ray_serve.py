"""The gateway on a local Ray: two replicas, streams, and a replica that is killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from untemplate_gateway.settings import Replay, Settings

from ..server import LONG, soon

ray = pytest.importorskip("ray", reason="needs Ray Serve (make test-scaling)")
serve = pytest.importorskip("ray.serve", reason="needs Ray Serve (make test-scaling)")
pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.skipif(not Path("/proc").exists(), reason="finds processes in /proc"),
]
CHAT = {"model": "hermes", "messages": [{"role": "user", "content": "Hi"}], "stream": True, "max_tokens": 40}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    from untemplate_gateway.ray_serve import application

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ["RAY_AUTH_MODE"] = "disabled"
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    settings = Settings(model="replay:hermes", replay=Replay(speed=40))
    serve.run(application(settings, num_replicas=2, ray_actor_options={"num_cpus": 0.5}), route_prefix="/")
    yield f"http://127.0.0.1:{port}"
    serve.shutdown()
    ray.shutdown()


class ReplicaDied(Exception):
    """Ray's answer to a request whose replica has died before it began its response.

    Ray does not repeat what a replica has taken: its proxy makes a 500 of ``ActorDiedError``, for which it sends
    nothing (``get_http_response_status``, ``send_http_response_on_exception``), so uvicorn sends this text. Errors of
    the gateway are JSON.
    """


def streamed(url: str) -> tuple[str, list[float]]:
    """Return the content of a stream, and the times of its chunks."""
    content, times = "", []
    with httpx.stream("POST", url + "/v1/chat/completions", json=CHAT, timeout=LONG) as response:
        if response.status_code == 500 and response.read() == b"Internal Server Error":
            raise ReplicaDied
        assert response.status_code == 200, response.read()
        for line in response.iter_lines():
            if line.startswith("data: {"):
                times.append(time.monotonic())
                delta = json.loads(line[6:])["choices"][0]["delta"]
                content += (delta.get("reasoning") or "") + (delta.get("content") or "")
    return content, times


def test_streams_pass_chunk_by_chunk(url: str):
    content, times = streamed(url)
    assert len(content) > 50
    # 40 tokens take a second. A proxy that buffers would send them at once.
    assert times[-1] - times[0] > 0.5


def test_a_replica_that_is_killed_loses_no_other_request(url: str):
    expected = streamed(url)[0]
    results: list[str | None] = []

    def client() -> None:
        try:
            results.append(streamed(url)[0])
        except (httpx.RemoteProtocolError, ReplicaDied):  # any other error fails the count below
            results.append(None)

    clients = [threading.Thread(target=client) for _ in range(16)]
    for one in clients:
        one.start()
    time.sleep(0.5)
    pids = replicas()
    assert len(pids) == 2
    os.kill(pids[0], signal.SIGKILL)
    for one in clients:
        one.join(LONG)
    right = results.count(expected)
    # Streams of the other replica, and of requests that no replica had, are whole. Those of the killed one break. Ray
    # may give a replica most of the requests.
    assert len(results) == 16
    assert right >= 1, results
    assert set(results) <= {expected, None, *(expected[:i] for i in range(len(expected)))}
    assert soon(lambda: len(replicas()) == 2 and pids[0] not in replicas())
    assert streamed(url)[0] == expected


def replicas() -> list[int]:
    """Return the process ids of the replicas, by the titles that Ray gives its processes."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes().startswith(b"ray::ServeReplica:default:untemplate"):
                found.append(int(path.parent.name))
    return found


def test_workers_are_replicas_on_ray():
    from untemplate_gateway.ray_serve import application

    with pytest.raises(ValueError, match=r"^workers: Ray Serve has replicas instead"):
        application(Settings(model="replay:hermes", workers=2))
