"""One settings file with several models, under load, while models come and go and an upstream dies.

With ``UNTEMPLATE_SMOLLM``, SmolLM2's file, one of the models is SmolLM2 (``make test-smollm``).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from .server import LONG

pytest.importorskip("xllamacpp", reason="needs llama.cpp")
pytest.importorskip("untemplate_demo", reason="needs the demonstration model")

OTHER = os.environ.get("UNTEMPLATE_SMOLLM", "demo")


@contextmanager
def served(folder: Path, name: str, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run `untemplate serve` until the block ends, and yield its URL."""
    command = [sys.executable, "-m", "untemplate", "serve", *options, "--port", "0", "--log-format", "json"]
    with open(folder / name, "w+") as log:
        environment = {name: value for name, value in os.environ.items() if name != "UNTEMPLATE_SMOLLM"}
        process = subprocess.Popen(
            [*command, "--shutdown-grace", "1"], stdout=subprocess.DEVNULL, stderr=log, env=environment
        )
        try:
            url = ""
            while not url:
                assert process.poll() is None, (folder / name).read_text()
                lines = [json.loads(line) for line in (folder / name).read_text().splitlines() if line.endswith("}")]
                url = next((line["url"] for line in lines if line["message"] == "listening"), "")
                time.sleep(0.05)
            yield url, process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(LONG)


def settings(first: str, second: str) -> str:
    return f"""
max_loaded = 1
[models.demo]
model = "demo"
load = "demand"
idle_unload = 1
[models.other]
model = "{OTHER}"
load = "demand"
idle_unload = 1
[models.words]
model = "replay:hermes"
aliases = ["gpt-4o"]
replay.speed = 0
[models.far]
upstream_chat = "{first}"
upstream_model = "hermes"
fallbacks = ["farther", "words"]
[models.farther]
upstream_chat = "{second}"
upstream_model = "hermes"
"""


def body(path: str, model: str, stream: bool) -> dict[str, Any]:
    question = "What is 6 times 7?"
    messages = [{"role": "user", "content": question}]
    if path == "/v1/completions":
        return {"model": model, "prompt": question, "max_tokens": 24, "stream": stream}
    if path == "/api/generate":
        return {"model": model, "prompt": question, "stream": stream, "options": {"num_predict": 24}}
    if path == "/v1/responses":
        return {"model": model, "input": question, "max_output_tokens": 24, "stream": stream}
    if path == "/api/chat":
        return {"model": model, "messages": messages, "stream": stream, "options": {"num_predict": 24}}
    return {"model": model, "messages": messages, "max_tokens": 24, "stream": stream}


ENDS = {
    "/v1/chat/completions": "data: [DONE]",
    "/v1/messages": '"type":"message_stop"',
    "/v1/responses": '"type":"response.completed"',
    "/api/chat": '"done":true',
    "/v1/completions": "data: [DONE]",
    "/api/generate": '"done":true',
}
PATHS = (*ENDS,)


async def ask(client: httpx.AsyncClient, i: int) -> tuple[str, int, str]:
    """Return the model, the status and the kind of the answer of one request."""
    path, model, stream = PATHS[i % 6], ("demo", "far", "gpt-4o", "other")[i // 6 % 4], bool(i // 24 % 2)
    response = await client.post(path, json=body(path, model, stream))
    text = response.text
    if response.status_code != 200:
        error = response.json()["error"]
        return model, response.status_code, error if isinstance(error, str) else error["message"]
    if not stream:
        return model, 200, "whole"
    if ENDS[path] in text or '"type":"response.incomplete"' in text:
        return model, 200, "whole"
    return model, 200, "error" if "error" in text else f"cut: {text[-200:]}"


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_every_answer_is_whole_or_a_clear_error(tmp_path: Path):
    with ExitStack() as stack:
        upstreams = [
            stack.enter_context(served(tmp_path, f"upstream{i}", "replay:hermes", "--replay-speed", "400"))
            for i in range(2)
        ]
        (tmp_path / "several.toml").write_text(settings(*(url for url, _ in upstreams)))
        url, _ = stack.enter_context(served(tmp_path, "log", "--config", str(tmp_path / "several.toml")))

        async def clients() -> list[tuple[str, int, str]]:
            limits = httpx.Limits(max_connections=64)
            async with httpx.AsyncClient(base_url=url, timeout=LONG, limits=limits) as client:
                tasks = [asyncio.create_task(ask(client, i)) for i in range(96)]
                while sum(task.done() for task in tasks) < 20:
                    await asyncio.sleep(0.01)
                upstreams[0][1].kill()
                return await asyncio.gather(*tasks)

        found = asyncio.run(clients())
        # Streams of the upstream that was killed end with an error; nothing else fails.
        assert {(status, kind) for model, status, kind in found if model != "far"} == {(200, "whole")}
        assert {(status, kind) for model, status, kind in found if model == "far"} <= {
            (200, "whole"), (200, "error"), (502, "the upstream broke off"),
            (400, "prompt: needs an upstream that completes raw prompts (--upstream)"),
        }  # fmt: skip
        late = httpx.post(url + "/v1/chat/completions", json=body(PATHS[0], "far", False), timeout=LONG)
        assert (late.status_code, "x-untemplate-notes" in late.headers) == (200, True)
        assert "farther is asked" in late.headers["x-untemplate-notes"]
        listed = [one["id"] for one in httpx.get(url + "/v1/models", timeout=LONG).json()["data"]]
        assert sorted(listed) == ["demo", "far", "farther", "other", "words"]
    log = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [line for line in log if line["level"] == "error"] == []
    # The two models of this machine do not fit into the budget together, so they made room for each other.
    assert any(line["message"].startswith("model demo gone") for line in log)
