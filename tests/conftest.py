"""What all tests share: Hypothesis profiles, where the shared cases are, and the counts at the end of a run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# The same examples in every run: what CI finds, everybody finds. `make laws` looks for new ones.
settings.register_profile("sampled", deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
settings.register_profile("exhaustive", deadline=None, max_examples=500, suppress_health_check=list(HealthCheck))
settings.load_profile("sampled")

COUNTS = "untemplate_counts"


def shared_folder() -> Path | None:
    """The folder of shared cases: ``UNTEMPLATE_SHARED``, else ``shared`` beside the checkout; ``None`` if absent."""
    named = os.environ.get("UNTEMPLATE_SHARED")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared"
    return folder if folder.is_dir() else None


@pytest.fixture
def count(record_property: Any) -> Any:
    """``count("by_format", True)``: one more case of that name, right or not, for the summary."""

    def add(name: str, right: bool) -> None:
        record_property(COUNTS, (name, bool(right)))

    return add


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Cases in all and right ones, by name. Works under xdist: reports carry their properties."""
    totals: dict[str, list[int]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for key, value in getattr(report, "user_properties", ()):
                if key == COUNTS and getattr(report, "when", "") == "call":
                    name, right = value
                    total = totals.setdefault(name, [0, 0])
                    total[0] += bool(right)
                    total[1] += 1
    for name in sorted(totals):
        right, total = totals[name]
        terminalreporter.write_line(f"{name}: {right} of {total} right")
