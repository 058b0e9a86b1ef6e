"""``untemplate.integrations.litellm`` in LiteLLM's own proxy: ``make test-integrations``.

The upstream is LiteLLM's mock of a model: it answers with a given text, whole or in pieces.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # no look-up on the network
pytest.importorskip("litellm.proxy.proxy_server", reason="needs litellm[proxy]")
httpx = pytest.importorskip("httpx")

from untemplate.formats import UnknownFormatError  # noqa: E402
from untemplate.integrations.litellm import TextParser  # noqa: E402

OUTPUT = (
    "<think>\nLook it up.\n</think>\n\nOne moment.\n"
    '<tool_call>\n{"name": "find", "arguments": {"q": "tea"}}\n</tool_call>'
)
TOOLS = [{"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}]


CALLBACK = """\
from untemplate import OutputParser
from untemplate.integrations.litellm import TextParser

parser = TextParser({"mine": OutputParser.named("hermes", reasoning="qwen3")})
"""
MODEL = '{"model_name": "%s", "litellm_params": {"model": "openai/x", "api_key": "x", "mock_response": %s}}'
KEY = "sk-of-this-test"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("proxy")
    (folder / "callback.py").write_text(CALLBACK, "utf-8")
    models = ", ".join(MODEL % (name, json.dumps(OUTPUT)) for name in ("mine", "other"))
    config = f'{{"model_list": [{models}], "litellm_settings": {{"callbacks": "callback.parser"}}}}'
    (folder / "config.yaml").write_text(config, "utf-8")  # JSON is YAML
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [Path(sys.executable).with_name("litellm"), "--config", "config.yaml", "--host", "127.0.0.1"]
    environ = os.environ | {"LITELLM_MASTER_KEY": KEY, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    with (folder / "log").open("w") as log:
        server = subprocess.Popen([*command, "--port", str(port)], cwd=folder, env=environ, stdout=log, stderr=log)
    headers = {"Authorization": f"Bearer {KEY}"}
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as made:
            wait_for(made, server, folder / "log")
            yield made
    finally:
        server.terminate()
        server.wait()


def wait_for(client: Any, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        assert server.poll() is None, log.read_text("utf-8")
        try:
            if client.get("/health/liveliness").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.5)
    raise AssertionError(log.read_text("utf-8"))


def ask(client: Any, model: str, **fields: Any) -> Any:
    body = {"model": model, "messages": [{"role": "user", "content": "Hi"}], "tools": TOOLS, **fields}
    answer = client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    return answer


def test_a_whole_answer(client: Any):
    choice = ask(client, "mine").json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] == "One moment."
    assert choice["message"]["reasoning_content"] == "Look it up."
    assert [call["function"] for call in choice["message"]["tool_calls"]] == [
        {"name": "find", "arguments": '{"q": "tea"}'}
    ]


def test_a_streamed_answer(client: Any):
    lines = ask(client, "mine", stream=True).text.split("\n\n")
    chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert "".join(delta.get("content") or "" for delta in deltas) == "One moment."
    assert "".join(delta.get("reasoning_content") or "" for delta in deltas) == "Look it up."
    calls = [call["function"] for delta in deltas for call in delta.get("tool_calls") or ()]
    assert "".join(call.get("arguments") or "" for call in calls) == '{"q": "tea"}'
    assert [call["name"] for call in calls if call.get("name")] == ["find"]
    reasons = [chunk["choices"][0].get("finish_reason") for chunk in chunks]
    assert [reason for reason in reasons if reason] == ["tool_calls"]


def test_without_tools_nothing_is_a_call(client: Any):
    message = ask(client, "mine", tools=[]).json()["choices"][0]["message"]
    assert message["content"].startswith("One moment.\n<tool_call>")
    assert not message.get("tool_calls")


def test_other_models_are_left_alone(client: Any):
    assert ask(client, "other").json()["choices"][0]["message"]["content"] == OUTPUT


def test_an_unknown_format():
    with pytest.raises(UnknownFormatError):
        TextParser({"mine": "no-such-format"})
