"""No cache unless a test sets one."""

from __future__ import annotations

import pytest

from untemplate.analysis._cache import clear_memory


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNTEMPLATE_CACHE", "off")
    clear_memory()
