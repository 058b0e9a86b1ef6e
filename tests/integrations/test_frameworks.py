"""The snippets of docs/frameworks.md print what they promise, against a gateway: ``make test-integrations``."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "frameworks.md").read_text("utf-8")
TOOL, *SNIPPETS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
MODULES = ["langchain_openai", "langchain_deepseek", "llama_index", "pydantic_ai", "agents"]


def test_every_framework_has_a_snippet():
    for module, snippet in zip(MODULES, SNIPPETS, strict=True):
        assert f"from {module}" in snippet


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    command = [sys.executable, "-u", "-m", "untemplate", "serve", "replay:hermes+qwen3", "--port", "0"]
    environ = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environ) as server:
        assert server.stdout is not None
        try:
            lines = []
            for line in server.stdout:
                lines.append(line)
                if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                    yield found[0] + "/v1"
                    return
            raise AssertionError("".join(lines))
        finally:
            server.terminate()


@pytest.mark.parametrize(("module", "snippet"), list(zip(MODULES, SNIPPETS, strict=True)), ids=MODULES)
def test_a_snippet_prints_what_it_promises(module: str, snippet: str, request: pytest.FixtureRequest, tmp_path: Path):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"needs {module}")
    url = request.getfixturevalue("url")
    code, _, promised = snippet.partition("\n# Prints:\n")
    (tmp_path / "tool.py").write_text(TOOL.replace("http://127.0.0.1:8000/v1", url), "utf-8")
    (tmp_path / "snippet.py").write_text(f"from tool import URL, weather\n{code}", "utf-8")
    done = subprocess.run(
        [sys.executable, "snippet.py"], capture_output=True, text=True, cwd=tmp_path, env=os.environ, check=False
    )
    assert (done.stdout, done.returncode) == (re.sub(r"^# ", "", promised, flags=re.MULTILINE), 0), done.stderr
