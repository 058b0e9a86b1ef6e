"""Every file in ``examples/`` runs by itself and prints what the comment at its end promises."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NEEDS = {
    "bfcl_handler.py": "bfcl_eval",
    "inspect_ai_messages.py": "inspect_ai",
    "litellm_proxy.py": "litellm",
    "lm_eval_filter.py": "lm_eval",
    "renderers_rollout.py": "renderers",
    "sglang_parsers.py": "sglang",
    "transformers_template.py": "transformers",
    "trl_grpo.py": "trl",
    "verl_tool_parser.py": "verl",
}
"""Modules that the tests do not install; `make test-integrations` runs these examples, with logs of those projects."""


def promised(path: Path) -> str:
    """Return the text of the comment after ``# Prints:``."""
    _, _, comment = path.read_text("utf-8").partition("\n# Prints:\n")
    assert comment, f"{path.name} does not end with a comment that begins with '# Prints:'"
    return re.sub(r"^# ?", "", comment, flags=re.MULTILINE)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_it_promises(path: Path, tmp_path: Path):
    needed = NEEDS.get(path.name)
    if needed is not None and importlib.util.find_spec(needed) is None:
        pytest.skip(f"needs {needed}")
    environ = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True, cwd=tmp_path, env=environ, encoding="utf-8", check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr if needed is None else "", done.returncode) == (promised(path), "", 0), done.stderr


def test_the_index_lists_every_example():
    listed = re.findall(r"\]\((\w+\.py)\)", (ROOT / "examples" / "README.md").read_text("utf-8"))
    assert sorted(listed) == [path.name for path in EXAMPLES]
