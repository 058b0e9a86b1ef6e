"""untemplate inside Ray Serve LLM: the example, on a local Ray with the CPU build of vLLM (``make test-integrations``).

The model is a tiny checkpoint that recites an output. Its workers install untemplate with pip, by ``runtime_env``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_examples import promised

from .helper import ROOT, TEMPLATE, wheel

pytest.importorskip("ray.serve.llm", reason="needs ray[serve] and vLLM (make test-integrations)")

from tests.vllm_serve.checkpoint import write_checkpoint

EXAMPLE = ROOT / "examples" / "ray_serve_llm.py"
OUTPUT = (
    '<think>\nLook it up.\n</think>\n\n<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
)
SPECIAL = ["<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>"]


INSTALLED = "from importlib.util import find_spec; print(find_spec('untemplate') is not None)"


def test_the_example_parses_reasoning_and_calls_in_its_worker(tmp_path: Path):
    write_checkpoint(tmp_path / "model", TEMPLATE, SPECIAL, "<|im_end|>", [OUTPUT])
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environ |= {"RAY_AUTH_MODE": "disabled", "RAY_raylet_start_wait_time_s": "400", "VLLM_CPU_KVCACHE_SPACE": "1"}
    found = subprocess.run(
        [sys.executable, "-c", INSTALLED], cwd=tmp_path, capture_output=True, text=True, env=environ, check=True
    )
    assert found.stdout == "False\n", "untemplate is installed here: the test would show nothing"
    command = [sys.executable, str(EXAMPLE), str(tmp_path / "model"), str(wheel(tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environ, check=False)
    lines = [line for line in done.stdout.splitlines() if "(raylet)" not in line]  # Ray's remarks when it is shut down
    printed = "\n".join(lines[-3:]) + "\n"
    assert (printed, done.returncode) == (promised(EXAMPLE), 0), done.stdout + done.stderr
