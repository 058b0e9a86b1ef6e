"""Shared by all tests: Hypothesis profiles, and the counts at the end of a run."""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

# The same examples in every run, so that everybody finds what CI finds. `make laws` searches for new ones. Hypothesis
# mixes in constants of the modules loaded so far: a change of the source, or another order of the files, would draw
# other examples. It has no setting for that.
providers._get_local_constants = Constants
settings.register_profile("sampled", deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
settings.register_profile("exhaustive", deadline=None, max_examples=500, suppress_health_check=list(HealthCheck))
settings.load_profile("sampled")

COUNTS = "untemplate_counts"

# Programs that tests start run this checkout, whichever one is installed.
_SOURCES = [str(Path(__file__).parents[1] / folder) for folder in ("src", "gateway/src")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), *_SOURCES)))
# Each httpx client reads all certificates of the public authorities, 20 ms of work, and no test asks a public server.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = str(Path(__file__).parent)
# All Formats together have more patterns than `re` keeps, and dropping the oldest of them costs more than keeping them.
re._MAXCACHE = 1 << 20  # type: ignore[attr-defined]


@pytest.fixture(autouse=True, scope="session")
def without_our_own_variable() -> None:
    """Hide ``UNTEMPLATE_SHARED``, which `tests.public` has read, from the gateways that tests start: to them a variable
    of this prefix is a setting."""
    os.environ.pop("UNTEMPLATE_SHARED", None)


@pytest.fixture(autouse=True, scope="session")
def what_all_outputs_share_stays_as_it_is() -> Iterator[None]:
    """Look after all tests if one of them has changed a list that the outputs of all streams share."""
    lists = {
        f"{module}.{name}": value
        for module in [name for name in sys.modules if name.startswith("untemplate._internal.machine.")]
        for name, value in vars(sys.modules[module]).items()
        if type(value) is list
    }
    before = {name: list(value) for name, value in lists.items()}
    yield
    assert lists == before


def pytest_collection() -> None:
    """Collect no garbage while tests are collected: they live as long as the run."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave all tests out of later collections of garbage."""
    gc.freeze()
    gc.enable()


@pytest.fixture
def count(record_property: Any) -> Any:
    """Return a function that counts cases for the summary: ``count("by_format", True)`` adds a right one."""

    def add(name: str, right: bool) -> None:
        record_property(COUNTS, (name, bool(right)))

    return add


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print all cases and the right ones, by name. Works under xdist: reports carry the counts as properties."""
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
