"""The pages on data sets and clusters run, where their packages are installed (`make test-batch`)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS = {"datasets.md": ("datasets", "pyarrow", "polars", "duckdb"), "ray.md": ("ray",)}


@pytest.mark.parametrize("page", NEEDS)
def test_the_blocks_of_a_page_print_what_follows_them(page: str, tmp_path: Path):
    for package in NEEDS[page]:
        pytest.importorskip(package)
    blocks = BLOCK.findall((ROOT / "docs" / page).read_text("utf-8"))
    code = "\n".join(text for language, text in blocks if language == "python")
    wanted = "".join(text for language, text in blocks if language == "text")
    script = tmp_path / "page.py"
    script.write_text(code, "utf-8")
    environ = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
        "HF_HOME": str(tmp_path),
    }
    command = [sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, cwd=tmp_path, check=False)
    assert (done.stdout, done.returncode) == (wanted, 0), done.stderr[-4_000:]
