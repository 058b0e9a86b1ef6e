"""The folder of public templates, and no cache unless a test sets one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from untemplate.analysis.cache import clear_memory

SHARED = Path(os.environ.get("UNTEMPLATE_SHARED") or Path(__file__).parents[3] / "shared")
TEMPLATES = sorted((SHARED / "templates").glob("*.jinja")) if SHARED.is_dir() else []


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNTEMPLATE_CACHE", "off")
    clear_memory()
