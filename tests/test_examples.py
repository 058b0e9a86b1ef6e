"""Every file in ``examples/`` prints what the comment at its end promises."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
ELSEWHERE = {
    "areal_parsers.py": "tests/integrations/test_areal.py runs it with the modules of the wheel that it needs",
    "conform_parser.py": "tests/test_conform.py runs it as a program of `untemplate conform`",
    "lmdeploy_parsers.py": "tests/integrations/test_lmdeploy.py runs it with the modules of the wheel that it needs",
    "ray_serve_llm.py": "tests/integrations/test_ray_serve.py has a model for it",
}
"""Examples that are run in another way, and where."""
NEEDS = {
    "bfcl_handler.py": "bfcl_eval",
    "frameworks_deepseek.py": "langchain_deepseek",
    "frameworks_langchain.py": "langchain_openai",
    "frameworks_llamaindex.py": "llama_index",
    "frameworks_openai_agents.py": "agents",
    "frameworks_pydantic_ai.py": "pydantic_ai",
    "inspect_ai_messages.py": "inspect_ai",
    "litellm_proxy.py": "litellm",
    "lm_eval_filter.py": "lm_eval",
    "mistral_common_tokens.py": "mistral_common",
    "mlx_lm_calls.py": "mlx_lm",
    "ms_swift_template.py": "swift",
    "renderers_rollout.py": "renderers",
    "sglang_parsers.py": "sglang",
    "tinker_cookbook_renderer.py": "tinker_cookbook",
    "transformers_template.py": "transformers",
    "trl_grpo.py": "trl",
    "verifiers_renderer.py": "verifiers",
    "verl_tool_parser.py": "verl",
    "xinference_parser.py": "xinference",
}
"""Modules that the tests do not install; `make test-integrations` runs these examples, with logs of those projects."""


def promised(path: Path) -> str:
    """Return the text of the comment after ``# Prints:``."""
    _, _, comment = path.read_text("utf-8").partition("\n# Prints:\n")
    assert comment, f"{path.name} does not end with a comment that begins with '# Prints:'"
    return re.sub(r"^# ?", "", comment, flags=re.MULTILINE)


def ran(file: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a file in a folder."""
    environ = os.environ | {"PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, str(file)]
    return subprocess.run(command, capture_output=True, cwd=folder, env=environ, encoding="utf-8", check=False)


@contextmanager
def started(path: Path, folder: Path) -> Iterator[Path]:
    """Yield the file to run: the example, or a copy with the URL of the gateway that it asks for, which runs then."""
    text = path.read_text("utf-8")
    asked = re.search(r"`untemplate (serve .*)`", text)
    if asked is None:
        yield path
        return
    copy = folder / path.name
    with gateway(*asked[1].split()) as url:
        copy.write_text(text.replace("http://127.0.0.1:8000", url), "utf-8")
        yield copy


@contextmanager
def gateway(*arguments: str) -> Iterator[str]:
    """Run a gateway in a process of its own; yield its URL."""
    command = [sys.executable, "-u", "-m", "untemplate", *arguments, "--port", "0"]
    environ = dict(os.environ)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environ) as server:
        assert server.stdout is not None
        try:
            lines = []
            for line in server.stdout:
                lines.append(line)
                if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                    yield found[0]
                    return
            raise AssertionError("".join(lines))
        finally:
            server.terminate()


@pytest.mark.parametrize("path", [one for one in EXAMPLES if one.name not in ELSEWHERE], ids=lambda path: path.stem)
def test_an_example_prints_what_it_promises(path: Path, tmp_path: Path):
    needed = NEEDS.get(path.name)
    if needed is not None and importlib.util.find_spec(needed) is None:
        pytest.skip(f"needs {needed} (make test-integrations)")
    with started(path, tmp_path) as file:
        done = ran(file, tmp_path)
    assert (done.stdout, done.stderr if needed is None else "", done.returncode) == (promised(path), "", 0), done.stderr


def test_the_index_lists_every_example():
    listed = re.findall(r"\]\((\w+\.py)\)", (ROOT / "examples" / "README.md").read_text("utf-8"))
    assert sorted(listed) == [path.name for path in EXAMPLES]


def test_every_project_of_test_integrations_has_an_example():
    projects = [path.stem for path in (ROOT / "tests" / "integrations" / "packages").glob("*.txt")]
    assert [name for name in projects if not any(path.stem.startswith(name) for path in EXAMPLES)] == []
